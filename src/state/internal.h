/* What the files of state/ share: the open store, transactions that are tried again, short SQL calls, times as text,
 * processes.
 *
 * One SQL text serves both engines. It is written for SQLite in words that PostgreSQL knows too (`INSERT … ON CONFLICT`,
 * never `INSERT OR REPLACE`); postgres.c turns `?` into `$1` and nothing else. What differs lies behind Backend.
 *
 * Every public call is one transaction:
 *
 *     Txn txn = {.state = state, .access = ACCESS_WRITE};
 *     while (txn_next(&txn, err))
 *         txn.ok = query_run(…) && …;
 *     return txn.ok;
 *
 * The body runs again when the store's server was lost in between, also when it is not known whether the transaction
 * was committed: so it must be right to do it twice. It sets its results anew each time. Times lie in the tables as
 * ISO 8601 UTC text, for people who look at them, and are microseconds in the structs; 0 is NULL. */
#ifndef OPENETL_STATE_INTERNAL_H
#define OPENETL_STATE_INTERNAL_H

#include "state/state.h"

#include <pthread.h>
#include <sqlite3.h>
#include <sys/types.h>

typedef struct Query Query;
typedef struct QueryParam QueryParam;
typedef struct Backend Backend;
typedef struct PgStore PgStore;

typedef enum Access {
    ACCESS_READ,
    ACCESS_WRITE,
    /* Writes by one statement. On PostgreSQL it is its own transaction: a process that is stopped at any moment holds
     * no lock there. */
    ACCESS_STATEMENT,
} Access;

/* Why the last call on the store failed, where that can be cured by another try. */
typedef enum Fault { FAULT_NONE, FAULT_CONFLICT, FAULT_LOST } Fault;

struct State {
    const Backend *backend;
    sqlite3 *db; /* sqlite.c */
    PgStore *pg; /* postgres.c */
    char *where; /* as it was given, with its password: for connecting */
    char *place; /* for messages: the path, or the URL without its password */
    char *workspace;
    bool read_only;
    bool missing; /* read-only, and there is no store: everything is empty */
    Fault fault;
    int64_t changes;    /* rows that the last statement changed */
    int64_t patient_us; /* monotonic: until then a lost server is waited for, because a lease is held */
    pthread_mutex_t mutex;
};

enum { STATE_SCHEMA_VERSION = 6, STATE_APPLICATION_ID = 0x6f657431 /* "oet1" */ };
/* migration i brings schema version i to i + 1; STATE_SCHEMA_VERSION of them (schema.c) */
extern const char *const STATE_MIGRATIONS[];

/* ---- the two engines (sqlite.c, postgres.c) ---- */
struct Backend {
    /* Opens state->where; may set state->missing. */
    bool (*open)(State *state, Err *err);
    void (*close)(State *state);
    /* After FAULT_LOST: a new connection. NULL: nothing can be lost. */
    bool (*reopen)(State *state, Err *err);
    /* `lock`, where not NULL, is held until the end: two writers of the same name wait for each other. */
    bool (*begin)(State *state, Access access, const char *lock, Err *err);
    bool (*commit)(State *state, Err *err);
    void (*rollback)(State *state);
    /* Fills the query, or fails and leaves nothing to finish. */
    bool (*start)(Query *query, const char *sql, const QueryParam *bound, int count, Err *err);
    bool (*next)(Query *query, bool *row, Err *err);
    /* The text of a column of the current row; NULL as NULL. */
    const char *(*column)(const Query *query, int column, size_t *length);
    void (*finish)(Query *query);
    const char *repair; /* how to begin anew when the store is damaged */
};
extern const Backend backend_sqlite, backend_postgres;

/* ---- transactions (txn.c) ---- */
typedef struct Txn {
    State *state;
    Access access;
    const char *lock; /* what ACCESS_WRITE looks at before it writes; NULL: it does not look */
    bool ok;          /* what the body says; in the end: whether the work is done */
    int tries;        /* 1 in the first round */
} Txn;
/* Ends the round before (commits when ok, else rolls back), and begins one when there is something to be done, or done
 * again. At the end it is false, txn->ok says how it went, and err is set when it failed. */
bool txn_next(Txn *txn, Err *err);

/* ---- statements (query.c) ---- */
struct QueryParam {
    char type; /* see query_open */
    const char *text;
    int64_t number;
    char time[40];
};
struct Query {
    State *state;
    void *handle; /* sqlite3_stmt or PGresult */
    int row;      /* of a PGresult */
};
enum { QUERY_MAX_PARAMS = 32 };

/* Binds and runs up to the first row: one letter of `types` an argument: t text or NULL, i int64_t, u int64_t time (0:
 * NULL), n int64_t microseconds from now by the store's clock, as a time, w the workspace (takes no argument). NULL
 * with err set. The caller closes. */
Query *query_open(State *state, Err *err, const char *sql, const char *types, ...);
/* The next row. */
bool query_next(Query *query, bool *row, Err *err);
void query_close(Query *query); /* NULL too */
/* As query_open, runs to its end, closes; state->changes counts. */
bool query_run(State *state, Err *err, const char *sql, const char *types, ...);

/* The value of a column: text in the arena, NULL as NULL; a time in microseconds, 0 for NULL. */
const char *query_text(const Query *query, int column, Arena *arena);
int64_t query_int(const Query *query, int column);
int64_t query_time(const Query *query, int column);
bool time_parse_iso(const char *text, int64_t *us);
/* The store's clock, within a transaction. */
bool query_clock(State *state, int64_t *us, Err *err);

/* A value in a table that this program would not have written. */
bool state_corrupt(State *state, const char *table, const char *what, Err *err);
/* Text that may have been cut within a character, as valid UTF-8. */
const char *text_whole(const char *text, Arena *arena);

/* JSON that lies in `table`, until the arena's end; NULL with STATE_CORRUPT (resources.c). */
json_t *stored_json(State *state, const char *table, const char *text, Arena *arena, Err *err);

/* ---- the file (create.c) ---- */
/* Makes the store's file at `path`, whole, where there is none: other processes see no file or a complete one. */
bool store_create(const char *path, Err *err);
bool store_migrate(sqlite3 *db, int from, Err *err);
/* STATE_OPEN or STATE_CORRUPT for the failed call `rc` on the store at `path`. */
bool store_fail(const char *path, sqlite3 *db, int rc, const char *doing, Err *err);

/* ---- commits, chunks, steps: parts of one transaction ---- */
bool commit_put(State *state, const char *pipeline, const CommitRecord *record, Err *err); /* commits.c */
bool chunk_put(State *state, const ChunkRecord *chunk, Err *err);                          /* chunks.c */
/* The chunks that landed in this epoch of the attempt, and were not committed yet. */
bool chunks_committed(State *state, const CommitRecord *record, Err *err); /* chunks.c */
bool run_stream_put(State *state, const RunStream *stream, Err *err);      /* run_streams.c */

/* ---- processes (process.c) ---- */
/* Names a process so that a later one with the same pid is not taken for it: "BOOT/PID-NAMESPACE/START-TIME". */
void process_start(pid_t pid, char *out, size_t size);
void process_host(char *out, size_t size);
/* True only when it is certain: the process ran on this host in this boot and pid namespace, and is gone or a zombie.
 */
bool process_dead(const char *host, int64_t pid, const char *start);

/* ---- growing lists (arena) ---- */
/* Room for one more item of `size` bytes after `count`; the old items are copied. */
void *list_grow(Arena *arena, void *items, int count, size_t size);

#endif
