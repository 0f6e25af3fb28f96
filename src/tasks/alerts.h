/* Alerts: what is wrong with a pipeline that nobody looks at. docs/alerts.md lists the kinds.
 *
 * A look finds what stands now, from the run log alone, and writes it into the state store; telling sends what the store
 * holds to the log, the pipeline's webhook and its command: each alert once, again after a day, and once when it is over.
 * Both are called by `openetl status`, before and after each run, by a watcher while a run lasts, and by whoever keeps
 * time. Any number of processes may do so together: the store decides who tells. */
#ifndef OPENETL_TASKS_ALERTS_H
#define OPENETL_TASKS_ALERTS_H

#include "config/resource.h"
#include "state/state.h"

/* The last attempts a look needs. */
enum { ALERT_RUNS_LOOKED_AT = 200 };

/* What is known of one pipeline. */
typedef struct AlertFacts {
    const char *pipeline;
    const PipelineResource *resource;
    int64_t applied_at_us; /* as it is; 0: not stored */
    RunList runs;          /* newest first */
    ReadList reads;        /* newest first */
} AlertFacts;

bool alerts_facts(State *state, const Resource *pipeline, Arena *arena, AlertFacts *facts, Err *err);
/* What is wrong at `now_us`, oldest first. Pure. */
void alerts_find(const AlertFacts *facts, int64_t now_us, Arena *arena, AlertList *list);

/* The same for who shows them: those that stood before keep since when, and what others raised stands too. Writes nothing. */
bool alerts_standing(State *state, const AlertFacts *facts, int64_t now_us, Arena *arena, AlertList *list, Err *err);

/* Whether an attempt beats and has neither read nor committed a row for longer than its pipeline allows (resource NULL:
 * the default). */
bool run_is_hung(const RunRecord *run, const PipelineResource *resource);
/* Sets `hung` of each run; pipelines that are not in the set have the default. */
void runs_mark_hung(RunList *runs, const ResourceSet *set);

/* Finds what is wrong with the pipelines of the set and stores it; what no longer stands is marked as resolved. */
bool alerts_look(State *state, const ResourceSet *set, Err *err);
/* Tells who is to be told. Takes a few seconds at most; what could not be told is logged and tried again later. False when
 * the state store fails. */
typedef struct AlertTelling {
    const ResourceSet *set;
    const char *workspace;
    const char *said; /* a pipeline whose failure stands in the log already, as its error; NULL: none */
} AlertTelling;
bool alerts_tell(State *state, const AlertTelling *telling, Err *err);

/* Looks and tells beside a run, on a thread of its own, until it is stopped: at once what is stored, then again and
 * again. Its troubles are logged. `set` is borrowed. */
typedef struct AlertWatch AlertWatch;
AlertWatch *alerts_watch(State *state, const ResourceSet *set, const char *workspace);
/* Waits for what is being told. NULL is fine. */
void alerts_watch_stop(AlertWatch *watch);

#endif
