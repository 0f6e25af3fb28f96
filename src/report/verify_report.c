#include "report/verify_report.h"

#include "report/table.h"

static const char *stream_notes(const StreamVerify *stream, Arena *arena)
{
    if (stream->not_compared != NULL) return arena_printf(arena, "not compared: %s", stream->not_compared);
    if (stream->replaced == 0) return "";
    return arena_printf(arena, "%s by a newer version, or known before",
                        text_plural(stream->replaced, "row replaced", "rows replaced", arena));
}

static void put_streams(const VerifyResult *result, bool color, Arena *arena, Buf *out)
{
    static const TableColumn COLUMNS[] = {{"stream", ALIGN_LEFT}, {"chunks", ALIGN_RIGHT}, {"rows", ALIGN_RIGHT},
                                          {"equal", ALIGN_RIGHT}, {"faulty", ALIGN_RIGHT}, {"", ALIGN_LEFT}};
    Table table;
    table_init(&table, arena, COLUMNS, 6);
    for (int i = 0; i < result->stream_count; i++) {
        const StreamVerify *stream = &result->streams[i];
        bool bad = stream->fault_count > 0 || stream->not_compared != NULL;
        table_cell(&table, stream->name);
        table_count_cell(&table, stream->chunks);
        table_count_cell(&table, stream->rows);
        table_count_cell(&table, stream->equal);
        table_color_cell(&table, bad ? COLOR_RED : COLOR_NONE, text_count(stream->fault_count, arena));
        table_cell(&table, stream_notes(stream, arena));
    }
    table_print(&table, "    ", true, color, out);
}

static void put_fault(const StreamVerify *stream, const ChunkFault *fault, Arena *arena, Buf *out)
{
    buf_printf(out, "    %s, chunk %lld (epoch %lld): ", text_visible(stream->name, arena), (long long)fault->chunk,
               (long long)fault->epoch);
    if (fault->different > 0)
        buf_printf(out, "%s of %s missing or changed", text_count(fault->different, arena),
                   text_plural(fault->rows, "row", "rows", arena));
    if (fault->extra > 0)
        buf_printf(out, "%s%s too many", fault->different > 0 ? "; " : "",
                   text_plural(fault->extra, "row", "rows", arena));
    if (fault->different == 0 && fault->extra == 0) buf_puts(out, "another checksum");
    buf_putc(out, '\n');
    for (int i = 0; i < fault->key_count; i++)
        buf_printf(out, "      %s  %s\n", text_visible(fault->keys[i].key, arena), fault->keys[i].what);
}

void verify_print(const VerifyResult *result, bool color, Arena *arena, Buf *out)
{
    if (result->stream_count == 0) {
        buf_puts(out, "  verify full: no row was committed, so there is nothing to compare\n");
        return;
    }
    buf_printf(out, "  verify full: %s\n",
               result->verified ? "every chunk is at the destination as it was committed"
                                : "the destination is not as it was committed");
    put_streams(result, color, arena, out);
    for (int i = 0; i < result->stream_count; i++)
        for (int j = 0; j < result->streams[i].fault_count; j++)
            put_fault(&result->streams[i], &result->streams[i].faults[j], arena, out);
}

static json_t *fault_json(const ChunkFault *fault)
{
    json_t *object = json_object(), *keys = json_array();
    json_object_set_new(object, "attempt", json_integer(fault->attempt));
    json_object_set_new(object, "chunk", json_integer(fault->chunk));
    json_object_set_new(object, "epoch", json_integer(fault->epoch));
    json_object_set_new(object, "rows", json_integer(fault->rows));
    json_object_set_new(object, "rows_different", json_integer(fault->different));
    json_object_set_new(object, "rows_extra", json_integer(fault->extra));
    for (int i = 0; i < fault->key_count; i++) {
        json_t *key = json_object();
        json_object_set_new(key, "key", json_shown(fault->keys[i].key));
        json_object_set_new(key, "is", json_string(fault->keys[i].what));
        json_array_append_new(keys, key);
    }
    json_object_set_new(object, "keys", keys);
    return object;
}

json_t *verify_json(const VerifyResult *result)
{
    json_t *object = json_object(), *streams = json_array();
    json_object_set_new(object, "verified", json_boolean(result->verified));
    for (int i = 0; i < result->stream_count; i++) {
        const StreamVerify *stream = &result->streams[i];
        json_t *item = json_object(), *faults = json_array();
        json_object_set_new(item, "stream", json_shown(stream->name));
        json_object_set_new(item, "table", json_shown(stream->table));
        json_object_set_new(item, "not_compared", json_shown(stream->not_compared));
        json_object_set_new(item, "chunks", json_integer(stream->chunks));
        json_object_set_new(item, "rows", json_integer(stream->rows));
        json_object_set_new(item, "chunks_equal", json_integer(stream->equal));
        json_object_set_new(item, "rows_replaced", json_integer(stream->replaced));
        for (int j = 0; j < stream->fault_count; j++)
            json_array_append_new(faults, fault_json(&stream->faults[j]));
        json_object_set_new(item, "faults", faults);
        json_array_append_new(streams, item);
    }
    json_object_set_new(object, "streams", streams);
    return object;
}
