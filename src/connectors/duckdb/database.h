/* An open DuckDB file, shared by the sessions of this process.
 *
 * DuckDB guards a file by a POSIX lock, which belongs to the process: a second instance on the same file in one process
 * would not be refused, and closing either would drop the lock of both. So a process opens a file once, and its
 * sessions share the instance, counted. That table of open files is the one global of this room; it is locked inside,
 * any thread may call any function.
 *
 * The file of another process is waited for, looked at every 200 ms. */
#ifndef OPENETL_CONNECTORS_DUCKDB_DATABASE_H
#define OPENETL_CONNECTORS_DUCKDB_DATABASE_H

#include "connectors/connector.h"

#include <duckdb.h>
#include <pthread.h>

typedef struct Database {
    struct Database *next;
    char *path; /* absolute, links resolved */
    bool read_only;
    int sessions;
    duckdb_database handle;
    bool has_load;            /* load.h: the table function is known; guarded by ddl_lock */
    pthread_mutex_t ddl_lock; /* held while a session makes tables: two at once would conflict inside DuckDB */
} Database;

typedef struct DatabaseSpec {
    const char *path;      /* absolute, see database_path */
    bool read_only;        /* nothing is made or changed; a missing file is an error */
    const char *temporary; /* directory for what does not fit in memory; NULL: next to the file */
    const OpenSpec *open;
} DatabaseSpec;

/* The path as an absolute one with links resolved, so that two spellings of one file are one file. False with
 * DEST_CONNECT or SOURCE_CONNECT when its directory is missing. */
bool database_path(const char *path, SessionRole role, Arena *arena, const char **absolute, Err *err);
/* Opens or joins. A file held by another process is waited for as long as the spec says, then DEST_BUSY (a source:
 * SOURCE_CONNECT), naming the process. */
bool database_open(const DatabaseSpec *spec, Database **database, Err *err);
/* Leaves; the last one closes the file. */
void database_close(Database *database);

#endif
