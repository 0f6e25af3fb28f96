/* What a plan says of large tables that several sessions read: how they are cut, where that is not as one would think. */
#include "plan/draft.h"

/* A table that is known to be small is not cut. */
enum { ROWS_TO_CUT = 100000 };

static bool may_be_cut(const StreamPlan *stream)
{
    if (stream->source == NULL || stream->parallel < 2) return false;
    return stream->source->estimated_rows < 0 || stream->source->estimated_rows >= ROWS_TO_CUT;
}

bool splits_note(Draft *draft, Session *source, Err *err)
{
    const SourceOps *ops = draft->plan->source_connector->source;
    for (int i = 0; ops->split_note != NULL && i < draft->plan->stream_count; i++) {
        const StreamPlan *stream = &draft->plan->streams[i];
        const char *note = NULL;
        ReadSpec spec = {.stream = stream->name,
                         .table = stream->source,
                         .schema = &stream->schema,
                         .sync = stream->sync,
                         .where = stream->where,
                         .key = stream->key,
                         .key_count = stream->key_count,
                         .cursor = stream->cursor,
                         .order = stream->order,
                         .stop = draft->input->stop};
        if (!may_be_cut(stream)) continue;
        if (!ops->split_note(source, &spec, draft->arena, &note, err)) return false;
        if (note != NULL) draft_note(draft, "%s: %s", stream->name, note);
    }
    return true;
}
