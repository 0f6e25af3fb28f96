#include "config/fields.h"

#include "base/buf.h"
#include "base/clock.h"
#include "config/suggest.h"
#include "config/values.h"

/* More columns than any table has; names are compared pair by pair. */
enum { LIST_MAX = 5000 };

static void *slot(void *target, size_t at)
{
    return (char *)target + (at - 1);
}

bool field_wrong(const FieldSite *site, const char *what, Err *err)
{
    char found[SHOWN_MAX + 16];
    node_shown(site->node, found);
    return config_error(err, &site->node->place, site->path, "expected %s, found %s", what, found);
}

bool field_expect(const FieldSite *site, NodeKind kind, const char *what, Err *err)
{
    return site->node->kind == kind || field_wrong(site, what, err);
}

bool field_text(const FieldSite *site, const char *what, const char **text, Err *err)
{
    if (site->node->kind != NODE_TEXT) {
        field_wrong(site, what, err);
        if (site->node->kind == NODE_INT || site->node->kind == NODE_REAL || site->node->kind == NODE_BOOL)
            err_fix(err, "put it in quotes if it is meant as text: \"%.60s\"", site->node->text);
        return false;
    }
    if (site->node->text[0] == '\0') return config_error(err, &site->node->place, site->path, "it is empty");
    *text = site->node->text;
    return true;
}

static int word_count(const char *const *words)
{
    int count = 0;
    while (words != NULL && words[count] != NULL)
        count++;
    return count;
}

const char *words_text(const char *const *words, const char *last_joint, Arena *arena)
{
    const char *text = "";
    int count = word_count(words);
    for (int i = 0; i < count; i++)
        text = arena_printf(arena, "%s%s%s", text, i == 0 ? "" : i + 1 < count ? ", " : last_joint, words[i]);
    return text;
}

bool field_word(const FieldSite *site, const char *const *words, const char *const *later_words, const char *instead,
                int *index, Err *err)
{
    const char *what = words_text(words, " or ", site->arena);
    const char *text = site->node->text;
    if (!field_expect(site, NODE_TEXT, what, err)) return false;
    for (*index = 0; words[*index] != NULL; (*index)++)
        if (strcmp(words[*index], text) == 0) return true;
    for (int i = 0; later_words != NULL && later_words[i] != NULL; i++) {
        if (strcmp(later_words[i], text) != 0) continue;
        config_error(err, &site->node->place, site->path, "%s is not available in this version", text);
        if (instead != NULL) err_fix(err, "%s", instead);
        return false;
    }
    char found[SHOWN_MAX + 16];
    node_shown(site->node, found);
    int count = word_count(words);
    const char *near = count > 1 ? suggest_name(text, words, count) : NULL;
    config_error(err, &site->node->place, site->path, "expected %s, found %s%s%s%s", what, found,
                 near != NULL ? "; did you mean \"" : "", near != NULL ? near : "", near != NULL ? "\"?" : "");
    err_fix(err, "write one of: %s", words_text(words, ", ", site->arena));
    return false;
}

static const char *what_of(const FieldRule *field, const char *otherwise)
{
    return field->what != NULL ? field->what : otherwise;
}

static bool read_texts(const FieldRule *field, const FieldSite *site, void *target, Err *err)
{
    const Node *list = site->node;
    if (list->kind != NODE_LIST) {
        field_wrong(site, what_of(field, "a list of texts"), err);
        if (list->kind == NODE_TEXT) err_fix(err, "write it as a list: [%.60s]", list->text);
        return false;
    }
    if (list->count == 0) return config_error(err, &list->place, site->path, "the list is empty");
    if (list->count > LIST_MAX)
        return config_error(err, &list->place, site->path, "the list holds more than %d names", LIST_MAX);
    const char **texts = arena_array(site->arena, const char *, list->count);
    for (int i = 0; i < list->count; i++) {
        FieldPath step = {site->path, NULL, i};
        FieldSite item = {site->arena, list->items[i], &step};
        if (!field_text(&item, "a name (text)", &texts[i], err)) return false;
        for (int before = 0; before < i; before++)
            if (strcmp(texts[before], texts[i]) == 0)
                return config_error(err, &list->items[i]->place, &step, "\"%.60s\" is in the list twice", texts[i]);
    }
    *(const char ***)slot(target, field->at) = texts;
    *(int *)slot(target, field->also) = list->count;
    return true;
}

static bool read_integer(const FieldRule *field, const FieldSite *site, int64_t *value, Err *err)
{
    if (!field_expect(site, NODE_INT, what_of(field, "a whole number"), err)) return false;
    *value = site->node->integer;
    if (*value >= field->least && *value <= field->most) return true;
    return config_error(err, &site->node->place, site->path, "%lld is not between %lld and %lld", (long long)*value,
                        (long long)field->least, (long long)field->most);
}

static bool read_duration(const FieldRule *field, const FieldSite *site, int64_t *us, Err *err)
{
    static const char WHAT[] = "a duration such as 90s, 10m or 1h30m";
    if (site->node->kind != NODE_TEXT || !duration_parse(site->node->text, us)) {
        field_wrong(site, WHAT, err);
        err_fix(err, "units are us, ms, s, m, h and d, without blanks");
        return false;
    }
    if (*us >= field->least) return true;
    char least[32];
    duration_format(field->least, least, sizeof least);
    return config_error(err, &site->node->place, site->path, "%.60s is shorter than %s", site->node->text, least);
}

static bool read_size(const FieldRule *field, const FieldSite *site, int64_t *bytes, Err *err)
{
    static const char WHAT[] = "a size such as 256MB, 64MiB or a number of bytes";
    bool read = site->node->kind == NODE_INT;
    if (read)
        *bytes = site->node->integer;
    else
        read = site->node->kind == NODE_TEXT && size_parse(site->node->text, bytes);
    if (!read) {
        field_wrong(site, WHAT, err);
        err_fix(err, "units are B, kB, MB, GB, TB (1000) and KiB, MiB, GiB, TiB (1024), without blanks");
        return false;
    }
    if (*bytes >= field->least) return true;
    return config_error(err, &site->node->place, site->path, "%.60s is less than %lld bytes", site->node->text,
                        (long long)field->least);
}

static bool read_int64(const FieldRule *field, const FieldSite *site, int64_t *value, Err *err)
{
    if (field->kind == FIELD_DURATION) return read_duration(field, site, value, err);
    if (field->kind == FIELD_SIZE) return read_size(field, site, value, err);
    return read_integer(field, site, value, err);
}

static bool read_later(const FieldRule *field, const FieldSite *site, const Place *key, Err *err)
{
    config_error(err, key, site->path, "not available in this version");
    err_fix(err, "%s", field->instead != NULL ? field->instead : "take the field out");
    return false;
}

static bool read_value(const FieldRule *field, const FieldSite *site, void *target, Err *err)
{
    int64_t number;
    int index;
    switch (field->kind) {
    case FIELD_TEXT:
        return field_text(site, what_of(field, "text"), (const char **)slot(target, field->at), err);
    case FIELD_TEXTS:
        return read_texts(field, site, target, err);
    case FIELD_BOOL:
        if (!field_expect(site, NODE_BOOL, "true or false", err)) return false;
        *(bool *)slot(target, field->at) = site->node->boolean;
        return true;
    case FIELD_INT:
        if (!read_integer(field, site, &number, err)) return false;
        *(int *)slot(target, field->at) = (int)number;
        return true;
    case FIELD_COUNT:
    case FIELD_DURATION:
    case FIELD_SIZE:
        return read_int64(field, site, (int64_t *)slot(target, field->at), err);
    case FIELD_WORD:
        if (!field_word(site, field->words, field->later_words, field->instead, &index, err)) return false;
        memcpy(slot(target, field->at), &index, sizeof index); /* an enum's representation is an int here */
        return true;
    case FIELD_MAP:
        return fields_read(field->table, site, target, err);
    case FIELD_OWN:
        return field->read(site, target, err);
    case FIELD_LATER:
        break;
    }
    BUG("field %s has no reader", field->name);
}

static const FieldRule *find_field(const FieldTable *table, const char *name)
{
    for (int i = 0; i < table->count; i++)
        if (strcmp(table->items[i].name, name) == 0) return &table->items[i];
    return NULL;
}

static bool unknown_field(const FieldTable *table, const NodeEntry *entry, const FieldPath *path, Arena *arena,
                          Err *err)
{
    const char **names = arena_array(arena, const char *, table->count + 1);
    int count = 0;
    for (int i = 0; i < table->count; i++)
        if (table->items[i].kind != FIELD_LATER) names[count++] = table->items[i].name;
    const char *near = suggest_name(entry->key, names, count);
    if (near != NULL)
        config_error(err, &entry->place, path, "unknown field; did you mean \"%s\"?", near);
    else
        config_error(err, &entry->place, path, "unknown field");
    err_fix(err, "valid fields here: %s", words_text(names, ", ", arena));
    return false;
}

static bool read_entry(const FieldTable *table, const FieldSite *site, const NodeEntry *entry, void *target, Err *err)
{
    FieldPath step = {site->path, entry->key, 0};
    const FieldRule *field = find_field(table, entry->key);
    if (field == NULL) return unknown_field(table, entry, &step, site->arena, err);
    FieldSite inner = {site->arena, entry->value, &step};
    if (field->kind == FIELD_LATER) return read_later(field, &inner, &entry->place, err);
    if (!read_value(field, &inner, target, err)) return false;
    if (field->also != 0 && field->kind != FIELD_TEXTS) *(bool *)slot(target, field->also) = true;
    if (field->place != 0) *(Place *)slot(target, field->place) = entry->value->place;
    return true;
}

bool fields_read(const FieldTable *table, const FieldSite *site, void *target, Err *err)
{
    if (!field_expect(site, NODE_MAP, "a map of fields", err)) return false;
    for (int i = 0; i < site->node->count; i++)
        if (!read_entry(table, site, &site->node->entries[i], target, err)) return false;
    for (int i = 0; i < table->count; i++) {
        const FieldRule *field = &table->items[i];
        if (!field->required || node_entry(site->node, field->name) != NULL) continue;
        FieldPath step = {site->path, field->name, 0};
        config_error(err, &site->node->place, &step, "a required field is missing");
        err_fix(err, "add %s", field->name);
        return false;
    }
    return true;
}
