#include "base/log.h"

#include "base/clock.h"

#include <jansson.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static LogFormat sink_format = LOG_TEXT;
static LogLevel sink_least = LOG_INFO;
static void (*hook_before)(void);
static void (*hook_after)(void);
static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const LEVELS[] = {"debug", "info", "warn", "error"};

void log_setup(LogFormat format, LogLevel least)
{
    sink_format = format;
    sink_least = least;
}

LogFormat log_format(void)
{
    return sink_format;
}

void log_set_hooks(void (*before)(void), void (*after)(void))
{
    pthread_mutex_lock(&sink_lock);
    hook_before = before;
    hook_after = after;
    pthread_mutex_unlock(&sink_lock);
}

static void write_text(LogLevel level, const char *message)
{
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    char stamp[16];
    strftime(stamp, sizeof stamp, "%H:%M:%S", &local);
    fprintf(stderr, "%s %-5s %s\n", stamp, LEVELS[level], message);
}

static void write_json(LogLevel level, const char *message)
{
    char stamp[40];
    clock_format(clock_wall_us(), stamp, sizeof stamp);
    json_t *line = json_object();
    json_object_set_new(line, "time", json_string(stamp));
    json_object_set_new(line, "level", json_string(LEVELS[level]));
    json_object_set_new(line, "message", json_string(message));
    char *text = json_dumps(line, JSON_COMPACT);
    fprintf(stderr, "%s\n", text == NULL ? "{}" : text);
    free(text);
    json_decref(line);
}

void log_line(LogLevel level, const char *format, ...)
{
    if (level < sink_least) return;
    char message[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    pthread_mutex_lock(&sink_lock);
    if (hook_before != NULL) hook_before();
    if (sink_format == LOG_JSON)
        write_json(level, message);
    else
        write_text(level, message);
    if (hook_after != NULL) hook_after();
    pthread_mutex_unlock(&sink_lock);
}
