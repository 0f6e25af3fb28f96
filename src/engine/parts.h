/* The parts of a read that several feeds share, as the lane keeps them: how far each is staged, and so what is left to
 * read after a commit. Owned by the lane's thread. */
#ifndef OPENETL_ENGINE_PARTS_H
#define OPENETL_ENGINE_PARTS_H

#include "engine/position.h"

typedef struct Part {
    char *text;
    char *after; /* the last resume point in it; NULL: its start */
    int64_t rows_since_mark;
    bool repeats; /* a forced barrier committed rows after `after` */
    bool done;
} Part;

typedef struct PartSet {
    Part *items;
    int count;
    bool resumable; /* in a later snapshot; otherwise the read has no resume point before its end */
} PartSet;

/* Copies the texts. */
PartSet *parts_new(const PositionPart *parts, int count, bool resumable);
void parts_free(PartSet *set); /* NULL is fine */
/* Takes a resume point of part `number` (1 …): `after` is malloc'ed and taken; `end`: the part is read. Returns the rows that
 * stood behind its last one. */
int64_t parts_mark(PartSet *set, int number, char *after, bool end);
/* After a forced barrier: what was given since the resume points comes again after a crash. */
void parts_forced(PartSet *set);
bool parts_repeat(const PartSet *set);
/* What a commit saves; its texts are those of the set. */
void parts_position(const PartSet *set, Arena *arena, Position *position);

#endif
