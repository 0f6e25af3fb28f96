/* Types of columns, in Arrow's terms, and how each lies in memory (see batch.h).
 *
 *   type                      text                         a value in memory
 *   TYPE_BOOL                 bool                         1 bit
 *   TYPE_INT16..64            int16 int32 int64            2, 4, 8 bytes
 *   TYPE_UINT32, TYPE_UINT64  uint32 uint64                4, 8 bytes
 *   TYPE_FLOAT32/64           float32 float64              4, 8 bytes IEEE 754
 *   TYPE_DECIMAL              decimal(P, S)                16 bytes: signed 128-bit integer, little endian; value / 10^S;
 *                                                          1 <= P <= 38, 0 <= S <= P
 *   TYPE_UTF8                 utf8                         int32 offsets + bytes
 *   TYPE_JSON                 json                         as utf8: JSON text, kept byte for byte
 *   TYPE_BINARY               binary                       int32 offsets + bytes
 *   TYPE_UUID                 uuid                         16 bytes, network order
 *   TYPE_DATE                 date32                       int32 days since 1970-01-01
 *   TYPE_TIME                 time64[us]                   int64 microseconds since midnight, 0 .. 86400000000 (24:00:00)
 *   TYPE_TIMESTAMP            timestamp[us]                int64 microseconds since 1970-01-01 00:00:00, no zone
 *   TYPE_TIMESTAMPTZ          timestamp[us, tz=UTC]        int64 microseconds since 1970-01-01 00:00:00 UTC
 *   TYPE_INTERVAL             interval                     16 bytes: int32 months, int32 days, int64 microseconds (Arrow's
 *                                                          month_day_nano shape, with microseconds: no overflow)
 *   TYPE_LIST                 list<T>                      int32 offsets + one child column
 *
 * Infinity: dates and timestamps use DATE_INFINITY, -DATE_INFINITY, TIMESTAMP_INFINITY, -TIMESTAMP_INFINITY (the same
 * sentinels as DuckDB's); they are values, never numbers to compute with. */
#ifndef OPENETL_DATA_TYPE_H
#define OPENETL_DATA_TYPE_H

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum TypeId {
    TYPE_BOOL,
    TYPE_INT16,
    TYPE_INT32,
    TYPE_INT64,
    TYPE_UINT32,
    TYPE_UINT64,
    TYPE_FLOAT32,
    TYPE_FLOAT64,
    TYPE_DECIMAL,
    TYPE_UTF8,
    TYPE_JSON,
    TYPE_BINARY,
    TYPE_UUID,
    TYPE_DATE,
    TYPE_TIME,
    TYPE_TIMESTAMP,
    TYPE_TIMESTAMPTZ,
    TYPE_INTERVAL,
    TYPE_LIST,
    TYPE_COUNT
} TypeId;

#define DATE_INFINITY      INT32_MAX
#define TIMESTAMP_INFINITY INT64_MAX
enum { DECIMAL_MAX_PRECISION = 38 };

typedef struct Type {
    TypeId id;
    uint8_t precision;          /* TYPE_DECIMAL only */
    uint8_t scale;              /* TYPE_DECIMAL only */
    const struct Type *element; /* TYPE_LIST only; its lifetime is the type's */
} Type;

typedef struct Interval {
    int32_t months;
    int32_t days;
    int64_t us;
} Interval;

/* A named column of a stream. */
typedef struct Field {
    const char *name;
    Type type;
    bool nullable; /* the source's own declaration */
} Field;

typedef struct Schema {
    Field *fields;
    int count;
} Schema;

/* Writes the text form, e.g. "list<decimal(10, 2)>"; returns `out`. 96 bytes are enough for any type with one list. */
const char *type_format(const Type *type, char *out, size_t size);
/* Reads the text form (blanks free, "decimal(10,2)" too; also the short names int, bigint, text, timestamp,
 * timestamptz, date, time, bytes). The element of a list belongs to `arena`. */
bool type_parse(const char *text, Arena *arena, Type *type, Err *err);
bool type_equal(const Type *a, const Type *b);
/* Bytes of one value, or 0 for bool (bits), offsets types and lists. */
size_t type_width(TypeId id);
bool type_is_text(TypeId id); /* utf8, json */
bool type_is_integer(TypeId id);
bool type_has_offsets(TypeId id); /* utf8, json, binary, list */
/* Whether a column of type `stored` can hold every value of `incoming` unchanged (int32 in int64, decimal(8,2) in
 * decimal(10,2), anything in itself); the destination's drift rule. utf8 holds json, not other types. */
bool type_holds(const Type *stored, const Type *incoming);
/* Whether values have an order a cursor can follow. */
bool type_orderable(TypeId id);
/* Deep copy into `arena`. */
Type type_copy(const Type *type, Arena *arena);
Schema schema_copy(const Schema *schema, Arena *arena);
int schema_find(const Schema *schema, const char *name); /* -1 when absent */

#endif
