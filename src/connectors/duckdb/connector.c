/* DuckDB, as a source and a destination: see README.md beside this file. */
#include "connectors/duckdb/conn.h"

static const ConfigKey KEYS[] = {
    {.name = "path", .help = "the DuckDB file, for example warehouse.duckdb (or give url)"},
    {.name = "url", .help = "the same as a URL: duckdb:warehouse.duckdb or duckdb:///var/lib/warehouse.duckdb"},
    {.name = "temp_directory", .help = "where to put what does not fit in memory; default: beside the file"},
    {.name = NULL},
};

static const ConnectorOps OPS = {
    .open = duck_open,
    .close = duck_close,
    .discover = duck_discover,
    .identity = duck_identity,
    .checks = duck_checks,
};

extern const Connector connector_duckdb;
const Connector connector_duckdb = {
    .name = "duckdb",
    .summary = "a DuckDB file, as a source and as a destination",
    .url_schemes = {"duckdb"},
    .capabilities =
        {.syncs = {[SYNC_FULL_REFRESH] = true, [SYNC_INCREMENTAL] = true, [SYNC_COMPARE] = true},
         .replay =
             {[SYNC_FULL_REFRESH] = REPLAY_EXACT, [SYNC_INCREMENTAL] = REPLAY_SUPERSET, [SYNC_COMPARE] = REPLAY_EXACT},
         .commit_style = COMMIT_STAGE_AND_APPLY,
         .dedupes = true,
         .merges = true,
         .overwrites = true,
         .pipeline_scope = true,
         .fold_case = true,
         .lists = true,
         .exclusive = true},
    .keys = KEYS,
    .ops = &OPS,
    .source = &duck_source_ops,
    .destination = &duck_dest_ops,
};
