#include "state/internal.h"

#include <stdlib.h>

/* A hash of 16 bytes is 22 characters of base64 without padding; an entry is two of them, big endian. */
enum { ENTRY_BYTES = 32, ENTRY_CHARS = 43 };

static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* 32 bytes as 43 letters: the last one has four bits. */
static void put_entry(const uint8_t bytes[ENTRY_BYTES], char out[ENTRY_CHARS])
{
    uint32_t held = 0;
    int bits = 0, at = 0;
    for (int i = 0; i < ENTRY_BYTES; i++) {
        held = (held << 8 | bytes[i]) & 0x3FFF;
        for (bits += 8; bits >= 6; bits -= 6)
            out[at++] = LETTERS[held >> (bits - 6) & 63];
    }
    out[at] = LETTERS[held << (6 - bits) & 63];
}

static int letter_value(char letter)
{
    if (letter >= 'A' && letter <= 'Z') return letter - 'A';
    if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9') return letter - '0' + 52;
    return letter == '+' ? 62 : letter == '/' ? 63 : -1;
}

static bool take_entry(const char letters[ENTRY_CHARS], uint8_t bytes[ENTRY_BYTES])
{
    uint32_t held = 0;
    int bits = 0, at = 0;
    for (int i = 0; i < ENTRY_CHARS; i++) {
        int value = letter_value(letters[i]);
        if (value < 0) return false;
        held = (held << 6 | (uint32_t)value) & 0x3FFF;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        bytes[at++] = (uint8_t)(held >> bits);
    }
    return at == ENTRY_BYTES;
}

static uint64_t get_be64(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static char *pack(const RowHash *hashes, int count)
{
    char *text = mem_alloc((size_t)count * ENTRY_CHARS + 1);
    for (int i = 0; i < count; i++) {
        uint8_t bytes[ENTRY_BYTES];
        hash128_bytes(hashes[i].key, bytes);
        hash128_bytes(hashes[i].row, bytes + 16);
        put_entry(bytes, text + (size_t)i * ENTRY_CHARS);
    }
    text[(size_t)count * ENTRY_CHARS] = '\0';
    return text;
}

bool state_row_hashes_put(State *state, const RowHashSet *set, int64_t block, const RowHash *hashes, int count,
                          Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE};
    char *text = pack(hashes, count);
    while (txn_next(&txn, err))
        txn.ok = query_run(state, err,
                           "INSERT INTO row_hashes (workspace, pipeline, stream, set_name, block, hashes)"
                           " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (workspace, pipeline, stream, set_name, block)"
                           " DO UPDATE SET hashes = excluded.hashes",
                           "wtttit", set->pipeline, set->stream, set->name, block, text);
    free(text);
    return txn.ok;
}

bool state_row_hashes_whole(State *state, const RowHashSet *set, int64_t blocks, int64_t rows, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE};
    while (txn_next(&txn, err)) {
        int64_t now;
        txn.ok = query_clock(state, &now, err) &&
                 query_run(state, err,
                           "INSERT INTO row_hash_sets (workspace, pipeline, stream, set_name, blocks, rows, written_at)"
                           " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (workspace, pipeline, stream, set_name)"
                           " DO UPDATE SET blocks = excluded.blocks, rows = excluded.rows,"
                           " written_at = excluded.written_at",
                           "wtttiiu", set->pipeline, set->stream, set->name, blocks, rows, now);
    }
    return txn.ok;
}

bool state_row_hashes_keep(State *state, const RowHashSet *set, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE};
    const char *name = set->name == NULL ? "" : set->name;
    while (txn_next(&txn, err))
        txn.ok = query_run(state, err,
                           "DELETE FROM row_hash_sets WHERE workspace = ? AND pipeline = ? AND stream = ?"
                           " AND set_name <> ?",
                           "wttt", set->pipeline, set->stream, name) &&
                 query_run(state, err,
                           "DELETE FROM row_hashes WHERE workspace = ? AND pipeline = ? AND stream = ?"
                           " AND set_name <> ?",
                           "wttt", set->pipeline, set->stream, name);
    return txn.ok;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool find_set(State *state, const RowHashSet *set, int64_t *blocks, int64_t *rows, Err *err)
{
    Query *query = query_open(state, err,
                              "SELECT blocks, rows FROM row_hash_sets WHERE workspace = ? AND pipeline = ?"
                              " AND stream = ? AND set_name = ?",
                              "wttt", set->pipeline, set->stream, set->name);
    bool row = false, ok = query != NULL && query_next(query, &row, err);
    *blocks = ok && row ? query_int(query, 0) : -1;
    *rows = ok && row ? query_int(query, 1) : 0;
    query_close(query);
    return ok;
}

bool state_row_hashes_find(State *state, const RowHashSet *set, int64_t *blocks, int64_t *rows, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *blocks = -1;
    while (txn_next(&txn, err))
        txn.ok = find_set(state, set, blocks, rows, err);
    return txn.ok;
}

static bool unpack(State *state, const char *text, RowHash *hashes, int *count, Err *err)
{
    size_t length = text == NULL ? 0 : strlen(text);
    *count = 0;
    if (length == 0 || length % ENTRY_CHARS != 0 || length / ENTRY_CHARS > ROW_HASHES_BLOCK)
        return state_corrupt(state, "row_hashes", "a block of row hashes", err);
    for (size_t at = 0; at < length; at += ENTRY_CHARS) {
        uint8_t bytes[ENTRY_BYTES];
        if (!take_entry(text + at, bytes)) return state_corrupt(state, "row_hashes", "a block of row hashes", err);
        hashes[(*count)++] = (RowHash){.key = {.high = get_be64(bytes), .low = get_be64(bytes + 8)},
                                       .row = {.high = get_be64(bytes + 16), .low = get_be64(bytes + 24)}};
    }
    return true;
}

static bool read_block(State *state, const RowHashSet *set, int64_t block, RowHash *hashes, int *count, Err *err)
{
    Arena arena;
    arena_init(&arena);
    Query *query = query_open(state, err,
                              "SELECT hashes FROM row_hashes WHERE workspace = ? AND pipeline = ? AND stream = ?"
                              " AND set_name = ? AND block = ?",
                              "wttti", set->pipeline, set->stream, set->name, block);
    bool row = false, ok = query != NULL && query_next(query, &row, err);
    const char *text = ok && row ? query_text(query, 0, &arena) : NULL;
    query_close(query);
    ok = ok && unpack(state, text, hashes, count, err);
    arena_release(&arena);
    return ok;
}

bool state_row_hashes_get(State *state, const RowHashSet *set, int64_t block, RowHash *hashes, int *count, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    while (txn_next(&txn, err))
        txn.ok = read_block(state, set, block, hashes, count, err);
    return txn.ok;
}
