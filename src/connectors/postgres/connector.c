#include "connectors/postgres/conn.h"

#include "connectors/postgres/source.h"

static const ConfigKey KEYS[] = {
    {"url", true, true, "postgresql://user:password@host:5432/database?sslmode=require, or libpq keywords"},
    {NULL, false, false, NULL},
};

static const ConnectorOps OPS = {
    .open = pg_open,
    .close = pg_close,
    .discover = pg_discover,
    .identity = pg_identity,
    .checks = pg_checks,
};

const Connector connector_postgres = {
    .name = "postgres",
    .summary = "PostgreSQL 14 and later",
    .url_schemes = {"postgresql", "postgres"},
    .capabilities =
        {
            .syncs = {[SYNC_FULL_REFRESH] = true, [SYNC_INCREMENTAL] = true, [SYNC_COMPARE] = true, [SYNC_CDC] = true},
            .replay = {[SYNC_FULL_REFRESH] = REPLAY_EXACT,
                       [SYNC_INCREMENTAL] = REPLAY_SUPERSET,
                       [SYNC_COMPARE] = REPLAY_EXACT,
                       [SYNC_CDC] = REPLAY_EXACT},
            .commit_style = COMMIT_STAGE_AND_APPLY,
            .dedupes = true,
            .merges = true,
            .overwrites = true,
            .pipeline_scope = true,
            .lists = true,
            .max_columns = 1590, /* 1600 less the _openetl_ columns and a margin for dropped ones */
            .max_name_bytes = 63,
        },
    .keys = KEYS,
    .ops = &OPS,
    .source = &pg_source_ops,
    .destination = &pg_dest_ops,
};
