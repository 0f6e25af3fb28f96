/* What a transaction sent before it was known to commit: records in the order they came, in memory up to a bound, beyond
 * that in a file that has no name (or lost it at once), so that nothing is left of it however the process ends.
 *
 * Records are written, then read once from the start. Thread: one at a time. */
#ifndef OPENETL_CONNECTORS_POSTGRES_SPILL_H
#define OPENETL_CONNECTORS_POSTGRES_SPILL_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

enum { SPILL_MEMORY_BYTES = 256 * 1024 };

typedef struct Spill {
    const char *directory; /* borrowed */
    Buf window;            /* written: what is not in the file yet; read: a part of it */
    size_t at;             /* read: where in the window */
    uint64_t taken;        /* read: bytes of the file, so far */
    int fd;                /* -1: there is no file */
} Spill;

void spill_init(Spill *spill, const char *directory);
void spill_release(Spill *spill);
bool spill_add(Spill *spill, const void *bytes, size_t length, Err *err);
/* From here on it is read, from the first record. */
bool spill_rewind(Spill *spill, Err *err);
/* The next record, valid until the next call; *bytes NULL at the end. */
bool spill_next(Spill *spill, const uint8_t **bytes, size_t *length, Err *err);

#endif
