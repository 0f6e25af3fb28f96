#include "connectors/postgres/shape.h"

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
