/* What resource files are read into, what is stored of them, and how they come back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fs.h"
#include "config/resource.h"

#include <sys/stat.h>
#include <unistd.h>

static const char HEAD[] = "apiVersion: openetl.io/v1alpha1\nkind: Pipeline\nmetadata: { name: p }\nspec:\n";
static const char ENDS[] = "  source: { ref: a, streams: \"*\" }\n  destination: { ref: b }\n";

static const char FULL[] =
    "apiVersion: openetl.io/v1alpha1\n"
    "kind: Connection\n"
    "metadata: { name: shop-db, labels: { team: shop } } # a comment\n"
    "spec:\n"
    "  connector: postgres\n"
    "  config: { url: \"${SHOP_DB_URL}\", port: 5432, ssl: true, version: 1.10, zero: 007 }\n"
    "---\n"
    "apiVersion: openetl.io/v1alpha1\n"
    "kind: Pipeline\n"
    "metadata: { name: shop-orders }\n"
    "spec:\n"
    "  schedule: { every: 1h }\n"
    "  source:\n"
    "    ref: shop-db\n"
    "    read: { parallel: 3, chunkRows: 1000, maxRowsPerSecond: 70 }\n"
    "    streams:\n"
    "      - name: orders\n"
    "        sync: incremental\n"
    "        cursor: updated_at\n"
    "        overlap: 10m\n"
    "        key: [id, region]\n"
    "        columns: { exclude: [password_hash], types: { total: \"decimal(38, 4)\", a: text } }\n"
    "        where: \"region = 'EU'\"\n"
    "        write: merge\n"
    "        as: orders_eu\n"
    "        require: effectively_once\n"
    "        collapse: false\n"
    "        read: { parallel: 2, chunkRows: 250000, maxRowsPerSecond: 10000 }\n"
    "      - name: \"audit.*_log\"\n"
    "  destination: { ref: warehouse, namespace: shop, write: overwrite }\n"
    "  delivery:\n"
    "    require: at_least_once\n"
    "    commit: { interval: 90s, maxBytes: 64MiB, scope: stream }\n"
    "    resumePointTimeout: 2m\n"
    "  job: { size: xl, pool: nightly, retries: 0 }\n"
    "  alerts: { webhook: \"${ALERT_URL}\", command: [notify, -v, -v], hung: 5m, late: 20m }\n";

typedef struct Fixture {
    Arena arena;
    ResourceSet set;
    Err err;
} Fixture;

static int setup(void **state)
{
    static Fixture fixture;
    fixture = (Fixture){0};
    arena_init(&fixture.arena);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    arena_release(&((Fixture *)*state)->arena);
    return 0;
}

static void parse(Fixture *f, const char *text)
{
    if (!resources_parse("f.yaml", text, strlen(text), &f->arena, &f->set, &f->err)) fail_msg("%s", f->err.message);
}

static const PipelineResource *pipeline_with(Fixture *f, const char *more)
{
    parse(f, arena_printf(&f->arena, "%s%s%s", HEAD, ENDS, more));
    return &f->set.items[0].pipeline;
}

static void a_connection(void **state)
{
    Fixture *f = *state;
    parse(f, FULL);
    assert_int_equal(f->set.count, 2);
    const Resource *r = &f->set.items[0];
    assert_int_equal(r->kind, RESOURCE_CONNECTION);
    assert_string_equal(r->name, "shop-db");
    assert_int_equal(r->place.line, 1);
    assert_string_equal(r->connection.connector, "postgres");
    static const char *const PAIRS[][2] = {
        {"port", "5432"}, {"ssl", "true"}, {"url", "${SHOP_DB_URL}"}, {"version", "1.10"}, {"zero", "007"}};
    assert_int_equal(r->connection.config_count, 5);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(r->connection.config[i].key, PAIRS[i][0]);
        assert_string_equal(r->connection.config[i].value, PAIRS[i][1]);
        assert_int_equal(r->connection.config[i].place.line, 6);
    }
    assert_int_equal(r->connection.config[2].place.column, 18);
}

static void a_stream(void **state)
{
    Fixture *f = *state;
    parse(f, FULL);
    const StreamResource *s = &f->set.items[1].pipeline.streams[0];
    assert_string_equal(s->name, "orders");
    assert_int_equal(s->place.line, 17);
    assert_int_equal(s->place.column, 9);
    assert_true(s->has_sync && s->sync == SYNC_INCREMENTAL);
    assert_string_equal(s->cursor, "updated_at");
    assert_string_equal(s->overlap, "10m");
    assert_int_equal(s->key_count, 2);
    assert_string_equal(s->key[0], "id");
    assert_string_equal(s->key[1], "region");
    assert_int_equal(s->exclude_count, 1);
    assert_string_equal(s->exclude[0], "password_hash");
    assert_int_equal(s->type_count, 2);
    assert_string_equal(s->type_names[0], "a");
    assert_string_equal(s->type_texts[0], "text");
    assert_string_equal(s->type_names[1], "total");
    assert_string_equal(s->type_texts[1], "decimal(38, 4)");
    assert_string_equal(s->where, "region = 'EU'");
    assert_true(s->has_write && s->write == WRITE_MERGE);
    assert_string_equal(s->as, "orders_eu");
    assert_true(s->has_require && s->require == EFFECTIVELY_ONCE);
    assert_true(s->has_collapse && !s->collapse);
    assert_int_equal(s->parallel, 2);
    assert_int_equal(s->chunk_rows, 250000);
    assert_int_equal(s->max_rows_per_second, 10000);
}

static void an_absent_setting_says_so(void **state)
{
    Fixture *f = *state;
    parse(f, FULL);
    assert_int_equal(f->set.items[1].pipeline.stream_count, 2);
    const StreamResource *s = &f->set.items[1].pipeline.streams[1];
    assert_string_equal(s->name, "audit.*_log");
    assert_false(s->has_sync || s->has_write || s->has_require || s->has_collapse);
    assert_int_equal(s->sync, SYNC_FULL_REFRESH);
    assert_null(s->cursor);
    assert_null(s->overlap);
    assert_null(s->key);
    assert_null(s->where);
    assert_null(s->as);
    assert_int_equal(s->parallel, 0);
    assert_int_equal(s->chunk_rows, 0);
    assert_int_equal(s->max_rows_per_second, 70); /* the source's limit holds for a stream without its own */
}

static void a_pipeline(void **state)
{
    Fixture *f = *state;
    parse(f, FULL);
    const PipelineResource *p = &f->set.items[1].pipeline;
    assert_int_equal(f->set.items[1].place.line, 8);
    assert_int_equal(p->schedule, SCHEDULE_EVERY);
    assert_int_equal(p->every_us, (int64_t)3600 * 1000000);
    assert_string_equal(p->source, "shop-db");
    assert_int_equal(p->source_place.line, 14);
    assert_int_equal(p->source_place.column, 10);
    assert_false(p->all_streams);
    assert_int_equal(p->parallel, 3);
    assert_int_equal(p->chunk_rows, 1000);
    assert_string_equal(p->destination, "warehouse");
    assert_string_equal(p->namespace_, "shop");
    assert_int_equal(p->write, WRITE_OVERWRITE);
    assert_int_equal(p->write_place.column, 58);
    assert_int_equal(p->require, AT_LEAST_ONCE);
    assert_int_equal(p->commit_interval_us, 90000000);
    assert_int_equal(p->commit_max_bytes, 64 << 20);
    assert_true(p->has_commit_scope && p->commit_scope == SCOPE_STREAM);
    assert_int_equal(p->resume_point_timeout_us, 120000000);
    assert_true(p->has_size && p->size == JOB_XL);
    assert_string_equal(p->pool, "nightly");
    assert_int_equal(p->retries, 0);
    assert_string_equal(p->alerts.webhook, "${ALERT_URL}");
    assert_int_equal(p->alerts.webhook_place.column, 22);
    assert_int_equal(p->alerts.command_count, 3);
    assert_string_equal(p->alerts.command[2], "-v");
    assert_int_equal(p->alerts.hung_us, 300000000);
    assert_int_equal(p->alerts.late_us, 1200000000);
}

static void defaults(void **state)
{
    Fixture *f = *state;
    const PipelineResource *p = pipeline_with(f, "");
    assert_int_equal(p->schedule, SCHEDULE_NONE);
    assert_true(p->all_streams);
    assert_int_equal(p->stream_count, 0);
    assert_null(p->namespace_);
    assert_int_equal(p->write, WRITE_APPEND);
    assert_int_equal(p->write_place.line, 6);
    assert_int_equal(p->require, EXACTLY_ONCE);
    assert_int_equal(p->commit_interval_us, 300000000);
    assert_int_equal(p->commit_max_bytes, 256000000);
    assert_false(p->has_commit_scope);
    assert_int_equal(p->commit_scope, SCOPE_PIPELINE);
    assert_int_equal(p->resume_point_timeout_us, 60000000);
    assert_false(p->has_size);
    assert_int_equal(p->size, JOB_S);
    assert_string_equal(p->pool, "default");
    assert_int_equal(p->retries, 3);
    assert_null(p->alerts.webhook);
    assert_int_equal(p->alerts.command_count, 0);
    assert_int_equal(p->alerts.hung_us, 900000000);
    assert_int_equal(p->alerts.late_us, 0);
}

static void schedules(void **state)
{
    Fixture *f = *state;
    const PipelineResource *p = pipeline_with(f, "  schedule: { cron: \"15 2 * * *\" }\n");
    assert_int_equal(p->schedule, SCHEDULE_CRON);
    assert_string_equal(p->cron, "15 2 * * *");
    p = pipeline_with(f, "  schedule: { continuous: true }\n");
    assert_int_equal(p->schedule, SCHEDULE_CONTINUOUS);
    assert_int_equal(p->commit_interval_us, 10000000);
    p = pipeline_with(f, "  schedule: { continuous: true }\n  delivery: { commit: { interval: 1s } }\n");
    assert_int_equal(p->commit_interval_us, 1000000);
}

static void an_integer_overlap(void **state)
{
    Fixture *f = *state;
    parse(f,
          arena_printf(&f->arena,
                       "%s  source: { ref: a, streams: [{ name: t, sync: incremental, cursor: id, overlap: 100 }] }\n"
                       "  destination: { ref: b }\n",
                       HEAD));
    assert_string_equal(f->set.items[0].pipeline.streams[0].overlap, "100");
}

/* The words are spelled out in the tables by the order of the enums. */
static void words_match_the_terms(void **state)
{
    Fixture *f = *state;
    for (int i = 0; i < WRITE_COUNT; i++) {
        parse(f,
              arena_printf(&f->arena, "%s  source: { ref: a, streams: \"*\" }\n  destination: { ref: b, write: %s }\n",
                           HEAD, write_name((WriteMode)i)));
        assert_int_equal(f->set.items[0].pipeline.write, i);
    }
    for (int i = 0; i < GUARANTEE_COUNT; i++)
        assert_int_equal(
            pipeline_with(f, arena_printf(&f->arena, "  delivery: { require: %s }\n", guarantee_name((Guarantee)i)))
                ->require,
            i);
    for (int i = 0; i <= SCOPE_STREAM; i++)
        assert_int_equal(pipeline_with(f, arena_printf(&f->arena, "  delivery: { commit: { scope: %s } }\n",
                                                       scope_name((CommitScope)i)))
                             ->commit_scope,
                         i);
    for (int i = 0; i <= JOB_XL; i++)
        assert_int_equal(
            pipeline_with(f, arena_printf(&f->arena, "  job: { size: %s }\n", job_size_name((JobSize)i)))->size, i);
    for (int i = 0; i <= SYNC_INCREMENTAL; i++) {
        const char *cursor = i == SYNC_INCREMENTAL ? ", cursor: c" : "";
        parse(f, arena_printf(&f->arena,
                              "%s  source: { ref: a, streams: [{ name: t, sync: %s%s }] }\n  destination: { ref: b }\n",
                              HEAD, sync_name((SyncMode)i), cursor));
        assert_int_equal(f->set.items[0].pipeline.streams[0].sync, i);
    }
}

static void job_sizes(void **state)
{
    (void)state;
    assert_string_equal(job_size_text(JOB_S), "1 vCPU, 2 GiB");
    assert_string_equal(job_size_text(JOB_XL), "8 vCPU, 16 GiB");
    assert_int_equal(job_size_cpus(JOB_M), 2);
    assert_int_equal(job_size_bytes(JOB_L), (int64_t)8 << 30);
}

static const char *canonical_text(Fixture *f, const Resource *resource)
{
    char *text = json_dumps(resource->canonical, JSON_SORT_KEYS | JSON_COMPACT);
    const char *copy = arena_strdup(&f->arena, text);
    free(text);
    return copy;
}

static void canonical_json(void **state)
{
    Fixture *f = *state;
    parse(f, FULL);
    assert_string_equal(
        canonical_text(f, &f->set.items[0]),
        "{\"apiVersion\":\"openetl.io/v1alpha1\",\"kind\":\"Connection\",\"metadata\":{\"labels\":{\"team\":"
        "\"shop\"},\"name\":\"shop-db\"},\"spec\":{\"config\":{\"port\":\"5432\",\"ssl\":\"true\",\"url\":"
        "\"${SHOP_DB_URL}\",\"version\":\"1.10\",\"zero\":\"007\"},\"connector\":\"postgres\"}}");
    assert_string_equal(
        canonical_text(f, pipeline_with(f, "  job: { retries: 5 }\n") ? &f->set.items[0] : NULL),
        "{\"apiVersion\":\"openetl.io/v1alpha1\",\"kind\":\"Pipeline\",\"metadata\":{\"name\":\"p\"},\"spec\":"
        "{\"destination\":{\"ref\":\"b\"},\"job\":{\"retries\":5},\"source\":{\"ref\":\"a\",\"streams\":"
        "\"*\"}}}");
}

static void versions(void **state)
{
    Fixture *f = *state;
    char first[13], second[13];
    pipeline_with(f, "  job: { retries: 5, size: s }\n");
    resource_version(&f->set.items[0], first);
    assert_int_equal(strlen(first), 12);
    assert_int_equal(strspn(first, "0123456789abcdef"), 12);
    pipeline_with(f, "  # order and comments do not count\n  job:\n    size: \"s\"\n    retries: 5\n");
    resource_version(&f->set.items[0], second);
    assert_string_equal(first, second);
    pipeline_with(f, "  job: { retries: 6, size: s }\n");
    resource_version(&f->set.items[0], second);
    assert_string_not_equal(first, second);
    pipeline_with(f, "");
    resource_version(&f->set.items[0], second);
    assert_string_equal(second, "6f9b41f2c4ac"); /* stored versions must not change with the program */
}

static void same_text(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        assert_ptr_equal(a, b);
    else
        assert_string_equal(a, b);
}

static void same_texts(const char **a, int a_count, const char **b, int b_count)
{
    assert_int_equal(a_count, b_count);
    for (int i = 0; i < a_count; i++)
        assert_string_equal(a[i], b[i]);
}

static void same_stream(const StreamResource *a, const StreamResource *b)
{
    same_text(a->name, b->name);
    same_text(a->cursor, b->cursor);
    same_text(a->overlap, b->overlap);
    same_text(a->where, b->where);
    same_text(a->as, b->as);
    same_texts(a->key, a->key_count, b->key, b->key_count);
    same_texts(a->exclude, a->exclude_count, b->exclude, b->exclude_count);
    same_texts(a->type_names, a->type_count, b->type_names, b->type_count);
    same_texts(a->type_texts, a->type_count, b->type_texts, b->type_count);
    assert_true(a->has_sync == b->has_sync && a->sync == b->sync);
    assert_true(a->has_write == b->has_write && a->write == b->write);
    assert_true(a->has_require == b->has_require && a->require == b->require);
    assert_true(a->has_collapse == b->has_collapse && a->collapse == b->collapse);
    assert_true(a->parallel == b->parallel && a->chunk_rows == b->chunk_rows);
    assert_int_equal(a->max_rows_per_second, b->max_rows_per_second);
    assert_string_equal(b->place.file, "stored");
}

static void same_pipeline(const PipelineResource *a, const PipelineResource *b)
{
    same_text(a->cron, b->cron);
    same_text(a->source, b->source);
    same_text(a->destination, b->destination);
    same_text(a->namespace_, b->namespace_);
    same_text(a->pool, b->pool);
    assert_true(a->schedule == b->schedule && a->every_us == b->every_us);
    assert_true(a->all_streams == b->all_streams && a->write == b->write && a->require == b->require);
    assert_int_equal(a->commit_interval_us, b->commit_interval_us);
    assert_int_equal(a->commit_max_bytes, b->commit_max_bytes);
    assert_true(a->commit_scope == b->commit_scope && a->has_commit_scope == b->has_commit_scope);
    assert_int_equal(a->resume_point_timeout_us, b->resume_point_timeout_us);
    assert_true(a->size == b->size && a->has_size == b->has_size && a->retries == b->retries);
    assert_true(a->parallel == b->parallel && a->chunk_rows == b->chunk_rows);
    assert_string_equal(b->source_place.file, "stored");
    assert_string_equal(b->write_place.file, "stored");
    same_text(a->alerts.webhook, b->alerts.webhook);
    same_texts(a->alerts.command, a->alerts.command_count, b->alerts.command, b->alerts.command_count);
    assert_true(a->alerts.hung_us == b->alerts.hung_us && a->alerts.late_us == b->alerts.late_us);
    assert_int_equal(a->stream_count, b->stream_count);
    for (int i = 0; i < a->stream_count; i++)
        same_stream(&a->streams[i], &b->streams[i]);
}

/* Through text, as the state store keeps it. */
static void back(Fixture *f, const Resource *resource, Resource *again)
{
    json_t *json = json_loads(canonical_text(f, resource), 0, NULL);
    assert_non_null(json);
    if (!resource_from_json(json, &f->arena, again, &f->err)) fail_msg("%s", f->err.message);
    json_decref(json); /* nothing of it may be needed later */
    assert_string_equal(canonical_text(f, resource), canonical_text(f, again));
    assert_int_equal(resource->kind, again->kind);
    assert_string_equal(resource->name, again->name);
    assert_string_equal(again->place.file, "stored");
    assert_int_equal(again->place.line, 0);
}

static void round_trip(void **state)
{
    Fixture *f = *state;
    Resource again;
    parse(f, FULL);
    back(f, &f->set.items[1], &again);
    same_pipeline(&f->set.items[1].pipeline, &again.pipeline);
    back(f, &f->set.items[0], &again);
    assert_string_equal(again.connection.connector, "postgres");
    assert_int_equal(again.connection.config_count, 5);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(again.connection.config[i].key, f->set.items[0].connection.config[i].key);
        assert_string_equal(again.connection.config[i].value, f->set.items[0].connection.config[i].value);
    }
    pipeline_with(f, "  schedule: { cron: \"0 0 * * mon\" }\n");
    back(f, &f->set.items[0], &again);
    same_pipeline(&f->set.items[0].pipeline, &again.pipeline);
}

static void stored_json_is_checked_too(void **state)
{
    Fixture *f = *state;
    static const char *const CASES[][2] = {
        {"{\"apiVersion\":\"openetl.io/"
         "v1alpha1\",\"kind\":\"Pipeline\",\"metadata\":{\"name\":\"p\"},\"spec\":{\"sorce\":{}}}",
         "stored: spec.sorce: unknown field; did you mean \"source\"?"},
        {"[]", "stored: expected a resource (apiVersion, kind, metadata, spec), found a list"},
        {"{\"kind\":\"a\\u0000b\"}", "stored: text may not hold a NUL character"},
        {"{\"kind\":1.5}", "stored: kind: expected Connection or Pipeline, found the number 1.5"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Resource resource;
        json_t *json = json_loads(CASES[i][0], JSON_ALLOW_NUL, NULL);
        assert_non_null(json);
        assert_false(resource_from_json(json, &f->arena, &resource, &f->err));
        assert_string_equal(f->err.message, CASES[i][1]);
        json_decref(json);
    }
}

static void text_forms(void **state)
{
    Fixture *f = *state;
    /* A byte order mark, carriage returns, document ends, empty documents, flow style: JSON is YAML too. */
    parse(f, "\xEF\xBB\xBF{\"apiVersion\": \"openetl.io/v1alpha1\",\r\n \"kind\": \"Connection\",\r\n"
             " \"metadata\": {\"name\": \"a\"}, \"spec\": {\"connector\": \"x\"}}\r\n...\r\n---\r\n---\r\n"
             "apiVersion: openetl.io/v1alpha1\r\nkind: Connection\r\nmetadata: { name: b }\r\nspec:\r\n"
             "  connector: x\r\n  config:\r\n    url: >-\r\n      one\r\n      two\r\n    empty: ''\r\n");
    assert_int_equal(f->set.count, 2);
    assert_int_equal(f->set.items[0].place.column, 1);
    assert_string_equal(f->set.items[1].connection.config[0].value, "");
    assert_string_equal(f->set.items[1].connection.config[1].value, "one two");
}

static void finds(void **state)
{
    Fixture *f = *state;
    parse(f, FULL);
    assert_ptr_equal(resource_find(&f->set, RESOURCE_PIPELINE, "shop-orders"), &f->set.items[1]);
    assert_ptr_equal(resource_find(&f->set, RESOURCE_CONNECTION, "shop-db"), &f->set.items[0]);
    assert_null(resource_find(&f->set, RESOURCE_PIPELINE, "shop-db"));
    assert_string_equal(resource_kind_name(RESOURCE_PIPELINE), "Pipeline");
    assert_string_equal(resource_kind_plural(RESOURCE_CONNECTION), "connections");
}

static const char *connection_text(Fixture *f, const char *name)
{
    return arena_printf(
        &f->arena,
        "apiVersion: openetl.io/v1alpha1\nkind: Connection\nmetadata: { name: %s }\nspec: { connector: x }\n", name);
}

static void write_file(Fixture *f, const char *dir, const char *name, const char *text)
{
    const char *path = arena_printf(&f->arena, "%s/%s", dir, name);
    if (!fs_write_file(path, text, strlen(text), 0600, &f->err)) fail_msg("%s", f->err.message);
}

static const char *temporary_dir(Fixture *f)
{
    char *dir = arena_strdup(&f->arena, "/tmp/openetl-resources-XXXXXX");
    assert_non_null(mkdtemp(dir));
    return dir;
}

static void remove_all(Fixture *f, const char *dir)
{
    char **names;
    int count;
    assert_true(fs_list(dir, &f->arena, &names, &count, &f->err));
    for (int i = 0; i < count; i++) {
        const char *path = arena_printf(&f->arena, "%s/%s", dir, names[i]);
        assert_int_equal(fs_is_dir(path) ? rmdir(path) : unlink(path), 0);
    }
    assert_int_equal(rmdir(dir), 0);
}

static void directories(void **state)
{
    Fixture *f = *state;
    const char *dir = temporary_dir(f);
    write_file(f, dir, "b.yaml", connection_text(f, "from-b"));
    write_file(f, dir, "a.yml", connection_text(f, "from-a"));
    write_file(f, dir, "c.yaml.bak", "not read");
    write_file(f, dir, ".hidden.yaml", "not read");
    assert_true(fs_make_dirs(arena_printf(&f->arena, "%s/below.yaml", dir), 0700, &f->err));
    const char *paths[] = {dir};
    if (!resources_read(paths, 1, &f->arena, &f->set, &f->err)) fail_msg("%s", f->err.message);
    assert_int_equal(f->set.count, 2);
    assert_string_equal(f->set.items[0].name, "from-a");
    assert_string_equal(f->set.items[0].place.file, arena_printf(&f->arena, "%s/a.yml", dir));
    assert_string_equal(f->set.items[1].name, "from-b");
    const char *twice[] = {dir, arena_printf(&f->arena, "%s/b.yaml", dir)};
    assert_false(resources_read(twice, 2, &f->arena, &f->set, &f->err));
    assert_string_equal(f->err.message,
                        arena_printf(&f->arena,
                                     "%s/b.yaml:1:1: Connection from-b is defined twice; it stands first at "
                                     "%s/b.yaml:1:1",
                                     dir, dir));
    remove_all(f, dir);
}

static void directories_without_files(void **state)
{
    Fixture *f = *state;
    const char *dir = temporary_dir(f);
    const char *paths[] = {dir};
    assert_false(resources_read(paths, 1, &f->arena, &f->set, &f->err));
    assert_string_equal(f->err.message,
                        arena_printf(&f->arena, "%s: there is no *.yaml or *.yml file in this directory", dir));
    remove_all(f, dir);
    assert_false(resources_read(paths, 1, &f->arena, &f->set, &f->err));
    assert_string_equal(f->err.message,
                        arena_printf(&f->arena, "%s: cannot be opened: No such file or directory", dir));
    assert_int_equal(f->err.code, ERR_IO);
}

static void standard_input(void **state)
{
    Fixture *f = *state;
    const char *dir = temporary_dir(f);
    write_file(f, dir, "in", "kind: x\n");
    assert_non_null(freopen(arena_printf(&f->arena, "%s/in", dir), "r", stdin));
    const char *paths[] = {"-"};
    assert_false(resources_read(paths, 1, &f->arena, &f->set, &f->err));
    assert_string_equal(f->err.message, "<stdin>:1:7: kind: expected Connection or Pipeline, found the text \"x\"");
    remove_all(f, dir);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_connection),
        TEST(a_stream),
        TEST(an_absent_setting_says_so),
        TEST(a_pipeline),
        TEST(defaults),
        TEST(schedules),
        TEST(an_integer_overlap),
        TEST(words_match_the_terms),
        TEST(job_sizes),
        TEST(canonical_json),
        TEST(versions),
        TEST(round_trip),
        TEST(stored_json_is_checked_too),
        TEST(text_forms),
        TEST(finds),
        TEST(directories),
        TEST(directories_without_files),
        TEST(standard_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
