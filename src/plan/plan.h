/* The plan: what would be created or changed, each stream's write mode, guarantee and reason, warnings and problems.
 * Built from resources, the live catalog and the destination's tables; a pure result, in the arena given. The engine
 * runs from the same PipelinePlan, built anew and compared with the applied one (section 4). */
#ifndef OPENETL_PLAN_PLAN_H
#define OPENETL_PLAN_PLAN_H

#include "base/buf.h"
#include "catalog/catalog.h"
#include "config/resource.h"
#include "connectors/connector.h"
#include "data/read_record.h"
#include "plan/guarantee.h"

typedef enum Change { CHANGE_CREATED, CHANGE_CHANGED, CHANGE_UNCHANGED } Change;

typedef struct StreamPlan {
    const char *name;            /* at the source: "orders", "sales.orders" */
    const char *table;           /* at the destination */
    const char *path;            /* its place in the resource, for problems: "spec.source.streams[0]" */
    const StreamResource *given; /* its settings as written; all unset for "*" */
    SyncMode sync;
    WriteMode write;
    Replay replay;
    Guarantee require;
    GuaranteeDecision decision;
    const CatalogTable *source; /* NULL where a problem says it is missing */
    Schema schema;              /* delivered columns: source order, exclusions and type overrides applied */
    const char **key;
    int key_count;
    const char *cursor;
    Type cursor_type;
    int64_t overlap; /* timestamp and date cursors: microseconds; integer cursors: a count; else 0 */
    const char *where;
    const char *owner; /* 32 hex digits: to whom a saved position belongs: source identity, stream, sync, cursor,
                        * filter, key, destination, namespace, table, write */
    ReadOrder order;
    int parallel;             /* feeds that may read it at a time */
    int64_t chunk_rows;       /* rows a statement at most; 0: as the source sees fit */
    int64_t max_statement_us; /* no statement at the source runs longer, as far as it can be cut */
    int64_t max_rows_per_second;
    Layout layout;             /* cdc: where its changes go; otherwise direct */
    DeleteMode deletes;        /* merge, of streams that see deletes: what one does at the destination */
    int64_t reconcile_keys_us; /* incremental: how often keys are compared, so that deletes are seen; 0: never */
    bool baseline;             /* cdc: the table is read before its changes (snapshot: initial) */
    DriftPolicy on_drift;      /* the stream's words over the pipeline's */
    DriftChange *drift;        /* where source, stream and table differ, also where nothing follows from it */
    int drift_count;
    const char *target; /* the table as messages name it: "shop.orders" */
} StreamPlan;

/* Whether its rows come with what happened to them: _openetl_op, tombstones. */
static inline bool stream_sees_deletes(const StreamPlan *stream)
{
    return stream->sync == SYNC_CDC || stream->sync == SYNC_COMPARE || stream->reconcile_keys_us > 0;
}

typedef struct ResourceChange {
    const Resource *resource;
    Change change;
    char version[13];
} ResourceChange;

typedef struct PipelinePlan {
    const Resource *resource;
    const PipelineResource *pipeline; /* &resource->pipeline */
    const Connector *source_connector;
    const Connector *destination_connector;
    ConnectorConfig source_config; /* placeholders resolved; lives in the plan's arena; never printed */
    ConnectorConfig destination_config;
    bool replica;                     /* rows are read from the connection of … */
    ConnectorConfig replica_config;   /* likewise */
    const char *source_identity;      /* ConnectorOps.identity */
    const char *destination_identity; /* NULL: it was busy */
    CommitScope scope;                /* effective */
    const char *slot, *publication;   /* of its cdc streams; configured or the default names */
    StreamPlan *streams;
    int stream_count;
    int cdc_count;         /* streams that are read from the log */
    const char **warnings; /* each whole, without the leading blanks: "page_views: it has no primary key …" */
    int warning_count;
    const char **notes; /* how types travel, drift to be applied, positions kept or not: shown under "notes:" */
    int note_count;
    const char **drift; /* what changed at the source, and what becomes of it: "orders: added: note utf8; …" */
    int drift_count;
    /* The first change that a policy refuses: it is among the problems too. NULL: none. */
    const DriftRefusal *refused;
    int refused_count;
    const char **problems; /* "delivery.require: stream "orders" gets …" */
    int problem_count;
} PipelinePlan;

typedef struct Plan {
    const char *workspace;
    ResourceChange *changes;
    int change_count;
    PipelinePlan **pipelines;
    int pipeline_count;
} Plan;

enum { PLAN_DONT_WAIT = -1 };

/* What the planner needs of the state store, so that plan does not depend on state/: fills `stored` from the
 * workspace's applied resources. */
typedef struct PlanInput {
    const char *workspace;
    const ResourceSet *given;  /* from -f (plan, apply, run -f), or the stored ones themselves */
    const ResourceSet *stored; /* what is applied now; a reference may point into either */
    const ReadList *reads;     /* what earlier reads took, newest first, for notes; NULL: not looked at */
    bool offline_destination;  /* do not open the destination (tests) */
    int64_t wait_us; /* for a source or destination file that another process holds, then SOURCE_CONNECT or DEST_BUSY;
                      * PLAN_DONT_WAIT (plan, apply): not at all, and a busy destination is a note */
    Stop *stop;
    /* The source's tables as the pipeline's last run read them, which tells what changed; NULL: not known. */
    bool (*last_read)(void *context, const char *pipeline, Arena *arena, Catalog *catalog, Err *err);
    void *last_read_context;
} PlanInput;

/* Opens the source (and, where it exists, the destination read-only), discovers the streams' tables and plans each
 * pipeline in `given`. False only when the plan cannot be made (SOURCE_CONNECT, RESOURCE_NOT_FOUND …); problems are
 * part of the plan, not errors. */
bool plan_make(const PlanInput *input, Arena *arena, Plan *plan, Err *err);
/* Plans one pipeline; catalogs it read are the caller's to store (pipeline->streams[i].source). */
bool plan_pipeline(const PlanInput *input, const Resource *pipeline, Arena *arena, PipelinePlan *plan, Err *err);
bool plan_has_problems(const Plan *plan);

/* Resolves and checks a connection's config against its connector's keys (unknown key with suggestion, missing required
 * key, missing secret). */
bool connection_resolve(const Resource *connection, Arena *arena, const Connector **connector, ConnectorConfig *config,
                        Err *err);

/* The name of the slot of a pipeline's cdc streams: configured, or the default one (cdc.c). */
const char *cdc_slot_name(const Resource *pipeline, Arena *arena);
/* The log of a plan's cdc streams, for looking at it: without a position. */
LogSpec plan_log_spec(const PipelinePlan *plan, Arena *arena);

/* The text of `openetl plan` (explain.c), as the seed shows it, and its JSON. */
void plan_print(const Plan *plan, Buf *out);
json_t *plan_to_json(const Plan *plan);
/* `delivery.require: stream "orders" gets effectively_once (superset replay, written with merge), below exactly_once`
 */
const char *problem_text(const StreamPlan *stream, GuaranteeProblem problem, Arena *arena);
const char *warning_text(const StreamPlan *stream, GuaranteeWarning warning, Arena *arena);

/* How a stream finds changes, and what that misses (advice.c). */
typedef struct Detection {
    const char *strategy; /* "full_refresh", "timestamp", "monotonic_id", "id_or_version", "compare", "cdc" */
    const char *updates;  /* "yes", "no", "if_honest", "if_version_counter" */
    bool deletes;
    const char *misses; /* a sentence, or NULL */
} Detection;
Detection stream_detection(const StreamPlan *stream, Arena *arena);

#endif
