/* Values in PostgreSQL's binary forms to columns: one decoder a form, shared by COPY (decode.h) and the change log
 * (log_value.h). Nothing in the bytes is trusted; a value that its column cannot hold is told apart from bytes that are not
 * what the form says. Pure functions; no thread rule. */
#ifndef OPENETL_CONNECTORS_POSTGRES_DECODE_VALUE_H
#define OPENETL_CONNECTORS_POSTGRES_DECODE_VALUE_H

#include "connectors/postgres/types.h"
#include "data/batch.h"

enum { PG_SHOWN_VALUE = 60 };

/* Why a value could not be taken; the row is added by the caller. */
typedef struct PgFault {
    bool malformed;  /* the bytes, not the value */
    const char *why; /* "malformed": what; else what about the value does not fit */
    char value[PG_SHOWN_VALUE + 8];
} PgFault;

/* Both return false. */
bool pg_malformed(PgFault *fault, const char *why);
bool pg_unfit(PgFault *fault, const char *value, size_t length, const char *why);

typedef bool (*PgAppend)(const PgField *field, const uint8_t *bytes, size_t length, Column *column, PgFault *fault);

/* One value (of a list: one element) of each form. Appends nothing when it fails, except where a list was begun: the
 * builder cuts that back. */
extern const PgAppend PG_APPENDS[PG_WIRE_COUNT];
bool pg_append_list_of(PgAppend element, const PgField *field, const uint8_t *bytes, size_t length, Column *column,
                       PgFault *fault);
bool pg_append_list(const PgField *field, const uint8_t *bytes, size_t length, Column *column, PgFault *fault);
static inline bool pg_append_value(const PgField *field, const uint8_t *bytes, size_t length, Column *column,
                                   PgFault *fault)
{
    return (field->list ? pg_append_list : PG_APPENDS[field->wire])(field, bytes, length, column, fault);
}
/* A numeric as PostgreSQL prints it, digits, NaN and Infinity. */
bool pg_numeric_text(const uint8_t *bytes, size_t length, Buf *out, PgFault *fault);

static inline uint16_t be16(const uint8_t *bytes)
{
    uint16_t value;
    memcpy(&value, bytes, sizeof value);
    return __builtin_bswap16(value);
}

static inline uint32_t be32(const uint8_t *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return __builtin_bswap32(value);
}

static inline uint64_t be64(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return __builtin_bswap64(value);
}

/* The commonest form, without a call. */
static inline bool pg_append_8(const PgField *field, const uint8_t *bytes, size_t length, Column *column,
                               PgFault *fault)
{
    (void)field;
    if (length != 8) return pg_malformed(fault, "a value that should have 8 bytes");
    column_append_u64(column, be64(bytes));
    return true;
}

#endif
