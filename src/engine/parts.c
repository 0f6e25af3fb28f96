#include "engine/parts.h"

#include <stdlib.h>
#include <string.h>

PartSet *parts_new(const PositionPart *parts, int count, bool resumable)
{
    PartSet *set = mem_zero(sizeof *set);
    set->items = mem_zero(sizeof *set->items * (size_t)(count + 1));
    set->count = count;
    set->resumable = resumable;
    for (int i = 0; i < count; i++)
        set->items[i] = (Part){.text = mem_strdup(parts[i].part), .after = mem_strdup(parts[i].after)};
    return set;
}

void parts_free(PartSet *set)
{
    if (set == NULL) return;
    for (int i = 0; i < set->count; i++) {
        free(set->items[i].text);
        free(set->items[i].after);
    }
    free(set->items);
    free(set);
}

int64_t parts_mark(PartSet *set, int number, char *after, bool end)
{
    Part *part = &set->items[number - 1];
    int64_t rows = part->rows_since_mark;
    free(part->after);
    part->after = after;
    part->rows_since_mark = 0;
    part->repeats = false;
    part->done = end;
    return rows;
}

void parts_forced(PartSet *set)
{
    for (int i = 0; i < set->count; i++) {
        Part *part = &set->items[i];
        part->repeats = part->repeats || part->rows_since_mark > 0;
        part->rows_since_mark = 0;
    }
}

bool parts_repeat(const PartSet *set)
{
    for (int i = 0; i < set->count; i++)
        if (set->items[i].repeats) return true;
    return false;
}

void parts_position(const PartSet *set, Arena *arena, Position *position)
{
    position->source = NULL;
    /* Parts without a row are no progress: the read begins anew, so that an empty one is proved empty as a whole. */
    position->parted = set->resumable && position->rows > 0;
    position->part_count = 0;
    if (!position->parted) return;
    PositionPart *left = arena_array(arena, PositionPart, set->count + 1);
    for (int i = 0; i < set->count; i++)
        if (!set->items[i].done)
            left[position->part_count++] = (PositionPart){.part = set->items[i].text, .after = set->items[i].after};
    position->parts = left;
}
