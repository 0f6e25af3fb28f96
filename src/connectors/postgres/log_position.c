#include "connectors/postgres/log_position.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char HEAD[] = "{\"v\":1,\"lsn\":\"";

const char *lsn_format(uint64_t lsn, char *out, size_t size)
{
    snprintf(out, size, "%X/%X", (unsigned)(lsn >> 32), (unsigned)lsn);
    return out;
}

bool lsn_parse(const char *text, uint64_t *lsn)
{
    static const char HEX[] = "0123456789ABCDEFabcdef";
    size_t high = strspn(text, HEX), low = text[high] == '/' ? strspn(text + high + 1, HEX) : 0;
    if (high < 1 || high > 8 || low < 1 || low > 8) return false;
    *lsn = strtoull(text, NULL, 16) << 32 | strtoull(text + high + 1, NULL, 16);
    return true;
}

static bool lsn_of(const char *text, uint64_t *lsn, const char **end)
{
    size_t head = sizeof HEAD - 1;
    if (strncmp(text, HEAD, head) != 0 || !lsn_parse(text + head, lsn)) return false;
    *end = text + head + strcspn(text + head, "\"");
    return strncmp(*end, "\",", 2) == 0;
}

bool log_position_lsn(const char *text, uint64_t *lsn)
{
    const char *end;
    return text != NULL && lsn_of(text, lsn, &end);
}

static bool take_tables(const json_t *json, Arena *arena, PgLogPosition *position)
{
    const char *stream;
    json_t *ids;
    if (!json_is_object(json)) return false;
    position->tables = arena_array(arena, PgLogTable, json_object_size(json));
    json_object_foreach((json_t *)(uintptr_t)json, stream, ids)
    {
        if (!json_is_string(ids)) return false;
        position->tables[position->table_count++] =
            (PgLogTable){arena_strdup(arena, stream), arena_strdup(arena, json_string_value(ids))};
    }
    return true;
}

static bool take_all(const char *text, const json_t *json, Arena *arena, PgLogPosition *position)
{
    const char *names[] = {"system", "slot", "publication", "made"},
               **to[] = {&position->system, &position->slot, &position->publication, &position->made};
    const json_t *timeline = json_object_get(json, "timeline"), *database = json_object_get(json, "database");
    if (!log_position_lsn(text, &position->lsn) || !json_is_integer(timeline) || !json_is_integer(database))
        return false;
    position->timeline = json_integer_value(timeline);
    position->database = json_integer_value(database);
    for (int i = 0; i < 4; i++) {
        const char *value = json_string_value(json_object_get(json, names[i]));
        if (value == NULL) return false;
        *to[i] = arena_strdup(arena, value);
    }
    return json_object_size(json) == 9 && take_tables(json_object_get(json, "tables"), arena, position);
}

bool log_position_parse(const char *text, Arena *arena, PgLogPosition *position, Err *err)
{
    *position = (PgLogPosition){0};
    json_t *json = json_loads(text, 0, NULL);
    bool ok = json_is_object(json) && take_all(text, json, arena, position);
    json_decref(json);
    return ok ||
           err_set(err, ERR_STATE_POSITION_INVALID, "the saved position is not a place in a change log: %.200s", text);
}

const char *log_position_table(const PgLogPosition *position, const char *stream)
{
    for (int i = 0; i < position->table_count; i++)
        if (strcmp(position->tables[i].stream, stream) == 0) return position->tables[i].ids;
    return NULL;
}

const char *log_position_rest(const PgLogPosition *position, Arena *arena)
{
    json_t *tables = json_object();
    for (int i = 0; i < position->table_count; i++)
        json_object_set_new(tables, position->tables[i].stream, json_string(position->tables[i].ids));
    json_t *json =
        json_pack("{s:s, s:I, s:I, s:s, s:s, s:s, s:o}", "system", position->system, "timeline",
                  (json_int_t)position->timeline, "database", (json_int_t)position->database, "slot", position->slot,
                  "publication", position->publication, "made", position->made, "tables", tables);
    if (json == NULL) BUG("a log position with a name that is not UTF-8");
    char *text = json_dumps(json, JSON_COMPACT);
    const char *rest = arena_printf(arena, "\",%s", text + 1);
    free(text);
    json_decref(json);
    return rest;
}

void log_position_put(uint64_t lsn, const char *rest, Buf *out)
{
    char text[24];
    buf_puts(out, HEAD);
    buf_puts(out, lsn_format(lsn, text, sizeof text));
    buf_puts(out, rest);
}
