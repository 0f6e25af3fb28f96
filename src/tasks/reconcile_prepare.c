#include "engine/stored.h"
#include "tasks/dest_table.h"
#include "tasks/reconcile_stream.h"

#include <stdarg.h>
#include <string.h>

enum { COMMITS_FIRST = 1000, COMMITS_MOST = 256000 };

void comparison_note(Comparison *comparison, const char *format, ...)
{
    StreamReconcile *result = comparison->result;
    const char **notes = arena_array(comparison->arena, const char *, result->note_count + 1);
    for (int i = 0; i < result->note_count; i++)
        notes[i] = result->notes[i];
    va_list args;
    va_start(args, format);
    notes[result->note_count++] = arena_vprintf(comparison->arena, format, args);
    va_end(args);
    result->notes = notes;
}

/* ---- what was committed ------------------------------------------------------------------------------------------ */

static bool was_reset(const ResetMark *marks, int count, const CommitRecord *commit)
{
    for (int i = 0; i < count; i++)
        if (strcmp(marks[i].stream, commit->stream) == 0 && marks[i].asked_at_us >= commit->committed_at_us)
            return true;
    return false;
}

/* Why the stream has nothing to be held to, or NULL. */
static const char *not_promised(const Comparison *comparison, const ResetMark *marks, int mark_count)
{
    const StreamPlan *stream = comparison->stream;
    const Position *position = &comparison->position;
    if (comparison->commit == NULL) return "never synced";
    if (was_reset(marks, mark_count, comparison->commit)) return "its position was reset since its last commit";
    if (position->owner == NULL || strcmp(position->owner, stream->owner) != 0)
        return "its source, destination, sync, cursor, key or filter changed since its last commit";
    if (stream->sync == SYNC_INCREMENTAL && position->watermark == NULL)
        return position->complete ? "its last sync found an empty table" : "its first read has not come to its end yet";
    return NULL;
}

static bool load_commit(Comparison *comparison, const CommitList *commits, const ResetMark *marks, int mark_count,
                        Err *err)
{
    StreamReconcile *result = comparison->result;
    for (int i = 0; i < commits->count; i++)
        if (strcmp(commits->items[i].stream, comparison->stream->name) == 0) comparison->commit = &commits->items[i];
    if (comparison->commit != NULL &&
        !position_from_text(comparison->commit->position, comparison->arena, &comparison->position, err))
        return false;
    result->not_compared = not_promised(comparison, marks, mark_count);
    if (result->not_compared != NULL) return true;
    result->committed_at_us = comparison->commit->committed_at_us;
    result->watermark = comparison->stream->sync == SYNC_INCREMENTAL ? comparison->position.watermark : NULL;
    if (!comparison->position.complete && comparison->stream->sync != SYNC_INCREMENTAL)
        comparison_note(comparison, "its last sync is not at its end: rows it has not come to yet count as skipped");
    return true;
}

/* ---- the generation before --------------------------------------------------------------------------------------- */

static bool find_before(Comparison *comparison, const CommitList *list, Err *err)
{
    for (int i = 0; i < list->count; i++) {
        Position position;
        if (strcmp(list->items[i].stream, comparison->stream->name) != 0) continue;
        if (!position_from_text(list->items[i].position, comparison->arena, &position, err)) return false;
        if (position.generation >= comparison->position.generation) continue;
        comparison->old =
            (OldRows){.any = true, .seq_high = position.seq, .written_by_us = list->items[i].committed_at_us};
        return true;
    }
    return true;
}

/* A full refresh that appends keeps every generation. The last one's rows are those after the last commit of the one
 * before. */
static bool load_before(Comparison *comparison, Err *err)
{
    const StreamPlan *stream = comparison->stream;
    if (stream->sync == SYNC_INCREMENTAL || stream->write != WRITE_APPEND || comparison->position.generation <= 1)
        return true;
    const PipelinePlan *plan = comparison->plan;
    for (int limit = COMMITS_FIRST; limit <= COMMITS_MOST && !comparison->old.any; limit *= 4) {
        CommitList list = {0};
        if (!plan->destination_connector->destination->commits(comparison->destination, plan->pipeline->namespace_,
                                                               plan->resource->name, limit, comparison->arena, &list,
                                                               err) ||
            !find_before(comparison, &list, err))
            return false;
        if (list.count < limit) break;
    }
    return true;
}

/* ---- the destination's table ------------------------------------------------------------------------------------- */

static bool find_table(Comparison *comparison, Err *err)
{
    if (!stored_table(comparison->plan, comparison->stream, comparison->destination, comparison->arena,
                      &comparison->table, err))
        return false;
    if (comparison->table == NULL)
        comparison_note(comparison, "table %s is not at the destination", comparison->stream->table);
    return true;
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

static bool is_key(const StreamPlan *stream, const char *name)
{
    for (int i = 0; i < stream->key_count; i++)
        if (strcmp(stream->key[i], name) == 0) return true;
    return false;
}

/* A column that was added at the source since the last run is not at the destination yet. */
static bool pair_columns(Comparison *comparison, Err *err)
{
    const StreamPlan *stream = comparison->stream;
    dest_table_pair(comparison->plan, comparison->table, &stream->schema, comparison->arena, &comparison->schema,
                    &comparison->stored);
    for (int i = 0; i < stream->schema.count; i++) {
        const char *name = stream->schema.fields[i].name;
        if (schema_find(&comparison->schema, name) >= 0) continue;
        if (is_key(stream, name))
            return err_set(err, ERR_DEST_SCHEMA, "table %s has no column \"%s\", which is in the stream's key",
                           stream->table, name);
        comparison_note(comparison, "column %s is not at the destination yet and was not compared", name);
    }
    return true;
}

static int own_column(Comparison *comparison, const char *name, TypeId type)
{
    return dest_table_own(comparison->plan, comparison->table, name, type, &comparison->stored);
}

static void add_own_columns(Comparison *comparison)
{
    OwnColumns *own = &comparison->own;
    own->seq = own_column(comparison, "_openetl_seq", TYPE_UTF8);
    own->op = own_column(comparison, "_openetl_op", TYPE_UTF8);
    own->deleted = own_column(comparison, "_openetl_deleted", TYPE_BOOL);
    own->synced_at = own_column(comparison, "_openetl_synced_at", TYPE_TIMESTAMPTZ);
    if (own->synced_at < 0) own->synced_at = own_column(comparison, "_openetl_synced_at", TYPE_TIMESTAMP);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void decide_keyless(Comparison *comparison)
{
    const StreamPlan *stream = comparison->stream;
    if (stream->key_count > 0) return;
    comparison->versioned = stream->sync == SYNC_INCREMENTAL && stream->write == WRITE_APPEND;
    comparison->multiset = stream->sync != SYNC_INCREMENTAL && !stream->decision.dedupe && !stream->decision.collapse;
    if (comparison->versioned)
        comparison_note(comparison, "it has no key: rows that changed cannot be told from new ones, so extra rows are "
                                    "not looked for");
}

bool comparison_prepare(Comparison *comparison, const CommitList *commits, const ResetMark *marks, int mark_count,
                        Err *err)
{
    if (!load_commit(comparison, commits, marks, mark_count, err)) return false;
    if (comparison->result->not_compared != NULL) return true;
    decide_keyless(comparison);
    if (!load_before(comparison, err) || !find_table(comparison, err) || !pair_columns(comparison, err)) return false;
    add_own_columns(comparison);
    return true;
}
