/* A growing byte buffer, always terminated by a NUL that its length does not count: for SQL text, messages and wire
 * bytes. It has a declared maximum; going beyond it is a bug of the caller (BUG), who bounds what it puts in. */
#ifndef OPENETL_BASE_BUF_H
#define OPENETL_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>

typedef struct Buf {
    char *data; /* never NULL after the first append; use buf_text() to read as a string */
    size_t length;
    size_t capacity;
    size_t max_bytes;
} Buf;

enum { BUF_SQL_MAX = 64 * 1024 * 1024 };

void buf_init(Buf *buf, size_t max_bytes);
void buf_release(Buf *buf);
void buf_clear(Buf *buf);
/* Makes room for `more` bytes and returns where they go; the caller adds to length what it wrote. */
char *buf_reserve(Buf *buf, size_t more);
void buf_append(Buf *buf, const void *bytes, size_t length);
void buf_puts(Buf *buf, const char *text);
void buf_putc(Buf *buf, char c);
void buf_printf(Buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Big-endian integers, for wire formats. */
void buf_put_be16(Buf *buf, uint16_t value);
void buf_put_be32(Buf *buf, uint32_t value);
void buf_put_be64(Buf *buf, uint64_t value);
const char *buf_text(const Buf *buf);

#endif
