/* A random history of a small table, cut into epochs at random and staged in any order within each: what a destination makes
 * of it is what the history says, by every layout and at both engines. The seed is printed when it is not. */
#include "changes_fixture.h"

enum { KEYS = 6, EPOCHS = 10, MOST_CHANGES = 9 };

typedef struct Model {
    bool live[KEYS + 1];
    char name[KEYS + 1][16], note[KEYS + 1][16];
    unsigned seed, seq;
    char rows[MOST_CHANGES * 2][96]; /* of the epoch */
    int count;
} Model;

static unsigned draw(Model *model, unsigned below)
{
    model->seed = model->seed * 1103515245u + 12345u;
    return (model->seed >> 16) % below;
}

static void say(Model *model, const char *key, const char *op, int low, const char *name, const char *note)
{
    snprintf(model->rows[model->count++], sizeof model->rows[0], "%s %s %u+%d %s %s", key, op, model->seq, low, name,
             note);
}

static void put_row(Model *model, int key, const char *op, int low, bool may_lack)
{
    char text[8], name[16], note[16];
    snprintf(text, sizeof text, "%d", key);
    snprintf(name, sizeof name, "n%u", model->seq);
    snprintf(note, sizeof note, draw(model, 4) == 0 ? "~" : "m%u", model->seq);
    bool lacks_name = may_lack && draw(model, 3) == 0, lacks_note = may_lack && draw(model, 2) == 0;
    if (!lacks_name) snprintf(model->name[key], sizeof model->name[key], "%s", name);
    if (!lacks_note) snprintf(model->note[key], sizeof model->note[key], "%s", note);
    say(model, text, op, low, lacks_name ? "=" : name, lacks_note ? "=" : note);
    model->live[key] = true;
}

static void put_delete(Model *model, int key)
{
    char text[8];
    snprintf(text, sizeof text, "%d", key);
    say(model, text, "delete", 0, "~", "~");
    model->live[key] = false;
}

/* The row moves to a key that is free. */
static void put_move(Model *model, int from, int to)
{
    put_delete(model, from);
    memcpy(model->name[to], model->name[from], sizeof model->name[to]);
    memcpy(model->note[to], model->note[from], sizeof model->note[to]);
    put_row(model, to, "update", 1, true);
}

static void change(Model *model)
{
    int key = 1 + (int)draw(model, KEYS), other = 1 + (int)draw(model, KEYS);
    model->seq++;
    if (draw(model, 25) == 0) {
        say(model, "~", "truncate", 0, "~", "~");
        memset(model->live, 0, sizeof model->live);
    } else if (!model->live[key]) {
        put_row(model, key, "insert", 0, false);
    } else if (!model->live[other] && draw(model, 3) == 0) {
        put_move(model, key, other);
    } else if (draw(model, 5) == 0) {
        put_delete(model, key);
    } else {
        put_row(model, key, "update", 0, true);
    }
}

/* The epoch's rows in one or two batches, in any order. */
static void stage_epoch(World *world, Model *model)
{
    for (int i = model->count - 1; i > 0; i--) {
        int j = (int)draw(model, (unsigned)i + 1);
        char row[96];
        memcpy(row, model->rows[i], sizeof row);
        memcpy(model->rows[i], model->rows[j], sizeof row);
        memcpy(model->rows[j], row, sizeof row);
    }
    int cut = (int)draw(model, (unsigned)model->count);
    for (int part = 0; part < 2; part++) {
        Buf rows;
        buf_init(&rows, 65536);
        for (int i = part == 0 ? 0 : cut; i < (part == 0 ? cut : model->count); i++)
            buf_printf(&rows, "%s%s", rows.length == 0 ? "" : ";", model->rows[i]);
        if (rows.length > 0) MUST(world, stage(world, buf_text(&rows)));
        buf_release(&rows);
    }
    model->count = 0;
}

static void is_model(World *world, const Model *model, unsigned seed)
{
    Buf want;
    buf_init(&want, 65536);
    for (int key = 1; key <= KEYS; key++)
        if (model->live[key])
            buf_printf(&want, "%s%d %s %s", want.length == 0 ? "" : ";", key, model->name[key], model->note[key]);
    const char *got = sql(world, "select id, name, note from shop.t where not _openetl_deleted order by id");
    if (strcmp(got, buf_text(&want)) != 0)
        fail_msg("%s, %s, deletes %s, seed %u, after seq %u\n  got  %s\n  want %s", world->connector->name,
                 layout_name(world->stream.layout), delete_mode_name(world->stream.deletes), seed, model->seq, got,
                 buf_text(&want));
    buf_release(&want);
}

static void follow(World *world, Layout layout, DeleteMode deletes, unsigned seed)
{
    Model model = {.seed = seed, .seq = 1};
    bool buffered = layout == LAYOUT_BASE_BUFFER;
    world->stream.layout = layout;
    world->stream.deletes = deletes;
    MUST(world, prepare(world));
    for (int key = 1; key <= KEYS; key += 2)
        put_row(&model, key, "read", 0, false);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (int i = (int)draw(&model, MOST_CHANGES - 3); i >= 0; i--)
            change(&model);
        stage_epoch(world, &model);
        MUST(world, commit_with(world, (EpochStream){0}));
        bool merge = buffered && (epoch == EPOCHS - 1 || draw(&model, 3) == 0);
        if (merge) MUST(world, compact(world));
        if (merge || (!buffered && epoch % 4 == 1)) is_model(world, &model, seed);
    }
    is_model(world, &model, seed);
}

static void test_histories(void **state)
{
    static const struct {
        Layout layout;
        DeleteMode deletes;
    } WAYS[] = {{LAYOUT_DIRECT, DELETES_SOFT},
                {LAYOUT_DIRECT, DELETES_HARD},
                {LAYOUT_BASE_BUFFER, DELETES_SOFT},
                {LAYOUT_BASE_BUFFER, DELETES_HARD},
                {LAYOUT_LOG_VIEW, DELETES_SOFT}};
    const char *given = getenv("HISTORIES");
    unsigned histories = given == NULL ? 1 : (unsigned)strtoul(given, NULL, 10);
    for (unsigned seed = 1; seed <= histories; seed++)
        for (size_t way = 0; way < sizeof WAYS / sizeof *WAYS; way++)
            for (int engine = 0; engine < ENGINE_COUNT; engine++) {
                World world;
                if (engine == ENGINE_POSTGRES && ((Server *)*state)->admin == NULL) continue;
                world_begin(&world, *state, engine);
                follow(&world, WAYS[way].layout, WAYS[way].deletes, seed);
                world_end(&world);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_histories)};
    return cmocka_run_group_tests(tests, server_start, server_stop);
}
