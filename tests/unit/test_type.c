#include "data/type.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static Type parsed(Arena *arena, const char *text)
{
    Type type = {0};
    Err err = {0};
    if (!type_parse(text, arena, &type, &err)) fail_msg("%s: %s", text, err.message);
    return type;
}

static void every_type_reads_back_its_own_text(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "bool",
        "int16",
        "int32",
        "int64",
        "uint32",
        "uint64",
        "float32",
        "float64",
        "decimal(1, 0)",
        "utf8",
        "json",
        "decimal(38, 38)",
        "decimal(10, 2)",
        "binary",
        "uuid",
        "date32",
        "interval",
        "timestamp[us, tz=UTC]",
        "timestamp[us]",
        "list<int64>",
        "time64[us]",
        "list<utf8>",
        "list<list<decimal(38, 10)>>",
    };
    Arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        char text[96];
        Type type = parsed(&arena, TEXTS[i]);
        assert_string_equal(type_format(&type, text, sizeof text), TEXTS[i]);
    }
    arena_release(&arena);
}

static void blanks_case_and_short_names_are_free(void **state)
{
    (void)state;
    static const struct {
        const char *given, *meant;
    } CASES[] = {
        {"decimal(10,2)", "decimal(10, 2)"},
        {"  decimal ( 10 ,2 ) ", "decimal(10, 2)"},
        {"decimal(7)", "decimal(7, 0)"},
        {"int", "int32"},
        {"bigint", "int64"},
        {"text", "utf8"},
        {"bytes", "binary"},
        {"date", "date32"},
        {"time", "time64[us]"},
        {"timestamp", "timestamp[us]"},
        {"timestamptz", "timestamp[us, tz=UTC]"},
        {"Timestamp[us,tz=utc]", "timestamp[us, tz=UTC]"},
        {"list < decimal(8,2) >", "list<decimal(8, 2)>"},
    };
    Arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char text[96];
        Type type = parsed(&arena, CASES[i].given);
        assert_string_equal(type_format(&type, text, sizeof text), CASES[i].meant);
    }
    arena_release(&arena);
}

static void bad_types_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } CASES[] = {
        {"", "\"\" is not a type: there is no such type"},
        {"integre", "\"integre\" is not a type: there is no such type"},
        {"time stamp", "\"time stamp\" is not a type: there is no such type"},
        {"int64 int64", "\"int64 int64\" is not a type: there is no such type"},
        {"decimal", "\"decimal\" is not a type: a decimal needs its precision and scale"},
        {"decimal(0, 0)", "\"decimal(0, 0)\" is not a type: a decimal's precision is 1 to 38"},
        {"decimal(39, 2)", "\"decimal(39, 2)\" is not a type: a decimal's precision is 1 to 38"},
        {"decimal(10, 11)", "\"decimal(10, 11)\" is not a type: a decimal's scale is 0 to its precision"},
        {"decimal(10, -1)", "\"decimal(10, -1)\" is not a type: a decimal is written decimal(PRECISION, SCALE)"},
        {"decimal(1000, 1)", "\"decimal(1000, 1)\" is not a type: a decimal is written decimal(PRECISION, SCALE)"},
        {"decimal(10, 2", "\"decimal(10, 2\" is not a type: a decimal is written decimal(PRECISION, SCALE)"},
        {"list<>", "\"list<>\" is not a type: there is no such type"},
        {"list<int64", "\"list<int64\" is not a type: there is no such type"},
        {"list", "\"list\" is not a type: there is no such type"},
    };
    Arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Type type;
        Err err = {0};
        assert_false(type_parse(CASES[i].text, &arena, &type, &err));
        assert_int_equal(err.code, ERR_RESOURCE_INVALID);
        assert_string_equal(err.message, CASES[i].message);
        assert_true(strlen(err.fix) > 0);
    }
    char endless[5000];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    Type type;
    Err err = {0};
    assert_false(type_parse(endless, &arena, &type, &err));
    arena_release(&arena);
}

static void a_stored_type_holds_what_fits_unchanged(void **state)
{
    (void)state;
    static const struct {
        const char *stored, *incoming;
        bool holds;
    } CASES[] = {
        {"int64", "int32", true},
        {"int64", "uint32", true},
        {"int64", "uint64", false},
        {"int32", "int64", false},
        {"int32", "uint32", false},
        {"uint64", "uint32", true},
        {"uint64", "int16", false},
        {"float64", "float32", true},
        {"float64", "int32", true},
        {"float64", "int64", false},
        {"float32", "int32", false},
        {"float32", "float64", false},
        {"decimal(10, 2)", "decimal(8, 2)", true},
        {"decimal(10, 2)", "decimal(8, 0)", true},
        {"decimal(10, 2)", "decimal(9, 0)", false},
        {"decimal(10, 2)", "decimal(10, 3)", false},
        {"decimal(20, 0)", "uint64", true},
        {"decimal(19, 0)", "uint64", false},
        {"decimal(19, 0)", "int64", true},
        {"decimal(18, 0)", "int64", false},
        {"decimal(38, 20)", "float64", false},
        {"decimal(38, 20)", "utf8", false},
        {"utf8", "json", true},
        {"json", "utf8", false},
        {"utf8", "int64", false},
        {"utf8", "uuid", false},
        {"utf8", "list<utf8>", false},
        {"timestamp[us]", "timestamp[us, tz=UTC]", false},
        {"timestamp[us, tz=UTC]", "timestamp[us]", false},
        {"timestamp[us]", "date32", false},
        {"list<int64>", "list<int32>", true},
        {"list<int32>", "list<int64>", false},
        {"list<int64>", "int64", false},
        {"bool", "bool", true},
        {"interval", "interval", true},
    };
    Arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Type stored = parsed(&arena, CASES[i].stored), incoming = parsed(&arena, CASES[i].incoming);
        if (type_holds(&stored, &incoming) != CASES[i].holds)
            fail_msg("%s holds %s: expected %d", CASES[i].stored, CASES[i].incoming, CASES[i].holds);
    }
    arena_release(&arena);
}

static void equality_looks_at_every_part(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena);
    Type a = parsed(&arena, "list<decimal(10, 2)>"), b = parsed(&arena, "list<decimal(10,2)>");
    Type c = parsed(&arena, "list<decimal(10, 3)>"), d = parsed(&arena, "decimal(10, 2)");
    assert_true(type_equal(&a, &b));
    assert_false(type_equal(&a, &c));
    assert_false(type_equal(&a, &d));
    arena_release(&arena);
}

static void widths_are_those_of_the_header(void **state)
{
    (void)state;
    static const size_t WIDTHS[TYPE_COUNT] = {
        [TYPE_INT16] = 2,   [TYPE_INT32] = 4,     [TYPE_INT64] = 8,       [TYPE_UINT32] = 4,    [TYPE_UINT64] = 8,
        [TYPE_FLOAT32] = 4, [TYPE_FLOAT64] = 8,   [TYPE_DECIMAL] = 16,    [TYPE_UUID] = 16,     [TYPE_DATE] = 4,
        [TYPE_TIME] = 8,    [TYPE_TIMESTAMP] = 8, [TYPE_TIMESTAMPTZ] = 8, [TYPE_INTERVAL] = 16,
    };
    for (int i = 0; i < TYPE_COUNT; i++)
        assert_int_equal(type_width((TypeId)i), WIDTHS[i]);
    assert_true(type_has_offsets(TYPE_LIST) && type_has_offsets(TYPE_BINARY) && type_has_offsets(TYPE_UTF8));
    assert_false(type_has_offsets(TYPE_UUID));
    assert_true(type_is_text(TYPE_JSON) && !type_is_text(TYPE_BINARY));
    assert_true(type_orderable(TYPE_TIMESTAMP) && type_orderable(TYPE_UTF8));
    assert_false(type_orderable(TYPE_BOOL) || type_orderable(TYPE_LIST) || type_orderable(TYPE_INTERVAL));
}

static void a_copied_schema_outlives_its_original(void **state)
{
    (void)state;
    Arena first, second;
    arena_init(&first);
    arena_init(&second);
    Schema schema = {.fields = arena_array(&first, Field, 2), .count = 2};
    schema.fields[0] = (Field){.name = arena_strdup(&first, "id"), .type = {.id = TYPE_INT64}};
    schema.fields[1] = (Field){
        .name = arena_strdup(&first, "tags"), .type = parsed(&first, "list<list<decimal(5, 1)>>"), .nullable = true};
    Schema copy = schema_copy(&schema, &second);
    arena_release(&first);
    char text[96];
    assert_int_equal(schema_find(&copy, "tags"), 1);
    assert_int_equal(schema_find(&copy, "Tags"), -1);
    assert_true(copy.fields[1].nullable);
    assert_string_equal(type_format(&copy.fields[1].type, text, sizeof text), "list<list<decimal(5, 1)>>");
    arena_release(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_reads_back_its_own_text),
        cmocka_unit_test(blanks_case_and_short_names_are_free),
        cmocka_unit_test(bad_types_say_why),
        cmocka_unit_test(a_stored_type_holds_what_fits_unchanged),
        cmocka_unit_test(equality_looks_at_every_part),
        cmocka_unit_test(widths_are_those_of_the_header),
        cmocka_unit_test(a_copied_schema_outlives_its_original),
    };
    return cmocka_run_group_tests_name("type", tests, NULL, NULL);
}
