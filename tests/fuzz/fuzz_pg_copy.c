/* The COPY BINARY decoder over arbitrary bytes. The first bytes choose the columns, the rest are messages, each behind
 * two bytes of length; what was decoded is formatted, so that a value a column should not hold shows too. */
#include "connectors/postgres/decode.h"
#include "data/value.h"

enum { COLUMNS_MAX = 6 };

typedef struct Choice {
    TypeId id;
    PgWire wire;
} Choice;

static const Choice CHOICES[] = {
    {TYPE_BOOL, PG_WIRE_BOOL},           {TYPE_INT16, PG_WIRE_INT16},
    {TYPE_INT32, PG_WIRE_INT32},         {TYPE_UINT32, PG_WIRE_INT32},
    {TYPE_INT64, PG_WIRE_INT64},         {TYPE_FLOAT32, PG_WIRE_FLOAT32},
    {TYPE_FLOAT64, PG_WIRE_FLOAT64},     {TYPE_DECIMAL, PG_WIRE_NUMERIC},
    {TYPE_UTF8, PG_WIRE_TEXT},           {TYPE_JSON, PG_WIRE_JSONB},
    {TYPE_BINARY, PG_WIRE_BYTES},        {TYPE_UUID, PG_WIRE_UUID},
    {TYPE_DATE, PG_WIRE_DATE},           {TYPE_TIME, PG_WIRE_TIME},
    {TYPE_TIMESTAMP, PG_WIRE_TIMESTAMP}, {TYPE_TIMESTAMPTZ, PG_WIRE_TIMESTAMP},
    {TYPE_INTERVAL, PG_WIRE_INTERVAL},
};
enum { CHOICE_COUNT = sizeof CHOICES / sizeof *CHOICES };

typedef struct Table {
    Field columns[COLUMNS_MAX];
    Type elements[COLUMNS_MAX];
    PgField fields[COLUMNS_MAX];
    int count;
} Table;

static void choose_column(Table *table, uint8_t choice, uint8_t digits)
{
    static const char *const NAMES[COLUMNS_MAX] = {"a", "b", "c", "d", "e", "f"};
    const Choice *chosen = &CHOICES[choice % CHOICE_COUNT];
    int i = table->count++;
    Type type = {.id = chosen->id};
    if (type.id == TYPE_DECIMAL) {
        type.precision = (uint8_t)(1 + digits % DECIMAL_MAX_PRECISION);
        type.scale = (uint8_t)(digits / DECIMAL_MAX_PRECISION % (type.precision + 1));
    }
    table->elements[i] = type;
    bool list = (choice & 0x80) != 0;
    table->columns[i] = (Field){NAMES[i], list ? (Type){.id = TYPE_LIST, .element = &table->elements[i]} : type, true};
    /* text that nobody vouches for is checked, as it is for a server that takes any bytes */
    table->fields[i] = (PgField){NAMES[i], table->columns[i].type, chosen->wire, list, true};
}

static void decode_all(Table *table, const uint8_t *data, size_t size)
{
    Schema schema = {table->columns, table->count};
    const int key[] = {table->count - 1};
    BatchBuilder builder;
    PgDecoder decoder;
    Err err;
    builder_init(&builder, &schema, 0, 0);
    pg_decoder_init(&decoder, table->fields, table->count, key, 1);
    bool ok = true;
    while (ok && size >= 2) {
        size_t length = (size_t)(data[0] << 8 | data[1]);
        data += 2;
        size -= 2;
        if (length > size) length = size;
        uint8_t *message = mem_alloc(length); /* its own memory, so that a read past its end shows */
        if (length > 0) memcpy(message, data, length);
        ok = pg_decode_message(&decoder, message, length, &builder, &err);
        free(message);
        data += length;
        size -= length;
    }
    Batch *batch = builder_finish(&builder, (Seq){0, 0});
    Buf text;
    buf_init(&text, 64 * 1024 * 1024);
    for (int64_t row = 0; batch != NULL && row < batch->rows; row++)
        for (int i = 0; i < table->count; i++) {
            buf_clear(&text);
            value_format(&batch->columns[i], row, &text);
        }
    buf_release(&text);
    batch_free(batch);
    builder_release(&builder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Table table = {.count = 0};
    if (size < 1) return 0;
    int count = 1 + data[0] % COLUMNS_MAX;
    if (size < 1 + 2 * (size_t)count) return 0;
    for (int i = 0; i < count; i++)
        choose_column(&table, data[1 + 2 * i], data[2 + 2 * i]);
    decode_all(&table, data + 1 + 2 * count, size - 1 - 2 * (size_t)count);
    return 0;
}
