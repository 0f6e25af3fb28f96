#include "connectors/postgres/keyset.h"

#include "data/value.h"

enum { POSITION_VERSION = 1 };

void keyset_init(Keyset *keyset)
{
    *keyset = (Keyset){0};
}

void keyset_release(Keyset *keyset)
{
    for (int i = 0; i < keyset->count; i++)
        buf_release(&keyset->values[i]);
    free(keyset->values);
    *keyset = (Keyset){0};
}

/* Begins a row of `phase`: as many empty values as it has columns. */
static void keyset_start(Keyset *keyset, const PgPhase *phase)
{
    if (keyset->count < phase->count) {
        keyset->values = mem_realloc(keyset->values, sizeof(Buf) * (size_t)phase->count);
        while (keyset->count < phase->count)
            buf_init(&keyset->values[keyset->count++], VALUE_MAX_BYTES);
    }
    for (int i = 0; i < phase->count; i++)
        buf_clear(&keyset->values[i]);
    keyset->phase = phase;
}

/* ---- phases ------------------------------------------------------------------------------------------------------ */

static bool delivered(const ReadSpec *spec, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (schema_find(read_schema(spec), names[i]) < 0) return false;
    return count > 0;
}

/* The cursor, then the key without it. */
static PgPhase cursor_phase(const ReadSpec *spec, const PgTable *table, Arena *arena)
{
    PgPhase phase = {.order = "cursor", .part = PG_PART_RANGE};
    phase.by = arena_array(arena, const char *, table->order_count + 1);
    phase.by[phase.count++] = spec->cursor;
    for (int i = 0; i < table->order_count; i++)
        if (strcmp(table->order[i], spec->cursor) != 0) phase.by[phase.count++] = table->order[i];
    return phase;
}

int keyset_phases(const ReadSpec *spec, const PgTable *table, Arena *arena, PgPhase phases[2])
{
    bool keyed = !spec->any_order && delivered(spec, table->order, table->order_count);
    PgPhase by_key = {.order = "key", .part = PG_PART_RANGE};
    if (keyed) {
        by_key.by = table->order;
        by_key.count = table->order_count;
    }
    phases[0] = by_key;
    if (spec->cursor == NULL) return 1;
    const PgColumn *cursor = pg_table_column(table, spec->cursor);
    bool ordered = keyed && cursor != NULL && pg_type_keyset(&cursor->type) && delivered(spec, &spec->cursor, 1);
    /* A first read takes most of the table: in the order of the key. Later ones follow an index on the cursor. */
    if (spec->lower != NULL && ordered) phases[0] = cursor_phase(spec, table, arena);
    if (!spec->include_null_cursor) return 1;
    phases[1] = by_key;
    phases[1].order = "null";
    phases[1].part = PG_PART_NULL_CURSOR;
    return 2;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

void keyset_take(Keyset *keyset, const PgPhase *phase, const Batch *batch)
{
    keyset_start(keyset, phase);
    for (int i = 0; i < phase->count; i++) {
        int column = schema_find(batch->schema, phase->by[i]);
        if (!value_format(&batch->columns[column], batch->rows - 1, &keyset->values[i]))
            BUG("the order column %s holds NULL", phase->by[i]);
    }
}

static void put_list(const CatalogTable *table, const PgPhase *phase, Buf *sql)
{
    for (int i = 0; i < phase->count; i++) {
        if (i > 0) buf_puts(sql, ", ");
        pg_put_column(sql, table, phase->by[i]);
    }
}

void keyset_put(const CatalogTable *table, const PgPhase *phase, const Keyset *after, Buf *sql)
{
    if (phase->count == 0) return;
    if (after->phase == phase) {
        buf_puts(sql, "\nAND (");
        put_list(table, phase, sql);
        buf_puts(sql, ") > (");
        for (int i = 0; i < phase->count; i++) {
            if (i > 0) buf_puts(sql, ", ");
            pg_put_typed(sql, buf_text(&after->values[i]), table_column(table, phase->by[i])->native);
        }
        buf_puts(sql, ")");
    }
    buf_puts(sql, "\nORDER BY ");
    put_list(table, phase, sql);
}

/* ---- positions --------------------------------------------------------------------------------------------------- */

bool keyset_mark(const Keyset *keyset, Buf *position)
{
    const PgPhase *phase = keyset->phase;
    if (phase == NULL || phase->count == 0) return false;
    json_t *after = json_array();
    for (int i = 0; i < phase->count; i++)
        json_array_append_new(after, json_stringn(buf_text(&keyset->values[i]), keyset->values[i].length));
    json_t *object = json_pack("{s:i, s:s, s:o, s:o}", "v", POSITION_VERSION, "order", phase->order, "by",
                               keyset_names(phase), "after", after);
    char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);
    json_decref(object);
    if (text == NULL) return false;
    buf_puts(position, text);
    free(text);
    return true;
}

json_t *keyset_names(const PgPhase *phase)
{
    json_t *names = json_array();
    for (int i = 0; i < phase->count; i++)
        json_array_append_new(names, json_string(phase->by[i]));
    return names;
}

bool keyset_same_names(const json_t *names, const PgPhase *phase)
{
    if (json_array_size(names) != (size_t)phase->count) return false;
    for (int i = 0; i < phase->count; i++) {
        const char *name = json_string_value(json_array_get(names, (size_t)i));
        if (name == NULL || strcmp(name, phase->by[i]) != 0) return false;
    }
    return true;
}

static bool take_values(const json_t *values, const PgPhase *phase, Keyset *after)
{
    if (phase->count == 0 || json_array_size(values) != (size_t)phase->count) return false;
    keyset_start(after, phase);
    for (int i = 0; i < phase->count; i++) {
        const char *value = json_string_value(json_array_get(values, (size_t)i));
        if (value == NULL) return false;
        buf_puts(&after->values[i], value);
    }
    return true;
}

bool keyset_resume(const ReadSpec *spec, const PgPhase *phases, int count, int *phase, Keyset *after, Err *err)
{
    json_t *object = json_loads(spec->resume, 0, NULL);
    const char *order = json_string_value(json_object_get(object, "order"));
    bool found = false;
    for (int i = 0; i < count && !found && order != NULL; i++) {
        found = json_integer_value(json_object_get(object, "v")) == POSITION_VERSION &&
                strcmp(order, phases[i].order) == 0 && keyset_same_names(json_object_get(object, "by"), &phases[i]) &&
                take_values(json_object_get(object, "after"), &phases[i], after);
        if (found) *phase = i;
    }
    json_decref(object);
    if (found) return true;
    err_set(err, ERR_STATE_POSITION_INVALID,
            "the saved position in %s does not fit the order it is read in now: %.200s", spec->stream, spec->resume);
    err_fix(err,
            "the table's unique index changed, or the read's range did: start the stream's read again with openetl "
            "state reset");
    return false;
}
