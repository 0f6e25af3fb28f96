/* The SQL of an epoch: COPY, staging tables, and how staged rows get to their table. Pure text, so that tests read it.
 * Columns are always listed by name. */
#ifndef OPENETL_CONNECTORS_POSTGRES_APPLY_H
#define OPENETL_CONNECTORS_POSTGRES_APPLY_H

#include "connectors/postgres/write.h"

/* All columns that rows bring, quoted, comma-separated: the schema's, _openetl_id, _openetl_seq, _openetl_synced_at,
 * and _openetl_op, _openetl_deleted where the table has them. */
void pg_apply_columns(const PgTarget *target, Buf *out);
/* COPY into the staging table, or straight into the table. */
void pg_apply_copy(const PgTarget *target, Buf *out);
/* The staging table: the table's own types, and _openetl_ord; gone at the transaction's end. */
void pg_apply_stage(const PgTarget *target, Buf *out);
void pg_apply_analyze(const PgTarget *target, Buf *out);
/* Append and overwrite through a staging table, in three steps; in one join the planner takes the rows that one look-up
 * leaves for hardly any, and loops over the other. First: how many ids there are, and (ranged) the lowest and the highest
 * value of the first key column, or NULL … */
void pg_apply_survey(const PgTarget *target, Buf *out);
/* … where ids come twice, all rows of each but the first are taken out … */
void pg_apply_distinct(const PgTarget *target, Buf *out);
/* … and the rows go in; with dedupe only ids that the table lacks, looked for between target->low and high. The command's
 * row count is what was inserted. */
void pg_apply_insert(const PgTarget *target, Buf *out);
/* Merge: of each key the version with the highest _openetl_seq, then the last one; it replaces the table's row unless
 * that one is newer. Two passes where the epoch has deletes: first rows that are there, then (`deletes`) deletes, which
 * mark the row and keep its values. Gives one row: inserted, touched (inserted or updated). */
void pg_apply_merge(const PgTarget *target, bool deletes, Buf *out);

#endif
