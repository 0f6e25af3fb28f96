#include "catalog/drift.h"

#include <string.h>
#include <strings.h>

enum { TYPE_TEXT_BYTES = 128 };

typedef struct Check {
    const DestTable *table;
    const Schema *schema;
    DriftStorage storage;
    bool fold_case;
    Arena *arena;
    Drift *drift;
    Buf bad; /* the columns that do not fit, as text */
    int bad_count;
} Check;

static bool same_name(const Check *check, const char *a, const char *b)
{
    return check->fold_case ? strcasecmp(a, b) == 0 : strcmp(a, b) == 0;
}

const CatalogColumn *drift_stored(const DestTable *table, const char *name, bool fold_case)
{
    for (int i = 0; i < table->column_count; i++) {
        const char *stored = table->columns[i].name;
        if (fold_case ? strcasecmp(stored, name) == 0 : strcmp(stored, name) == 0) return &table->columns[i];
    }
    return NULL;
}

DriftFit drift_fit(const DestTable *table, const Type *stored, const Type *incoming, DriftStorage storage)
{
    Type wanted = storage != NULL ? storage(incoming) : *incoming;
    if (type_holds(stored, &wanted)) return DRIFT_HOLDS;
    if (type_holds(&wanted, stored)) return DRIFT_WIDENS;
    return table->empty ? DRIFT_RETYPES : DRIFT_CANNOT;
}

static bool stream_has(const Check *check, const char *name)
{
    for (int i = 0; i < check->schema->count; i++) {
        if (same_name(check, check->schema->fields[i].name, name)) return true;
    }
    return false;
}

static void add_action(Check *check, DriftActionKind kind, const Field *field, const char *stored)
{
    check->drift->actions[check->drift->count++] = (DriftAction){.kind = kind, .field = field, .stored = stored};
}

static Buf *next_bad(Check *check)
{
    if (check->bad_count++ > 0) buf_puts(&check->bad, "; ");
    return &check->bad;
}

static void check_field(Check *check, const Field *field)
{
    const CatalogColumn *stored = drift_stored(check->table, field->name, check->fold_case);
    if (stored == NULL) {
        add_action(check, DRIFT_ADD, field, NULL);
        return;
    }
    char text[TYPE_TEXT_BYTES], incoming[TYPE_TEXT_BYTES];
    type_format(&stored->type, text, sizeof(text));
    switch (drift_fit(check->table, &stored->type, &field->type, check->storage)) {
    case DRIFT_HOLDS:
        break;
    case DRIFT_WIDENS:
        add_action(check, DRIFT_WIDEN, field, arena_strdup(check->arena, text));
        break;
    case DRIFT_RETYPES:
        add_action(check, DRIFT_RETYPE, field, arena_strdup(check->arena, text));
        break;
    case DRIFT_CANNOT:
        buf_printf(next_bad(check), "column \"%s\" is %s, which cannot hold %s", field->name, text,
                   type_format(&field->type, incoming, sizeof(incoming)));
        break;
    }
}

static void check_kept(Check *check)
{
    for (int i = 0; i < check->table->column_count; i++) {
        const CatalogColumn *column = &check->table->columns[i];
        if (column->nullable || stream_has(check, column->name)) continue;
        buf_printf(next_bad(check), "column \"%s\" is NOT NULL without a default, and the stream does not have it",
                   column->name);
    }
}

/* A table openetl did not make, or one whose columns were dropped by hand. */
bool drift_check_own(const DestTable *table, const char *table_name, Err *err)
{
    if (!table->exists) return true;
    if (table->is_view) {
        err_set(err, ERR_DEST_SCHEMA, "%s is a view at the destination, so it cannot be written to", table_name);
        err_fix(err, "write to another table with `as`, or drop the view");
        return false;
    }
    if (table->has_id && table->has_seq && table->has_synced_at) return true;
    err_set(err, ERR_DEST_SCHEMA, "table %s exists without%s%s%s, so it was not made by openetl", table_name,
            table->has_id ? "" : " _openetl_id", table->has_seq ? "" : " _openetl_seq",
            table->has_synced_at ? "" : " _openetl_synced_at");
    err_fix(err, "write to another table with `as`, or rename or drop %s", table_name);
    return false;
}

static bool check_columns(Check *check, const char *table_name, Err *err)
{
    check->drift->actions = arena_array(check->arena, DriftAction, check->schema->count);
    for (int i = 0; i < check->schema->count; i++) {
        check_field(check, &check->schema->fields[i]);
    }
    check_kept(check);
    if (check->bad_count == 0) return true;
    err_set(err, ERR_DEST_SCHEMA, "table %s cannot hold the stream: %s", table_name, buf_text(&check->bad));
    err_fix(err, "change the column at the destination, give it a type with columns.types, or write to another table "
                 "with `as`");
    return false;
}

bool drift_check(const DestTable *table, const char *table_name, const Schema *schema, DriftStorage storage,
                 bool fold_case, Arena *arena, Drift *drift, Err *err)
{
    *drift = (Drift){0};
    if (!table->exists) return true;
    if (!drift_check_own(table, table_name, err)) return false;
    Check check = {
        .table = table, .schema = schema, .storage = storage, .fold_case = fold_case, .arena = arena, .drift = drift};
    buf_init(&check.bad, BUF_SQL_MAX);
    bool ok = check_columns(&check, table_name, err);
    buf_release(&check.bad);
    return ok;
}
