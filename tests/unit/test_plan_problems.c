/* Each problem a plan can have, word for word; and what keeps a plan from being made at all. */
#include "plan_world.h"

#define ORDERS   "[{ name: orders, sync: incremental, cursor: updated_at }]"
#define PATH     "spec.source.streams[0]"
#define OVERLONG "a_very_long_name_for_a_column_that_a_destination_of_63_bytes_doesnt_take"
/* The columns of "odd" without those no destination takes. */
#define TAME "columns: { exclude: [_openetl_id, Id, " OVERLONG "] }"

static void expect(const char *streams, const char *destination, const char *problems)
{
    PipelinePlan *plan = plan_streams_of(streams, destination);
    assert_string_equal(problems_of(plan), problems);
}

static void test_missing_at_the_source(void **state)
{
    (void)state;
    expect("[{ name: order }]", "",
           PATH ".name: connection \"shop-db\" has no table \"order\"; did you mean \"orders\"?\n");
    assert_int_equal(world.discovered, 2);
    expect("[{ name: public.page_views }]", "",
           PATH ".name: connection \"shop-db\" has no table \"public.page_views\"; did you mean \"page_views\"?\n");
    expect("[{ name: zzz }]", "", PATH ".name: connection \"shop-db\" has no table \"zzz\"\n");
    expect("[{ name: \"zz*\" }]", "", PATH ".name: connection \"shop-db\" has no table that matches \"zz*\"\n");
    world.catalog.count = 0;
    expect("\"*\"", "", "spec.source.streams: connection \"shop-db\" has no table\n");
}

static void test_missing_stream_is_not_printed(void **state)
{
    (void)state;
    Plan *plan = plan_of(pipeline_text("[{ name: zzz }]", "", ""));
    assert_null(strstr(printed(plan), "streams:\n"));
    json_t *json = plan_to_json(plan);
    json_t *streams = json_object_get(json_array_get(json_object_get(json, "pipelines"), 0), "streams");
    assert_int_equal(json_array_size(streams), 0);
    json_decref(json);
}

static void test_columns(void **state)
{
    (void)state;
    expect("[{ name: orders, columns: { exclude: [statu] } }]", "",
           PATH ".columns.exclude: stream \"orders\" has no column \"statu\"; did you mean \"status\"?\n");
    expect("[{ name: orders, columns: { types: { amout: int64 } } }]", "",
           PATH ".columns.types.amout: stream \"orders\" has no column \"amout\"; did you mean \"amount\"?\n");
    expect("[{ name: orders, columns: { types: { amount: \"decimal(99, 2)\" } } }]", "",
           PATH ".columns.types.amount: \"decimal(99, 2)\" is not a type: a decimal's precision is 1 to 38\n");
    expect("[{ name: page_views, columns: { exclude: [path, viewed_at] } }]", "",
           PATH ".columns.exclude: stream \"page_views\" has no columns left\n");
    expect("[{ name: empty }]", "", PATH ".name: stream \"empty\" has no columns\n");
    expect("[{ name: odd, columns: { exclude: [Id, " OVERLONG "] } }]", "",
           PATH
           ".columns.exclude: stream \"odd\" has a column \"_openetl_id\", and names that begin with _openetl_ are "
           "openetl's own; exclude it\n");
}

static void test_keys(void **state)
{
    (void)state;
    expect("[{ name: orders, key: [idd] }]", "",
           PATH ".key: stream \"orders\" has no column \"idd\"; did you mean \"id\"?\n");
    expect("[{ name: orders, columns: { exclude: [id] } }]", "",
           PATH ".columns.exclude: column \"id\" is in the key of stream \"orders\"\n");
    expect("[{ name: page_views, write: merge }]", "",
           PATH ".write: stream \"page_views\" has no primary key, and merge needs one; set key\n");
    expect("[{ name: page_views }]", "write: merge",
           "spec.destination.write: stream \"page_views\" has no primary key, and merge needs one; set key\n");
    expect("[{ name: page_views, key: [path], write: merge }]", "", "");
}

static void test_cdc(void **state)
{
    (void)state;
    source_room.capabilities.syncs[SYNC_CDC] = true;
    expect("[{ name: orders, sync: cdc, write: overwrite }]", "",
           PATH ".write: stream \"orders\" is read by cdc, whose changes belong to the rows that are there; write it "
                "with merge or append\n");
    expect("[{ name: orders, sync: cdc, where: \"id > 5\" }]", "",
           PATH ".where: stream \"orders\" is read by cdc, and the log is not filtered; take it out\n");
    expect(
        "[{ name: orders, sync: cdc }]", "layout: log_view",
        "spec.destination.layout: log_view brings stream \"orders\" to one row a key, which is write: merge; set it, "
        "or take the layout out\n");
    expect("[{ name: orders }]", "layout: log_view",
           "spec.destination.layout: log_view is for streams of sync: cdc, and there is none; take it out\n");
    expect("[{ name: orders, sync: cdc }]", "layout: base_buffer, write: merge", "");
    PipelinePlan *plan = plan_streams_of("[{ name: orders, sync: cdc, write: merge }]", "");
    assert_int_equal(plan->streams[0].decision.guarantee, EXACTLY_ONCE);
    assert_int_equal(plan->streams[0].decision.reason, REASON_EXACT);
}

static void test_cursors(void **state)
{
    (void)state;
    expect("[{ name: orders, sync: incremental, cursor: updatedat }]", "",
           PATH ".cursor: stream \"orders\" has no column \"updatedat\"; did you mean \"updated_at\"?\n");
    expect("[{ name: orders, sync: incremental, cursor: updated_at, columns: { exclude: [updated_at] } }]", "",
           PATH ".columns.exclude: column \"updated_at\" is the cursor of stream \"orders\"\n");
    expect("[{ name: odd, sync: incremental, cursor: at, " TAME " }]", "",
           PATH ".cursor: column \"at\" of stream \"odd\" is time64[us], which has no order a cursor can follow\n");
    expect("[{ name: odd, sync: incremental, cursor: tags, " TAME " }]", "",
           PATH ".cursor: column \"tags\" of stream \"odd\" is list<utf8>, which has no order a cursor can follow\n");
    expect("[{ name: odd, sync: incremental, cursor: total, " TAME " }]", "",
           PATH
           ".cursor: column \"total\" of stream \"odd\" (numeric) travels as text, whose order is another; give it a "
           "type in columns.types\n");
    expect("[{ name: odd, sync: incremental, cursor: total, columns: { exclude: [_openetl_id, Id, " OVERLONG
           "], types: { total: \"decimal(38, 0)\" } } }]",
           "", "");
    expect("[{ name: orders, sync: incremental, cursor: status }]", "", "");
}

static void test_overlaps(void **state)
{
    (void)state;
    expect("[{ name: orders, sync: incremental, cursor: updated_at, overlap: 10 }]", "",
           PATH
           ".overlap: cursor \"updated_at\" is timestamp[us, tz=UTC], so its overlap is a duration such as 10m, not "
           "\"10\"\n");
    expect("[{ name: odd, sync: incremental, cursor: version, overlap: 10m, " TAME " }]", "",
           PATH ".overlap: cursor \"version\" is int32, so its overlap is a count such as 1000, not \"10m\"\n");
    expect("[{ name: orders, sync: incremental, cursor: status, overlap: 10 }]", "",
           PATH ".overlap: cursor \"status\" is utf8, which has no overlap: timestamps, dates and integers do\n");
    expect("[{ name: orders, sync: incremental, cursor: updated_at, overlap: 0 }]", "", "");
    expect("[{ name: orders, sync: incremental, cursor: status, overlap: 0 }]", "", "");
    expect("[{ name: odd, sync: incremental, cursor: day, overlap: 2d, " TAME " }]", "", "");
    PipelinePlan *plan =
        plan_streams_of("[{ name: odd, sync: incremental, cursor: version, overlap: 500, " TAME " }]", "");
    assert_string_equal(problems_of(plan), "");
    assert_int_equal(plan->streams[0].overlap, 500);
}

static void test_what_the_rooms_cannot(void **state)
{
    (void)state;
    source_room.capabilities.syncs[SYNC_INCREMENTAL] = false;
    expect(ORDERS, "",
           PATH ".sync: stream \"orders\" can't be read by incremental from postgres, which reads by full_refresh\n");
    source_room.capabilities = postgres_can;
    dest_room.capabilities.overwrites = false;
    expect("[{ name: orders }]", "write: overwrite",
           "spec.destination.write: stream \"orders\" can't be written with overwrite: house doesn't overwrite\n");
    expect("[{ name: orders, write: overwrite }]", "",
           PATH ".write: stream \"orders\" can't be written with overwrite: house doesn't overwrite\n");
    dest_room.capabilities.merges = false;
    expect("[{ name: orders }]", "write: merge",
           "spec.destination.write: stream \"orders\" can't be written with merge: the destination doesn't merge\n");
    dest_room.capabilities.dedupes = false;
    expect("[{ name: page_views, collapse: true }]", "",
           PATH ".collapse: stream \"page_views\" can't collapse rows: only a destination that dedupes at apply can\n");
    expect(
        ORDERS, "",
        "delivery.require: stream \"orders\" gets at_least_once (superset replay, and the destination can't dedupe), "
        "below exactly_once\n");
    dest_room.capabilities.commit_style = COMMIT_DELIVER_AND_ACKNOWLEDGE;
    expect("[{ name: orders }]", "",
           "delivery.require: stream \"orders\" gets at_least_once (the destination delivers and acknowledges), below "
           "exactly_once\n");
}

/* Syncs that the files may not ask for yet, so they are set behind the reader's back. */
static PipelinePlan *plan_with_sync(const char *streams, SyncMode sync)
{
    PlanInput input = {
        .workspace = "default", .given = parse(pipeline_text(streams, "", "")), .stored = shop_connections()};
    input.given->items[0].pipeline.streams[0].has_sync = true;
    input.given->items[0].pipeline.streams[0].sync = sync;
    PipelinePlan *plan = arena_new(&world.arena, PipelinePlan);
    Err err;
    assert_true(plan_pipeline(&input, &input.given->items[0], &world.arena, plan, &err));
    return plan;
}

static void test_syncs_of_a_log_and_a_compare(void **state)
{
    (void)state;
    source_room.capabilities.syncs[SYNC_CDC] = true;
    source_room.capabilities.syncs[SYNC_COMPARE] = true;
    assert_string_equal(problems_of(plan_with_sync("[{ name: active }]", SYNC_CDC)),
                        PATH ".sync: stream \"active\" is a view, which has no changes of its own in the log\n");
    assert_string_equal(problems_of(plan_with_sync("[{ name: orders }]", SYNC_CDC)), "");
    assert_string_equal(problems_of(plan_with_sync("[{ name: page_views }]", SYNC_COMPARE)),
                        PATH ".sync: stream \"page_views\" has no primary key, and compare needs one; set key\n");
    source_room.capabilities.replay[SYNC_COMPARE] = REPLAY_SUPERSET;
    PipelinePlan *compared = plan_with_sync("[{ name: orders }]", SYNC_COMPARE);
    assert_string_equal(problems_of(compared), "");
    assert_int_equal(compared->streams[0].replay, REPLAY_SUPERSET);
}

/* No pipeline has a transform yet; its remarks are the same function's. */
static void test_remarks_of_a_transform(void **state)
{
    (void)state;
    StreamPlan stream = {.name = "sums", .path = "p", .decision = {.reason = REASON_TRANSFORM_NOT_DEDUPED}};
    const char *text = warning_text(&stream, WARNING_NO_KEY_CANNOT_COLLAPSE, &world.arena);
    assert_null(strstr(text, "_openetl_id"));
    stream.decision.reason = REASON_CANNOT_DEDUPE;
    text = warning_text(&stream, WARNING_NO_KEY_CANNOT_COLLAPSE, &world.arena);
    assert_non_null(strstr(text, " Readers can dedupe on _openetl_id."));
    assert_null(warning_text(&stream, WARNING_NONE, &world.arena));
    assert_null(problem_text(&stream, PROBLEM_NONE, &world.arena));
}

static void test_collapse_false_above(void **state)
{
    (void)state;
    expect("[{ name: page_views, sync: incremental, cursor: viewed_at, collapse: false, require: effectively_once }]",
           "",
           "delivery.require: stream \"page_views\" gets at_least_once (superset replay, no primary key, and not "
           "collapsed), below effectively_once\n");
}

static void test_scope(void **state)
{
    (void)state;
    dest_room.capabilities.pipeline_scope = false;
    PipelinePlan *plan = plan_streams_of("[{ name: orders }]", "");
    assert_string_equal(problems_of(plan), "");
    assert_int_equal(plan->scope, SCOPE_STREAM);
    const char *text = pipeline_text("[{ name: orders }]", "", "  delivery: { commit: { scope: pipeline } }\n");
    assert_string_equal(problems_of(plan_of(text)->pipelines[0]),
                        "spec.delivery.commit.scope: house commits each stream by itself, so scope is stream\n");
}

static void test_names_at_the_destination(void **state)
{
    (void)state;
    expect("[{ name: orders, as: " OVERLONG " }]", "",
           PATH ".as: table \"" OVERLONG "\" has a name of 72 bytes, and house takes 63; give a shorter one with as\n");
    expect("[{ name: orders, as: _openetl_commits }]", "",
           PATH ".as: table \"_openetl_commits\" has a name that begins with _openetl_, and those are openetl's own\n");
    expect("[{ name: odd, columns: { exclude: [_openetl_id, Id] } }]", "",
           PATH ".columns: column \"" OVERLONG
                "\" of stream \"odd\" has a name of 72 bytes, and house takes 63; exclude "
                "it or rename it at the source\n");
    expect("[{ name: odd, columns: { exclude: [_openetl_id, " OVERLONG "] } }]", "", "");
    dest_room.capabilities.fold_case = true;
    expect("[{ name: odd, columns: { exclude: [_openetl_id, " OVERLONG "] } }]", "",
           PATH
           ".columns: columns \"id\" and \"Id\" of stream \"odd\" are one column to house, which doesn't tell case "
           "apart; exclude one\n");
    expect(
        "[{ name: Orders }, { name: orders }]", "",
        "spec.source.streams[1].name: streams \"Orders\" and \"orders\" would both land in table \"orders\"; give one "
        "another with as\n");
}

static void test_too_many_columns(void **state)
{
    (void)state;
    dest_room.capabilities.max_columns = 8;
    expect("[{ name: orders }]", "",
           PATH
           ".columns: stream \"orders\" has 4 columns, and openetl's own make 9, but a table of house takes 8; exclude "
           "some\n");
    dest_room.capabilities.max_columns = 9;
    expect("[{ name: orders }]", "", "");
}

static void test_rooms_of_one_side(void **state)
{
    (void)state;
    source_room.source = NULL;
    expect("[{ name: orders }]", "",
           "spec.source.ref: connection \"shop-db\" is of postgres, which can't be read from\n");
    source_room.source = &world_source;
    dest_room.destination = NULL;
    expect("[{ name: orders }]", "",
           "spec.destination.ref: connection \"warehouse\" is of house, which can't be written to\n");
    assert_int_equal(world.opened_sources, 0);
}

/* ---- what keeps a plan from being made --------------------------------------------------------------------------- */

static void refuse(const char *text, ErrCode code, const char *message)
{
    PlanInput input = {.workspace = "default", .given = parse(text), .stored = shop_connections()};
    Plan plan;
    Err err = {0};
    assert_false(plan_make(&input, &world.arena, &plan, &err));
    assert_int_equal(err.code, code);
    assert_string_equal(err.message, message);
}

#define CONNECTION(spec)                                                                                               \
    "apiVersion: openetl.io/v1alpha1\nkind: Connection\nmetadata: { name: shop-db }\nspec:\n" spec "\n"

static void test_connections(void **state)
{
    (void)state;
    refuse("apiVersion: openetl.io/v1alpha1\nkind: Pipeline\nmetadata: { name: p }\nspec:\n"
           "  source: { ref: shopdb, streams: [{ name: orders }] }\n  destination: { ref: warehouse }\n",
           ERR_RESOURCE_NOT_FOUND,
           "shop.yaml:5:18: spec.source.ref: there is no connection \"shopdb\"; did you mean \"shop-db\"?");
    PlanInput input = {.workspace = "default",
                       .given = parse(CONNECTION("  connector: postgress\n  config: { url: a }"))};
    Plan plan;
    Err err;
    assert_false(plan_make(&input, &world.arena, &plan, &err));
    assert_non_null(strstr(err.message, "connection \"shop-db\": there is no connector \"postgress\"; did you mean "
                                        "\"postgres\"?"));
    assert_string_equal(err.fix, "write one of postgres, house");
    input.given = parse(CONNECTION("  connector: postgres\n  config: { url: a, sslmod: b }"));
    assert_false(plan_make(&input, &world.arena, &plan, &err));
    assert_non_null(strstr(err.message, "spec.config.sslmod: connection \"shop-db\": postgres has no such setting; did "
                                        "you mean \"sslmode\"?"));
    assert_string_equal(err.fix, "postgres takes url, sslmode");
    input.given = parse(CONNECTION("  connector: postgres"));
    assert_false(plan_make(&input, &world.arena, &plan, &err));
    assert_non_null(strstr(err.message, "spec.config.url: connection \"shop-db\": postgres needs it"));
}

/* A connection is checked without its secrets until something uses it. */
static void test_secrets(void **state)
{
    (void)state;
    const char *secret = CONNECTION("  connector: postgres\n  config: { url: \"${OPENETL_TEST_UNSET}\" }");
    unsetenv("OPENETL_TEST_UNSET");
    PlanInput input = {.workspace = "default", .given = parse(secret), .stored = shop_connections()};
    Plan plan;
    Err err;
    assert_true(plan_make(&input, &world.arena, &plan, &err));
    input.given = parse(arena_printf(&world.arena, "%s---\n%s", secret, pipeline_text(ORDERS, "", "")));
    assert_false(plan_make(&input, &world.arena, &plan, &err));
    assert_int_equal(err.code, ERR_SECRET_MISSING);
    setenv("OPENETL_TEST_UNSET", "sesame", 1);
    assert_true(plan_make(&input, &world.arena, &plan, &err));
    assert_string_equal(config_get(&plan.pipelines[0]->source_config, "url"), "sesame");
    assert_null(strstr(printed(&plan), "sesame"));
    unsetenv("OPENETL_TEST_UNSET");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_missing_at_the_source),
        TEST(test_missing_stream_is_not_printed),
        TEST(test_columns),
        TEST(test_keys),
        TEST(test_cdc),
        TEST(test_cursors),
        TEST(test_overlaps),
        TEST(test_what_the_rooms_cannot),
        TEST(test_syncs_of_a_log_and_a_compare),
        TEST(test_remarks_of_a_transform),
        TEST(test_collapse_false_above),
        TEST(test_scope),
        TEST(test_names_at_the_destination),
        TEST(test_too_many_columns),
        TEST(test_rooms_of_one_side),
        TEST(test_connections),
        TEST(test_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
