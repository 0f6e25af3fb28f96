/* COPY … (FORMAT binary) to columns: each field goes from the wire straight into its builder column.
 *
 * The bytes come from a server, so nothing in them is trusted: every length is checked against what is left of its
 * message, every fixed-width value against its width. Bytes that are not what the format says are SOURCE_QUERY
 * ("malformed"); a value that its column's type cannot hold is DATA_CAST with the column, the value and the row's key.
 * The server sends one tuple a message, the header together with the first one, the trailer alone; a message may hold
 * several tuples here, but a tuple never spans messages.
 * Thread: one PgDecoder per reader. */
#ifndef OPENETL_CONNECTORS_POSTGRES_DECODE_H
#define OPENETL_CONNECTORS_POSTGRES_DECODE_H

#include "connectors/postgres/types.h"
#include "data/batch.h"

typedef struct PgDecoder {
    const PgField *fields; /* in the order of the builder's columns; borrowed */
    int count;
    const int *key; /* indexes of the fields that identify a row in a message; borrowed */
    int key_count;
    int64_t rows; /* decoded so far */
    bool begun;   /* the header was read */
    bool done;    /* the trailer was read */
} PgDecoder;

void pg_decoder_init(PgDecoder *decoder, const PgField *fields, int count, const int *key, int key_count);
/* For the next COPY of the same columns: expects a header again, goes on counting rows. */
void pg_decoder_restart(PgDecoder *decoder);
/* Decodes one CopyData message, appending its rows to `builder`. After a failure the builder holds only whole rows. */
bool pg_decode_message(PgDecoder *decoder, const uint8_t *bytes, size_t length, BatchBuilder *builder, Err *err);

#endif
