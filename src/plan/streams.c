#include "plan/draft.h"

#include <fnmatch.h>
#include <string.h>

enum { MAX_STATEMENT_US = 30 * 1000000 };

/* The settings of streams: "*". */
static const StreamResource UNSET;

static bool is_glob(const char *name)
{
    return strpbrk(name, "*?[") != NULL;
}

/* Views and foreign tables hold rows that live elsewhere, so a pattern does not pick them up; their name does. */
static bool is_own_table(const CatalogTable *table)
{
    return table->kind == TABLE_PLAIN || table->kind == TABLE_PARTITIONED;
}

/* A pattern without a dot is of the connection's default schema: "*" means its tables. */
static bool glob_matches(const char *pattern, const CatalogTable *table, Arena *arena)
{
    if (strchr(pattern, '.') == NULL) return table->schema == NULL && fnmatch(pattern, table->name, 0) == 0;
    return fnmatch(pattern, table_stream_name(table, arena), 0) == 0;
}

/* ---- reading the catalog ----------------------------------------------------------------------------------------- */

static bool wants_whole(const PipelineResource *pipeline)
{
    if (pipeline->all_streams) return true;
    for (int i = 0; i < pipeline->stream_count; i++) {
        if (is_glob(pipeline->streams[i].name)) return true;
    }
    return false;
}

static bool all_found(const PipelineResource *pipeline, const Catalog *catalog)
{
    for (int i = 0; i < pipeline->stream_count; i++) {
        if (catalog_find(catalog, pipeline->streams[i].name) == NULL) return false;
    }
    return true;
}

static bool read_catalog(Draft *draft, Session *source, Err *err)
{
    const PipelineResource *pipeline = draft->plan->pipeline;
    const ConnectorOps *ops = draft->plan->source_connector->ops;
    if (wants_whole(pipeline)) return ops->discover(source, NULL, 0, draft->arena, &draft->catalog, err);
    Texts names = {0};
    for (int i = 0; i < pipeline->stream_count; i++) {
        texts_add(&names, pipeline->streams[i].name, draft->arena);
    }
    if (names.count == 0) return true;
    if (!ops->discover(source, names.items, names.count, draft->arena, &draft->catalog, err)) return false;
    /* Something is missing: the nearest name is worth a second, wider look. */
    if (all_found(pipeline, &draft->catalog)) return true;
    return ops->discover(source, NULL, 0, draft->arena, &draft->catalog, err);
}

/* ---- one stream -------------------------------------------------------------------------------------------------- */

static StreamPlan *add_stream(Draft *draft, const StreamResource *given, const char *path, const char *name,
                              const CatalogTable *table)
{
    PipelinePlan *plan = draft->plan;
    const PipelineResource *pipeline = plan->pipeline;
    StreamPlan *stream = &plan->streams[plan->stream_count++];
    const char *own_name = table != NULL ? table->name : name;
    *stream = (StreamPlan){
        .name = name,
        .table = given->as != NULL ? given->as : own_name,
        .path = path,
        .given = given,
        .sync = given->has_sync ? given->sync : SYNC_FULL_REFRESH,
        .write = given->has_write ? given->write : pipeline->write,
        .require = given->has_require ? given->require : pipeline->require,
        .source = table,
        .where = given->where,
        .layout = given->has_sync && given->sync == SYNC_CDC ? pipeline->layout : LAYOUT_DIRECT,
        .deletes = given->deletes,
        .baseline = given->snapshot == BASELINE_INITIAL,
        .chunk_rows = given->chunk_rows > 0 ? given->chunk_rows : pipeline->chunk_rows,
        .order = given->read_order != READ_ORDER_AUTO ? given->read_order : pipeline->read_order,
        .max_statement_us = given->max_statement_us > 0 ? given->max_statement_us : pipeline->max_statement_us,
        .max_rows_per_second = given->max_rows_per_second,
        .reconcile_keys_us = given->reconcile_keys_us,
        .parallel = given->parallel > 0      ? given->parallel
                    : pipeline->parallel > 0 ? pipeline->parallel
                                             : job_size_readers(pipeline->size),
    };
    if (stream->max_statement_us == 0) stream->max_statement_us = MAX_STATEMENT_US;
    return stream;
}

static bool is_taken(const PipelinePlan *plan, const char *name)
{
    for (int i = 0; i < plan->stream_count; i++) {
        if (strcmp(plan->streams[i].name, name) == 0) return true;
    }
    return false;
}

/* Whether an entry names the table itself: it then goes before every pattern, wherever it stands. */
static bool is_named(const Draft *draft, const char *name)
{
    const PipelineResource *pipeline = draft->plan->pipeline;
    for (int i = 0; i < pipeline->stream_count; i++) {
        if (strcmp(pipeline->streams[i].name, name) == 0) return true;
    }
    return false;
}

/* The nearest stream name; also the name without a schema, for "public.orders" where public is the default one. */
static const char *suggest_stream(const Draft *draft, const char *name)
{
    const char *dot = strrchr(name, '.');
    if (dot != NULL && catalog_find(&draft->catalog, dot + 1) != NULL) {
        return arena_printf(draft->arena, "; did you mean \"%s\"?", dot + 1);
    }
    Texts names = {0};
    for (int i = 0; i < draft->catalog.count; i++) {
        texts_add(&names, table_stream_name(&draft->catalog.tables[i], draft->arena), draft->arena);
    }
    return draft_suggest(name, names.items, names.count, draft->arena);
}

static void add_named(Draft *draft, const StreamResource *given, const char *path)
{
    const CatalogTable *table = catalog_find(&draft->catalog, given->name);
    if (table == NULL) {
        draft_problem(draft, "%s.name: connection \"%s\" has no table \"%s\"%s", path, draft->plan->pipeline->source,
                      given->name, suggest_stream(draft, given->name));
    }
    add_stream(draft, given, path, given->name, table);
}

/* A table that only its own name picks up: said, so that nobody takes a pattern for everything. */
static void note_left_out(Draft *draft, const CatalogTable *table, const char *name)
{
    draft_note(draft, "%s: it is a %s, so a pattern doesn't take it: name it to read it", name,
               table->kind == TABLE_VIEW ? "view" : "foreign table");
}

/* pattern NULL: all tables. Returns how many it matched. */
static int add_matching(Draft *draft, const StreamResource *given, const char *path, const char *pattern)
{
    int count = 0;
    for (int i = 0; i < draft->catalog.count; i++) {
        const CatalogTable *table = &draft->catalog.tables[i];
        const char *name = table_stream_name(table, draft->arena);
        if (pattern != NULL && !glob_matches(pattern, table, draft->arena)) continue;
        count++;
        if (is_taken(draft->plan, name) || is_named(draft, name)) continue;
        if (is_own_table(table))
            add_stream(draft, given, path, name, table);
        else
            note_left_out(draft, table, name);
    }
    return count;
}

bool streams_expand(Draft *draft, Session *source, Err *err)
{
    if (!read_catalog(draft, source, err)) return false;
    const PipelineResource *pipeline = draft->plan->pipeline;
    draft->plan->streams = arena_array(draft->arena, StreamPlan, pipeline->stream_count + draft->catalog.count);
    if (pipeline->all_streams) {
        if (add_matching(draft, &UNSET, "spec.source.streams", NULL) == 0) {
            draft_problem(draft, "spec.source.streams: connection \"%s\" has no table", pipeline->source);
        }
        return true;
    }
    for (int i = 0; i < pipeline->stream_count; i++) {
        const StreamResource *given = &pipeline->streams[i];
        const char *path = arena_printf(draft->arena, "spec.source.streams[%d]", i);
        /* A table may be called "a*" at the source. */
        if (!is_glob(given->name) || catalog_find(&draft->catalog, given->name) != NULL) {
            add_named(draft, given, path);
        } else if (add_matching(draft, given, path, given->name) == 0) {
            draft_problem(draft, "%s.name: connection \"%s\" has no table that matches \"%s\"", path, pipeline->source,
                          given->name);
        }
    }
    return true;
}
