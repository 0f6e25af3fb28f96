/* Positions, cursor bounds and the queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/cursor.h"
#include "engine/position.h"
#include "engine/queue.h"

#include <pthread.h>
#include <string.h>

static Arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static void position_round_trip(void **state)
{
    (void)state;
    Position before = {.owner = "o",
                       .sync = 4,
                       .generation = 3,
                       .read = 7,
                       .source = "{\"v\":1,\"after\":[\"caf\xc3\xa9\"]}",
                       .upper = "u",
                       .upper_inclusive = true,
                       .watermark = "w",
                       .rows = INT64_MAX};
    Position after;
    Err err;
    assert_true(position_from_text(position_to_text(&before, &arena), &arena, &after, &err));
    assert_string_equal(after.owner, "o");
    assert_int_equal(after.sync, 4);
    assert_int_equal(after.generation, 3);
    assert_int_equal(after.read, 7);
    assert_false(after.complete);
    assert_string_equal(after.source, before.source);
    assert_null(after.lower);
    assert_string_equal(after.upper, "u");
    assert_true(after.upper_inclusive);
    assert_string_equal(after.watermark, "w");
    assert_null(after.highest);
    assert_true(after.rows == INT64_MAX);
}

static Position round_trip(const Position *before)
{
    Position after;
    Err err;
    assert_true(position_from_text(position_to_text(before, &arena), &arena, &after, &err));
    return after;
}

static void parts_left_round_trip(void **state)
{
    (void)state;
    const PositionPart parts[] = {{.part = "{\"from\":1}", .after = "5"}, {.part = "b"}};
    Position after = round_trip(&(Position){.parted = true, .parts = parts, .part_count = 2});
    assert_true(after.parted);
    assert_int_equal(after.part_count, 2);
    assert_string_equal(after.parts[0].part, parts[0].part);
    assert_string_equal(after.parts[0].after, "5");
    assert_string_equal(after.parts[1].part, "b");
    assert_null(after.parts[1].after);
    /* All parts read is not the same as a read that was never cut, which would begin from the start. */
    after = round_trip(&(Position){.parted = true});
    assert_true(after.parted);
    assert_int_equal(after.part_count, 0);
    assert_false(round_trip(&(Position){.rows = 1}).parted);
}

static void parts_that_are_no_parts_are_refused(void **state)
{
    (void)state;
    const char *const bad[] = {"{\"v\":2,\"parts\":{}}", "{\"v\":2,\"parts\":[{}]}", "{\"v\":1,\"parts\":[]}",
                               "{\"v\":2,\"parts\":[{\"part\":1}]}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Position position;
        Err err;
        assert_false(position_from_text(bad[i], &arena, &position, &err));
        assert_int_equal(err.code, ERR_STATE_POSITION_INVALID);
    }
}

static void what_later_versions_save_round_trips(void **state)
{
    (void)state;
    const PositionPart parts[] = {{.part = "p"}};
    Position before = {.keys_at_us = 5,
                       .set = "s",
                       .log = "l",
                       .cursor_type = "int64",
                       .parted = true,
                       .parts = parts,
                       .part_count = 1};
    assert_non_null(strstr(position_to_text(&before, &arena), "\"v\":3"));
    Position after = round_trip(&before);
    assert_int_equal(after.keys_at_us, 5);
    assert_string_equal(after.set, "s");
    assert_string_equal(after.log, "l");
    assert_string_equal(after.cursor_type, "int64");
    assert_int_equal(after.part_count, 1);
    assert_non_null(strstr(position_to_text(&(Position){.rows = 1}, &arena), "\"v\":1"));
}

static char *text_of(const char *text)
{
    return memcpy(mem_alloc(strlen(text) + 1), text, strlen(text) + 1);
}

static void a_commit_saves_what_each_part_has_left(void **state)
{
    (void)state;
    const PositionPart parts[] = {{.part = "a"}, {.part = "b", .after = "7"}, {.part = "c"}};
    PartSet *set = parts_new(parts, 3, true);
    Position position = {.source = "x", .rows = 15};
    set->items[0].rows_since_mark = 10;
    set->items[1].rows_since_mark = 5;
    assert_int_equal(parts_mark(set, 1, text_of("3"), false), 10);
    assert_int_equal(parts_mark(set, 3, NULL, true), 0);
    parts_position(set, &arena, &position);
    assert_null(position.source);
    assert_true(position.parted);
    assert_int_equal(position.part_count, 2);
    assert_string_equal(position.parts[0].after, "3");
    assert_string_equal(position.parts[1].part, "b");
    assert_string_equal(position.parts[1].after, "7"); /* its rows since are not behind a resume point */
    position.rows = 0; /* parts that were read and held nothing are not to be left out: rows may come */
    parts_position(set, &arena, &position);
    assert_false(position.parted);
    parts_free(set);
}

static void a_forced_barrier_repeats_only_parts_between_marks(void **state)
{
    (void)state;
    const PositionPart parts[] = {{.part = "a"}, {.part = "b"}};
    PartSet *set = parts_new(parts, 2, true);
    set->items[0].rows_since_mark = 1;
    parts_forced(set);
    assert_true(parts_repeat(set));
    assert_int_equal(set->items[0].rows_since_mark, 0);
    parts_mark(set, 2, NULL, true); /* another part's resume point does not end it */
    assert_true(parts_repeat(set));
    parts_mark(set, 1, text_of("9"), false);
    assert_false(parts_repeat(set));
    parts_free(set);
}

static void parts_of_one_snapshot_are_not_saved(void **state)
{
    (void)state;
    const PositionPart parts[] = {{.part = "a"}};
    PartSet *set = parts_new(parts, 1, false);
    Position position = {.source = "x"};
    parts_position(set, &arena, &position);
    assert_false(position.parted);
    assert_null(position.source);
    parts_free(set);
}

static void position_of_another_kind_is_refused(void **state)
{
    (void)state;
    const char *const bad[] = {
        "",
        "null",
        "[]",
        "{}",
        "{\"v\":2}",
        "{\"v\":3}",
        "{\"v\":\"1\"}",
        "{\"v\":1",
        "x",
        "{\"v\":1,\"of_tomorrow\":1}", /* an unknown member would be forgotten by the next commit */
        "{\"v\":1,\"owner\":1}",
        "{\"v\":1,\"rows\":\"1\"}",
        "{\"v\":1,\"complete\":1}",
        "{\"v\":1,\"set\":\"s\"}",
        "{\"v\":1,\"rows\":1,\"rows\":2}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Position position;
        Err err;
        assert_false(position_from_text(bad[i], &arena, &position, &err));
        assert_int_equal(err.code, ERR_STATE_POSITION_INVALID);
    }
}

static const char *lower(TypeId id, int64_t overlap, const char *watermark, const char *highest)
{
    StreamPlan plan = {.cursor_type = {.id = id}, .overlap = overlap};
    Position position = {.watermark = watermark, .highest = highest};
    return cursor_lower(&plan, &position, &arena);
}

static void lower_bound_is_the_lesser_of_watermark_and_highest(void **state)
{
    (void)state;
    assert_null(lower(TYPE_TIMESTAMP, 0, NULL, NULL));
    assert_string_equal(lower(TYPE_TIMESTAMP, 0, "2024-01-02 00:00:00", "2024-01-01 10:00:00"), "2024-01-01 10:00:00");
    assert_string_equal(lower(TYPE_TIMESTAMP, 0, "2024-01-02 00:00:00", NULL), "2024-01-02 00:00:00");
    assert_string_equal(lower(TYPE_TIMESTAMP, 0, "2024-01-02 00:00:00", "2024-01-03 00:00:00"), "2024-01-02 00:00:00");
    assert_string_equal(lower(TYPE_TIMESTAMPTZ, 600000000, "2024-01-02 00:00:00.000001+00", NULL),
                        "2024-01-01 23:50:00.000001+00");
    assert_string_equal(lower(TYPE_DATE, 1, "2024-03-01", NULL), "2024-02-29");
}

static void counts_overlap_without_overflow(void **state)
{
    (void)state;
    assert_string_equal(lower(TYPE_INT64, 0, "41", NULL), "41");
    assert_string_equal(lower(TYPE_INT64, 5, "41", NULL), "36");
    assert_string_equal(lower(TYPE_INT64, 5, "-9223372036854775806", NULL), "-9223372036854775808");
    assert_string_equal(lower(TYPE_UTF8, 0, "abc", NULL), "abc");
}

/* ---- queue ------------------------------------------------------------------------------------------------------- */

static Batch *batch_of(size_t bytes)
{
    Batch *batch = mem_zero(sizeof *batch);
    static const Schema none = {0};
    batch->schema = &none;
    batch->bytes = bytes;
    batch->rows = 1;
    return batch;
}

enum { ITEMS = 2000 };

static void *push_all(void *context)
{
    for (int i = 0; i < ITEMS; i++) {
        QueueItem item = {.stream = i, .batch = batch_of(100)};
        if (!queue_push(context, &item)) break;
    }
    return NULL;
}

static void queue_keeps_order_and_bound(void **state)
{
    (void)state;
    Queue *queue = queue_new(1000);
    pthread_t pusher;
    pthread_create(&pusher, NULL, push_all, queue);
    for (int i = 0; i < ITEMS; i++) {
        QueueItem item;
        int popped;
        while ((popped = queue_pop(queue, &item, 1000)) == 0) {
        }
        assert_int_equal(popped, 1);
        assert_int_equal(item.stream, i);
        queue_item_release(&item);
    }
    pthread_join(pusher, NULL);
    QueueItem item;
    assert_int_equal(queue_pop(queue, &item, 1000), 0);
    queue_close(queue);
    assert_int_equal(queue_pop(queue, &item, 1000), -1);
    queue_free(queue);
}

static void an_item_larger_than_the_bound_passes_alone(void **state)
{
    (void)state;
    Queue *queue = queue_new(10);
    QueueItem item = {.batch = batch_of(1000000)};
    assert_true(queue_push(queue, &item));
    assert_null(item.batch);
    queue_free(queue);
}

static void closing_wakes_a_waiting_push(void **state)
{
    (void)state;
    Queue *queue = queue_new(1000);
    pthread_t pusher;
    pthread_create(&pusher, NULL, push_all, queue);
    QueueItem item;
    assert_int_equal(queue_pop(queue, &item, 1000000), 1);
    queue_item_release(&item);
    queue_close(queue);
    pthread_join(pusher, NULL);
    QueueItem late = {.batch = batch_of(1)};
    assert_false(queue_push(queue, &late));
    assert_null(late.batch);
    queue_free(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(position_round_trip),
        cmocka_unit_test(parts_left_round_trip),
        cmocka_unit_test(what_later_versions_save_round_trips),
        cmocka_unit_test(parts_that_are_no_parts_are_refused),
        cmocka_unit_test(a_commit_saves_what_each_part_has_left),
        cmocka_unit_test(a_forced_barrier_repeats_only_parts_between_marks),
        cmocka_unit_test(parts_of_one_snapshot_are_not_saved),
        cmocka_unit_test(position_of_another_kind_is_refused),
        cmocka_unit_test(lower_bound_is_the_lesser_of_watermark_and_highest),
        cmocka_unit_test(counts_overlap_without_overflow),
        cmocka_unit_test(queue_keeps_order_and_bound),
        cmocka_unit_test(an_item_larger_than_the_bound_passes_alone),
        cmocka_unit_test(closing_wakes_a_waiting_push),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
