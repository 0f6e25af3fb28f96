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
/* The staging table: the table's own types, _openetl_ord, and for changes _openetl_unchanged; gone at the transaction's
 * end. */
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
 * mark the row and keep its values. Of equal sequences a row beats a delete. Gives one row: inserted, touched (inserted
 * or updated). */
void pg_apply_merge(const PgTarget *target, bool deletes, Buf *out);

/* ---- parts of a statement: aliases are "s." or "" */

void pg_apply_key(const PgTarget *target, const char *alias, Buf *out);                 /* "s.id, s.line" */
void pg_apply_same_key(const PgTarget *target, const char *a, const char *b, Buf *out); /* "a.id = b.id AND …" */
void pg_apply_staged(const PgTarget *target, Buf *out);                                 /* the staging table */
void pg_apply_fold(const PgTarget *target, bool deletes,
                   Buf *out); /* "(SELECT …) AS s": what a pass of the merge writes, unless the table's row is newer */

/* ---- apply_changes.c: deletes, truncates, and values that were not sent (see docs/internals/changes.md)

 * A staged row's _openetl_unchanged is NULL, or a character a column of the schema: 0 sent, 1 not sent, 2 not sent and
 * put in since. */

/* Copies the versions before the rows that lack values into the stage, from a table that has whole rows, with negative
 * ordinals. `every`: the table holds many versions a key. */
void pg_changes_bring(const PgTarget *target, const char *table, bool every, Buf *out);
/* Where all changes are kept: takes out the rows that lack values, when a newer baseline row holds what they say. */
void pg_changes_drop_superseded(const PgTarget *target, Buf *out);
void pg_changes_drop_unread(const PgTarget *target, Buf *out);
/* Takes out the rows that lack values of which the table has the very version. */
void pg_changes_drop_known(const PgTarget *target, Buf *out);
/* Puts in the values of one column: of the newest version before, unless that is a delete. The command's row count says how
 * many; where keys changed a value may have to come by several steps. */
void pg_changes_fill(const PgTarget *target, int column, Buf *out);
void pg_changes_drop_brought(const PgTarget *target, Buf *out);
/* One of the rows that still lack a value and would be written: the column's place from 1, then the key as text. */
void pg_changes_lacking(const PgTarget *target, Buf *out);
/* deletes: ignore. The command's row count is what was taken out. */
void pg_changes_ignore(const PgTarget *target, Buf *out);
/* Takes the truncates out of the stage; gives the last one's _openetl_id, _openetl_seq and _openetl_synced_at. */
void pg_changes_take_truncates(const PgTarget *target, Buf *out);
/* deletes: hard, in three steps: only the newest version a key stays staged, deletes are done, and taken out. */
void pg_changes_keep_newest(const PgTarget *target, Buf *out);
void pg_changes_delete(const PgTarget *target, Buf *out);
void pg_changes_drop_deletes(const PgTarget *target, Buf *out);

#endif
