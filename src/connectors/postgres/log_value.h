/* A value of the change log to a column: binary by the decoders of COPY, text by the readers of data/value.h, both to what
 * COPY would have given for it. Thread: none; pure functions. */
#ifndef OPENETL_CONNECTORS_POSTGRES_LOG_VALUE_H
#define OPENETL_CONNECTORS_POSTGRES_LOG_VALUE_H

#include "connectors/postgres/decode_value.h"
#include "connectors/postgres/pgoutput.h"

typedef struct PgLogField {
    PgField field; /* first: see binary_scalar() */
    PgLogForm form;
    uint8_t money_scale; /* PG_LOG_MONEY: digits after the point; as text the server is asked for the C locale's two */
} PgLogField;

/* Appends a value that was sent as text or binary. After a failure the column may hold a part of a list. */
bool pg_log_append(const PgLogField *field, const PgDatum *datum, Column *column, PgFault *fault);

#endif
