#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_STEP = 64 * 1024 };

static bool io_error(Err *err, const char *path, const char *what)
{
    int error = errno;
    return err_set(err, ERR_IO, "%s: %s: %s", path, what, strerror(error));
}

/* close() may report a write error late (NFS, quotas); after EINTR the descriptor is gone on Linux, so no second try.
 */
static bool close_file(int fd, const char *path, Err *err)
{
    if (close(fd) == 0 || errno == EINTR) return true;
    return io_error(err, path, "cannot be closed");
}

static ssize_t read_some(int fd, char *into, size_t size)
{
    ssize_t got;
    do
        got = read(fd, into, size);
    while (got < 0 && errno == EINTR);
    return got;
}

bool fs_read_fd(int fd, const char *name, size_t max_bytes, Arena *arena, char **data, size_t *length, Err *err)
{
    /* Grown by malloc, copied once: an arena would keep every smaller copy. One byte more than allowed is asked for, to
     * tell "exactly at the cap" from "beyond". */
    size_t capacity = 0, used = 0;
    char *bytes = NULL;
    for (;;) {
        if (used == capacity) {
            capacity = capacity == 0 ? READ_STEP : capacity * 2;
            if (capacity > max_bytes + 1) capacity = max_bytes + 1;
            bytes = mem_realloc(bytes, capacity);
        }
        ssize_t got = read_some(fd, bytes + used, capacity - used);
        if (got < 0) {
            io_error(err, name, "cannot be read");
            free(bytes);
            return false;
        }
        if (got == 0) break;
        used += (size_t)got;
        if (used > max_bytes) {
            free(bytes);
            return err_set(err, ERR_IO, "%s: larger than the %zu bytes allowed", name, max_bytes);
        }
    }
    *data = arena_strndup(arena, bytes, used);
    if (length != NULL) *length = used;
    free(bytes);
    return true;
}

bool fs_read_file(const char *path, size_t max_bytes, Arena *arena, char **data, size_t *length, Err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return io_error(err, path, "cannot be opened");
    struct stat info;
    if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
        close(fd);
        return err_set(err, ERR_IO, "%s: is a directory, not a file", path);
    }
    bool read = fs_read_fd(fd, path, max_bytes, arena, data, length, err);
    close(fd);
    return read;
}

static bool write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t wrote = write(fd, bytes, length);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return false;
        bytes += wrote;
        length -= (size_t)wrote;
    }
    return true;
}

/* Fills the temporary file; the descriptor is closed in any case. */
static bool fill_temporary(int fd, const char *path, const void *bytes, size_t length, mode_t mode, Err *err)
{
    bool filled = true;
    if (!write_all(fd, bytes, length))
        filled = io_error(err, path, "cannot be written");
    else if (fchmod(fd, mode) != 0)
        filled = io_error(err, path, "its mode cannot be set");
    else if (fsync(fd) != 0)
        filled = io_error(err, path, "cannot be made durable");
    Err ignored;
    return close_file(fd, path, filled ? err : &ignored) && filled;
}

bool fs_write_file(const char *path, const void *bytes, size_t length, mode_t mode, Err *err)
{
    Arena arena;
    arena_init(&arena);
    char *temporary = arena_printf(&arena, "%s.XXXXXX", path);
    bool written = false;
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        io_error(err, path, "a temporary file beside it cannot be created");
    } else if (!fill_temporary(fd, path, bytes, length, mode, err)) {
        unlink(temporary);
    } else if (rename(temporary, path) != 0) {
        io_error(err, path, "cannot be put in place");
        unlink(temporary);
    } else {
        written = fs_sync_dir(fs_dir_of(path, &arena), err);
    }
    arena_release(&arena);
    return written;
}

static bool make_dir(const char *path, mode_t mode, Err *err)
{
    if (mkdir(path, mode) == 0) return true;
    if (errno == EEXIST && fs_is_dir(path)) return true;
    return io_error(err, path, "the directory cannot be made");
}

bool fs_make_dirs(const char *path, mode_t mode, Err *err)
{
    Arena arena;
    arena_init(&arena);
    char *part = arena_strdup(&arena, path);
    bool made = true;
    for (char *p = part; made && *p != '\0'; p++) {
        if (*p != '/' || p == part || p[-1] == '/') continue;
        *p = '\0';
        made = make_dir(part, mode, err);
        *p = '/';
    }
    made = made && make_dir(path, mode, err);
    arena_release(&arena);
    return made;
}

bool fs_sync_dir(const char *path, Err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return io_error(err, path, "the directory cannot be opened");
    /* Some file systems cannot fsync a directory and say EINVAL; there is nothing more to do about it there. */
    bool synced = fsync(fd) == 0 || errno == EINVAL;
    if (!synced) io_error(err, path, "the directory cannot be made durable");
    close(fd);
    return synced;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool fs_list(const char *path, Arena *arena, char ***names, int *count, Err *err)
{
    DIR *dir = opendir(path);
    if (dir == NULL) return io_error(err, path, "the directory cannot be opened");
    char **found = NULL;
    size_t capacity = 0, used = 0;
    const struct dirent *entry;
    while ((void)(errno = 0), (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (used == capacity) {
            capacity = capacity == 0 ? 32 : capacity * 2;
            found = mem_realloc(found, capacity * sizeof *found);
        }
        found[used++] = arena_strdup(arena, entry->d_name);
    }
    bool read = errno == 0;
    if (!read) io_error(err, path, "the directory cannot be read");
    closedir(dir);
    if (read) {
        if (used > 0) qsort(found, used, sizeof *found, compare_names);
        *names = arena_array(arena, char *, used);
        if (used > 0) memcpy(*names, found, used * sizeof *found);
        *count = (int)used;
    }
    free(found);
    return read;
}

bool fs_is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

const char *fs_dir_of(const char *path, Arena *arena)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) return ".";
    if (slash == path) return "/";
    return arena_strndup(arena, path, (size_t)(slash - path));
}
