#include "plan/draft.h"

#include "catalog/drift.h"

#include <string.h>

bool drift_load(Draft *draft, Err *err)
{
    const PlanInput *input = draft->input;
    if (input->last_read == NULL) return true;
    return input->last_read(input->last_read_context, draft->plan->resource->name, draft->arena, &draft->last_read,
                            err);
}

/* ---- what is compared -------------------------------------------------------------------------------------------- */

static DriftWord word_of(DriftWord stream, DriftWord pipeline)
{
    return stream != DRIFT_UNSET ? stream : pipeline;
}

static DriftPolicy policy_of(const Draft *draft, const StreamPlan *stream)
{
    const DriftPolicy *own = &stream->given->on_drift, *all = &draft->plan->pipeline->on_drift;
    return (DriftPolicy){.added = word_of(own->added, all->added),
                         .dropped = word_of(own->dropped, all->dropped),
                         .widened = word_of(own->widened, all->widened),
                         .narrowed = word_of(own->narrowed, all->narrowed),
                         .changed = word_of(own->changed, all->changed)};
}

/* Each column of the schema as the source declares it, with the type it travels as. */
static CatalogColumn *columns_now(const Draft *draft, const StreamPlan *stream)
{
    const Schema *schema = &stream->schema;
    CatalogColumn *columns = arena_array(draft->arena, CatalogColumn, schema->count + 1);
    for (int i = 0; i < schema->count; i++) {
        columns[i] = *table_column(stream->source, schema->fields[i].name);
        columns[i].type = schema->fields[i].type;
    }
    return columns;
}

/* A type given in the resource holds for both, so that the resource's own changes are none of the source's. */
static void give_type(const Draft *draft, const StreamPlan *stream, CatalogColumn *column)
{
    Err ignored; /* columns.c has said what is wrong with it */
    Type type;
    for (int i = 0; i < stream->given->type_count; i++) {
        if (strcmp(stream->given->type_names[i], column->name) != 0) continue;
        if (type_parse(stream->given->type_texts[i], draft->arena, &type, &ignored)) column->type = type;
    }
}

static CatalogColumn *columns_before(const Draft *draft, const StreamPlan *stream, const CatalogTable *table,
                                     int *count)
{
    CatalogColumn *columns = arena_array(draft->arena, CatalogColumn, table->column_count + 1);
    *count = 0;
    for (int i = 0; i < table->column_count; i++) {
        if (stream_excludes(stream, table->columns[i].name)) continue;
        columns[*count] = table->columns[i];
        give_type(draft, stream, &columns[(*count)++]);
    }
    return columns;
}

/* ---- what follows ------------------------------------------------------------------------------------------------ */

/* The policy's place: the stream's where it has a word of its own. */
static const char *field_path(const Draft *draft, const StreamPlan *stream, const char *field)
{
    const DriftPolicy *own = &stream->given->on_drift;
    const struct {
        const char *field;
        DriftWord word;
    } words[] = {{"onDrift.added", own->added},
                 {"onDrift.dropped", own->dropped},
                 {"onDrift.widened", own->widened},
                 {"onDrift.narrowed", own->narrowed},
                 {"onDrift.changed", own->changed}};
    bool is_own = false;
    for (size_t i = 0; field != NULL && i < sizeof(words) / sizeof(*words); i++)
        is_own = is_own || (words[i].word != DRIFT_UNSET && strcmp(words[i].field, field) == 0);
    if (field == NULL) return stream->path;
    return arena_printf(draft->arena, "%s.%s", is_own ? stream->path : "spec", field);
}

static void refuse(Draft *draft, const StreamPlan *stream, const DriftChange *change)
{
    DriftRefusal refusal = drift_refusal(change, stream->name, stream->target, draft->arena);
    draft_problem(draft, "%s: %s; %s", field_path(draft, stream, refusal.field), refusal.what, refusal.fix);
    if (!change->at_source) return;
    if (draft->plan->refused_count++ == 0) draft->plan->refused = arena_memdup(draft->arena, &refusal, sizeof(refusal));
}

static bool is_needed(const StreamPlan *stream, const char *column)
{
    for (int i = 0; i < stream->key_count; i++)
        if (strcmp(stream->key[i], column) == 0) return true;
    return stream->cursor != NULL && strcmp(stream->cursor, column) == 0;
}

static void ignore(Draft *draft, StreamPlan *stream, const DriftChange *change)
{
    Schema *schema = &stream->schema;
    if (is_needed(stream, change->column)) {
        draft_problem(draft,
                      "%s: stream \"%s\" needs column %s, which is its key or its cursor, and %s has no such column; "
                      "onDrift: { added: apply } adds it",
                      field_path(draft, stream, "onDrift.added"), stream->name, change->column, stream->target);
        return;
    }
    int at = schema_find(schema, change->column);
    schema->count--;
    memmove(&schema->fields[at], &schema->fields[at + 1], sizeof(*schema->fields) * (size_t)(schema->count - at));
}

static void take(Draft *draft, StreamPlan *stream, const DriftChange *change)
{
    if (change->outcome == DRIFT_REFUSED) refuse(draft, stream, change);
    if (change->outcome == DRIFT_IGNORED || (change->kind == DRIFT_RENAMED && change->gain == DRIFT_IGNORED))
        ignore(draft, stream, change);
    if (drift_shown(change))
        texts_add(&draft->drift,
                  arena_printf(draft->arena, "%s: %s; %s", stream->name, drift_text(change, draft->arena),
                               drift_outcome_text(change, stream->target, draft->arena)),
                  draft->arena);
    else if (change->kind == DRIFT_DROPPED && change->outcome == DRIFT_KEPT)
        draft_note(draft, "%s: column %s of %s isn't read; it is kept, and new rows are NULL there", stream->name,
                   change->column, stream->target);
}

void stream_drift(Draft *draft, StreamPlan *stream, const DestTable *table, DriftStorage storage)
{
    const CatalogTable *last = catalog_find(&draft->last_read, stream->name);
    stream->on_drift = policy_of(draft, stream);
    DriftView view = {
        .table = table,
        .now = columns_now(draft, stream),
        .now_count = stream->schema.count,
        .known = last != NULL,
        .storage = storage,
        .fold_case = draft->plan->destination_connector->capabilities.fold_case,
        .replaced = stream->write == WRITE_OVERWRITE,
        .policy = stream->on_drift,
    };
    if (last != NULL) view.before = columns_before(draft, stream, last, &view.before_count);
    DriftChanges changes;
    drift_see(&view, draft->arena, &changes);
    stream->drift = changes.items;
    stream->drift_count = changes.count;
    for (int i = 0; i < changes.count; i++)
        take(draft, stream, &changes.items[i]);
}
