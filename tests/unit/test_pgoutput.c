/* Messages of pgoutput made by hand: each kind as it should be, then cut short at every byte, and otherwise wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "connectors/postgres/pgoutput.h"

#include <string.h>

static Buf bytes;
static PgMessage message;
static Err err;

static void put_text(const char *text)
{
    buf_append(&bytes, text, strlen(text) + 1);
}

/* "n", "u", "t:text" or "b:bytes", until NULL. */
static void put_tuple(const char *const *values)
{
    int count = 0;
    while (values[count] != NULL)
        count++;
    buf_put_be16(&bytes, (uint16_t)count);
    for (int i = 0; i < count; i++) {
        buf_putc(&bytes, values[i][0]);
        if (values[i][1] != ':') continue;
        buf_put_be32(&bytes, (uint32_t)strlen(values[i] + 2));
        buf_append(&bytes, values[i] + 2, strlen(values[i] + 2));
    }
}
#define TUPLE(...) put_tuple((const char *const[]){__VA_ARGS__, NULL})

static void begin(char kind)
{
    buf_init(&bytes, 1024 * 1024);
    buf_putc(&bytes, kind);
}

/* In memory of its own, so that a read past the end shows under a sanitizer. */
static bool parse(size_t length, bool streaming)
{
    uint8_t *copy = mem_alloc(length);
    memcpy(copy, bytes.data, length);
    bool ok = pg_message_parse(copy, length, streaming, &message, &err);
    free(copy);
    return ok;
}

/* Parses it whole; then every beginning of it, and it with a byte too many, is refused. */
static void whole_or_nothing(bool streaming)
{
    for (size_t length = 0; length < bytes.length; length++) {
        assert_false(parse(length, streaming));
        assert_int_equal(err.code, ERR_SOURCE_QUERY);
    }
    buf_putc(&bytes, 0);
    assert_false(parse(bytes.length, streaming));
    bytes.length--;
    assert_true(pg_message_parse((const uint8_t *)bytes.data, bytes.length, streaming, &message, &err));
}

static void refused(void)
{
    assert_false(parse(bytes.length, false));
    assert_int_equal(err.code, ERR_SOURCE_QUERY);
    buf_release(&bytes);
}

static void datum_is(PgTuple *tuple, const char *want)
{
    PgDatum datum = pg_tuple_next(tuple);
    assert_int_equal(datum.kind, want[0]);
    if (want[1] != ':') return;
    assert_int_equal(datum.length, strlen(want + 2));
    assert_memory_equal(datum.bytes, want + 2, datum.length);
}

static void put_commit(void)
{
    buf_putc(&bytes, 0);
    buf_put_be64(&bytes, 0x1122334455667788);
    buf_put_be64(&bytes, 0x1122334455667799);
    buf_put_be64(&bytes, (uint64_t)-1000000);
}

static void bounds_of_transactions(void **state)
{
    (void)state;
    begin('B');
    buf_put_be64(&bytes, 0x1122334455667788);
    buf_put_be64(&bytes, 0);
    buf_put_be32(&bytes, 77);
    whole_or_nothing(false);
    assert_true(message.commit_lsn == 0x1122334455667788 && message.xid == 77);
    assert_int_equal(message.commit_us, 946684800000000);
    buf_release(&bytes);

    begin('C');
    put_commit();
    whole_or_nothing(false);
    assert_true(message.end_lsn == 0x1122334455667799);
    assert_int_equal(message.commit_us, 946684799000000);
    buf_release(&bytes);

    begin('S');
    buf_put_be32(&bytes, 5);
    buf_putc(&bytes, 1);
    whole_or_nothing(false);
    assert_true(message.xid == 5 && message.first);
    buf_release(&bytes);

    begin('c');
    buf_put_be32(&bytes, 5);
    put_commit();
    whole_or_nothing(false);
    assert_true(message.xid == 5 && message.commit_lsn == 0x1122334455667788);
    buf_release(&bytes);

    begin('A');
    buf_put_be32(&bytes, 5);
    buf_put_be32(&bytes, 6);
    whole_or_nothing(false);
    assert_true(message.xid == 5 && message.subxid == 6);
    buf_release(&bytes);

    begin('E');
    whole_or_nothing(false);
    buf_release(&bytes);
}

static void relations(void **state)
{
    (void)state;
    begin('R');
    buf_put_be32(&bytes, 9); /* of a streamed transaction */
    buf_put_be32(&bytes, 16384);
    put_text("shop");
    put_text("Ord\"ers");
    buf_putc(&bytes, 'd');
    buf_put_be16(&bytes, 2);
    buf_putc(&bytes, 1);
    put_text("id");
    buf_put_be32(&bytes, 23);
    buf_put_be32(&bytes, UINT32_MAX);
    buf_putc(&bytes, 0);
    put_text("");
    buf_put_be32(&bytes, 1700);
    buf_put_be32(&bytes, 655366);
    whole_or_nothing(true);
    const uint8_t *at = message.at;
    assert_true(message.xid == 9 && message.relation == 16384 && message.identity == 'd' && message.count == 2);
    assert_string_equal(message.schema, "shop");
    assert_string_equal(message.name, "Ord\"ers");
    PgRelationColumn column = pg_relation_next(&at);
    assert_true(column.identity && column.type == 23 && column.typmod == -1);
    column = pg_relation_next(&at);
    assert_true(!column.identity && column.type == 1700 && column.typmod == 655366);
    buf_release(&bytes);
}

static void rows(void **state)
{
    (void)state;
    begin('I');
    buf_put_be32(&bytes, 7);
    buf_putc(&bytes, 'N');
    TUPLE("t:1", "n", "b:\1\2", "t:");
    whole_or_nothing(false);
    assert_int_equal(message.new_row.count, 4);
    datum_is(&message.new_row, "t:1");
    datum_is(&message.new_row, "n");
    datum_is(&message.new_row, "b:\1\2");
    datum_is(&message.new_row, "t:");
    buf_release(&bytes);

    begin('U');
    buf_put_be32(&bytes, 7);
    buf_putc(&bytes, 'K');
    TUPLE("t:1", "n");
    buf_putc(&bytes, 'N');
    TUPLE("t:2", "u");
    whole_or_nothing(false);
    assert_int_equal(message.old_kind, 'K');
    datum_is(&message.old_row, "t:1");
    datum_is(&message.new_row, "t:2");
    datum_is(&message.new_row, "u");
    buf_release(&bytes);

    begin('U');
    buf_put_be32(&bytes, 7);
    buf_putc(&bytes, 'N');
    TUPLE("t:2");
    whole_or_nothing(false);
    assert_true(message.old_kind == 0 && message.new_row.count == 1);
    buf_release(&bytes);

    begin('D');
    buf_put_be32(&bytes, 3); /* of a sub-transaction */
    buf_put_be32(&bytes, 7);
    buf_putc(&bytes, 'O');
    TUPLE("t:2");
    whole_or_nothing(true);
    assert_true(message.xid == 3 && message.relation == 7 && message.old_kind == 'O');
    buf_release(&bytes);
}

static void others(void **state)
{
    (void)state;
    begin('T');
    buf_put_be32(&bytes, 2);
    buf_putc(&bytes, 1);
    buf_put_be32(&bytes, 7);
    buf_put_be32(&bytes, 8);
    whole_or_nothing(false);
    assert_int_equal(message.count, 2);
    buf_release(&bytes);

    begin('M');
    buf_putc(&bytes, 1);
    buf_put_be64(&bytes, 1);
    put_text("prefix");
    buf_put_be32(&bytes, 3);
    buf_append(&bytes, "abc", 3);
    whole_or_nothing(false);
    buf_release(&bytes);

    begin('Y');
    buf_put_be32(&bytes, 1);
    put_text("public");
    put_text("mood");
    whole_or_nothing(false);
    buf_release(&bytes);

    begin('O');
    buf_put_be64(&bytes, 1);
    put_text("elsewhere");
    whole_or_nothing(false);
    buf_release(&bytes);
}

static void hostile(void **state)
{
    (void)state;
    begin('b'); /* two-phase was not asked for */
    refused();
    begin(0);
    refused();
    begin('I');
    buf_put_be32(&bytes, 7);
    buf_putc(&bytes, 'K');
    TUPLE("n");
    refused();
    begin('I');
    buf_put_be32(&bytes, 7);
    buf_putc(&bytes, 'N');
    TUPLE("x");
    refused();
    begin('D');
    buf_put_be32(&bytes, 7);
    buf_putc(&bytes, 'N');
    TUPLE("n");
    refused();
    begin('I'); /* a value of 4 GiB */
    buf_put_be32(&bytes, 7);
    buf_putc(&bytes, 'N');
    buf_put_be16(&bytes, 1);
    buf_putc(&bytes, 't');
    buf_put_be32(&bytes, UINT32_MAX);
    refused();
    begin('T'); /* more tables than there are bytes */
    buf_put_be32(&bytes, UINT32_MAX);
    buf_putc(&bytes, 0);
    refused();
    begin('R');
    buf_put_be32(&bytes, 7);
    buf_append(&bytes, "no end", 6);
    refused();
    begin('R');
    buf_put_be32(&bytes, 7);
    put_text("");
    put_text("");
    buf_putc(&bytes, 0);
    buf_put_be16(&bytes, 0);
    refused();
    begin('B');
    buf_put_be64(&bytes, 0);
    buf_put_be64(&bytes, INT64_MAX);
    buf_put_be32(&bytes, 0);
    refused();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_of_transactions),
        cmocka_unit_test(relations),
        cmocka_unit_test(rows),
        cmocka_unit_test(others),
        cmocka_unit_test(hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
