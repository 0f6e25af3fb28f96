#include "state/internal.h"

#include "base/clock.h"
#include "config/secrets.h"

static bool is_url(const char *where)
{
    return strncmp(where, "postgresql://", 13) == 0 || strncmp(where, "postgres://", 11) == 0;
}

static char *shown_place(const char *where)
{
    Arena arena;
    arena_init(&arena);
    char *place = mem_strdup(is_url(where) ? secret_hide_url(where, &arena) : where);
    arena_release(&arena);
    return place;
}

bool state_open(const char *where, const char *workspace, bool read_only, State **state, Err *err)
{
    *state = NULL;
    State *opened = mem_zero(sizeof *opened);
    opened->backend = is_url(where) ? &backend_postgres : &backend_sqlite;
    opened->where = mem_strdup(where);
    opened->place = shown_place(where);
    opened->workspace = mem_strdup(workspace);
    opened->read_only = read_only;
    pthread_mutex_init(&opened->mutex, NULL);
    if (opened->backend->open(opened, err)) {
        *state = opened;
        return true;
    }
    state_close(opened);
    return false;
}

void state_close(State *state)
{
    if (state == NULL) return;
    state->backend->close(state);
    pthread_mutex_destroy(&state->mutex);
    free(state->where);
    free(state->place);
    free(state->workspace);
    free(state);
}

const char *state_place(const State *state)
{
    return state->place;
}

bool state_clock(State *state, int64_t *us, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *us = clock_wall_us(); /* where there is no store */
    while (txn_next(&txn, err))
        txn.ok = query_clock(state, us, err);
    return txn.ok;
}
