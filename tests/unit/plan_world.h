/* A source and a destination in memory for the plan's tests. The test offers them through its own registry: it defines
 * all that connectors/registry.c defines, so that the linker takes no room from the library. What each room holds and
 * can do is set by the test. */
#ifndef OPENETL_TESTS_PLAN_WORLD_H
#define OPENETL_TESTS_PLAN_WORLD_H

#include "plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <strings.h>
#include <cmocka.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof(*(array))))

static struct World {
    Arena arena;
    Catalog catalog;
    const char *dest_name; /* a table of the destination; NULL: it is empty */
    DestTable dest_table;
    bool dest_busy;
    int discovered, opened_sources, opened_destinations, closed, waited;
    const char *source_identity;
} world;

struct Session {
    SessionRole role;
};

/* ---- rooms ------------------------------------------------------------------------------------------------------- */

static bool world_open(const OpenSpec *spec, Session **session, Err *err)
{
    assert_true(spec->read_only);
    if (spec->wait_us > 0) world.waited++;
    if (spec->role == ROLE_DESTINATION && world.dest_busy) {
        return err_set(err, ERR_DEST_BUSY, "the file is held by process 71");
    }
    if (spec->role == ROLE_DESTINATION)
        world.opened_destinations++;
    else
        world.opened_sources++;
    *session = arena_new(&world.arena, Session);
    (*session)->role = spec->role;
    return true;
}

static void world_close(Session *session)
{
    if (session != NULL) world.closed++;
}

static bool world_discover(Session *session, const char *const *only, int only_count, Arena *arena, Catalog *catalog,
                           Err *err)
{
    (void)err;
    assert_int_equal(session->role, ROLE_SOURCE);
    world.discovered++;
    catalog->tables = arena_array(arena, CatalogTable, world.catalog.count);
    catalog->count = 0;
    for (int i = 0; i < world.catalog.count; i++) {
        const CatalogTable *table = &world.catalog.tables[i];
        bool wanted = only_count == 0;
        for (int j = 0; j < only_count; j++) {
            wanted = wanted || strcmp(only[j], table_stream_name(table, arena)) == 0;
        }
        if (wanted) catalog->tables[catalog->count++] = *table;
    }
    return true;
}

static bool world_identity(Session *session, Arena *arena, const char **identity, Err *err)
{
    (void)arena;
    (void)err;
    *identity = session->role == ROLE_SOURCE ? world.source_identity : "warehouse-1";
    return true;
}

static bool world_inspect(Session *session, const DestStream *stream, Arena *arena, DestTable *table, Err *err)
{
    (void)arena;
    (void)err;
    assert_int_equal(session->role, ROLE_DESTINATION);
    *table = (DestTable){0};
    if (world.dest_name != NULL && strcmp(world.dest_name, stream->table) == 0) *table = world.dest_table;
    return true;
}

static const ConnectorOps world_ops = {
    .open = world_open, .close = world_close, .discover = world_discover, .identity = world_identity};
static bool world_read_rows(Reader *reader, const Batch *keys, Err *err)
{
    (void)reader;
    (void)keys;
    return err_set(err, ERR_SOURCE_QUERY, "a plan reads no rows");
}

static const SourceOps world_source = {.read_rows = world_read_rows};
static DestOps world_destination = {.inspect = world_inspect};
static const ConfigKey world_keys[] = {{.name = "url", .required = true, .secret = true, .help = "where it is"},
                                       {.name = "sslmode", .help = "how"},
                                       {.name = NULL}};

/* As PostgreSQL is; a test changes what it needs, world_setup() sets it again. */
static const Capabilities postgres_can = {
    .syncs = {[SYNC_FULL_REFRESH] = true, [SYNC_INCREMENTAL] = true},
    .replay = {[SYNC_FULL_REFRESH] = REPLAY_EXACT, [SYNC_INCREMENTAL] = REPLAY_SUPERSET},
    .commit_style = COMMIT_STAGE_AND_APPLY,
    .dedupes = true,
    .merges = true,
    .overwrites = true,
    .pipeline_scope = true,
    .lists = true,
    .max_columns = 1600,
    .max_name_bytes = 63,
};
static Connector source_room = {.name = "postgres",
                                .keys = world_keys,
                                .ops = &world_ops,
                                .source = &world_source,
                                .destination = &world_destination};
static Connector dest_room = {
    .name = "house", .keys = world_keys, .ops = &world_ops, .source = &world_source, .destination = &world_destination};

const Connector *connector_find(const char *name)
{
    if (strcmp(name, source_room.name) == 0) return &source_room;
    return strcmp(name, dest_room.name) == 0 ? &dest_room : NULL;
}
const Connector *connector_at(int index)
{
    return index == 0 ? &source_room : index == 1 ? &dest_room : NULL;
}
const Connector *connector_by_url(const char *url)
{
    (void)url;
    return NULL;
}
const char *config_get(const ConnectorConfig *config, const char *key)
{
    for (int i = 0; i < config->count; i++) {
        if (strcmp(config->entries[i].key, key) == 0) return config->entries[i].value;
    }
    return NULL;
}
void check_add(CheckList *list, bool ok, const char *name, const char *detail, const char *fix)
{
    (void)list;
    (void)ok;
    (void)name;
    (void)detail;
    (void)fix;
}

/* ---- the shop ---------------------------------------------------------------------------------------------------- */

static const Type UTF8_TYPE = {.id = TYPE_UTF8};
static const char *orders_key[] = {"id"};
static CatalogColumn orders_columns[] = {
    {.name = "id", .type = {.id = TYPE_INT64}, .nullable = true},
    {.name = "status", .type = {.id = TYPE_UTF8}, .nullable = true},
    {.name = "amount", .type = {.id = TYPE_DECIMAL, .precision = 10, .scale = 2}, .nullable = true},
    {.name = "updated_at", .type = {.id = TYPE_TIMESTAMPTZ}, .nullable = true},
};
static CatalogColumn views_columns[] = {
    {.name = "path", .type = {.id = TYPE_UTF8}, .nullable = true},
    {.name = "viewed_at", .type = {.id = TYPE_TIMESTAMPTZ}, .nullable = true},
};
static CatalogColumn odd_columns[] = {
    {.name = "id", .type = {.id = TYPE_INT64}, .nullable = true},
    {.name = "total",
     .type = {.id = TYPE_UTF8},
     .native = "numeric",
     .note = "unbounded numeric: exact decimal text",
     .nullable = true},
    {.name = "tags", .type = {.id = TYPE_LIST, .element = &UTF8_TYPE}},
    {.name = "at", .type = {.id = TYPE_TIME}},
    {.name = "day", .type = {.id = TYPE_DATE}},
    {.name = "version", .type = {.id = TYPE_INT32}},
    {.name = "_openetl_id", .type = {.id = TYPE_UUID}},
    {.name = "Id", .type = {.id = TYPE_INT64}},
    {.name = "a_very_long_name_for_a_column_that_a_destination_of_63_bytes_doesnt_take", .type = {.id = TYPE_INT64}},
};
static CatalogColumn one_column[] = {{.name = "id", .type = {.id = TYPE_INT64}}};
static CatalogTable shop_tables[] = {
    {.name = "Orders", .columns = one_column, .column_count = 1, .key = orders_key, .key_count = 1},
    {.name = "active", .kind = TABLE_VIEW, .columns = views_columns, .column_count = 2},
    {.name = "empty"},
    {.name = "odd", .columns = odd_columns, .column_count = COUNT(odd_columns)},
    {.name = "orders", .columns = orders_columns, .column_count = 4, .key = orders_key, .key_count = 1},
    {.name = "page_views", .columns = views_columns, .column_count = 2},
    {.schema = "sales", .name = "orders", .columns = one_column, .column_count = 1, .key = orders_key, .key_count = 1},
};

static int world_setup(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    arena_init(&world.arena);
    world.catalog = (Catalog){.tables = shop_tables, .count = COUNT(shop_tables)};
    world.source_identity = "shop-1";
    source_room.capabilities = postgres_can;
    source_room.source = &world_source;
    dest_room.capabilities = postgres_can;
    dest_room.destination = &world_destination;
    return 0;
}

static int world_teardown(void **state)
{
    (void)state;
    arena_release(&world.arena);
    assert_int_equal(world.opened_sources + world.opened_destinations, world.closed);
    return 0;
}

/* ---- planning ---------------------------------------------------------------------------------------------------- */

static ResourceSet *parse(const char *text)
{
    ResourceSet *set = arena_new(&world.arena, ResourceSet);
    Err err = {0};
    if (!resources_parse("shop.yaml", text, strlen(text), &world.arena, set, &err)) fail_msg("%s", err.message);
    return set;
}

static ResourceSet *shop_connections(void)
{
    return parse("apiVersion: openetl.io/v1alpha1\nkind: Connection\nmetadata: { name: shop-db }\n"
                 "spec: { connector: postgres, config: { url: \"postgresql://shop\" } }\n---\n"
                 "apiVersion: openetl.io/v1alpha1\nkind: Connection\nmetadata: { name: warehouse }\n"
                 "spec: { connector: house, config: { url: \"house://warehouse\" } }\n");
}

/* A pipeline from shop-db to warehouse; `streams` is what follows "streams:", `destination` goes into its braces,
 * `more` holds further lines of the spec. */
static const char *pipeline_text(const char *streams, const char *destination, const char *more)
{
    return arena_printf(&world.arena,
                        "apiVersion: openetl.io/v1alpha1\nkind: Pipeline\nmetadata: { name: shop-orders }\nspec:\n"
                        "  source:\n    ref: shop-db\n    streams: %s\n"
                        "  destination: { ref: warehouse%s%s }\n%s",
                        streams, destination[0] == '\0' ? "" : ", ", destination, more);
}

static Plan *plan_of(const char *text)
{
    Plan *plan = arena_new(&world.arena, Plan);
    PlanInput input = {
        .workspace = "default", .given = parse(text), .stored = shop_connections(), .wait_us = PLAN_DONT_WAIT};
    Err err = {0};
    if (!plan_make(&input, &world.arena, plan, &err)) fail_msg("%s", err.message);
    return plan;
}

__attribute__((unused)) static PipelinePlan *plan_streams_of(const char *streams, const char *destination)
{
    return plan_of(pipeline_text(streams, destination, ""))->pipelines[0];
}

/* The lines of problems, warnings or notes as one text. */
static const char *lines_of(const char *const *texts, int count)
{
    Buf out;
    buf_init(&out, BUF_SQL_MAX);
    for (int i = 0; i < count; i++) {
        buf_printf(&out, "%s\n", texts[i]);
    }
    const char *copy = arena_strdup(&world.arena, buf_text(&out));
    buf_release(&out);
    return copy;
}

__attribute__((unused)) static const char *problems_of(const PipelinePlan *plan)
{
    return lines_of(plan->problems, plan->problem_count);
}
__attribute__((unused)) static const char *printed(const Plan *plan)
{
    Buf out;
    buf_init(&out, BUF_SQL_MAX);
    plan_print(plan, &out);
    const char *copy = arena_strdup(&world.arena, buf_text(&out));
    buf_release(&out);
    return copy;
}

#endif
