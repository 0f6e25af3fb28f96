#include "config/kinds.h"

static const DriftWord ADDED[] = {DRIFT_APPLY, DRIFT_IGNORE, DRIFT_FAIL, DRIFT_UNSET};
static const DriftWord KEPT[] = {DRIFT_KEEP, DRIFT_FAIL, DRIFT_UNSET};
static const DriftWord WIDENED[] = {DRIFT_APPLY, DRIFT_FAIL, DRIFT_UNSET};

/* One of `words`, which UNSET ends. */
static bool read_word(const FieldSite *site, const DriftWord *words, DriftWord *word, Err *err)
{
    const char *names[DRIFT_WORD_COUNT + 1] = {NULL};
    int index;
    for (int i = 0; words[i] != DRIFT_UNSET; i++)
        names[i] = drift_word_name(words[i]);
    if (!field_word(site, names, NULL, NULL, &index, err)) return false;
    *word = words[index];
    return true;
}

static bool read_added(const FieldSite *site, void *target, Err *err)
{
    return read_word(site, ADDED, &((DriftPolicy *)target)->added, err);
}

static bool read_dropped(const FieldSite *site, void *target, Err *err)
{
    return read_word(site, KEPT, &((DriftPolicy *)target)->dropped, err);
}

static bool read_widened(const FieldSite *site, void *target, Err *err)
{
    return read_word(site, WIDENED, &((DriftPolicy *)target)->widened, err);
}

static bool read_narrowed(const FieldSite *site, void *target, Err *err)
{
    return read_word(site, KEPT, &((DriftPolicy *)target)->narrowed, err);
}

static bool read_changed(const FieldSite *site, void *target, Err *err)
{
    return read_word(site, KEPT, &((DriftPolicy *)target)->changed, err);
}

static const FieldRule FIELDS[] = {
    {.name = "added", .kind = FIELD_OWN, .read = read_added},
    {.name = "dropped", .kind = FIELD_OWN, .read = read_dropped},
    {.name = "widened", .kind = FIELD_OWN, .read = read_widened},
    {.name = "narrowed", .kind = FIELD_OWN, .read = read_narrowed},
    {.name = "changed", .kind = FIELD_OWN, .read = read_changed},
};
static const FieldTable TABLE = FIELD_TABLE(FIELDS);

bool drift_policy_read(const FieldSite *site, DriftPolicy *policy, Err *err)
{
    *policy = (DriftPolicy){0};
    return fields_read(&TABLE, site, policy, err);
}
