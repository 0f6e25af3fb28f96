/* Messages of pgoutput over arbitrary bytes: the first says how many columns' values are read as what, the second whether
 * they are within a stream; the rest is one message. Every tuple of it is walked, and each value goes to a column. */
#include "connectors/postgres/log_value.h"
#include "data/value.h"

typedef struct Choice {
    TypeId id;
    PgWire wire;
    PgLogForm form;
} Choice;

static const Choice CHOICES[] = {
    {TYPE_INT64, PG_WIRE_INT64, PG_LOG_AS_READ},   {TYPE_INT64, PG_WIRE_INT64, PG_LOG_INT},
    {TYPE_UTF8, PG_WIRE_TEXT, PG_LOG_NUMERIC},     {TYPE_UTF8, PG_WIRE_TEXT, PG_LOG_AS_READ},
    {TYPE_DECIMAL, PG_WIRE_NUMERIC, PG_LOG_MONEY}, {TYPE_DECIMAL, PG_WIRE_NUMERIC, PG_LOG_AS_READ},
    {TYPE_UTF8, PG_WIRE_TEXT, PG_LOG_BOOL},        {TYPE_FLOAT64, PG_WIRE_FLOAT64, PG_LOG_FLOAT4},
    {TYPE_BOOL, PG_WIRE_BOOL, PG_LOG_AS_READ},     {TYPE_TIMESTAMPTZ, PG_WIRE_TIMESTAMP, PG_LOG_AS_READ},
    {TYPE_BINARY, PG_WIRE_BYTES, PG_LOG_AS_READ},  {TYPE_INTERVAL, PG_WIRE_INTERVAL, PG_LOG_AS_READ},
    {TYPE_UUID, PG_WIRE_UUID, PG_LOG_AS_READ},     {TYPE_JSON, PG_WIRE_JSONB, PG_LOG_AS_READ},
};
enum { CHOICE_COUNT = sizeof CHOICES / sizeof *CHOICES };

static void read_value(const PgDatum *datum, uint8_t choice)
{
    const Choice *chosen = &CHOICES[choice % CHOICE_COUNT];
    Type element = {.id = chosen->id, .precision = 20, .scale = 2};
    bool list = (choice & 0x80) != 0;
    Field shown = {"a", list ? (Type){.id = TYPE_LIST, .element = &element} : element, true};
    Schema schema = {&shown, 1};
    PgLogField field = {.field = {"a", shown.type, chosen->wire, list, true}, .form = chosen->form, .money_scale = 2};
    BatchBuilder builder;
    PgFault fault;
    Buf text;
    builder_init(&builder, &schema, 1, 0);
    buf_init(&text, 64 * 1024 * 1024);
    if (pg_log_append(&field, datum, &builder.columns[0], &fault)) value_format(&builder.columns[0], 0, &text);
    builder_truncate(&builder, 0);
    buf_release(&text);
    builder_release(&builder);
}

static void walk(PgTuple tuple, uint8_t choice)
{
    for (int i = 0; tuple.at != NULL && i < tuple.count; i++) {
        PgDatum datum = pg_tuple_next(&tuple);
        if (datum.kind == 't' || datum.kind == 'b') read_value(&datum, (uint8_t)(choice + i));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PgMessage message;
    Err err;
    if (size < 2) return 0;
    uint8_t *copy = mem_alloc(size - 2); /* its own memory, so that a read past its end shows */
    memcpy(copy, data + 2, size - 2);
    if (pg_message_parse(copy, size - 2, (data[1] & 1) != 0, &message, &err)) {
        const uint8_t *at = message.at;
        for (int i = 0; message.kind == PG_MSG_RELATION && i < message.count; i++)
            if (strlen(pg_relation_next(&at).name) > size) __builtin_trap();
        walk(message.old_row, data[0]);
        walk(message.new_row, data[0]);
    }
    free(copy);
    return 0;
}
