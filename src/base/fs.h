/* Local files: read whole with a size cap, write whole so that a crash leaves the old file or the new one, make and
 * list directories. Errors are IO and name the path and the system's reason; calls interrupted by a signal go on. Any
 * thread may call any function. */
#ifndef OPENETL_BASE_FS_H
#define OPENETL_BASE_FS_H

#include "base/arena.h"
#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

/* Reads a whole file (not a directory) into the arena, followed by a NUL that `length` does not count. More than
 * max_bytes is an error. `length` may be NULL. */
bool fs_read_file(const char *path, size_t max_bytes, Arena *arena, char **data, size_t *length, Err *err);
/* The same from an open descriptor, to its end; `name` is for messages. The descriptor stays the caller's. */
bool fs_read_fd(int fd, const char *name, size_t max_bytes, Arena *arena, char **data, size_t *length, Err *err);
/* Writes under a temporary name in the same directory, fsyncs, renames over `path`, fsyncs the directory. When it fails
 * the old file is untouched and the temporary one is taken away. */
bool fs_write_file(const char *path, const void *bytes, size_t length, mode_t mode, Err *err);
/* Makes a directory and those above it that are missing; one that exists is fine. */
bool fs_make_dirs(const char *path, mode_t mode, Err *err);
/* Makes a directory's entries (a file created or renamed in it) last over a power cut. */
bool fs_sync_dir(const char *path, Err *err);
/* The names in a directory, without "." and "..", sorted bytewise. */
bool fs_list(const char *path, Arena *arena, char ***names, int *count, Err *err);
bool fs_is_dir(const char *path);
/* The directory part of a path: "a/b" → "a", "b" → ".", "/b" → "/". */
const char *fs_dir_of(const char *path, Arena *arena);

#endif
