/* Arenas: memory with one lifetime. A function that returns memory takes the Arena it belongs to; nothing taken from
 * an arena is freed alone. Deferred calls close handles when the arena ends: one cleanup concept. Running out of
 * memory aborts the process, which is safe by contract (kill -9 is). An Arena belongs to one thread. */
#ifndef OPENETL_BASE_ARENA_H
#define OPENETL_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>

typedef struct ArenaBlock ArenaBlock;
typedef struct ArenaDefer ArenaDefer;

typedef struct Arena {
    ArenaBlock *blocks;
    ArenaDefer *defers;
} Arena;

void arena_init(Arena *arena);
/* Runs deferred calls, newest first, then frees everything. The arena can be used again. */
void arena_release(Arena *arena);
/* As arena_release, but keeps one block for the next round: for scratch arenas reset a chunk, message or batch. */
void arena_reset(Arena *arena);

/* Zeroed, aligned to 16 bytes. */
void *arena_alloc(Arena *arena, size_t size);
#define arena_new(arena, T)          ((T *)arena_alloc((arena), sizeof(T)))
#define arena_array(arena, T, count) ((T *)arena_alloc((arena), sizeof(T) * (size_t)(count)))
char *arena_strdup(Arena *arena, const char *text);
/* `length` bytes of text, terminated. */
char *arena_strndup(Arena *arena, const char *text, size_t length);
void *arena_memdup(Arena *arena, const void *bytes, size_t length);
char *arena_printf(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *arena, const char *format, va_list args);
/* "1,234,567": counts as people read them. */
char *arena_count(Arena *arena, int64_t count);
/* Calls fn(handle) when the arena is released or reset. */
void arena_defer(Arena *arena, void (*fn)(void *handle), void *handle);

/* malloc family that aborts when memory runs out, for buffers that live outside arenas. */
void *mem_alloc(size_t size);
void *mem_zero(size_t size);
void *mem_realloc(void *old, size_t size);
char *mem_strdup(const char *text); /* NULL stays NULL */

#endif
