#include "data/fingerprint.h"

#include "base/arena.h"
#include "data/value.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- of a row ---------------------------------------------------------------------------------------------------- */

typedef struct Cell {
    const char *name, *type, *stored, *text; /* text is in the source's type; stored_text in the other; NULL: NULL */
    const char *stored_text;
} Cell;

static Batch *batch_of(const Schema *schema, const Cell *cells, bool stored)
{
    BatchBuilder builder;
    builder_init(&builder, schema, 0, 0);
    for (int i = 0; i < schema->count; i++) {
        const char *why = "", *text = stored ? cells[i].stored_text : cells[i].text;
        Column *column = &builder.columns[i];
        if (text == NULL) {
            column_append_null(column);
        } else if (column->type.id == TYPE_LIST) {
            /* "1,2": elements */
            for (const char *at = text; *at != '\0'; at += strcspn(at, ","), at += *at == ',')
                assert_true(value_parse(column->child, at, strcspn(at, ","), &why));
            column_end_list(column);
        } else if (!value_parse(column, text, strlen(text), &why)) {
            fail_msg("%s: %s", text, why);
        }
    }
    builder_end_row(&builder);
    Batch *batch = builder_finish(&builder, (Seq){7, 3});
    builder_release(&builder);
    return batch;
}

static Schema schema_of(const Cell *cells, int count, bool stored, Arena *arena)
{
    Err err;
    Schema schema = {.fields = arena_array(arena, Field, count), .count = count};
    for (int i = 0; i < count; i++) {
        schema.fields[i].name = cells[i].name;
        const char *type = stored && cells[i].stored != NULL ? cells[i].stored : cells[i].type;
        assert_true(type_parse(type, arena, &schema.fields[i].type, &err));
    }
    return schema;
}

/* The fingerprints of both sides of a row. */
static void print_both(const Cell *cells, int count, const char *key, Fingerprint prints[2])
{
    Arena arena;
    arena_init(&arena);
    Schema schema = schema_of(cells, count, false, &arena), stored = schema_of(cells, count, true, &arena);
    Fingerprinter printer;
    fingerprinter_init(&printer, &schema, &stored, &key, key != NULL);
    for (int side = 0; side < 2; side++) {
        Batch *batch = batch_of(side == 0 ? &schema : &stored, cells, side == 1);
        prints[side] = fingerprint_row(&printer, batch, 0);
        batch_free(batch);
    }
    fingerprinter_release(&printer);
    arena_release(&arena);
}

static void assert_alike(const Cell *cell)
{
    Fingerprint prints[2];
    Cell cells[] = {{"id", "int64", NULL, "1", "1"}, *cell};
    print_both(cells, 2, "id", prints);
    if (!hash128_same(prints[0].row, prints[1].row))
        fail_msg("%s %s is not %s %s", cell->type, cell->text, cell->stored, cell->stored_text);
    assert_true(hash128_same(prints[0].key, prints[1].key));
}

static void same_values_of_other_types_are_alike(void **state)
{
    (void)state;
    static const Cell CELLS[] = {
        {"v", "uint64", "decimal(20, 0)", "18446744073709551615", "18446744073709551615"},
        {"v", "uint64", "decimal(20, 0)", "1000", "1000"},
        {"v", "uint32", "int64", "4294967295", "4294967295"},
        {"v", "int16", "int64", "-7", "-7"},
        {"v", "int32", "decimal(38, 4)", "-70", "-70.0000"},
        {"v", "int32", "float64", "16777217", "16777217"},
        {"v", "float32", "float64", "0.25", "0.25"},
        {"v", "decimal(8, 2)", "decimal(20, 6)", "12.30", "12.300000"},
        {"v", "json", "utf8", "{\"a\": 1}", "{\"a\": 1}"},
        {"v", "uuid", "utf8", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
        {"v", "list<int32>", "json", "1,2", "[1,2]"},
        {"v", "list<uint64>", "list<decimal(20, 0)>", "18446744073709551615,5", "18446744073709551615,5"},
        {"v", "list<int16>", "list<int64>", "3,-4", "3,-4"},
        {"v", "uint64", "decimal(20, 0)", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof CELLS / sizeof *CELLS; i++)
        assert_alike(&CELLS[i]);
}

static void other_values_are_not(void **state)
{
    (void)state;
    static const Cell CELLS[] = {
        {"v", "uint64", "decimal(20, 0)", "18446744073709551615", "18446744073709551614"},
        {"v", "int64", "int64", "1", "2"},
        {"v", "utf8", "utf8", "", NULL},
        {"v", "list<int32>", "list<int32>", "1,2", "12"},
        {"v", "list<uint64>", "list<decimal(20, 0)>", "1,2", "2,1"},
        {"v", "timestamp[us]", "timestamp[us]", "2026-01-01 00:00:00", "2026-01-01 00:00:00.000001"},
    };
    for (size_t i = 0; i < sizeof CELLS / sizeof *CELLS; i++) {
        Fingerprint prints[2];
        Cell cells[] = {{"id", "int64", NULL, "1", "1"}, CELLS[i]};
        print_both(cells, 2, "id", prints);
        assert_true(hash128_same(prints[0].key, prints[1].key));
        assert_false(hash128_same(prints[0].row, prints[1].row));
    }
}

/* ("a", "bc") is not ("ab", "c"), a column of another name is another value, and the seq is the batch's. */
static void parts_do_not_run_together(void **state)
{
    (void)state;
    Fingerprint prints[2];
    Cell apart[] = {{"x", "utf8", NULL, "a", "ab"}, {"y", "utf8", NULL, "bc", "c"}};
    print_both(apart, 2, NULL, prints);
    assert_false(hash128_same(prints[0].row, prints[1].row));
    Cell swapped[] = {{"x", "utf8", NULL, "a", NULL}, {"y", "utf8", NULL, NULL, "a"}};
    print_both(swapped, 2, NULL, prints);
    assert_false(hash128_same(prints[0].row, prints[1].row));
    assert_true(hash128_same(prints[0].row, prints[0].key));
    assert_int_equal(prints[0].seq.high, 7);
    assert_int_equal(prints[0].seq.low, 3);
}

/* ---- of a table -------------------------------------------------------------------------------------------------- */

static const char *spill_directory(void)
{
    static char path[] = "/tmp/openetl-unit-XXXXXX";
    static bool made;
    if (!made) assert_non_null(mkdtemp(path));
    made = true;
    return path;
}

static Hash128 hash_of(uint64_t number)
{
    return hash128(&number, sizeof number);
}

static void add(FingerprintSet *set, uint64_t key, uint64_t row, uint64_t seq)
{
    Err err;
    Fingerprint print = {.key = hash_of(key), .row = hash_of(row), .seq = {.high = seq}};
    if (!fingerprints_add(set, &print, &err)) fail_msg("%s", err.message);
}

typedef struct Seen {
    int64_t both, different, left, right, counted;
    Hash128 last;
    bool ordered;
} Seen;

static bool see(void *context, const FingerprintPair *pair, Err *err)
{
    (void)err;
    Seen *seen = context;
    Hash128 key = (pair->left != NULL ? pair->left : pair->right)->key;
    bool above = key.high > seen->last.high || (key.high == seen->last.high && key.low > seen->last.low);
    if (seen->both + seen->different + seen->left + seen->right > 0) seen->ordered = seen->ordered && above;
    seen->last = key;
    seen->counted += pair->left_count + pair->right_count;
    if (pair->left == NULL)
        seen->right++;
    else if (pair->right == NULL)
        seen->left++;
    else if (hash128_same(pair->left->row, pair->right->row))
        seen->both++;
    else
        seen->different++;
    return true;
}

static Seen compare(FingerprintSet *left, FingerprintSet *right)
{
    Err err;
    Seen seen = {.ordered = true};
    if (!fingerprints_compare(left, right, see, &seen, &err)) fail_msg("%s", err.message);
    assert_true(seen.ordered);
    return seen;
}

static int files_in(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

enum { ROWS = 50000 };

/* Left: 0 … ROWS; right: the other way round, without every 1000th, with 7 strays, every 500th (not 1000th) changed. */
static void check_sets(size_t memory_bytes)
{
    FingerprintSet *left = fingerprints_new(spill_directory(), memory_bytes);
    FingerprintSet *right = fingerprints_new(spill_directory(), memory_bytes);
    for (uint64_t i = 0; i < ROWS; i++)
        add(left, i, i, 1);
    Err err;
    assert_true(fingerprints_rest(left, &err));
    for (uint64_t i = ROWS; i-- > 0;)
        if (i % 1000 != 0) add(right, i, i % 500 == 0 ? i + ROWS : i, 1);
    for (uint64_t i = 0; i < 7; i++)
        add(right, ROWS + i, 0, 1);
    for (int round = 0; round < 2; round++) {
        Seen seen = compare(left, right);
        assert_int_equal(seen.left, ROWS / 1000);
        assert_int_equal(seen.right, 7);
        assert_int_equal(seen.different, ROWS / 1000);
        assert_int_equal(seen.both, ROWS - 2 * (ROWS / 1000));
        assert_int_equal(seen.counted, 2 * ROWS - ROWS / 1000 + 7);
    }
    assert_int_equal(files_in(spill_directory()), 0);
    fingerprints_free(left);
    fingerprints_free(right);
}

static void sets_compare_in_memory(void **state)
{
    (void)state;
    check_sets(FINGERPRINT_MEMORY_BYTES);
}

static void sets_compare_from_disk(void **state)
{
    (void)state;
    check_sets(sizeof(Fingerprint) * 1000); /* 50 runs */
    check_sets(0);                          /* 64 entries a run: the least */
}

/* Versions in any order, over several runs: the newest one counts. */
static void the_newest_version_counts(void **state)
{
    (void)state;
    FingerprintSet *left = fingerprints_new(spill_directory(), 0), *right = fingerprints_new(spill_directory(), 0);
    for (uint64_t key = 0; key < 100; key++)
        add(left, key, 1000 + key, 1);
    for (uint64_t seq = 0; seq < 10; seq++)
        for (uint64_t key = 0; key < 100; key++) {
            uint64_t at = (seq * 7 + key) % 10;
            add(right, key, at == 9 ? 1000 + key : at, at);
        }
    Seen seen = compare(left, right);
    assert_int_equal(seen.both, 100);
    assert_int_equal(seen.counted, 1100);
    add(right, 3, 3, 10);
    assert_int_equal(compare(left, right).different, 1);
    fingerprints_free(left);
    fingerprints_free(right);
}

static void a_saved_set_is_the_same(void **state)
{
    (void)state;
    Err err;
    char path[200];
    snprintf(path, sizeof path, "%s/saved", spill_directory());
    FingerprintSet *set = fingerprints_new(spill_directory(), 0), *loaded;
    for (uint64_t i = 0; i < 5000; i++)
        add(set, i, i, i);
    Fingerprint gone = {.key = hash_of(17), .row = FINGERPRINT_GONE, .seq = {.high = 99}};
    assert_true(fingerprints_add(set, &gone, &err));
    assert_true(fingerprints_save(set, path, &err));
    assert_true(fingerprints_load(path, &loaded, &err));
    assert_int_equal(fingerprints_count(loaded), 4999);
    Seen seen = compare(set, loaded);
    assert_int_equal(seen.both, 4999);
    assert_int_equal(seen.left, 1);
    assert_int_equal(seen.right + seen.different, 0);
    fingerprints_free(loaded);
    /* Cut short, or something else: refused. */
    assert_int_equal(truncate(path, 100), 0);
    assert_false(fingerprints_load(path, &loaded, &err));
    assert_int_equal(err.code, ERR_IO);
    assert_null(loaded);
    fingerprints_free(set);
    unlink(path);
    assert_int_equal(files_in(spill_directory()), 0);
}

static void a_missing_directory_is_named(void **state)
{
    (void)state;
    Err err = {0};
    bool ok = true;
    FingerprintSet *set = fingerprints_new("/nowhere/at/all", 0);
    for (uint64_t i = 0; ok && i < 100; i++) {
        Fingerprint print = {.key = hash_of(i)};
        ok = fingerprints_add(set, &print, &err);
    }
    assert_false(ok);
    assert_int_equal(err.code, ERR_IO);
    assert_non_null(strstr(err.message, "/nowhere/at/all"));
    fingerprints_free(set);
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(spill_directory());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_values_of_other_types_are_alike),
        cmocka_unit_test(other_values_are_not),
        cmocka_unit_test(parts_do_not_run_together),
        cmocka_unit_test(sets_compare_in_memory),
        cmocka_unit_test(sets_compare_from_disk),
        cmocka_unit_test(the_newest_version_counts),
        cmocka_unit_test(a_saved_set_is_the_same),
        cmocka_unit_test(a_missing_directory_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, remove_directory);
}
