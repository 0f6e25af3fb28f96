/* The rows a read covers, as SQL: filter, cursor range and null rule, the same for read, bound and count. */
#ifndef OPENETL_CONNECTORS_SQLITE_RANGE_H
#define OPENETL_CONNECTORS_SQLITE_RANGE_H

#include "connectors/sqlite/conn.h"

typedef struct Range {
    const ReadSpec *spec;
    bool by_cursor; /* an incremental read */
    Type type;      /* of the cursor, as delivered */
    bool moments;   /* a date or timestamp: its bounds are numbers, compared by the value and not by the text */
    int64_t lower, upper;
    char floor[24]; /* moments with a lower bound: no text of a row in range sorts below it; "": none */
    bool only_text; /* range_settle found no number in the cursor */
} Range;

/* STATE_POSITION_INVALID when a bound's text cannot be read. */
bool range_init(Range *range, const ReadSpec *spec, Err *err);
/* Within the read's transaction: where the cursor has an index, looks whether it holds numbers, so that range_sql can
 * be answered from the index's end alone. */
bool range_settle(Range *range, LiteSession *session, Err *err);
/* Appends " FROM main.t WHERE …", with the parameters :lower, :upper and :floor. `scan`: without an index. */
void range_sql(const Range *range, bool scan, Buf *sql);
/* Just the filter: " FROM main.t WHERE (filter)". */
void range_filter_sql(const ReadSpec *spec, Buf *sql);
bool range_bind(const Range *range, LiteSession *session, sqlite3_stmt *stmt, Err *err);
/* Refuses a filter that is not one whole condition on the table's columns. */
bool range_check_filter(LiteSession *session, const ReadSpec *spec, Err *err);
/* The SQL function that range_sql uses. */
int range_register(sqlite3 *db);

#endif
