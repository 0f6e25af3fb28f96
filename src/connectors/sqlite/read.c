/* Reading: one statement in one read transaction, ordered by a key where the table has a usable one; then every batch
 * ends at a resume point. SQLite hands out rows one by one and holds none of them, so there is nothing to gain from
 * cutting the statement into chunks. */
#include "connectors/sqlite/key.h"
#include "connectors/sqlite/types.h"

typedef struct OutColumn {
    const Field *field;
    int json_check; /* the statement's column that tells whether this one holds valid JSON; -1: not asked */
    bool overridden;
} OutColumn;

typedef struct LiteReader {
    LiteSession *session;
    ReadSpec spec;
    Arena arena;
    Range range;
    Key key;
    int rowid; /* the statement's column with the rowid, for messages about tables without a usable key; -1: none */
    OutColumn *columns;
    BatchBuilder builder;
    sqlite3_stmt *stmt;
    bool begun; /* the transaction */
    bool ended;
    bool given;   /* a batch was returned */
    uint64_t row; /* rows delivered, earlier reads of the range included */
} LiteReader;

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
    const char *table = spec->table->name, *rowid = rowid_name(spec->table);
    int index = spec->schema->count;
    bool with_rowid = false;
    buf_puts(sql, "SELECT ");
    for (int i = 0; i < spec->schema->count; i++) {
        if (i > 0) buf_puts(sql, ", ");
        lite_quote_column(sql, table, spec->schema->fields[i].name);
    }
    if (spec->schema->count == 0) buf_printf(sql, "%d", index++);
    for (int i = 0; i < reader->key.count; i++) {
        KeyPart *part = &reader->key.parts[i];
        part->index = schema_find(spec->schema, part->column);
        if (part->index >= 0) continue;
        part->index = index++;
        buf_puts(sql, ", ");
        lite_quote_column(sql, table, part->column);
    }
    for (int i = 0; i < spec->schema->count; i++) {
        if (spec->schema->fields[i].type.id != TYPE_JSON) continue;
        reader->columns[i].json_check = index++;
        buf_puts(sql, ", json_valid(");
        lite_quote_column(sql, table, spec->schema->fields[i].name);
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

static bool prepare(LiteReader *reader, Err *err)
{
    Buf sql;
    const char *table = reader->spec.table->name;
    bool resumes = reader->spec.resume != NULL;
    buf_init(&sql, BUF_SQL_MAX);
    bool ok = select_sql(reader, &sql, err);
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

static void set_columns(LiteReader *reader)
{
    const Schema *schema = reader->spec.schema;
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
    set_columns(reader);
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
    made->rowid = -1;
    arena_init(&made->arena);
    builder_init(&made->builder, spec->schema, spec->batch_rows, spec->batch_bytes);
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
    builder_release(&closing->builder);
    key_release(&closing->key);
    arena_release(&closing->arena);
    free(closing);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* As YAML reads it: plain where that is a plain word. */
static void put_yaml_key(const char *name, Buf *out)
{
    static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    bool plain = name[strspn(name, PLAIN)] == '\0' && name[0] != '\0' && strchr("0123456789", name[0]) == NULL;
    if (plain) {
        buf_puts(out, name);
        return;
    }
    buf_putc(out, '"');
    for (const char *p = name; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') buf_putc(out, '\\');
        buf_putc(out, *p);
    }
    buf_putc(out, '"');
}

static bool cast_error(LiteReader *reader, int index, const LiteMisfit *misfit, Err *err)
{
    const OutColumn *column = &reader->columns[index];
    char type[96];
    Buf shown, row, name;
    buf_init(&shown, 4096);
    buf_init(&row, 64 * 1024);
    buf_init(&name, 64 * 1024);
    lite_describe(reader->stmt, index, &shown);
    if (reader->key.count > 0)
        key_describe(&reader->key, reader->stmt, &row);
    else if (reader->rowid >= 0)
        buf_printf(&row, "rowid=%lld", (long long)sqlite3_column_int64(reader->stmt, reader->rowid));
    else
        buf_printf(&row, "number %llu", (unsigned long long)(reader->row + (uint64_t)reader->builder.rows + 1));
    put_yaml_key(column->field->name, &name);
    err_set(err, ERR_DATA_CAST, "column %s holds %s, which does not fit %s: %s", column->field->name, buf_text(&shown),
            type_format(&column->field->type, type, sizeof type), misfit->why);
    err_at(err, "table %s, row %s", reader->spec.table->name, buf_text(&row));
    err_fix(err, "correct the value at the source, or take the column as it is: columns.types: { %s: %s }",
            buf_text(&name), misfit->instead);
    buf_release(&shown);
    buf_release(&row);
    buf_release(&name);
    return false;
}

static bool append_row(LiteReader *reader, Err *err)
{
    for (int i = 0; i < reader->spec.schema->count; i++) {
        const OutColumn *column = &reader->columns[i];
        LiteMisfit misfit = {"it is not valid JSON", "utf8"};
        bool invalid = column->json_check >= 0 && sqlite3_column_type(reader->stmt, i) != SQLITE_NULL &&
                       sqlite3_column_int(reader->stmt, column->json_check) == 0;
        if (invalid || !lite_value(reader->stmt, i, column->overridden, &reader->builder.columns[i], &misfit))
            return cast_error(reader, i, &misfit, err);
    }
    builder_end_row(&reader->builder);
    key_note(&reader->key, reader->stmt);
    return true;
}

static bool fill(LiteReader *reader, Err *err)
{
    while (!builder_full(&reader->builder)) {
        bool row;
        if (!lite_step(reader->session, reader->stmt, "read the table", &row, err)) {
            err_at(err, "table %s", reader->spec.table->name);
            return false;
        }
        reader->ended = !row;
        if (!row) return true;
        if (!append_row(reader, err)) return false;
    }
    return true;
}

bool lite_read_next(Reader *reader, Batch **batch, Err *err)
{
    LiteReader *reading = (LiteReader *)reader;
    *batch = NULL;
    if (reading->spec.stop != NULL && stop_reason(reading->spec.stop) == STOP_FAILED)
        return err_set(err, ERR_STOPPED, "the read was stopped");
    if (!reading->ended && !fill(reading, err)) return false;
    if (!lite_unchanged(reading->session, err)) return false;
    uint64_t rows = (uint64_t)reading->builder.rows;
    *batch = builder_finish(&reading->builder, (Seq){reading->spec.read_number, reading->row});
    reading->row += rows;
    reading->given = reading->given || rows > 0;
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
