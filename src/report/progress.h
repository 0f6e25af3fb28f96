/* The progress of a run, on standard error. On a terminal: one live line a stream, redrawn in place, stepping aside for
 * log lines. Elsewhere: a log line a stream every 10 s (with --log-format json an object with the figures). One display
 * a process: it hooks the log, which is the process's one sink. Only the main thread calls these; the counters are read
 * without a lock. */
#ifndef OPENETL_REPORT_PROGRESS_H
#define OPENETL_REPORT_PROGRESS_H

#include "engine/progress.h"

typedef enum DisplayKind { DISPLAY_NONE, DISPLAY_LOG, DISPLAY_LIVE } DisplayKind;

/* LIVE where standard error is a terminal that can move its cursor, the log is text and not `quiet`. */
DisplayKind display_kind(bool quiet);
/* `pipeline` and `progress` are borrowed until display_close. `color`: whether the live lines may use colours. */
void display_open(DisplayKind kind, const char *pipeline, Progress *progress, bool color);
/* Draws, when it is time to: call it about five times a second. */
void display_tick(void);
/* Takes the live lines away. */
void display_close(void);

/* One stream's line, `width` columns at most; `out` is cleared. For display_tick and tests. */
struct Buf;
void progress_line(const StreamProgress *stream, int64_t epoch, int64_t now_mono_us, int name_width, int width,
                   struct Buf *out);

#endif
