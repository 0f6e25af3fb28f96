#include "connectors/fake/fake.h"

#include "base/fs.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Absolute also where the directory is not there yet: what is known of it must not change when the first run makes it.
 */
static const char *absolute_path(const char *dir, Arena *arena)
{
    size_t length = strlen(dir);
    while (length > 1 && dir[length - 1] == '/')
        length--;
    const char *path = arena_strndup(arena, dir, length), *above = fs_dir_of(path, arena);
    char *real = realpath(path, NULL);
    if (real == NULL && strcmp(above, path) != 0) {
        const char *slash = strrchr(path, '/');
        return arena_printf(arena, "%s/%s", absolute_path(above, arena), slash == NULL ? path : slash + 1);
    }
    path = real == NULL ? path : arena_strdup(arena, real);
    free(real);
    return path;
}

static bool open_directory(FakeSession *session, const char *dir, Err *err)
{
    if (!session->read_only && !fs_make_dirs(dir, 0755, err)) {
        err->code = ERR_DEST_CONNECT;
        return false;
    }
    session->dir = absolute_path(dir, &session->arena);
    return true;
}

static bool need(const OpenSpec *spec, const char *key, const char **value, Err *err)
{
    *value = config_get(spec->config, key);
    if (*value != NULL) return true;
    err_set(err, ERR_RESOURCE_INVALID, "connection %s has no config.%s", spec->config->connection, key);
    err_fix(err, "set spec.config.%s of the connection", key);
    return false;
}

static void fake_close(Session *handle)
{
    FakeSession *session = fake_session(handle);
    if (session == NULL) return;
    if (session->role == ROLE_DESTINATION) {
        FAKE_DESTINATION.abort(handle);
        journal_close(&session->journal);
    }
    arena_release(&session->arena);
    free(session);
}

static bool open_session(const OpenSpec *spec, bool acknowledges, Session **handle, Err *err)
{
    const char *place;
    FakeSession *session = mem_zero(sizeof *session);
    arena_init(&session->arena);
    journal_init(&session->journal);
    session->role = spec->role;
    session->read_only = spec->read_only;
    session->acknowledges = acknowledges;
    bool ok;
    if (spec->role == ROLE_SOURCE)
        ok = need(spec, "script", &place, err) && fake_script_read(place, &session->arena, &session->script, err);
    else
        ok = need(spec, "dir", &place, err) && open_directory(session, place, err);
    if (!ok) {
        fake_close((Session *)session);
        return false;
    }
    *handle = (Session *)session;
    return true;
}

static bool fake_open(const OpenSpec *spec, Session **session, Err *err)
{
    return open_session(spec, false, session, err);
}

static bool fake_open_acknowledging(const OpenSpec *spec, Session **session, Err *err)
{
    return open_session(spec, true, session, err);
}

/* ---- what it is -------------------------------------------------------------------------------------------------- */

static bool is_wanted(const CatalogTable *table, const char *const *only, int only_count, Arena *arena)
{
    const char *name = table_stream_name(table, arena);
    for (int i = 0; i < only_count; i++)
        if (strcmp(only[i], name) == 0) return true;
    return only_count == 0;
}

static CatalogTable table_copy(const CatalogTable *table, Arena *arena)
{
    CatalogTable copy = *table;
    copy.schema = table->schema == NULL ? NULL : arena_strdup(arena, table->schema);
    copy.name = arena_strdup(arena, table->name);
    copy.columns = arena_array(arena, CatalogColumn, table->column_count);
    copy.key = arena_array(arena, const char *, table->key_count);
    for (int i = 0; i < table->column_count; i++) {
        copy.columns[i] = table->columns[i];
        copy.columns[i].name = arena_strdup(arena, table->columns[i].name);
        copy.columns[i].native = arena_strdup(arena, table->columns[i].native);
        copy.columns[i].type = type_copy(&table->columns[i].type, arena);
        if (table->columns[i].note != NULL) copy.columns[i].note = arena_strdup(arena, table->columns[i].note);
    }
    for (int i = 0; i < table->key_count; i++)
        copy.key[i] = arena_strdup(arena, table->key[i]);
    return copy;
}

static bool fake_discover(Session *handle, const char *const *only, int only_count, Arena *arena, Catalog *catalog,
                          Err *err)
{
    (void)err;
    const Catalog *own = &fake_session(handle)->script.catalog;
    *catalog = (Catalog){.tables = arena_array(arena, CatalogTable, own->count)};
    for (int i = 0; i < own->count; i++)
        if (is_wanted(&own->tables[i], only, only_count, arena))
            catalog->tables[catalog->count++] = table_copy(&own->tables[i], arena);
    return true;
}

static bool fake_identity(Session *handle, Arena *arena, const char **identity, Err *err)
{
    (void)err;
    const FakeSession *session = fake_session(handle);
    *identity = arena_printf(arena, "fake:%s", session->role == ROLE_SOURCE ? session->script.path : session->dir);
    return true;
}

static bool fake_checks(Session *handle, SessionRole role, CheckList *list, Err *err)
{
    (void)err;
    const FakeSession *session = fake_session(handle);
    if (role == ROLE_SOURCE) {
        check_add(list, true, "connect", arena_printf(list->arena, "script %s", session->script.path), NULL);
        return true;
    }
    bool there = fs_is_dir(session->dir);
    bool writable = !there || access(session->dir, W_OK) == 0;
    check_add(list, writable, "connect",
              arena_printf(list->arena, "directory %s%s", session->dir, there ? "" : ", made by the first run"),
              "let the user write to the directory");
    return true;
}

static const ConfigKey KEYS[] = {
    {.name = "script", .help = "source: the JSON file that says what the tables hold and how they behave"},
    {.name = "dir", .help = "destination: the directory of the journals"},
    {0},
};

static const ConnectorOps OPS = {
    .open = fake_open,
    .close = fake_close,
    .discover = fake_discover,
    .identity = fake_identity,
    .checks = fake_checks,
};

static const ConnectorOps ACKNOWLEDGING_OPS = {
    .open = fake_open_acknowledging,
    .close = fake_close,
    .discover = fake_discover,
    .identity = fake_identity,
    .checks = fake_checks,
};

extern const Connector connector_fake;
extern const Connector connector_fake_stream;
extern const Connector connector_fake_ack;

const Connector connector_fake = {
    .name = "fake",
    .summary = "tests: a scripted source; a destination that stages and applies, and cannot dedupe",
    .test_only = true,
    .capabilities =
        {
            .syncs = {[SYNC_FULL_REFRESH] = true, [SYNC_INCREMENTAL] = true},
            .replay = {[SYNC_FULL_REFRESH] = REPLAY_EXACT, [SYNC_INCREMENTAL] = REPLAY_SUPERSET},
            .commit_style = COMMIT_STAGE_AND_APPLY,
            .pipeline_scope = true,
            .lists = true,
        },
    .keys = KEYS,
    .ops = &OPS,
    .source = &FAKE_SOURCE,
    .destination = &FAKE_DESTINATION,
};

const Connector connector_fake_stream = {
    .name = "fake_stream",
    .summary = "tests: a destination that writes into an open transaction",
    .test_only = true,
    .capabilities = {.commit_style = COMMIT_TRANSACTIONAL_STREAM, .pipeline_scope = true, .lists = true},
    .keys = KEYS,
    .ops = &OPS,
    .destination = &FAKE_DESTINATION,
};

const Connector connector_fake_ack = {
    .name = "fake_ack",
    .summary = "tests: a destination that delivers rows as they come and acknowledges them",
    .test_only = true,
    .capabilities = {.commit_style = COMMIT_DELIVER_AND_ACKNOWLEDGE, .lists = true},
    .keys = KEYS,
    .ops = &ACKNOWLEDGING_OPS,
    .destination = &FAKE_DESTINATION,
};
