#include "connectors/sqlite/read.h"

/* ---- the statement ----------------------------------------------------------------------------------------------- */

/* The name under which the rowid can be asked for: any of three that no column has. */
static const char *rowid_name(const CatalogTable *table)
{
    static const char *const NAMES[] = {"rowid", "_rowid_", "oid"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        bool taken = false;
        for (int c = 0; c < table->column_count; c++)
            taken = taken || sqlite3_stricmp(table->columns[c].name, NAMES[i]) == 0;
        if (!taken) return NAMES[i];
    }
    return NULL;
}

static bool has_rowid(LiteSession *session, const char *table, bool *found, Err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool ok = lite_prepare(session, "SELECT 1 FROM pragma_table_list WHERE schema = 'main' AND name = ?1 AND wr = 0",
                           "read the table's form", &stmt, err);
    if (ok) sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
    ok = ok && lite_step(session, stmt, "read the table's form", found, err);
    sqlite3_finalize(stmt);
    return ok;
}

/* Delivered columns first, in order; then the key's that are not among them, the JSON checks, the rowid. */
static bool select_sql(LiteReader *reader, Buf *sql, Err *err)
{
    const ReadSpec *spec = &reader->spec;
    const Schema *schema = reader->selected;
    const char *table = spec->table->name, *rowid = rowid_name(spec->table);
    int index = schema->count;
    bool with_rowid = false;
    reader->rowid = -1;
    buf_puts(sql, "SELECT ");
    for (int i = 0; i < schema->count; i++) {
        if (i > 0) buf_puts(sql, ", ");
        lite_quote_column(sql, table, schema->fields[i].name);
    }
    if (schema->count == 0) buf_printf(sql, "%d", index++);
    for (int i = 0; i < reader->key.count; i++) {
        KeyPart *part = &reader->key.parts[i];
        part->index = schema_find(schema, part->column);
        if (part->index >= 0) continue;
        part->index = index++;
        buf_puts(sql, ", ");
        lite_quote_column(sql, table, part->column);
    }
    for (int i = 0; i < schema->count; i++) {
        if (schema->fields[i].type.id != TYPE_JSON) continue;
        reader->columns[i].json_check = index++;
        buf_puts(sql, ", json_valid(");
        lite_quote_column(sql, table, schema->fields[i].name);
        buf_puts(sql, ")");
    }
    if (reader->key.count == 0 && spec->table->kind == TABLE_PLAIN && rowid != NULL &&
        !has_rowid(reader->session, table, &with_rowid, err))
        return false;
    if (with_rowid) {
        reader->rowid = index;
        buf_puts(sql, ", ");
        lite_quote(sql, table);
        buf_printf(sql, ".%s", rowid);
    }
    range_sql(&reader->range, false, sql);
    return true;
}

static void set_columns(LiteReader *reader, const Schema *schema)
{
    reader->selected = schema;
    reader->columns = arena_array(&reader->arena, OutColumn, schema->count + 1);
    for (int i = 0; i < schema->count; i++) {
        const CatalogColumn *column = table_column(reader->spec.table, schema->fields[i].name);
        reader->columns[i] = (OutColumn){
            .field = &schema->fields[i],
            .json_check = -1,
            .overridden = column == NULL || !type_equal(&column->type, &schema->fields[i].type),
        };
    }
}

bool lite_select(LiteReader *reader, const Schema *schema, Buf *sql, Err *err)
{
    if (reader->builder.columns != NULL) builder_release(&reader->builder);
    builder_init(&reader->builder, schema, reader->spec.batch_rows, reader->spec.batch_bytes);
    set_columns(reader, schema);
    return select_sql(reader, sql, err);
}

static bool prepare(LiteReader *reader, Err *err)
{
    Buf sql;
    const ReadSpec *spec = &reader->spec;
    const char *table = spec->table->name;
    bool resumes = spec->resume != NULL;
    buf_init(&sql, BUF_SQL_MAX);
    /* A digest is made here, of the whole row. */
    bool ok = lite_select(reader, spec->what == READ_KEYS ? spec->key_schema : spec->schema, &sql, err);
    if (resumes) key_after_sql(&reader->key, table, &sql);
    key_order_sql(&reader->key, table, &sql);
    ok = ok && lite_prepare(reader->session, buf_text(&sql), "read the table", &reader->stmt, err) &&
         range_bind(&reader->range, reader->session, reader->stmt, err);
    if (ok && resumes) {
        int rc = key_bind(&reader->key, reader->stmt);
        if (rc != SQLITE_OK) ok = lite_fail(reader->session, rc, "read the table", err);
    }
    buf_release(&sql);
    return ok;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* The snapshot is the first SELECT's, not BEGIN's, so one is made here. */
static bool begin(LiteReader *reader, Err *err)
{
    if (!lite_exec(reader->session, "BEGIN", "begin the read", err)) return false;
    reader->begun = true;
    return lite_exec(reader->session, "SELECT count(*) FROM sqlite_schema", "begin the read", err);
}

static bool open_reader(LiteReader *reader, Err *err)
{
    const ReadSpec *spec = &reader->spec;
    if (read_digests(spec)) digester_init(&reader->digester, spec->schema);
    if (!range_check_filter(reader->session, spec, err) || !range_init(&reader->range, spec, err) ||
        !begin(reader, err) || !range_settle(&reader->range, reader->session, err) ||
        !key_init(&reader->key, reader->session, &reader->range, &reader->arena, err))
        return false;
    if (spec->resume != NULL && !key_parse(&reader->key, spec->resume, &reader->row, err)) return false;
    return prepare(reader, err);
}

bool lite_read_open(Session *session, const ReadSpec *spec, Reader **reader, Err *err)
{
    LiteReader *made = mem_zero(sizeof *made);
    made->session = (LiteSession *)session;
    made->spec = *spec;
    arena_init(&made->arena);
    *reader = (Reader *)made;
    if (open_reader(made, err)) return true;
    err_at(err, "table %s", spec->table->name);
    lite_read_close(*reader);
    *reader = NULL;
    return false;
}

void lite_read_close(Reader *reader)
{
    LiteReader *closing = (LiteReader *)reader;
    if (closing == NULL) return;
    sqlite3_finalize(closing->stmt);
    if (closing->begun) sqlite3_exec(closing->session->db, "ROLLBACK", NULL, NULL, NULL);
    if (closing->builder.columns != NULL) builder_release(&closing->builder);
    digester_release(&closing->digester);
    lite_keys_release(&closing->keys);
    key_release(&closing->key);
    arena_release(&closing->arena);
    free(closing);
}

/* ---- the operations ---------------------------------------------------------------------------------------------- */

static bool fill(LiteReader *reader, Err *err)
{
    while (!builder_full(&reader->builder)) {
        bool row;
        if (!lite_next_row(reader, &row, err)) {
            err_at(err, "table %s", reader->spec.table->name);
            return false;
        }
        reader->ended = !row;
        if (!row) return true;
        if (!lite_append_row(reader, err)) return false;
    }
    return true;
}

/* What the builder has, as it was asked for. */
static Batch *give_out(LiteReader *reader)
{
    const ReadSpec *spec = &reader->spec;
    bool of_keys = reader->keys.keys != NULL;
    uint64_t rows = (uint64_t)reader->builder.rows;
    Batch *batch = builder_finish(&reader->builder, (Seq){spec->read_number, reader->row});
    reader->row += rows;
    reader->given = reader->given || (rows > 0 && !of_keys);
    if (batch != NULL && of_keys) batch = key_filter_keep(&reader->keys.filter, batch, 0, reader->keys.filter.count);
    if (batch == NULL || !read_digests(spec)) return batch;
    digester_assign(&reader->digester, batch);
    if (!of_keys && spec->what == READ_DIGESTS) batch_narrow(batch, spec->key_schema);
    return batch;
}

/* A batch of which no row is wanted is none, and no end. */
bool lite_read_next(Reader *reader, Batch **batch, Err *err)
{
    LiteReader *reading = (LiteReader *)reader;
    *batch = NULL;
    do {
        if (reading->spec.stop != NULL && stop_reason(reading->spec.stop) == STOP_FAILED)
            return err_set(err, ERR_STOPPED, "the read was stopped");
        if (!reading->ended && !fill(reading, err)) return false;
        if (!lite_unchanged(reading->session, err)) return false;
        *batch = give_out(reading);
    } while (*batch == NULL && !reading->ended);
    return true;
}

bool lite_mark(Reader *reader, Buf *position)
{
    const LiteReader *reading = (const LiteReader *)reader;
    buf_clear(position);
    if (reading->key.count == 0 || !reading->given) return false;
    for (int i = 0; i < reading->key.count; i++)
        if (reading->key.parts[i].last.class == SQLITE_NULL) return false;
    key_format(&reading->key, reading->row, position);
    return true;
}
