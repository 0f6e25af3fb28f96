#include "base/buf.h"
#include "data/batch.h"
#include "data/value.h"
#include "child.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static const Type INT64 = {.id = TYPE_INT64};
static const Type LIST_OF_INT64 = {.id = TYPE_LIST, .element = &INT64};

/* One column of each shape: fixed, bits, offsets, list. */
static Field shapes[] = {
    {.name = "n", .type = {.id = TYPE_INT32}},
    {.name = "b", .type = {.id = TYPE_BOOL}},
    {.name = "t", .type = {.id = TYPE_UTF8}},
    {.name = "l", .type = {.id = TYPE_LIST, .element = &LIST_OF_INT64}},
    {.name = "d", .type = {.id = TYPE_DECIMAL, .precision = 38, .scale = 2}},
};
enum { SHAPE_COUNT = sizeof shapes / sizeof *shapes };
static const Schema SHAPES = {.fields = shapes, .count = SHAPE_COUNT};

/* Row `i` as append_row makes it: NULL in a pattern of its own for each column. */
static bool null_at(int column, int64_t i)
{
    return (i + column) % (3 + column) == 0;
}

static void append_list(Column *column, int64_t i)
{
    for (int64_t j = 0; j < i % 4; j++) {
        if (j == 2) {
            column_append_null(column->child);
            continue;
        }
        for (int64_t k = 0; k < j; k++) {
            if ((i + k) % 5 == 0)
                column_append_null(column->child->child);
            else
                column_append_i64(column->child->child, i * 100 + k);
        }
        column_end_list(column->child);
    }
    column_end_list(column);
}

static void append_value(Column *column, int c, int64_t i)
{
    char text[32];
    if (null_at(c, i)) {
        column_append_null(column);
        return;
    }
    switch (c) {
    case 0:
        column_append_i32(column, (int32_t)i * 7);
        break;
    case 1:
        column_append_bool(column, i % 2 == 0);
        break;
    case 2:
        column_append_bytes(column, text,
                            (size_t)snprintf(text, sizeof text, "%.*s%lld", (int)(i % 9), "abcdefghi", (long long)i));
        break;
    case 3:
        append_list(column, i);
        break;
    default:
        column_append_i128(column, (__int128)i * 1000000000000 * 1000000000000);
        break;
    }
}

static void append_row(BatchBuilder *builder, int64_t i)
{
    for (int c = 0; c < SHAPE_COUNT; c++)
        append_value(&builder->columns[c], c, i);
    builder_end_row(builder);
}

static void dump(const Column *columns, int64_t rows, Buf *out)
{
    for (int64_t row = 0; row < rows; row++) {
        for (int c = 0; c < SHAPE_COUNT; c++) {
            value_format_json(&columns[c], row, out);
            buf_putc(out, ' ');
        }
        buf_putc(out, '\n');
    }
}

static int64_t count_nulls(const Column *column)
{
    int64_t nulls = 0;
    for (int64_t i = 0; i < column->rows; i++)
        nulls += (column->validity.data[i >> 3] >> (i & 7) & 1) == 0;
    return nulls;
}

static void assert_column_sound(const Column *column)
{
    assert_int_equal((uintptr_t)column->validity.data % 64, 0);
    assert_int_equal((uintptr_t)column->values.data % 64, 0);
    assert_int_equal((uintptr_t)column->offsets.data % 64, 0);
    assert_int_equal(column->nulls, count_nulls(column));
    assert_int_equal(column->validity.bytes, (column->rows + 7) / 8);
    if (column->rows % 8 != 0) assert_int_equal(column->validity.data[column->rows / 8] >> (column->rows % 8), 0);
    if (type_has_offsets(column->type.id)) {
        assert_int_equal(column->offsets.bytes, (column->rows + 1) * 4);
        assert_int_equal(column_offsets(column)[0], 0);
        for (int64_t i = 0; i < column->rows; i++)
            assert_true(column_offsets(column)[i] <= column_offsets(column)[i + 1]);
        int64_t end = column_offsets(column)[column->rows];
        assert_int_equal(column->child == NULL ? (int64_t)column->values.bytes : column->child->rows, end);
    } else if (column->type.id == TYPE_BOOL) {
        assert_int_equal(column->values.bytes, (column->rows + 7) / 8);
    } else {
        assert_int_equal(column->values.bytes, (size_t)column->rows * type_width(column->type.id));
    }
    if (column->child != NULL) assert_column_sound(column->child);
}

static void rows_come_out_as_they_went_in(void **state)
{
    (void)state;
    BatchBuilder builder;
    builder_init(&builder, &SHAPES, 0, 0);
    for (int64_t i = 0; i < 1000; i++)
        append_row(&builder, i);
    Batch *batch = builder_finish(&builder, (Seq){7, 40});
    assert_int_equal(batch->rows, 1000);
    for (int c = 0; c < SHAPE_COUNT; c++)
        assert_column_sound(&batch->columns[c]);
    for (int64_t i = 0; i < 1000; i++) {
        for (int c = 0; c < SHAPE_COUNT; c++)
            assert_int_equal(column_is_null(&batch->columns[c], i), null_at(c, i));
        if (!null_at(0, i)) assert_int_equal(COLUMN_VALUES(int32_t, &batch->columns[0])[i], i * 7);
        if (!null_at(1, i)) assert_int_equal(column_bool(&batch->columns[1], i), i % 2 == 0);
        if (!null_at(4, i))
            assert_true(COLUMN_VALUES(__int128, &batch->columns[4])[i] == (__int128)i * 1000000000000 * 1000000000000);
    }
    size_t length;
    const char *text = column_bytes(&batch->columns[2], 994, &length);
    assert_int_equal(length, 7);
    assert_memory_equal(text, "abcd994", 7);
    Buf list;
    buf_init(&list, 1000);
    value_format_json(&batch->columns[3], 7, &list);
    assert_string_equal(buf_text(&list), "[[],[700],null]");
    buf_release(&list);
    Seq seq = batch_seq(batch, 2);
    assert_true(seq.high == 7 && seq.low == 42);
    batch_free(batch);
    batch_free(NULL);
    builder_release(&builder);
}

/* Every third row, backwards; then none. */
static void chosen_rows_come_out_alone(void **state)
{
    (void)state;
    BatchBuilder builder;
    builder_init(&builder, &SHAPES, 0, 0);
    for (int64_t i = 0; i < 100; i++)
        append_row(&builder, i);
    Batch *batch = builder_finish(&builder, (Seq){7, 40});
    int64_t rows[34], count = 0;
    for (int64_t i = 99; i >= 0; i -= 3) {
        append_row(&builder, i);
        rows[count++] = i;
    }
    Batch *expected = builder_finish(&builder, (Seq){0}), *chosen = batch_select(batch, rows, count);
    Buf want, got;
    buf_init(&want, 1 << 20);
    buf_init(&got, 1 << 20);
    dump(expected->columns, count, &want);
    dump(chosen->columns, chosen->rows, &got);
    assert_string_equal(buf_text(&got), buf_text(&want));
    for (int c = 0; c < SHAPE_COUNT; c++)
        assert_column_sound(&chosen->columns[c]);
    Seq seq = batch_seq(chosen, 1);
    assert_true(seq.high == 7 && seq.low == 40 + 96);
    assert_null(batch_select(chosen, rows, 0));
    buf_release(&want);
    buf_release(&got);
    batch_free(expected);
    builder_release(&builder);
}

static void a_builder_is_empty_and_usable_after_finish(void **state)
{
    (void)state;
    BatchBuilder builder;
    builder_init(&builder, &SHAPES, 0, 0);
    assert_null(builder_finish(&builder, (Seq){0}));
    for (int round = 0; round < 3; round++) {
        for (int64_t i = 0; i < 50; i++)
            append_row(&builder, i + round);
        size_t bytes = builder_bytes(&builder);
        Batch *batch = builder_finish(&builder, (Seq){0});
        assert_int_equal(batch->rows, 50);
        assert_int_equal(batch->bytes, bytes);
        assert_int_equal(builder.rows, 0);
        for (int c = 0; c < SHAPE_COUNT; c++)
            assert_int_equal(builder.columns[c].rows, 0);
        batch_free(batch);
    }
    builder_release(&builder);
}

static void truncating_leaves_what_a_shorter_build_gives(void **state)
{
    (void)state;
    Buf cut, plain;
    buf_init(&cut, 10000000);
    buf_init(&plain, 10000000);
    for (int64_t keep = 0; keep < 40; keep++) {
        BatchBuilder first, second;
        builder_init(&first, &SHAPES, 0, 0);
        builder_init(&second, &SHAPES, 0, 0);
        for (int64_t i = 0; i < keep + 11; i++)
            append_row(&first, i);
        for (int64_t i = 0; i < keep; i++)
            append_row(&second, i);
        builder_truncate(&first, keep);
        /* Rows appended after the cut must not see what was there. */
        for (int64_t i = keep; i < keep + 13; i++) {
            append_row(&first, i * 31);
            append_row(&second, i * 31);
        }
        for (int c = 0; c < SHAPE_COUNT; c++)
            assert_column_sound(&first.columns[c]);
        buf_clear(&cut);
        buf_clear(&plain);
        dump(first.columns, first.rows, &cut);
        dump(second.columns, second.rows, &plain);
        assert_int_equal(builder_bytes(&first), builder_bytes(&second));
        assert_string_equal(buf_text(&cut), buf_text(&plain));
        builder_release(&first);
        builder_release(&second);
    }
    buf_release(&cut);
    buf_release(&plain);
}

static void a_row_that_failed_half_way_is_cut_off(void **state)
{
    (void)state;
    BatchBuilder builder;
    builder_init(&builder, &SHAPES, 0, 0);
    for (int64_t i = 0; i < 9; i++)
        append_row(&builder, i);
    size_t before = builder_bytes(&builder);
    column_append_i32(&builder.columns[0], 1);
    column_append_null(&builder.columns[1]);
    column_append_i64(builder.columns[3].child->child, 5); /* a list's element, and the list never ended */
    builder_truncate(&builder, builder.rows);
    assert_int_equal(builder_bytes(&builder), before);
    for (int c = 0; c < SHAPE_COUNT; c++) {
        assert_int_equal(builder.columns[c].rows, 9);
        assert_column_sound(&builder.columns[c]);
    }
    Batch *batch = builder_finish(&builder, (Seq){0});
    assert_int_equal(batch->rows, 9);
    batch_free(batch);
    builder_release(&builder);
}

static void full_means_rows_or_bytes(void **state)
{
    (void)state;
    static Field fields[] = {{.name = "t", .type = {.id = TYPE_UTF8}}};
    static const Schema SCHEMA = {.fields = fields, .count = 1};
    char kilobyte[1024];
    memset(kilobyte, 'k', sizeof kilobyte);
    BatchBuilder builder;
    builder_init(&builder, &SCHEMA, 3, 4096);
    for (int i = 0; i < 3; i++) {
        assert_false(builder_full(&builder));
        column_append_bytes(&builder.columns[0], "x", 1);
        builder_end_row(&builder);
    }
    assert_true(builder_full(&builder));
    builder_release(&builder);
    builder_init(&builder, &SCHEMA, 1000, 4096);
    int rows = 0;
    while (!builder_full(&builder)) {
        column_append_bytes(&builder.columns[0], kilobyte, sizeof kilobyte);
        builder_end_row(&builder);
        rows++;
    }
    assert_int_equal(rows, 4);
    builder_release(&builder);
    builder_init(&builder, &SCHEMA, 0, 0);
    assert_int_equal(builder.target_rows, BATCH_ROWS);
    assert_int_equal(builder.target_bytes, BATCH_BYTES);
    builder_release(&builder);
}

static void versions_travel_with_their_rows(void **state)
{
    (void)state;
    BatchBuilder builder;
    builder_init(&builder, &SHAPES, 0, 0);
    for (int64_t i = 0; i < 3000; i++) {
        builder_set_version(&builder, i % 2 == 0 ? OP_INSERT : OP_DELETE, (Seq){(uint64_t)i, 9});
        append_row(&builder, i);
    }
    Batch *batch = builder_finish(&builder, (Seq){0});
    for (int64_t i = 0; i < 3000; i++) {
        assert_int_equal(batch->ops[i], i % 2 == 0 ? OP_INSERT : OP_DELETE);
        assert_int_equal(batch_seq(batch, i).high, i);
        assert_int_equal(batch_seq(batch, i).low, 9);
    }
    batch_free(batch);
    builder_release(&builder);
}

static void a_seq_sorts_as_text(void **state)
{
    (void)state;
    char a[SEQ_TEXT_BYTES + 1], b[SEQ_TEXT_BYTES + 1];
    seq_format((Seq){0x16B3748, 42}, a);
    assert_string_equal(a, "00000000016B3748-000000000000002A");
    seq_format((Seq){UINT64_MAX, UINT64_MAX}, b);
    assert_string_equal(b, "FFFFFFFFFFFFFFFF-FFFFFFFFFFFFFFFF");
    seq_format((Seq){9, UINT64_MAX}, a);
    seq_format((Seq){10, 0}, b);
    assert_true(strcmp(a, b) < 0);
}

static void overflow_offsets(void)
{
    static Field fields[] = {{.name = "t", .type = {.id = TYPE_UTF8}}};
    static const Schema SCHEMA = {.fields = fields, .count = 1};
    BatchBuilder builder;
    builder_init(&builder, &SCHEMA, 0, 0);
    column_append_bytes(&builder.columns[0], "abc", 3);
    column_append_bytes(&builder.columns[0], "abc", (size_t)INT32_MAX - 2); /* one byte too many: refused unread */
}

static void finish_uneven(void)
{
    BatchBuilder builder;
    builder_init(&builder, &SHAPES, 0, 0);
    append_row(&builder, 1);
    column_append_i32(&builder.columns[0], 1);
    builder_finish(&builder, (Seq){0});
}

static void misuse_is_a_bug(void **state)
{
    (void)state;
    assert_int_equal(child_exit_code(overflow_offsets), 70);
    assert_int_equal(child_exit_code(finish_uneven), 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_out_as_they_went_in),
        cmocka_unit_test(chosen_rows_come_out_alone),
        cmocka_unit_test(a_builder_is_empty_and_usable_after_finish),
        cmocka_unit_test(truncating_leaves_what_a_shorter_build_gives),
        cmocka_unit_test(a_row_that_failed_half_way_is_cut_off),
        cmocka_unit_test(full_means_rows_or_bytes),
        cmocka_unit_test(versions_travel_with_their_rows),
        cmocka_unit_test(a_seq_sorts_as_text),
        cmocka_unit_test(misuse_is_a_bug),
    };
    return cmocka_run_group_tests_name("batch", tests, NULL, NULL);
}
