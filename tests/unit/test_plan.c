/* The plan as a whole: the documents' plans word for word, changes, streams by name and pattern, drift, positions. */
#include "plan_world.h"

static const char *warnings_of(const PipelinePlan *plan)
{
    return lines_of(plan->warnings, plan->warning_count);
}
static const char *notes_of(const PipelinePlan *plan)
{
    return lines_of(plan->notes, plan->note_count);
}

/* The document, with the version of this program's own hash in place of VERSION. */
static void expect_plan(const char *pipeline, const char *expected)
{
    Plan *plan = plan_of(pipeline);
    char version[13];
    resource_version(plan->pipelines[0]->resource, version);
    assert_int_equal(strlen(version), 12);
    Buf text;
    buf_init(&text, BUF_SQL_MAX);
    for (const char *at = expected;;) {
        const char *next = strstr(at, "VERSION");
        if (next == NULL) {
            buf_puts(&text, at);
            break;
        }
        buf_append(&text, at, (size_t)(next - at));
        buf_puts(&text, version);
        at = next + strlen("VERSION");
    }
    assert_string_equal(printed(plan), buf_text(&text));
    buf_release(&text);
}

#define HEAD                                                                                                           \
    "apiVersion: openetl.io/v1alpha1\n"                                                                                \
    "kind: Pipeline\n"                                                                                                 \
    "metadata:\n"                                                                                                      \
    "  name: shop-orders\n"                                                                                            \
    "spec:\n"                                                                                                          \
    "  schedule: { every: 1h }\n"                                                                                      \
    "  source:\n"                                                                                                      \
    "    ref: shop-db\n"                                                                                               \
    "    streams:\n"                                                                                                   \
    "      - name: orders\n"                                                                                           \
    "        sync: incremental\n"                                                                                      \
    "        cursor: updated_at\n"
#define TITLE                                                                                                          \
    "would be created workspaces/default/pipelines/shop-orders (version VERSION)\n\n"                                  \
    "workspaces/default/pipelines/shop-orders (version VERSION)\n"                                                     \
    "  job size: s (1 vCPU, 2 GiB), the default, in pool default\n"                                                    \
    "  streams:\n"

static void test_seed_merge(void **state)
{
    (void)state;
    expect_plan(HEAD "  destination: { ref: warehouse, namespace: shop, write: merge }\n",
                TITLE "    orders  merge  effectively_once  superset replay, written with merge\n"
                      "  problems:\n"
                      "    delivery.require: stream \"orders\" gets effectively_once (superset replay, written with "
                      "merge), below exactly_once\n");
}

static void test_seed_merge_accepted(void **state)
{
    (void)state;
    expect_plan(HEAD "  destination: { ref: warehouse, namespace: shop, write: merge }\n"
                     "  delivery:\n    require: effectively_once\n",
                TITLE "    orders  merge  effectively_once  superset replay, written with merge\n");
}

static void test_seed_append(void **state)
{
    (void)state;
    expect_plan(HEAD "  destination: { ref: warehouse, namespace: shop }\n",
                TITLE "    orders  append  exactly_once  superset replay, deduped at apply\n");
}

static void test_seed_page_views(void **state)
{
    (void)state;
    expect_plan(
        HEAD "      - name: page_views\n        sync: incremental\n        cursor: viewed_at\n"
             "        collapse: false\n        require: at_least_once\n"
             "  destination: { ref: warehouse, namespace: shop }\n",
        TITLE
        "    orders      append  exactly_once   superset replay, deduped at apply\n"
        "    page_views  append  at_least_once  superset replay, no primary key, and not collapsed\n"
        "  warnings:\n"
        "    page_views: it has no primary key and doesn't collapse, so every row lands: both copies of a row the "
        "source "
        "holds twice, and repeats, such as the lookback window each sync reads again. Readers can dedupe on "
        "_openetl_id. "
        "collapse: true collapses rows with the same content within each epoch, and with require: exactly_once against "
        "the target too, so repeats never land.\n");
}

static void test_job(void **state)
{
    (void)state;
    Plan *plan = plan_of(pipeline_text("[{ name: orders, sync: incremental, cursor: updated_at }]", "",
                                       "  job: { size: m, pool: night }\n"));
    assert_non_null(strstr(printed(plan), "\n  job size: m (2 vCPU, 4 GiB), in pool night\n"));
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

static void test_changes(void **state)
{
    (void)state;
    const char *connections = "apiVersion: openetl.io/v1alpha1\nkind: Connection\nmetadata: { name: shop-db }\n"
                              "spec: { connector: postgres, config: { url: \"postgresql://shop\" } }\n---\n"
                              "apiVersion: openetl.io/v1alpha1\nkind: Connection\nmetadata: { name: warehouse }\n"
                              "spec: { connector: house, config: { url: \"house://elsewhere\" } }\n---\n";
    const char *pipeline = pipeline_text("[{ name: orders, sync: incremental, cursor: updated_at }]", "", "");
    PlanInput input = {.workspace = "lab",
                       .given = parse(arena_printf(&world.arena, "%s%s", connections, pipeline)),
                       .stored = shop_connections()};
    Plan plan;
    Err err;
    assert_true(plan_make(&input, &world.arena, &plan, &err));
    assert_int_equal(plan.change_count, 3);
    assert_int_equal(plan.changes[0].change, CHANGE_UNCHANGED);
    assert_int_equal(plan.changes[1].change, CHANGE_CHANGED);
    assert_int_equal(plan.changes[2].change, CHANGE_CREATED);
    const char *expected = arena_printf(&world.arena,
                                        "unchanged workspaces/lab/connections/shop-db (version %s)\n"
                                        "would be changed workspaces/lab/connections/warehouse (version %s)\n"
                                        "would be created workspaces/lab/pipelines/shop-orders (version %s)\n",
                                        plan.changes[0].version, plan.changes[1].version, plan.changes[2].version);
    assert_int_equal(strncmp(printed(&plan), expected, strlen(expected)), 0);
    assert_false(plan_has_problems(&plan));
}

static void test_json(void **state)
{
    (void)state;
    Plan *plan = plan_of(HEAD "  destination: { ref: warehouse, namespace: shop, write: merge }\n");
    assert_true(plan_has_problems(plan));
    json_t *json = plan_to_json(plan);
    const char *workspace, *change, *name, *write, *guarantee, *reason, *problem, *size;
    json_t *has_problems;
    assert_int_equal(json_unpack(json, "{s:s, s:o, s:[{s:s}], s:[{s:{s:s}, s:[{s:s, s:s, s:s, s:s}], s:[s]}]}",
                                 "workspace", &workspace, "problems", &has_problems, "changes", "change", &change,
                                 "pipelines", "job", "size", &size, "streams", "name", &name, "write", &write,
                                 "guarantee", &guarantee, "reason", &reason, "problems", &problem),
                     0);
    assert_string_equal(workspace, "default");
    assert_true(json_is_true(has_problems));
    assert_string_equal(change, "created");
    assert_string_equal(size, "s");
    assert_string_equal(name, "orders");
    assert_string_equal(write, "merge");
    assert_string_equal(guarantee, "effectively_once");
    assert_string_equal(reason, "superset replay, written with merge");
    assert_int_equal(strncmp(problem, "delivery.require: ", 18), 0);
    json_decref(json);
}

/* ---- streams by name and pattern --------------------------------------------------------------------------------- */

static const char *names_of(const PipelinePlan *plan)
{
    Buf out;
    buf_init(&out, BUF_SQL_MAX);
    for (int i = 0; i < plan->stream_count; i++) {
        buf_printf(&out, "%s>%s ", plan->streams[i].name, plan->streams[i].table);
    }
    const char *copy = arena_strdup(&world.arena, buf_text(&out));
    buf_release(&out);
    return copy;
}

static void test_expanding(void **state)
{
    (void)state;
    assert_string_equal(names_of(plan_streams_of("[{ name: orders }, { name: sales.orders, as: sold }]", "")),
                        "orders>orders sales.orders>sold ");
    assert_int_equal(world.discovered, 1);
    assert_string_equal(names_of(plan_streams_of("[{ name: \"p*\" }]", "")), "page_views>page_views ");
    /* A pattern without a dot is of the default schema; views are named or left out. */
    PipelinePlan *all = plan_streams_of("[{ name: \"*\" }]", "");
    assert_string_equal(names_of(all), "Orders>Orders empty>empty odd>odd orders>orders page_views>page_views ");
    assert_non_null(strstr(notes_of(all), "active: it is a view, so a pattern doesn't take it: name it to read it\n"));
    assert_string_equal(names_of(plan_streams_of("[{ name: \"sales.*\", as: sold }]", "")), "sales.orders>sold ");
    assert_string_equal(names_of(plan_streams_of("[{ name: active }]", "")), "active>active ");
    /* Everything, and two tables of one name. */
    PipelinePlan *whole = plan_streams_of("\"*\"", "");
    assert_int_equal(whole->stream_count, 6);
    assert_non_null(strstr(problems_of(whole),
                           "spec.source.streams.name: streams \"orders\" and \"sales.orders\" would "
                           "both land in table \"orders\"; give one another with as\n"));
}

/* A named table has its own settings, wherever it stands. */
static void test_name_before_pattern(void **state)
{
    (void)state;
    PipelinePlan *plan =
        plan_streams_of("[{ name: \"[op]*r*\" }, { name: orders, as: mine }, { name: \"page*\" }]", "");
    assert_string_equal(names_of(plan), "orders>mine page_views>page_views ");
    assert_string_equal(plan->streams[0].path, "spec.source.streams[1]");
    assert_string_equal(plan->streams[1].path, "spec.source.streams[2]");
}

static void test_stream_settings(void **state)
{
    (void)state;
    PipelinePlan *plan = plan_streams_of("[{ name: orders, sync: incremental, cursor: updated_at, overlap: 10m, "
                                         "where: \"status = 'x'\", columns: { exclude: [status], types: { amount: "
                                         "\"decimal(38, 4)\" } }, read: { chunkRows: 1000, maxRowsPerSecond: 7 } }]",
                                         "namespace: shop");
    assert_int_equal(plan->problem_count, 0);
    const StreamPlan *stream = &plan->streams[0];
    assert_int_equal(stream->overlap, 600000000);
    assert_int_equal(stream->cursor_type.id, TYPE_TIMESTAMPTZ);
    assert_int_equal(stream->schema.count, 3);
    assert_string_equal(stream->schema.fields[1].name, "amount");
    assert_int_equal(stream->schema.fields[1].type.precision, 38);
    assert_int_equal(stream->chunk_rows, 1000);
    assert_int_equal(stream->max_rows_per_second, 7);
    assert_string_equal(stream->key[0], "id");
    assert_string_equal(stream->where, "status = 'x'");
    assert_int_equal(stream->replay, REPLAY_SUPERSET);
    assert_string_equal(plan->source_identity, "shop-1");
    assert_string_equal(config_get(&plan->source_config, "url"), "postgresql://shop");
    assert_int_equal(plan->scope, SCOPE_PIPELINE);
}

/* ---- notes and warnings ------------------------------------------------------------------------------------------ */

static void test_notes(void **state)
{
    (void)state;
    dest_room.capabilities.lists = false;
    PipelinePlan *plan = plan_streams_of(
        "[{ name: odd, key: [total], write: merge, columns: { exclude: [_openetl_id, Id, "
        "a_very_long_name_for_a_column_that_a_destination_of_63_bytes_doesnt_take] } }, { name: orders }]",
        "");
    assert_string_equal(problems_of(plan), "");
    assert_string_equal(
        notes_of(plan),
        "odd.total: unbounded numeric: exact decimal text\n"
        "odd.tags: list<utf8> arrives as JSON text, since the destination has no lists\n"
        "odd.total: the key column is nullable at the source; a row where it is NULL stops the stream\n"
        "odd: full_refresh with merge keeps rows that are deleted at the source; write: overwrite drops them\n"
        "orders: full_refresh with append keeps every sync's copy of the table; write: overwrite keeps "
        "the last copy alone\n");
}

/* A type of one's own takes the place of the note. */
static void test_no_note_under_a_type(void **state)
{
    (void)state;
    PipelinePlan *plan =
        plan_streams_of("[{ name: odd, write: overwrite, columns: { types: { total: \"decimal(38, 4)\" } } "
                        "}]",
                        "");
    assert_null(strstr(notes_of(plan), "unbounded"));
}

static const char *warning_for(const char *settings, const char *destination)
{
    return warnings_of(plan_streams_of(arena_printf(&world.arena, "[{ name: page_views%s }]", settings), destination));
}

#define INCREMENTAL ", sync: incremental, cursor: viewed_at"

static void expect_says(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) fail_msg("\"%s\" does not say \"%s\"", text, part);
}

static void test_warnings(void **state)
{
    (void)state;
    expect_says(warning_for(INCREMENTAL, ""),
                "page_views: it has no primary key and collapses, so one row lands for each "
                "distinct content");
    expect_says(warning_for(INCREMENTAL ", collapse: true, require: at_least_once", ""),
                "page_views: it has no primary key and collapses within each epoch only");
    expect_says(warning_for(INCREMENTAL ", require: at_least_once", ""),
                "page_views: it has no primary key and doesn't "
                "collapse, so every row lands");
    expect_says(warning_for("", ""), "OpenETL commits only at positions the source can resume from");
    expect_says(warning_for(", require: at_least_once", ""), "Under at_least_once a commit can come before a position");
    expect_says(warning_for(", collapse: true", ""), "it can commit before the read ends");
    expect_says(warnings_of(plan_streams_of("[{ name: orders, collapse: false }]", "")),
                "orders: it has a primary key, so collapse does nothing and is ignored.\n");
    expect_says(warnings_of(plan_streams_of("[{ name: orders"
                                            ", sync: incremental, cursor: updated_at }]",
                                            "write: overwrite")),
                "orders: overwrite under incremental replaces the table with the rows of that read alone");
    dest_room.capabilities.dedupes = false;
    const char *stuck = warning_for(INCREMENTAL ", require: at_least_once", "");
    expect_says(stuck, "can't collapse here, so every row lands");
    assert_null(strstr(stuck, "collapse: true"));
    dest_room.capabilities.commit_style = COMMIT_DELIVER_AND_ACKNOWLEDGE;
    expect_says(warning_for(", require: at_least_once", ""), "repeats, such as a delivery that is tried again");
}

/* ---- the destination as it is ------------------------------------------------------------------------------------ */

static CatalogColumn stored_columns[] = {
    {.name = "id", .type = {.id = TYPE_INT32}, .nullable = true},
    {.name = "status", .type = {.id = TYPE_UTF8}, .nullable = true},
    {.name = "old", .type = {.id = TYPE_UTF8}, .nullable = true},
    {.name = "updated_at", .type = {.id = TYPE_TIMESTAMPTZ}, .nullable = true},
};

static void store_table(void)
{
    world.dest_name = "orders";
    world.dest_table = (DestTable){.exists = true,
                                   .columns = stored_columns,
                                   .column_count = COUNT(stored_columns),
                                   .has_id = true,
                                   .has_seq = true,
                                   .has_synced_at = true};
}

#define ORDERS "[{ name: orders, sync: incremental, cursor: updated_at }]"

static void test_drift(void **state)
{
    (void)state;
    store_table();
    PipelinePlan *plan = plan_streams_of(ORDERS, "namespace: shop");
    assert_string_equal(problems_of(plan), "");
    assert_int_equal(plan->drift_count, 2);
    assert_string_equal(plan->drift[0],
                        "orders: widened: id int32 -> int64; shop.orders takes the new type, its values stay");
    assert_string_equal(plan->drift[1],
                        "orders: added: amount decimal(10, 2); shop.orders gets the column, NULL in the rows it has");
    assert_string_equal(notes_of(plan), "orders: column old of shop.orders isn't read; it is kept, and new rows are "
                                        "NULL there\n");
}

static void test_drift_refused(void **state)
{
    (void)state;
    store_table();
    stored_columns[3].type.id = TYPE_UTF8;
    PipelinePlan *plan = plan_streams_of(ORDERS, "");
    expect_says(problems_of(plan),
                "spec.source.streams[0]: stream \"orders\": column updated_at is timestamp[us, tz=UTC], which utf8 "
                "of orders cannot hold; read it as before");
    /* Overwrite makes the table anew. */
    assert_string_equal(problems_of(plan_streams_of("[{ name: orders, write: overwrite }]", "")), "");
    stored_columns[3].type.id = TYPE_TIMESTAMPTZ;
    world.dest_table.has_id = false;
    expect_says(problems_of(plan_streams_of("[{ name: orders, write: overwrite }]", "")),
                "exists without _openetl_id, so it was not made by openetl");
    world.dest_table.has_id = true;
    world.dest_table.is_view = true;
    expect_says(problems_of(plan_streams_of("[{ name: odd, as: orders }]", "")),
                "spec.source.streams[0].as: orders is a view at the destination");
}

static Type timestamps_as_text(const Type *type)
{
    return type->id == TYPE_TIMESTAMPTZ ? (Type){.id = TYPE_UTF8} : *type;
}

/* The room says how it stores types, so that what it stored itself is no drift. */
static void test_drift_by_the_rooms_storage(void **state)
{
    (void)state;
    store_table();
    stored_columns[3].type.id = TYPE_UTF8;
    world_destination.storage = timestamps_as_text;
    assert_string_equal(problems_of(plan_streams_of(ORDERS, "")), "");
    world_destination.storage = NULL;
    stored_columns[3].type.id = TYPE_TIMESTAMPTZ;
}

static void test_busy_destination(void **state)
{
    (void)state;
    world.dest_busy = true;
    PipelinePlan *plan = plan_streams_of(ORDERS, "");
    assert_string_equal(notes_of(plan),
                        "connection \"warehouse\" is held by another process now, so its tables were not "
                        "looked at\n");
    assert_null(plan->streams[0].owner);
    PlanInput input = {.workspace = "default",
                       .given = parse(pipeline_text(ORDERS, "", "")),
                       .stored = shop_connections(),
                       .wait_us = 5};
    PipelinePlan other;
    Err err;
    assert_false(plan_pipeline(&input, &input.given->items[0], &world.arena, &other, &err));
    assert_int_equal(err.code, ERR_DEST_BUSY);
    assert_int_equal(world.waited, 2);
    input.offline_destination = true;
    assert_true(plan_pipeline(&input, &input.given->items[0], &world.arena, &other, &err));
    assert_int_equal(world.opened_destinations, 0);
}

/* ---- positions --------------------------------------------------------------------------------------------------- */

static const char *owner_of(const char *stream, const char *destination)
{
    const PipelinePlan *plan = plan_streams_of(stream, destination);
    assert_int_equal(plan->stream_count, 1);
    assert_int_equal(strlen(plan->streams[0].owner), 32);
    return plan->streams[0].owner;
}

static void test_owners(void **state)
{
    (void)state;
    const char *plain = owner_of(ORDERS, "namespace: shop");
    assert_string_equal(plain, owner_of(ORDERS, "namespace: shop"));
    /* What does not change whose a position is. */
    assert_string_equal(plain, owner_of("[{ name: orders, sync: incremental, cursor: updated_at, overlap: 1h, "
                                        "columns: { exclude: [status] }, require: at_least_once }]",
                                        "namespace: shop"));
    const char *others[] = {
        owner_of("[{ name: orders, sync: incremental, cursor: id }]", "namespace: shop"),
        owner_of("[{ name: orders }]", "namespace: shop"),
        owner_of("[{ name: orders, sync: incremental, cursor: updated_at, where: a }]", "namespace: shop"),
        owner_of("[{ name: orders, sync: incremental, cursor: updated_at, key: [status] }]", "namespace: shop"),
        owner_of("[{ name: orders, sync: incremental, cursor: updated_at, key: [id, status] }]", "namespace: shop"),
        owner_of("[{ name: orders, sync: incremental, cursor: updated_at, as: other }]", "namespace: shop"),
        owner_of(ORDERS, "namespace: other"),
        owner_of(ORDERS, ""),
        owner_of(ORDERS, "namespace: shop, write: merge"),
    };
    for (int i = 0; i < COUNT(others); i++) {
        assert_string_not_equal(plain, others[i]);
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(others[i], others[j]);
        }
    }
    world.source_identity = "shop-2";
    assert_string_not_equal(plain, owner_of(ORDERS, "namespace: shop"));
}

static const char *notes_after(const char *before, const char *after)
{
    const char *connections = "apiVersion: openetl.io/v1alpha1\nkind: Connection\nmetadata: { name: shop-db }\n"
                              "spec: { connector: postgres, config: { url: a } }\n---\n"
                              "apiVersion: openetl.io/v1alpha1\nkind: Connection\nmetadata: { name: warehouse }\n"
                              "spec: { connector: house, config: { url: b } }\n---\n";
    PlanInput input = {.workspace = "default",
                       .given = parse(after),
                       .stored = parse(arena_printf(&world.arena, "%s%s", connections, before))};
    PipelinePlan plan;
    Err err;
    assert_true(plan_pipeline(&input, &input.given->items[0], &world.arena, &plan, &err));
    return notes_of(&plan);
}

static void test_positions_given_up(void **state)
{
    (void)state;
    const char *before = pipeline_text(ORDERS, "namespace: shop", "");
    assert_string_equal(notes_after(before, before), "");
    assert_string_equal(notes_after(before, pipeline_text(ORDERS, "namespace: shop", "  job: { size: m }\n")), "");
    assert_string_equal(
        notes_after(before, pipeline_text("[{ name: orders, sync: incremental, cursor: id }]", "namespace: shop", "")),
        "orders: its cursor id is its key, which no update changes: it catches inserts only, and misses updates and "
        "deletes\n"
        "orders: its cursor changed (updated_at -> id), so the saved position isn't kept: the next run starts again\n");
    assert_string_equal(
        notes_after(before, pipeline_text(ORDERS, "", "")),
        "orders: its namespace changed (shop -> none), so the saved position isn't kept: the next run starts again\n");
    assert_string_equal(
        notes_after(pipeline_text("[{ name: \"ord*\" }]", "", ""), pipeline_text(ORDERS, "", "")),
        "orders: its sync changed (full_refresh -> incremental), so the saved position isn't kept: the next run starts "
        "again\n");
    assert_string_equal(notes_after(pipeline_text("[{ name: page_views }]", "", ""), pipeline_text(ORDERS, "", "")),
                        "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_seed_merge),
        TEST(test_seed_merge_accepted),
        TEST(test_seed_append),
        TEST(test_seed_page_views),
        TEST(test_job),
        TEST(test_changes),
        TEST(test_json),
        TEST(test_expanding),
        TEST(test_name_before_pattern),
        TEST(test_stream_settings),
        TEST(test_notes),
        TEST(test_no_note_under_a_type),
        TEST(test_warnings),
        TEST(test_drift),
        TEST(test_drift_refused),
        TEST(test_drift_by_the_rooms_storage),
        TEST(test_busy_destination),
        TEST(test_owners),
        TEST(test_positions_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
