#include "catalog/drift.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TYPE_TEXT_BYTES = 128, NOT_TEXT = -1 };

typedef struct See {
    const DriftView *view;
    Arena *arena;
    DriftChanges *changes;
    const CatalogColumn **prior; /* of each column of now: what it was before, also under another name; or NULL */
    bool *lives;                 /* of each column before: it is some column's prior */
} See;

/* ---- types as a source declares them ----------------------------------------------------------------------------- */

/* The length a text type allows; INT_MAX: any; NOT_TEXT. Texts of all lengths travel alike, so only this tells that one
 * became shorter. */
static int text_length(const CatalogColumn *column)
{
    static const char *const NAMES[] = {"character varying", "varchar", "character", "char",
                                        "nvarchar",          "nchar",   "bpchar",    "text"};
    if (column->type.id != TYPE_UTF8 || column->native == NULL) return NOT_TEXT;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        size_t length = strlen(NAMES[i]);
        if (strncasecmp(column->native, NAMES[i], length) != 0) continue;
        const char *rest = column->native + length;
        rest += strspn(rest, " ");
        if (*rest == '\0') return INT_MAX;
        if (*rest != '(') continue;
        long most = strtol(rest + 1, NULL, 10);
        return most > 0 && most < INT_MAX ? (int)most : NOT_TEXT;
    }
    return NOT_TEXT;
}

typedef enum Turn { TURN_NONE, TURN_WIDER, TURN_NARROWER, TURN_OTHER } Turn;

static Turn turn_of(const CatalogColumn *before, const CatalogColumn *now)
{
    if (type_equal(&before->type, &now->type)) {
        int was = text_length(before), is = text_length(now);
        if (was == NOT_TEXT || is == NOT_TEXT || was == is) return TURN_NONE;
        return is > was ? TURN_WIDER : TURN_NARROWER;
    }
    if (type_holds(&now->type, &before->type)) return TURN_WIDER;
    return type_holds(&before->type, &now->type) ? TURN_NARROWER : TURN_OTHER;
}

static const char *type_text(const Type *type, Arena *arena)
{
    char text[TYPE_TEXT_BYTES];
    return arena_strdup(arena, type_format(type, text, sizeof text));
}

/* ---- before and now ---------------------------------------------------------------------------------------------- */

static int find_column(const CatalogColumn *columns, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(columns[i].name, name) == 0) return i;
    return -1;
}

/* The place of a column that the other list lacks: how many such ones stand before it (*rank) behind the last column
 * that both have. Returns that one's name, or NULL at the start. */
static const char *place_of(const CatalogColumn *columns, int index, const CatalogColumn *others, int other_count,
                            int *rank)
{
    *rank = 0;
    for (int i = index - 1; i >= 0; i--) {
        if (find_column(others, other_count, columns[i].name) >= 0) return columns[i].name;
        (*rank)++;
    }
    return NULL;
}

static bool same_place(const DriftView *view, int now, int before)
{
    int rank_now, rank_before;
    const char *after_now = place_of(view->now, now, view->before, view->before_count, &rank_now);
    const char *after_before = place_of(view->before, before, view->now, view->now_count, &rank_before);
    if (rank_now != rank_before || (after_now == NULL) != (after_before == NULL)) return false;
    return after_now == NULL || strcmp(after_now, after_before) == 0;
}

static void match_renamed(See *see, int now)
{
    const DriftView *view = see->view;
    for (int i = 0; i < view->before_count; i++) {
        const CatalogColumn *before = &view->before[i];
        if (see->lives[i] || find_column(view->now, view->now_count, before->name) >= 0) continue;
        if (!type_equal(&before->type, &view->now[now].type) || !same_place(view, now, i)) continue;
        see->prior[now] = before;
        see->lives[i] = true;
        return;
    }
}

static void match_columns(See *see)
{
    const DriftView *view = see->view;
    see->prior = arena_array(see->arena, const CatalogColumn *, view->now_count);
    see->lives = arena_array(see->arena, bool, view->before_count);
    for (int i = 0; i < view->now_count; i++) {
        int before = find_column(view->before, view->before_count, view->now[i].name);
        if (before < 0) continue;
        see->prior[i] = &view->before[before];
        see->lives[before] = true;
    }
    for (int i = 0; view->known && i < view->now_count; i++)
        if (see->prior[i] == NULL) match_renamed(see, i);
}

/* ---- what becomes of a change ------------------------------------------------------------------------------------ */

static DriftOutcome by_policy(const See *see, DriftWord word, DriftOutcome otherwise)
{
    if (word == DRIFT_FAIL) return DRIFT_REFUSED;
    return see->view->replaced ? DRIFT_REPLACED : otherwise;
}

/* A table that is replaced casts nothing. */
static DriftOutcome by_type_policy(const See *see, DriftWord word)
{
    if (word == DRIFT_UNSET) word = see->view->replaced ? DRIFT_KEEP : DRIFT_FAIL;
    return by_policy(see, word, DRIFT_KEPT);
}

static DriftOutcome of_added(const See *see, const CatalogColumn *stored)
{
    if (stored != NULL) return DRIFT_FITS;
    DriftWord word = see->view->policy.added;
    return word == DRIFT_IGNORE ? DRIFT_IGNORED : by_policy(see, word, DRIFT_APPLIED);
}

static DriftOutcome of_dropped(const See *see, const CatalogColumn *stored, bool at_source, DriftChange *change)
{
    if (stored == NULL) return DRIFT_FITS;
    change->must_fill = !see->view->replaced && !stored->nullable;
    if (change->must_fill) return DRIFT_REFUSED;
    return by_policy(see, at_source ? see->view->policy.dropped : DRIFT_KEEP, DRIFT_KEPT);
}

/* ---- one column -------------------------------------------------------------------------------------------------- */

static void add_change(See *see, DriftChange change)
{
    see->changes->items[see->changes->count++] = change;
}

static const CatalogColumn *stored_of(const See *see, const char *name)
{
    return drift_stored(see->view->table, name, see->view->fold_case);
}

static void set_types(See *see, DriftChange *change, const CatalogColumn *before, const CatalogColumn *now)
{
    change->from = type_text(&before->type, see->arena);
    change->to = type_text(&now->type, see->arena);
    if (strcmp(change->from, change->to) != 0) return;
    change->from = before->native;
    change->to = now->native;
}

/* The source's change alone, where the stored type holds the new one: nothing is to be altered. */
static void see_fitting(See *see, const CatalogColumn *now, const CatalogColumn *before, const CatalogColumn *stored,
                        DriftChange change)
{
    Turn turn = before == NULL ? TURN_NONE : turn_of(before, now);
    change.at_source = turn != TURN_NONE;
    if (change.at_source) {
        set_types(see, &change, before, now);
    } else if (type_equal(&stored->type, &now->type)) {
        return;
    }
    change.outcome = DRIFT_FITS;
    change.kind = turn == TURN_WIDER ? DRIFT_WIDENED : turn == TURN_OTHER ? DRIFT_CHANGED : DRIFT_NARROWED;
    if (turn == TURN_NARROWER) change.outcome = by_type_policy(see, see->view->policy.narrowed);
    if (turn == TURN_OTHER) change.outcome = by_type_policy(see, see->view->policy.changed);
    if (turn == TURN_WIDER && see->view->policy.widened != DRIFT_FAIL && see->view->replaced)
        change.outcome = DRIFT_REPLACED;
    add_change(see, change);
}

static void see_type(See *see, const CatalogColumn *now, const CatalogColumn *before, const CatalogColumn *stored)
{
    const DriftView *view = see->view;
    DriftChange change = {.column = now->name,
                          .from = type_text(&stored->type, see->arena),
                          .to = type_text(&now->type, see->arena),
                          .stored = type_text(&stored->type, see->arena)};
    DriftFit fit = drift_fit(view->table, &stored->type, &now->type, view->storage);
    if (fit == DRIFT_HOLDS) {
        see_fitting(see, now, before, stored, change);
        return;
    }
    Turn turn = before == NULL ? TURN_NONE : turn_of(before, now);
    change.at_source = view->known && (before == NULL || turn != TURN_NONE);
    if (before != NULL && turn != TURN_NONE) set_types(see, &change, before, now);
    change.kind = fit == DRIFT_WIDENS ? DRIFT_WIDENED : DRIFT_CHANGED;
    if (fit == DRIFT_WIDENS) {
        change.outcome = by_policy(see, view->policy.widened, DRIFT_APPLIED);
    } else if (view->replaced) {
        change.outcome = by_type_policy(see, view->policy.changed);
    } else {
        change.cannot_hold = fit == DRIFT_CANNOT;
        change.outcome = fit == DRIFT_CANNOT ? DRIFT_REFUSED : DRIFT_APPLIED;
    }
    add_change(see, change);
}

static void see_added(See *see, const CatalogColumn *now, const CatalogColumn *before, const CatalogColumn *stored)
{
    if (stored != NULL && !see->view->known) return;
    add_change(see, (DriftChange){.kind = DRIFT_ADDED,
                                  .at_source = see->view->known && before == NULL,
                                  .column = now->name,
                                  .to = type_text(&now->type, see->arena),
                                  .stored = stored == NULL ? NULL : type_text(&stored->type, see->arena),
                                  .outcome = of_added(see, stored)});
}

static void see_renamed(See *see, const CatalogColumn *now, const CatalogColumn *before, const CatalogColumn *stored)
{
    const CatalogColumn *old = stored_of(see, before->name);
    DriftChange change = {.kind = DRIFT_RENAMED,
                          .at_source = true,
                          .column = now->name,
                          .was = before->name,
                          .from = type_text(&before->type, see->arena),
                          .to = type_text(&now->type, see->arena),
                          .stored = stored == NULL ? NULL : type_text(&stored->type, see->arena),
                          .one_name = old != NULL && old == stored};
    change.gain = of_added(see, stored);
    DriftOutcome loss = change.one_name ? DRIFT_FITS : of_dropped(see, old, true, &change);
    change.outcome = loss == DRIFT_REFUSED || change.gain == DRIFT_FITS ? loss : change.gain;
    add_change(see, change);
}

static void see_column(See *see, int index)
{
    const CatalogColumn *now = &see->view->now[index], *before = see->prior[index];
    const CatalogColumn *stored = stored_of(see, now->name);
    bool renamed = before != NULL && strcmp(before->name, now->name) != 0;
    if (renamed)
        see_renamed(see, now, before, stored);
    else if (stored == NULL || (before == NULL && drift_fit(see->view->table, &stored->type, &now->type,
                                                            see->view->storage) == DRIFT_HOLDS))
        see_added(see, now, before, stored);
    if (stored != NULL) see_type(see, now, renamed ? NULL : before, stored);
}

/* ---- columns that are not there any more ------------------------------------------------------------------------- */

static void see_dropped(See *see, const char *name, const char *type, const CatalogColumn *stored, bool at_source)
{
    DriftChange change = {.kind = DRIFT_DROPPED,
                          .at_source = at_source,
                          .column = name,
                          .from = type,
                          .stored = stored == NULL ? NULL : type_text(&stored->type, see->arena)};
    change.outcome = of_dropped(see, stored, at_source, &change);
    add_change(see, change);
}

static bool is_read(const See *see, const char *name)
{
    const DriftView *view = see->view;
    for (int i = 0; i < view->now_count; i++) {
        const char *read = view->now[i].name;
        if (view->fold_case ? strcasecmp(read, name) == 0 : strcmp(read, name) == 0) return true;
    }
    return false;
}

/* Whether a change of before told of the column already. */
static bool is_told(const See *see, const CatalogColumn *stored)
{
    const DriftView *view = see->view;
    for (int i = 0; i < view->before_count; i++)
        if (drift_stored(view->table, view->before[i].name, view->fold_case) == stored) return true;
    return false;
}

void drift_see(const DriftView *view, Arena *arena, DriftChanges *changes)
{
    *changes = (DriftChanges){0};
    if (!view->table->exists) return;
    See see = {.view = view, .arena = arena, .changes = changes};
    changes->items =
        arena_array(arena, DriftChange, 2 * view->now_count + view->before_count + view->table->column_count + 1);
    match_columns(&see);
    for (int i = 0; i < view->now_count; i++)
        see_column(&see, i);
    for (int i = 0; i < view->before_count; i++) {
        const CatalogColumn *before = &view->before[i];
        if (!see.lives[i])
            see_dropped(&see, before->name, type_text(&before->type, arena), stored_of(&see, before->name), true);
    }
    for (int i = 0; i < view->table->column_count; i++) {
        const CatalogColumn *stored = &view->table->columns[i];
        if (is_read(&see, stored->name) || is_told(&see, stored)) continue;
        see_dropped(&see, stored->name, type_text(&stored->type, arena), stored, false);
    }
}
