#include "catalog/drift.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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

static DestTable made_table(CatalogColumn *columns, int count)
{
    return (DestTable){.exists = true,
                       .columns = columns,
                       .column_count = count,
                       .has_id = true,
                       .has_seq = true,
                       .has_synced_at = true};
}

static Schema schema_of(Field *fields, int count)
{
    return (Schema){.fields = fields, .count = count};
}

static Type type_of(const char *text)
{
    Type type;
    Err err;
    assert_true(type_parse(text, &arena, &type, &err));
    return type;
}

/* What one stored column does with one incoming type: "" nothing, "widen", or the error. */
static const char *verdict(const char *stored, const char *incoming, DriftStorage storage)
{
    CatalogColumn column = {.name = "a", .type = type_of(stored)};
    Field field = {.name = "a", .type = type_of(incoming)};
    DestTable table = made_table(&column, 1);
    Schema schema = schema_of(&field, 1);
    Drift drift;
    Err err;
    if (!drift_check(&table, "shop.t", &schema, storage, false, &arena, &drift, &err)) {
        assert_int_equal(err.code, ERR_DEST_SCHEMA);
        return arena_strdup(&arena, err.message);
    }
    if (drift.count == 0) return "";
    assert_int_equal(drift.actions[0].kind, DRIFT_WIDEN);
    assert_ptr_equal(drift.actions[0].field, &field);
    assert_string_equal(drift.actions[0].stored, stored);
    return "widen";
}

static void test_types(void **state)
{
    (void)state;
    assert_string_equal(verdict("int64", "int64", NULL), "");
    assert_string_equal(verdict("int64", "int32", NULL), "");
    assert_string_equal(verdict("int32", "int64", NULL), "widen");
    assert_string_equal(verdict("decimal(10, 2)", "decimal(8, 2)", NULL), "");
    assert_string_equal(verdict("decimal(10, 2)", "decimal(12, 2)", NULL), "widen");
    assert_string_equal(verdict("float32", "float64", NULL), "widen");
    assert_string_equal(verdict("utf8", "json", NULL), "");
    assert_string_equal(verdict("list<int32>", "list<int64>", NULL), "widen");
    assert_string_equal(verdict("decimal(10, 2)", "decimal(10, 4)", NULL),
                        "table shop.t cannot hold the stream: column \"a\" is decimal(10, 2), which cannot hold "
                        "decimal(10, 4)");
    assert_string_equal(verdict("timestamp[us]", "timestamp[us, tz=UTC]", NULL),
                        "table shop.t cannot hold the stream: column \"a\" is timestamp[us], which cannot hold "
                        "timestamp[us, tz=UTC]");
    assert_string_equal(verdict("int64", "utf8", NULL),
                        "table shop.t cannot hold the stream: column \"a\" is int64, which cannot hold utf8");
}

static Type as_postgres(const Type *type)
{
    if (type->id == TYPE_UINT64) return (Type){.id = TYPE_DECIMAL, .precision = 20};
    return *type;
}

/* A destination that stores uint64 as decimal(20, 0) finds nothing to do the second time. */
static void test_storage(void **state)
{
    (void)state;
    assert_string_equal(verdict("decimal(20, 0)", "uint64", as_postgres), "");
    assert_string_equal(verdict("int64", "uint64", as_postgres), "widen");
    assert_string_equal(verdict("int64", "int64", as_postgres), "");
}

static void test_absent_table(void **state)
{
    (void)state;
    Field field = {.name = "a", .type = {.id = TYPE_INT64}};
    DestTable table = {0};
    Schema schema = schema_of(&field, 1);
    Drift drift;
    Err err;
    assert_true(drift_check(&table, "t", &schema, NULL, false, &arena, &drift, &err));
    assert_int_equal(drift.count, 0);
}

static void test_added_and_kept(void **state)
{
    (void)state;
    CatalogColumn columns[] = {{.name = "gone", .type = {.id = TYPE_UTF8}, .nullable = true},
                               {.name = "a", .type = {.id = TYPE_INT64}}};
    Field fields[] = {{.name = "a", .type = {.id = TYPE_INT64}}, {.name = "b", .type = {.id = TYPE_UTF8}}};
    DestTable table = made_table(columns, 2);
    Schema schema = schema_of(fields, 2);
    Drift drift;
    Err err;
    assert_true(drift_check(&table, "t", &schema, NULL, false, &arena, &drift, &err));
    assert_int_equal(drift.count, 1);
    assert_int_equal(drift.actions[0].kind, DRIFT_ADD);
    assert_ptr_equal(drift.actions[0].field, &fields[1]);
    assert_null(drift.actions[0].stored);
    /* Each row would have to fill it. */
    columns[0].nullable = false;
    assert_false(drift_check(&table, "t", &schema, NULL, false, &arena, &drift, &err));
    assert_string_equal(err.message,
                        "table t cannot hold the stream: column \"gone\" is NOT NULL without a default, and "
                        "the stream does not have it");
}

static void test_case(void **state)
{
    (void)state;
    CatalogColumn column = {.name = "Amount", .type = {.id = TYPE_INT64}, .nullable = true};
    Field field = {.name = "amount", .type = {.id = TYPE_INT64}};
    DestTable table = made_table(&column, 1);
    Schema schema = schema_of(&field, 1);
    Drift drift;
    Err err;
    assert_true(drift_check(&table, "t", &schema, NULL, true, &arena, &drift, &err));
    assert_int_equal(drift.count, 0);
    assert_true(drift_check(&table, "t", &schema, NULL, false, &arena, &drift, &err));
    assert_int_equal(drift.count, 1);
}

static void test_foreign_tables(void **state)
{
    (void)state;
    Schema schema = {0};
    Drift drift;
    Err err;
    DestTable view = {.exists = true, .is_view = true};
    assert_false(drift_check(&view, "shop.v", &schema, NULL, false, &arena, &drift, &err));
    assert_int_equal(err.code, ERR_DEST_SCHEMA);
    assert_string_equal(err.message, "shop.v is a view at the destination, so it cannot be written to");
    DestTable other = {.exists = true, .has_seq = true};
    assert_false(drift_check(&other, "shop.t", &schema, NULL, false, &arena, &drift, &err));
    assert_string_equal(err.message,
                        "table shop.t exists without _openetl_id _openetl_synced_at, so it was not made by "
                        "openetl");
    assert_true(strlen(err.fix) > 0);
}

static void test_all_bad_columns_are_named(void **state)
{
    (void)state;
    CatalogColumn columns[] = {{.name = "a", .type = {.id = TYPE_BOOL}}, {.name = "b", .type = {.id = TYPE_UUID}}};
    Field fields[] = {{.name = "a", .type = {.id = TYPE_INT64}}, {.name = "b", .type = {.id = TYPE_UTF8}}};
    DestTable table = made_table(columns, 2);
    Schema schema = schema_of(fields, 2);
    Drift drift;
    Err err;
    assert_false(drift_check(&table, "t", &schema, NULL, false, &arena, &drift, &err));
    assert_string_equal(err.message, "table t cannot hold the stream: column \"a\" is bool, which cannot hold int64; "
                                     "column \"b\" is uuid, which cannot hold utf8");
}

static void an_empty_table_takes_any_type(void **state)
{
    (void)state;
    CatalogColumn column = {.name = "a", .type = type_of("int64")};
    Field field = {.name = "a", .type = type_of("utf8")};
    DestTable table = made_table(&column, 1);
    Schema schema = schema_of(&field, 1);
    Drift drift;
    Err err;
    assert_false(drift_check(&table, "t", &schema, NULL, false, &arena, &drift, &err));
    table.empty = true;
    assert_true(drift_check(&table, "t", &schema, NULL, false, &arena, &drift, &err));
    assert_int_equal(drift.count, 1);
    assert_int_equal(drift.actions[0].kind, DRIFT_RETYPE);
    assert_string_equal(drift.actions[0].stored, "int64");
}

/* ---- what changed ------------------------------------------------------------------------------------------------ */

/* Columns as "id int64; note utf8 varchar(10)"; an empty text is none. */
static CatalogColumn *columns_of(const char *text, int *count)
{
    CatalogColumn *columns = arena_array(&arena, CatalogColumn, 16);
    char *copy = arena_strdup(&arena, text);
    *count = 0;
    for (char *part = copy; part != NULL && *part != '\0';) {
        char *next = strstr(part, "; "), *bang = NULL;
        if (next != NULL) *next = '\0';
        char *type = strchr(part, ' ');
        *type++ = '\0';
        char *native = strchr(type, '|');
        if (native != NULL) *native++ = '\0';
        bang = strchr(type, '!');
        if (bang != NULL) *bang = '\0';
        columns[(*count)++] =
            (CatalogColumn){.name = part, .type = type_of(type), .native = native, .nullable = bang == NULL};
        part = next == NULL ? NULL : next + 2;
    }
    return columns;
}

typedef struct Case {
    const char *before, *now, *table; /* before NULL: no run is known */
    DriftPolicy policy;
    bool fold_case, replaced, empty;
} Case;

/* Each change as "+widened: qty int32 -> int64 = applied", + for one at the source. */
static const char *seen(Case given)
{
    int stored_count;
    CatalogColumn *stored = columns_of(given.table, &stored_count);
    DestTable table = made_table(stored, stored_count);
    table.empty = given.empty;
    DriftView view = {.table = &table,
                      .known = given.before != NULL,
                      .fold_case = given.fold_case,
                      .replaced = given.replaced,
                      .policy = given.policy};
    view.now = columns_of(given.now, &view.now_count);
    view.before = columns_of(given.before == NULL ? "" : given.before, &view.before_count);
    DriftChanges changes;
    drift_see(&view, &arena, &changes);
    Buf out;
    buf_init(&out, BUF_SQL_MAX);
    for (int i = 0; i < changes.count; i++) {
        const DriftChange *change = &changes.items[i];
        buf_printf(&out, "%s%s%s = %s", i == 0 ? "" : "; ", change->at_source ? "+" : "", drift_text(change, &arena),
                   drift_outcome_name(change->outcome));
        if (change->kind == DRIFT_RENAMED) buf_printf(&out, "/%s", drift_outcome_name(change->gain));
    }
    const char *text = arena_strdup(&arena, buf_text(&out));
    buf_release(&out);
    return text;
}
#define SEEN(was, is, stored, ...) seen((Case){.before = (was), .now = (is), .table = (stored), __VA_ARGS__})

static void nothing_changed(void **state)
{
    (void)state;
    assert_string_equal(SEEN("id int64; a utf8", "id int64; a utf8", "id int64; a utf8"), "");
    assert_string_equal(SEEN("a utf8; id int64", "id int64; a utf8", "a utf8; id int64"), "");
    /* A column by hand, or one that is excluded; and a type that is wider by hand. */
    assert_string_equal(SEEN("id int64", "id int64", "id int64; mine utf8"), "dropped: mine utf8 = kept");
    assert_string_equal(SEEN("id int32", "id int32", "id int64"), "narrowed: id int64 -> int32 = fits");
}

static void columns_added(void **state)
{
    (void)state;
    const char *before = "id int64", *now = "id int64; note utf8";
    assert_string_equal(SEEN(before, now, "id int64"), "+added: note utf8 = applied");
    assert_string_equal(SEEN(NULL, now, "id int64"), "added: note utf8 = applied");
    assert_string_equal(SEEN(before, now, "id int64; note utf8"), "+added: note utf8 = fits");
    assert_string_equal(SEEN(before, now, "id int64", .policy = {.added = DRIFT_IGNORE}),
                        "+added: note utf8 = ignored");
    assert_string_equal(SEEN(now, now, "id int64", .policy = {.added = DRIFT_IGNORE}), "added: note utf8 = ignored");
    assert_string_equal(SEEN(before, now, "id int64", .policy = {.added = DRIFT_FAIL}), "+added: note utf8 = refused");
    assert_string_equal(SEEN(before, now, "id int64; note utf8", .policy = {.added = DRIFT_FAIL}),
                        "+added: note utf8 = fits");
    assert_string_equal(SEEN(before, now, "id int64", .replaced = true), "+added: note utf8 = replaced");
}

static void columns_dropped(void **state)
{
    (void)state;
    const char *before = "id int64; note utf8", *now = "id int64";
    assert_string_equal(SEEN(before, now, before), "+dropped: note utf8 = kept");
    assert_string_equal(SEEN(before, now, before, .policy = {.dropped = DRIFT_FAIL}), "+dropped: note utf8 = refused");
    assert_string_equal(SEEN(before, now, before, .replaced = true), "+dropped: note utf8 = replaced");
    assert_string_equal(SEEN(before, now, before, .policy = {.dropped = DRIFT_FAIL}, .replaced = true),
                        "+dropped: note utf8 = refused");
    assert_string_equal(SEEN(before, now, "id int64; note utf8!"), "+dropped: note utf8 = refused");
    assert_string_equal(SEEN(before, now, "id int64"), "+dropped: note utf8 = fits");
    /* What was dropped once is not refused later. */
    assert_string_equal(SEEN(now, now, before, .policy = {.dropped = DRIFT_FAIL}), "dropped: note utf8 = kept");
    assert_string_equal(SEEN(now, now, "id int64; mine utf8!"), "dropped: mine utf8 = refused");
}

static void columns_renamed(void **state)
{
    (void)state;
    const char *before = "id int64; note utf8; n int32", *now = "id int64; remark utf8; n int32";
    assert_string_equal(SEEN(before, now, before), "+renamed: note -> remark (as drop and add) = applied/applied");
    assert_string_equal(SEEN(before, now, before, .policy = {.added = DRIFT_IGNORE}),
                        "+renamed: note -> remark (as drop and add) = ignored/ignored");
    assert_string_equal(SEEN(before, now, before, .policy = {.added = DRIFT_FAIL}),
                        "+renamed: note -> remark (as drop and add) = refused/refused");
    assert_string_equal(SEEN(before, now, before, .policy = {.dropped = DRIFT_FAIL}),
                        "+renamed: note -> remark (as drop and add) = refused/applied");
    assert_string_equal(SEEN(before, now, before, .replaced = true),
                        "+renamed: note -> remark (as drop and add) = replaced/replaced");
    /* Of another type, or elsewhere: a drop and an add. */
    assert_string_equal(SEEN(before, "id int64; remark json; n int32", before),
                        "+added: remark json = applied; +dropped: note utf8 = kept");
    assert_string_equal(SEEN(before, "id int64; n int32; remark utf8", before),
                        "+added: remark utf8 = applied; +dropped: note utf8 = kept");
    /* Two at once, in their order. */
    assert_string_equal(SEEN("a utf8; b utf8; c int32", "x utf8; y utf8; c int32", "a utf8; b utf8; c int32"),
                        "+renamed: a -> x (as drop and add) = applied/applied; +renamed: b -> y (as drop and add) = "
                        "applied/applied");
    assert_string_equal(SEEN(NULL, now, before), "added: remark utf8 = applied; dropped: note utf8 = kept");
}

static void renamed_in_case_alone(void **state)
{
    (void)state;
    const char *before = "id int64; note utf8", *now = "id int64; Note utf8";
    assert_string_equal(SEEN(before, now, before, .fold_case = true),
                        "+renamed: note -> Note (as drop and add) = fits/fits");
    assert_string_equal(
        SEEN(before, now, before, .policy = {.dropped = DRIFT_FAIL, .added = DRIFT_FAIL}, .fold_case = true),
        "+renamed: note -> Note (as drop and add) = fits/fits");
    assert_string_equal(SEEN(before, now, before), "+renamed: note -> Note (as drop and add) = applied/applied");
}

static void types_widened(void **state)
{
    (void)state;
    assert_string_equal(SEEN("a int32", "a int64", "a int32"), "+widened: a int32 -> int64 = applied");
    assert_string_equal(SEEN("a int32", "a int64", "a int64"), "+widened: a int32 -> int64 = fits");
    assert_string_equal(SEEN("a int16", "a int64", "a int32"), "+widened: a int16 -> int64 = applied");
    assert_string_equal(SEEN(NULL, "a int64", "a int32"), "widened: a int32 -> int64 = applied");
    assert_string_equal(SEEN("a int32", "a int64", "a int32", .policy = {.widened = DRIFT_FAIL}),
                        "+widened: a int32 -> int64 = refused");
    assert_string_equal(SEEN("a int32", "a int64", "a int64", .policy = {.widened = DRIFT_FAIL}),
                        "+widened: a int32 -> int64 = fits");
    assert_string_equal(SEEN("a int32", "a int64", "a int32", .replaced = true),
                        "+widened: a int32 -> int64 = replaced");
    assert_string_equal(SEEN("a utf8|varchar(10)", "a utf8|varchar(20)", "a utf8"),
                        "+widened: a varchar(10) -> varchar(20) = fits");
    assert_string_equal(SEEN("a utf8|character varying(10)", "a utf8|text", "a utf8"),
                        "+widened: a character varying(10) -> text = fits");
}

static void types_narrowed(void **state)
{
    (void)state;
    assert_string_equal(SEEN("a int64", "a int32", "a int64"), "+narrowed: a int64 -> int32 = refused");
    assert_string_equal(SEEN("a int64", "a int32", "a int64", .policy = {.narrowed = DRIFT_KEEP}),
                        "+narrowed: a int64 -> int32 = kept");
    assert_string_equal(SEEN("a int64", "a int32", "a int64", .replaced = true),
                        "+narrowed: a int64 -> int32 = replaced");
    assert_string_equal(SEEN("a int64", "a int32", "a int64", .policy = {.narrowed = DRIFT_FAIL}, .replaced = true),
                        "+narrowed: a int64 -> int32 = refused");
    assert_string_equal(SEEN("a utf8|VARCHAR(20)", "a utf8|VARCHAR(10)", "a utf8"),
                        "+narrowed: a VARCHAR(20) -> VARCHAR(10) = refused");
    assert_string_equal(SEEN("a utf8|text", "a utf8|varchar (5)", "a utf8", .policy = {.narrowed = DRIFT_KEEP}),
                        "+narrowed: a text -> varchar (5) = kept");
    /* An enum that became text travels as before. */
    assert_string_equal(SEEN("a utf8|mood", "a utf8|text", "a utf8"), "");
}

static void types_changed(void **state)
{
    (void)state;
    const DriftPolicy keep = {.changed = DRIFT_KEEP, .narrowed = DRIFT_KEEP};
    assert_string_equal(SEEN("a int32", "a utf8", "a int32"), "+changed: a int32 -> utf8 = refused");
    /* No policy makes a stored type hold what it cannot. */
    assert_string_equal(SEEN("a int32", "a utf8", "a int32", .policy = keep), "+changed: a int32 -> utf8 = refused");
    assert_string_equal(SEEN("a decimal(10, 2)", "a decimal(10, 4)", "a decimal(10, 2)", .policy = keep),
                        "+changed: a decimal(10, 2) -> decimal(10, 4) = refused");
    assert_string_equal(SEEN("a date32", "a timestamp[us]", "a date32", .policy = keep),
                        "+changed: a date32 -> timestamp[us] = refused");
    /* Where it does, the word counts. */
    assert_string_equal(SEEN("a float32", "a int32", "a float64"), "+changed: a float32 -> int32 = refused");
    assert_string_equal(SEEN("a float32", "a int32", "a float64", .policy = keep),
                        "+changed: a float32 -> int32 = kept");
    assert_string_equal(SEEN("a int32", "a utf8", "a int32", .replaced = true), "+changed: a int32 -> utf8 = replaced");
    assert_string_equal(SEEN("a int32", "a utf8", "a int32", .policy = {.changed = DRIFT_FAIL}, .replaced = true),
                        "+changed: a int32 -> utf8 = refused");
    assert_string_equal(SEEN("a int32", "a utf8", "a int32", .empty = true), "+changed: a int32 -> utf8 = applied");
    assert_string_equal(SEEN(NULL, "a utf8", "a int32"), "changed: a int32 -> utf8 = refused");
}

/* The table kept the old column, so its type is what the new one meets. */
static void dropped_and_added_again(void **state)
{
    (void)state;
    assert_string_equal(SEEN("id int64", "id int64; a int32", "id int64; a utf8"),
                        "+changed: a utf8 -> int32 = refused");
    assert_string_equal(SEEN("id int64", "id int64; a int64", "id int64; a int32"),
                        "+widened: a int32 -> int64 = applied");
    assert_string_equal(SEEN("id int64", "id int64; a utf8", "id int64; a utf8"), "+added: a utf8 = fits");
}

static void refusals_say_what_to_do(void **state)
{
    (void)state;
    DriftChange change = {.kind = DRIFT_NARROWED,
                          .at_source = true,
                          .column = "qty",
                          .from = "int64",
                          .to = "int32",
                          .stored = "int64",
                          .outcome = DRIFT_REFUSED};
    DriftRefusal refusal = drift_refusal(&change, "orders", "shop.orders", &arena);
    assert_string_equal(refusal.field, "onDrift.narrowed");
    assert_string_equal(refusal.what, "stream \"orders\": column qty narrowed from int64 to int32 at the source, and "
                                      "onDrift.narrowed is fail");
    assert_string_equal(refusal.fix,
                        "onDrift: { narrowed: keep } goes on with int64 of shop.orders, which holds it; or read it as "
                        "before (columns: { types: { qty: \"int64\" } }), or start shop.orders anew (drop it, "
                        "then openetl state reset PIPELINE --stream orders), or write to another table with as");
    change.kind = DRIFT_CHANGED;
    change.to = "utf8";
    change.cannot_hold = true;
    refusal = drift_refusal(&change, "orders", "shop.orders", &arena);
    assert_null(refusal.field);
    assert_string_equal(refusal.what, "stream \"orders\": column qty changed from int64 to utf8 at the source, which "
                                      "int64 of shop.orders cannot hold");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_table_takes_any_type),
        cmocka_unit_test(nothing_changed),
        cmocka_unit_test(columns_added),
        cmocka_unit_test(columns_dropped),
        cmocka_unit_test(columns_renamed),
        cmocka_unit_test(renamed_in_case_alone),
        cmocka_unit_test(types_widened),
        cmocka_unit_test(types_narrowed),
        cmocka_unit_test(types_changed),
        cmocka_unit_test(dropped_and_added_again),
        cmocka_unit_test(refusals_say_what_to_do),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_storage),
        cmocka_unit_test(test_absent_table),
        cmocka_unit_test(test_added_and_kept),
        cmocka_unit_test(test_case),
        cmocka_unit_test(test_foreign_tables),
        cmocka_unit_test(test_all_bad_columns_are_named),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
