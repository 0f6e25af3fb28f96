/* Parses any bytes as a decimal of any precision and scale; what is read must be within the precision, and its text
 * must read back as the same value. */
#include "data/value.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    int precision = 1 + data[0] % DECIMAL_MAX_PRECISION, scale = data[1] % (precision + 1);
    const char *why = NULL;
    __int128 value, again, limit = 1;
    for (int i = 0; i < precision; i++)
        limit *= 10;
    if (!decimal_parse((const char *)data + 2, size - 2, precision, scale, &value, &why)) {
        if (why == NULL) abort();
        return 0;
    }
    if (value >= limit || value <= -limit) abort();
    Buf out;
    buf_init(&out, 100);
    decimal_format(value, scale, &out);
    if (!decimal_parse(out.data, out.length, precision, scale, &again, &why) || again != value) abort();
    buf_release(&out);
    return 0;
}
