#include "connectors/connector.h"

#include <string.h>

bool change_lacks_value(const DestStream *stream, int column, Err *err)
{
    const char *name = stream->schema->fields[column].name;
    if (stream->write == WRITE_MERGE && stream->layout == LAYOUT_DIRECT) {
        err_set(
            err, ERR_DEST_WRITE,
            "an update did not bring column \"%s\", whose value had not changed, and table \"%s\" has no such row to "
            "take it from; nothing was committed",
            name, stream->table);
        err_fix(err,
                "rows were taken out of the table; openetl state rebaseline PIPELINE --stream %s reads the source's "
                "table anew",
                stream->stream);
    } else {
        err_set(err, ERR_DEST_WRITE,
                "an update did not bring column \"%s\", whose value had not changed, and \"%s\" has no version of the "
                "row from before it; nothing was committed",
                name, stream->table);
        err_fix(err,
                "let the source send whole rows (ALTER TABLE … REPLICA IDENTITY FULL), then read its table anew: "
                "openetl state rebaseline PIPELINE --stream %s",
                stream->stream);
    }
    return false;
}

static bool lacks_any(const Batch *batch, int64_t row)
{
    for (int i = 0; i < batch->schema->count; i++)
        if (column_is_unchanged(&batch->columns[i], row)) return true;
    return false;
}

static int64_t count_moved(const Batch *batch)
{
    int64_t moved = 0;
    for (int64_t row = 0; batch->ops != NULL && row < batch->rows; row++)
        moved += batch->ops[row] == OP_UPDATE && (batch_seq(batch, row).low & 1) != 0 && lacks_any(batch, row);
    return moved;
}

void changes_see(ChangesSeen *seen, const DestStream *stream, const Batch *batch)
{
    if (batch->ops == NULL) seen->reads += batch->rows;
    for (int64_t i = 0; batch->ops != NULL && stream->with_ops && i < batch->rows; i++) {
        seen->reads += batch->ops[i] == OP_READ;
        seen->deletes += batch->ops[i] == OP_DELETE;
        seen->truncates += batch->ops[i] == OP_TRUNCATE;
    }
    for (int i = 0; i < batch->schema->count; i++) {
        if (batch->columns[i].unchanged.bytes == 0) continue;
        if (!stream->with_ops) BUG("stream %s has values that were not sent, and no operations", stream->stream);
        seen->any_unchanged = seen->unchanged[i] = true;
    }
    if (seen->any_unchanged) seen->moved += count_moved(batch);
}

void changes_forget(ChangesSeen *seen, int columns)
{
    bool *unchanged = seen->unchanged;
    memset(unchanged, 0, sizeof *unchanged * (size_t)columns);
    *seen = (ChangesSeen){.unchanged = unchanged};
}
