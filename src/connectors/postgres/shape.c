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

/* ---- which stream ------------------------------------------------------------------------------------------------ */

/* The root of a partition, as its object id; NULL: it is none, or is gone. */
static bool root_of(PgShapes *shapes, uint32_t relation, Arena *arena, const char **root, Err *err)
{
    char text[16];
    const char *value = text;
    PGresult *result;
    snprintf(text, sizeof text, "%u", (unsigned)relation);
    if (!pg_exec_params(shapes->session,
                        "SELECT pg_catalog.pg_partition_root(c.oid)::pg_catalog.oid FROM pg_catalog.pg_class c WHERE "
                        "c.oid = $1::pg_catalog.oid AND c.relispartition",
                        1, &value, &result, err))
        return false;
    *root = PQntuples(result) == 0 ? NULL : arena_strdup(arena, PQgetvalue(result, 0, 0));
    PQclear(result);
    return true;
}

static int stream_by_oid(const PgCapture *capture, const char *oid)
{
    for (int i = 0; oid != NULL && i < capture->spec->count; i++)
        if (strcmp(capture->tables[i].oid, oid) == 0) return i;
    return -1;
}

/* A table of a stream's name that is not the stream's: the log still tells of the one of before, or already of the next. */
static bool namesake_check(const PgCapture *capture, const PgMessage *message, Err *err)
{
    for (int i = 0; i < capture->spec->count; i++) {
        const PgTable *table = &capture->tables[i];
        if (strcmp(table->name, message->name) != 0 || strcmp(table->schema, message->schema) != 0) continue;
        const char *stream = capture->spec->streams[i].stream;
        err_set(err, ERR_STATE_POSITION_INVALID, "table %s was dropped and made again", stream);
        err_fix(err, "openetl state rebaseline %s --stream %s reads the table that it is now", capture->spec->pipeline,
                stream);
        return false;
    }
    return true;
}

static bool stream_of(PgShapes *shapes, const PgMessage *message, PgShape *shape, Err *err)
{
    const PgCapture *capture = shapes->capture;
    const char *root;
    shape->stream = stream_by_oid(capture, arena_printf(&shape->arena, "%u", (unsigned)message->relation));
    if (shape->stream >= 0) return true;
    if (!namesake_check(capture, message, err)) return false;
    if (capture->via_root) return true;
    if (!root_of(shapes, message->relation, &shape->arena, &root, err)) return false;
    shape->stream = stream_by_oid(capture, root);
    shape->leaf = shape->stream >= 0;
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

static bool shape_match(PgShapes *shapes, const PgMessage *message, PgShape *shape, Err *err)
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

/* ---- the relations that are known -------------------------------------------------------------------------------- */

void shapes_init(PgShapes *shapes, PgSession *session, const PgCapture *capture)
{
    *shapes = (PgShapes){.session = session, .capture = capture, .capacity = 64};
    shapes->slots = mem_zero(sizeof(PgShape *) * shapes->capacity);
}

static void shape_free(PgShape *shape)
{
    if (shape == NULL) return;
    arena_release(&shape->arena);
    free(shape);
}

void shapes_release(PgShapes *shapes)
{
    for (size_t i = 0; i < shapes->capacity; i++)
        shape_free(shapes->slots[i]);
    free(shapes->slots);
    *shapes = (PgShapes){0};
}

static PgShape **slot_of(PgShape **slots, size_t capacity, uint32_t relation)
{
    size_t at = relation * 2654435761u % capacity;
    while (slots[at] != NULL && slots[at]->relation != relation)
        at = (at + 1) % capacity;
    return &slots[at];
}

static void grow(PgShapes *shapes)
{
    size_t capacity = shapes->capacity * 2;
    PgShape **slots = mem_zero(sizeof(PgShape *) * capacity);
    for (size_t i = 0; i < shapes->capacity; i++)
        if (shapes->slots[i] != NULL) *slot_of(slots, capacity, shapes->slots[i]->relation) = shapes->slots[i];
    free(shapes->slots);
    shapes->slots = slots;
    shapes->capacity = capacity;
}

bool shapes_take(PgShapes *shapes, const PgMessage *message, Err *err)
{
    PgShape *shape = mem_zero(sizeof *shape);
    arena_init(&shape->arena);
    *shape = (PgShape){.relation = message->relation,
                       .whole = message->identity == 'f',
                       .count = message->count,
                       .arena = shape->arena};
    if (!stream_of(shapes, message, shape, err) || (shape->stream >= 0 && !shape_match(shapes, message, shape, err))) {
        shape_free(shape);
        return false;
    }
    if (2 * shapes->used >= shapes->capacity) grow(shapes);
    PgShape **slot = slot_of(shapes->slots, shapes->capacity, shape->relation);
    shapes->used += *slot == NULL;
    shape_free(*slot);
    *slot = shape;
    shapes->last = NULL;
    return true;
}

bool shapes_find(PgShapes *shapes, uint32_t relation, const PgShape **shape, Err *err)
{
    if (shapes->last == NULL || shapes->last->relation != relation)
        shapes->last = *slot_of(shapes->slots, shapes->capacity, relation);
    *shape = shapes->last;
    if (*shape != NULL) return true;
    return err_set(err, ERR_SOURCE_QUERY, "the change log has a change of relation %u and did not say its columns",
                   (unsigned)relation);
}
