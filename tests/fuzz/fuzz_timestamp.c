/* Parses any bytes as each type of moment and as an interval; the text of what is read must read back as the same. */
#include "data/value.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool parsed, const char *why)
{
    if (!parsed && why == NULL) abort();
}

static void try_date(const char *text, size_t size, Buf *out)
{
    const char *why = NULL;
    int32_t days, again;
    bool good = date_parse(text, size, &days, &why);
    check(good, why);
    if (!good) return;
    buf_clear(out);
    date_format(days, out);
    if (!date_parse(out->data, out->length, &again, &why) || again != days) abort();
}

typedef bool (*Parse)(const char *text, size_t length, int64_t *us, const char **why);
typedef void (*Format)(int64_t us, Buf *out);

static void try_moment(Parse parse, Format format, const char *text, size_t size, Buf *out)
{
    const char *why = NULL;
    int64_t us, again;
    bool good = parse(text, size, &us, &why);
    check(good, why);
    if (!good) return;
    buf_clear(out);
    format(us, out);
    if (!parse(out->data, out->length, &again, &why) || again != us) abort();
}

static void try_interval(const char *text, size_t size, Buf *out)
{
    const char *why = NULL;
    Interval interval, again;
    bool good = interval_parse(text, size, &interval, &why);
    check(good, why);
    if (!good) return;
    buf_clear(out);
    interval_format(interval, out);
    if (!interval_parse(out->data, out->length, &again, &why) || memcmp(&again, &interval, sizeof again) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    Buf out;
    buf_init(&out, 200);
    try_date(text, size, &out);
    try_moment(time_parse, time_format, text, size, &out);
    try_moment(timestamp_parse, timestamp_format, text, size, &out);
    try_moment(timestamptz_parse, timestamptz_format, text, size, &out);
    try_interval(text, size, &out);
    buf_release(&out);
    return 0;
}
