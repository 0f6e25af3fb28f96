#include "connectors/postgres/spill.h"

#include "connectors/postgres/decode_value.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH_BYTES = 4 };
#define WINDOW_MOST ((size_t)3 << 30) /* a message is less than 2 GiB */

void spill_init(Spill *spill, const char *directory)
{
    *spill = (Spill){.directory = directory, .fd = -1};
    buf_init(&spill->window, WINDOW_MOST);
}

void spill_release(Spill *spill)
{
    if (spill->fd >= 0) close(spill->fd);
    spill->fd = -1;
    buf_release(&spill->window);
}

static bool failed(const Spill *spill, const char *what, Err *err)
{
    int code = errno;
    err_set(err, ERR_IO, "a file for a large transaction in %s cannot be %s: %s", spill->directory, what,
            strerror(code));
    if (code == ENOSPC || code == EDQUOT)
        err_fix(err, "it takes there what the transaction's changes take in the log; TMPDIR names another directory");
    else
        err_fix(err, "it must be a directory this user can write; TMPDIR names another one");
    return false;
}

/* Without a name where the file system can; else the name is gone before anything is written. */
static bool open_file(Spill *spill, Err *err)
{
    if (spill->fd >= 0) return true;
    spill->fd = open(spill->directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (spill->fd >= 0) return true;
    Buf path;
    buf_init(&path, 64 * 1024);
    buf_printf(&path, "%s/openetl-log-XXXXXX", spill->directory);
    spill->fd = mkostemp(path.data, O_CLOEXEC);
    bool ok = spill->fd >= 0 && unlink(path.data) == 0;
    if (!ok) failed(spill, "made", err);
    buf_release(&path);
    return ok;
}

static bool flush(Spill *spill, Err *err)
{
    const char *from = spill->window.data;
    size_t left = spill->window.length;
    if (!open_file(spill, err)) return false;
    while (left > 0) {
        ssize_t wrote = write(spill->fd, from, left);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return failed(spill, "written", err);
        from += wrote;
        left -= (size_t)wrote;
    }
    buf_clear(&spill->window);
    return true;
}

bool spill_add(Spill *spill, const void *bytes, size_t length, Err *err)
{
    buf_put_be32(&spill->window, (uint32_t)length);
    buf_append(&spill->window, bytes, length);
    return spill->window.length < SPILL_MEMORY_BYTES || flush(spill, err);
}

/* What is in memory is the end of what is in the file: it goes there too, so that one way of reading serves. */
bool spill_rewind(Spill *spill, Err *err)
{
    spill->at = 0;
    spill->taken = 0;
    return spill->fd < 0 || spill->window.length == 0 || flush(spill, err);
}

/* Moves what was not taken yet to the window's start; a window that a very long record made is let go of. */
static void shift(Spill *spill)
{
    Buf *window = &spill->window;
    size_t left = window->length - spill->at;
    if (left == 0 && window->capacity > 4 * (size_t)SPILL_MEMORY_BYTES) {
        buf_release(window);
        buf_init(window, WINDOW_MOST);
    } else if (left > 0) {
        memmove(window->data, window->data + spill->at, left);
    }
    window->length = left;
    spill->at = 0;
}

/* Makes `need` bytes readable at `at`; fewer only at the end. */
static bool fill(Spill *spill, size_t need, Err *err)
{
    Buf *window = &spill->window;
    if (window->length - spill->at >= need || spill->fd < 0) return true;
    shift(spill);
    size_t more = need > SPILL_MEMORY_BYTES ? need : SPILL_MEMORY_BYTES;
    while (window->length < need) {
        ssize_t got = pread(spill->fd, buf_reserve(window, more), more, (off_t)spill->taken);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return failed(spill, "read", err);
        if (got == 0) return true;
        window->length += (size_t)got;
        spill->taken += (uint64_t)got;
    }
    return true;
}

static bool cut_short(const Spill *spill, Err *err)
{
    return err_set(err, ERR_IO, "the file of a large transaction in %s ends early", spill->directory);
}

bool spill_next(Spill *spill, const uint8_t **bytes, size_t *length, Err *err)
{
    *bytes = NULL;
    *length = 0;
    if (!fill(spill, LENGTH_BYTES, err)) return false;
    size_t left = spill->window.length - spill->at;
    if (left == 0) return true;
    if (left < LENGTH_BYTES) return cut_short(spill, err);
    *length = be32((const uint8_t *)spill->window.data + spill->at);
    if (!fill(spill, LENGTH_BYTES + *length, err)) return false;
    if (spill->window.length - spill->at < LENGTH_BYTES + *length) return cut_short(spill, err);
    *bytes = (const uint8_t *)spill->window.data + spill->at + LENGTH_BYTES;
    spill->at += LENGTH_BYTES + *length;
    return true;
}
