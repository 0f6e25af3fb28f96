#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fs.h"
#include "config/secrets.h"

#include <unistd.h>

static const Place PLACE = {"shop.yaml", 5, 12};
static char dir[] = "/tmp/openetl-secrets-XXXXXX";

typedef struct Fixture {
    Arena arena;
    Err err;
    const char *value;
} Fixture;

static int setup(void **state)
{
    static Fixture fixture;
    fixture = (Fixture){0};
    arena_init(&fixture.arena);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    arena_release(&((Fixture *)*state)->arena);
    return 0;
}

static void resolves(Fixture *f, const char *text, const char *expected)
{
    if (!secret_resolve(text, &PLACE, "spec.config.url", &f->arena, &f->value, &f->err)) fail_msg("%s", f->err.message);
    assert_string_equal(f->value, expected);
    assert_true(secret_check(text, &PLACE, "spec.config.url", &f->err));
}

static void fails(Fixture *f, const char *text, ErrCode code, const char *message)
{
    assert_false(secret_resolve(text, &PLACE, "spec.config.url", &f->arena, &f->value, &f->err));
    assert_string_equal(f->err.message, message);
    assert_int_equal(f->err.code, code);
    assert_true(f->err.fix[0] != '\0');
}

static const char *file_with(Fixture *f, const char *name, const char *bytes, size_t length)
{
    const char *path = arena_printf(&f->arena, "%s/%s", dir, name);
    if (!fs_write_file(path, bytes, length, 0600, &f->err)) fail_msg("%s", f->err.message);
    return path;
}

static void plain_text_stays(void **state)
{
    Fixture *f = *state;
    resolves(f, "", "");
    resolves(f, "postgresql://localhost/shop", "postgresql://localhost/shop");
    resolves(f, "pa$word$", "pa$word$");
    resolves(f, "$NAME $$ $5 {x}", "$NAME $$ $5 {x}");
}

static void variables(void **state)
{
    Fixture *f = *state;
    setenv("OPENETL_T_ONE", "first", 1);
    setenv("OPENETL_T_TWO", "${OPENETL_T_ONE}$${", 1);
    setenv("OPENETL_T_EMPTY", "", 1);
    resolves(f, "${OPENETL_T_ONE}", "first");
    resolves(f, "a${OPENETL_T_ONE}b${OPENETL_T_ONE}", "afirstbfirst");
    resolves(f, "${OPENETL_T_EMPTY}", "");
    resolves(f, "${OPENETL_T_TWO}", "${OPENETL_T_ONE}$${"); /* a value is never looked into again */
}

static void escapes(void **state)
{
    Fixture *f = *state;
    setenv("OPENETL_T_ONE", "first", 1);
    resolves(f, "$${OPENETL_T_ONE}", "${OPENETL_T_ONE}");
    resolves(f, "a$${b", "a${b");
    resolves(f, "$$$${x", "$$${x");
    resolves(f, "$${${OPENETL_T_ONE}", "${first");
}

static void files(void **state)
{
    Fixture *f = *state;
    const char *one = file_with(f, "one", "s3cret\n", 7);
    resolves(f, arena_printf(&f->arena, "x${file:%s}y", one), "xs3crety");
    const char *two = file_with(f, "two", "s3cret\n\n", 8);
    resolves(f, arena_printf(&f->arena, "${file:%s}", two), "s3cret\n"); /* one newline only */
    const char *dos = file_with(f, "dos", "s3cret\r\n", 8);
    resolves(f, arena_printf(&f->arena, "${file:%s}", dos), "s3cret");
    const char *bare = file_with(f, "bare", "s3cret", 6);
    resolves(f, arena_printf(&f->arena, "${file:%s}", bare), "s3cret");
    const char *empty = file_with(f, "empty", "", 0);
    resolves(f, arena_printf(&f->arena, "${file:%s}", empty), "");
}

static void missing_values(void **state)
{
    Fixture *f = *state;
    unsetenv("OPENETL_T_NONE");
    fails(f, "postgresql://u:hunter2@h/${OPENETL_T_NONE}", ERR_SECRET_MISSING,
          "shop.yaml:5:12: spec.config.url: ${OPENETL_T_NONE}: the environment variable is not set");
    assert_string_equal(f->err.fix, "export OPENETL_T_NONE, or take the value from a file with ${file:PATH}");
    fails(f, "${file:/nonexistent/pw}", ERR_SECRET_MISSING,
          "shop.yaml:5:12: spec.config.url: ${file:/nonexistent/pw}: cannot be opened: No such file or directory");
    fails(f, "${file:/}", ERR_SECRET_MISSING, "shop.yaml:5:12: spec.config.url: ${file:/}: is a directory, not a file");
    const char *binary = file_with(f, "binary", "hunter2\0x", 9);
    fails(f, arena_printf(&f->arena, "${file:%s}", binary), ERR_SECRET_MISSING,
          arena_printf(&f->arena,
                       "shop.yaml:5:12: spec.config.url: ${file:%s}: the file holds a NUL character, so it is not text",
                       binary));
}

static void too_large(void **state)
{
    Fixture *f = *state;
    size_t size = 1024 * 1024 + 1;
    char *bytes = arena_alloc(&f->arena, size);
    memset(bytes, 'x', size);
    const char *path = file_with(f, "large", bytes, size);
    assert_false(
        secret_resolve(arena_printf(&f->arena, "${file:%s}", path), &PLACE, "f", &f->arena, &f->value, &f->err));
    assert_int_equal(f->err.code, ERR_SECRET_MISSING);
    assert_non_null(strstr(f->err.message, "larger than the 1048576 bytes allowed"));
}

static void broken_placeholders(void **state)
{
    Fixture *f = *state;
    static const struct {
        const char *text, *what;
    } CASES[] = {
        {"x${NAME", "the placeholder has no closing }; a literal ${ is written $${"},
        {"${}", "the placeholder is empty; write ${NAME} or ${file:PATH}"},
        {"${file:}", "the placeholder names no file"},
        {"${NAME:-hunter2}", "a default in a placeholder (${NAME:-…}) is not supported; set the variable"},
        {"${NAME-hunter2}", "a default in a placeholder (${NAME:-…}) is not supported; set the variable"},
        {"${NAME:?hunter2}", "a default in a placeholder (${NAME:-…}) is not supported; set the variable"},
        {"${vault:secret/pw}", "no such kind of placeholder; there are ${NAME} and ${file:PATH}"},
        {"${9X}", "not a variable's name: letters, digits and _, not beginning with a digit"},
        {"${A B}", "not a variable's name: letters, digits and _, not beginning with a digit"},
        {"${A${B}}", "not a variable's name: letters, digits and _, not beginning with a digit"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *message = arena_printf(&f->arena, "shop.yaml:5:12: spec.config.url: %s", CASES[i].what);
        fails(f, CASES[i].text, ERR_RESOURCE_INVALID, message);
        assert_null(strstr(f->err.message, "hunter2"));
        assert_false(secret_check(CASES[i].text, &PLACE, "spec.config.url", &f->err));
        assert_string_equal(f->err.message, message);
    }
}

static void seen_as_placeholders(void **state)
{
    (void)state;
    assert_true(secret_has_placeholder("${A}"));
    assert_true(secret_has_placeholder("x $${A} y"));
    assert_false(secret_has_placeholder("${A"));
    assert_false(secret_has_placeholder("$A {A}"));
    assert_false(secret_has_placeholder("} ${"));
}

static void hides(void **state)
{
    Fixture *f = *state;
    static const struct {
        const char *url, *hidden;
    } CASES[] = {
        {"postgresql://user:hunter2@host/db", "postgresql://user:***@host/db"},
        {"postgresql://user:hun@ter/2@host:5432/db", "postgresql://user:***@host:5432/db"},
        {"postgresql://:hunter2@host/db", "postgresql://:***@host/db"},
        {"postgresql://user@host:5432/db", "postgresql://user@host:5432/db"},
        {"postgresql://host:5432/db", "postgresql://host:5432/db"},
        {"postgresql://host/db?user=u&password=hun ter&sslmode=require",
         "postgresql://host/db?user=u&password=***&sslmode=require"},
        {"postgresql://user:x@host/db?sslpassword=hunter2", "postgresql://user:***@host/db?sslpassword=***"},
        {"postgresql://host:5432/db?password=hun@ter2", "postgresql://host:***"},
        {"postgresql://user:x@host/db?sslpassword=hun@ter2", "postgresql://user:***"},
        {"host=h password=hunter2 user=u", "host=h password=*** user=u"},
        {"host=h password = 'hun ter\\'2' user=u", "host=h password = *** user=u"},
        {"password='hunter2", "password=***"},
        {"password=hun\\ ter user=u", "password=*** user=u"},
        {"password=hun&ter;x user=u", "password=*** user=u"},
        {"Server=h;Pwd=hun ter;Database=d", "Server=h;Pwd=***;Database=d"},
        {"https://h/?X-Amz-Signature=abc&sig=def&region=x", "https://h/?X-Amz-Signature=***&sig=***&region=x"},
        {"s3://b?secret_access_key=abc", "s3://b?secret_access_key=***"},
        {"PASSWORD=HUNTER2", "PASSWORD=***"},
        {"/var/lib/shop.db", "/var/lib/shop.db"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_string_equal(secret_hide_url(CASES[i].url, &f->arena), CASES[i].hidden);
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) == NULL;
}

static int remove_dir(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"one", "two", "dos", "bare", "empty", "binary", "large"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", dir, NAMES[i]);
        unlink(path);
    }
    return rmdir(dir);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(plain_text_stays),
        TEST(variables),
        TEST(escapes),
        TEST(files),
        TEST(missing_values),
        TEST(too_large),
        TEST(broken_placeholders),
        TEST(seen_as_placeholders),
        TEST(hides),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
