#include "plan/draft.h"

static Replay replay_of(const StreamPlan *stream, const Capabilities *source)
{
    /* By its nature: the rows at the previous highest cursor value are read again. */
    if (stream->sync == SYNC_INCREMENTAL) return REPLAY_SUPERSET;
    if (stream->sync == SYNC_COMPARE) return source->replay[SYNC_COMPARE];
    return stream->source->replay;
}

static void check_sync(Draft *draft, const StreamPlan *stream)
{
    const Connector *connector = draft->plan->source_connector;
    const char *name = stream->name;
    if (!connector->capabilities.syncs[stream->sync]) {
        Buf list;
        buf_init(&list, BUF_SQL_MAX);
        for (int i = 0; i < SYNC_COUNT; i++) {
            if (!connector->capabilities.syncs[i]) continue;
            buf_printf(&list, "%s%s", list.length == 0 ? "" : ", ", sync_name((SyncMode)i));
        }
        draft_problem(draft, "%s.sync: stream \"%s\" can't be read by %s from %s, which reads by %s", stream->path,
                      name, sync_name(stream->sync), connector->name, buf_text(&list));
        buf_release(&list);
        return;
    }
    bool has_log = stream->source->kind == TABLE_PLAIN || stream->source->kind == TABLE_PARTITIONED;
    if (stream->sync == SYNC_CDC && !has_log) {
        draft_problem(draft, "%s.sync: stream \"%s\" is a %s, which has no changes of its own in the log", stream->path,
                      name, stream->source->kind == TABLE_VIEW ? "view" : "foreign table");
    }
    if (stream->sync == SYNC_COMPARE && stream->key_count == 0) {
        draft_problem(draft, "%s.sync: stream \"%s\" has no primary key, and compare needs one; set key", stream->path,
                      name);
    }
}

static void check_overwrite(Draft *draft, const StreamPlan *stream)
{
    const Connector *connector = draft->plan->destination_connector;
    if (stream->write != WRITE_OVERWRITE || connector->capabilities.overwrites) return;
    bool own = stream->given->has_write;
    draft_problem(draft, "%s.write: stream \"%s\" can't be written with overwrite: %s doesn't overwrite",
                  own ? stream->path : "spec.destination", stream->name, connector->name);
}

static CollapseSetting collapse_of(const StreamResource *given)
{
    if (!given->has_collapse) return COLLAPSE_UNSET;
    return given->collapse ? COLLAPSE_TRUE : COLLAPSE_FALSE;
}

/* What follows from sync and write together, whatever the guarantee. */
static void say_what_write_keeps(Draft *draft, const StreamPlan *stream)
{
    if (stream->sync == SYNC_FULL_REFRESH && stream->write == WRITE_APPEND) {
        draft_note(draft,
                   "%s: full_refresh with append keeps every sync's copy of the table; write: overwrite keeps the last "
                   "copy alone",
                   stream->name);
    }
    if (stream->sync == SYNC_INCREMENTAL && stream->write == WRITE_OVERWRITE) {
        draft_warning(
            draft,
            "%s: overwrite under incremental replaces the table with the rows of that read alone, so the rows "
            "of earlier reads go. append and merge keep them.",
            stream->name);
    }
}

void stream_decide(Draft *draft, StreamPlan *stream)
{
    const Capabilities *source = &draft->plan->source_connector->capabilities;
    const Capabilities *destination = &draft->plan->destination_connector->capabilities;
    check_sync(draft, stream);
    check_overwrite(draft, stream);
    if (stream->sync == SYNC_CDC) cdc_decide(draft, stream);
    stream->replay = replay_of(stream, source);
    GuaranteeFacts facts = {
        .replay = stream->replay,
        .commit_style = destination->commit_style,
        .dedupes = destination->dedupes,
        .merges = destination->merges,
        .write = stream->write,
        .has_key = stream->key_count > 0,
        .collapse = collapse_of(stream->given),
        .require = stream->require,
    };
    stream->decision = guarantee_decide(&facts);
    if (stream->decision.warning != WARNING_NONE) {
        texts_add(&draft->warnings, warning_text(stream, stream->decision.warning, draft->arena), draft->arena);
    }
    if (stream->decision.problem != PROBLEM_NONE) {
        texts_add(&draft->problems, problem_text(stream, stream->decision.problem, draft->arena), draft->arena);
    }
    say_what_write_keeps(draft, stream);
}
