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

static const CatalogColumn *stored_column(const Check *check, const char *name)
{
    for (int i = 0; i < check->table->column_count; i++) {
        if (same_name(check, check->table->columns[i].name, name)) return &check->table->columns[i];
    }
    return NULL;
}

static bool stream_has(const Check *check, const char *name)
{
    for (int i = 0; i < check->schema->count; i++) {
        if (same_name(check, check->schema->fields[i].name, name)) return true;
    }
    return false;
}

static void add_action(Check *check, DriftKind kind, const Field *field, const char *stored)
{
    check->drift->actions[check->drift->count++] = (DriftAction){.kind = kind, .field = field, .stored = stored};
}

static void add_bad(Check *check, const Field *field, const char *stored)
{
    char incoming[TYPE_TEXT_BYTES];
    buf_printf(&check->bad, "%scolumn \"%s\" is %s, which cannot hold %s", check->bad_count == 0 ? "" : "; ",
               field->name, stored, type_format(&field->type, incoming, sizeof(incoming)));
    check->bad_count++;
}

static void check_field(Check *check, const Field *field)
{
    const CatalogColumn *stored = stored_column(check, field->name);
    if (stored == NULL) {
        add_action(check, DRIFT_ADD, field, NULL);
        return;
    }
    Type wanted = check->storage != NULL ? check->storage(&field->type) : field->type;
    if (type_holds(&stored->type, &wanted)) return;
    char text[TYPE_TEXT_BYTES];
    type_format(&stored->type, text, sizeof(text));
    if (type_holds(&wanted, &stored->type)) {
        add_action(check, DRIFT_WIDEN, field, arena_strdup(check->arena, text));
    } else if (check->table->empty) {
        add_action(check, DRIFT_RETYPE, field, arena_strdup(check->arena, text));
    } else {
        add_bad(check, field, text);
    }
}

static void find_kept(Check *check)
{
    check->drift->kept = arena_array(check->arena, const char *, check->table->column_count);
    for (int i = 0; i < check->table->column_count; i++) {
        const char *name = check->table->columns[i].name;
        if (!stream_has(check, name)) check->drift->kept[check->drift->kept_count++] = name;
    }
}

/* A table openetl did not make, or one whose columns were dropped by hand. */
static bool check_own_columns(const DestTable *table, const char *table_name, Err *err)
{
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
    find_kept(check);
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
    if (table->is_view) {
        err_set(err, ERR_DEST_SCHEMA, "%s is a view at the destination, so it cannot be written to", table_name);
        err_fix(err, "write to another table with `as`, or drop the view");
        return false;
    }
    if (!check_own_columns(table, table_name, err)) return false;
    Check check = {
        .table = table, .schema = schema, .storage = storage, .fold_case = fold_case, .arena = arena, .drift = drift};
    buf_init(&check.bad, BUF_SQL_MAX);
    bool ok = check_columns(&check, table_name, err);
    buf_release(&check.bad);
    return ok;
}
