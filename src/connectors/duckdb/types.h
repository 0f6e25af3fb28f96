/* Types, both ways. Every type of data/type.h has a DuckDB type that holds it exactly, so what is stored is what was
 * read; the other way round DuckDB has more types than we do, and those travel in a stated form.
 * Pure functions; results live in the arena given. */
#ifndef OPENETL_CONNECTORS_DUCKDB_TYPES_H
#define OPENETL_CONNECTORS_DUCKDB_TYPES_H

#include "base/buf.h"
#include "data/type.h"

#include <duckdb.h>

/* The type's name in SQL: "DECIMAL(10, 2)", "TIMESTAMP WITH TIME ZONE", "BIGINT[]". */
void duck_type_sql(const Type *type, Buf *out);
/* The type as a vector holds it; JSON is text here. Destroy after use. */
duckdb_logical_type duck_type_logical(const Type *type);
/* Whether a vector of `stored` is laid out as duck_type_logical(type) is, so that it can be filled without a cast. */
bool duck_type_same(const Type *type, duckdb_logical_type stored);

/* How a DuckDB column is read. */
typedef enum DuckForm {
    FORM_PLAIN, /* as it lies */
    FORM_CAST,  /* by a cast to the type that loses nothing (TINYINT to SMALLINT, TIMESTAMP_MS to TIMESTAMP) */
    FORM_TEXT,  /* its text */
    FORM_JSON   /* to_json(): a structure */
} DuckForm;

typedef struct DuckColumn {
    Type type;
    DuckForm form;
    const char *note; /* for the plan, or NULL */
} DuckColumn;

DuckColumn duck_column_map(duckdb_logical_type logical, Arena *arena);

#endif
