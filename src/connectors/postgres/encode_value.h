/* Inside encode: the sink's small writers, shared by values and rows. The caller has made room. */
#ifndef OPENETL_CONNECTORS_POSTGRES_ENCODE_VALUE_H
#define OPENETL_CONNECTORS_POSTGRES_ENCODE_VALUE_H

#include "connectors/postgres/encode.h"

/* The longest value of fixed width, with its length: a numeric of 38 digits. */
enum { FIXED_MAX = 4 + 8 + 2 * 12 };

bool pg_sink_grow(PgSink *sink, size_t more);
static inline bool pg_sink_room(PgSink *sink, size_t more)
{
    return sink->capacity - sink->length >= more || pg_sink_grow(sink, more);
}
static inline void put_be16(PgSink *sink, uint16_t value)
{
    value = __builtin_bswap16(value);
    memcpy(sink->data + sink->length, &value, 2);
    sink->length += 2;
}
static inline void put_be32(PgSink *sink, uint32_t value)
{
    value = __builtin_bswap32(value);
    memcpy(sink->data + sink->length, &value, 4);
    sink->length += 4;
}
static inline void put_be64(PgSink *sink, uint64_t value)
{
    value = __builtin_bswap64(value);
    memcpy(sink->data + sink->length, &value, 8);
    sink->length += 8;
}
static inline bool refuse(PgSink *sink, const char *why)
{
    sink->why = why;
    return false;
}

/* Microseconds since 1970 to the server's; false when outside its range. */
bool pg_encode_timestamp(int64_t us, int64_t *image);
/* The server's number of a stored type. */
uint32_t pg_encode_oid(TypeId id);

#endif
