/* Batches as DuckDB data chunks. A batch's columns already lie nearly as DuckDB wants them, so a chunk of 2048 rows is
 * filled by copying whole runs; text is not copied at all: the chunk points into the batch, which must live until DuckDB
 * has taken the rows.
 *
 * What DuckDB would take unchecked is checked here: text that is not UTF-8 and dates and times outside DuckDB's range
 * are DATA_CAST, naming column and key. Thread: one ChunkWriter per session. */
#ifndef OPENETL_CONNECTORS_DUCKDB_CHUNK_H
#define OPENETL_CONNECTORS_DUCKDB_CHUNK_H

#include "connectors/connector.h"

#include <duckdb.h>

enum { CHUNK_ROWS = 2048 };

typedef struct ChunkWriter {
    const Schema *schema;
    bool with_op, with_deleted, with_ordinal, with_unchanged;
    int columns;
    char *seqs;  /* text of _openetl_seq, CHUNK_ROWS of them */
    char *marks; /* of _openetl_unchanged likewise; made when it is needed */
} ChunkWriter;

/* Columns of a chunk: the schema's, _openetl_id, _openetl_seq, _openetl_synced_at, then those asked for: _openetl_op,
 * _openetl_deleted, the ordinal (int64), _openetl_unchanged (NULL, or a character a column of the schema: 1 where the
 * value was not sent, else 0). Each is laid out as duck_type_logical() of its type is. */
void chunk_writer_init(ChunkWriter *writer, const Schema *schema, bool with_op, bool with_deleted, bool with_ordinal,
                       bool with_unchanged);
void chunk_writer_release(ChunkWriter *writer);
/* Fills an empty chunk with rows [from, from + count) of a checked batch; count <= CHUNK_ROWS. ordinal: of the first
 * row. The chunk is good until the next call. */
void chunk_fill(ChunkWriter *writer, duckdb_data_chunk chunk, const Batch *batch, int64_t from, int64_t count,
                int64_t ordinal);

/* The schema's columns alone of such rows, into an empty chunk of just these. */
void chunk_fill_columns(duckdb_data_chunk chunk, const Batch *batch, int64_t from, int64_t count);

/* check.c. Whether DuckDB can hold every value of the batch and, where the key is required, no key column is NULL
 * (but a truncate's). */
bool batch_check(const Batch *batch, const char *stream, const char *const *key, int key_count, bool key_required,
                 Err *err);

#endif
