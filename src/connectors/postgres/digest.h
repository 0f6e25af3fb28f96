/* Digests that the server makes: two columns come over the wire, not the table.
 *
 *   substring(sha256(record_send(ROW(HEAD, v1, v2, …))) from 1 for 16)
 *
 * record_send gives the number of columns (int32), then for each its type's number (int32), the length of its binary form
 * (int32, -1 for NULL) and that form: length-prefixed and type-tagged. HEAD is a bytea of 16 bytes, a hash of the
 * formula's version and the columns' names, in order of name; so are v1, v2 …: each column as the expression it is read by,
 * in the one form that equal values share: integers as int8, floats as float8 with one NaN, numeric without trailing
 * zeros, varchar and name as text, jsonb as the server sorts it, json as its text, arrays as their text (their binary
 * form tells of how they were made), what has no binary form here (ranges, enums, composites …) as its text. No setting takes part
 * in a binary form but client_encoding, which conn.h pins, as it does all that text forms depend on. */
#ifndef OPENETL_CONNECTORS_POSTGRES_DIGEST_H
#define OPENETL_CONNECTORS_POSTGRES_DIGEST_H

#include "connectors/postgres/source.h"

/* Appends the expression over the columns of `schema`, each of which is one of the table's. RESOURCE_INVALID as
 * pg_field_plan. */
bool pg_put_digest(const PgTable *table, const Schema *schema, Buf *sql, Err *err);

#endif
