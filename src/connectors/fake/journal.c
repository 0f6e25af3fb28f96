#include "connectors/fake/journal.h"

#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

enum { READ_BYTES = 256 * 1024 };

bool journal_errno(Err *err, const char *what, const char *path)
{
    int number = errno;
    ErrCode code = number == ENOSPC || number == EDQUOT                     ? ERR_DEST_FULL
                   : number == EACCES || number == EPERM || number == EROFS ? ERR_DEST_PRIVILEGE
                                                                            : ERR_DEST_WRITE;
    return err_set(err, code, "cannot %s %s: %s", what, path, strerror(number));
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

void journal_init(Journal *journal)
{
    *journal = (Journal){.fd = -1};
    arena_init(&journal->arena);
}

void journal_close(Journal *journal)
{
    if (journal->fd >= 0) {
        journal_cut(journal);
        close(journal->fd);
    }
    arena_release(&journal->arena);
    journal_init(journal);
}

static bool make_journal(Journal *journal, const char *folder, Err *err)
{
    if (!fs_make_dirs(folder, 0755, err)) {
        err->code = ERR_DEST_WRITE;
        return false;
    }
    journal->fd = open(journal->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (journal->fd < 0) return journal_errno(err, "open", journal->path);
    if (fs_sync_dir(folder, err)) return true;
    err->code = ERR_DEST_WRITE;
    return false;
}

bool journal_open(Journal *journal, const char *dir, const char *namespace_, bool create, Err *err)
{
    char path[4096];
    const char *folder = namespace_ == NULL ? "main" : namespace_;
    snprintf(path, sizeof path, "%s/%s/journal.jsonl", dir, folder);
    if (journal->path != NULL && strcmp(journal->path, path) == 0 && journal->fd >= 0) return true;
    journal_close(journal);
    journal->path = arena_strdup(&journal->arena, path);
    journal->fd = open(path, O_RDWR | O_CLOEXEC);
    if (journal->fd < 0 && (errno == EACCES || errno == EROFS)) journal->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (journal->fd < 0 && errno != ENOENT) return journal_errno(err, "open", path);
    if (journal->fd < 0 && create)
        return make_journal(journal, arena_printf(&journal->arena, "%s/%s", dir, folder), err);
    return true;
}

/* ---- lines as JSON ----------------------------------------------------------------------------------------------- */

static void put_line(json_t *line, Buf *out)
{
    char *text = json_dumps(line, JSON_COMPACT);
    if (text == NULL) BUG("a journal line that is not JSON");
    buf_puts(out, text);
    buf_putc(out, '\n');
    free(text);
    json_decref(line);
}

static json_t *text_or_null(const char *text)
{
    return text == NULL ? json_null() : json_string(text);
}

void journal_commit_line(const char *pipeline, const CommitRecord *record, Buf *out)
{
    put_line(json_pack("{s:{s:s, s:s, s:I, s:s, s:i, s:o, s:o, s:I, s:s, s:b, s:I}}", "commit", "pipeline", pipeline,
                       "stream", record->stream, "epoch", (json_int_t)record->epoch, "run_id", record->run_id,
                       "attempt", record->attempt, "position", text_or_null(record->position), "watermark",
                       text_or_null(record->watermark), "rows", (json_int_t)record->rows, "guarantee",
                       guarantee_name(record->guarantee), "forced", record->forced, "committed_at_us",
                       (json_int_t)record->committed_at_us),
             out);
}

void journal_table_line(const JournalTable *table, Buf *out)
{
    json_t *columns = json_array(), *key = json_array();
    for (int i = 0; i < table->column_count; i++) {
        char type[128];
        json_array_append_new(columns, json_pack("{s:s, s:s, s:b}", "name", table->columns[i].name, "type",
                                                 type_format(&table->columns[i].type, type, sizeof type), "nullable",
                                                 table->columns[i].nullable));
    }
    for (int i = 0; i < table->key_count; i++)
        json_array_append_new(key, json_string(table->key[i]));
    put_line(json_pack("{s:{s:s, s:o, s:o, s:b}}", "table", "name", table->name, "columns", columns, "key", key,
                       "with_ops", table->with_ops),
             out);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool damaged(const Journal *journal, Err *err)
{
    err_set(err, ERR_DEST_WRITE, "the journal %s is damaged", journal->path);
    err_fix(err, "restore the file, or take the directory away to start anew");
    return false;
}

static void *grown(Arena *arena, const void *items, int count, int *capacity, size_t size)
{
    if (count < *capacity) BUG("a journal's list grows before it is full");
    *capacity = *capacity == 0 ? 16 : *capacity * 2;
    void *more = arena_alloc(arena, (size_t)*capacity * size);
    if (count > 0) memcpy(more, items, (size_t)count * size);
    return more;
}

static const char *kept_text(Arena *arena, const char *text)
{
    return text == NULL ? NULL : arena_strdup(arena, text);
}

static bool keep_commit(Journal *journal, json_t *line, Err *err)
{
    const char *pipeline, *stream, *run_id, *guarantee;
    json_t *position, *watermark;
    json_int_t epoch, rows, committed_at_us;
    int attempt, forced;
    CommitRecord record = {0};
    if (json_unpack(line, "{s:{s:s, s:s, s:I, s:s, s:i, s:o, s:o, s:I, s:s, s:b, s:I}}", "commit", "pipeline",
                    &pipeline, "stream", &stream, "epoch", &epoch, "run_id", &run_id, "attempt", &attempt, "position",
                    &position, "watermark", &watermark, "rows", &rows, "guarantee", &guarantee, "forced", &forced,
                    "committed_at_us", &committed_at_us) != 0 ||
        !guarantee_parse(guarantee, &record.guarantee))
        return damaged(journal, err);
    Arena *arena = &journal->arena;
    record.stream = arena_strdup(arena, stream);
    record.epoch = epoch;
    record.run_id = arena_strdup(arena, run_id);
    record.attempt = attempt;
    record.position = kept_text(arena, json_string_value(position));
    record.watermark = kept_text(arena, json_string_value(watermark));
    record.rows = rows;
    record.forced = forced != 0;
    record.committed_at_us = committed_at_us;
    if (journal->commit_count == journal->commit_capacity)
        journal->commits =
            grown(arena, journal->commits, journal->commit_count, &journal->commit_capacity, sizeof *journal->commits);
    journal->commits[journal->commit_count++] =
        (JournalCommit){.pipeline = arena_strdup(arena, pipeline), .record = record};
    return true;
}

static bool read_columns(Journal *journal, const json_t *columns, JournalTable *table, Err *err)
{
    Arena *arena = &journal->arena;
    table->column_count = (int)json_array_size(columns);
    table->columns = arena_array(arena, CatalogColumn, table->column_count);
    for (int i = 0; i < table->column_count; i++) {
        CatalogColumn *column = &table->columns[i];
        const char *name, *type;
        int nullable;
        if (json_unpack(json_array_get(columns, (size_t)i), "{s:s, s:s, s:b}", "name", &name, "type", &type, "nullable",
                        &nullable) != 0 ||
            !type_parse(type, arena, &column->type, err))
            return damaged(journal, err);
        column->name = arena_strdup(arena, name);
        column->native = arena_strdup(arena, type);
        column->nullable = nullable != 0;
    }
    return true;
}

static JournalTable *table_slot(Journal *journal, const char *name)
{
    for (int i = 0; i < journal->table_count; i++)
        if (strcmp(journal->tables[i].name, name) == 0) return &journal->tables[i];
    if (journal->table_count == journal->table_capacity)
        journal->tables = grown(&journal->arena, journal->tables, journal->table_count, &journal->table_capacity,
                                sizeof *journal->tables);
    return &journal->tables[journal->table_count++];
}

static bool keep_table(Journal *journal, json_t *line, Err *err)
{
    JournalTable table = {0};
    const char *name;
    json_t *columns, *key;
    int with_ops;
    if (json_unpack(line, "{s:{s:s, s:o, s:o, s:b}}", "table", "name", &name, "columns", &columns, "key", &key,
                    "with_ops", &with_ops) != 0)
        return damaged(journal, err);
    if (!read_columns(journal, columns, &table, err)) return false;
    table.name = arena_strdup(&journal->arena, name);
    table.with_ops = with_ops != 0;
    table.key_count = (int)json_array_size(key);
    table.key = arena_array(&journal->arena, const char *, table.key_count);
    for (int i = 0; i < table.key_count; i++)
        table.key[i] = arena_strdup(&journal->arena, json_string_value(json_array_get(key, (size_t)i)));
    *table_slot(journal, table.name) = table;
    return true;
}

/* Rows are the most of a journal and are not looked into. */
static bool keep_line(Journal *journal, const char *text, size_t length, Err *err)
{
    if (strncmp(text, "{\"stream\"", 9) == 0) return true;
    json_t *line = json_loadb(text, length, 0, NULL);
    bool ok = true;
    if (json_object_get(line, "commit") != NULL)
        ok = keep_commit(journal, line, err);
    else if (json_object_get(line, "table") != NULL)
        ok = keep_table(journal, line, err);
    else
        ok = damaged(journal, err);
    json_decref(line);
    return ok;
}

static bool keep_group(Journal *journal, const char *group, size_t length, Err *err)
{
    for (const char *p = group; p < group + length;) {
        const char *newline = memchr(p, '\n', (size_t)(group + length - p));
        if (!keep_line(journal, p, (size_t)(newline - p), err)) return false;
        p = newline + 1;
    }
    return true;
}

/* Where a line begins that ends a group, at or after `from`; *after is what follows it. NULL: there is none. */
static const char *find_end(const Buf *unread, size_t from, const char **after, int64_t *lines)
{
    for (const char *p = unread->data + from; p < unread->data + unread->length;) {
        const char *newline = memchr(p, '\n', (size_t)(unread->data + unread->length - p));
        if (newline == NULL) return NULL;
        if (strncmp(p, "{\"end\":{\"lines\":", 16) == 0) {
            *after = newline + 1;
            *lines = strtoll(p + 16, NULL, 10);
            return p;
        }
        p = newline + 1;
    }
    return NULL;
}

static int64_t count_lines(const char *from, const char *to)
{
    int64_t lines = 0;
    for (const char *p = from; p < to; p++)
        lines += *p == '\n';
    return lines;
}

static bool keep_groups(Journal *journal, Buf *unread, Err *err)
{
    const char *after, *end;
    size_t done = 0;
    int64_t lines;
    bool ok = true;
    while (ok && unread->length > 0 && (end = find_end(unread, done, &after, &lines)) != NULL) {
        const char *group = unread->data + done;
        ok = count_lines(group, end) == lines ? keep_group(journal, group, (size_t)(end - group), err)
                                              : damaged(journal, err);
        done = (size_t)(after - unread->data);
    }
    if (ok) journal->end += (off_t)done;
    return ok;
}

static bool read_all(const Journal *journal, Buf *unread, Err *err)
{
    for (;;) {
        ssize_t got =
            pread(journal->fd, buf_reserve(unread, READ_BYTES), READ_BYTES, journal->end + (off_t)unread->length);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return journal_errno(err, "read", journal->path);
        if (got == 0) return true;
        unread->length += (size_t)got;
    }
}

static bool lock_journal(Journal *journal, Err *err)
{
    while (flock(journal->fd, LOCK_EX) != 0)
        if (errno != EINTR) return journal_errno(err, "lock", journal->path);
    journal->locked = true;
    return true;
}

static void unlock_journal(Journal *journal)
{
    flock(journal->fd, LOCK_UN);
    journal->locked = false;
}

bool journal_read_on(Journal *journal, Err *err)
{
    if (journal->fd < 0) return true;
    bool take = !journal->locked;
    if (take && !lock_journal(journal, err)) return false;
    Buf unread;
    buf_init(&unread, SIZE_MAX / 2);
    bool ok = read_all(journal, &unread, err) && keep_groups(journal, &unread, err);
    buf_release(&unread);
    if (take) unlock_journal(journal);
    return ok;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

bool journal_begin(Journal *journal, Err *err)
{
    if (!lock_journal(journal, err)) return false;
    if (journal_read_on(journal, err)) {
        if (ftruncate(journal->fd, journal->end) == 0 && lseek(journal->fd, journal->end, SEEK_SET) >= 0) return true;
        journal_errno(err, "write", journal->path);
    }
    unlock_journal(journal);
    return false;
}

bool journal_append(Journal *journal, const void *bytes, size_t length, Err *err)
{
    const char *p = bytes;
    while (length > 0) {
        ssize_t written = write(journal->fd, p, length);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return journal_errno(err, "write", journal->path);
        p += written;
        length -= (size_t)written;
    }
    return true;
}

bool journal_append_file(Journal *journal, int fd, Err *err)
{
    char *chunk = mem_alloc(READ_BYTES);
    bool ok = true;
    off_t at = 0;
    while (ok) {
        ssize_t got = pread(fd, chunk, READ_BYTES, at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) ok = journal_errno(err, "read", "the staged rows");
        if (got <= 0) break;
        ok = journal_append(journal, chunk, (size_t)got, err);
        at += got;
    }
    free(chunk);
    return ok;
}

bool journal_end(Journal *journal, int64_t lines, Err *err)
{
    char line[64];
    int length = snprintf(line, sizeof line, "{\"end\":{\"lines\":%lld}}\n", (long long)lines);
    bool ok = journal_append(journal, line, (size_t)length, err);
    if (ok && fdatasync(journal->fd) != 0) ok = journal_errno(err, "make durable", journal->path);
    if (!ok) {
        journal_cut(journal);
        return false;
    }
    ok = journal_read_on(journal, err);
    unlock_journal(journal);
    return ok;
}

void journal_cut(Journal *journal)
{
    if (!journal->locked) return;
    /* Where this fails the lines stay without an end, so nobody reads them. */
    if (ftruncate(journal->fd, journal->end) != 0) errno = 0;
    unlock_journal(journal);
}

/* ---- looking up -------------------------------------------------------------------------------------------------- */

const JournalTable *journal_table(const Journal *journal, const char *name)
{
    for (int i = 0; i < journal->table_count; i++)
        if (strcmp(journal->tables[i].name, name) == 0) return &journal->tables[i];
    return NULL;
}

bool journal_has_epoch(const Journal *journal, const char *pipeline, const char *stream, int64_t epoch)
{
    for (int i = 0; i < journal->commit_count; i++) {
        const JournalCommit *commit = &journal->commits[i];
        if (commit->record.epoch == epoch && strcmp(commit->pipeline, pipeline) == 0 &&
            strcmp(commit->record.stream, stream) == 0)
            return true;
    }
    return false;
}
