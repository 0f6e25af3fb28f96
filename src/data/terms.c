#include "data/terms.h"

#include <string.h>

static const char *const SYNCS[] = {"full_refresh", "incremental", "compare", "cdc"};
static const char *const WRITES[] = {"append", "merge", "overwrite"};
static const char *const GUARANTEES[] = {"at_least_once", "effectively_once", "exactly_once"};
static const char *const REPLAYS[] = {"exact", "superset"};
static const char *const STYLES[] = {"stage_and_apply", "transactional_stream", "deliver_and_acknowledge"};
static const char *const SCOPES[] = {"pipeline", "stream"};
static const char *const OPS[] = {"read", "insert", "update", "delete", "truncate"};
static const char *const DELETES[] = {"soft", "hard", "ignore"};
static const char *const LAYOUTS[] = {"direct", "base_buffer", "log_view"};

static const char *const DRIFT_WORDS[] = {"unset", "apply", "ignore", "keep", "fail"};

static bool find(const char *const *names, int count, const char *text, int *index)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], text) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

const char *sync_name(SyncMode sync)
{
    return SYNCS[sync];
}
const char *write_name(WriteMode write)
{
    return WRITES[write];
}
const char *guarantee_name(Guarantee guarantee)
{
    return GUARANTEES[guarantee];
}
const char *replay_name(Replay replay)
{
    return REPLAYS[replay];
}
const char *commit_style_name(CommitStyle style)
{
    return STYLES[style];
}
const char *scope_name(CommitScope scope)
{
    return SCOPES[scope];
}
const char *row_op_name(RowOp op)
{
    return OPS[op];
}
const char *drift_word_name(DriftWord word)
{
    return DRIFT_WORDS[word];
}

const char *delete_mode_name(DeleteMode mode)
{
    return DELETES[mode];
}
const char *layout_name(Layout layout)
{
    return LAYOUTS[layout];
}

bool sync_parse(const char *text, SyncMode *sync)
{
    int index;
    bool found = find(SYNCS, SYNC_COUNT, text, &index);
    if (found) *sync = (SyncMode)index;
    return found;
}

bool write_parse(const char *text, WriteMode *write)
{
    int index;
    bool found = find(WRITES, WRITE_COUNT, text, &index);
    if (found) *write = (WriteMode)index;
    return found;
}

bool guarantee_parse(const char *text, Guarantee *guarantee)
{
    int index;
    bool found = find(GUARANTEES, GUARANTEE_COUNT, text, &index);
    if (found) *guarantee = (Guarantee)index;
    return found;
}

bool scope_parse(const char *text, CommitScope *scope)
{
    int index;
    bool found = find(SCOPES, 2, text, &index);
    if (found) *scope = (CommitScope)index;
    return found;
}
