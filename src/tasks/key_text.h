/* A row's key as people read it. */
#ifndef OPENETL_TASKS_KEY_TEXT_H
#define OPENETL_TASKS_KEY_TEXT_H

#include "base/buf.h"
#include "data/batch.h"

enum { KEY_TEXT_BYTES = 200 };

/* "17"; "region=EU, id=17"; of a table without a key the row's first columns. `schema`: the batch's first columns, by the
 * names to be shown. Cut behind KEY_TEXT_BYTES, with "…". malloc'ed. `text` is scratch. */
char *key_text(const Schema *schema, const char *const *key, int key_count, const Batch *batch, int64_t row, Buf *text);

#endif
