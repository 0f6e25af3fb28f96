#include "state/internal.h"

static bool put_promises(State *state, const char *pipeline, const char *const *streams, const Guarantee *guarantees,
                         int count, Err *err)
{
    bool ok = query_run(state, err, "DELETE FROM promises WHERE workspace = ? AND pipeline = ?", "wt", pipeline);
    for (int i = 0; ok && i < count; i++)
        ok = query_run(state, err, "INSERT INTO promises (workspace, pipeline, stream, guarantee) VALUES (?, ?, ?, ?)",
                       "wttt", pipeline, streams[i], guarantee_name(guarantees[i]));
    return ok;
}

bool state_promises_put(State *state, const char *pipeline, const char *const *streams, const Guarantee *guarantees,
                        int count, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE, .lock = pipeline};
    while (txn_next(&txn, err))
        txn.ok = put_promises(state, pipeline, streams, guarantees, count, err);
    return txn.ok;
}

static bool get_promise(State *state, const char *pipeline, const char *stream, bool *found, Guarantee *guarantee,
                        Arena *arena, Err *err)
{
    Query *query =
        query_open(state, err, "SELECT guarantee FROM promises WHERE workspace = ? AND pipeline = ? AND stream = ?",
                   "wtt", pipeline, stream);
    bool ok = query != NULL && query_next(query, found, err);
    if (ok && *found) {
        const char *text = query_text(query, 0, arena);
        if (text == NULL || !guarantee_parse(text, guarantee)) ok = state_corrupt(state, "promises", "guarantee", err);
    }
    query_close(query);
    return ok;
}

bool state_promise_get(State *state, const char *pipeline, const char *stream, bool *found, Guarantee *guarantee,
                       Err *err)
{
    Arena arena;
    Txn txn = {.state = state, .access = ACCESS_READ};
    *found = false;
    arena_init(&arena);
    while (txn_next(&txn, err))
        txn.ok = get_promise(state, pipeline, stream, found, guarantee, &arena, err);
    arena_release(&arena);
    return txn.ok;
}
