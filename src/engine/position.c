#include "engine/position.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { POSITION_VERSION = 1, POSITION_PARTED = 2 }; /* an older program must not take one in parts for a whole one */

static void set_text(json_t *object, const char *key, const char *text)
{
    if (text != NULL) json_object_set_new(object, key, json_string(text));
}

static void set_parts(json_t *object, const Position *position)
{
    if (!position->parted) return;
    json_t *list = json_array();
    for (int i = 0; i < position->part_count; i++) {
        json_t *part = json_object();
        set_text(part, "part", position->parts[i].part);
        set_text(part, "after", position->parts[i].after);
        json_array_append_new(list, part);
    }
    json_object_set_new(object, "parts", list);
}

char *position_to_text(const Position *position, Arena *arena)
{
    json_t *object = json_object();
    json_object_set_new(object, "v", json_integer(position->parted ? POSITION_PARTED : POSITION_VERSION));
    set_text(object, "owner", position->owner);
    json_object_set_new(object, "sync", json_integer((json_int_t)position->sync));
    json_object_set_new(object, "generation", json_integer((json_int_t)position->generation));
    json_object_set_new(object, "read", json_integer((json_int_t)position->read));
    json_object_set_new(object, "complete", json_boolean(position->complete));
    set_text(object, "source", position->source);
    set_text(object, "lower", position->lower);
    set_text(object, "upper", position->upper);
    if (position->upper_inclusive) json_object_set_new(object, "upper_inclusive", json_true());
    set_text(object, "watermark", position->watermark);
    set_text(object, "highest", position->highest);
    if (position->repeats) json_object_set_new(object, "repeats", json_true());
    if (position->left > 0) json_object_set_new(object, "left", json_integer(position->left));
    json_object_set_new(object, "rows", json_integer(position->rows));
    json_object_set_new(object, "seq", json_integer((json_int_t)position->seq));
    set_parts(object, position);
    char *dumped = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    if (dumped == NULL) BUG("a position holds text that is not UTF-8");
    char *text = arena_strdup(arena, dumped);
    free(dumped);
    return text;
}

static const char *get_text(const json_t *object, const char *key, Arena *arena)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? NULL : arena_strdup(arena, text);
}

static bool get_parts(const json_t *object, Arena *arena, Position *position)
{
    const json_t *list = json_object_get(object, "parts");
    if (list == NULL) return true;
    position->parted = true;
    position->part_count = (int)json_array_size(list);
    PositionPart *parts = arena_array(arena, PositionPart, position->part_count + 1);
    for (int i = 0; i < position->part_count; i++) {
        const json_t *part = json_array_get(list, (size_t)i);
        parts[i] = (PositionPart){.part = get_text(part, "part", arena), .after = get_text(part, "after", arena)};
        if (parts[i].part == NULL) return false;
    }
    position->parts = parts;
    return json_is_array(list);
}

static bool version_known(const json_t *object)
{
    json_int_t version = json_integer_value(json_object_get(object, "v"));
    bool parted = json_object_get(object, "parts") != NULL;
    return version == (parted ? POSITION_PARTED : POSITION_VERSION);
}

static bool not_readable(Err *err)
{
    err_set(err, ERR_STATE_POSITION_INVALID, "the position saved in _openetl_commits is not one this version reads");
    err_fix(err, "use the openetl version that wrote it, or start the stream again: openetl state reset PIPELINE "
                 "--stream STREAM");
    return false;
}

bool position_from_text(const char *text, Arena *arena, Position *position, Err *err)
{
    json_error_t problem;
    json_t *object = json_loads(text, 0, &problem);
    if (!json_is_object(object) || !version_known(object)) {
        json_decref(object);
        return not_readable(err);
    }
    *position = (Position){
        .owner = get_text(object, "owner", arena),
        .sync = (uint64_t)json_integer_value(json_object_get(object, "sync")),
        .generation = (uint64_t)json_integer_value(json_object_get(object, "generation")),
        .read = (uint64_t)json_integer_value(json_object_get(object, "read")),
        .complete = json_is_true(json_object_get(object, "complete")),
        .source = get_text(object, "source", arena),
        .lower = get_text(object, "lower", arena),
        .upper = get_text(object, "upper", arena),
        .upper_inclusive = json_is_true(json_object_get(object, "upper_inclusive")),
        .watermark = get_text(object, "watermark", arena),
        .highest = get_text(object, "highest", arena),
        .repeats = json_is_true(json_object_get(object, "repeats")),
        .left = (int)json_integer_value(json_object_get(object, "left")),
        .rows = json_integer_value(json_object_get(object, "rows")),
        .seq = (uint64_t)json_integer_value(json_object_get(object, "seq")),
    };
    bool ok = get_parts(object, arena, position);
    json_decref(object);
    return ok || not_readable(err);
}
