/* init: writes a commented resource file for a source: two connections and one pipeline, with a sync, a write mode, a
 * cursor and a key a table, each with its reason in a comment. What it writes passes `openetl plan`.
 *
 * A secret never goes into the file: a URL with a password becomes ${NAME}, and the answer says which variable to set.
 */
#ifndef OPENETL_TASKS_INIT_H
#define OPENETL_TASKS_INIT_H

#include "base/arena.h"
#include "base/err.h"
#include "base/stop.h"

typedef struct InitSpec {
    const char *from; /* URLs: postgresql://…, sqlite:PATH, duckdb:PATH */
    const char *to;
    const char *name; /* of the pipeline; NULL: from the source's name */
    const char *const *tables;
    int table_count; /* 0: all */
    Stop *stop;
} InitSpec;

typedef struct InitVariable {
    const char *name;   /* SHOP_DB_URL */
    const char *hidden; /* the URL with its password hidden */
} InitVariable;

typedef struct InitResult {
    const char *name; /* the pipeline's */
    const char *yaml;
    InitVariable variables[2];
    int variable_count;
    int stream_count;
} InitResult;

bool init_make(const InitSpec *spec, Arena *arena, InitResult *result, Err *err);

#endif
