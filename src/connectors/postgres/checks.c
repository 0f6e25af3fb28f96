#include "connectors/postgres/source.h"

bool pg_identity(Session *session, Arena *arena, const char **identity, Err *err)
{
    PgSession *pg = (PgSession *)session;
    PGresult *result = NULL;
    /* The same for a primary, its standbys and what is promoted from them, and for no other server. */
    if (pg_exec(pg, "SELECT system_identifier FROM pg_catalog.pg_control_system()", &result, err)) {
        *identity = arena_printf(arena, "postgres:%s/%s", PQgetvalue(result, 0, 0), PQdb(pg->conn));
        PQclear(result);
        return true;
    }
    if (err->code != ERR_SOURCE_PRIVILEGE && err->code != ERR_DEST_PRIVILEGE) return false;
    *identity = arena_printf(arena, "postgres:%s:%s/%s", PQhost(pg->conn), PQport(pg->conn), PQdb(pg->conn));
    return true;
}

static const char FACTS[] =
    "SELECT pg_catalog.pg_is_in_recovery(), "
    "pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') "
    "OR (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user), "
    "pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE'), "
    "pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMP'), "
    "(SELECT reset_val = 'on' FROM pg_catalog.pg_settings WHERE name = 'default_transaction_read_only'), "
    "(SELECT pg_catalog.count(*) FROM pg_catalog.pg_prepared_xacts WHERE database = pg_catalog.current_database())";

enum Fact { IN_RECOVERY, SEES_SESSIONS, CREATES, MAKES_TEMP, READ_ONLY, PREPARED };

static bool fact(const PGresult *facts, enum Fact which)
{
    return PQgetvalue(facts, 0, (int)which)[0] == 't';
}

static void check_encoding(const PgSession *session, CheckList *list)
{
    const char *encoding = PQparameterStatus(session->conn, "server_encoding");
    if (strcmp(encoding, "SQL_ASCII") == 0)
        check_add(list, false, "encoding", "SQL_ASCII: the server takes any bytes for text",
                  "move the database to UTF8; until then a text that is not UTF-8 stops its stream with DATA_CAST");
    else
        check_add(list, true, "encoding",
                  strcmp(encoding, "UTF8") == 0 ? "UTF8" : arena_printf(list->arena, "%s, converted to UTF8", encoding),
                  NULL);
}

static void check_source(const PgSession *session, const PGresult *facts, CheckList *list)
{
    const char *user = PQuser(session->conn);
    if (fact(facts, IN_RECOVERY))
        check_add(list, false, "clock", "the server is a standby: it cannot say how far a timestamp cursor may be read",
                  "use the primary for incremental streams by a date or timestamp; full_refresh works here");
    if (fact(facts, SEES_SESSIONS))
        check_add(list, true, "open transactions", "the role sees since when each is open", NULL);
    else
        check_add(
            list, false, "open transactions",
            "the role does not see since when other roles' transactions are open, so a timestamp cursor waits for "
            "them to end",
            arena_printf(list->arena, "GRANT pg_read_all_stats TO \"%s\"", user));
    if (PQgetvalue(facts, 0, PREPARED)[0] != '0')
        check_add(list, false, "prepared transactions",
                  arena_printf(list->arena, "%s are open", PQgetvalue(facts, 0, PREPARED)),
                  "end those that were forgotten: SELECT gid, prepared FROM pg_prepared_xacts");
}

static void check_destination(const PgSession *session, const PGresult *facts, CheckList *list)
{
    const char *user = PQuser(session->conn), *database = PQdb(session->conn);
    if (fact(facts, IN_RECOVERY) || fact(facts, READ_ONLY))
        check_add(list, false, "writable",
                  fact(facts, IN_RECOVERY) ? "the server is a standby" : "the role's transactions are read only",
                  "connect to the primary, with a role whose default_transaction_read_only is off");
    else
        check_add(list, true, "writable", "transactions may write", NULL);
    if (fact(facts, CREATES))
        check_add(list, true, "create schemas", "the role may create schemas", NULL);
    else
        check_add(list, false, "create schemas", "the role may not create schemas in the database",
                  arena_printf(list->arena,
                               "GRANT CREATE ON DATABASE \"%s\" TO \"%s\", or make the namespace yourself and let the "
                               "role own it",
                               database, user));
    if (fact(facts, MAKES_TEMP))
        check_add(list, true, "temporary tables", "the role may make them", NULL);
    else
        check_add(list, false, "temporary tables", "the role may not make temporary tables",
                  arena_printf(list->arena, "GRANT TEMPORARY ON DATABASE \"%s\" TO \"%s\"", database, user));
}

bool pg_checks(Session *session, SessionRole role, CheckList *list, Err *err)
{
    PgSession *pg = (PgSession *)session;
    PGresult *facts = NULL;
    if (!pg_exec(pg, FACTS, &facts, err)) return false;
    const char *host = PQhost(pg->conn);
    check_add(list, true, "connect",
              arena_printf(list->arena, "%s port %s, database %s, as user %s%s", host, PQport(pg->conn), PQdb(pg->conn),
                           PQuser(pg->conn), PQsslInUse(pg->conn) != 0 ? ", over TLS" : ""),
              NULL);
    check_add(list, true, "version",
              arena_printf(list->arena, "PostgreSQL %s", PQparameterStatus(pg->conn, "server_version")), NULL);
    check_encoding(pg, list);
    if (role == ROLE_SOURCE)
        check_source(pg, facts, list);
    else
        check_destination(pg, facts, list);
    PQclear(facts);
    return true;
}
