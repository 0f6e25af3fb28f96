/* DuckDB vectors as columns: whole runs at a time into a batch builder's columns. Thread: the reader's. */
#ifndef OPENETL_CONNECTORS_DUCKDB_DECODE_H
#define OPENETL_CONNECTORS_DUCKDB_DECODE_H

#include "data/batch.h"

#include <duckdb.h>

/* Appends rows [from, from + count) of a vector laid out as duck_type_logical(&column->type). */
void vector_append(Column *column, duckdb_vector vector, idx_t from, idx_t count);
/* Bytes of text and binary in the rows of a vector, lists included: what a batch would grow by beyond fixed widths. */
size_t vector_row_bytes(const Type *type, duckdb_vector vector, idx_t row);

#endif
