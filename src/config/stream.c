#include "base/clock.h"
#include "config/kinds.h"
#include "config/values.h"

#include <inttypes.h>

static const char *const SYNC_WORDS[] = {"full_refresh", "incremental", "compare", "cdc", NULL};
static const char *const BASELINE_WORDS[] = {"initial", "never", NULL};
const char *const WRITE_WORDS[] = {"append", "merge", "overwrite", NULL};
const char *const ORDER_WORDS[] = {"auto", "key", "physical", NULL};
const char *const GUARANTEE_WORDS[] = {"at_least_once", "effectively_once", "exactly_once", NULL};

static bool read_overlap(const FieldSite *site, void *target, Err *err)
{
    StreamResource *stream = target;
    const Node *node = site->node;
    int64_t us;
    if (node->kind == NODE_INT && node->integer >= 0) {
        stream->overlap = arena_printf(site->arena, "%" PRId64, node->integer);
        return true;
    }
    if (node->kind == NODE_TEXT && duration_parse(node->text, &us)) {
        stream->overlap = node->text;
        return true;
    }
    field_wrong(site, "a duration such as 10m, or a count of 0 or more", err);
    err_fix(err, "a timestamp cursor takes a duration (units us, ms, s, m, h, d), an integer cursor a count");
    return false;
}

typedef struct TypePair {
    const char *name, *text;
} TypePair;

static int compare_types(const void *a, const void *b)
{
    return strcmp(((const TypePair *)a)->name, ((const TypePair *)b)->name);
}

/* Sorted by column, so that what is read back from stored JSON is the same. */
static bool read_types(const FieldSite *site, void *target, Err *err)
{
    StreamResource *stream = target;
    const Node *map = site->node;
    if (!field_expect(site, NODE_MAP, "a map of column names to types", err)) return false;
    TypePair *pairs = arena_array(site->arena, TypePair, map->count);
    for (int i = 0; i < map->count; i++) {
        FieldPath step = {site->path, map->entries[i].key, 0};
        FieldSite value = {site->arena, map->entries[i].value, &step};
        pairs[i].name = map->entries[i].key;
        if (pairs[i].name[0] == '\0')
            return config_error(err, &map->entries[i].place, &step, "a column's name is empty");
        if (!field_text(&value, "a type such as \"decimal(38, 4)\"", &pairs[i].text, err)) return false;
    }
    if (map->count > 1) qsort(pairs, (size_t)map->count, sizeof *pairs, compare_types);
    stream->type_count = map->count;
    stream->type_names = arena_array(site->arena, const char *, map->count);
    stream->type_texts = arena_array(site->arena, const char *, map->count);
    for (int i = 0; i < map->count; i++) {
        stream->type_names[i] = pairs[i].name;
        stream->type_texts[i] = pairs[i].text;
    }
    return true;
}

static const FieldRule COLUMNS_FIELDS[] = {
    {.name = "exclude",
     .kind = FIELD_TEXTS,
     .at = FIELD_AT(StreamResource, exclude),
     .also = FIELD_AT(StreamResource, exclude_count),
     .what = "a list of column names"},
    {.name = "types", .kind = FIELD_OWN, .read = read_types},
};
static const FieldTable COLUMNS_TABLE = FIELD_TABLE(COLUMNS_FIELDS);

static const FieldRule READ_FIELDS[] = {
    {.name = "order", .kind = FIELD_WORD, .at = FIELD_AT(StreamResource, read_order), .words = ORDER_WORDS},
    {.name = "parallel", .kind = FIELD_INT, .at = FIELD_AT(StreamResource, parallel), .least = 1, .most = PARALLEL_MAX},
    {.name = "chunkRows",
     .kind = FIELD_COUNT,
     .at = FIELD_AT(StreamResource, chunk_rows),
     .least = 1,
     .most = CHUNK_ROWS_MAX},
    {.name = "maxRowsPerSecond",
     .kind = FIELD_COUNT,
     .at = FIELD_AT(StreamResource, max_rows_per_second),
     .least = 1,
     .most = INT64_MAX},
    {.name = "replica", .kind = FIELD_LATER, .instead = "give it once for all streams, in spec.source.read"},
    {.name = "maxStatement",
     .kind = FIELD_DURATION,
     .at = FIELD_AT(StreamResource, max_statement_us),
     .least = MAX_STATEMENT_LEAST_US},
};
static const FieldTable READ_TABLE = FIELD_TABLE(READ_FIELDS);

static bool read_on_drift(const FieldSite *site, void *target, Err *err)
{
    return drift_policy_read(site, &((StreamResource *)target)->on_drift, err);
}

static bool read_deletes(const FieldSite *site, void *target, Err *err)
{
    return deletes_read(site, target, err);
}

static const FieldRule STREAM_FIELDS[] = {
    {.name = "name",
     .kind = FIELD_TEXT,
     .required = true,
     .at = FIELD_AT(StreamResource, name),
     .what = "a table's name (text)"},
    {.name = "sync",
     .kind = FIELD_WORD,
     .at = FIELD_AT(StreamResource, sync),
     .also = FIELD_AT(StreamResource, has_sync),
     .words = SYNC_WORDS},
    {.name = "cursor", .kind = FIELD_TEXT, .at = FIELD_AT(StreamResource, cursor), .what = "a column's name (text)"},
    {.name = "overlap", .kind = FIELD_OWN, .read = read_overlap},
    {.name = "key",
     .kind = FIELD_TEXTS,
     .at = FIELD_AT(StreamResource, key),
     .also = FIELD_AT(StreamResource, key_count),
     .what = "a list of column names"},
    {.name = "columns", .kind = FIELD_MAP, .table = &COLUMNS_TABLE},
    {.name = "where", .kind = FIELD_TEXT, .at = FIELD_AT(StreamResource, where), .what = "a condition (text)"},
    {.name = "write",
     .kind = FIELD_WORD,
     .at = FIELD_AT(StreamResource, write),
     .also = FIELD_AT(StreamResource, has_write),
     .words = WRITE_WORDS},
    {.name = "as", .kind = FIELD_TEXT, .at = FIELD_AT(StreamResource, as), .what = "a table's name (text)"},
    {.name = "require",
     .kind = FIELD_WORD,
     .at = FIELD_AT(StreamResource, require),
     .also = FIELD_AT(StreamResource, has_require),
     .words = GUARANTEE_WORDS},
    {.name = "collapse",
     .kind = FIELD_BOOL,
     .at = FIELD_AT(StreamResource, collapse),
     .also = FIELD_AT(StreamResource, has_collapse)},
    {.name = "read", .kind = FIELD_MAP, .table = &READ_TABLE},
    {.name = "deletes", .kind = FIELD_OWN, .read = read_deletes},
    {.name = "snapshot", .kind = FIELD_WORD, .at = FIELD_AT(StreamResource, snapshot), .words = BASELINE_WORDS},
    {.name = "onDrift", .kind = FIELD_OWN, .read = read_on_drift},
    {.name = "checks", .kind = FIELD_LATER},
    {.name = "alerts", .kind = FIELD_LATER},
};
static const FieldTable STREAM_TABLE = FIELD_TABLE(STREAM_FIELDS);

/* A cursor without sync: incremental would be read as "incremental" by a person and as full_refresh by the program. */
static bool check_cursor(const FieldSite *site, const StreamResource *stream, Err *err)
{
    static const char *const ONLY[] = {"cursor", "overlap"};
    bool incremental = stream->has_sync && stream->sync == SYNC_INCREMENTAL;
    if (incremental && stream->cursor == NULL) {
        FieldPath step = {site->path, "cursor", 0};
        config_error(err, &node_get(site->node, "sync")->place, &step, "sync: incremental needs a cursor");
        err_fix(err, "add cursor: COLUMN, a column that grows with every change, such as updated_at");
        return false;
    }
    for (size_t i = 0; !incremental && i < sizeof ONLY / sizeof *ONLY; i++) {
        const NodeEntry *entry = node_entry(site->node, ONLY[i]);
        if (entry == NULL) continue;
        FieldPath step = {site->path, ONLY[i], 0};
        config_error(err, &entry->place, &step, "only sync: incremental has %s, and this stream's sync is %s",
                     i == 0 ? "a cursor" : "an overlap", sync_name(stream->sync));
        err_fix(err, "add sync: incremental, or take %s out", ONLY[i]);
        return false;
    }
    return true;
}

static bool check_changes(const FieldSite *site, const StreamResource *stream, Err *err)
{
    SyncMode sync = stream->has_sync ? stream->sync : SYNC_FULL_REFRESH;
    const NodeEntry *snapshot = sync == SYNC_CDC ? NULL : node_entry(site->node, "snapshot");
    if (snapshot == NULL) return true;
    FieldPath step = {site->path, "snapshot", 0};
    config_error(err, &snapshot->place, &step, "sync: %s has no snapshot", sync_name(sync));
    err_fix(err, "take it out: it belongs to sync: cdc");
    return false;
}

static bool read_stream(const FieldSite *site, StreamResource *stream, Err *err)
{
    *stream = (StreamResource){.place = site->node->place};
    if (site->node->kind != NODE_MAP) {
        field_wrong(site, "a stream (a map with a name)", err);
        if (site->node->kind == NODE_TEXT) err_fix(err, "write - name: \"%.60s\"", site->node->text);
        return false;
    }
    return fields_read(&STREAM_TABLE, site, stream, err) && check_cursor(site, stream, err) &&
           check_changes(site, stream, err) && deletes_check(site, stream, err);
}

/* One stream under one of its names, for finding two with the same. */
typedef struct Named {
    const char *name;
    int index;
} Named;

static int compare_named(const void *a, const void *b)
{
    const Named *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order != 0 ? order : left->index - right->index;
}

/* The first stream (in the file's order) whose name an earlier one has; -1 when there is none. */
static int find_repeat(Named *named, int count, int *earlier)
{
    int repeat = -1;
    if (count > 1) qsort(named, (size_t)count, sizeof *named, compare_named);
    for (int i = 1; i < count; i++) {
        if (strcmp(named[i - 1].name, named[i].name) != 0 || (repeat >= 0 && repeat <= named[i].index)) continue;
        *earlier = named[i - 1].index;
        repeat = named[i].index;
    }
    return repeat;
}

static bool repeated(const FieldSite *site, const StreamResource *streams, int repeat, int earlier, const char *field,
                     const char *name, const char *what, Err *err)
{
    FieldPath item = {site->path, NULL, repeat}, step = {&item, field, 0};
    const Node *value = node_get(site->node->items[repeat], field);
    char where[PLACE_TEXT_MAX];
    place_text(&streams[earlier].place, where);
    return config_error(err, &value->place, &step, "%s \"%.80s\" is taken by streams[%d] (%s)", what, name, earlier,
                        where);
}

static bool check_repeats(const FieldSite *site, const StreamResource *streams, int count, Err *err)
{
    Named *named = arena_array(site->arena, Named, count);
    int earlier = 0, plain = 0;
    for (int i = 0; i < count; i++)
        named[i] = (Named){streams[i].name, i};
    int repeat = find_repeat(named, count, &earlier);
    if (repeat >= 0) {
        repeated(site, streams, repeat, earlier, "name", streams[repeat].name, "the stream name", err);
        err_fix(err, "list each stream once");
        return false;
    }
    /* What a pattern stands for is known when the catalog is. */
    for (int i = 0; i < count; i++)
        if (!is_glob(streams[i].name))
            named[plain++] = (Named){streams[i].as != NULL ? streams[i].as : streams[i].name, i};
    repeat = find_repeat(named, plain, &earlier);
    if (repeat < 0) return true;
    bool own = streams[repeat].as != NULL;
    repeated(site, streams, repeat, earlier, own ? "as" : "name", own ? streams[repeat].as : streams[repeat].name,
             "the destination table", err);
    err_fix(err, "give one of the two another table with as: TABLE");
    return false;
}

bool streams_read(const FieldSite *site, PipelineResource *pipeline, Err *err)
{
    const Node *node = site->node;
    pipeline->all_streams = node->kind == NODE_TEXT && strcmp(node->text, "*") == 0;
    if (pipeline->all_streams) return true;
    if (!field_expect(site, NODE_LIST, "a list of streams, or \"*\" for all tables", err)) return false;
    if (node->count == 0) {
        config_error(err, &node->place, site->path, "the list is empty");
        err_fix(err, "name at least one stream, or write \"*\" for all tables");
        return false;
    }
    StreamResource *streams = arena_array(site->arena, StreamResource, node->count);
    for (int i = 0; i < node->count; i++) {
        FieldPath step = {site->path, NULL, i};
        FieldSite item = {site->arena, node->items[i], &step};
        if (!read_stream(&item, &streams[i], err)) return false;
    }
    pipeline->streams = streams;
    pipeline->stream_count = node->count;
    return check_repeats(site, streams, node->count, err);
}
