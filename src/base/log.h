/* Progress and logs, on standard error. Library code does not log and return errors; it logs only what a person should
 * see while the run goes on (a retry, a drift, a wait). One sink for the process, set once at start; lines from several
 * threads do not mix. Text is "HH:MM:SS level message", JSON is one object a line. */
#ifndef OPENETL_BASE_LOG_H
#define OPENETL_BASE_LOG_H

#include <stdbool.h>

typedef enum LogLevel { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR } LogLevel;
typedef enum LogFormat { LOG_TEXT, LOG_JSON } LogFormat;

void log_setup(LogFormat format, LogLevel least);
void log_line(LogLevel level, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
LogFormat log_format(void);
/* Called (with the log's lock held) before and after each line, so that a live progress display can step aside. */
void log_set_hooks(void (*before)(void), void (*after)(void));

#endif
