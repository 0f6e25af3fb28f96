/* Columns to PostgreSQL's COPY BINARY rows.
 *
 * An encoder is chosen once a column, for what the stream delivers and what the table stores (int32 into bigint,
 * uint64 into numeric …); then rows are written value by value into a sink with no allocation. A value that the stored
 * type cannot hold is DATA_CAST with the column, the value and the row's key; nothing is rounded, cut or replaced.
 *
 * A sink gathers bytes and hands them on in pieces of about SINK_BYTES; a long value passes by it uncopied. Its memory
 * is bounded by one row's fixed part and the longest list. Thread: one at a time. */
#ifndef OPENETL_CONNECTORS_POSTGRES_ENCODE_H
#define OPENETL_CONNECTORS_POSTGRES_ENCODE_H

#include "base/arena.h"
#include "data/batch.h"

enum {
    SINK_BYTES = 128 * 1024,
    PG_VALUE_MAX = 1073741800, /* the longest value a server takes, with room for its headers */
};

typedef bool (*PgSend)(void *context, const void *bytes, size_t length, Err *err);

typedef struct PgSink {
    uint8_t *data;
    size_t length, capacity;
    PgSend send;
    void *context;
    const char *why; /* set by an encoder that refuses a value */
    Err *err;        /* of the running call: set by a send that failed */
    bool holding;    /* a list is being written: its length comes first, so nothing may be sent yet */
} PgSink;

void pg_sink_init(PgSink *sink, PgSend send, void *context);
void pg_sink_release(PgSink *sink);
bool pg_sink_flush(PgSink *sink, Err *err);

typedef struct PgField PgField;
/* Writes length and bytes of one present value. */
typedef bool (*PgEncode)(PgSink *sink, const PgField *field, const Column *column, int64_t row);

struct PgField {
    PgEncode encode;
    const char *name;
    uint8_t scale;    /* decimals: of the delivered type */
    uint32_t oid;     /* lists: the element's type */
    PgField *element; /* lists */
    size_t room;      /* bytes that must be free after a value of open length: the row's fixed part */
};

/* One stream's rows. */
typedef struct PgEncoder {
    const char *stream;
    PgField *fields; /* in the schema's order */
    int count;
    const int *key; /* the key columns' places in the schema, for messages */
    int key_count;
    bool with_op, with_deleted; /* _openetl_op, _openetl_deleted */
    bool with_ordinal;          /* _openetl_ord: a staging table's … */
    bool with_unchanged;        /* … and _openetl_unchanged, its last columns */
    size_t room;
} PgEncoder;

/* Chooses how a delivered type is written into a stored one; false when there is no way. `field` and what it points at
 * live in `arena`. */
bool pg_encode_choose(const Type *from, const Type *to, Arena *arena, PgField *field);
/* After all fields are chosen: counts what a row needs. */
void pg_encoder_ready(PgEncoder *encoder);
/* Writes the rows of a batch: the schema's columns, _openetl_id, _openetl_seq, _openetl_synced_at, then the optional
 * ones in the order of PgEncoder. *ordinal counts on from row to row. */
bool pg_encoder_rows(const PgEncoder *encoder, PgSink *sink, const Batch *batch, int64_t *ordinal, Err *err);

/* The 19 bytes before the first row, and the 2 after the last. */
bool pg_encode_begin(PgSink *sink, Err *err);
bool pg_encode_end(PgSink *sink, Err *err);

/* A value as text for a message, shortened: at most 60 characters of it. */
const char *pg_encode_describe(const Column *column, int64_t row, char *out, size_t size);

/* encode_value.c: valid UTF-8 without a NUL, or *why. */
bool pg_encode_text_valid(const char *text, size_t length, const char **why);

#endif
