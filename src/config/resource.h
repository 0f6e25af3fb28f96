/* Resources: what the YAML files say, checked field by field (section 1 of the contract). Unknown fields, wrong types
 * and duplicate keys are RESOURCE_INVALID with "file:line:column: field path: what, did you mean …". Everything lives
 * in the arena given. A resource keeps its placeholders (`${NAME}`): values are resolved by secrets.h at the moment of
 * use.
 *
 * kinds: Connection, Pipeline. (Mart is known by name and refused until the mart task exists.) */
#ifndef OPENETL_CONFIG_RESOURCE_H
#define OPENETL_CONFIG_RESOURCE_H

#include "base/arena.h"
#include "base/err.h"
#include "data/terms.h"

#include <jansson.h>
#include <stdint.h>

/* Where something stands in a file, for messages: "shop.yaml:12:7". */
typedef struct Place {
    const char *file;
    int line, column;
} Place;

typedef struct ConfigPair {
    const char *key;
    const char *value; /* with placeholders */
    Place place;
} ConfigPair;

typedef struct ConnectionResource {
    const char *connector;
    ConfigPair *config;
    int config_count;
} ConnectionResource;

/* Whether a cdc stream's table is read before its changes are. */
typedef enum BaselineMode { BASELINE_INITIAL, BASELINE_NEVER } BaselineMode;

/* Absent settings: pointers NULL, has_* false. A stream here is as written: globs are expanded by the plan. */
typedef struct StreamResource {
    Place place;
    const char *name; /* may be a glob: * ? [a-z] */
    bool has_sync;
    SyncMode sync; /* default full_refresh */
    const char *cursor;
    const char *overlap; /* "10m" or a count as text; NULL: 0 */
    const char **key;
    int key_count;
    const char **exclude; /* columns.exclude */
    int exclude_count;
    const char **type_names; /* columns.types: parallel arrays */
    const char **type_texts;
    int type_count;
    const char *where;
    bool has_write;
    WriteMode write;
    const char *as;
    bool has_require;
    Guarantee require;
    bool has_collapse;
    bool collapse;
    BaselineMode snapshot; /* cdc; default initial */
    DriftPolicy on_drift;
    bool has_deletes;
    DeleteMode deletes;          /* default soft */
    int64_t reconcile_keys_us;   /* deletes.reconcile; 0: keys are not compared */
    int64_t chunk_rows;          /* read.chunkRows; 0: default */
    ReadOrder read_order;        /* read.order */
    int parallel;                /* read.parallel; 0: default */
    int64_t max_statement_us;    /* read.maxStatement; 0: default */
    int64_t max_rows_per_second; /* 0: no limit */
} StreamResource;

typedef enum ScheduleKind { SCHEDULE_NONE, SCHEDULE_EVERY, SCHEDULE_CRON, SCHEDULE_CONTINUOUS } ScheduleKind;
typedef enum JobSize { JOB_S, JOB_M, JOB_L, JOB_XL } JobSize;

/* Where alerts go beside the log, and when a run is late or hung. */
typedef struct AlertsResource {
    const char *webhook; /* a URL, with placeholders; NULL: none */
    Place webhook_place;
    const char **command; /* a program and its arguments; command_count 0: none */
    int command_count;
    int64_t hung_us; /* a running attempt without progress; default 15 m */
    int64_t late_us; /* an expected run that did not start; 0: a tenth of the window, from 1 m to 1 h */
} AlertsResource;

typedef struct PipelineResource {
    ScheduleKind schedule;
    int64_t every_us;
    const char *cron;
    const char *source;
    Place source_place;
    bool all_streams; /* streams: "*" */
    StreamResource *streams;
    int stream_count;
    const char *destination;
    Place destination_place;
    const char *namespace_; /* NULL: the connection's default */
    WriteMode write;        /* default append */
    Place write_place;
    Layout layout;              /* of cdc streams; default direct */
    Place layout_place;         /* file NULL: not given */
    const char *slot;           /* source.cdc; NULL: the default name */
    const char *publication;    /* likewise */
    int64_t heartbeat_us;       /* source.cdc.heartbeat; default 1 m */
    Place cdc_place;            /* of source.cdc; file NULL: not given */
    Guarantee require;          /* default exactly_once */
    int64_t commit_interval_us; /* default 5 m (continuous: 10 s) */
    int64_t commit_max_bytes;   /* default 256 MB = 256,000,000 */
    CommitScope commit_scope;   /* default pipeline */
    bool has_commit_scope;
    int64_t resume_point_timeout_us; /* default 1 m */
    JobSize size;                    /* default s */
    bool has_size;
    const char *pool;     /* default "default" */
    int retries;          /* default 3 */
    int64_t chunk_rows;   /* source.read.chunkRows; 0: default */
    ReadOrder read_order; /* source.read.order */
    int parallel;         /* source.read.parallel; 0: default */
    const char *replica;  /* source.read.replica: the connection rows are read from; NULL: the source's own */
    Place replica_place;
    int64_t max_statement_us; /* source.read.maxStatement; 0: default */
    DriftPolicy on_drift;
    int64_t reconcile_every_us; /* checks.reconcile.every; 0: no check */
    AlertsResource alerts;
} PipelineResource;

typedef enum ResourceKind { RESOURCE_CONNECTION, RESOURCE_PIPELINE, RESOURCE_KIND_COUNT } ResourceKind;

typedef struct Resource {
    ResourceKind kind;
    const char *name; /* metadata.name: [a-z0-9]([-a-z0-9]*[a-z0-9])?, at most 63 characters */
    Place place;
    json_t *canonical; /* the document as JSON with sorted keys, placeholders kept: what is stored and hashed; owned by
                        * the arena (arena_defer) */
    union {
        ConnectionResource connection;
        PipelineResource pipeline;
    };
} Resource;

typedef struct ResourceSet {
    Resource *items;
    int count;
} ResourceSet;

const char *resource_kind_name(ResourceKind kind);   /* "Connection" */
const char *resource_kind_plural(ResourceKind kind); /* "connections", as in workspaces/default/pipelines/NAME */

/* Reads files and directories (*.yaml, *.yml, sorted by name, not recursive); "-" is standard input. The same kind and
 * name twice is an error that names both places. */
bool resources_read(const char *const *paths, int count, Arena *arena, ResourceSet *set, Err *err);
/* Parses one text; `file` is for messages. */
bool resources_parse(const char *file, const char *text, size_t length, Arena *arena, ResourceSet *set, Err *err);
/* From stored canonical JSON; places are "stored". */
bool resource_from_json(const json_t *canonical, Arena *arena, Resource *resource, Err *err);
const Resource *resource_find(const ResourceSet *set, ResourceKind kind, const char *name);
/* 12 hex digits of the canonical JSON: the version the plan shows. */
void resource_version(const Resource *resource, char out[13]);

/* job size: vCPU and memory. */
const char *job_size_name(JobSize size); /* "s" */
const char *job_size_text(JobSize size); /* "1 vCPU, 2 GiB" */
int job_size_cpus(JobSize size);
/* Feeds that read at a time where `read.parallel` does not say: the vCPUs, at least 2, for readers wait more than they work. */
int job_size_readers(JobSize size);
int64_t job_size_bytes(JobSize size);

#endif
