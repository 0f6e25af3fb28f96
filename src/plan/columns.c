#include "plan/draft.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

enum { TYPE_TEXT_BYTES = 128 };
static const char OWN_PREFIX[] = "_openetl_";

static bool listed(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

bool stream_excludes(const StreamPlan *stream, const char *column)
{
    return listed(stream->given->exclude, stream->given->exclude_count, column);
}

/* True when the source has the column; else a problem at `field`, with the nearest name. */
static bool check_column(Draft *draft, const StreamPlan *stream, const char *field, const char *column)
{
    if (table_column(stream->source, column) != NULL) return true;
    Texts names = {0};
    for (int i = 0; i < stream->source->column_count; i++) {
        texts_add(&names, stream->source->columns[i].name, draft->arena);
    }
    draft_problem(draft, "%s.%s: stream \"%s\" has no column \"%s\"%s", stream->path, field, stream->name, column,
                  draft_suggest(column, names.items, names.count, draft->arena));
    return false;
}

/* ---- delivered columns ------------------------------------------------------------------------------------------- */

static void check_given_columns(Draft *draft, const StreamPlan *stream)
{
    const StreamResource *given = stream->given;
    for (int i = 0; i < given->exclude_count; i++) {
        check_column(draft, stream, "columns.exclude", given->exclude[i]);
    }
    for (int i = 0; i < given->type_count; i++) {
        const char *field = arena_printf(draft->arena, "columns.types.%s", given->type_names[i]);
        check_column(draft, stream, field, given->type_names[i]);
    }
}

/* The type given for a column; false when none is. */
static bool given_type(Draft *draft, const StreamPlan *stream, const char *column, Type *type)
{
    const StreamResource *given = stream->given;
    for (int i = 0; i < given->type_count; i++) {
        if (strcmp(given->type_names[i], column) != 0) continue;
        Err err;
        if (type_parse(given->type_texts[i], draft->arena, type, &err)) return true;
        draft_problem(draft, "%s.columns.types.%s: %s", stream->path, column, err.message);
        return false;
    }
    return false;
}

static void note_travel(Draft *draft, const StreamPlan *stream, const CatalogColumn *column, const Type *type,
                        bool overridden)
{
    char text[TYPE_TEXT_BYTES];
    if (column->note != NULL && !overridden) {
        draft_note(draft, "%s.%s: %s", stream->name, column->name, column->note);
    }
    if (type->id == TYPE_LIST && !draft->plan->destination_connector->capabilities.lists) {
        draft_note(draft, "%s.%s: %s arrives as JSON text, since the destination has no lists", stream->name,
                   column->name, type_format(type, text, sizeof(text)));
    }
}

static void add_field(Draft *draft, StreamPlan *stream, const CatalogColumn *column)
{
    if (strncasecmp(column->name, OWN_PREFIX, sizeof(OWN_PREFIX) - 1) == 0) {
        draft_problem(
            draft,
            "%s.columns.exclude: stream \"%s\" has a column \"%s\", and names that begin with %s are openetl's "
            "own; exclude it",
            stream->path, stream->name, column->name, OWN_PREFIX);
        return;
    }
    Type type = column->type;
    bool overridden = given_type(draft, stream, column->name, &type);
    stream->schema.fields[stream->schema.count++] =
        (Field){.name = column->name, .type = type, .nullable = column->nullable};
    note_travel(draft, stream, column, &type, overridden);
}

/* A generated column is not in the log, so its value could be delivered once and never again. */
static bool is_left_out(Draft *draft, const StreamPlan *stream, const CatalogColumn *column)
{
    if (stream_excludes(stream, column->name)) return true;
    if (stream->sync != SYNC_CDC || !column->generated) return false;
    draft_note(draft, "%s.%s: left out: it is generated, and the log does not have its values", stream->name,
               column->name);
    return true;
}

static void set_schema(Draft *draft, StreamPlan *stream)
{
    const CatalogTable *table = stream->source;
    check_given_columns(draft, stream);
    stream->schema.fields = arena_array(draft->arena, Field, table->column_count);
    for (int i = 0; i < table->column_count; i++) {
        if (!is_left_out(draft, stream, &table->columns[i])) add_field(draft, stream, &table->columns[i]);
    }
    if (table->column_count == 0) {
        draft_problem(draft, "%s.name: stream \"%s\" has no columns", stream->path, stream->name);
    } else if (stream->schema.count == 0) {
        draft_problem(draft, "%s.columns.exclude: stream \"%s\" has no columns left", stream->path, stream->name);
    }
}

/* ---- key --------------------------------------------------------------------------------------------------------- */

static void check_key_column(Draft *draft, const StreamPlan *stream, int index)
{
    const char *column = stream->key[index];
    const char *field = stream->given->key_count > 0 ? "key" : "columns.exclude";
    if (!check_column(draft, stream, field, column)) return;
    if (stream_excludes(stream, column)) {
        draft_problem(draft, "%s.columns.exclude: column \"%s\" is in the key of stream \"%s\"", stream->path, column,
                      stream->name);
    }
    const CatalogColumn *found = table_column(stream->source, column);
    /* A primary key holds no NULL; of a key that only the resource declares the source does not promise it. */
    if (stream->given->key_count > 0 && stream->write == WRITE_MERGE && found->nullable &&
        !listed(stream->source->key, stream->source->key_count, column)) {
        draft_note(draft, "%s.%s: the key column is nullable at the source; a row where it is NULL stops the stream",
                   stream->name, column);
    }
}

static void set_key(Draft *draft, StreamPlan *stream)
{
    const StreamResource *given = stream->given;
    stream->key = given->key_count > 0 ? given->key : stream->source->key;
    stream->key_count = given->key_count > 0 ? given->key_count : stream->source->key_count;
    for (int i = 0; i < stream->key_count; i++) {
        check_key_column(draft, stream, i);
    }
}

/* ---- cursor ------------------------------------------------------------------------------------------------------ */

static bool is_timed(TypeId id)
{
    return id == TYPE_TIMESTAMP || id == TYPE_TIMESTAMPTZ || id == TYPE_DATE;
}

static bool parse_count(const char *text, int64_t *count)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < 0) return false;
    *count = value;
    return true;
}

static void set_overlap(Draft *draft, StreamPlan *stream)
{
    const char *overlap = stream->given->overlap;
    if (overlap == NULL || strcmp(overlap, "0") == 0) return;
    TypeId id = stream->cursor_type.id;
    char text[TYPE_TEXT_BYTES];
    type_format(&stream->cursor_type, text, sizeof(text));
    if (is_timed(id)) {
        if (duration_parse(overlap, &stream->overlap) && stream->overlap >= 0) return;
        draft_problem(draft, "%s.overlap: cursor \"%s\" is %s, so its overlap is a duration such as 10m, not \"%s\"",
                      stream->path, stream->cursor, text, overlap);
    } else if (type_is_integer(id)) {
        if (parse_count(overlap, &stream->overlap)) return;
        draft_problem(draft, "%s.overlap: cursor \"%s\" is %s, so its overlap is a count such as 1000, not \"%s\"",
                      stream->path, stream->cursor, text, overlap);
    } else {
        draft_problem(draft, "%s.overlap: cursor \"%s\" is %s, which has no overlap: timestamps, dates and integers do",
                      stream->path, stream->cursor, text);
    }
}

/* False with a problem when the column cannot lead a read. */
static bool check_cursor_type(Draft *draft, const StreamPlan *stream, const CatalogColumn *column)
{
    char text[TYPE_TEXT_BYTES];
    if (!type_orderable(column->type.id) || !type_orderable(stream->cursor_type.id)) {
        type_format(type_orderable(column->type.id) ? &stream->cursor_type : &column->type, text, sizeof(text));
        draft_problem(draft, "%s.cursor: column \"%s\" of stream \"%s\" is %s, which has no order a cursor can follow",
                      stream->path, column->name, stream->name, text);
        return false;
    }
    /* A number or an enum that travels as text sorts at the source otherwise than its text does. */
    if (column->note != NULL && type_is_text(stream->cursor_type.id)) {
        draft_problem(
            draft,
            "%s.cursor: column \"%s\" of stream \"%s\" (%s) travels as text, whose order is another; give it a "
            "type in columns.types",
            stream->path, column->name, stream->name, column->native != NULL ? column->native : column->note);
        return false;
    }
    return true;
}

static void set_cursor(Draft *draft, StreamPlan *stream)
{
    const char *cursor = stream->given->cursor;
    if (stream->sync != SYNC_INCREMENTAL) return;
    if (!check_column(draft, stream, "cursor", cursor)) return;
    int index = schema_find(&stream->schema, cursor);
    if (index < 0) {
        draft_problem(draft, "%s.columns.exclude: column \"%s\" is the cursor of stream \"%s\"", stream->path, cursor,
                      stream->name);
        return;
    }
    stream->cursor = cursor;
    stream->cursor_type = stream->schema.fields[index].type;
    if (check_cursor_type(draft, stream, table_column(stream->source, cursor))) set_overlap(draft, stream);
}

void stream_columns(Draft *draft, StreamPlan *stream)
{
    set_schema(draft, stream);
    set_key(draft, stream);
    set_cursor(draft, stream);
}
