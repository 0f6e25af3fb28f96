#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 16 * 1024, ALIGNMENT = 16 };

struct ArenaBlock {
    ArenaBlock *next;
    size_t size;
    size_t used;
    _Alignas(16) unsigned char bytes[];
};

struct ArenaDefer {
    ArenaDefer *next;
    void (*fn)(void *handle);
    void *handle;
};

static _Noreturn void out_of_memory(size_t size)
{
    fprintf(stderr, "openetl: out of memory (%zu bytes)\n", size);
    abort();
}

void *mem_alloc(size_t size)
{
    void *memory = malloc(size == 0 ? 1 : size);
    if (memory == NULL) out_of_memory(size);
    return memory;
}

void *mem_zero(size_t size)
{
    void *memory = calloc(1, size == 0 ? 1 : size);
    if (memory == NULL) out_of_memory(size);
    return memory;
}

void *mem_realloc(void *old, size_t size)
{
    void *memory = realloc(old, size == 0 ? 1 : size);
    if (memory == NULL) out_of_memory(size);
    return memory;
}

char *mem_strdup(const char *text)
{
    if (text == NULL) return NULL;
    size_t size = strlen(text) + 1;
    return memcpy(mem_alloc(size), text, size);
}

void arena_init(Arena *arena)
{
    *arena = (Arena){0};
}

static void run_defers(Arena *arena)
{
    while (arena->defers != NULL) {
        ArenaDefer *defer = arena->defers;
        arena->defers = defer->next;
        defer->fn(defer->handle);
    }
}

void arena_release(Arena *arena)
{
    run_defers(arena);
    for (ArenaBlock *block = arena->blocks; block != NULL;) {
        ArenaBlock *next = block->next;
        free(block);
        block = next;
    }
    arena->blocks = NULL;
}

void arena_reset(Arena *arena)
{
    run_defers(arena);
    ArenaBlock *kept = arena->blocks;
    if (kept == NULL) return;
    for (ArenaBlock *block = kept->next; block != NULL;) {
        ArenaBlock *next = block->next;
        free(block);
        block = next;
    }
    kept->next = NULL;
    kept->used = 0;
    if (kept->size > 4 * BLOCK_BYTES) {
        free(kept);
        arena->blocks = NULL;
    }
}

void *arena_alloc(Arena *arena, size_t size)
{
    size_t need = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    ArenaBlock *block = arena->blocks;
    if (block == NULL || block->size - block->used < need) {
        size_t block_size = need > BLOCK_BYTES ? need : BLOCK_BYTES;
        block = mem_alloc(sizeof *block + block_size);
        block->size = block_size;
        block->used = 0;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    void *memory = block->bytes + block->used;
    block->used += need;
    memset(memory, 0, size);
    return memory;
}

void *arena_memdup(Arena *arena, const void *bytes, size_t length)
{
    void *copy = arena_alloc(arena, length);
    if (length > 0) memcpy(copy, bytes, length);
    return copy;
}

char *arena_strndup(Arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);
    if (length > 0) memcpy(copy, text, length);
    return copy;
}

char *arena_strdup(Arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

char *arena_vprintf(Arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, args);
    return text;
}

char *arena_printf(Arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

char *arena_count(Arena *arena, int64_t count)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)count);
    const char *p = digits[0] == '-' ? digits + 1 : digits;
    size_t length = strlen(p);
    char *out = arena_alloc(arena, length + length / 3 + 2);
    char *to = out;
    if (p != digits) *to++ = '-';
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) *to++ = ',';
        *to++ = p[i];
    }
    return out;
}

void arena_defer(Arena *arena, void (*fn)(void *handle), void *handle)
{
    ArenaDefer *defer = arena_new(arena, ArenaDefer);
    defer->fn = fn;
    defer->handle = handle;
    defer->next = arena->defers;
    arena->defers = defer;
}
