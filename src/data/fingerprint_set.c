/* Sets of fingerprints by external sort: runs sorted in memory, written one after another to one unlinked file, merged
 * through a heap. Hashes spread evenly, so nothing about the data makes it slow. */
#include "base/arena.h"
#include "data/fingerprint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEAST_ENTRIES = 64, READ_MOST_BYTES = 1 << 20, READ_LEAST_ENTRIES = 64, SMALL_ENTRIES = 4096 };
static const char MAGIC[16] = "openetl prints 1";

typedef struct Run {
    off_t offset;
    int64_t count;
} Run;

struct FingerprintSet {
    char *directory;
    Fingerprint *entries; /* not yet in a run */
    size_t count, capacity, most;
    int fd; /* -1: nothing was written */
    off_t bytes;
    Run *runs;
    int run_count;
    int64_t added;
    bool loaded;
};

FingerprintSet *fingerprints_new(const char *directory, size_t memory_bytes)
{
    FingerprintSet *set = mem_zero(sizeof *set);
    size_t length = strlen(directory) + 1, most = memory_bytes / sizeof(Fingerprint);
    set->directory = memcpy(mem_alloc(length), directory, length);
    set->most = most < LEAST_ENTRIES ? LEAST_ENTRIES : most;
    set->fd = -1;
    return set;
}

void fingerprints_free(FingerprintSet *set)
{
    if (set == NULL) return;
    if (set->fd >= 0) close(set->fd);
    free(set->directory);
    free(set->entries);
    free(set->runs);
    free(set);
}

int64_t fingerprints_count(const FingerprintSet *set)
{
    return set->added;
}

static inline int compare_hash(Hash128 a, Hash128 b)
{
    if (a.high != b.high) return a.high < b.high ? -1 : 1;
    return a.low == b.low ? 0 : a.low < b.low ? -1 : 1;
}

/* By key, then from the oldest version to the newest; the rest only so that the order is one. */
static int compare_prints(const void *a, const void *b)
{
    const Fingerprint *left = a, *right = b;
    int order = compare_hash(left->key, right->key);
    if (order != 0) return order;
    if (left->seq.high != right->seq.high) return left->seq.high < right->seq.high ? -1 : 1;
    if (left->seq.low != right->seq.low) return left->seq.low < right->seq.low ? -1 : 1;
    return compare_hash(left->row, right->row);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static bool failed(const FingerprintSet *set, const char *what, Err *err)
{
    int code = errno;
    err_set(err, ERR_IO, "the file of row hashes in %s cannot be %s: %s", set->directory, what, strerror(code));
    if (code == ENOSPC || code == EDQUOT)
        err_fix(err, "a compared row takes 48 bytes there; TMPDIR names another directory");
    else
        err_fix(err, "it must be a directory this user can write; TMPDIR names another one");
    return false;
}

static bool open_spill(FingerprintSet *set, Err *err)
{
    if (set->fd >= 0) return true;
    Buf path;
    buf_init(&path, BUF_SQL_MAX);
    buf_printf(&path, "%s/openetl-rows-XXXXXX", set->directory);
    set->fd = mkostemp(path.data, O_CLOEXEC);
    bool ok = set->fd >= 0 && unlink(path.data) == 0;
    if (!ok) failed(set, "made", err);
    buf_release(&path);
    return ok;
}

static bool write_all(const FingerprintSet *set, int fd, const void *bytes, size_t length, off_t at, Err *err)
{
    const char *from = bytes;
    while (length > 0) {
        ssize_t wrote = pwrite(fd, from, length, at);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return failed(set, "written", err);
        from += wrote;
        at += wrote;
        length -= (size_t)wrote;
    }
    return true;
}

static bool read_all(const FingerprintSet *set, void *bytes, size_t length, off_t at, Err *err)
{
    char *to = bytes;
    while (length > 0) {
        ssize_t got = pread(set->fd, to, length, at);
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) errno = EIO;
        if (got <= 0) return failed(set, "read", err);
        to += got;
        at += got;
        length -= (size_t)got;
    }
    return true;
}

static void sort_entries(FingerprintSet *set)
{
    if (set->count > 1) qsort(set->entries, set->count, sizeof *set->entries, compare_prints);
}

static bool spill(FingerprintSet *set, Err *err)
{
    if (set->count == 0) return true;
    size_t length = set->count * sizeof *set->entries;
    sort_entries(set);
    if (!open_spill(set, err) || !write_all(set, set->fd, set->entries, length, set->bytes, err)) return false;
    set->runs = mem_realloc(set->runs, sizeof *set->runs * (size_t)(set->run_count + 1));
    set->runs[set->run_count++] = (Run){.offset = set->bytes, .count = (int64_t)set->count};
    set->bytes += (off_t)length;
    set->count = 0;
    return true;
}

bool fingerprints_add(FingerprintSet *set, const Fingerprint *print, Err *err)
{
    if (set->loaded) BUG("a saved set of fingerprints is added to");
    if (set->count == set->most && !spill(set, err)) return false;
    if (set->count == set->capacity) {
        size_t more = set->capacity == 0 ? LEAST_ENTRIES : 2 * set->capacity;
        set->capacity = more < set->most ? more : set->most;
        set->entries = mem_realloc(set->entries, sizeof *set->entries * set->capacity);
    }
    set->entries[set->count++] = *print;
    set->added++;
    return true;
}

bool fingerprints_rest(FingerprintSet *set, Err *err)
{
    if (set->loaded || (set->count <= SMALL_ENTRIES && set->capacity <= SMALL_ENTRIES)) return true;
    if (!spill(set, err)) return false;
    free(set->entries);
    set->entries = NULL;
    set->capacity = 0;
    return true;
}

/* ---- reading in order -------------------------------------------------------------------------------------------- */

/* One run's part in the merge; the entries in memory are the last "run", which lies whole in its buffer. */
typedef struct RunReader {
    Fingerprint *buffer;
    size_t at, filled, room;
    off_t offset;
    int64_t left; /* in the file still */
} RunReader;

typedef struct Merge {
    const FingerprintSet *set;
    RunReader *readers;
    int reader_count;
    int *heap; /* of readers, by their next entry */
    int heap_count;
    Fingerprint *buffers;
} Merge;

static bool refill(const Merge *merge, RunReader *reader, Err *err)
{
    size_t take = reader->left < (int64_t)reader->room ? (size_t)reader->left : reader->room;
    reader->at = 0;
    reader->filled = take;
    if (take == 0) return true;
    if (!read_all(merge->set, reader->buffer, take * sizeof *reader->buffer, reader->offset, err)) return false;
    reader->offset += (off_t)(take * sizeof *reader->buffer);
    reader->left -= (int64_t)take;
    return true;
}

static bool heap_before(const Merge *merge, int a, int b)
{
    const RunReader *left = &merge->readers[merge->heap[a]], *right = &merge->readers[merge->heap[b]];
    return compare_prints(&left->buffer[left->at], &right->buffer[right->at]) < 0;
}

static void heap_sink(Merge *merge, int at)
{
    for (;;) {
        int least = at, child = 2 * at + 1;
        if (child < merge->heap_count && heap_before(merge, child, least)) least = child;
        if (child + 1 < merge->heap_count && heap_before(merge, child + 1, least)) least = child + 1;
        if (least == at) return;
        int swap = merge->heap[at];
        merge->heap[at] = merge->heap[least];
        merge->heap[least] = swap;
        at = least;
    }
}

static void merge_close(Merge *merge)
{
    free(merge->buffers);
    free(merge->readers);
    free(merge->heap);
}

static size_t reader_room(const FingerprintSet *set)
{
    if (set->run_count == 0) return 0;
    size_t room = set->most / (size_t)set->run_count, most = READ_MOST_BYTES / sizeof(Fingerprint);
    if (room < READ_LEAST_ENTRIES) room = READ_LEAST_ENTRIES;
    return room < most ? room : most;
}

static bool merge_open(Merge *merge, FingerprintSet *set, Err *err)
{
    size_t room = reader_room(set), runs = (size_t)set->run_count;
    *merge = (Merge){.set = set, .reader_count = set->run_count + (set->count > 0)};
    merge->readers = mem_zero(sizeof *merge->readers * (runs + 1));
    merge->heap = mem_zero(sizeof *merge->heap * (runs + 1));
    merge->buffers = mem_alloc(sizeof *merge->buffers * (room * runs + 1));
    sort_entries(set);
    for (int i = 0; i < set->run_count; i++) {
        merge->readers[i] = (RunReader){.buffer = merge->buffers + room * (size_t)i,
                                        .room = room,
                                        .offset = set->runs[i].offset,
                                        .left = set->runs[i].count};
        if (refill(merge, &merge->readers[i], err)) continue;
        merge_close(merge);
        return false;
    }
    if (set->count > 0) merge->readers[runs] = (RunReader){.buffer = set->entries, .filled = set->count};
    for (int i = 0; i < merge->reader_count; i++)
        if (merge->readers[i].filled > 0) merge->heap[merge->heap_count++] = i;
    for (int i = merge->heap_count / 2 - 1; i >= 0; i--)
        heap_sink(merge, i);
    return true;
}

static const Fingerprint *merge_peek(const Merge *merge)
{
    if (merge->heap_count == 0) return NULL;
    const RunReader *reader = &merge->readers[merge->heap[0]];
    return &reader->buffer[reader->at];
}

static bool merge_step(Merge *merge, Err *err)
{
    RunReader *reader = &merge->readers[merge->heap[0]];
    if (++reader->at == reader->filled && !refill(merge, reader, err)) return false;
    if (reader->filled == 0) merge->heap[0] = merge->heap[--merge->heap_count];
    heap_sink(merge, 0);
    return true;
}

/* The next key: its newest version and how many entries it has; *count = 0 at the end. */
static bool merge_key(Merge *merge, Fingerprint *print, int64_t *count, Err *err)
{
    const Fingerprint *next = merge_peek(merge);
    *count = 0;
    while (next != NULL && (*count == 0 || hash128_same(next->key, print->key))) {
        *print = *next;
        ++*count;
        if (!merge_step(merge, err)) return false;
        next = merge_peek(merge);
    }
    return true;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

typedef struct Side {
    Merge merge;
    Fingerprint print;
    int64_t count; /* 0: at the end */
} Side;

static bool compare_sides(Side *left, Side *right, FingerprintVisit visit, void *context, Err *err)
{
    if (!merge_key(&left->merge, &left->print, &left->count, err) ||
        !merge_key(&right->merge, &right->print, &right->count, err))
        return false;
    while (left->count > 0 || right->count > 0) {
        int order = left->count == 0 ? 1 : right->count == 0 ? -1 : compare_hash(left->print.key, right->print.key);
        bool in_left = order <= 0, in_right = order >= 0;
        FingerprintPair pair = {
            .left = in_left ? &left->print : NULL,
            .right = in_right ? &right->print : NULL,
            .left_count = in_left ? left->count : 0,
            .right_count = in_right ? right->count : 0,
        };
        if (!visit(context, &pair, err)) return false;
        if (in_left && !merge_key(&left->merge, &left->print, &left->count, err)) return false;
        if (in_right && !merge_key(&right->merge, &right->print, &right->count, err)) return false;
    }
    return true;
}

bool fingerprints_compare(FingerprintSet *left, FingerprintSet *right, FingerprintVisit visit, void *context, Err *err)
{
    Side sides[2];
    if (!merge_open(&sides[0].merge, left, err)) return false;
    if (!merge_open(&sides[1].merge, right, err)) {
        merge_close(&sides[0].merge);
        return false;
    }
    bool ok = compare_sides(&sides[0], &sides[1], visit, context, err);
    merge_close(&sides[0].merge);
    merge_close(&sides[1].merge);
    return ok;
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

enum { SAVE_ENTRIES = 4096 };

typedef struct Saving {
    const FingerprintSet *set;
    int fd;
    off_t at;
    int64_t count;
    size_t held;
    Fingerprint entries[SAVE_ENTRIES];
} Saving;

/* What a saved set begins with. */
typedef struct Header {
    char magic[16];
    int64_t count;
    int64_t reserved[3];
} Header;

static bool save_held(Saving *saving, Err *err)
{
    size_t length = saving->held * sizeof *saving->entries;
    if (!write_all(saving->set, saving->fd, saving->entries, length, saving->at, err)) return false;
    saving->at += (off_t)length;
    saving->held = 0;
    return true;
}

static bool save_one(void *context, const FingerprintPair *pair, Err *err)
{
    Saving *saving = context;
    if (hash128_same(pair->left->row, FINGERPRINT_GONE)) return true;
    saving->entries[saving->held++] = *pair->left;
    saving->count++;
    return saving->held < SAVE_ENTRIES || save_held(saving, err);
}

static bool save_entries(FingerprintSet *set, int fd, Err *err)
{
    FingerprintSet *none = fingerprints_new(set->directory, 0);
    Saving *saving = mem_zero(sizeof *saving);
    saving->set = set;
    saving->fd = fd;
    saving->at = sizeof(Header);
    bool ok = fingerprints_compare(set, none, save_one, saving, err) && save_held(saving, err);
    Header header = {.count = saving->count};
    memcpy(header.magic, MAGIC, sizeof MAGIC);
    ok = ok && write_all(set, fd, &header, sizeof header, 0, err);
    if (ok && fsync(fd) != 0) ok = failed(set, "written", err);
    free(saving);
    fingerprints_free(none);
    return ok;
}

bool fingerprints_save(FingerprintSet *set, const char *path, Err *err)
{
    Buf temporary;
    buf_init(&temporary, BUF_SQL_MAX);
    buf_printf(&temporary, "%s.XXXXXX", path);
    int fd = mkostemp(temporary.data, O_CLOEXEC);
    bool ok = fd >= 0 ? save_entries(set, fd, err) : failed(set, "made", err);
    if (fd >= 0) close(fd);
    if (ok && rename(temporary.data, path) != 0) ok = failed(set, "renamed", err);
    if (!ok && fd >= 0) unlink(temporary.data);
    buf_release(&temporary);
    return ok;
}

bool fingerprints_load(const char *path, FingerprintSet **set, Err *err)
{
    Header header;
    struct stat facts;
    FingerprintSet *loaded = fingerprints_new(path, FINGERPRINT_MEMORY_BYTES);
    *set = NULL;
    loaded->loaded = true;
    loaded->fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = (loaded->fd >= 0 && fstat(loaded->fd, &facts) == 0) || failed(loaded, "read", err);
    bool whole = ok && facts.st_size >= (off_t)sizeof header;
    if (whole) ok = read_all(loaded, &header, sizeof header, 0, err);
    whole = whole && ok && memcmp(header.magic, MAGIC, sizeof MAGIC) == 0 && header.count >= 0 &&
            facts.st_size == (off_t)sizeof header + header.count * (off_t)sizeof(Fingerprint);
    if (ok && !whole) {
        ok = err_set(err, ERR_IO, "%s is not a whole file of row hashes", path);
        err_fix(err, "take it away: what it was made from is read again");
    }
    if (!ok) {
        fingerprints_free(loaded);
        return false;
    }
    loaded->runs = mem_alloc(sizeof *loaded->runs);
    loaded->runs[loaded->run_count++] = (Run){.offset = sizeof header, .count = header.count};
    loaded->added = header.count;
    *set = loaded;
    return true;
}
