#include "config/node.h"

#include "config/secrets.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

/* Copies text into out, at most `room` bytes without the NUL, cut at a whole UTF-8 character and marked "...". Control
 * characters become \xNN, quotes stay. */
static size_t show(const char *text, char *out, size_t room)
{
    size_t used = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
        char escaped[8];
        size_t width = 1;
        if (*p < 0x20 || *p == 0x7f) {
            width = (size_t)snprintf(escaped, sizeof escaped, "\\x%02X", *p);
            p++;
        } else {
            size_t bytes = 1;
            while ((p[bytes] & 0xC0) == 0x80 && bytes < 4)
                bytes++;
            memcpy(escaped, p, bytes);
            width = bytes;
            p += bytes;
        }
        if (used + width > room - 3) {
            memcpy(out + used, "...", 3);
            used += 3;
            break;
        }
        memcpy(out + used, escaped, width);
        used += width;
    }
    out[used] = '\0';
    return used;
}

void shown_text(const char *text, char out[SHOWN_MAX])
{
    Arena arena;
    arena_init(&arena);
    show(secret_hide_url(text, &arena), out, SHOWN_MAX - 1);
    arena_release(&arena);
}

void node_shown(const Node *node, char out[SHOWN_MAX + 16])
{
    char text[SHOWN_MAX];
    switch (node->kind) {
    case NODE_NULL:
        snprintf(out, SHOWN_MAX + 16, "nothing");
        break;
    case NODE_BOOL:
        snprintf(out, SHOWN_MAX + 16, "%s", node->boolean ? "true" : "false");
        break;
    case NODE_INT:
    case NODE_REAL:
        shown_text(node->text, text);
        snprintf(out, SHOWN_MAX + 16, "the number %s", text);
        break;
    case NODE_TEXT:
        shown_text(node->text, text);
        snprintf(out, SHOWN_MAX + 16, "the text \"%s\"", text);
        break;
    case NODE_LIST:
        snprintf(out, SHOWN_MAX + 16, "a list");
        break;
    case NODE_MAP:
        snprintf(out, SHOWN_MAX + 16, "a map");
        break;
    }
}

static bool plain_word(const char *key)
{
    if (*key == '\0') return false;
    for (const char *p = key; *p != '\0'; p++)
        if (!isalnum((unsigned char)*p) && *p != '_' && *p != '-') return false;
    return true;
}

/* Returns the bytes used. Steps that no longer fit are left out: a message's end matters more than a path's. */
static size_t path_append(const FieldPath *path, char *out, size_t size)
{
    if (path == NULL) return 0;
    size_t used = path_append(path->parent, out, size);
    char step[80];
    if (path->key == NULL) {
        snprintf(step, sizeof step, "[%d]", path->index);
    } else {
        char key[48];
        show(path->key, key, sizeof key - 1);
        if (plain_word(path->key))
            snprintf(step, sizeof step, "%s%s", used > 0 ? "." : "", key);
        else
            snprintf(step, sizeof step, "[\"%s\"]", key);
    }
    size_t length = strlen(step);
    if (used + length + 1 > size) return used;
    memcpy(out + used, step, length + 1);
    return used + length;
}

void path_text(const FieldPath *path, char out[PATH_TEXT_MAX])
{
    out[0] = '\0';
    path_append(path, out, PATH_TEXT_MAX);
}

void place_text(const Place *place, char out[PLACE_TEXT_MAX])
{
    enum { NAME_MAX_SHOWN = 200 };
    size_t length = strlen(place->file);
    const char *cut = length > NAME_MAX_SHOWN ? "..." : "";
    const char *name = place->file + (length > NAME_MAX_SHOWN ? length - NAME_MAX_SHOWN : 0);
    if (place->line == 0)
        snprintf(out, PLACE_TEXT_MAX, "%s%s", cut, name);
    else
        snprintf(out, PLACE_TEXT_MAX, "%s%s:%d:%d", cut, name, place->line, place->column);
}

bool config_error(Err *err, const Place *place, const FieldPath *path, const char *format, ...)
{
    char where[PLACE_TEXT_MAX], field[PATH_TEXT_MAX], what[sizeof err->message];
    place_text(place, where);
    path_text(path, field);
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return err_set(err, ERR_RESOURCE_INVALID, "%s: %s%s%s", where, field, field[0] != '\0' ? ": " : "", what);
}

const NodeEntry *node_entry(const Node *map, const char *key)
{
    if (map == NULL || map->kind != NODE_MAP) return NULL;
    for (int i = 0; i < map->count; i++)
        if (strcmp(map->entries[i].key, key) == 0) return &map->entries[i];
    return NULL;
}

const Node *node_get(const Node *map, const char *key)
{
    const NodeEntry *entry = node_entry(map, key);
    return entry == NULL ? NULL : entry->value;
}

static bool all_of(const char *text, const char *set)
{
    return *text != '\0' && text[strspn(text, set)] == '\0';
}

static bool integer_of(const char *digits, int base, bool negative, int64_t *integer)
{
    errno = 0;
    char *end;
    uintmax_t value = strtoumax(digits, &end, base);
    uintmax_t most = negative ? (uintmax_t)INT64_MAX + 1 : (uintmax_t)INT64_MAX;
    if (errno != 0 || *end != '\0' || value > most) return false;
    *integer = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

static bool is_real(const char *text)
{
    const char *p = text;
    if (*p == '-' || *p == '+') p++;
    if (strcmp(p, ".inf") == 0 || strcmp(p, ".Inf") == 0 || strcmp(p, ".INF") == 0) return true;
    size_t whole = strspn(p, "0123456789");
    p += whole;
    size_t part = 0;
    if (*p == '.') {
        part = strspn(p + 1, "0123456789");
        p += 1 + part;
    }
    if (whole + part == 0) return false;
    if (*p != 'e' && *p != 'E') return *p == '\0';
    p++;
    if (*p == '-' || *p == '+') p++;
    return all_of(p, "0123456789");
}

NodeKind scalar_kind(const char *text, int64_t *integer)
{
    static const char *const NOTHING[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < sizeof NOTHING / sizeof *NOTHING; i++)
        if (strcmp(text, NOTHING[i]) == 0) return NODE_NULL;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) return NODE_BOOL;
    bool negative = text[0] == '-';
    const char *digits = text + (negative || text[0] == '+' ? 1 : 0);
    if (all_of(digits, "0123456789")) {
        if (digits[0] == '0' && digits[1] != '\0') return NODE_TEXT;
        return integer_of(digits, 10, negative, integer) ? NODE_INT : NODE_REAL;
    }
    if (strncmp(text, "0x", 2) == 0 && all_of(text + 2, "0123456789abcdefABCDEF"))
        return integer_of(text + 2, 16, false, integer) ? NODE_INT : NODE_REAL;
    if (strncmp(text, "0o", 2) == 0 && all_of(text + 2, "01234567"))
        return integer_of(text + 2, 8, false, integer) ? NODE_INT : NODE_REAL;
    if (strcmp(text, ".nan") == 0 || strcmp(text, ".NaN") == 0 || strcmp(text, ".NAN") == 0) return NODE_REAL;
    return is_real(text) ? NODE_REAL : NODE_TEXT;
}

static json_t *scalar_to_json(const Node *node, bool as_text)
{
    if (node->kind == NODE_NULL) return json_null();
    if (as_text || node->kind == NODE_TEXT) return json_string(node->text);
    if (node->kind == NODE_BOOL) return json_boolean(node->boolean);
    if (node->kind == NODE_INT) return json_integer(node->integer);
    /* NaN and infinities have no JSON number; their text keeps them. */
    json_t *real = json_real(strtod(node->text, NULL));
    return real != NULL ? real : json_string(node->text);
}

json_t *node_to_json(const Node *node, bool scalars_as_text)
{
    json_t *json;
    int failed = 0;
    if (node->kind == NODE_LIST) {
        json = json_array();
        for (int i = 0; i < node->count; i++)
            failed |= json_array_append_new(json, node_to_json(node->items[i], scalars_as_text));
    } else if (node->kind == NODE_MAP) {
        json = json_object();
        for (int i = 0; i < node->count; i++)
            failed |=
                json_object_set_new(json, node->entries[i].key, node_to_json(node->entries[i].value, scalars_as_text));
    } else {
        json = scalar_to_json(node, scalars_as_text);
    }
    if (json == NULL || failed != 0) BUG("a node cannot be shown as JSON");
    return json;
}

typedef struct FromJson {
    Place place;
    Arena *arena;
    int count;
} FromJson;

static bool convert(FromJson *from, const json_t *json, int depth, const Node **node, Err *err);

static bool convert_items(FromJson *from, const json_t *json, int depth, Node *list, Err *err)
{
    list->kind = NODE_LIST;
    list->count = (int)json_array_size(json);
    list->items = arena_array(from->arena, const Node *, list->count);
    for (int i = 0; i < list->count; i++)
        if (!convert(from, json_array_get(json, (size_t)i), depth + 1, &list->items[i], err)) return false;
    return true;
}

static bool convert_entries(FromJson *from, const json_t *json, int depth, Node *map, Err *err)
{
    map->kind = NODE_MAP;
    map->entries = arena_array(from->arena, NodeEntry, json_object_size(json));
    const char *key;
    json_t *value;
    /* The library's iteration takes a non-const object but changes nothing. */
    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        NodeEntry *entry = &map->entries[map->count++];
        entry->key = arena_strdup(from->arena, key);
        entry->place = from->place;
        if (!convert(from, value, depth + 1, &entry->value, err)) return false;
    }
    return true;
}

static bool convert(FromJson *from, const json_t *json, int depth, const Node **node, Err *err)
{
    if (depth > NODE_MAX_DEPTH || ++from->count > NODE_MAX_COUNT)
        return config_error(err, &from->place, NULL, "the JSON is too deep or too large for a resource");
    Node *made = arena_new(from->arena, Node);
    made->place = from->place;
    *node = made;
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return convert_entries(from, json, depth, made, err);
    case JSON_ARRAY:
        return convert_items(from, json, depth, made, err);
    case JSON_STRING:
        made->kind = NODE_TEXT;
        made->text = arena_strndup(from->arena, json_string_value(json), json_string_length(json));
        if (strlen(made->text) != json_string_length(json))
            return config_error(err, &from->place, NULL, "text may not hold a NUL character");
        return true;
    case JSON_INTEGER:
        made->kind = NODE_INT;
        made->integer = json_integer_value(json);
        made->text = arena_printf(from->arena, "%" PRId64, made->integer);
        return true;
    case JSON_REAL:
        made->kind = NODE_REAL;
        made->text = arena_printf(from->arena, "%.17g", json_real_value(json));
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
        made->kind = NODE_BOOL;
        made->boolean = json_is_true(json);
        made->text = made->boolean ? "true" : "false";
        return true;
    case JSON_NULL:
        made->kind = NODE_NULL;
        made->text = "";
        return true;
    }
    BUG("an unknown kind of JSON value");
}

bool node_from_json(const json_t *json, Place place, Arena *arena, const Node **node, Err *err)
{
    FromJson from = {.place = place, .arena = arena};
    return convert(&from, json, 0, node, err);
}
