/* The state store: creation and damage of files; workspaces, resources and catalogs on both engines. */
#include "state_fixture.h"

/* ---- opening ---- */

static void test_modes(void **slot)
{
    Fixture *fix = *slot;
    struct stat info;
    mode_t old = umask(0);
    fix->state = open_store(fix, "default", false);
    umask(old);
    assert_int_equal(stat(fix->path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    char directory[96];
    snprintf(directory, sizeof directory, "%s/a", fix->directory);
    assert_int_equal(stat(directory, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    assert_string_equal(sql(fix, "PRAGMA journal_mode"), "wal");
    assert_string_equal(sql(fix, "PRAGMA user_version"), "6");
    assert_string_equal(sql(fix, "PRAGMA application_id"), "1868919857");
    char journal[272];
    snprintf(journal, sizeof journal, "%s-wal", fix->path);
    if (stat(journal, &info) == 0) assert_int_equal(info.st_mode & 0777, 0600);
}

static void test_modes_strict_umask(void **slot)
{
    Fixture *fix = *slot;
    struct stat info;
    mode_t old = umask(0277);
    fix->state = open_store(fix, "default", false);
    umask(old);
    assert_int_equal(stat(fix->path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
}

static void test_open_mode_is_closed(void **slot)
{
    Fixture *fix = *slot;
    struct stat info;
    state_close(open_store(fix, "default", false));
    assert_int_equal(chmod(fix->path, 0644), 0);
    state_close(open_store(fix, "default", false));
    assert_int_equal(stat(fix->path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
}

static void test_read_only_missing(void **slot)
{
    Fixture *fix = *slot;
    struct stat info;
    fix->state = open_store(fix, "default", true);
    ResourceSet set;
    Catalog catalog;
    RunList runs;
    CommitList commits;
    ResetMark *marks;
    ChunkRecord *chunks;
    bool found = true;
    int count = 7;
    int64_t at;
    must(state_resources(fix->state, &fix->arena, &set, &fix->err), &fix->err);
    assert_int_equal(set.count, 0);
    must(state_catalog_get(fix->state, "c", &fix->arena, &found, &catalog, &at, &fix->err), &fix->err);
    assert_false(found);
    must(state_runs(fix->state, NULL, 0, 0, 0, &fix->arena, &runs, &fix->err), &fix->err);
    assert_int_equal(runs.count, 0);
    must(state_commits(fix->state, "p", 0, &fix->arena, &commits, &fix->err), &fix->err);
    must(state_last_commits(fix->state, "p", &fix->arena, &commits, &fix->err), &fix->err);
    assert_int_equal(commits.count, 0);
    must(state_resets(fix->state, "p", &fix->arena, &marks, &count, &fix->err), &fix->err);
    assert_int_equal(count, 0);
    must(state_chunks(fix->state, "r", &fix->arena, &chunks, &count, &fix->err), &fix->err);
    assert_int_equal(count, 0);
    char made[128];
    snprintf(made, sizeof made, "%s/a", fix->directory);
    assert_int_equal(stat(made, &info), -1); /* nothing was made */
    snprintf(made, sizeof made, "SELECT nspname FROM pg_namespace WHERE nspname = '%s'", fix->schema);
    if (fix->server != NULL) assert_null(sql(fix, made));
}

static void test_places_that_cannot_be(void **slot)
{
    Fixture *fix = *slot;
    char file[96];
    snprintf(file, sizeof file, "%s/file", fix->directory);
    write_file(file, "x", 1);
    snprintf(fix->path, sizeof fix->path, "%s/file/state.db", fix->directory);
    expect_refused(fix, false, ERR_STATE_OPEN, "Not a directory");
    expect_refused(fix, true, ERR_STATE_OPEN, "Not a directory");
    snprintf(fix->path, sizeof fix->path, "%s", fix->directory);
    expect_refused(fix, false, ERR_STATE_OPEN, "is a directory");
    snprintf(fix->path, sizeof fix->path, "/proc/openetl/state.db");
    expect_refused(fix, false, ERR_STATE_OPEN, "/proc/openetl");
    snprintf(fix->path, sizeof fix->path, "/proc/state.db");
    expect_refused(fix, false, ERR_STATE_OPEN, "/proc/state.db");
    snprintf(fix->path, sizeof fix->path, "/dev/full/state.db");
    expect_refused(fix, false, ERR_STATE_OPEN, "Not a directory");
}

/* A limit on the size of files fails writes as a full disk does: the store must say why, leave nothing half made, and
 * be made by the next process. */
static void test_full_disk(void **slot)
{
    Fixture *fix = *slot;
    pid_t child = fork();
    if (child == 0) {
        State *state;
        Err err;
        struct rlimit limit = {2048, 2048};
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(9);
        if (state_open(fix->path, "default", false, &state, &err)) _exit(8);
        _exit(err.code == ERR_STATE_OPEN && err.fix[0] != '\0' ? 0 : 7);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(access(fix->path, F_OK), -1);
    fix->state = open_store(fix, "default", false);
}

static void test_damage(void **slot)
{
    Fixture *fix = *slot;
    char garbage[8192];
    memset(garbage, 'g', sizeof garbage);
    state_close(open_store(fix, "default", false));
    char *whole;
    size_t length;
    FILE *file = fopen(fix->path, "rb");
    whole = mem_alloc(1 << 20);
    length = fread(whole, 1, 1 << 20, file);
    fclose(file);
    assert_true(length > 8192);

    write_file(fix->path, garbage, sizeof garbage);
    expect_refused(fix, false, ERR_STATE_CORRUPT, fix->path);
    expect_refused(fix, true, ERR_STATE_CORRUPT, fix->path);
    assert_non_null(strstr(fix->err.fix, "move it"));
    assert_non_null(strstr(fix->err.fix, "_openetl_commits"));
    write_file(fix->path, garbage, 5);
    expect_refused(fix, false, ERR_STATE_CORRUPT, fix->path);
    write_file(fix->path, "", 0);
    expect_refused(fix, false, ERR_STATE_CORRUPT, "it is empty");
    write_file(fix->path, whole, 50);
    expect_refused(fix, false, ERR_STATE_CORRUPT, fix->path);
    write_file(fix->path, whole, 4096);
    expect_refused(fix, false, ERR_STATE_CORRUPT, fix->path);
    write_file(fix->path, whole, length - 4096);
    expect_refused(fix, false, ERR_STATE_CORRUPT, fix->path);
    expect_refused(fix, true, ERR_STATE_CORRUPT, fix->path);
    memset(whole + 100, 0xff, 64); /* the schema's own page */
    write_file(fix->path, whole, length);
    expect_refused(fix, false, ERR_STATE_CORRUPT, fix->path);
    free(whole);
}

static void test_damage_found_later(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    CommitRecord record = {.stream = "s", .epoch = 1, .run_id = "r", .guarantee = EXACTLY_ONCE};
    must(state_commits_put(fix->state, "p", &record, 1, &fix->err), &fix->err);
    sql(fix, "UPDATE commits SET guarantee = 'twice'");
    CommitList list;
    assert_false(state_commits(fix->state, "p", 0, &fix->arena, &list, &fix->err));
    assert_int_equal(fix->err.code, ERR_STATE_CORRUPT);
    assert_non_null(strstr(fix->err.message, "twice"));
}

static void test_foreign_and_newer(void **slot)
{
    Fixture *fix = *slot;
    state_close(open_store(fix, "default", false));
    sql(fix, "PRAGMA user_version = 99");
    expect_refused(fix, false, ERR_STATE_OPEN, "schema version 99");
    expect_refused(fix, true, ERR_STATE_OPEN, "schema version 99");
    sql(fix, "PRAGMA application_id = 5");
    expect_refused(fix, false, ERR_STATE_OPEN, "not a state store");
}

static void test_journal_without_file(void **slot)
{
    Fixture *fix = *slot;
    char journal[272];
    state_close(open_store(fix, "default", false));
    snprintf(journal, sizeof journal, "%s-wal", fix->path);
    write_file(journal, "left over", 9);
    assert_int_equal(unlink(fix->path), 0);
    expect_refused(fix, false, ERR_STATE_OPEN, "journal");
    assert_int_equal(access(journal, F_OK), 0);
    assert_int_equal(unlink(journal), 0);
    fix->state = open_store(fix, "default", false);
}

/* A user who may read the store but not write beside it. */
static void test_read_only_place(void **slot)
{
    Fixture *fix = *slot;
    snprintf(fix->path, sizeof fix->path, "%s/state.db", fix->directory);
    State *state = open_store(fix, "default", false);
    RunRecord run = {.run_id = "01C", .attempt = 1, .pipeline = "p", .kind = "sync", .trigger = "manual"};
    must(state_run_start(state, &run, &fix->err), &fix->err);
    state_close(state);
    assert_int_equal(chmod(fix->path, 0644), 0);
    assert_int_equal(chmod(fix->directory, 0555), 0);
    if (geteuid() == 0) assert_int_equal(chown(fix->directory, 65534, 65534), 0);
    pid_t child = fork();
    if (child == 0) {
        RunList runs;
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(9);
        if (access(fix->directory, W_OK) == 0) _exit(8);
        if (!state_open(fix->path, "default", true, &state, &fix->err)) _exit(7);
        if (!state_runs(state, NULL, 0, 0, 0, &fix->arena, &runs, &fix->err) || runs.count != 1) _exit(6);
        state_close(state);
        if (state_open(fix->path, "default", false, &state, &fix->err)) _exit(5);
        if (fix->err.code != ERR_STATE_OPEN || fix->err.fix[0] == '\0') _exit(4);
        snprintf(fix->path, sizeof fix->path, "%s/other.db", fix->directory);
        if (state_open(fix->path, "default", false, &state, &fix->err)) _exit(3);
        _exit(fix->err.code == ERR_STATE_OPEN && strstr(fix->err.message, "denied") != NULL ? 0 : 2);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(chmod(fix->directory, 0755), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_odd_paths(void **slot)
{
    Fixture *fix = *slot;
    snprintf(fix->path, sizeof fix->path, "%s/a ?b#c%%20&mode=ro/st'ate.db", fix->directory);
    state_close(open_store(fix, "default", false));
    assert_int_equal(access(fix->path, F_OK), 0);
    fix->state = open_store(fix, "default", true);
    RunList runs;
    must(state_runs(fix->state, NULL, 0, 0, 0, &fix->arena, &runs, &fix->err), &fix->err);
}

/* ---- workspaces, resources, catalogs ---- */

static void test_workspaces(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "one", false);
    State *two = open_store(fix, "two", false);
    CommitRecord record = commit_of("s", 1, 1);
    RunRecord run = run_of("01C", 1, "p");
    ChunkRecord chunk = {.run_id = "01C", .attempt = 1, .pipeline = "p", .stream = "s", .read_at_us = 1};
    Lease lease;
    must(state_commits_put(fix->state, "p", &record, 1, &fix->err), &fix->err);
    must(state_run_start(fix->state, &run, &fix->err), &fix->err);
    must(state_run_start(two, &run, &fix->err), &fix->err);
    must(state_manifest_put(fix->state, &chunk, 1, NULL, 0, &fix->err), &fix->err);
    must(state_reset(fix->state, "p", "s", &fix->err), &fix->err);
    must(state_lease_take(fix->state, "p", "a", 60000000, &fix->arena, &lease, NULL, &fix->err), &fix->err);
    must(state_lease_take(two, "p", "b", 60000000, &fix->arena, &lease, NULL, &fix->err), &fix->err);
    CommitList commits;
    ChunkRecord *chunks;
    ResetMark *marks;
    RunList runs;
    int count;
    must(state_commits(two, "p", 0, &fix->arena, &commits, &fix->err), &fix->err);
    assert_int_equal(commits.count, 0);
    must(state_last_commits(two, "p", &fix->arena, &commits, &fix->err), &fix->err);
    assert_int_equal(commits.count, 0);
    must(state_runs(two, NULL, 0, 0, 0, &fix->arena, &runs, &fix->err), &fix->err);
    assert_int_equal(runs.count, 1);
    must(state_chunks(two, "01C", &fix->arena, &chunks, &count, &fix->err), &fix->err);
    assert_int_equal(count, 0);
    must(state_resets(two, "p", &fix->arena, &marks, &count, &fix->err), &fix->err);
    assert_int_equal(count, 0);
    state_close(two);
}

static const char YAML[] = "apiVersion: openetl.io/v1alpha1\n"
                           "kind: Connection\n"
                           "metadata: { name: shop-db }\n"
                           "spec:\n"
                           "  connector: postgres\n"
                           "  config: { url: \"${SHOP_DB_URL}\" }\n"
                           "---\n"
                           "apiVersion: openetl.io/v1alpha1\n"
                           "kind: Pipeline\n"
                           "metadata: { name: shop-orders }\n"
                           "spec:\n"
                           "  source:\n"
                           "    ref: shop-db\n"
                           "    streams:\n"
                           "      - { name: orders, sync: incremental, cursor: updated_at }\n"
                           "  destination: { ref: shop-db, namespace: copy, write: merge }\n"
                           "  delivery: { require: effectively_once }\n";

static void test_resources(void **slot)
{
    Fixture *fix = *slot;
    ResourceSet set, stored;
    char before[13], after[13];
    setenv("SHOP_DB_URL", "postgresql://u:topsecret@h/d", 1);
    fix->state = open_store(fix, "default", false);
    must(resources_parse("shop.yaml", YAML, strlen(YAML), &fix->arena, &set, &fix->err), &fix->err);
    must(state_apply(fix->state, &set, &fix->err), &fix->err);
    must(state_resources(fix->state, &fix->arena, &stored, &fix->err), &fix->err);
    assert_int_equal(stored.count, 2);
    const Resource *pipeline = resource_find(&stored, RESOURCE_PIPELINE, "shop-orders");
    assert_non_null(pipeline);
    assert_int_equal(pipeline->pipeline.streams[0].sync, SYNC_INCREMENTAL);
    resource_version(resource_find(&set, RESOURCE_PIPELINE, "shop-orders"), before);
    resource_version(pipeline, after);
    assert_string_equal(before, after);
    assert_string_equal(sql(fix, "SELECT version FROM resources WHERE kind = 'Pipeline'"), before);
    const char *definition = sql(fix, "SELECT definition FROM resources WHERE kind = 'Connection'");
    assert_non_null(strstr(definition, "${SHOP_DB_URL}"));
    assert_null(strstr(definition, "topsecret"));
    /* Applied again unchanged, it keeps its time. */
    const char *at = sql(fix, "SELECT applied_at FROM resources WHERE kind = 'Pipeline'");
    must(state_apply(fix->state, &set, &fix->err), &fix->err);
    assert_string_equal(sql(fix, "SELECT applied_at FROM resources WHERE kind = 'Pipeline'"), at);
    must(state_reset(fix->state, "shop-orders", NULL, &fix->err), &fix->err);
    assert_string_equal(sql(fix, "SELECT stream FROM resets"), "orders");
    sql(fix, "UPDATE resources SET definition = '{' WHERE kind = 'Connection'");
    assert_false(state_resources(fix->state, &fix->arena, &stored, &fix->err));
    assert_int_equal(fix->err.code, ERR_STATE_CORRUPT);
    State *other = open_store(fix, "other", false);
    must(state_resources(other, &fix->arena, &stored, &fix->err), &fix->err);
    assert_int_equal(stored.count, 0);
    state_close(other);
}

static void test_catalogs(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    CatalogColumn columns[] = {{.name = "id", .type = {.id = TYPE_INT64}, .native = "INTEGER"}};
    const char *key[] = {"id"};
    CatalogTable tables[] = {
        {.name = "a", .columns = columns, .column_count = 1, .key = key, .key_count = 1, .estimated_rows = -1},
        {.name = "b", .columns = columns, .column_count = 1, .estimated_rows = 5},
    };
    Catalog catalog = {.tables = tables, .count = 2}, read;
    bool found = true;
    int64_t at;
    must(state_catalog_get(fix->state, "c", &fix->arena, &found, &read, &at, &fix->err), &fix->err);
    assert_false(found);
    must(state_catalog_put(fix->state, "c", &catalog, true, &fix->err), &fix->err);
    must(state_catalog_get(fix->state, "c", &fix->arena, &found, &read, &at, &fix->err), &fix->err);
    assert_true(found);
    assert_int_equal(read.count, 2);
    assert_true(llabs(at - clock_wall_us()) < 10000000);
    Buf difference;
    buf_init(&difference, 1 << 20);
    assert_int_equal(catalog_diff(&catalog, &read, &difference), 0);
    columns[0].type.id = TYPE_INT32; /* one table again: the other stays */
    Catalog part = {.tables = tables + 1, .count = 1};
    must(state_catalog_put(fix->state, "c", &part, false, &fix->err), &fix->err);
    must(state_catalog_get(fix->state, "c", &fix->arena, &found, &read, &at, &fix->err), &fix->err);
    assert_int_equal(read.count, 2);
    assert_int_equal(read.tables[0].columns[0].type.id, TYPE_INT64);
    assert_int_equal(read.tables[1].columns[0].type.id, TYPE_INT32);
    must(state_catalog_put(fix->state, "c", &part, true, &fix->err), &fix->err);
    must(state_catalog_get(fix->state, "c", &fix->arena, &found, &read, &at, &fix->err), &fix->err);
    assert_int_equal(read.count, 1);
    Catalog none = {0};
    must(state_catalog_put(fix->state, "c", &none, true, &fix->err), &fix->err);
    must(state_catalog_get(fix->state, "c", &fix->arena, &found, &read, &at, &fix->err), &fix->err);
    assert_true(found); /* read, and empty */
    assert_int_equal(read.count, 0);
    buf_release(&difference);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest files[] = {
        TEST(test_modes),
        TEST(test_modes_strict_umask),
        TEST(test_open_mode_is_closed),
        TEST(test_places_that_cannot_be),
        TEST(test_full_disk),
        TEST(test_damage),
        TEST(test_foreign_and_newer),
        TEST(test_journal_without_file),
        TEST(test_read_only_place),
        TEST(test_odd_paths),
    };
    const struct CMUnitTest tests[] = {
        TEST(test_read_only_missing), TEST(test_damage_found_later), TEST(test_workspaces),
        TEST(test_resources),         TEST(test_catalogs),
    };
    return run_on_file(files) + RUN_ON_BOTH(tests);
}
