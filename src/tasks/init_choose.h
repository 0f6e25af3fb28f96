/* What init chooses for one table, and how it writes it down. */
#ifndef OPENETL_TASKS_INIT_CHOOSE_H
#define OPENETL_TASKS_INIT_CHOOSE_H

#include "base/buf.h"
#include "connectors/connector.h"

typedef struct InitChooser {
    const Connector *source, *destination;
    const Catalog *catalog;
    const bool *counted; /* a table: its rows were counted, not estimated */
    bool named;          /* the tables were asked for by name: views too are streams then */
    Arena *arena;
} InitChooser;

/* Appends the stream with the reason in a comment; a table that needs a decision first is written as a comment. Returns
 * 1 when it is a stream, else 0. */
int init_put_stream(const InitChooser *chooser, const CatalogTable *table, Buf *out);

/* A YAML scalar for `text`: plain where that is safe, else in double quotes; `always` quotes. */
const char *yaml_quote(const char *text, bool always, Arena *arena);

#endif
