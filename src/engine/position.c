#include "engine/position.h"

#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION_FIRST = 1, VERSION_PARTED = 2, VERSION_LATER = 3 };

typedef enum MemberKind { MEMBER_TEXT, MEMBER_NUMBER, MEMBER_FLAG } MemberKind;

/* The envelope's members, but for `v` and `parts`. Numbers are 64 bits wide in Position, signed or not. */
typedef struct Member {
    const char *name;
    MemberKind kind;
    size_t at;
    bool always; /* written also where it is zero */
    int version; /* a program knows it from this version on */
} Member;

static const Member MEMBERS[] = {
    {"owner", MEMBER_TEXT, offsetof(Position, owner), false, VERSION_FIRST},
    {"sync", MEMBER_NUMBER, offsetof(Position, sync), true, VERSION_FIRST},
    {"generation", MEMBER_NUMBER, offsetof(Position, generation), true, VERSION_FIRST},
    {"read", MEMBER_NUMBER, offsetof(Position, read), true, VERSION_FIRST},
    {"complete", MEMBER_FLAG, offsetof(Position, complete), true, VERSION_FIRST},
    {"source", MEMBER_TEXT, offsetof(Position, source), false, VERSION_FIRST},
    {"lower", MEMBER_TEXT, offsetof(Position, lower), false, VERSION_FIRST},
    {"upper", MEMBER_TEXT, offsetof(Position, upper), false, VERSION_FIRST},
    {"upper_inclusive", MEMBER_FLAG, offsetof(Position, upper_inclusive), false, VERSION_FIRST},
    {"watermark", MEMBER_TEXT, offsetof(Position, watermark), false, VERSION_FIRST},
    {"highest", MEMBER_TEXT, offsetof(Position, highest), false, VERSION_FIRST},
    {"repeats", MEMBER_FLAG, offsetof(Position, repeats), false, VERSION_FIRST},
    {"left", MEMBER_NUMBER, offsetof(Position, left), false, VERSION_FIRST},
    {"rows", MEMBER_NUMBER, offsetof(Position, rows), true, VERSION_FIRST},
    {"seq", MEMBER_NUMBER, offsetof(Position, seq), true, VERSION_FIRST},
    {"keys_at", MEMBER_NUMBER, offsetof(Position, keys_at_us), false, VERSION_LATER},
    {"set", MEMBER_TEXT, offsetof(Position, set), false, VERSION_LATER},
    {"log", MEMBER_TEXT, offsetof(Position, log), false, VERSION_LATER},
    {"ahead", MEMBER_TEXT, offsetof(Position, ahead), false, VERSION_LATER},
    {"backfill", MEMBER_TEXT, offsetof(Position, backfill), false, VERSION_LATER},
    {"cursor_type", MEMBER_TEXT, offsetof(Position, cursor_type), false, VERSION_LATER},
};
enum { MEMBER_COUNT = sizeof MEMBERS / sizeof *MEMBERS };

static const char **text_at(Position *position, const Member *member)
{
    return (const char **)(void *)((char *)position + member->at);
}
static int64_t *number_at(Position *position, const Member *member)
{
    return (int64_t *)(void *)((char *)position + member->at);
}
static bool *flag_at(Position *position, const Member *member)
{
    return (bool *)(void *)((char *)position + member->at);
}

/* ---- to text ----------------------------------------------------------------------------------------------------- */

static json_t *member_value(Position *position, const Member *member)
{
    switch (member->kind) {
    case MEMBER_TEXT: {
        const char *text = *text_at(position, member);
        return text == NULL ? NULL : json_string(text);
    }
    case MEMBER_NUMBER: {
        int64_t number = *number_at(position, member);
        return number == 0 && !member->always ? NULL : json_integer(number);
    }
    case MEMBER_FLAG: {
        bool flag = *flag_at(position, member);
        return !flag && !member->always ? NULL : json_boolean(flag);
    }
    }
    BUG("a member of no kind");
}

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
    Position from = *position;
    json_t *object = json_object(), *members = json_object();
    int version = from.parted ? VERSION_PARTED : VERSION_FIRST;
    for (int i = 0; i < MEMBER_COUNT; i++) {
        json_t *value = member_value(&from, &MEMBERS[i]);
        if (value == NULL) continue;
        json_object_set_new(members, MEMBERS[i].name, value);
        if (MEMBERS[i].version > version) version = MEMBERS[i].version;
    }
    json_object_set_new(object, "v", json_integer(version));
    json_object_update(object, members);
    json_decref(members);
    set_parts(object, position);
    char *dumped = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    if (dumped == NULL) BUG("a position holds text that is not UTF-8");
    char *text = arena_strdup(arena, dumped);
    free(dumped);
    return text;
}

/* ---- from text --------------------------------------------------------------------------------------------------- */

static const Member *find_member(const char *name)
{
    for (int i = 0; i < MEMBER_COUNT; i++)
        if (strcmp(MEMBERS[i].name, name) == 0) return &MEMBERS[i];
    return NULL;
}

static bool take_member(const Member *member, const json_t *value, Arena *arena, Position *position)
{
    switch (member->kind) {
    case MEMBER_TEXT:
        if (!json_is_string(value)) return false;
        *text_at(position, member) = arena_strdup(arena, json_string_value(value));
        return true;
    case MEMBER_NUMBER:
        if (!json_is_integer(value)) return false;
        *number_at(position, member) = json_integer_value(value);
        return true;
    case MEMBER_FLAG:
        if (!json_is_boolean(value)) return false;
        *flag_at(position, member) = json_is_true(value);
        return true;
    }
    BUG("a member of no kind");
}

static const char *get_text(const json_t *object, const char *key, Arena *arena)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? NULL : arena_strdup(arena, text);
}

static bool take_parts(const json_t *list, Arena *arena, Position *position)
{
    if (!json_is_array(list)) return false;
    position->parted = true;
    position->part_count = (int)json_array_size(list);
    PositionPart *parts = arena_array(arena, PositionPart, position->part_count + 1);
    for (int i = 0; i < position->part_count; i++) {
        const json_t *part = json_array_get(list, (size_t)i);
        parts[i] = (PositionPart){.part = get_text(part, "part", arena), .after = get_text(part, "after", arena)};
        if (parts[i].part == NULL) return false;
    }
    position->parts = parts;
    return true;
}

static bool take_members(json_t *object, Arena *arena, Position *position)
{
    const char *name;
    json_t *value;
    int needs = VERSION_FIRST;
    json_object_foreach(object, name, value)
    {
        if (strcmp(name, "v") == 0) continue;
        bool parts = strcmp(name, "parts") == 0;
        const Member *member = parts ? NULL : find_member(name);
        int version = parts ? VERSION_PARTED : member == NULL ? 0 : member->version;
        if (!parts && member == NULL) return false;
        if (!(parts ? take_parts(value, arena, position) : take_member(member, value, arena, position))) return false;
        if (version > needs) needs = version;
    }
    return json_integer_value(json_object_get(object, "v")) == needs;
}

bool position_from_text(const char *text, Arena *arena, Position *position, Err *err)
{
    json_error_t problem;
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &problem);
    *position = (Position){0};
    bool ok = json_is_object(object) && take_members(object, arena, position);
    json_decref(object);
    if (ok) return true;
    err_set(err, ERR_STATE_POSITION_INVALID, "the position saved in _openetl_commits is not one this version reads");
    err_fix(err, "use the openetl version that wrote it, or start the stream again: openetl state reset PIPELINE "
                 "--stream STREAM");
    return false;
}

Position position_copy(const Position *position, Arena *arena)
{
    Position copy = *position;
    for (int i = 0; i < MEMBER_COUNT; i++) {
        if (MEMBERS[i].kind != MEMBER_TEXT) continue;
        const char **text = text_at(&copy, &MEMBERS[i]);
        if (*text != NULL) *text = arena_strdup(arena, *text);
    }
    return copy;
}
