#include "connectors/postgres/pgoutput.h"

#include "connectors/postgres/decode_value.h"

#define EPOCH_SHIFT_US 946684800000000LL /* 2000-01-01, PostgreSQL's epoch, since 1970 */

/* What is left of a message. A read past its end gives zeros and sets `bad`. */
typedef struct Cursor {
    const uint8_t *at, *end;
    const char *bad;
} Cursor;

static bool has(Cursor *cursor, size_t bytes)
{
    if (cursor->bad == NULL && (size_t)(cursor->end - cursor->at) < bytes) cursor->bad = "it ends early";
    return cursor->bad == NULL;
}

static uint8_t take_8(Cursor *cursor)
{
    return has(cursor, 1) ? *cursor->at++ : 0;
}

static uint16_t take_16(Cursor *cursor)
{
    if (!has(cursor, 2)) return 0;
    cursor->at += 2;
    return be16(cursor->at - 2);
}

static uint32_t take_32(Cursor *cursor)
{
    if (!has(cursor, 4)) return 0;
    cursor->at += 4;
    return be32(cursor->at - 4);
}

static uint64_t take_64(Cursor *cursor)
{
    if (!has(cursor, 8)) return 0;
    cursor->at += 8;
    return be64(cursor->at - 8);
}

static const char *take_text(Cursor *cursor)
{
    if (cursor->bad != NULL) return "";
    const uint8_t *end = memchr(cursor->at, 0, (size_t)(cursor->end - cursor->at));
    if (end == NULL) {
        cursor->bad = "a name without an end";
        return "";
    }
    const char *text = (const char *)cursor->at;
    cursor->at = end + 1;
    return text;
}

static void skip(Cursor *cursor, size_t bytes)
{
    if (has(cursor, bytes)) cursor->at += bytes;
}

static int64_t take_time(Cursor *cursor)
{
    int64_t us;
    if (__builtin_add_overflow((int64_t)take_64(cursor), EPOCH_SHIFT_US, &us)) cursor->bad = "a time out of range";
    return us;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static void check_datum(Cursor *cursor)
{
    uint8_t kind = take_8(cursor);
    if (cursor->bad != NULL || kind == 'n' || kind == 'u') return;
    if (kind != 't' && kind != 'b')
        cursor->bad = "a value of an unknown kind";
    else
        skip(cursor, take_32(cursor));
}

static PgTuple take_tuple(Cursor *cursor)
{
    int count = take_16(cursor);
    PgTuple tuple = {.at = cursor->at, .count = count};
    for (int i = 0; i < count && cursor->bad == NULL; i++)
        check_datum(cursor);
    return tuple;
}

PgDatum pg_tuple_next(PgTuple *tuple)
{
    PgDatum datum = {.kind = (char)*tuple->at++};
    if (datum.kind == 'n' || datum.kind == 'u') return datum;
    datum.length = be32(tuple->at);
    datum.bytes = tuple->at + 4;
    tuple->at = datum.bytes + datum.length;
    return datum;
}

PgRelationColumn pg_relation_next(const uint8_t **at)
{
    PgRelationColumn column = {.identity = (**at & 1) != 0, .name = (const char *)*at + 1};
    *at += 1 + strlen(column.name) + 1;
    column.type = be32(*at);
    column.typmod = (int32_t)be32(*at + 4);
    *at += 8;
    return column;
}

static void take_relation(Cursor *cursor, PgMessage *message)
{
    message->relation = take_32(cursor);
    message->schema = take_text(cursor);
    message->name = take_text(cursor);
    message->identity = (char)take_8(cursor);
    message->count = take_16(cursor);
    message->at = cursor->at;
    if (cursor->bad == NULL && (message->identity == 0 || strchr("dnfi", message->identity) == NULL))
        cursor->bad = "an unknown replica identity";
    for (int i = 0; i < message->count && cursor->bad == NULL; i++) {
        take_8(cursor);
        take_text(cursor);
        skip(cursor, 8);
    }
}

static void take_new_row(Cursor *cursor, PgMessage *message, uint8_t kind)
{
    if (cursor->bad == NULL && kind != 'N') cursor->bad = "no new row where one belongs";
    message->new_row = take_tuple(cursor);
}

static void take_update(Cursor *cursor, PgMessage *message)
{
    message->relation = take_32(cursor);
    uint8_t kind = take_8(cursor);
    if (kind == 'K' || kind == 'O') {
        message->old_kind = (char)kind;
        message->old_row = take_tuple(cursor);
        kind = take_8(cursor);
    }
    take_new_row(cursor, message, kind);
}

static void take_delete(Cursor *cursor, PgMessage *message)
{
    message->relation = take_32(cursor);
    message->old_kind = (char)take_8(cursor);
    if (cursor->bad == NULL && message->old_kind != 'K' && message->old_kind != 'O')
        cursor->bad = "no old row where one belongs";
    message->old_row = take_tuple(cursor);
}

static void take_truncate(Cursor *cursor, PgMessage *message)
{
    uint32_t count = take_32(cursor);
    skip(cursor, 1); /* CASCADE, RESTART IDENTITY */
    message->at = cursor->at;
    if (cursor->bad == NULL && count > (size_t)(cursor->end - cursor->at) / 4) cursor->bad = "it ends early";
    if (cursor->bad != NULL) return;
    message->count = (int)count;
    skip(cursor, 4 * (size_t)count);
}

static void take_commit(Cursor *cursor, PgMessage *message)
{
    skip(cursor, 1); /* flags, none of which is known */
    message->commit_lsn = take_64(cursor);
    message->end_lsn = take_64(cursor);
    message->commit_us = take_time(cursor);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* What belongs to a transaction, so that it carries an id within a stream. */
static bool take_row_message(Cursor *cursor, bool streaming, PgMessage *message)
{
    if (strchr("RYIUDTM", (int)message->kind) == NULL) return false;
    if (streaming) message->xid = take_32(cursor);
    if (message->kind == PG_MSG_RELATION) {
        take_relation(cursor, message);
    } else if (message->kind == PG_MSG_TYPE) {
        skip(cursor, 4);
        take_text(cursor);
        take_text(cursor);
    } else if (message->kind == PG_MSG_INSERT) {
        message->relation = take_32(cursor);
        take_new_row(cursor, message, take_8(cursor));
    } else if (message->kind == PG_MSG_UPDATE) {
        take_update(cursor, message);
    } else if (message->kind == PG_MSG_DELETE) {
        take_delete(cursor, message);
    } else if (message->kind == PG_MSG_TRUNCATE) {
        take_truncate(cursor, message);
    } else { /* a message of pg_logical_emit_message */
        skip(cursor, 1 + 8);
        take_text(cursor);
        skip(cursor, take_32(cursor));
    }
    return true;
}

static void take_bounds_message(Cursor *cursor, PgMessage *message)
{
    if (message->kind == PG_MSG_BEGIN) {
        message->commit_lsn = take_64(cursor);
        message->commit_us = take_time(cursor);
        message->xid = take_32(cursor);
    } else if (message->kind == PG_MSG_COMMIT) {
        take_commit(cursor, message);
    } else if (message->kind == PG_MSG_ORIGIN) {
        skip(cursor, 8);
        take_text(cursor);
    } else if (message->kind == PG_MSG_STREAM_START) {
        message->xid = take_32(cursor);
        message->first = take_8(cursor) == 1;
    } else if (message->kind == PG_MSG_STREAM_COMMIT) {
        message->xid = take_32(cursor);
        take_commit(cursor, message);
    } else if (message->kind == PG_MSG_STREAM_ABORT) {
        message->xid = take_32(cursor);
        message->subxid = take_32(cursor);
    } else if (message->kind != PG_MSG_STREAM_STOP) {
        cursor->bad = "a kind that was not asked for";
    }
}

bool pg_message_parse(const uint8_t *bytes, size_t length, bool streaming, PgMessage *message, Err *err)
{
    Cursor cursor = {.at = bytes, .end = bytes + length};
    *message = (PgMessage){.kind = (PgMessageKind)take_8(&cursor)};
    if (cursor.bad == NULL && (message->kind == 0 || !take_row_message(&cursor, streaming, message)))
        take_bounds_message(&cursor, message);
    if (cursor.bad == NULL && cursor.at != cursor.end) cursor.bad = "bytes are left over";
    if (cursor.bad == NULL) return true;
    int shown = length > 0 && bytes[0] >= 0x20 && bytes[0] < 0x7f ? bytes[0] : '?';
    return err_set(err, ERR_SOURCE_QUERY, "malformed message '%c' of %zu bytes from the change log: %s", shown, length,
                   cursor.bad);
}
