#include "engine/read_work.h"

enum { EMPTY_READS = 3 };

static bool count_apart(StreamRead *read, const ReadSpec *spec, int64_t *rows, Err *err)
{
    Session *apart = NULL;
    if (!source_session(read->crew->attempt, &apart, err)) return false;
    bool ok = read_source(read)->count(apart, spec, rows, err);
    read->crew->attempt->plan->source_connector->ops->close(apart);
    return ok;
}

bool read_prove_empty(StreamRead *read, const ReadSpec *spec, Err *err)
{
    int64_t counted = 0;
    if (!count_apart(read, spec, &counted, err)) return false;
    if (counted == 0) return true;
    err_set(err, ERR_VERIFY_EMPTY, "the source gave no key of %s, but an independent count found %lld rows",
            read->run->plan->name, (long long)counted);
    err_fix(err, "nothing was taken for deleted; look for a row security policy or a replica that hides rows, then run "
                 "again");
    return false;
}

/* Whether the rows of before are behind a point that this read began at. */
static bool goes_on(const StreamRead *read)
{
    const Position *position = &read->run->start.position;
    return read->run->start.resuming && position->rows > 0 && (position->source != NULL || position->parted);
}

/* The anchor's snapshot does not change. Rows that came after it are seen by a later one, which the next attempt has; what
 * is hidden stays hidden. */
static bool late_rows(const StreamRead *read, int64_t counted, Err *err)
{
    bool again = read->crew->attempt->number == 1;
    err_set(err, again ? ERR_SOURCE_CONFLICT : ERR_VERIFY_EMPTY,
            "the baseline of %s found no row, but an independent count found %lld", read->run->plan->name,
            (long long)counted);
    err_fix(err, again ? "the next attempt reads it in a later snapshot"
                       : "look for a row security policy or a replica that hides rows");
    return false;
}

/* Reads the range until it gave rows or an independent count agrees that there are none. A row may arrive between the
 * read and the count of a full refresh, so a disagreement is first answered by reading again. */
bool read_verified(StreamRead *read, bool *verified_empty, Err *err)
{
    for (int round = 0; round < EMPTY_READS; round++) {
        if (!read->nothing && !read_once(read, err)) return false;
        if (read->stopped || atomic_load(&read->rows) > 0 || goes_on(read)) return true;
        int64_t counted = 0;
        if (!count_apart(read, &read->spec, &counted, err)) return false;
        if (counted == 0) {
            *verified_empty = true;
            return true;
        }
        if (read->snapshot != NULL) return late_rows(read, counted, err);
        if (read->nothing) return true; /* the first rows came just now: the next run reads them */
        if (round + 1 == EMPTY_READS) {
            err_set(err, ERR_VERIFY_EMPTY, "the read of %s found no row, but an independent count found %lld",
                    read->run->plan->name, (long long)counted);
            err_fix(err,
                    "nothing was committed; look for a row security policy, a filter or a replica that hides rows");
            return false;
        }
    }
    return true;
}
