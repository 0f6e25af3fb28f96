/* A source session on a private server, and the schema `shop` for each test: what the suites of keyed reads share. */
#ifndef OPENETL_TESTS_UNIT_PG_KEYED_H
#define OPENETL_TESTS_UNIT_PG_KEYED_H

#include "keyed.h"

#include "connectors/postgres/conn.h"
#include "pg_server.h"

extern const Connector connector_postgres;

typedef struct World {
    Server *server;
    Arena arena;
    Keyed keyed;
} World;

static inline void sql(World *world, const char *text)
{
    PGresult *result = PQexec(world->server->admin, text);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) fail_msg("%s: %s", text, PQresultErrorMessage(result));
    PQclear(result);
}

static inline void open_session(World *world)
{
    ConfigEntry entry = {"url", world->server->url};
    ConnectorConfig config = {.connection = "shop", .entries = &entry, .count = 1};
    OpenSpec spec = {.config = &config,
                     .role = ROLE_SOURCE,
                     .read_only = true,
                     .application = "openetl test",
                     .stop = &world->keyed.stop};
    if (world->keyed.session != NULL) pg_close(world->keyed.session);
    keyed_must(&world->keyed, pg_open(&spec, &world->keyed.session, &world->keyed.err));
}

static inline int setup(void **state)
{
    World *world = mem_zero(sizeof *world);
    world->server = *state;
    arena_init(&world->arena);
    world->keyed = (Keyed){.room = &connector_postgres, .arena = &world->arena};
    *state = world;
    if (world->server->admin == NULL) return 0;
    sql(world, "DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop; SET search_path = shop");
    open_session(world);
    return 0;
}

static inline int teardown(void **state)
{
    World *world = *state;
    *state = world->server;
    if (world->keyed.session != NULL) pg_close(world->keyed.session);
    arena_release(&world->arena);
    free(world);
    return 0;
}

static inline World *world_of(void **state)
{
    World *world = *state;
    if (world->server->admin == NULL) skip();
    return world;
}

#endif
