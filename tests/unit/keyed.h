/* What a room gives of keys, digests and rows by key, as text: the same checks for every room. */
#ifndef OPENETL_TESTS_UNIT_KEYED_H
#define OPENETL_TESTS_UNIT_KEYED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "connectors/connector.h"
#include "data/value.h"

#include <stdlib.h>

typedef struct Keyed {
    const Connector *room;
    Session *session;
    Arena *arena;
    Stop stop;
    Err err;
    ReadSpec spec; /* of a table, READ_ROWS */
} Keyed;

static inline void keyed_must(const Keyed *keyed, bool ok)
{
    if (!ok) fail_msg("%s: %s (at %s)", err_word(keyed->err.code), keyed->err.message, keyed->err.at);
}

/* A full refresh of a table by `key` (NULL: its own). */
static inline void keyed_table(Keyed *keyed, const char *name, const char *const *key, int key_count)
{
    Catalog catalog;
    keyed_must(keyed, keyed->room->ops->discover(keyed->session, &name, 1, keyed->arena, &catalog, &keyed->err));
    if (catalog.count != 1) fail_msg("no table %s", name);
    const CatalogTable *table = &catalog.tables[0];
    Schema *schema = arena_new(keyed->arena, Schema), *key_schema = arena_new(keyed->arena, Schema);
    *schema = (Schema){arena_array(keyed->arena, Field, table->column_count), table->column_count};
    for (int i = 0; i < schema->count; i++)
        schema->fields[i] = (Field){table->columns[i].name, table->columns[i].type, table->columns[i].nullable};
    if (key == NULL) key = table->key;
    if (key_count == 0) key_count = table->key_count;
    *key_schema = (Schema){arena_array(keyed->arena, Field, key_count), key_count};
    for (int i = 0; i < key_count; i++)
        key_schema->fields[i] = schema->fields[schema_find(schema, key[i])];
    keyed->spec = (ReadSpec){.stream = arena_strdup(keyed->arena, name),
                             .table = table,
                             .schema = schema,
                             .sync = SYNC_FULL_REFRESH,
                             .key = key,
                             .key_count = key_count,
                             .read_number = 1,
                             .batch_rows = BATCH_ROWS,
                             .batch_bytes = BATCH_BYTES,
                             .max_statement_us = 30000000,
                             .key_schema = key_schema,
                             .stop = &keyed->stop};
}

static inline Reader *keyed_open(Keyed *keyed, ReadWhat what)
{
    Reader *reader;
    keyed->spec.what = what;
    keyed->spec.stop = &keyed->stop; /* a Keyed may have been copied */
    keyed_must(keyed, keyed->room->source->read_open(keyed->session, &keyed->spec, &reader, &keyed->err));
    return reader;
}

static inline void keyed_line(const Batch *batch, int64_t row, bool digest, Buf *out)
{
    for (int i = 0; i < batch->schema->count; i++) {
        if (i > 0) buf_putc(out, '|');
        if (column_is_null(&batch->columns[i], row))
            buf_putc(out, '~');
        else if (batch->columns[i].type.id == TYPE_LIST)
            value_format_json(&batch->columns[i], row, out);
        else
            value_format(&batch->columns[i], row, out);
    }
    for (int i = 0; digest && i < 16; i++)
        buf_printf(out, i == 0 ? " #%02x" : "%02x", batch->digests[row][i]);
}

static inline int keyed_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What read_next gives until its end: a line a row, sorted by bytes unless `ordered`. */
static inline const char *keyed_rest(Keyed *keyed, Reader *reader, bool ordered)
{
    enum { MOST = 4096 };
    const char **lines = arena_array(keyed->arena, const char *, MOST);
    int count = 0;
    Batch *batch;
    Buf line;
    buf_init(&line, BUF_SQL_MAX);
    for (;;) {
        keyed_must(keyed, keyed->room->source->read_next(reader, &batch, &keyed->err));
        if (batch == NULL) break;
        for (int64_t row = 0; row < batch->rows && count < MOST; row++) {
            buf_clear(&line);
            assert_int_equal(batch->digests != NULL, keyed->spec.what == READ_DIGESTS);
            keyed_line(batch, row, batch->digests != NULL, &line);
            lines[count++] = arena_strdup(keyed->arena, buf_text(&line));
        }
        batch_free(batch);
    }
    if (!ordered) qsort(lines, (size_t)count, sizeof *lines, keyed_compare);
    buf_clear(&line);
    for (int i = 0; i < count; i++)
        buf_printf(&line, "%s\n", lines[i]);
    const char *text = arena_strdup(keyed->arena, buf_text(&line));
    buf_release(&line);
    return text;
}

static inline const char *keyed_all(Keyed *keyed, ReadWhat what)
{
    Reader *reader = keyed_open(keyed, what);
    const char *text = keyed_rest(keyed, reader, true);
    keyed->room->source->read_close(reader);
    return text;
}

/* Keys as texts, count of them, each of key_schema's columns. */
static inline Batch *keyed_batch(const Keyed *keyed, const char *const *texts, int count)
{
    const Schema *schema = keyed->spec.key_schema;
    BatchBuilder builder;
    builder_init(&builder, schema, 0, 0);
    for (int row = 0; row < count; row++) {
        for (int i = 0; i < schema->count; i++) {
            const char *text = texts[row * schema->count + i], *why = "";
            if (text == NULL)
                column_append_null(&builder.columns[i]);
            else if (!value_parse(&builder.columns[i], text, strlen(text), &why))
                fail_msg("%s: %s", text, why);
        }
        builder_end_row(&builder);
    }
    Batch *batch = builder_finish(&builder, (Seq){0});
    builder_release(&builder);
    return batch;
}

static inline const char *keyed_rows(Keyed *keyed, Reader *reader, const Batch *keys)
{
    keyed_must(keyed, keyed->room->source->read_rows(reader, keys, &keyed->err));
    const char *text = keyed_rest(keyed, reader, false);
    Buf position;
    buf_init(&position, 1 << 20);
    assert_false(keyed->room->source->mark(reader, &position));
    buf_release(&position);
    return text;
}

/* Every key, in one batch. */
static inline Batch *keyed_keys(Keyed *keyed)
{
    Batch *batch = NULL, *more = NULL;
    Reader *reader = keyed_open(keyed, READ_KEYS);
    keyed_must(keyed, keyed->room->source->read_next(reader, &batch, &keyed->err));
    if (batch != NULL) keyed_must(keyed, keyed->room->source->read_next(reader, &more, &keyed->err));
    assert_null(more);
    keyed->room->source->read_close(reader);
    assert_non_null(batch);
    assert_ptr_equal(batch->schema, keyed->spec.key_schema);
    return batch;
}

/* All rows by all keys; each row by its own key alone; all of it in one open read, of keys and of digests. */
static inline void keyed_check(Keyed *keyed)
{
    Batch *keys = keyed_keys(keyed);
    Reader *reader = keyed_open(keyed, READ_ROWS);
    const char *all = keyed_rest(keyed, reader, false);
    assert_string_equal(keyed_rows(keyed, reader, keys), all); /* after the read's end */
    keyed->room->source->read_close(reader);

    reader = keyed_open(keyed, READ_KEYS);
    Buf one_by_one;
    buf_init(&one_by_one, BUF_SQL_MAX);
    for (int64_t row = 0; row < keys->rows; row++) {
        Buf line;
        buf_init(&line, BUF_SQL_MAX);
        const char *texts[8];
        for (int i = 0; i < keys->schema->count; i++) {
            buf_clear(&line);
            texts[i] = value_format(&keys->columns[i], row, &line) ? arena_strdup(keyed->arena, buf_text(&line)) : NULL;
        }
        Batch *key = keyed_batch(keyed, texts, 1);
        buf_puts(&one_by_one, keyed_rows(keyed, reader, key));
        batch_free(key);
        buf_release(&line);
    }
    int lines = 0;
    for (const char *p = buf_text(&one_by_one); *p != '\0'; p++)
        lines += *p == '\n';
    if (lines != keys->rows || strlen(all) != one_by_one.length)
        fail_msg("%s: key by key\n%s, and all\n%s", keyed->spec.stream, buf_text(&one_by_one), all);
    assert_string_equal(keyed_rows(keyed, reader, keys), all);
    keyed->room->source->read_close(reader);
    buf_release(&one_by_one);

    reader = keyed_open(keyed, READ_DIGESTS);
    Batch *given;
    keyed_must(keyed, keyed->room->source->read_next(reader, &given, &keyed->err));
    assert_ptr_equal(given->schema, keyed->spec.key_schema);
    const char *whole = keyed_rows(keyed, reader, keys); /* in the middle of the read */
    keyed->room->source->read_close(reader);
    for (int64_t row = 0; row < given->rows; row++) {
        char digest[40] = " #";
        for (int i = 0; i < 16; i++)
            snprintf(digest + 2 + 2 * i, 3, "%02x", given->digests[row][i]);
        const char *first = strstr(whole, digest);
        if (first == NULL || strstr(first + 1, digest) != NULL) fail_msg("%s in\n%s", digest, whole);
    }
    batch_free(given);
    batch_free(keys);
}

/* Reads keys, or digests, by small batches; after each one a read that goes on there gives just the rest. */
static inline void keyed_resumes(Keyed *keyed, ReadWhat what)
{
    int64_t batch_rows = keyed->spec.batch_rows;
    keyed->spec.batch_rows = 2;
    const char *all = keyed_all(keyed, what);
    int marks = 0;
    size_t length = 0;
    Reader *reader = keyed_open(keyed, what);
    Batch *batch;
    Buf position;
    buf_init(&position, 1 << 20);
    for (;;) {
        keyed_must(keyed, keyed->room->source->read_next(reader, &batch, &keyed->err));
        if (batch == NULL) break;
        Buf lines;
        buf_init(&lines, BUF_SQL_MAX);
        for (int64_t row = 0; row < batch->rows; row++) {
            keyed_line(batch, row, batch->digests != NULL, &lines);
            buf_putc(&lines, '\n');
        }
        length += lines.length;
        buf_release(&lines);
        batch_free(batch);
        assert_true(keyed->room->source->mark(reader, &position));
        marks++;
        if (marks != 2) continue;
        keyed->room->source->read_close(reader);
        keyed->spec.resume = arena_strdup(keyed->arena, buf_text(&position));
        reader = keyed_open(keyed, what);
        assert_string_equal(keyed_rest(keyed, reader, true), all + length);
        break;
    }
    assert_int_equal(marks, 2);
    keyed->room->source->read_close(reader);
    keyed->spec.resume = NULL;
    keyed->spec.batch_rows = batch_rows;
    buf_release(&position);
}

/* Digests of all rows, a line each, without their keys; whether each is another. */
static inline bool keyed_differ(Keyed *keyed)
{
    Reader *reader = keyed_open(keyed, READ_DIGESTS);
    Batch *batch;
    bool differ = true;
    keyed_must(keyed, keyed->room->source->read_next(reader, &batch, &keyed->err));
    for (int64_t a = 0; a < batch->rows; a++)
        for (int64_t b = 0; b < a; b++)
            differ = differ && memcmp(batch->digests[a], batch->digests[b], 16) != 0;
    batch_free(batch);
    keyed->room->source->read_close(reader);
    return differ;
}

#endif
