#include "engine/epoch.h"

static bool commit_wanted(const EpochClock *clock, const EpochFacts *facts)
{
    if (facts->rows == 0) return false;
    return facts->bytes >= clock->max_bytes || facts->now_us - clock->opened_us >= clock->interval_us;
}

EpochStep epoch_step(EpochClock *clock, const EpochFacts *facts)
{
    if (facts->ended) return EPOCH_COMMIT;
    if (facts->stopping) {
        if (!facts->changed || !facts->at_resume_point) return EPOCH_DISCARD;
        return EPOCH_COMMIT;
    }
    if (!commit_wanted(clock, facts)) return EPOCH_CONTINUE;
    if (facts->at_resume_point) return EPOCH_COMMIT;
    if (clock->wanted_us == 0) clock->wanted_us = facts->now_us;
    if (facts->force_allowed && facts->now_us - clock->wanted_us >= clock->timeout_us) return EPOCH_FORCE;
    return EPOCH_CONTINUE;
}

int64_t epoch_wait_us(const EpochClock *clock, int64_t now_us)
{
    enum { LONGEST_US = 1000000 };
    int64_t due = clock->wanted_us != 0 ? clock->wanted_us + clock->timeout_us : clock->opened_us + clock->interval_us;
    int64_t left = due - now_us;
    if (left < 1000) return 1000;
    return left > LONGEST_US ? LONGEST_US : left;
}
