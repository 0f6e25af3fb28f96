#include "connectors/postgres/change.h"

#include "data/value.h"

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* "row id=5", from the change itself. */
static void name_row(const PgChange *change, const PgDatum *row, Err *err)
{
    const PgShape *shape = change->shape;
    char text[256];
    size_t used = 0;
    for (int i = 0; i < shape->key_count && used < sizeof text; i++) {
        int index = shape->key[i];
        Field shown = change->spec->schema->fields[index];
        Schema schema = {&shown, 1};
        BatchBuilder one;
        Buf value;
        PgFault ignored;
        builder_init(&one, &schema, 1, 0);
        buf_init(&value, VALUE_MAX_BYTES);
        const PgDatum *datum = shape->from[index] < 0 ? NULL : &row[shape->from[index]];
        bool known = datum != NULL && (datum->kind == 't' || datum->kind == 'b') &&
                     pg_log_append(&shape->fields[index], datum, &one.columns[0], &ignored) &&
                     value_format(&one.columns[0], 0, &value);
        int put = snprintf(text + used, sizeof text - used, "%s%s=%.*s", i == 0 ? "" : ", ", shown.name, PG_SHOWN_VALUE,
                           known ? buf_text(&value) : "?");
        used += put > 0 ? (size_t)put : 0;
        buf_release(&value);
        builder_release(&one);
    }
    if (shape->key_count > 0) err_at(err, "row %s", text);
    err_at(err, "%s", change->spec->stream);
}

static bool fail_value(const PgChange *change, int index, const PgFault *fault, const PgDatum *row, Err *err)
{
    const Field *field = &change->spec->schema->fields[index];
    char type[96];
    type_format(&field->type, type, sizeof type);
    if (fault->malformed)
        err_set(err, ERR_SOURCE_QUERY, "malformed value in the change log: column \"%s\" (%s): %s", field->name, type,
                fault->why);
    else
        err_set(err, ERR_DATA_CAST, "column \"%s\" (%s) cannot hold %s: %s", field->name, type, fault->value,
                fault->why);
    name_row(change, row, err);
    if (fault->malformed) return false;
    if (field->type.id == TYPE_UTF8 || field->type.id == TYPE_JSON)
        err_fix(err, "leave the column out: columns: { exclude: [\"%s\"] }", field->name);
    else
        err_fix(err, "deliver the column as text: columns: { types: { \"%s\": utf8 } }", field->name);
    return false;
}

static bool malformed(const PgChange *change, const char *what, Err *err)
{
    err_set(err, ERR_SOURCE_QUERY, "malformed change in the change log: %s", what);
    err_at(err, "%s", change->spec->stream);
    return false;
}

static bool keyless(const PgChange *change, Err *err)
{
    err_set(err, ERR_SOURCE_CHANGED,
            "the log does not say the key of a changed row of %s: the table's replica identity lacks it",
            change->spec->stream);
    err_fix(err, "give the table a primary key over the stream's key and REPLICA IDENTITY DEFAULT, or REPLICA IDENTITY "
                 "FULL; then "
                 "openetl state rebaseline, for what is logged already stays so");
    return false;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static bool take_row(PgChange *change, const PgTuple *tuple, PgDatum **row, Err *err)
{
    PgTuple at = *tuple;
    if (at.count != change->shape->count) return malformed(change, "a row with another number of columns", err);
    if (at.count > change->capacity) {
        change->capacity = at.count;
        change->old_row = mem_realloc(change->old_row, sizeof(PgDatum) * (size_t)at.count);
        change->new_row = mem_realloc(change->new_row, sizeof(PgDatum) * (size_t)at.count);
    }
    for (int i = 0; i < tuple->count; i++)
        (*row)[i] = pg_tuple_next(&at);
    return true;
}

/* One row: each value from `row`; what was not sent from `old`, where that has it. */
static bool append_row(const PgChange *change, const PgDatum *row, const PgDatum *old, RowOp op, uint64_t low,
                       BatchBuilder *builder, Err *err)
{
    const PgShape *shape = change->shape;
    int64_t rows = builder->rows;
    PgFault fault;
    for (int i = 0; i < change->spec->schema->count; i++) {
        int from = shape->from[i];
        const PgDatum *datum = from < 0 ? &shape->missing[i] : &row[from];
        Column *column = &builder->columns[i];
        if (datum->kind == 'u' && old != NULL && (old[from].kind == 't' || old[from].kind == 'b')) datum = &old[from];
        if (datum->kind == 'n' || (op == OP_DELETE && (from < 0 || datum->kind == 'u'))) {
            column_append_null(column);
        } else if (datum->kind == 'u') {
            column_append_unchanged(column);
        } else if (!pg_log_append(&shape->fields[i], datum, column, &fault)) {
            builder_truncate(builder, rows);
            return fail_value(change, i, &fault, row, err);
        }
    }
    builder_set_version(builder, op, (Seq){change->commit_lsn, low});
    builder_end_row(builder);
    return true;
}

static bool same_value(const PgDatum *a, const PgDatum *b)
{
    if (b->kind == 'u') return true;
    if (a->kind != b->kind) return false;
    return a->kind == 'n' || (a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0);
}

static bool key_changed(const PgChange *change)
{
    const PgShape *shape = change->shape;
    for (int i = 0; i < shape->key_count; i++) {
        int from = shape->from[shape->key[i]];
        if (from >= 0 && !same_value(&change->old_row[from], &change->new_row[from])) return true;
    }
    return false;
}

static bool append_update(PgChange *change, const PgMessage *message, BatchBuilder *builder, Err *err)
{
    const PgDatum *old = NULL;
    uint64_t low = 2 * change->index;
    bool whole = message->old_kind == 'O';
    if (!take_row(change, &message->new_row, &change->new_row, err)) return false;
    if (!change->shape->keyed && !whole) return keyless(change, err);
    if (message->old_kind != 0) {
        if (!take_row(change, &message->old_row, &change->old_row, err)) return false;
        old = change->old_row;
        if (key_changed(change) && !append_row(change, old, NULL, OP_DELETE, low++, builder, err)) return false;
    }
    return append_row(change, change->new_row, old, OP_UPDATE, low, builder, err);
}

bool change_append(PgChange *change, const PgMessage *message, BatchBuilder *builder, Err *err)
{
    int64_t rows = builder->rows;
    if (message->kind == PG_MSG_INSERT) {
        return take_row(change, &message->new_row, &change->new_row, err) &&
               append_row(change, change->new_row, NULL, OP_INSERT, 2 * change->index, builder, err);
    }
    if (message->kind == PG_MSG_UPDATE) {
        if (append_update(change, message, builder, err)) return true;
        if (builder->rows > rows) builder_truncate(builder, rows);
        return false;
    }
    if (!change->shape->keyed && message->old_kind != 'O') return keyless(change, err);
    return take_row(change, &message->old_row, &change->old_row, err) &&
           append_row(change, change->old_row, NULL, OP_DELETE, 2 * change->index, builder, err);
}

void change_truncate(const PgChange *change, BatchBuilder *builder)
{
    for (int i = 0; i < change->spec->schema->count; i++)
        column_append_null(&builder->columns[i]);
    builder_set_version(builder, OP_TRUNCATE, (Seq){change->commit_lsn, 2 * change->index});
    builder_end_row(builder);
}

void change_release(PgChange *change)
{
    free(change->old_row);
    free(change->new_row);
    *change = (PgChange){0};
}
