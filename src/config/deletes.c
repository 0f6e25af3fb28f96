#include "config/kinds.h"

/* What a delete does: delete_mode_name's words, in the order of DeleteMode. A comparison of keys that would then ignore what
 * it found has no use. */
static const char *const WORDS[] = {"soft", "hard", "ignore", NULL};
static const char *const FOUND_WORDS[] = {"soft", "hard", NULL};

static const FieldRule FIELDS[] = {
    {.name = "reconcile",
     .kind = FIELD_DURATION,
     .required = true,
     .at = FIELD_AT(StreamResource, reconcile_keys_us),
     .least = 1},
    {.name = "as", .kind = FIELD_WORD, .at = FIELD_AT(StreamResource, deletes), .words = FOUND_WORDS},
};
static const FieldTable TABLE = FIELD_TABLE(FIELDS);

bool deletes_read(const FieldSite *site, StreamResource *stream, Err *err)
{
    stream->has_deletes = true;
    if (site->node->kind == NODE_MAP) return fields_read(&TABLE, site, stream, err);
    int word = 0;
    if (!field_word(site, WORDS, NULL, NULL, &word, err)) return false;
    stream->deletes = (DeleteMode)word;
    return true;
}

static bool refuse(const FieldSite *stream, const char *what, const char *fix, Err *err)
{
    FieldPath step = {stream->path, "deletes", 0};
    config_error(err, &node_entry(stream->node, "deletes")->place, &step, "%s", what);
    err_fix(err, "%s", fix);
    return false;
}

bool deletes_check(const FieldSite *site, const StreamResource *stream, Err *err)
{
    if (node_entry(site->node, "deletes") == NULL) return true;
    SyncMode sync = stream->has_sync ? stream->sync : SYNC_FULL_REFRESH;
    bool compares_keys = stream->reconcile_keys_us > 0;
    if (sync == SYNC_FULL_REFRESH)
        return refuse(site, "a full refresh does not see single deletes",
                      "take it out: write: overwrite drops what is gone from the source", err);
    if (sync == SYNC_INCREMENTAL && !compares_keys)
        return refuse(site, "an incremental read does not see deletes",
                      "write deletes: { reconcile: 24h }, which compares keys that often", err);
    if (sync != SYNC_INCREMENTAL && compares_keys)
        return refuse(site, "only sync: incremental compares keys apart",
                      "write deletes: soft, hard or ignore: this sync sees every delete", err);
    return true;
}
