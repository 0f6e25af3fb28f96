#include "config/yaml.h"

#include <yaml.h>

typedef struct Builder {
    const char *file;
    const char *text;
    size_t length;
    Arena *arena;
    yaml_parser_t parser;
    yaml_event_t event;
    bool has_event;
    int count;
} Builder;

/* A list that grows; its end copy belongs to the arena. */
typedef struct Grown {
    void *items;
    int count;
    int capacity;
} Grown;

static void *grow(Grown *grown, size_t size)
{
    if (grown->count == grown->capacity) {
        grown->capacity = grown->capacity == 0 ? 8 : grown->capacity * 2;
        grown->items = mem_realloc(grown->items, (size_t)grown->capacity * size);
    }
    return (char *)grown->items + (size_t)grown->count++ * size;
}

static void *settle(Grown *grown, size_t size, Arena *arena)
{
    void *items = arena_memdup(arena, grown->items, (size_t)grown->count * size);
    free(grown->items);
    return items;
}

static Place place_at(const Builder *b, yaml_mark_t mark)
{
    return (Place){b->file, (int)mark.line + 1, (int)mark.column + 1};
}

/* The byte at a place, or 0: libyaml counts characters, the text is bytes. */
static char byte_at(const Builder *b, yaml_mark_t mark)
{
    size_t line = 0, i = 0;
    for (; i < b->length && line < mark.line; i++)
        if (b->text[i] == '\n') line++;
    for (size_t column = 0; i < b->length && column < mark.column; column++) {
        i++;
        while (i < b->length && ((unsigned char)b->text[i] & 0xC0) == 0x80)
            i++;
    }
    return i < b->length ? b->text[i] : '\0';
}

/* libyaml's reader names a byte offset, not a line. */
static bool reader_error(const Builder *b, Err *err)
{
    Place place = {b->file, 1, 1};
    for (size_t i = 0; i < b->parser.problem_offset && i < b->length; i++) {
        if (b->text[i] == '\n') {
            place.line++;
            place.column = 1;
        } else if (((unsigned char)b->text[i] & 0xC0) != 0x80) {
            place.column++;
        }
    }
    int value = b->parser.problem_value;
    if (strcmp(b->parser.problem, "control characters are not allowed") == 0) {
        config_error(err, &place, NULL, "a control character (U+%04X) is not allowed", (unsigned)value);
        err_fix(err, "write it as an escape in double quotes, such as \"\\u%04X\", or take it out", (unsigned)value);
    } else {
        if (value >= 0)
            config_error(err, &place, NULL, "not valid UTF-8: %s (0x%02X)", b->parser.problem, (unsigned)value);
        else
            config_error(err, &place, NULL, "not valid UTF-8: %s", b->parser.problem);
        err_fix(err, "save the file as UTF-8");
    }
    return false;
}

static const char *syntax_fix(const char *problem, const char *context, char at)
{
    if (at == '\t') return "indent with spaces";
    if (strstr(context, "alias") != NULL) return "put quotes around text that begins with *: \"*\"";
    if (strstr(context, "anchor") != NULL) return "put quotes around text that begins with &";
    if (strstr(problem, "mapping values are not allowed") != NULL)
        return "check the indentation, and put quotes around text that holds \": \"";
    if (strstr(problem, "cannot start any token") != NULL)
        return "put quotes around text that begins with this character";
    if (strstr(context, "quoted scalar") != NULL) return "close the quotes, and double those inside";
    return "check the indentation, the brackets and the quotes around this place";
}

static bool syntax_error(const Builder *b, Err *err)
{
    const yaml_parser_t *parser = &b->parser;
    if (parser->error == YAML_READER_ERROR) return reader_error(b, err);
    const char *problem = parser->problem != NULL ? parser->problem : "it cannot be read";
    const char *context = parser->context != NULL ? parser->context : "";
    Place place = place_at(b, parser->problem_mark);
    char at = byte_at(b, parser->problem_mark);
    if (at == '\t' && strstr(problem, "cannot start any token") != NULL)
        config_error(err, &place, NULL, "not valid YAML: a tab cannot be used for indentation");
    else if (*context != '\0' && parser->context_mark.line != parser->problem_mark.line)
        config_error(err, &place, NULL, "not valid YAML: %s, %s that begins at line %zu", problem, context,
                     parser->context_mark.line + 1);
    else
        config_error(err, &place, NULL, "not valid YAML: %s%s%s", problem, *context != '\0' ? ", " : "", context);
    err_fix(err, "%s", syntax_fix(problem, context, at));
    return false;
}

/* What the event before pointed to is gone after this. */
static bool next_event(Builder *b, Err *err)
{
    if (b->has_event) yaml_event_delete(&b->event);
    b->has_event = yaml_parser_parse(&b->parser, &b->event) != 0;
    return b->has_event || syntax_error(b, err);
}

/* Anchors would let one place's text act in another, and their expansion has no bound; tags change what a value is. */
static bool refuse_extras(const Builder *b, const FieldPath *path, const char *anchor, const char *tag, Err *err)
{
    Place place = place_at(b, b->event.start_mark);
    if (anchor != NULL) {
        config_error(err, &place, path, "an anchor (&%.40s) is not supported", anchor);
        err_fix(err, "write the value out where it is used; put quotes around text that begins with &");
        return false;
    }
    if (tag != NULL) {
        config_error(err, &place, path, "a tag (%.40s) is not supported", tag);
        err_fix(err, "take the tag out; put quotes around what is text");
        return false;
    }
    return true;
}

static bool take_text(const Builder *b, const FieldPath *path, const char **text, Err *err)
{
    const char *value = (const char *)b->event.data.scalar.value;
    size_t length = b->event.data.scalar.length;
    if (memchr(value, '\0', length) != NULL) {
        Place place = place_at(b, b->event.start_mark);
        return config_error(err, &place, path, "text may not hold a NUL character");
    }
    *text = arena_strndup(b->arena, value, length);
    return true;
}

static bool build(Builder *b, const FieldPath *path, int depth, const Node **node, Err *err);

static bool build_scalar(Builder *b, const FieldPath *path, Node *node, Err *err)
{
    if (!refuse_extras(b, path, (const char *)b->event.data.scalar.anchor, (const char *)b->event.data.scalar.tag, err))
        return false;
    if (!take_text(b, path, &node->text, err)) return false;
    bool plain = b->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->kind = plain ? scalar_kind(node->text, &node->integer) : NODE_TEXT;
    node->boolean = node->kind == NODE_BOOL && node->text[0] == 't';
    return true;
}

static bool build_list(Builder *b, const FieldPath *path, int depth, Node *node, Err *err)
{
    if (!refuse_extras(b, path, (const char *)b->event.data.sequence_start.anchor,
                       (const char *)b->event.data.sequence_start.tag, err))
        return false;
    node->kind = NODE_LIST;
    Grown items = {0};
    bool built;
    while ((built = next_event(b, err)) && b->event.type != YAML_SEQUENCE_END_EVENT) {
        const Node *item;
        FieldPath step = {path, NULL, items.count};
        if (!(built = build(b, &step, depth + 1, &item, err))) break;
        *(const Node **)grow(&items, sizeof(Node *)) = item;
    }
    node->count = items.count;
    node->items = settle(&items, sizeof(Node *), b->arena);
    return built;
}

static int compare_entries(const void *a, const void *b)
{
    const NodeEntry *left = *(const NodeEntry *const *)a, *right = *(const NodeEntry *const *)b;
    int order = strcmp(left->key, right->key);
    if (order != 0) return order;
    return left < right ? -1 : left > right; /* in one array: the file's order */
}

/* Sorted rather than compared pair by pair: a file may hold very many keys. */
static bool refuse_duplicates(const Node *map, const FieldPath *path, Err *err)
{
    if (map->count < 2) return true;
    const NodeEntry **sorted = mem_alloc(sizeof *sorted * (size_t)map->count);
    for (int i = 0; i < map->count; i++)
        sorted[i] = &map->entries[i];
    qsort(sorted, (size_t)map->count, sizeof *sorted, compare_entries);
    const NodeEntry *first = NULL, *second = NULL;
    for (int i = 1; i < map->count; i++) {
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) != 0 || (second != NULL && second <= sorted[i])) continue;
        first = sorted[i - 1];
        second = sorted[i];
    }
    free(sorted);
    if (second == NULL) return true;
    FieldPath step = {path, second->key, 0};
    char where[PLACE_TEXT_MAX];
    place_text(&first->place, where);
    config_error(err, &second->place, &step, "duplicate key; it stands first at %s", where);
    err_fix(err, "keep one of the two");
    return false;
}

static bool build_key(Builder *b, const FieldPath *path, NodeEntry *entry, Err *err)
{
    entry->place = place_at(b, b->event.start_mark);
    if (b->event.type != YAML_SCALAR_EVENT)
        return config_error(err, &entry->place, path, "a key must be plain text, not a list, a map or an alias");
    if (!refuse_extras(b, path, (const char *)b->event.data.scalar.anchor, (const char *)b->event.data.scalar.tag, err))
        return false;
    return take_text(b, path, &entry->key, err);
}

static bool build_map(Builder *b, const FieldPath *path, int depth, Node *node, Err *err)
{
    if (!refuse_extras(b, path, (const char *)b->event.data.mapping_start.anchor,
                       (const char *)b->event.data.mapping_start.tag, err))
        return false;
    node->kind = NODE_MAP;
    Grown entries = {0};
    bool built;
    while ((built = next_event(b, err)) && b->event.type != YAML_MAPPING_END_EVENT) {
        NodeEntry entry = {0};
        if (!(built = build_key(b, path, &entry, err) && next_event(b, err))) break;
        FieldPath step = {path, entry.key, 0};
        if (!(built = build(b, &step, depth + 1, &entry.value, err))) break;
        *(NodeEntry *)grow(&entries, sizeof(NodeEntry)) = entry;
    }
    node->count = entries.count;
    node->entries = settle(&entries, sizeof(NodeEntry), b->arena);
    return built && refuse_duplicates(node, path, err);
}

static bool build(Builder *b, const FieldPath *path, int depth, const Node **node, Err *err)
{
    Place place = place_at(b, b->event.start_mark);
    if (depth > NODE_MAX_DEPTH) return config_error(err, &place, NULL, "nested deeper than %d levels", NODE_MAX_DEPTH);
    if (++b->count > NODE_MAX_COUNT)
        return config_error(err, &place, NULL, "the file holds more than %d values", NODE_MAX_COUNT);
    Node *made = arena_new(b->arena, Node);
    made->place = place;
    *node = made;
    if (b->event.type == YAML_SCALAR_EVENT) return build_scalar(b, path, made, err);
    if (b->event.type == YAML_SEQUENCE_START_EVENT) return build_list(b, path, depth, made, err);
    if (b->event.type == YAML_MAPPING_START_EVENT) return build_map(b, path, depth, made, err);
    config_error(err, &place, path, "an alias (*%.40s) is not supported", (const char *)b->event.data.alias.anchor);
    err_fix(err, "write the value out, or put quotes around text that begins with *: \"*%.40s\"",
            (const char *)b->event.data.alias.anchor);
    return false;
}

/* Nothing at all between two document marks, which is not the same as a written null. */
static bool document_is_empty(const Builder *b)
{
    return b->event.type == YAML_SCALAR_EVENT && b->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           b->event.data.scalar.length == 0 && b->event.data.scalar.anchor == NULL && b->event.data.scalar.tag == NULL;
}

static bool build_documents(Builder *b, Grown *roots, Err *err)
{
    for (;;) {
        if (!next_event(b, err)) return false;
        if (b->event.type == YAML_STREAM_END_EVENT) return true;
        if (b->event.type != YAML_DOCUMENT_START_EVENT) continue; /* the stream's start, a document's end */
        if (!next_event(b, err)) return false;
        if (document_is_empty(b)) continue;
        const Node *root;
        if (!build(b, NULL, 0, &root, err)) return false;
        *(const Node **)grow(roots, sizeof(Node *)) = root;
    }
}

static bool refuse_utf16(const char *file, const char *text, size_t length, Err *err)
{
    if (length < 2 || (memcmp(text, "\xFF\xFE", 2) != 0 && memcmp(text, "\xFE\xFF", 2) != 0)) return true;
    config_error(err, &(Place){file, 1, 1}, NULL, "the file is UTF-16, not UTF-8");
    err_fix(err, "save the file as UTF-8");
    return false;
}

bool yaml_parse(const char *file, const char *text, size_t length, Arena *arena, YamlDocuments *documents, Err *err)
{
    Builder b = {.file = arena_strdup(arena, file), .arena = arena};
    if (length > YAML_MAX_BYTES)
        return config_error(err, &(Place){file, 0, 0}, NULL, "larger than the %d MiB a resource file may have",
                            YAML_MAX_BYTES / (1024 * 1024));
    if (!refuse_utf16(file, text, length, err)) return false;
    if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
        length -= 3;
    }
    b.text = text;
    b.length = length;
    if (yaml_parser_initialize(&b.parser) == 0) BUG("libyaml cannot be started");
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, length);
    Grown roots = {0};
    bool built = build_documents(&b, &roots, err);
    documents->count = roots.count;
    documents->items = settle(&roots, sizeof(Node *), arena);
    if (b.has_event) yaml_event_delete(&b.event);
    yaml_parser_delete(&b.parser);
    return built;
}
