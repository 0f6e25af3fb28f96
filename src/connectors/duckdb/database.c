#include "connectors/duckdb/database.h"

#include "base/clock.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POLL_US = 200 * 1000, HEADER_BYTES = 3 * 4096 };

static pthread_mutex_t open_files_lock = PTHREAD_MUTEX_INITIALIZER;
static Database *open_files;

static ErrCode connect_code(SessionRole role)
{
    return role == ROLE_SOURCE ? ERR_SOURCE_CONNECT : ERR_DEST_CONNECT;
}

bool database_path(const char *path, SessionRole role, Arena *arena, const char **absolute, Err *err)
{
    char *whole = realpath(path, NULL);
    if (whole != NULL) {
        *absolute = arena_strdup(arena, whole);
        free(whole);
        return true;
    }
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const char *directory = slash == NULL   ? "."
                            : slash == path ? "/"
                                            : arena_strndup(arena, path, (size_t)(slash - path));
    char *resolved = realpath(directory, NULL);
    if (resolved == NULL) {
        err_set(err, connect_code(role), "the directory of the DuckDB file \"%s\" cannot be used: %s", path,
                strerror(errno));
        err_fix(err, errno == ENOENT ? "make the directory %s, or correct config.path" : "check config.path (%s)",
                directory);
        return false;
    }
    *absolute = arena_printf(arena, "%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved, name);
    free(resolved);
    return true;
}

/* ---- what a process that was killed left behind ------------------------------------------------------------------ */

/* A file shorter than its three headers is one whose making was cut off: nothing was ever stored in it, and DuckDB
 * would refuse it for ever. */
static void drop_stillborn(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size >= HEADER_BYTES) return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    char head[12] = {0};
    ssize_t length = pread(fd, head, sizeof head, 0);
    bool ours = length == 0 || (length == (ssize_t)sizeof head && memcmp(head + 8, "DUCK", 4) == 0);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (ours && fcntl(fd, F_SETLK, &lock) == 0) unlink(path);
    close(fd);
}

static void remove_spill_files(const char *directory)
{
    DIR *entries = opendir(directory);
    if (entries == NULL) return;
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
        if (strncmp(entry->d_name, "duckdb_temp_", 12) == 0) unlinkat(dirfd(entries), entry->d_name, 0);
    closedir(entries);
    rmdir(directory);
}

/* Whoever holds the file for writing is alone, so spill files lying beside it belong to dead processes. */
static void drop_spill(const char *path)
{
    char directory[PATH_MAX], prefix[NAME_MAX + 1], found[PATH_MAX + NAME_MAX + 2];
    const char *slash = strrchr(path, '/');
    snprintf(directory, sizeof directory, "%.*s", (int)(slash - path + 1), path);
    snprintf(prefix, sizeof prefix, "%.*s.tmp", (int)sizeof prefix - 8, slash + 1);
    DIR *entries = opendir(directory);
    if (entries == NULL) return;
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        size_t length = strlen(prefix);
        if (strncmp(entry->d_name, prefix, length) != 0) continue;
        if (entry->d_name[length] != '\0' && entry->d_name[length] != '-') continue;
        snprintf(found, sizeof found, "%s%s", directory, entry->d_name);
        remove_spill_files(found);
    }
    closedir(entries);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void set_option(duckdb_config config, const char *name, const char *value)
{
    if (duckdb_set_config(config, name, value) != DuckDBSuccess) BUG("DuckDB does not know the setting %s", name);
}

static duckdb_config make_config(const DatabaseSpec *spec)
{
    char text[PATH_MAX + 32];
    duckdb_config config;
    if (duckdb_create_config(&config) != DuckDBSuccess) BUG("duckdb_create_config failed");
    set_option(config, "access_mode", spec->read_only ? "READ_ONLY" : "READ_WRITE");
    set_option(config, "autoinstall_known_extensions", "false");
    set_option(config, "autoload_known_extensions", "false");
    int64_t memory = spec->open->memory_bytes > 0 ? spec->open->memory_bytes : 1 << 30;
    snprintf(text, sizeof text, "%lldB", (long long)memory);
    set_option(config, "memory_limit", text);
    /* Without it what a long statement freed stays resident until the statement ends. */
    set_option(config, "allocator_background_threads", "true");
    if (spec->open->threads > 0) {
        snprintf(text, sizeof text, "%d", spec->open->threads);
        set_option(config, "threads", text);
    }
    /* Readers may be several processes: each spills into a directory of its own. */
    if (spec->temporary != NULL)
        snprintf(text, sizeof text, "%s/openetl-%ld", spec->temporary, (long)getpid());
    else if (spec->read_only)
        snprintf(text, sizeof text, "%s.tmp-%ld", spec->path, (long)getpid());
    else
        snprintf(text, sizeof text, "%s.tmp", spec->path);
    set_option(config, "temp_directory", text);
    return config;
}

/* "Conflicting lock is held in /usr/bin/python3 (PID 71) by user …": who, or false when the error is another one. */
static bool lock_holder(const char *message, char *holder, size_t size)
{
    if (strstr(message, "Could not set lock on file") == NULL) return false;
    const char *pid = strstr(message, "(PID ");
    const char *program = strstr(message, "is held in ");
    if (pid == NULL) {
        snprintf(holder, size, "another process");
        return true;
    }
    int digits = (int)strspn(pid + 5, "0123456789");
    snprintf(holder, size, "process %.*s", digits, pid + 5);
    size_t used = strlen(holder);
    if (program != NULL && program < pid)
        snprintf(holder + used, size - used, " (%.*s)", (int)(pid - 1 - (program + 11)), program + 11);
    return true;
}

static bool open_failed(const DatabaseSpec *spec, const char *message, Err *err)
{
    bool source = spec->open->role == ROLE_SOURCE;
    ErrCode refused = source ? ERR_SOURCE_PRIVILEGE : ERR_DEST_PRIVILEGE;
    const char *path = spec->path;
    if (strstr(message, "not a valid DuckDB database file") != NULL) {
        err_set(err, connect_code(spec->open->role), "\"%s\" is not a DuckDB file", path);
        err_fix(err, "correct config.path, or move that file out of the way");
    } else if (strstr(message, "version number") != NULL || strstr(message, "newer version") != NULL) {
        err_set(err, connect_code(spec->open->role), "\"%s\" was written by another version of DuckDB: %s", path,
                message);
        err_fix(err,
                "openetl holds DuckDB %s: export the file with the version that wrote it, or write it with "
                "STORAGE_VERSION 'v1.0.0'",
                duckdb_library_version());
    } else if (strstr(message, "Permission denied") != NULL || strstr(message, "Read-only file system") != NULL) {
        err_set(err, refused, "\"%s\" may not be %s: %s", path, spec->read_only ? "read" : "written", message);
        err_fix(err, "a DuckDB file is written with a log beside it: give this user the right to %s the file%s",
                spec->read_only ? "read" : "write", spec->read_only ? "" : " and its directory");
    } else if (strstr(message, "database does not exist") != NULL) {
        err_set(err, connect_code(spec->open->role), "there is no DuckDB file \"%s\"", path);
        err_fix(err, "correct config.path");
    } else if (strstr(message, "No space left") != NULL && !source) {
        err_set(err, ERR_DEST_FULL, "\"%s\" cannot be opened: %s", path, message);
        err_fix(err, "free space on the volume that holds it");
    } else if (strstr(message, "checksum") != NULL || strstr(message, "Serialization Error") != NULL) {
        err_set(err, connect_code(spec->open->role), "\"%s\" is damaged: %s", path, message);
        err_fix(err, "restore it from a backup; its DuckDB version is not the cause");
    } else {
        err_set(err, connect_code(spec->open->role), "\"%s\" cannot be opened: %s", path, message);
        err_fix(err, "check config.path");
    }
    return false;
}

static Database *find_open(const char *path)
{
    for (Database *database = open_files; database != NULL; database = database->next)
        if (strcmp(database->path, path) == 0) return database;
    return NULL;
}

typedef enum Attempt { ATTEMPT_OPEN, ATTEMPT_HELD, ATTEMPT_FAILED } Attempt;

static Attempt open_file(const DatabaseSpec *spec, Database **database, char *holder, size_t holder_size, Err *err)
{
    duckdb_database handle;
    char *message = NULL;
    if (!spec->read_only) drop_stillborn(spec->path);
    duckdb_config config = make_config(spec);
    duckdb_state state = duckdb_open_ext(spec->path, &handle, config, &message);
    duckdb_destroy_config(&config);
    if (state != DuckDBSuccess) {
        const char *why = message == NULL ? "unknown error" : message;
        bool held = lock_holder(why, holder, holder_size);
        if (!held) open_failed(spec, why, err);
        duckdb_free(message);
        return held ? ATTEMPT_HELD : ATTEMPT_FAILED;
    }
    if (!spec->read_only && spec->temporary == NULL) drop_spill(spec->path);
    Database *made = mem_zero(sizeof *made);
    made->path = strdup(spec->path);
    made->read_only = spec->read_only;
    made->sessions = 1;
    made->handle = handle;
    pthread_mutex_init(&made->ddl_lock, NULL);
    made->next = open_files;
    open_files = made;
    *database = made;
    return ATTEMPT_OPEN;
}

/* A reader joins a writer's instance; a writer cannot join a reader's. */
static Attempt try_open(const DatabaseSpec *spec, Database **database, char *holder, size_t holder_size, Err *err)
{
    pthread_mutex_lock(&open_files_lock);
    Attempt attempt;
    Database *known = find_open(spec->path);
    if (known == NULL) {
        attempt = open_file(spec, database, holder, holder_size, err);
    } else if (known->read_only && !spec->read_only) {
        snprintf(holder, holder_size,
                 "this process, which reads it (a pipeline cannot read and write one DuckDB file)");
        attempt = ATTEMPT_HELD;
    } else {
        known->sessions++;
        *database = known;
        attempt = ATTEMPT_OPEN;
    }
    pthread_mutex_unlock(&open_files_lock);
    return attempt;
}

bool database_open(const DatabaseSpec *spec, Database **database, Err *err)
{
    int64_t until = clock_mono_us() + spec->open->wait_us;
    char holder[512];
    for (bool said = false;; said = true) {
        Attempt attempt = try_open(spec, database, holder, sizeof holder, err);
        if (attempt != ATTEMPT_HELD) return attempt == ATTEMPT_OPEN;
        if (clock_mono_us() >= until) break;
        if (!said) log_info("waiting for the DuckDB file %s, held by %s", spec->path, holder);
        if (spec->open->stop != NULL && stop_asked(spec->open->stop))
            return err_set(err, ERR_STOPPED, "stopped while waiting for the DuckDB file \"%s\", held by %s", spec->path,
                           holder);
        usleep(POLL_US);
    }
    err_set(err, spec->open->role == ROLE_SOURCE ? ERR_SOURCE_CONNECT : ERR_DEST_BUSY,
            "the DuckDB file \"%s\" is held by %s", spec->path, holder);
    err_fix(err, "a DuckDB file takes one writing process: end that process, or wait for it with --wait 10m");
    return false;
}

void database_close(Database *database)
{
    pthread_mutex_lock(&open_files_lock);
    if (--database->sessions == 0) {
        Database **link = &open_files;
        while (*link != database)
            link = &(*link)->next;
        *link = database->next;
        duckdb_close(&database->handle);
        pthread_mutex_destroy(&database->ddl_lock);
        free(database->path);
        free(database);
    }
    pthread_mutex_unlock(&open_files_lock);
}
