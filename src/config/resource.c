#include "config/resource.h"

#include "base/fs.h"
#include "base/hash.h"
#include "config/kinds.h"
#include "config/secrets.h"
#include "config/values.h"
#include "config/yaml.h"

#include <unistd.h>

static const char *const API_VERSIONS[] = {"openetl.io/v1alpha1", NULL};
static const char *const KIND_WORDS[] = {"Connection", "Pipeline", NULL}; /* in the order of ResourceKind */
static const char *const LATER_KINDS[] = {"Mart", NULL};
static const char *const PLURALS[] = {"connections", "pipelines"};

const char *resource_kind_name(ResourceKind kind)
{
    return KIND_WORDS[kind];
}
const char *resource_kind_plural(ResourceKind kind)
{
    return PLURALS[kind];
}

typedef struct SizeInfo {
    const char *name, *text;
    int cpus;
    int64_t gib;
} SizeInfo;

static const SizeInfo SIZES[] = {
    [JOB_S] = {"s", "1 vCPU, 2 GiB", 1, 2},
    [JOB_M] = {"m", "2 vCPU, 4 GiB", 2, 4},
    [JOB_L] = {"l", "4 vCPU, 8 GiB", 4, 8},
    [JOB_XL] = {"xl", "8 vCPU, 16 GiB", 8, 16},
};

const char *job_size_name(JobSize size)
{
    return SIZES[size].name;
}
const char *job_size_text(JobSize size)
{
    return SIZES[size].text;
}
int job_size_cpus(JobSize size)
{
    return SIZES[size].cpus;
}
int job_size_readers(JobSize size)
{
    return SIZES[size].cpus > 2 ? SIZES[size].cpus : 2;
}
int64_t job_size_bytes(JobSize size)
{
    return SIZES[size].gib << 30;
}

/* What a document says before its spec is read. */
typedef struct Document {
    int kind;
    const char *name;
    const Node *spec;
} Document;

static bool read_api_version(const FieldSite *site, void *target, Err *err)
{
    (void)target;
    int index;
    return field_word(site, API_VERSIONS, NULL, NULL, &index, err);
}

static bool read_name(const FieldSite *site, void *target, Err *err)
{
    Document *document = target;
    if (!field_text(site, "a name (text)", &document->name, err)) return false;
    if (resource_name_valid(document->name)) return true;
    char shown[SHOWN_MAX];
    shown_text(document->name, shown);
    config_error(err, &site->node->place, site->path, "\"%s\" is not a name", shown);
    err_fix(err, "use lower-case letters, digits and dashes, a letter or digit at both ends, at most 63 characters");
    return false;
}

/* Kept in the stored resource for people and their tools; nothing here depends on them. */
static bool read_labels(const FieldSite *site, void *target, Err *err)
{
    (void)target;
    const Node *map = site->node;
    if (!field_expect(site, NODE_MAP, "a map of texts", err)) return false;
    for (int i = 0; i < map->count; i++) {
        FieldPath step = {site->path, map->entries[i].key, 0};
        FieldSite value = {site->arena, map->entries[i].value, &step};
        if (!field_expect(&value, NODE_TEXT, "text", err)) return false;
    }
    return true;
}

static bool read_spec(const FieldSite *site, void *target, Err *err)
{
    if (!field_expect(site, NODE_MAP, "a map of fields", err)) return false;
    ((Document *)target)->spec = site->node;
    return true;
}

static const FieldRule METADATA_FIELDS[] = {
    {.name = "name", .kind = FIELD_OWN, .required = true, .read = read_name},
    {.name = "labels", .kind = FIELD_OWN, .read = read_labels},
};
static const FieldTable METADATA_TABLE = FIELD_TABLE(METADATA_FIELDS);

static const FieldRule DOCUMENT_FIELDS[] = {
    {.name = "apiVersion", .kind = FIELD_OWN, .required = true, .read = read_api_version},
    {.name = "kind",
     .kind = FIELD_WORD,
     .required = true,
     .at = FIELD_AT(Document, kind),
     .words = KIND_WORDS,
     .later_words = LATER_KINDS,
     .instead = "take the document out"},
    {.name = "metadata", .kind = FIELD_MAP, .required = true, .table = &METADATA_TABLE},
    {.name = "spec", .kind = FIELD_OWN, .required = true, .read = read_spec},
};
static const FieldTable DOCUMENT_TABLE = FIELD_TABLE(DOCUMENT_FIELDS);

static bool refuse_text(const char *text, const Place *place, const FieldPath *path, Err *err)
{
    if (!secret_has_placeholder(text)) return true;
    config_error(err, place, path,
                 "a placeholder (${…}) is allowed in a Connection's config values and alerts.webhook only");
    err_fix(err, "write the value itself here");
    return false;
}

/* `allowed` is the one map whose values may hold placeholders, or whose reader looks at them itself; its keys may not. */
static bool refuse_placeholders(const Node *node, const Node *allowed, const FieldPath *path, Err *err)
{
    if (node->kind == NODE_TEXT) return refuse_text(node->text, &node->place, path, err);
    for (int i = 0; node->kind == NODE_LIST && i < node->count; i++) {
        FieldPath step = {path, NULL, i};
        if (!refuse_placeholders(node->items[i], allowed, &step, err)) return false;
    }
    for (int i = 0; node->kind == NODE_MAP && i < node->count; i++) {
        const NodeEntry *entry = &node->entries[i];
        FieldPath step = {path, entry->key, 0};
        if (!refuse_text(entry->key, &entry->place, &step, err)) return false;
        if (node != allowed && !refuse_placeholders(entry->value, allowed, &step, err)) return false;
    }
    return true;
}

static void drop_json(void *json)
{
    json_decref(json);
}

/* What was written, without comments and without defaults. Config values are kept as text, as they are used: 5432 and
 * "5432" are the same setting, and 1.10 stays 1.10. */
static json_t *canonical_of(const Node *root, ResourceKind kind, Arena *arena)
{
    json_t *json = node_to_json(root, false);
    arena_defer(arena, drop_json, json);
    const Node *config = kind == RESOURCE_CONNECTION ? node_get(node_get(root, "spec"), "config") : NULL;
    if (config != NULL && json_object_set_new(json_object_get(json, "spec"), "config", node_to_json(config, true)) != 0)
        BUG("a connection's config cannot be shown as JSON");
    return json;
}

static bool read_document(const Node *root, Arena *arena, Resource *resource, Err *err)
{
    Document document = {0};
    FieldSite site = {arena, root, NULL};
    if (!field_expect(&site, NODE_MAP, "a resource (apiVersion, kind, metadata, spec)", err)) return false;
    if (!fields_read(&DOCUMENT_TABLE, &site, &document, err)) return false;
    *resource = (Resource){.kind = (ResourceKind)document.kind, .name = document.name, .place = root->place};
    bool connection = resource->kind == RESOURCE_CONNECTION;
    const Node *allowed = node_get(document.spec, connection ? "config" : "alerts");
    if (!refuse_placeholders(root, allowed, NULL, err)) return false;
    FieldPath step = {NULL, "spec", 0};
    FieldSite spec = {arena, document.spec, &step};
    if (connection ? !connection_read(&spec, &resource->connection, err)
                   : !pipeline_read(&spec, &resource->pipeline, err))
        return false;
    resource->canonical = canonical_of(root, resource->kind, arena);
    return true;
}

static int compare_resources(const void *a, const void *b)
{
    const Resource *left = *(const Resource *const *)a, *right = *(const Resource *const *)b;
    if (left->kind != right->kind) return left->kind < right->kind ? -1 : 1;
    int order = strcmp(left->name, right->name);
    if (order != 0) return order;
    return left < right ? -1 : left > right; /* in one array: the order they were read in */
}

static bool refuse_same(const ResourceSet *set, Err *err)
{
    if (set->count < 2) return true;
    const Resource **sorted = mem_alloc(sizeof *sorted * (size_t)set->count);
    for (int i = 0; i < set->count; i++)
        sorted[i] = &set->items[i];
    qsort(sorted, (size_t)set->count, sizeof *sorted, compare_resources);
    const Resource *first = NULL, *second = NULL;
    for (int i = 1; i < set->count; i++) {
        const Resource *one = sorted[i - 1], *two = sorted[i];
        if (one->kind != two->kind || strcmp(one->name, two->name) != 0 || (second != NULL && second <= two)) continue;
        first = one;
        second = two;
    }
    free(sorted);
    if (second == NULL) return true;
    char where[PLACE_TEXT_MAX];
    place_text(&first->place, where);
    config_error(err, &second->place, NULL, "%s %s is defined twice; it stands first at %s",
                 resource_kind_name(second->kind), second->name, where);
    err_fix(err, "keep one of the two, or rename one");
    return false;
}

/* Appends; the same resource twice is the caller's to look for, once all files are read. */
static bool parse_into(const char *file, const char *text, size_t length, Arena *arena, ResourceSet *set, Err *err)
{
    YamlDocuments documents;
    if (!yaml_parse(file, text, length, arena, &documents, err)) return false;
    if (documents.count == 0) {
        config_error(err, &(Place){file, 0, 0}, NULL, "there is no resource in it");
        err_fix(err, "write one (apiVersion, kind, metadata, spec), or leave the file out");
        return false;
    }
    Resource *items = arena_array(arena, Resource, set->count + documents.count);
    if (set->count > 0) memcpy(items, set->items, sizeof *items * (size_t)set->count);
    set->items = items;
    for (int i = 0; i < documents.count; i++) {
        if (!read_document(documents.items[i], arena, &items[set->count], err)) return false;
        set->count++;
    }
    return true;
}

bool resources_parse(const char *file, const char *text, size_t length, Arena *arena, ResourceSet *set, Err *err)
{
    *set = (ResourceSet){0};
    return parse_into(file, text, length, arena, set, err) && refuse_same(set, err);
}

static bool read_one(const char *path, Arena *arena, ResourceSet *set, Err *err)
{
    char *text;
    size_t length;
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "<stdin>" : path;
    bool read = standard ? fs_read_fd(STDIN_FILENO, name, YAML_MAX_BYTES, arena, &text, &length, err)
                         : fs_read_file(path, YAML_MAX_BYTES, arena, &text, &length, err);
    return read && parse_into(name, text, length, arena, set, err);
}

/* Hidden files are left out: editors keep their locks and copies there. */
static bool is_resource_file(const char *name)
{
    const char *dot = strrchr(name, '.');
    return name[0] != '.' && dot != NULL && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

static bool read_directory(const char *path, Arena *arena, ResourceSet *set, Err *err)
{
    char **names;
    int count, files = 0;
    if (!fs_list(path, arena, &names, &count, err)) return false;
    for (int i = 0; i < count; i++) {
        const char *slash = path[strlen(path) - 1] == '/' ? "" : "/";
        const char *file = arena_printf(arena, "%s%s%s", path, slash, names[i]);
        if (!is_resource_file(names[i]) || fs_is_dir(file)) continue;
        if (!read_one(file, arena, set, err)) return false;
        files++;
    }
    if (files > 0) return true;
    config_error(err, &(Place){path, 0, 0}, NULL, "there is no *.yaml or *.yml file in this directory");
    err_fix(err, "directories below it are not read; give each with its own -f");
    return false;
}

bool resources_read(const char *const *paths, int count, Arena *arena, ResourceSet *set, Err *err)
{
    *set = (ResourceSet){0};
    for (int i = 0; i < count; i++) {
        bool read =
            fs_is_dir(paths[i]) ? read_directory(paths[i], arena, set, err) : read_one(paths[i], arena, set, err);
        if (!read) return false;
    }
    return refuse_same(set, err);
}

bool resource_from_json(const json_t *canonical, Arena *arena, Resource *resource, Err *err)
{
    const Node *root;
    return node_from_json(canonical, (Place){"stored", 0, 0}, arena, &root, err) &&
           read_document(root, arena, resource, err);
}

const Resource *resource_find(const ResourceSet *set, ResourceKind kind, const char *name)
{
    for (int i = 0; i < set->count; i++)
        if (set->items[i].kind == kind && strcmp(set->items[i].name, name) == 0) return &set->items[i];
    return NULL;
}

void resource_version(const Resource *resource, char out[13])
{
    char *text = json_dumps(resource->canonical, JSON_SORT_KEYS | JSON_COMPACT);
    if (text == NULL) BUG("a resource cannot be written as JSON");
    char hex[33];
    hash128_hex(hash128(text, strlen(text)), hex);
    free(text);
    memcpy(out, hex, 12);
    out[12] = '\0';
}
