/* How PostgreSQL's types travel: the type a column is delivered as, and the SQL expression and binary form it is read
 * in.
 *
 * One matrix (types.c) serves the defaults and the types a stream asks for (`columns.types`): what the matrix has no
 * way for is refused by name, nothing is converted with loss. Domains are resolved to their base type before they get
 * here. The whole table is in docs/connectors/postgres.md. Pure functions; no thread rule. */
#ifndef OPENETL_CONNECTORS_POSTGRES_TYPES_H
#define OPENETL_CONNECTORS_POSTGRES_TYPES_H

#include "base/buf.h"
#include "data/type.h"

/* A column's type as the server describes it, behind any domains. */
typedef struct PgType {
    uint32_t oid;
    int32_t typmod;               /* -1: none */
    char kind;                    /* pg_type.typtype: b base, e enum, c composite, r range, m multirange, p pseudo */
    bool not_null;                /* a domain on the way says NOT NULL */
    bool own_cast;                /* its cast to text is not its output function: 'x'::inet::text has a /32 */
    const char *output;           /* the output function, as SQL can call it */
    const struct PgType *element; /* arrays; NULL: not one */
} PgType;

/* The binary forms the decoder knows. A list has the form of its elements. */
typedef enum PgWire {
    PG_WIRE_BOOL,
    PG_WIRE_INT16,
    PG_WIRE_INT32, /* int4, oid */
    PG_WIRE_INT64,
    PG_WIRE_FLOAT32,
    PG_WIRE_FLOAT64,
    PG_WIRE_NUMERIC,
    PG_WIRE_TEXT,
    PG_WIRE_JSONB, /* a version byte, then text */
    PG_WIRE_BYTES,
    PG_WIRE_UUID,
    PG_WIRE_DATE,
    PG_WIRE_TIME,
    PG_WIRE_TIMESTAMP, /* with and without zone */
    PG_WIRE_INTERVAL,
    PG_WIRE_COUNT
} PgWire;

/* A column of a read. */
typedef struct PgField {
    const char *name;
    Type type;   /* as delivered */
    PgWire wire; /* of the value, or of a list's elements */
    bool list;
    bool check_utf8; /* the server does not vouch for the text's encoding */
} PgField;

/* How a column travels in the change log, where a value has its own type's form: nothing is cast at the server. */
typedef enum PgLogForm {
    PG_LOG_AS_READ,    /* as COPY gives it */
    PG_LOG_INT,        /* int2, int4 or int8, to be widened */
    PG_LOG_OID,        /* oid, likewise */
    PG_LOG_FLOAT4,     /* to be widened */
    PG_LOG_NUMERIC,    /* as its text */
    PG_LOG_MONEY,      /* a count of the smallest unit, as a decimal or its text */
    PG_LOG_BOOL,       /* as "true" or "false" */
    PG_LOG_BINARY_NONE /* only its text form is known: values must come as text */
} PgLogForm;

/* The type a column is delivered as unless the stream says otherwise, and how it travels where that is not plain (note,
 * in `arena`, or NULL). `money_scale`: the digits after the point that lc_monetary gives money. */
Type pg_type_default(const PgType *type, const char *native, int money_scale, Arena *arena, const char **note);
/* Appends the expression that reads column `name` as `want` to `sql` and fills `field`. RESOURCE_INVALID, naming the
 * types that can be had, when there is no lossless way. */
bool pg_field_plan(const char *name, const PgType *type, const char *native, const Type *want, Buf *sql, PgField *field,
                   Err *err);
/* How the log's values of a column are read as `want`, without loss; false when there is no way. `field->name` is `name`. */
bool pg_log_plan(const char *name, const PgType *type, const Type *want, PgField *field, PgLogForm *form);
/* Whether a value's text form, as a literal of the type, is the value again and orders as it does: such columns can
 * carry the position of a keyset read. */
bool pg_type_keyset(const PgType *type);
/* text, varchar and name: the same bytes under several names. */
bool pg_type_is_text(const PgType *type);
/* Whether `=` of the type takes a delivered value, as a literal of the type, for each value that is delivered so. It may take it
 * for others too ('1 mon' = '30 days'). */
bool pg_type_finds(const PgType *type);

#endif
