/* What resource.c needs of each kind's reader: `spec:` to the kind's struct, in the arena, with defaults filled in and
 * the rules that need no catalog checked. */
#ifndef OPENETL_CONFIG_KINDS_H
#define OPENETL_CONFIG_KINDS_H

#include "config/fields.h"

bool connection_read(const FieldSite *spec, ConnectionResource *connection, Err *err);
bool pipeline_read(const FieldSite *spec, PipelineResource *pipeline, Err *err);
/* `streams:` of a pipeline: a list of streams, or "*". */
bool streams_read(const FieldSite *site, PipelineResource *pipeline, Err *err);
/* `alerts:` of a pipeline; `alerts` has its defaults already. */
bool alerts_read(const FieldSite *site, AlertsResource *alerts, Err *err);

/* `deletes:` of a stream: a word, or a map; then whether it fits the stream's sync. */
bool deletes_read(const FieldSite *site, StreamResource *stream, Err *err);
bool deletes_check(const FieldSite *stream_site, const StreamResource *stream, Err *err);
/* `onDrift:` of a pipeline or a stream. */
bool drift_policy_read(const FieldSite *site, DriftPolicy *policy, Err *err);

/* Words in the order of their enums (data/terms.h). */
extern const char *const WRITE_WORDS[];
extern const char *const GUARANTEE_WORDS[];
extern const char *const ORDER_WORDS[]; /* read.order */

/* The least and most a reader's settings may be; the same on a stream and on its source. */
enum { PARALLEL_MAX = 64, CHUNK_ROWS_MAX = 1000000000, MAX_STATEMENT_LEAST_US = 1000000 };

#endif
