#include "base/pages.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LARGE_BYTES = 64 * 1024, ALIGNMENT = 64, KEPT_MOST = 256, KEPT_MOST_BYTES = 8 * 1024 * 1024 };

typedef struct Kept {
    void *data;
    size_t size;
} Kept;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Kept kept[KEPT_MOST];
static int kept_count;
static size_t kept_bytes;

static void *out_of_memory(size_t size)
{
    fprintf(stderr, "openetl: out of memory (%zu bytes)\n", size);
    abort();
}

static void *take_kept(size_t size)
{
    void *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = kept_count - 1; i >= 0 && found == NULL; i--) {
        if (kept[i].size != size) continue;
        found = kept[i].data;
        kept_bytes -= size;
        kept[i] = kept[--kept_count];
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static bool keep(void *data, size_t size)
{
    pthread_mutex_lock(&lock);
    bool room = kept_count < KEPT_MOST && kept_bytes + size <= KEPT_MOST_BYTES;
    if (room) {
        kept[kept_count++] = (Kept){data, size};
        kept_bytes += size;
    }
    pthread_mutex_unlock(&lock);
    return room;
}

void *pages_take(size_t size)
{
    if (size < LARGE_BYTES) {
        size_t whole = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        void *small = aligned_alloc(ALIGNMENT, whole == 0 ? ALIGNMENT : whole);
        return small == NULL ? out_of_memory(size) : small;
    }
    void *data = take_kept(size);
    if (data != NULL) return data;
    data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? out_of_memory(size) : data;
}

void pages_give(void *data, size_t size)
{
    if (data == NULL) return;
    if (size < LARGE_BYTES)
        free(data);
    else if (!keep(data, size))
        munmap(data, size);
}
