/* A pipeline's plan in the making: what the steps of plan_pipeline share. Private to plan/. Everything is in the arena;
 * one thread. Steps add problems, warnings and notes as they find them; only what keeps a plan from being made at all
 * is an error. */
#ifndef OPENETL_PLAN_DRAFT_H
#define OPENETL_PLAN_DRAFT_H

#include "plan/plan.h"

typedef struct Texts {
    const char **items;
    int count, capacity;
} Texts;

typedef struct Draft {
    const PlanInput *input;
    Arena *arena;
    PipelinePlan *plan;
    Catalog catalog;   /* of the source: the tables named, or all of them */
    Catalog last_read; /* of the source: the tables as the pipeline's last run read them */
    Texts problems, warnings, notes, drift;
} Draft;

void texts_add(Texts *texts, const char *text, Arena *arena);
void draft_problem(Draft *draft, const char *format, ...) __attribute__((format(printf, 2, 3)));
void draft_warning(Draft *draft, const char *format, ...) __attribute__((format(printf, 2, 3)));
void draft_note(Draft *draft, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* `; did you mean "orders"?`, or "" when no name is near. */
const char *draft_suggest(const char *given, const char *const *valid, int count, Arena *arena);
/* "table.column" as the destination's messages name it: "shop.orders", or "orders" in the default namespace. */
const char *draft_target(const Draft *draft, const StreamPlan *stream);

/* streams.c: plan->streams from the pipeline's entries and the source's catalog; problems for what is not there. */
bool streams_expand(Draft *draft, Session *source, Err *err);
/* columns.c: the stream's schema, key, cursor and overlap. */
void stream_columns(Draft *draft, StreamPlan *stream);
/* decide.c: replay, guarantee, write mode and sync against what source and destination can do. */
void stream_decide(Draft *draft, StreamPlan *stream);
/* cdc.c: what holds for streams that are read from the log, whatever the guarantee; then for all of them together. */
void cdc_decide(Draft *draft, StreamPlan *stream);
void cdc_pipeline(Draft *draft);
/* deletes.c: whether deletes can be found by comparing keys, and written as asked. */
void stream_deletes(Draft *draft, const StreamPlan *stream);
/* advice.c: notes on what the stream's way of finding changes misses, and whether a full refresh fits its window. */
void stream_advise(Draft *draft, const StreamPlan *stream);
/* splits.c: notes on how large tables are cut for several readers. */
bool splits_note(Draft *draft, Session *source, Err *err);
/* target.c: names and limits of the destination; then its tables as they are (opens it, read-only). */
void target_limits(Draft *draft);
bool target_tables(Draft *draft, Err *err);
/* drift.c: what changed since the pipeline's last run, and whether the policy lets the run go on. Reads last_read. */
bool drift_load(Draft *draft, Err *err);
/* `table`: the stream's, as it is. Adds problems, drift and notes; takes columns that are to be ignored out of the
 * schema. */
void stream_drift(Draft *draft, StreamPlan *stream, const DestTable *table, DriftStorage storage);
/* columns.c */
bool stream_excludes(const StreamPlan *stream, const char *column);
/* owner.c: owners of positions; notes for streams whose stored position a change gives up. */
void owners_set(Draft *draft);
void owners_compare(Draft *draft, const Resource *stored);
/* connection.c: the connector and config keys of a connection, without resolving its placeholders. */
bool connection_check(const Resource *connection, Arena *arena, const Connector **connector, Err *err);
/* A place for messages: "shop.yaml:12:7", or "stored". */
const char *draft_place(const Place *place, Arena *arena);

#endif
