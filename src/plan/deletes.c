/* deletes.reconcile: an incremental stream whose keys are compared with the destination's. A wrong answer there deletes rows
 * that exist, so whatever could make one is a problem of the plan. */
#include "plan/draft.h"

static void refuse(Draft *draft, const StreamPlan *stream, const char *why)
{
    draft_problem(draft, "%s.deletes: the keys of stream \"%s\" can't be compared: %s", stream->path, stream->name,
                  why);
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
    if (stream->key_count == 0) refuse(draft, stream, "it has no primary key; set key");
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

void stream_deletes(Draft *draft, const StreamPlan *stream)
{
    if (stream->reconcile_keys_us == 0) return;
    check_stream(draft, stream);
    check_ends(draft, stream);
}
