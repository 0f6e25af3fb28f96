/* A private PostgreSQL server in a temporary directory, on a socket only. Without an installed one `admin` is NULL. */
#ifndef OPENETL_TESTS_PG_SERVER_H
#define OPENETL_TESTS_PG_SERVER_H

#include "base/arena.h"

#include <glob.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Server {
    char directory[64];
    char url[128];
    char bin[256];
    pid_t pid;
    PGconn *admin;
} Server;

/* PostgreSQL refuses to run as root. */
static inline void become_server_user(void)
{
    struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : NULL;
    if (user != NULL && (setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)) _exit(126);
}

static inline pid_t server_spawn(const Server *server, const char *program, char *const *args)
{
    char path[320], log[96];
    snprintf(path, sizeof path, "%s/%s", server->bin, program);
    snprintf(log, sizeof log, "%s/log", server->directory);
    pid_t pid = fork();
    if (pid != 0) return pid;
    become_server_user();
    prctl(PR_SET_PDEATHSIG, SIGINT); /* a test that dies takes the server with it */
    if (chdir(server->directory) != 0 || freopen(log, "a", stdout) == NULL || dup2(1, 2) < 0) _exit(126);
    execv(path, args);
    _exit(127);
}

static inline bool server_find(Server *server)
{
    glob_t found;
    const char *given = getenv("PG_BIN");
    if (given != NULL) {
        snprintf(server->bin, sizeof server->bin, "%s", given);
        return true;
    }
    bool ok = glob("/usr/lib/postgresql/*/bin", 0, NULL, &found) == 0 && found.gl_pathc > 0;
    if (ok) snprintf(server->bin, sizeof server->bin, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return ok;
}

/* Starts the server on its directory and connects; also again after server_halt. */
static inline bool server_launch(Server *server)
{
    char data[96], sockets[128];
    snprintf(data, sizeof data, "%s/data", server->directory);
    snprintf(sockets, sizeof sockets, "unix_socket_directories=%s", server->directory);
    char *run[] = {(char[]){"postgres"},
                   (char[]){"-D"},
                   data,
                   (char[]){"-c"},
                   sockets,
                   (char[]){"-c"},
                   (char[]){"listen_addresses="},
                   (char[]){"-c"},
                   (char[]){"fsync=off"},
                   (char[]){"-c"},
                   (char[]){"wal_level=logical"},
                   (char[]){"-c"},
                   (char[]){"max_prepared_transactions=4"},
                   NULL};
    server->pid = server_spawn(server, "postgres", run);
    for (int tries = 0; tries < 600; tries++) {
        server->admin = PQconnectdb(server->url);
        if (PQstatus(server->admin) == CONNECTION_OK) break;
        PQfinish(server->admin);
        server->admin = NULL;
        usleep(50000);
    }
    if (server->admin == NULL) return false;
    PQclear(PQexec(server->admin, "SET client_min_messages = error; SET TimeZone = 'UTC'; SET lock_timeout = '10s'"));
    return true;
}

/* The fast shutdown: sessions are ended. */
static inline void server_halt(Server *server)
{
    PQfinish(server->admin);
    server->admin = NULL;
    kill(server->pid, SIGINT);
    waitpid(server->pid, NULL, 0);
}

/* A directory that the server's user owns. */
static inline bool server_directory(Server *server)
{
    snprintf(server->directory, sizeof server->directory, "/tmp/openetl-pg-XXXXXX");
    if (mkdtemp(server->directory) == NULL) return false;
    struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : NULL;
    if (user != NULL && chown(server->directory, user->pw_uid, user->pw_gid) != 0) return false;
    snprintf(server->url, sizeof server->url, "host=%s user=postgres dbname=postgres", server->directory);
    return true;
}

static inline int server_start(void **state)
{
    Server *server = mem_zero(sizeof *server);
    *state = server;
    if (!server_find(server)) return 0;
    if (!server_directory(server)) return 1;
    char data[96];
    snprintf(data, sizeof data, "%s/data", server->directory);
    char *init[] = {(char[]){"initdb"},
                    (char[]){"-D"},
                    data,
                    (char[]){"-EUTF8"},
                    (char[]){"--locale=C.UTF-8"},
                    (char[]){"-Atrust"},
                    (char[]){"-Upostgres"},
                    (char[]){"-N"},
                    NULL};
    int status = 1;
    if (waitpid(server_spawn(server, "initdb", init), &status, 0) < 0 || status != 0) return 1;
    return server_launch(server) ? 0 : 1;
}

/* A standby that streams from the primary; server_end it. */
static inline bool server_standby(Server *primary, Server *standby)
{
    int status = 1;
    char data[96];
    *standby = (Server){0};
    memcpy(standby->bin, primary->bin, sizeof standby->bin);
    if (!server_directory(standby)) return false;
    snprintf(data, sizeof data, "%s/data", standby->directory);
    char *backup[] = {(char[]){"pg_basebackup"},
                      (char[]){"-h"},
                      primary->directory,
                      (char[]){"-U"},
                      (char[]){"postgres"},
                      (char[]){"-D"},
                      data,
                      (char[]){"-R"},
                      (char[]){"-Xstream"},
                      (char[]){"-cfast"},
                      (char[]){"--no-sync"},
                      NULL};
    if (waitpid(server_spawn(standby, "pg_basebackup", backup), &status, 0) < 0 || status != 0) return false;
    return server_launch(standby);
}

static inline bool server_end(Server *server)
{
    char command[96];
    if (server->pid > 0 && server->admin != NULL) server_halt(server);
    snprintf(command, sizeof command, "rm -rf '%s'", server->directory);
    return system(command) == 0;
}

static inline int server_stop(void **state)
{
    Server *server = *state;
    bool ok = server->pid <= 0 || server_end(server);
    free(server);
    return ok ? 0 : 1;
}

#endif
