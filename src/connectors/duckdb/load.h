/* A load: one INSERT of the open transaction that takes its rows from batches while they are handed over.
 *
 * DuckDB pulls: the INSERT selects from a table function of ours, which fills each chunk of the statement straight from
 * a batch, so that no row is copied on its way into the table's row groups. The statement runs on a thread of its own;
 * while a load is open that thread alone uses the session's connection. One batch is written while the next one waits.
 * Thread: the session's, all functions. */
#ifndef OPENETL_CONNECTORS_DUCKDB_LOAD_H
#define OPENETL_CONNECTORS_DUCKDB_LOAD_H

#include "connectors/duckdb/write.h"

typedef struct Load Load;

/* Makes the table function known to the session's database, once; outside a transaction. */
bool load_register(DuckSession *session, Err *err);
/* Begins to load rows of the target: into its stage, or straight into its table. */
bool load_open(DuckSession *session, const DuckTarget *target, Load **load, Err *err);
/* Hands over a checked batch, waiting while another one waits. `ordinal`: of its first row. An error may be that of an
 * earlier batch. Takes the batch, also on failure. */
bool load_put(Load *load, Batch *batch, int64_t ordinal, Err *err);
/* Waits until all rows are in; false with the statement's error. Frees the load. */
bool load_close(Load *load, Err *err);
/* Ends the load at once; the transaction must be rolled back then. Frees the load. */
void load_abort(Load *load);

#endif
