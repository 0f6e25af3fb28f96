def write(results, path, docs):
    pass
