#include "state/postgres.h"

#include "base/buf.h"

/* ---- which schema ---- */

/* The search_path of the URL's options, when it is one name. */
static bool find_schema(State *state, Err *err)
{
    static const char SQL[] = "SELECT setting, (pg_catalog.parse_ident(setting))[1] FROM pg_catalog.pg_settings"
                              " WHERE name = 'search_path' AND source = 'client' AND setting !~ ','";
    static const char GIVEN[] = "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'search_path'"
                                " AND source = 'client' AND setting ~ ','";
    PGresult *result;
    if (state->pg->schema != NULL) return true;
    state->pg->schema = mem_strdup("openetl_state");
    if (!pg_store_exec(state, GIVEN, 0, NULL, "open", &result, err)) return false;
    bool several = PQntuples(result) > 0;
    PQclear(result);
    if (several) {
        err_set(err, ERR_STATE_OPEN, "the options in the URL of the state store %s name more than one schema",
                state->place);
        err_fix(err, "name one: ?options=-csearch_path%%3Dopenetl_state");
        return false;
    }
    if (!pg_store_exec(state, SQL, 0, NULL, "open", &result, err)) return false;
    if (PQntuples(result) > 0) {
        free(state->pg->schema);
        state->pg->schema = mem_strdup(PQgetvalue(result, 0, 1));
    }
    PQclear(result);
    return true;
}

/* ---- what is there ---- */

typedef struct Found {
    bool schema, store;
} Found;

static bool fail_others(State *state, Err *err)
{
    err_set(err, ERR_STATE_OPEN, "the schema %s of %s holds other tables, and no state store of openetl",
            state->pg->schema, state->place);
    err_fix(err, "name another schema: ?options=-csearch_path%%3Dopenetl_state at the end of the URL");
    return false;
}

static bool fail_usage(State *state, Err *err)
{
    const char *schema = state->pg->schema;
    err_set(err, ERR_STATE_OPEN, "cannot open the state store %s: permission denied for schema %s", state->place,
            schema);
    pg_store_fix_rights(state, "open", err);
    return false;
}

static bool look(State *state, Found *found, Err *err)
{
    static const char SQL[] =
        "SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE'),"
        " EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid AND c.relname = 'openetl_store'),"
        " EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid)"
        " FROM pg_catalog.pg_namespace n WHERE n.nspname = $1";
    const char *schema = state->pg->schema;
    PGresult *result;
    if (!pg_store_exec(state, SQL, 1, &schema, "open", &result, err)) return false;
    *found = (Found){.schema = PQntuples(result) > 0};
    bool usage = found->schema && PQgetvalue(result, 0, 0)[0] == 't';
    bool tables = found->schema && PQgetvalue(result, 0, 2)[0] == 't';
    found->store = found->schema && PQgetvalue(result, 0, 1)[0] == 't';
    PQclear(result);
    if (found->schema && !usage) return fail_usage(state, err);
    return found->store || !tables || fail_others(state, err);
}

static bool read_version(State *state, int *version, Err *err)
{
    PGresult *result;
    if (!pg_store_exec(state, "SELECT schema_version FROM openetl_store", 0, NULL, "open", &result, err)) return false;
    bool one = PQntuples(result) == 1;
    *version = one ? (int)strtol(PQgetvalue(result, 0, 0), NULL, 10) : 0;
    PQclear(result);
    return one || state_corrupt(state, "openetl_store", "not one row", err);
}

static bool check_version(State *state, int version, Err *err)
{
    if (version <= STATE_SCHEMA_VERSION) return true;
    err_set(err, ERR_STATE_OPEN, "the state store %s has schema version %d; this openetl knows versions up to %d",
            state->place, version, STATE_SCHEMA_VERSION);
    err_fix(err, "use the openetl that wrote it, or a newer one");
    return false;
}

/* ---- making it ---- */

/* The migrations are written for SQLite. Text is compared by its bytes there, whatever the database's language. */
static void put_ddl(Buf *out, const char *sql)
{
    static const char *const WORDS[][2] = {
        {" WITHOUT ROWID", ""}, {" TEXT", " text COLLATE \"C\""}, {" INTEGER", " bigint"}};
    while (*sql != '\0') {
        size_t i = 0, count = sizeof WORDS / sizeof *WORDS;
        while (i < count && strncmp(sql, WORDS[i][0], strlen(WORDS[i][0])) != 0)
            i++;
        if (i == count) {
            buf_putc(out, *sql++);
            continue;
        }
        buf_puts(out, WORDS[i][1]);
        sql += strlen(WORDS[i][0]);
    }
}

static bool run_migrations(State *state, int from, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    for (int i = from; i < STATE_SCHEMA_VERSION; i++)
        put_ddl(&sql, STATE_MIGRATIONS[i]);
    buf_printf(&sql, "UPDATE openetl_store SET schema_version = %d", STATE_SCHEMA_VERSION);
    bool ok = pg_store_exec(state, buf_text(&sql), 0, NULL, from == 0 ? "make" : "migrate", NULL, err);
    buf_release(&sql);
    return ok;
}

static bool create_schema(State *state, Err *err)
{
    char *name = PQescapeIdentifier(state->pg->conn, state->pg->schema, strlen(state->pg->schema));
    if (name == NULL) BUG("schema %s cannot be quoted", state->pg->schema);
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_printf(&sql, "CREATE SCHEMA %s", name);
    PQfreemem(name);
    bool ok = pg_store_exec(state, buf_text(&sql), 0, NULL, "make", NULL, err);
    buf_release(&sql);
    return ok;
}

static bool make_tables(State *state, Err *err)
{
    return pg_store_exec(state,
                         "CREATE TABLE openetl_store (schema_version bigint NOT NULL);"
                         "INSERT INTO openetl_store VALUES (0)",
                         0, NULL, "make", NULL, err);
}

static bool make_within(State *state, Err *err)
{
    Found found;
    int version = 0;
    if (!look(state, &found, err)) return false;
    bool ok = (found.schema || create_schema(state, err)) && (found.store || make_tables(state, err));
    return ok && read_version(state, &version, err) && check_version(state, version, err) &&
           (version == STATE_SCHEMA_VERSION || run_migrations(state, version, err));
}

/* Two processes may come at once: one waits for the other and then finds what that made. */
static bool make(State *state, Err *err)
{
    Err ignored;
    if (!pg_store_begin_locked(state, "", "make", err)) return false;
    bool ok = make_within(state, err) && pg_store_exec(state, "COMMIT", 0, NULL, "make", NULL, err);
    Fault fault = state->fault;
    if (!ok && state->pg->conn != NULL) pg_store_exec(state, "ROLLBACK", 0, NULL, "make", NULL, &ignored);
    state->fault = fault;
    return ok;
}

static bool set_path(State *state, Err *err)
{
    const char *schema = state->pg->schema;
    return pg_store_exec(
        state, "SELECT pg_catalog.set_config('search_path', pg_catalog.quote_ident($1) || ', pg_temp', false)", 1,
        &schema, "open", NULL, err);
}

static bool refuse_old(State *state, int version, Err *err)
{
    err_set(err, ERR_STATE_OPEN, "the state store %s has schema version %d, which this openetl must first bring to %d",
            state->place, version, STATE_SCHEMA_VERSION);
    err_fix(err, "run a command that writes, such as `openetl apply` or `openetl run`");
    return false;
}

bool pg_store_ready(State *state, Err *err)
{
    Found found;
    int version;
    if (!find_schema(state, err) || !set_path(state, err) || !look(state, &found, err)) return false;
    state->missing = !found.store && state->read_only;
    if (state->missing) return true;
    if (!found.store) return make(state, err);
    if (!read_version(state, &version, err) || !check_version(state, version, err)) return false;
    if (version == STATE_SCHEMA_VERSION) return true;
    return state->read_only ? refuse_old(state, version, err) : make(state, err);
}
