#include "engine/key_spill.h"

#include "base/buf.h"
#include "data/value.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A record: the hash, the bytes of what follows (u32), and of each column its length (u32, ABSENT for NULL) and text. */
#define ABSENT UINT32_MAX
enum { BUFFER_BYTES = 1 << 18 };

struct KeySpill {
    char *directory;
    const Schema *key;
    FILE *file; /* NULL: nothing was written */
    Buf record; /* what follows the length */
    Buf text;
};

KeySpill *key_spill_new(const char *directory, const Schema *key)
{
    KeySpill *spill = mem_zero(sizeof *spill);
    spill->directory = mem_strdup(directory);
    spill->key = key;
    buf_init(&spill->record, VALUE_MAX_BYTES);
    buf_init(&spill->text, VALUE_MAX_BYTES);
    return spill;
}

void key_spill_free(KeySpill *spill)
{
    if (spill == NULL) return;
    if (spill->file != NULL) fclose(spill->file);
    buf_release(&spill->record);
    buf_release(&spill->text);
    free(spill->directory);
    free(spill);
}

static bool failed(const KeySpill *spill, const char *what, Err *err)
{
    int code = errno;
    err_set(err, ERR_IO, "the file of keys in %s cannot be %s: %s", spill->directory, what, strerror(code));
    err_fix(err, "TMPDIR names another directory, with room for the table's keys");
    return false;
}

static bool open_file(KeySpill *spill, Err *err)
{
    if (spill->file != NULL) return true;
    Buf path;
    buf_init(&path, BUF_SQL_MAX);
    buf_printf(&path, "%s/openetl-keys-XXXXXX", spill->directory);
    int fd = mkostemp(path.data, O_CLOEXEC);
    bool ok = fd >= 0 && unlink(path.data) == 0;
    if (ok) spill->file = fdopen(fd, "w+");
    if (spill->file == NULL) {
        ok = failed(spill, "made", err);
        if (fd >= 0) close(fd);
    } else {
        setvbuf(spill->file, NULL, _IOFBF, BUFFER_BYTES);
    }
    buf_release(&path);
    return ok;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_column(KeySpill *spill, const Column *column, int64_t row)
{
    buf_clear(&spill->text);
    uint32_t length = value_format(column, row, &spill->text) ? (uint32_t)spill->text.length : ABSENT;
    buf_append(&spill->record, &length, sizeof length);
    if (length != ABSENT) buf_append(&spill->record, spill->text.data, length);
}

bool key_spill_add(KeySpill *spill, Hash128 hash, const Batch *keys, int64_t row, Err *err)
{
    if (!open_file(spill, err)) return false;
    buf_clear(&spill->record);
    for (int i = 0; i < spill->key->count; i++)
        put_column(spill, &keys->columns[i], row);
    uint32_t length = (uint32_t)spill->record.length;
    if (fwrite(&hash, sizeof hash, 1, spill->file) == 1 && fwrite(&length, sizeof length, 1, spill->file) == 1 &&
        (length == 0 || fwrite(spill->record.data, length, 1, spill->file) == 1))
        return true;
    return failed(spill, "written", err);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* False at the end, and where it failed. */
static bool read_record(KeySpill *spill, Hash128 *hash, bool *ok, Err *err)
{
    uint32_t length;
    if (fread(hash, sizeof *hash, 1, spill->file) != 1) {
        *ok = feof(spill->file) || failed(spill, "read", err);
        return false;
    }
    buf_clear(&spill->record);
    *ok = fread(&length, sizeof length, 1, spill->file) == 1;
    if (*ok && length > 0) {
        buf_reserve(&spill->record, length);
        *ok = fread(spill->record.data, length, 1, spill->file) == 1;
        spill->record.length = length;
    }
    return *ok || failed(spill, "read", err);
}

bool key_spill_scan(KeySpill *spill, KeySpillVisit visit, void *context, Err *err)
{
    Hash128 hash;
    bool ok = true;
    if (spill->file == NULL) return true;
    if (fflush(spill->file) != 0 || fseeko(spill->file, 0, SEEK_SET) != 0) return failed(spill, "written", err);
    while (read_record(spill, &hash, &ok, err))
        if (!visit(context, hash, err)) return false;
    return ok;
}

void key_spill_copy(const KeySpill *spill, BatchBuilder *to)
{
    const char *at = spill->record.data, *why;
    for (int i = 0; i < spill->key->count; i++) {
        uint32_t length;
        memcpy(&length, at, sizeof length);
        at += sizeof length;
        if (length == ABSENT) {
            column_append_null(&to->columns[i]);
            continue;
        }
        if (!value_parse(&to->columns[i], at, length, &why)) BUG("a key's text is not its value: %s", why);
        at += length;
    }
}
