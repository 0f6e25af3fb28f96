#include "tasks/key_text.h"

#include "base/arena.h"
#include "data/value.h"

#include <string.h>

static void put_key(const Schema *schema, const char *const *key, int key_count, const Batch *batch, int64_t row,
                    Buf *text)
{
    int count = key_count > 0 ? key_count : schema->count;
    for (int i = 0; i < count && text->length <= KEY_TEXT_BYTES; i++) {
        int column = key_count > 0 ? schema_find(schema, key[i]) : i;
        if (i > 0) buf_puts(text, ", ");
        if (key_count != 1) buf_printf(text, "%s=", schema->fields[column].name);
        if (!value_format(&batch->columns[column], row, text)) buf_puts(text, "NULL");
    }
}

char *key_text(const Schema *schema, const char *const *key, int key_count, const Batch *batch, int64_t row, Buf *text)
{
    buf_clear(text);
    put_key(schema, key, key_count, batch, row, text);
    if (text->length > KEY_TEXT_BYTES) {
        size_t length = KEY_TEXT_BYTES;
        while ((buf_text(text)[length] & 0xC0) == 0x80) /* not within a character */
            length--;
        text->length = length;
        buf_puts(text, "…");
    }
    return mem_strdup(buf_text(text));
}
