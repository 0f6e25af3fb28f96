#include "connectors/postgres/shape.h"

/* ---- against the catalog ----------------------------------------------------------------------------------------- */

static bool reshaped(const ReadSpec *spec, const char *what, const char *column, Err *err)
{
    err_set(err, ERR_SOURCE_RESHAPED, "column \"%s\" of %s %s since the run was planned", column, spec->stream, what);
    err_fix(err, "run it again: the plan is made anew from the catalog as it is now");
    return false;
}

/* The plan's columns are all there as they were, and no others. */
static bool columns_check(const ReadSpec *spec, const PgTable *table, Err *err)
{
    for (int i = 0; i < spec->table->column_count; i++) {
        const CatalogColumn *was = &spec->table->columns[i];
        const PgColumn *is = pg_table_column(table, was->name);
        if (is == NULL) return reshaped(spec, "was dropped or renamed", was->name, err);
        if (strcmp(is->shown.native, was->native) != 0) return reshaped(spec, "changed its type", was->name, err);
    }
    for (int i = 0; i < table->column_count; i++)
        if (table_column(spec->table, table->columns[i].shown.name) == NULL)
            return reshaped(spec, "was added", table->columns[i].shown.name, err);
    return true;
}

static bool field_plan(const ReadSpec *spec, int index, const PgType *type, PgLogField *field)
{
    const Field *want = &spec->schema->fields[index];
    return pg_log_plan(want->name, type, &want->type, &field->field, &field->form);
}

static bool stream_check(const ReadSpec *spec, const PgTable *table, bool *binary, Err *err)
{
    if (!columns_check(spec, table, err)) return false;
    for (int i = 0; i < spec->schema->count; i++) {
        const char *name = spec->schema->fields[i].name;
        const PgColumn *column = pg_table_column(table, name);
        PgLogField field;
        if (column == NULL) return reshaped(spec, "was dropped or renamed", name, err);
        if (column->shown.generated) {
            err_set(err, ERR_RESOURCE_INVALID, "column \"%s\" of %s is generated, and such are not in the log", name,
                    spec->stream);
            err_fix(err, "leave it out: columns: { exclude: [\"%s\"] }", name);
            return false;
        }
        if (!field_plan(spec, i, &column->type, &field)) {
            err_set(err, ERR_RESOURCE_INVALID,
                    "column \"%s\" of %s is %s in the log and cannot be read from there as its type", name,
                    spec->stream, column->shown.native);
            err_fix(err, "deliver it as utf8: columns: { types: { \"%s\": utf8 } }", name);
            return false;
        }
        *binary &= field.form != PG_LOG_BINARY_NONE;
    }
    return true;
}

bool shapes_check(const PgCapture *capture, bool *binary, Err *err)
{
    *binary = true;
    for (int i = 0; i < capture->spec->count; i++)
        if (!stream_check(&capture->spec->streams[i], &capture->tables[i], binary, err)) return false;
    return true;
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

/* A relation's columns while they are matched with a stream's. */
typedef struct Matching {
    PgShapes *shapes;
    PgShape *shape;
    const ReadSpec *spec;
    const PgTable *table;
    PgRelationColumn *columns; /* of the relation */
    const PgColumn **as;       /* what each is in the catalog; NULL: nothing */
    int count;
} Matching;

static const PgColumn **live_columns(const PgTable *table, Arena *arena, int *count, bool *gaps)
{
    const PgColumn **live = arena_array(arena, const PgColumn *, table->column_count);
    *count = 0;
    *gaps = false;
    for (int i = 0; i < table->column_count; i++) {
        *gaps |= table->columns[i].number != i + 1;
        if (!table->columns[i].shown.generated) live[(*count)++] = &table->columns[i];
    }
    return live;
}

/* Whether the relation is the table as the catalog has it. */
static bool same_columns(const Matching *of)
{
    int live_count;
    bool gaps, same = true;
    live_columns(of->table, &of->shape->arena, &live_count, &gaps);
    for (int i = 0; i < of->count && same; i++) {
        const PgColumn *column = of->as[i];
        same = column != NULL && column->declared == of->columns[i].type &&
               column->declared_typmod == of->columns[i].typmod;
    }
    return same && of->count == live_count;
}

/* Whether the catalog changed since the log was opened. */
static bool catalog_check(const Matching *of, Err *err)
{
    Arena arena;
    PgCapture now;
    LogSpec one = *of->shapes->capture->spec;
    one.streams = of->spec;
    one.count = 1;
    arena_init(&arena);
    bool ok =
        capture_tables(of->shapes->session, &one, &arena, &now, err) && columns_check(of->spec, &now.tables[0], err);
    if (ok && strcmp(now.tables[0].oid, of->table->oid) != 0) {
        err_set(err, ERR_STATE_POSITION_INVALID, "table %s was dropped and made again", of->spec->stream);
        err_fix(err, "openetl state rebaseline %s --stream %s reads the table that it is now", one.pipeline,
                of->spec->stream);
        ok = false;
    }
    arena_release(&arena);
    return ok;
}

static bool ambiguous(const Matching *of, const char *column, Err *err)
{
    err_set(err, ERR_SOURCE_CHANGED,
            "the log has rows of %s with a column \"%s\" that the table lost since, and it is not known whether it was "
            "dropped "
            "or renamed",
            of->spec->stream, column);
    err_fix(err, "openetl state rebaseline %s --stream %s reads the table as it is now",
            of->shapes->capture->spec->pipeline, of->spec->stream);
    return false;
}

/* Rows older than the catalog: columns that go by another name now. */
static bool match_old(Matching *of, Err *err)
{
    int live_count, lacking = 0;
    bool gaps;
    const PgColumn **live = live_columns(of->table, &of->shape->arena, &live_count, &gaps);
    for (int i = 0; !gaps && i < of->count && i < live_count; i++)
        of->as[i] = live[i];
    if (!gaps) return true;
    for (int i = 0; i < live_count; i++) {
        bool found = false;
        for (int j = 0; j < of->count; j++)
            found |= of->as[j] == live[i];
        lacking += !found;
    }
    for (int i = 0; lacking > 0 && i < of->count; i++)
        if (of->as[i] == NULL) return ambiguous(of, of->columns[i].name, err);
    return true;
}

/* What the rows of before a column was added have in it. */
static bool missing_value(const Matching *of, int index, Err *err)
{
    static const char question[] =
        "SELECT (a.attmissingval::pg_catalog.text::pg_catalog.text[])[1], a.attnotnull FROM pg_catalog.pg_attribute a "
        "WHERE a.attrelid = $1::pg_catalog.oid AND a.attname = $2";
    const char *name = of->spec->schema->fields[index].name, *values[] = {of->table->oid, name};
    PGresult *result;
    PgDatum *missing = &of->shape->missing[index];
    if (!pg_exec_params(of->shapes->session, question, 2, values, &result, err)) return false;
    *missing = (PgDatum){.kind = 'n'};
    bool known = PQntuples(result) == 1, present = known && !PQgetisnull(result, 0, 0);
    bool needed = known && PQgetvalue(result, 0, 1)[0] == 't';
    if (present) {
        missing->kind = 't';
        missing->length = (uint32_t)PQgetlength(result, 0, 0);
        missing->bytes = arena_memdup(&of->shape->arena, PQgetvalue(result, 0, 0), missing->length);
    }
    PQclear(result);
    if (present || !needed) return true;
    err_set(err, ERR_SOURCE_CHANGED,
            "the log has rows of %s of before column \"%s\" was added, and not what they have in it", of->spec->stream,
            name);
    err_fix(err, "openetl state rebaseline %s --stream %s reads the table as it is now",
            of->shapes->capture->spec->pipeline, of->spec->stream);
    return false;
}

/* A column of the stream's schema: from which of the relation's, or what instead. */
static bool match_field(const Matching *of, int index, Err *err)
{
    const char *name = of->spec->schema->fields[index].name;
    PgShape *shape = of->shape;
    int from = -1;
    for (int i = 0; i < of->count && from < 0; i++)
        if (of->as[i] != NULL && strcmp(of->as[i]->shown.name, name) == 0) from = i;
    shape->from[index] = from;
    shape->fields[index].money_scale = (uint8_t)of->shapes->session->money_scale;
    const PgColumn *column = pg_table_column(of->table, name);
    PgType type = column->type;
    if (from >= 0 && of->columns[from].type != column->declared &&
        !pg_type_read(of->shapes->session, of->columns[from].type, of->columns[from].typmod, &shape->arena, &type, err))
        return false;
    if (!field_plan(of->spec, index, &type, &shape->fields[index])) {
        err_set(err, ERR_SOURCE_CHANGED,
                "the log has rows of %s of before column \"%s\" became %s, which cannot be read as that",
                of->spec->stream, name, column->shown.native);
        err_fix(err, "openetl state rebaseline %s --stream %s reads the table as it is now",
                of->shapes->capture->spec->pipeline, of->spec->stream);
        return false;
    }
    shape->fields[index].field.check_utf8 |=
        strcmp(PQparameterStatus(of->shapes->session->conn, "server_encoding"), "SQL_ASCII") == 0;
    return from >= 0 || missing_value(of, index, err);
}

/* Whether the identity has the stream's key. */
static void match_key(const Matching *of)
{
    PgShape *shape = of->shape;
    const ReadSpec *spec = of->spec;
    shape->key = arena_array(&shape->arena, int, spec->key_count);
    shape->keyed = true;
    for (int i = 0; i < spec->key_count; i++) {
        int index = schema_find(spec->schema, spec->key[i]);
        if (index < 0) continue;
        shape->key[shape->key_count++] = index;
        shape->keyed &= shape->from[index] >= 0 && of->columns[shape->from[index]].identity;
    }
}

bool shape_match(PgShapes *shapes, const PgMessage *message, PgShape *shape, Err *err)
{
    const ReadSpec *spec = &shapes->capture->spec->streams[shape->stream];
    const uint8_t *at = message->at;
    Matching of = {.shapes = shapes, .shape = shape, .spec = spec, .count = message->count};
    of.table = &shapes->capture->tables[shape->stream];
    of.columns = arena_array(&shape->arena, PgRelationColumn, of.count);
    of.as = arena_array(&shape->arena, const PgColumn *, of.count);
    for (int i = 0; i < of.count; i++) {
        of.columns[i] = pg_relation_next(&at);
        of.as[i] = pg_table_column(of.table, of.columns[i].name);
    }
    if (!same_columns(&of) && (!catalog_check(&of, err) || (!shape->leaf && !match_old(&of, err)))) return false;
    shape->fields = arena_array(&shape->arena, PgLogField, spec->schema->count);
    shape->from = arena_array(&shape->arena, int, spec->schema->count);
    shape->missing = arena_array(&shape->arena, PgDatum, spec->schema->count);
    for (int i = 0; i < spec->schema->count; i++)
        if (!match_field(&of, i, err)) return false;
    match_key(&of);
    return true;
}
