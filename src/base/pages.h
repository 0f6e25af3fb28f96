/* Large buffers that one thread fills and another frees, over and over: batches. The C library would keep them in the arena of
 * the thread that made them, in pieces; mapping them anew each time costs a page fault for every 4 KiB. So those that are
 * given back are kept for the next taker of the same size, up to a bound. Any thread may call. */
#ifndef OPENETL_BASE_PAGES_H
#define OPENETL_BASE_PAGES_H

#include <stddef.h>

/* `size` bytes, aligned to 64, not cleared; out of memory aborts. Give it back with the same size. */
void *pages_take(size_t size);
void pages_give(void *data, size_t size); /* NULL is fine */

#endif
