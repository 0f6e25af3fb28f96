#include "base/buf.h"

#include "base/arena.h"
#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(Buf *buf, size_t max_bytes)
{
    *buf = (Buf){.max_bytes = max_bytes};
}

void buf_release(Buf *buf)
{
    free(buf->data);
    *buf = (Buf){.max_bytes = buf->max_bytes};
}

void buf_clear(Buf *buf)
{
    buf->length = 0;
    if (buf->data != NULL) buf->data[0] = '\0';
}

char *buf_reserve(Buf *buf, size_t more)
{
    size_t need = buf->length + more + 1;
    if (more > buf->max_bytes || need > buf->max_bytes + 1)
        BUG("buffer of at most %zu bytes asked for %zu", buf->max_bytes, buf->length + more);
    if (need > buf->capacity) {
        size_t capacity = buf->capacity == 0 ? 256 : buf->capacity;
        while (capacity < need)
            capacity *= 2;
        buf->data = mem_realloc(buf->data, capacity);
        buf->capacity = capacity;
    }
    return buf->data + buf->length;
}

void buf_append(Buf *buf, const void *bytes, size_t length)
{
    char *to = buf_reserve(buf, length);
    if (length > 0) memcpy(to, bytes, length);
    buf->length += length;
    buf->data[buf->length] = '\0';
}

void buf_puts(Buf *buf, const char *text)
{
    buf_append(buf, text, strlen(text));
}
void buf_putc(Buf *buf, char c)
{
    buf_append(buf, &c, 1);
}

void buf_printf(Buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *to = buf_reserve(buf, (size_t)length);
    vsnprintf(to, (size_t)length + 1, format, args);
    va_end(args);
    buf->length += (size_t)length;
}

void buf_put_be16(Buf *buf, uint16_t value)
{
    value = __builtin_bswap16(value);
    buf_append(buf, &value, sizeof value);
}

void buf_put_be32(Buf *buf, uint32_t value)
{
    value = __builtin_bswap32(value);
    buf_append(buf, &value, sizeof value);
}

void buf_put_be64(Buf *buf, uint64_t value)
{
    value = __builtin_bswap64(value);
    buf_append(buf, &value, sizeof value);
}

const char *buf_text(const Buf *buf)
{
    return buf->data == NULL ? "" : buf->data;
}
