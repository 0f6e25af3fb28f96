#include "state/internal.h"

/* Tables are read by people too: full names, times as text, no codes. */
static const char V1[] =
    "CREATE TABLE resources ("
    " workspace TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,"
    " version TEXT NOT NULL, definition TEXT NOT NULL, applied_at TEXT NOT NULL,"
    " PRIMARY KEY (workspace, kind, name)) WITHOUT ROWID;"
    "CREATE TABLE catalogs ("
    " workspace TEXT NOT NULL, connection TEXT NOT NULL, read_at TEXT NOT NULL,"
    " PRIMARY KEY (workspace, connection)) WITHOUT ROWID;"
    "CREATE TABLE catalog_tables ("
    " workspace TEXT NOT NULL, connection TEXT NOT NULL, stream TEXT NOT NULL,"
    " definition TEXT NOT NULL, read_at TEXT NOT NULL,"
    " PRIMARY KEY (workspace, connection, stream)) WITHOUT ROWID;"
    /* A row stays when its lease is free (run_id NULL): the token must never be given twice. */
    "CREATE TABLE leases ("
    " workspace TEXT NOT NULL, pipeline TEXT NOT NULL, token INTEGER NOT NULL,"
    " run_id TEXT, host TEXT, pid INTEGER, pid_start TEXT, taken_at TEXT, expires_at TEXT,"
    " PRIMARY KEY (workspace, pipeline)) WITHOUT ROWID;"
    "CREATE TABLE etl_runs ("
    " run_id TEXT NOT NULL, attempt INTEGER NOT NULL, pipeline TEXT NOT NULL, kind TEXT NOT NULL,"
    " range_lower TEXT, range_upper TEXT, state TEXT NOT NULL, trigger TEXT NOT NULL,"
    " started_at TEXT NOT NULL, heartbeat_at TEXT, finished_at TEXT,"
    " rows_read INTEGER NOT NULL DEFAULT 0, rows_committed INTEGER NOT NULL DEFAULT 0,"
    " error_code TEXT, error TEXT,"
    " host TEXT, pid INTEGER, pid_start TEXT, workspace TEXT NOT NULL,"
    " PRIMARY KEY (workspace, run_id, attempt)) WITHOUT ROWID;"
    "CREATE INDEX etl_runs_started ON etl_runs (workspace, started_at);"
    "CREATE INDEX etl_runs_running ON etl_runs (workspace, state) WHERE state = 'running';"
    "CREATE TABLE commits ("
    " workspace TEXT NOT NULL, pipeline TEXT NOT NULL, stream TEXT NOT NULL, epoch INTEGER NOT NULL,"
    " run_id TEXT NOT NULL, attempt INTEGER NOT NULL, position TEXT, watermark TEXT, rows INTEGER NOT NULL,"
    " guarantee TEXT NOT NULL, forced INTEGER NOT NULL, committed_at TEXT NOT NULL,"
    " PRIMARY KEY (workspace, pipeline, stream, epoch)) WITHOUT ROWID;"
    "CREATE INDEX commits_newest ON commits (workspace, pipeline, committed_at);"
    "CREATE TABLE promises ("
    " workspace TEXT NOT NULL, pipeline TEXT NOT NULL, stream TEXT NOT NULL, guarantee TEXT NOT NULL,"
    " PRIMARY KEY (workspace, pipeline, stream)) WITHOUT ROWID;"
    "CREATE TABLE resets ("
    " workspace TEXT NOT NULL, pipeline TEXT NOT NULL, stream TEXT NOT NULL, asked_at TEXT NOT NULL,"
    " PRIMARY KEY (workspace, pipeline, stream)) WITHOUT ROWID;"
    "CREATE TABLE chunks ("
    " workspace TEXT NOT NULL, run_id TEXT NOT NULL, attempt INTEGER NOT NULL, pipeline TEXT NOT NULL,"
    " stream TEXT NOT NULL, chunk INTEGER NOT NULL, range_from TEXT, range_to TEXT, rows INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL, checksum TEXT, read_at TEXT NOT NULL,"
    " PRIMARY KEY (workspace, run_id, stream, attempt, chunk)) WITHOUT ROWID;";

/* What tells a hung attempt from a slow one; what is wrong, and who was told; what reads took. `stream` is empty for an
 * alert of the whole pipeline. */
static const char V2[] = "ALTER TABLE etl_runs ADD COLUMN progress_at TEXT;"
                         "CREATE TABLE alerts ("
                         " workspace TEXT NOT NULL, pipeline TEXT NOT NULL, stream TEXT NOT NULL, kind TEXT NOT NULL,"
                         " message TEXT NOT NULL, fix TEXT NOT NULL, since TEXT NOT NULL, resolved_at TEXT,"
                         " PRIMARY KEY (workspace, pipeline, stream, kind)) WITHOUT ROWID;"
                         "CREATE TABLE alert_notices ("
                         " workspace TEXT NOT NULL, pipeline TEXT NOT NULL, stream TEXT NOT NULL, kind TEXT NOT NULL,"
                         " channel TEXT NOT NULL, told_at TEXT, next_at TEXT NOT NULL,"
                         " PRIMARY KEY (workspace, pipeline, stream, kind, channel)) WITHOUT ROWID;"
                         "CREATE TABLE stream_reads ("
                         " workspace TEXT NOT NULL, pipeline TEXT NOT NULL, stream TEXT NOT NULL, run_id TEXT NOT NULL,"
                         " sync TEXT NOT NULL, whole INTEGER NOT NULL, rows INTEGER NOT NULL,"
                         " started_at TEXT NOT NULL, finished_at TEXT NOT NULL,"
                         " PRIMARY KEY (workspace, pipeline, stream, run_id)) WITHOUT ROWID;";

static const char V3[] =
    "CREATE TABLE audits ("
    " workspace TEXT NOT NULL, connection TEXT NOT NULL, stream TEXT NOT NULL, cursor TEXT NOT NULL,"
    " audited_at TEXT NOT NULL, rows INTEGER NOT NULL, highest TEXT, found TEXT,"
    " report TEXT NOT NULL,"
    " PRIMARY KEY (workspace, connection, stream, cursor)) WITHOUT ROWID;";

static const char V4[] =
    "CREATE TABLE reconciles ("
    " workspace TEXT NOT NULL, pipeline TEXT NOT NULL, stream TEXT NOT NULL, checked_at TEXT NOT NULL,"
    " not_compared TEXT, watermark TEXT, source_rows INTEGER NOT NULL, destination_rows INTEGER NOT NULL,"
    " skipped INTEGER NOT NULL, extra INTEGER NOT NULL, different INTEGER NOT NULL,"
    " PRIMARY KEY (workspace, pipeline, stream)) WITHOUT ROWID;";

/* Schema drift: what each run saw, and the source's tables as the last run of a pipeline read them. */
static const char V5[] = "CREATE TABLE drifts ("
                         " workspace TEXT NOT NULL, run_id TEXT NOT NULL, pipeline TEXT NOT NULL, stream TEXT NOT NULL,"
                         " kind TEXT NOT NULL, column_name TEXT NOT NULL, was_name TEXT, from_type TEXT, to_type TEXT,"
                         " outcome TEXT NOT NULL, done TEXT NOT NULL,"
                         " first_seen_at TEXT NOT NULL, first_run_id TEXT NOT NULL,"
                         " PRIMARY KEY (workspace, run_id, pipeline, stream, kind, column_name)) WITHOUT ROWID;"
                         "CREATE INDEX drifts_of_stream ON drifts (workspace, pipeline, stream, run_id);"
                         "CREATE TABLE last_reads ("
                         " workspace TEXT NOT NULL, pipeline TEXT NOT NULL, stream TEXT NOT NULL, run_id TEXT NOT NULL,"
                         " definition TEXT NOT NULL, read_at TEXT NOT NULL,"
                         " PRIMARY KEY (workspace, pipeline, stream)) WITHOUT ROWID;";

/* The seven steps of a run, a stream; the chunks of its read; who waits for a lease. */
static const char V6[] =
    "CREATE TABLE run_streams ("
    " workspace TEXT NOT NULL, run_id TEXT NOT NULL, attempt INTEGER NOT NULL, pipeline TEXT NOT NULL,"
    " stream TEXT NOT NULL, sync TEXT NOT NULL, lease INTEGER NOT NULL, schema_hash TEXT NOT NULL,"
    " range_lower TEXT, range_upper TEXT, held_back_by TEXT, verified TEXT, checksum TEXT,"
    " rows_read INTEGER NOT NULL DEFAULT 0, rows_landed INTEGER NOT NULL DEFAULT 0,"
    " rows_inserted INTEGER NOT NULL DEFAULT 0, rows_updated INTEGER NOT NULL DEFAULT 0,"
    " rows_skipped INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0,"
    " epochs INTEGER NOT NULL DEFAULT 0,"
    " leased_at TEXT, decided_at TEXT, read_at TEXT, landed_at TEXT, verified_at TEXT,"
    " committed_at TEXT, recorded_at TEXT,"
    " PRIMARY KEY (workspace, run_id, attempt, stream)) WITHOUT ROWID;"
    "ALTER TABLE chunks ADD COLUMN epoch INTEGER;"
    "ALTER TABLE chunks ADD COLUMN seq_first TEXT;"
    "ALTER TABLE chunks ADD COLUMN seq_last TEXT;"
    "ALTER TABLE chunks ADD COLUMN committed_at TEXT;"
    "ALTER TABLE leases ADD COLUMN wanted_at TEXT;"
    /* sync: compare: sets of row hashes, in blocks; a set is there when it is in row_hash_sets. */
    "CREATE TABLE row_hash_sets ("
    " workspace TEXT NOT NULL, pipeline TEXT NOT NULL, stream TEXT NOT NULL, set_name TEXT NOT NULL,"
    " blocks INTEGER NOT NULL, rows INTEGER NOT NULL, written_at TEXT NOT NULL,"
    " PRIMARY KEY (workspace, pipeline, stream, set_name)) WITHOUT ROWID;"
    "CREATE TABLE row_hashes ("
    " workspace TEXT NOT NULL, pipeline TEXT NOT NULL, stream TEXT NOT NULL, set_name TEXT NOT NULL,"
    " block INTEGER NOT NULL, hashes TEXT NOT NULL,"
    " PRIMARY KEY (workspace, pipeline, stream, set_name, block));";

const char *const STATE_MIGRATIONS[STATE_SCHEMA_VERSION] = {V1, V2, V3, V4, V5, V6};
