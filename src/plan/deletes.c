/* Streams that find deletes by comparing: deletes.reconcile, whose keys are compared with the destination's, and sync: compare.
 * A wrong answer there deletes rows that exist, so whatever could make one is a problem of the plan. */
#include "plan/draft.h"

static void refuse(Draft *draft, const StreamPlan *stream, const char *why)
{
    draft_problem(draft, "%s.%s: the keys of stream \"%s\" can't be compared: %s", stream->path,
                  stream->sync == SYNC_COMPARE ? "sync" : "deletes", stream->name, why);
}

/* Sources that give keys and the rows of given keys; destinations that can be read back. */
static void check_ends(Draft *draft, const StreamPlan *stream)
{
    const Connector *source = draft->plan->source_connector, *destination = draft->plan->destination_connector;
    if (source->source->read_rows == NULL)
        refuse(draft, stream, arena_printf(draft->arena, "%s doesn't give the rows of given keys", source->name));
    if (destination->source == NULL)
        refuse(draft, stream, arena_printf(draft->arena, "%s can't be read back", destination->name));
}

static void check_stream(Draft *draft, const StreamPlan *stream)
{
    /* With it, a row that only left the filter would be taken for a deleted one; without it, keys would come to the
     * destination's rows that the stream never had. */
    if (stream->where != NULL)
        refuse(
            draft, stream,
            "it has a filter (where), and a row that leaves the filter isn't a deleted one; take one of the two out");
    if (stream->write == WRITE_OVERWRITE)
        refuse(draft, stream, "overwrite keeps the rows of the last range alone; use merge or append");
    if (stream->write == WRITE_APPEND && stream->deletes == DELETES_HARD)
        refuse(draft, stream, "append keeps every version, so as: hard deletes nothing; use merge, or as: soft");
}

static void check_key(Draft *draft, const StreamPlan *stream)
{
    if (stream->key_count == 0 && stream->sync != SYNC_COMPARE) refuse(draft, stream, "it has no primary key; set key");
    for (int i = 0; i < stream->key_count; i++) {
        int column = schema_find(&stream->schema, stream->key[i]);
        if (column >= 0 && stream->schema.fields[column].type.id == TYPE_LIST)
            refuse(draft, stream, arena_printf(draft->arena, "its key column \"%s\" is a list", stream->key[i]));
    }
}

static void check_compare(Draft *draft, const StreamPlan *stream)
{
    if (stream->write == WRITE_OVERWRITE)
        refuse(draft, stream, "overwrite would keep the changes of the last read alone; use merge or append");
    if (stream->where != NULL)
        draft_note(draft, "%s: a row that leaves its filter (where) counts as deleted", stream->name);
}

void stream_deletes(Draft *draft, const StreamPlan *stream)
{
    bool compares = stream->sync == SYNC_COMPARE;
    if (stream->reconcile_keys_us == 0 && !compares) return;
    if (compares && stream->key_count == 0) return; /* said already */
    check_key(draft, stream);
    check_ends(draft, stream);
    if (compares)
        check_compare(draft, stream);
    else
        check_stream(draft, stream);
}
