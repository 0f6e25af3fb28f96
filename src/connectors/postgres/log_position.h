/* A place in the change log as saved text, with all that is needed to refuse it elsewhere:
 *
 *   {"v":1,"lsn":"0/1A2B3C8","system":"7312…","timeline":1,"database":16384,"slot":"openetl_shop","publication":"openetl_shop",
 *    "made":"16390.742","tables":{"orders":"16401.16410"}}
 *
 * lsn: every transaction whose commit lies before it was given. system, timeline, database: whose log. made: the
 * publication's object id and the transaction that last changed its row. tables: each stream's table and its membership in
 * the publication, by object ids: a table dropped and made again, or taken out and put back, has others. */
#ifndef OPENETL_CONNECTORS_POSTGRES_LOG_POSITION_H
#define OPENETL_CONNECTORS_POSTGRES_LOG_POSITION_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

typedef struct PgLogTable {
    const char *stream;
    const char *ids; /* "table.membership"; the membership is 0 where the publication is of all tables */
} PgLogTable;

typedef struct PgLogPosition {
    uint64_t lsn;
    const char *system;
    int64_t timeline;
    int64_t database;
    const char *slot, *publication;
    const char *made;
    PgLogTable *tables;
    int table_count;
} PgLogPosition;

/* "0/1A2B3C8"; `out` of 24 bytes is enough. */
const char *lsn_format(uint64_t lsn, char *out, size_t size);
bool lsn_parse(const char *text, uint64_t *lsn);

/* STATE_POSITION_INVALID when the text is none. */
bool log_position_parse(const char *text, Arena *arena, PgLogPosition *position, Err *err);
/* The place alone; false when the text is none. */
bool log_position_lsn(const char *text, uint64_t *lsn);
const char *log_position_table(const PgLogPosition *position, const char *stream); /* its ids; NULL: not captured */
/* What log_position_put writes behind the place: the same for all positions of a log. */
const char *log_position_rest(const PgLogPosition *position, Arena *arena);
void log_position_put(uint64_t lsn, const char *rest, Buf *out);

#endif
