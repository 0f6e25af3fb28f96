#include "engine/authority.h"

#include "base/clock.h"
#include "base/log.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

enum { WAIT_US = 10 * 1000000, POLL_US = 100 * 1000 };

/* A bound, and how far a replica must be for it to hold there. */
typedef struct Ahead {
    Bound bound;
    const char *moment;
} Ahead;

static int64_t wait_us(void)
{
    const char *setting = getenv("OPENETL_REPLICA_WAIT");
    int64_t us;
    return setting != NULL && duration_parse(setting, &us) ? us : WAIT_US;
}

/* ---- as the position keeps it ------------------------------------------------------------------------------------ */

static const char *ahead_text(const Ahead *ahead, Arena *arena)
{
    json_t *object = json_object();
    if (ahead->bound.value != NULL) json_object_set_new(object, "bound", json_string(ahead->bound.value));
    json_object_set_new(object, "inclusive", json_boolean(ahead->bound.inclusive));
    json_object_set_new(object, "moment", json_string(ahead->moment));
    char *dumped = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    const char *text = arena_strdup(arena, dumped);
    free(dumped);
    return text;
}

static bool ahead_parse(const char *text, Arena *arena, Ahead *ahead)
{
    json_t *object = text == NULL ? NULL : json_loads(text, 0, NULL);
    const char *bound = json_string_value(json_object_get(object, "bound"));
    const char *moment = json_string_value(json_object_get(object, "moment"));
    bool ok = moment != NULL;
    if (ok)
        *ahead = (Ahead){.bound = {.value = bound == NULL ? NULL : arena_strdup(arena, bound),
                                   .inclusive = json_is_true(json_object_get(object, "inclusive"))},
                         .moment = arena_strdup(arena, moment)};
    json_decref(object);
    return ok;
}

/* ---- the primary's word, and the replica's place ----------------------------------------------------------------- */

static bool ask_primary(StreamRead *read, Ahead *now, Err *err)
{
    Attempt *attempt = read->crew->attempt;
    Session *primary = NULL;
    if (!primary_session(attempt, &primary, err)) return false;
    bool ok = read_source(read)->bound(primary, &read->spec, read->arena, &now->bound, err) &&
              read_source(read)->moment(primary, read->arena, &now->moment, err);
    attempt->plan->source_connector->ops->close(primary);
    return ok;
}

static bool wait_for_replica(StreamRead *read, const char *moment, bool *reached, Err *err)
{
    int64_t until_us = clock_mono_us() + wait_us();
    for (;;) {
        if (!read_source(read)->reached(read->session, moment, reached, err)) return false;
        if (*reached || clock_mono_us() >= until_us || crew_ending(read->crew)) return true;
        usleep(POLL_US);
    }
}

static bool too_far_behind(const StreamRead *read, Err *err)
{
    err_set(err, ERR_SOURCE_CONFLICT, "the replica %s is behind its primary, and nothing was read of %s before",
            read->crew->attempt->plan->pipeline->replica, read->run->plan->name);
    err_fix(err, "let the replica catch up, and run again; or take read.replica out");
    return false;
}

/* The replica has not all that `now` speaks of: an earlier bound is good, or none but the last read's. */
static bool bound_behind(StreamRead *read, const Ahead *now, Bound *bound, Err *err)
{
    const Position *position = &read->run->start.position;
    Ahead before;
    bool has = ahead_parse(position->ahead, read->arena, &before), reached = false;
    if (has && !read_source(read)->reached(read->session, before.moment, &reached, err)) return false;
    if (!reached && position->watermark == NULL) return too_far_behind(read, err);
    *bound = reached ? before.bound : (Bound){.value = position->watermark};
    read->ahead = has && !reached ? position->ahead : ahead_text(now, read->arena);
    log_warn("%s: the replica %s is behind its primary: read up to %s", read->run->plan->name,
             read->crew->attempt->plan->pipeline->replica, bound->value == NULL ? "nothing" : bound->value);
    return true;
}

bool authority_bound(StreamRead *read, Bound *bound, Err *err)
{
    Ahead now = {0};
    bool reached;
    if (!read->crew->attempt->plan->replica)
        return read_source(read)->bound(read->session, &read->spec, read->arena, bound, err);
    if (!ask_primary(read, &now, err) || !wait_for_replica(read, now.moment, &reached, err)) return false;
    *bound = now.bound;
    return reached || bound_behind(read, &now, bound, err);
}
