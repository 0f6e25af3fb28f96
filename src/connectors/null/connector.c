/* A destination that is nothing: see README.md beside this file. */
#include "connectors/connector.h"

#include "base/failpoint.h"

#include <stdlib.h>

/* A commit of one stream; the last of each stream is kept, and all of it is gone with the session. */
typedef struct Kept {
    const char *namespace_;
    const char *pipeline;
    CommitRecord record;
} Kept;

typedef struct Nothing {
    Arena arena; /* of the session: what prepare and commit keep */
    const DestStream *streams;
    int64_t *staged_rows; /* a stream, since its last commit */
    int64_t *bytes;       /* a stream, since open */
    int stream_count;
    Kept *kept;
    int kept_count;
} Nothing;

static Nothing *nothing(Session *handle)
{
    return (Nothing *)handle;
}

/* ---- the session ------------------------------------------------------------------------------------------------- */

static bool nothing_open(const OpenSpec *spec, Session **handle, Err *err)
{
    if (spec->role != ROLE_DESTINATION)
        return err_set(err, ERR_RESOURCE_INVALID, "connection %s: nothing is no source", spec->config->connection);
    Nothing *session = mem_zero(sizeof *session);
    arena_init(&session->arena);
    *handle = (Session *)session;
    return true;
}

static void nothing_close(Session *handle)
{
    if (handle == NULL) return;
    arena_release(&nothing(handle)->arena);
    free(handle);
}

static bool nothing_discover(Session *handle, const char *const *only, int only_count, Arena *arena, Catalog *catalog,
                             Err *err)
{
    (void)handle, (void)only, (void)only_count, (void)arena, (void)err;
    *catalog = (Catalog){0};
    return true;
}

static bool nothing_identity(Session *handle, Arena *arena, const char **identity, Err *err)
{
    (void)handle, (void)err;
    *identity = arena_strdup(arena, "nothing");
    return true;
}

static bool nothing_checks(Session *handle, SessionRole role, CheckList *list, Err *err)
{
    (void)handle, (void)role, (void)err;
    check_add(list, true, "connect", "rows are counted and dropped", NULL);
    return true;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool nothing_inspect(Session *handle, const DestStream *stream, Arena *arena, DestTable *table, Err *err)
{
    (void)handle, (void)stream, (void)arena, (void)err;
    *table = (DestTable){0};
    return true;
}

static bool nothing_prepare(Session *handle, const DestStream *streams, int count, Arena *arena, PrepareResult *results,
                            Err *err)
{
    (void)arena, (void)err;
    Nothing *session = nothing(handle);
    session->streams = streams;
    session->stream_count = count;
    session->staged_rows = arena_array(&session->arena, int64_t, count);
    session->bytes = arena_array(&session->arena, int64_t, count);
    session->kept = arena_array(&session->arena, Kept, count);
    for (int i = 0; i < count; i++)
        results[i] = (PrepareResult){.created = true};
    return true;
}

static bool nothing_stage(Session *handle, Batch **batch, Err *err)
{
    (void)err;
    Nothing *session = nothing(handle);
    Batch *taken = *batch;
    *batch = NULL;
    if (taken->stream < 0 || taken->stream >= session->stream_count || taken->ids == NULL)
        BUG("a batch of stream %d, %s ids, for %d prepared", taken->stream, taken->ids == NULL ? "without" : "with",
            session->stream_count);
    session->staged_rows[taken->stream] += taken->rows;
    session->bytes[taken->stream] += (int64_t)taken->bytes;
    batch_free(taken);
    return true;
}

static void nothing_abort(Session *handle)
{
    Nothing *session = nothing(handle);
    for (int i = 0; i < session->stream_count; i++)
        session->staged_rows[i] = 0;
}

/* ---- commits ----------------------------------------------------------------------------------------------------- */

static CommitRecord record_copy(const CommitRecord *record, Arena *arena)
{
    CommitRecord copy = *record;
    copy.stream = arena_strdup(arena, record->stream);
    copy.run_id = arena_strdup(arena, record->run_id);
    if (record->position != NULL) copy.position = arena_strdup(arena, record->position);
    if (record->watermark != NULL) copy.watermark = arena_strdup(arena, record->watermark);
    return copy;
}

static bool is_of(const Kept *kept, const char *namespace_, const char *pipeline)
{
    bool same = kept->namespace_ == namespace_ ||
                (kept->namespace_ != NULL && namespace_ != NULL && strcmp(kept->namespace_, namespace_) == 0);
    return same && strcmp(kept->pipeline, pipeline) == 0;
}

static Kept *find_kept(Nothing *session, const Epoch *epoch, const char *stream)
{
    for (int i = 0; i < session->kept_count; i++) {
        Kept *kept = &session->kept[i];
        if (is_of(kept, epoch->namespace_, epoch->pipeline) && strcmp(kept->record.stream, stream) == 0) return kept;
    }
    return NULL;
}

static bool check_part(Nothing *session, const Epoch *epoch, const EpochStream *part, Err *err)
{
    int64_t staged = session->staged_rows[part->stream];
    if (staged != part->staged_rows)
        return err_set(err, ERR_VERIFY_COUNTS, "stream %s: %lld rows were handed over, %lld were counted",
                       part->record.stream, (long long)part->staged_rows, (long long)staged);
    const Kept *kept = find_kept(session, epoch, part->record.stream);
    if (kept == NULL || kept->record.epoch < part->record.epoch) return true;
    return err_set(err, ERR_STATE_EPOCH_TAKEN, "stream %s: epoch %lld of pipeline %s is committed already",
                   part->record.stream, (long long)part->record.epoch, epoch->pipeline);
}

static void keep(Nothing *session, const Epoch *epoch, const EpochStream *part)
{
    Kept *kept = find_kept(session, epoch, part->record.stream);
    if (kept == NULL) kept = &session->kept[session->kept_count++];
    kept->namespace_ = epoch->namespace_ == NULL ? NULL : arena_strdup(&session->arena, epoch->namespace_);
    kept->pipeline = arena_strdup(&session->arena, epoch->pipeline);
    kept->record = record_copy(&part->record, &session->arena);
}

static bool nothing_commit(Session *handle, Epoch *epoch, ApplyCounts *counts, Err *err)
{
    Nothing *session = nothing(handle);
    for (int i = 0; i < epoch->count; i++)
        if (!check_part(session, epoch, &epoch->streams[i], err)) return false;
    failpoint(after_apply);
    for (int i = 0; i < epoch->count; i++) {
        EpochStream *part = &epoch->streams[i];
        part->record.rows = part->staged_rows;
        counts[i] = (ApplyCounts){.staged = part->staged_rows, .inserted = part->staged_rows};
        keep(session, epoch, part);
        session->staged_rows[part->stream] = 0;
    }
    return true;
}

static bool nothing_commits(Session *handle, const char *namespace_, const char *pipeline, int limit, Arena *arena,
                            CommitList *list, Err *err)
{
    (void)err;
    const Nothing *session = nothing(handle);
    *list = (CommitList){.items = arena_array(arena, CommitRecord, session->kept_count)};
    for (int i = session->kept_count - 1; i >= 0 && list->count < limit; i--)
        if (is_of(&session->kept[i], namespace_, pipeline))
            list->items[list->count++] = record_copy(&session->kept[i].record, arena);
    return true;
}

static bool nothing_last_commits(Session *handle, const char *namespace_, const char *pipeline, Arena *arena,
                                 CommitList *list, Err *err)
{
    return nothing_commits(handle, namespace_, pipeline, INT32_MAX, arena, list, err);
}

static const ConfigKey KEYS[] = {{0}};

static const ConnectorOps OPS = {
    .open = nothing_open,
    .close = nothing_close,
    .discover = nothing_discover,
    .identity = nothing_identity,
    .checks = nothing_checks,
};

static const DestOps DESTINATION = {
    .inspect = nothing_inspect,
    .last_commits = nothing_last_commits,
    .commits = nothing_commits,
    .prepare = nothing_prepare,
    .stage = nothing_stage,
    .commit = nothing_commit,
    .abort = nothing_abort,
};

extern const Connector connector_nothing;
const Connector connector_nothing = {
    .name = "nothing",
    .summary = "measuring: a destination that counts rows and drops them",
    .test_only = true,
    .capabilities = {.commit_style = COMMIT_STAGE_AND_APPLY, .pipeline_scope = true},
    .keys = KEYS,
    .ops = &OPS,
    .destination = &DESTINATION,
};
