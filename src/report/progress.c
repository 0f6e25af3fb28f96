#include "report/progress.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "report/text.h"

#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = 4096,
    LOG_EVERY_US = 10 * 1000000,
    NAME_MAX_COLUMNS = 40,
    WIDTH_DEFAULT = 80,
    ROWS_DEFAULT = 24
};

/* The log calls its hooks without a context, so the one display of the process is found here. */
static struct {
    DisplayKind kind;
    const char *pipeline;
    Progress *progress;
    bool color;
    int drawn;            /* live lines on the screen, the cursor below them */
    int64_t logged_us;    /* monotonic */
    pthread_mutex_t lock; /* of `drawn` and the terminal's lines */
} display = {.lock = PTHREAD_MUTEX_INITIALIZER};

DisplayKind display_kind(bool quiet)
{
    const char *term = getenv("TERM");
    if (quiet) return DISPLAY_NONE;
    if (log_format() == LOG_JSON || !isatty(STDERR_FILENO) || term == NULL || strcmp(term, "dumb") == 0)
        return DISPLAY_LOG;
    return DISPLAY_LIVE;
}

/* ---- figures of a stream ---- */

typedef struct Figures {
    StreamPhase phase;
    int64_t rows, committed, bytes;
    int64_t rate;    /* rows a second over the stream's whole time; -1 too early to say */
    int64_t left_us; /* -1 not known */
} Figures;

static Figures figures_of(const StreamProgress *stream, int64_t now_us)
{
    Figures f = {
        .phase = (StreamPhase)atomic_load(&stream->phase),
        .rows = atomic_load(&stream->rows_read),
        .committed = atomic_load(&stream->rows_committed),
        .bytes = atomic_load(&stream->bytes),
        .rate = -1,
        .left_us = -1,
    };
    int64_t started = atomic_load(&stream->started_us), finished = atomic_load(&stream->finished_us);
    int64_t estimate = atomic_load(&stream->estimate);
    int64_t spent = started == 0 ? 0 : (finished != 0 ? finished : now_us) - started;
    if (spent >= 1000000 || (finished != 0 && spent > 0)) f.rate = (int64_t)((double)f.rows * 1e6 / (double)spent);
    if (f.phase == PHASE_READING && f.rate > 0 && estimate > f.rows) {
        int64_t seconds = (estimate - f.rows + f.rate / 2) / f.rate;
        f.left_us = (seconds > 0 ? seconds : 1) * 1000000;
    }
    return f;
}

static const char *phase_text(const Figures *f, Arena *arena)
{
    switch (f->phase) {
    case PHASE_WAITING:
        return "waiting";
    case PHASE_READING:
        return f->left_us < 0 ? "reading" : arena_printf(arena, "about %s left", text_duration(f->left_us, arena));
    case PHASE_COMMITTING:
        return "committing";
    case PHASE_DONE:
        return "done";
    }
    return "";
}

static void put_padded(Buf *out, const char *text, int width)
{
    buf_puts(out, text);
    for (int have = text_width(text); have < width; have++)
        buf_putc(out, ' ');
}

void progress_line(const StreamProgress *stream, int64_t epoch, int64_t now_mono_us, int name_width, int width,
                   Buf *out)
{
    Arena arena;
    arena_init(&arena);
    Figures f = figures_of(stream, now_mono_us);
    const char *name = text_visible(stream->name, &arena);
    name = arena_strndup(&arena, name, text_fit(name, name_width));
    Buf line;
    buf_init(&line, LINE_MAX_BYTES);
    put_padded(&line, name, name_width);
    buf_printf(&line, "  %13s rows", text_count(f.rows, &arena));
    buf_printf(&line, "  %10s rows/s", f.rate < 0 ? "-" : text_count(f.rate, &arena));
    buf_printf(&line, "  %9s", text_bytes(f.bytes, &arena));
    buf_printf(&line, "  epoch %lld  %s", (long long)epoch, phase_text(&f, &arena));
    buf_clear(out);
    buf_append(out, buf_text(&line), text_fit(buf_text(&line), width));
    buf_release(&line);
    arena_release(&arena);
}

/* ---- the live display ---- */

static void terminal_size(int *columns, int *rows)
{
    struct winsize size = {0};
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
    *columns = known && size.ws_col > 0 ? size.ws_col : WIDTH_DEFAULT;
    *rows = known && size.ws_row > 0 ? size.ws_row : ROWS_DEFAULT;
}

/* Up to the first of our lines, then clear to the end of the screen. */
static void put_erase(Buf *out)
{
    if (display.drawn > 0) buf_printf(out, "\033[%dA\r\033[J", display.drawn);
    display.drawn = 0;
}

static bool stream_active(const StreamProgress *stream)
{
    int phase = atomic_load(&stream->phase);
    return phase == PHASE_READING || phase == PHASE_COMMITTING;
}

static int widest_name(void)
{
    int widest = 0;
    for (int i = 0; i < display.progress->count; i++) {
        int width = text_width(display.progress->streams[i].name);
        if (width > widest) widest = width;
    }
    return widest > NAME_MAX_COLUMNS ? NAME_MAX_COLUMNS : widest;
}

static void put_rest(int done, int waiting, int hidden, int columns, Buf *out)
{
    char text[120];
    snprintf(text, sizeof text, "%d streams: %d done, %d waiting%s", display.progress->count, done, waiting,
             hidden > 0 ? ", others not shown" : "");
    buf_append(out, text, text_fit(text, columns));
    buf_putc(out, '\n');
    display.drawn++;
}

static void put_stream(const StreamProgress *stream, int names, int columns, Buf *out)
{
    Buf line;
    buf_init(&line, LINE_MAX_BYTES);
    progress_line(stream, atomic_load(&display.progress->epoch), clock_mono_us(), names, columns, &line);
    bool dim = display.color && !stream_active(stream);
    buf_printf(out, "%s%s%s\n", dim ? color_start(COLOR_DIM) : "", buf_text(&line), dim ? color_end() : "");
    buf_release(&line);
    display.drawn++;
}

/* Where not every stream fits the screen: those being read, then those being committed, and one line for the rest. */
static void put_some(int names, int columns, int rows, Buf *out)
{
    int counts[PHASE_DONE + 1] = {0};
    int hidden = 0;
    for (int phase = PHASE_READING; phase <= PHASE_COMMITTING; phase++) {
        for (int i = 0; i < display.progress->count; i++) {
            const StreamProgress *stream = &display.progress->streams[i];
            if (atomic_load(&stream->phase) != phase) continue;
            if (display.drawn < rows)
                put_stream(stream, names, columns, out);
            else
                hidden++;
        }
    }
    for (int i = 0; i < display.progress->count; i++)
        counts[atomic_load(&display.progress->streams[i].phase)]++;
    put_rest(counts[PHASE_DONE], counts[PHASE_WAITING], hidden, columns, out);
}

static void put_lines(Buf *out)
{
    int columns, rows;
    terminal_size(&columns, &rows);
    int names = widest_name();
    if (display.progress->count > rows - 2) {
        put_some(names, columns - 1, rows - 2, out);
        return;
    }
    for (int i = 0; i < display.progress->count; i++)
        put_stream(&display.progress->streams[i], names, columns - 1, out);
}

/* One write a picture, so that the terminal shows no half of it. */
static void draw(bool lines)
{
    Buf out;
    buf_init(&out, 1024 * 1024);
    put_erase(&out);
    if (lines && atomic_load(&display.progress->ready)) put_lines(&out);
    fwrite(buf_text(&out), 1, out.length, stderr);
    fflush(stderr);
    buf_release(&out);
}

/* Around a log line: the lines go away before it and come back after it. */
static void step_aside(void)
{
    pthread_mutex_lock(&display.lock);
    draw(false);
}

static void come_back(void)
{
    draw(true);
    pthread_mutex_unlock(&display.lock);
}

/* ---- the log lines ---- */

static void log_stream_text(const StreamProgress *stream, int64_t epoch, const Figures *f, Arena *arena)
{
    log_info("%s: %s: %s read, %s committed, %s, epoch %lld%s%s, %s", display.pipeline,
             text_visible(stream->name, arena), text_plural(f->rows, "row", "rows", arena),
             text_count(f->committed, arena), text_bytes(f->bytes, arena), (long long)epoch, f->rate < 0 ? "" : ", ",
             f->rate < 0 ? "" : arena_printf(arena, "%s rows/s", text_count(f->rate, arena)), phase_text(f, arena));
}

static void log_stream_json(const StreamProgress *stream, int64_t epoch, const Figures *f)
{
    static const char *const PHASES[] = {"waiting", "reading", "committing", "done"};
    json_t *line = json_object();
    json_object_set_new(line, "time", json_time(clock_wall_us()));
    json_object_set_new(line, "level", json_string("info"));
    json_object_set_new(line, "message", json_string("progress"));
    json_object_set_new(line, "pipeline", json_shown(display.pipeline));
    json_object_set_new(line, "stream", json_shown(stream->name));
    json_object_set_new(line, "phase", json_string(PHASES[f->phase]));
    json_object_set_new(line, "rows_read", json_integer(f->rows));
    json_object_set_new(line, "rows_committed", json_integer(f->committed));
    json_object_set_new(line, "bytes", json_integer(f->bytes));
    json_object_set_new(line, "rows_per_second", f->rate < 0 ? json_null() : json_integer(f->rate));
    json_object_set_new(line, "epoch", json_integer(epoch));
    json_object_set_new(line, "left_s", f->left_us < 0 ? json_null() : json_integer(f->left_us / 1000000));
    char *text = json_dumps(line, JSON_COMPACT);
    fprintf(stderr, "%s\n", text == NULL ? "{}" : text); /* one call: lines of other threads do not mix with it */
    free(text);
    json_decref(line);
}

static void log_streams(void)
{
    Arena arena;
    arena_init(&arena);
    int64_t now = clock_mono_us(), epoch = atomic_load(&display.progress->epoch);
    for (int i = 0; i < display.progress->count; i++) {
        const StreamProgress *stream = &display.progress->streams[i];
        if (!stream_active(stream)) continue;
        Figures f = figures_of(stream, now);
        if (log_format() == LOG_JSON)
            log_stream_json(stream, epoch, &f);
        else
            log_stream_text(stream, epoch, &f, &arena);
    }
    arena_release(&arena);
}

/* ---- the display ---- */

void display_open(DisplayKind kind, const char *pipeline, Progress *progress, bool color)
{
    display.kind = kind;
    display.pipeline = pipeline;
    display.progress = progress;
    display.color = color;
    display.drawn = 0;
    display.logged_us = clock_mono_us();
    if (kind == DISPLAY_LIVE) log_set_hooks(step_aside, come_back);
}

void display_tick(void)
{
    if (display.kind == DISPLAY_LIVE) {
        pthread_mutex_lock(&display.lock);
        draw(true);
        pthread_mutex_unlock(&display.lock);
    } else if (display.kind == DISPLAY_LOG && atomic_load(&display.progress->ready) &&
               clock_mono_us() - display.logged_us >= LOG_EVERY_US) {
        display.logged_us = clock_mono_us();
        log_streams();
    }
}

void display_close(void)
{
    if (display.kind == DISPLAY_LIVE) {
        log_set_hooks(NULL, NULL);
        pthread_mutex_lock(&display.lock);
        draw(false);
        pthread_mutex_unlock(&display.lock);
    }
    display.kind = DISPLAY_NONE;
    display.progress = NULL;
}
