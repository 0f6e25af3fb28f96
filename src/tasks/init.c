#include "tasks/init.h"

#include "base/buf.h"
#include "config/resource.h"
#include "config/secrets.h"
#include "connectors/connector.h"
#include "tasks/init_choose.h"

#include <ctype.h>

enum { NAME_MAX_BYTES = 40, YAML_MAX_BYTES = 64 * 1024 * 1024 };

/* One end of the pipeline. */
typedef struct Side {
    const char *name; /* of the connection */
    const Connector *connector;
    ConfigEntry config;  /* the one entry, with its real value */
    const char *written; /* as the file says it */
} Side;

/* ---- names ---------------------------------------------------------------------------------------------------------
 */

/* A resource's name out of any text: lower case, dashes. */
static const char *name_from(const char *text, size_t length, const char *fallback, Arena *arena)
{
    char *name = arena_alloc(arena, length + 1);
    size_t used = 0;
    for (size_t i = 0; i < length && used < NAME_MAX_BYTES; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x80 && isalnum(c))
            name[used++] = (char)tolower(c);
        else if (used > 0 && name[used - 1] != '-')
            name[used++] = '-';
    }
    while (used > 0 && name[used - 1] == '-')
        used--;
    name[used] = '\0';
    return used == 0 ? fallback : name;
}

/* What a URL, with its password hidden, is about: the database of a server, or the file without its extension. */
static const char *name_of_url(const char *url, const char *fallback, Arena *arena)
{
    const char *rest = strchr(url, ':') + 1;
    if (strncmp(rest, "//", 2) == 0) {
        const char *at = strrchr(rest, '@');
        const char *authority = at == NULL ? rest + 2 : at + 1;
        rest = strchr(authority, '/');
        if (rest == NULL) return fallback;
    }
    size_t length = strcspn(rest, "?#");
    const char *start = rest;
    for (size_t i = 0; i < length; i++)
        if (rest[i] == '/' && i + 1 < length) start = rest + i + 1;
    length -= (size_t)(start - rest);
    const char *dot = memrchr(start, '.', length);
    if (dot != NULL && dot > start) length = (size_t)(dot - start);
    return name_from(start, length, fallback, arena);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

static bool check_name(const char *name, Err *err)
{
    size_t length = strlen(name);
    bool good = length > 0 && length <= NAME_MAX_BYTES && name[0] != '-' && name[length - 1] != '-';
    for (size_t i = 0; good && i < length; i++)
        good = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') || name[i] == '-';
    if (good) return true;
    err_set(err, ERR_USAGE, "--name \"%s\" is not a resource's name", name);
    err_fix(err, "use lower-case letters, digits and dashes, at most %d, e.g. shop-orders", NAME_MAX_BYTES);
    return false;
}

static const char *variable_of(const char *connection, Arena *arena)
{
    char *name = arena_printf(arena, "%s%s_URL", isdigit((unsigned char)connection[0]) ? "_" : "", connection);
    for (char *p = name; *p != '\0'; p++)
        *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
    return name;
}

/* ---- the two ends
 * ---------------------------------------------------------------------------------------------------- */

static const char *schemes_known(Arena *arena)
{
    const char *list = "";
    for (int i = 0; connector_at(i) != NULL; i++)
        if (connector_at(i)->url_schemes[0] != NULL)
            list = arena_printf(arena, "%s%s%s:…", list, list[0] == '\0' ? "" : ", ", connector_at(i)->url_schemes[0]);
    return list;
}

static bool has_key(const Connector *connector, const char *name)
{
    for (const ConfigKey *key = connector->keys; key != NULL && key->name != NULL; key++)
        if (strcmp(key->name, name) == 0) return true;
    return false;
}

/* "sqlite:shop.db" and "sqlite:///var/shop.db" name files; connectors of files take a path. */
static ConfigEntry entry_of(const Connector *connector, const char *url)
{
    const char *rest = strchr(url, ':') + 1;
    bool host = strncmp(rest, "//", 2) == 0 && rest[2] != '/';
    if (has_key(connector, "path") && !host)
        return (ConfigEntry){.key = "path", .value = strncmp(rest, "//", 2) == 0 ? rest + 2 : rest};
    return (ConfigEntry){.key = "url", .value = url};
}

static bool find_side(const char *option, const char *url, Arena *arena, Side *side, Err *err)
{
    side->connector = connector_by_url(url);
    if (side->connector == NULL) {
        err_set(err, ERR_USAGE, "%s %s: no connector knows this kind of URL", option, secret_hide_url(url, arena));
        err_fix(err, "known are %s", schemes_known(arena));
        return false;
    }
    side->config = entry_of(side->connector, url);
    return true;
}

/* A password stays out of the file: the entry becomes a placeholder. */
static void write_entry(Side *side, const char *url, Arena *arena, InitResult *result)
{
    const char *hidden = secret_hide_url(url, arena);
    side->written = side->config.value;
    if (strcmp(hidden, url) == 0) return;
    InitVariable *variable = &result->variables[result->variable_count++];
    *variable = (InitVariable){.name = variable_of(side->name, arena), .hidden = hidden};
    side->written = arena_printf(arena, "${%s}", variable->name);
}

static bool name_sides(const InitSpec *spec, Arena *arena, Side *from, Side *to, InitResult *result, Err *err)
{
    if (spec->name != NULL && !check_name(spec->name, err)) return false;
    const char *base = name_of_url(secret_hide_url(spec->from, arena), "source", arena);
    from->name = ends_with(base, "-db") ? base : arena_printf(arena, "%s-db", base);
    to->name = name_of_url(secret_hide_url(spec->to, arena), "warehouse", arena);
    if (strcmp(from->name, to->name) == 0) to->name = arena_printf(arena, "%s-copy", to->name);
    result->name = spec->name;
    if (result->name == NULL)
        result->name = ends_with(base, "-db") ? arena_strndup(arena, base, strlen(base) - 3) : base;
    write_entry(from, spec->from, arena, result);
    write_entry(to, spec->to, arena, result);
    return true;
}

/* ---- the source's catalog
 * -------------------------------------------------------------------------------------------- */

/* Where the source has no estimate the rows are counted: the choice of the sync depends on them. */
static bool count_table(const InitSpec *spec, const Side *from, Session *session, CatalogTable *table, Arena *arena,
                        bool *counted, Err *err)
{
    *counted = false;
    if (table->estimated_rows >= 0 || table->column_count == 0 || table->kind == TABLE_VIEW ||
        table->kind == TABLE_FOREIGN)
        return true;
    Schema schema = {.fields = arena_array(arena, Field, table->column_count), .count = table->column_count};
    for (int i = 0; i < table->column_count; i++)
        schema.fields[i] = (Field){table->columns[i].name, table->columns[i].type, table->columns[i].nullable};
    ReadSpec read = {
        .stream = table_stream_name(table, arena),
        .table = table,
        .schema = &schema,
        .sync = SYNC_FULL_REFRESH,
        .stop = spec->stop,
    };
    *counted = from->connector->source->count(session, &read, &table->estimated_rows, err);
    return *counted;
}

static bool count_tables(const InitSpec *spec, const Side *from, Session *session, Catalog *catalog, Arena *arena,
                         bool **counted, Err *err)
{
    *counted = arena_array(arena, bool, catalog->count + 1);
    for (int i = 0; i < catalog->count; i++)
        if (!count_table(spec, from, session, &catalog->tables[i], arena, &(*counted)[i], err)) return false;
    return true;
}

static bool read_catalog(const InitSpec *spec, const Side *from, Arena *arena, Catalog *catalog, bool **counted,
                         Err *err)
{
    ConnectorConfig config = {.connection = from->name, .entries = &from->config, .count = 1};
    OpenSpec open = {
        .config = &config,
        .role = ROLE_SOURCE,
        .read_only = true,
        .application = "openetl init",
        .stop = spec->stop,
    };
    Session *session;
    const ConnectorOps *ops = from->connector->ops;
    if (!ops->open(&open, &session, err)) return false;
    bool ok = ops->discover(session, spec->tables, spec->table_count, arena, catalog, err) &&
              count_tables(spec, from, session, catalog, arena, counted, err);
    ops->close(session);
    for (int i = 0; ok && i < spec->table_count; i++) {
        if (catalog_find(catalog, spec->tables[i]) != NULL) continue;
        err_set(err, ERR_SOURCE_MISSING, "the source has no table \"%s\"", spec->tables[i]);
        err_fix(err, "leave --table out to take all tables");
        ok = false;
    }
    return ok;
}

/* ---- the file
 * -------------------------------------------------------------------------------------------------------- */

static void put_connection(Buf *out, const Side *side, Arena *arena)
{
    buf_printf(out,
               "apiVersion: openetl.io/v1alpha1\nkind: Connection\nmetadata: { name: %s }\nspec:\n  connector: %s\n"
               "  config: { %s: %s }\n---\n",
               side->name, side->connector->name, side->config.key, yaml_quote(side->written, true, arena));
}

static const char *namespace_of(const char *name, Arena *arena)
{
    char *text = arena_strdup(arena, name);
    for (char *p = text; *p != '\0'; p++)
        if (*p == '-') *p = '_';
    return text;
}

static void put_pipeline(Buf *out, const InitSpec *spec, const Side *from, const Side *to, const Catalog *catalog,
                         const bool *counted, Arena *arena, InitResult *result)
{
    const char *write = to->connector->capabilities.overwrites ? "overwrite" : "append";
    buf_printf(out,
               "apiVersion: openetl.io/v1alpha1\nkind: Pipeline\nmetadata: { name: %s }\nspec:\n"
               "  # schedule: { every: 1h }   # absent: it runs by hand, with openetl run %s\n"
               "  source:\n    ref: %s\n    streams:\n",
               result->name, result->name, from->name);
    InitChooser chooser = {
        .source = from->connector,
        .destination = to->connector,
        .catalog = catalog,
        .counted = counted,
        .named = spec->table_count > 0,
        .arena = arena,
    };
    for (int i = 0; i < catalog->count; i++)
        result->stream_count += init_put_stream(&chooser, &catalog->tables[i], out);
    if (result->stream_count == 0) buf_puts(out, "      []   # nothing to read yet\n");
    buf_printf(out,
               "  # %s: each full refresh %s.\n"
               "  destination: { ref: %s, namespace: %s, write: %s }\n",
               write,
               strcmp(write, "overwrite") == 0 ? "replaces the table when its read ends" : "adds its copy of the table",
               to->name, yaml_quote(namespace_of(result->name, arena), false, arena), write);
}

bool init_make(const InitSpec *spec, Arena *arena, InitResult *result, Err *err)
{
    Side from = {0}, to = {0};
    Catalog catalog = {0};
    bool *counted = NULL;
    *result = (InitResult){0};
    if (!find_side("--from", spec->from, arena, &from, err) || !find_side("--to", spec->to, arena, &to, err))
        return false;
    if (from.connector->source == NULL)
        return err_set(err, ERR_USAGE, "--from: connector %s cannot be read from", from.connector->name);
    if (to.connector->destination == NULL)
        return err_set(err, ERR_USAGE, "--to: connector %s cannot be written to", to.connector->name);
    if (!name_sides(spec, arena, &from, &to, result, err) || !read_catalog(spec, &from, arena, &catalog, &counted, err))
        return false;
    Buf out;
    buf_init(&out, YAML_MAX_BYTES);
    buf_printf(&out, "# Written by: openetl init. Read it, change it, then: openetl plan -f FILE\n");
    put_connection(&out, &from, arena);
    put_connection(&out, &to, arena);
    put_pipeline(&out, spec, &from, &to, &catalog, counted, arena, result);
    result->yaml = arena_strndup(arena, buf_text(&out), out.length);
    buf_release(&out);
    return true;
}
