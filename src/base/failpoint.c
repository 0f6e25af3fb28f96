#include "base/failpoint.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct PointInfo {
    const char *name;
    const char *doc;
} PointInfo;

static const PointInfo POINTS[FAILPOINT_COUNT] = {
#define FAILPOINT(name, doc) {#name, doc},
#include "base/failpoints.def"
#undef FAILPOINT
};

static int armed = -1;
static atomic_long passages_left;
static int armed_signal = SIGKILL;

bool failpoint_setup(Err *err)
{
    const char *setting = getenv("OPENETL_FAILPOINT");
    if (setting == NULL || setting[0] == '\0') return true;
    const char *colon = strchr(setting, ':');
    size_t length = colon == NULL ? strlen(setting) : (size_t)(colon - setting);
    long count = 1;
    if (colon != NULL) {
        char *end;
        count = strtol(colon + 1, &end, 10);
        if (strcmp(end, ":stop") == 0) {
            armed_signal = SIGSTOP;
            end += strlen(":stop");
        }
        if (*end != '\0' || count < 1) {
            err_set(err, ERR_USAGE, "OPENETL_FAILPOINT=%s: the count after ':' is not a number of 1 or more", setting);
            return false;
        }
    }
    for (int i = 0; i < FAILPOINT_COUNT; i++) {
        if (strlen(POINTS[i].name) == length && strncmp(POINTS[i].name, setting, length) == 0) {
            armed = i;
            atomic_store(&passages_left, count);
            return true;
        }
    }
    err_set(err, ERR_USAGE, "OPENETL_FAILPOINT=%s: there is no such failpoint", setting);
    err_fix(err, "openetl debug failpoints lists them");
    return false;
}

void failpoint_pass(Failpoint point)
{
    if ((int)point != armed) return;
    if (atomic_fetch_sub(&passages_left, 1) != 1) return;
    kill(getpid(), armed_signal);
    /* The process stops within this sleep, not a few steps later. */
    if (armed_signal == SIGSTOP) usleep(100000);
}

const char *failpoint_name(Failpoint point)
{
    return POINTS[point].name;
}
const char *failpoint_doc(Failpoint point)
{
    return POINTS[point].doc;
}
