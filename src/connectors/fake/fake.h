/* The fake room: a scripted source and three destinations that keep JSON lines, for tests of the engine alone. What
 * they do is real (rows are read, staged, made durable and committed with their position); only where the rows come
 * from and go to is made up. See README.md for the script and the journal.
 *
 * A session belongs to one thread at a time; sessions of several threads and processes may share a directory: the
 * journal is locked while it is read on and appended to. */
#ifndef OPENETL_CONNECTORS_FAKE_FAKE_H
#define OPENETL_CONNECTORS_FAKE_FAKE_H

#include "connectors/connector.h"
#include "connectors/fake/journal.h"

#include <jansson.h>

/* ---- the script -------------------------------------------------------------------------------------------------- */

enum { RESUME_NEVER = -1 };

typedef struct FakeTable {
    const CatalogTable *catalog;
    const json_t *rows;   /* array of arrays, a value a column; NULL: made up */
    int64_t row_count;    /* of rows, or made up */
    int64_t resume_every; /* rows between resume points; RESUME_NEVER */
    int64_t repeat_rows;  /* superset: rows before the resume point that come again */
    int64_t batch_rows;   /* 0: as asked for */
    int64_t fail_at_row;  /* 1 is the first; 0: never */
    ErrCode fail_code;    /* SOURCE_LOST unless the script says otherwise */
    int64_t delay_ms;     /* before each batch */
    const char *bound;    /* upper bound of incremental reads, or NULL */
    int64_t count;        /* what count() answers; -1: the truth */
} FakeTable;

typedef struct FakeScript {
    const char *path;  /* absolute */
    const char *clock; /* upper bound of date and timestamp cursors, or NULL */
    Catalog catalog;
    FakeTable *tables; /* as catalog.tables */
} FakeScript;

/* Reads and checks a script; an unknown field or a wrong type is SOURCE_QUERY. Everything belongs to the arena. */
bool fake_script_read(const char *path, Arena *arena, FakeScript *script, Err *err);
const FakeTable *fake_script_find(const FakeScript *script, const CatalogTable *table);

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

/* One stream's rows between stage() and commit(). */
typedef struct FakeStaging {
    int fd; /* an unnamed file of row lines, or -1 */
    int64_t rows;
} FakeStaging;

typedef struct FakeSession {
    Arena arena;
    SessionRole role;
    bool read_only;
    FakeScript script; /* source */
    const char *dir;   /* destination; absolute where it exists */
    bool acknowledges; /* rows are visible as soon as they are staged */
    Journal journal;   /* of the namespace at hand */
    const DestStream *streams;
    FakeStaging *staging; /* a stream of streams */
    int stream_count;
} FakeSession;

static inline FakeSession *fake_session(Session *session)
{
    return (FakeSession *)session;
}

extern const SourceOps FAKE_SOURCE;
extern const DestOps FAKE_DESTINATION;

#endif
