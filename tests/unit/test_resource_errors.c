/* The exact message of every kind of fault a resource file can have. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/resource.h"

/* Four lines before the spec's first. */
#define PIPELINE   "apiVersion: openetl.io/v1alpha1\nkind: Pipeline\nmetadata: { name: p }\nspec:\n"
#define CONNECTION "apiVersion: openetl.io/v1alpha1\nkind: Connection\nmetadata: { name: c }\nspec:\n"
#define ENDS       "  source: { ref: a, streams: \"*\" }\n  destination: { ref: b }\n"
/* A stream on line 8, its fields at column 9. */
#define STREAM "  source:\n    ref: a\n    streams:\n      - name: orders\n"
#define S0     "f.yaml:9:9: spec.source.streams[0]."

typedef struct Case {
    const char *text;
    const char *message;
    const char *fix; /* NULL: there is none */
} Case;

static void check_text(const char *text, size_t length, const char *message, const char *fix)
{
    Arena arena;
    ResourceSet set;
    Err err;
    arena_init(&arena);
    if (resources_parse("f.yaml", text, length, &arena, &set, &err)) fail_msg("accepted:\n%s", text);
    assert_string_equal(err.message, message);
    assert_string_equal(err.fix, fix != NULL ? fix : "");
    assert_int_equal(err.code, ERR_RESOURCE_INVALID);
    arena_release(&arena);
}

static void check(const Case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_text(cases[i].text, strlen(cases[i].text), cases[i].message, cases[i].fix);
}
#define CHECK(cases) check(cases, sizeof(cases) / sizeof *(cases))

static void unknown_fields(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {PIPELINE STREAM "        curser: updated_at\n", S0 "curser: unknown field; did you mean \"cursor\"?",
         "valid fields here: name, sync, cursor, overlap, key, columns, where, write, as, require, collapse, read, "
         "deletes, snapshot, onDrift"},
        {PIPELINE STREAM "        primary_key: [id]\n", S0 "primary_key: unknown field",
         "valid fields here: name, sync, cursor, overlap, key, columns, where, write, as, require, collapse, read, "
         "deletes, snapshot, onDrift"},
        {PIPELINE STREAM "        columns: { only: [a] }\n",
         "f.yaml:9:20: spec.source.streams[0].columns.only: unknown field", "valid fields here: exclude, types"},
        {PIPELINE ENDS "  delivery: { commit: { maxbytes: 1GB } }\n",
         "f.yaml:7:25: spec.delivery.commit.maxbytes: unknown field; did you mean \"maxBytes\"?",
         "valid fields here: interval, maxBytes, scope"},
        {CONNECTION "  conector: postgres\n", "f.yaml:5:3: spec.conector: unknown field; did you mean \"connector\"?",
         "valid fields here: connector, config"},
        {"apiversion: x\n", "f.yaml:1:1: apiversion: unknown field; did you mean \"apiVersion\"?",
         "valid fields here: apiVersion, kind, metadata, spec"},
        {"metadata: { name: a, annotations: {} }\n", "f.yaml:1:22: metadata.annotations: unknown field",
         "valid fields here: name, labels"},
        {"\"a b\": 1\n", "f.yaml:1:1: [\"a b\"]: unknown field", "valid fields here: apiVersion, kind, metadata, spec"},
        {"\"a\\tb\": 1\n", "f.yaml:1:1: [\"a\\x09b\"]: unknown field",
         "valid fields here: apiVersion, kind, metadata, spec"},
        {"\"\": 1\n", "f.yaml:1:1: [\"\"]: unknown field", "valid fields here: apiVersion, kind, metadata, spec"},
        {PIPELINE STREAM "        <<: {}\n", "f.yaml:9:9: spec.source.streams[0][\"<<\"]: unknown field",
         "valid fields here: name, sync, cursor, overlap, key, columns, where, write, as, require, collapse, read, "
         "deletes, snapshot, onDrift"},
    };
    CHECK(CASES);
}

static void duplicate_keys(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {PIPELINE "  source:\n    ref: a\n    streams: \"*\"\n    ref: b\n",
         "f.yaml:8:5: spec.source.ref: duplicate key; it stands first at f.yaml:6:5", "keep one of the two"},
        {"kind: Pipeline\nkind: Pipeline\nkind: Pipeline\n",
         "f.yaml:2:1: kind: duplicate key; it stands first at f.yaml:1:1", "keep one of the two"},
        {"b: 1\na: 1\nb: 2\na: 2\n", "f.yaml:3:1: b: duplicate key; it stands first at f.yaml:1:1",
         "keep one of the two"},
        {"a: 1\n\"a\": 2\n", "f.yaml:2:1: a: duplicate key; it stands first at f.yaml:1:1", "keep one of the two"},
        {CONNECTION "  connector: x\n  config: { password: hunter1, password: hunter2 }\n",
         "f.yaml:6:32: spec.config.password: duplicate key; it stands first at f.yaml:6:13", "keep one of the two"},
    };
    CHECK(CASES);
}

static void wrong_types(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {PIPELINE STREAM "        cursor: [a]\n",
         "f.yaml:9:17: spec.source.streams[0].cursor: expected a column's name (text), found a list", NULL},
        {PIPELINE STREAM "        cursor: 17\n",
         "f.yaml:9:17: spec.source.streams[0].cursor: expected a column's name (text), found the number 17",
         "put it in quotes if it is meant as text: \"17\""},
        {PIPELINE STREAM "        cursor: true\n",
         "f.yaml:9:17: spec.source.streams[0].cursor: expected a column's name (text), found true",
         "put it in quotes if it is meant as text: \"true\""},
        {PIPELINE STREAM "        cursor:\n",
         "f.yaml:9:16: spec.source.streams[0].cursor: expected a column's name (text), found nothing", NULL},
        {PIPELINE STREAM "        cursor: \"\"\n", "f.yaml:9:17: spec.source.streams[0].cursor: it is empty", NULL},
        {PIPELINE STREAM "        key: id\n",
         "f.yaml:9:14: spec.source.streams[0].key: expected a list of column names, found the text \"id\"",
         "write it as a list: [id]"},
        {PIPELINE STREAM "        key: []\n", "f.yaml:9:14: spec.source.streams[0].key: the list is empty", NULL},
        {PIPELINE STREAM "        key: [a, 1]\n",
         "f.yaml:9:18: spec.source.streams[0].key[1]: expected a name (text), found the number 1",
         "put it in quotes if it is meant as text: \"1\""},
        {PIPELINE STREAM "        key: [a, b, a]\n",
         "f.yaml:9:21: spec.source.streams[0].key[2]: \"a\" is in the list twice", NULL},
        {PIPELINE STREAM "        collapse: yes\n",
         "f.yaml:9:19: spec.source.streams[0].collapse: expected true or false, found the text \"yes\"", NULL},
        {PIPELINE STREAM "        collapse: \"true\"\n",
         "f.yaml:9:19: spec.source.streams[0].collapse: expected true or false, found the text \"true\"", NULL},
        {PIPELINE STREAM "        columns: [a]\n",
         "f.yaml:9:18: spec.source.streams[0].columns: expected a map of fields, found a list", NULL},
        {PIPELINE STREAM "        columns: { types: { total: 1.5 } }\n",
         "f.yaml:9:36: spec.source.streams[0].columns.types.total: expected a type such as \"decimal(38, 4)\", found "
         "the "
         "number 1.5",
         "put it in quotes if it is meant as text: \"1.5\""},
        {PIPELINE STREAM "        columns: { types: { \"a.b\": [] } }\n",
         "f.yaml:9:36: spec.source.streams[0].columns.types[\"a.b\"]: expected a type such as \"decimal(38, 4)\", "
         "found a list",
         NULL},
        {PIPELINE "  source: { ref: a, streams: orders }\n",
         "f.yaml:5:30: spec.source.streams: expected a list of streams, or \"*\" for all tables, found the text "
         "\"orders\"",
         NULL},
        {PIPELINE "  source: { ref: a, streams: [orders] }\n",
         "f.yaml:5:31: spec.source.streams[0]: expected a stream (a map with a name), found the text \"orders\"",
         "write - name: \"orders\""},
        {PIPELINE "  source: { ref: a, streams: [] }\n", "f.yaml:5:30: spec.source.streams: the list is empty",
         "name at least one stream, or write \"*\" for all tables"},
        {PIPELINE ENDS "  job: { retries: three }\n",
         "f.yaml:7:19: spec.job.retries: expected a whole number, found the text \"three\"", NULL},
        {PIPELINE ENDS "  job: { retries: 010 }\n",
         "f.yaml:7:19: spec.job.retries: expected a whole number, found the text \"010\"", NULL},
        {PIPELINE ENDS "  job: { retries: 1.5 }\n",
         "f.yaml:7:19: spec.job.retries: expected a whole number, found the number 1.5", NULL},
        {PIPELINE ENDS "  job: { retries: -1 }\n", "f.yaml:7:19: spec.job.retries: -1 is not between 0 and 1000", NULL},
        {PIPELINE ENDS "  job: { retries: 99999999999999999999 }\n",
         "f.yaml:7:19: spec.job.retries: expected a whole number, found the number 99999999999999999999", NULL},
        {CONNECTION "  connector: postgres\n  config: url\n",
         "f.yaml:6:11: spec.config: expected a map of settings, found the text \"url\"", NULL},
        {CONNECTION "  connector: postgres\n  config: { url: [hunter2] }\n",
         "f.yaml:6:18: spec.config.url: expected text, a number, true or false, found a list", NULL},
        {CONNECTION "  connector: postgres\n  config: { url: }\n",
         "f.yaml:6:18: spec.config.url: expected text, a number, true or false, found nothing", NULL},
        {CONNECTION "  connector: postgres\n  config: { \"\": x }\n",
         "f.yaml:6:13: spec.config[\"\"]: a setting's name is empty", NULL},
        {"- a\n", "f.yaml:1:1: expected a resource (apiVersion, kind, metadata, spec), found a list", NULL},
        {"hello\n", "f.yaml:1:1: expected a resource (apiVersion, kind, metadata, spec), found the text \"hello\"",
         NULL},
        {"~\n", "f.yaml:1:1: expected a resource (apiVersion, kind, metadata, spec), found nothing", NULL},
        {"metadata: { name: a, labels: { team: 5 } }\n",
         "f.yaml:1:38: metadata.labels.team: expected text, found the number 5", NULL},
        {"spec: x\n", "f.yaml:1:7: spec: expected a map of fields, found the text \"x\"", NULL},
    };
    CHECK(CASES);
}

static void long_values_are_shortened(void **state)
{
    (void)state;
    static const char HEAD[] = PIPELINE ENDS "  job: { size: ";
    char text[4096];
    size_t head = strlen(HEAD);
    memcpy(text, HEAD, head);
    for (size_t i = head; i < 3000; i += 2)
        memcpy(text + i, "\xC3\xA4", 2); /* never cut within a character */
    size_t end = head + (3000 - head + 1) / 2 * 2;
    memcpy(text + end, " }\n", 4);
    Arena arena;
    ResourceSet set;
    Err err;
    arena_init(&arena);
    assert_false(resources_parse("f.yaml", text, strlen(text), &arena, &set, &err));
    assert_true(strlen(err.message) < 200);
    assert_non_null(
        strstr(err.message, "f.yaml:7:16: spec.job.size: expected s, m, l or xl, found the text \"\xC3\xA4"));
    assert_non_null(strstr(err.message, "\xC3\xA4...\""));
    arena_release(&arena);
}

static void passwords_in_the_wrong_place_are_hidden(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {CONNECTION "  connector: postgresql://u:hunter2@h/d\n",
         "f.yaml:5:14: spec.connector: not a connector's name: lower-case letters, digits, _ and -",
         "write the name, such as postgres; a URL belongs in config"},
        {PIPELINE "  source: { ref: \"postgresql://u:hunter2@h/d\", streams: \"*\" }\n",
         "f.yaml:5:18: spec.source.ref: \"postgresql://u:***@h/d\" is not a resource's name: lower-case letters, "
         "digits and "
         "dashes, at most 63",
         NULL},
        {PIPELINE ENDS "  job: { size: \"postgresql://u:hunter2@h/d\" }\n",
         "f.yaml:7:16: spec.job.size: expected s, m, l or xl, found the text \"postgresql://u:***@h/d\"",
         "write one of: s, m, l, xl"},
    };
    CHECK(CASES);
}

static void missing_fields(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {"kind: Pipeline\n", "f.yaml:1:1: apiVersion: a required field is missing", "add apiVersion"},
        {"apiVersion: openetl.io/v1alpha1\n", "f.yaml:1:1: kind: a required field is missing", "add kind"},
        {"apiVersion: openetl.io/v1alpha1\nkind: Pipeline\nmetadata: {}\nspec: {}\n",
         "f.yaml:3:11: metadata.name: a required field is missing", "add name"},
        {"apiVersion: openetl.io/v1alpha1\nkind: Pipeline\nmetadata: { name: p }\n",
         "f.yaml:1:1: spec: a required field is missing", "add spec"},
        {CONNECTION "  config: {}\n", "f.yaml:5:3: spec.connector: a required field is missing", "add connector"},
        {PIPELINE "  destination: { ref: b }\n", "f.yaml:5:3: spec.source: a required field is missing", "add source"},
        {PIPELINE "  source: { ref: a, streams: \"*\" }\n", "f.yaml:5:3: spec.destination: a required field is missing",
         "add destination"},
        {PIPELINE "  source: { streams: \"*\" }\n", "f.yaml:5:11: spec.source.ref: a required field is missing",
         "add ref"},
        {PIPELINE "  source: { ref: a }\n", "f.yaml:5:11: spec.source.streams: a required field is missing",
         "add streams"},
        {PIPELINE "  source:\n    ref: a\n    streams:\n      - sync: full_refresh\n",
         "f.yaml:8:9: spec.source.streams[0].name: a required field is missing", "add name"},
    };
    CHECK(CASES);
}

static void words(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {PIPELINE STREAM "        sync: incremantal\n",
         "f.yaml:9:15: spec.source.streams[0].sync: expected full_refresh, incremental, compare or cdc, found the text "
         "\"incremantal\"; did "
         "you mean \"incremental\"?",
         "write one of: full_refresh, incremental, compare, cdc"},
        {PIPELINE STREAM "        write: upsert\n",
         "f.yaml:9:16: spec.source.streams[0].write: expected append, merge or overwrite, found the text \"upsert\"",
         "write one of: append, merge, overwrite"},
        {PIPELINE STREAM "        require: Exactly_once\n",
         "f.yaml:9:18: spec.source.streams[0].require: expected at_least_once, effectively_once or exactly_once, found "
         "the text "
         "\"Exactly_once\"; did you mean \"exactly_once\"?",
         "write one of: at_least_once, effectively_once, exactly_once"},
        {PIPELINE ENDS "  job: { size: z }\n",
         "f.yaml:7:16: spec.job.size: expected s, m, l or xl, found the text \"z\"", "write one of: s, m, l, xl"},
        {PIPELINE ENDS "  delivery: { commit: { scope: 1 } }\n",
         "f.yaml:7:32: spec.delivery.commit.scope: expected pipeline or stream, found the number 1", NULL},
        {"apiVersion: v1\n", "f.yaml:1:13: apiVersion: expected openetl.io/v1alpha1, found the text \"v1\"",
         "write one of: openetl.io/v1alpha1"},
        {"kind: Pipline\n",
         "f.yaml:1:7: kind: expected Connection or Pipeline, found the text \"Pipline\"; did you mean \"Pipeline\"?",
         "write one of: Connection, Pipeline"},
    };
    CHECK(CASES);
}

static void not_available_yet(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {PIPELINE STREAM "        snapshot: never\n", S0 "snapshot: sync: full_refresh has no snapshot",
         "take it out: it belongs to sync: cdc"},
        {PIPELINE STREAM "        onDrift: { added: keep }\n",
         "f.yaml:9:27: spec.source.streams[0].onDrift.added: expected apply, ignore or fail, found the text \"keep\"",
         "write one of: apply, ignore, fail"},
        {PIPELINE STREAM "        onDrift: { narrowed: kep }\n",
         "f.yaml:9:30: spec.source.streams[0].onDrift.narrowed: expected keep or fail, found the text \"kep\"; did you "
         "mean "
         "\"keep\"?",
         "write one of: keep, fail"},
        {PIPELINE STREAM "        onDrift: { narowed: keep }\n",
         "f.yaml:9:20: spec.source.streams[0].onDrift.narowed: unknown field; did you mean \"narrowed\"?",
         "valid fields here: added, dropped, widened, narrowed, changed"},
        {PIPELINE STREAM "        checks: []\n", S0 "checks: not available in this version", "take the field out"},
        {PIPELINE STREAM "        alerts: []\n", S0 "alerts: not available in this version", "take the field out"},
        {PIPELINE STREAM "        read: { replica: r }\n",
         "f.yaml:9:17: spec.source.streams[0].read.replica: not available in this version",
         "give it once for all streams, in spec.source.read"},
        {PIPELINE "  source: { ref: a, streams: \"*\", read: { maxRowsPerSecond: 5 } }\n  destination: { ref: b }\n",
         "f.yaml:5:61: spec.source.read.maxRowsPerSecond: not available with streams: \"*\" in this version",
         "name the streams (- name: \"*\" is one), or take the limit out"},
        {PIPELINE "  source: { ref: a, streams: \"*\", cdc: { slot: S-1 } }\n",
         "f.yaml:5:48: spec.source.cdc.slot: \"S-1\" is not a slot's name: lower-case letters, digits and underscores, "
         "at most 63",
         NULL},
        {PIPELINE "  destination: { ref: b, layout: log }\n",
         "f.yaml:5:34: spec.destination.layout: expected direct, base_buffer or log_view, found the text \"log\"",
         "write one of: direct, base_buffer, log_view"},
        {PIPELINE ENDS "  onDrift: { widened: ignore }\n",
         "f.yaml:7:23: spec.onDrift.widened: expected apply or fail, found the text \"ignore\"",
         "write one of: apply, fail"},
        {PIPELINE ENDS "  checks: { reconcil: { every: 1h } }\n",
         "f.yaml:7:13: spec.checks.reconcil: unknown field; did you mean \"reconcile\"?",
         "valid fields here: reconcile"},
        {PIPELINE ENDS "  checks: { reconcile: {} }\n",
         "f.yaml:7:24: spec.checks.reconcile.every: a required field is missing", "add every"},
        {PIPELINE ENDS "  checks: { reconcile: { every: daily } }\n",
         "f.yaml:7:33: spec.checks.reconcile.every: expected a duration such as 90s, 10m or 1h30m, found the text "
         "\"daily\"",
         "units are us, ms, s, m, h and d, without blanks"},
        {"kind: Mart\n", "f.yaml:1:7: kind: Mart is not available in this version", "take the document out"},
    };
    CHECK(CASES);
}

static void durations_sizes_schedules(void **state)
{
    (void)state;
    static const char UNITS[] = "units are us, ms, s, m, h and d, without blanks";
    static const char SIZES[] = "units are B, kB, MB, GB, TB (1000) and KiB, MiB, GiB, TiB (1024), without blanks";
    static const char OVERLAP[] =
        "a timestamp cursor takes a duration (units us, ms, s, m, h, d), an integer cursor a count";
    static const char SCHEDULE[] =
        "for example { every: 1h }; leave the schedule out for a pipeline that is run by hand";
    static const char CRON[] = "for example \"15 2 * * *\": every day at 02:15";
    static const Case CASES[] = {
        {PIPELINE ENDS "  delivery: { commit: { interval: 5 min } }\n",
         "f.yaml:7:35: spec.delivery.commit.interval: expected a duration such as 90s, 10m or 1h30m, found the text "
         "\"5 min\"",
         UNITS},
        {PIPELINE ENDS "  delivery: { commit: { interval: 300 } }\n",
         "f.yaml:7:35: spec.delivery.commit.interval: expected a duration such as 90s, 10m or 1h30m, found the number "
         "300",
         UNITS},
        {PIPELINE ENDS "  delivery: { commit: { interval: 0s } }\n",
         "f.yaml:7:35: spec.delivery.commit.interval: 0s is shorter than 1ms", NULL},
        {PIPELINE ENDS "  delivery: { resumePointTimeout: -1m }\n",
         "f.yaml:7:35: spec.delivery.resumePointTimeout: expected a duration such as 90s, 10m or 1h30m, found the text "
         "\"-1m\"",
         UNITS},
        {PIPELINE ENDS "  delivery: { commit: { maxBytes: 256mb } }\n",
         "f.yaml:7:35: spec.delivery.commit.maxBytes: expected a size such as 256MB, 64MiB or a number of bytes, found "
         "the "
         "text \"256mb\"",
         SIZES},
        {PIPELINE ENDS "  delivery: { commit: { maxBytes: 99999999999GB } }\n",
         "f.yaml:7:35: spec.delivery.commit.maxBytes: expected a size such as 256MB, 64MiB or a number of bytes, found "
         "the "
         "text \"99999999999GB\"",
         SIZES},
        {PIPELINE ENDS "  delivery: { commit: { maxBytes: 0 } }\n",
         "f.yaml:7:35: spec.delivery.commit.maxBytes: 0 is less than 1 bytes", NULL},
        {PIPELINE STREAM "        overlap: 10 minutes\n",
         "f.yaml:9:18: spec.source.streams[0].overlap: expected a duration such as 10m, or a count of 0 or more, found "
         "the "
         "text \"10 minutes\"",
         OVERLAP},
        {PIPELINE STREAM "        overlap: -5\n",
         "f.yaml:9:18: spec.source.streams[0].overlap: expected a duration such as 10m, or a count of 0 or more, found "
         "the "
         "number -5",
         OVERLAP},
        {PIPELINE ENDS "  schedule: {}\n",
         "f.yaml:7:13: spec.schedule: expected one of every, cron or continuous, found none", SCHEDULE},
        {PIPELINE ENDS "  schedule: { every: 1h, continuous: true }\n",
         "f.yaml:7:13: spec.schedule: expected one of every, cron or continuous, found more than one", SCHEDULE},
        {PIPELINE ENDS "  schedule: { every: 10ms }\n", "f.yaml:7:22: spec.schedule.every: 10ms is shorter than 1s",
         NULL},
        {PIPELINE ENDS "  schedule: { continuous: false }\n",
         "f.yaml:7:27: spec.schedule.continuous: expected true, found false",
         "leave the schedule out for a pipeline that is run by hand"},
        {PIPELINE ENDS "  schedule: { cron: \"15 2 * *\" }\n",
         "f.yaml:7:21: spec.schedule.cron: expected five fields (minute hour day month weekday), found 4", CRON},
        {PIPELINE ENDS "  schedule: { cron: \"60 2 * * *\" }\n",
         "f.yaml:7:21: spec.schedule.cron: the minute \"60\" is not a number from 0 to 59, a range (a-b), a step (*/n) "
         "or a "
         "list of these",
         CRON},
        {PIPELINE ENDS "  schedule: { cron: \"0 0 30 2 *\" }\n",
         "f.yaml:7:21: spec.schedule.cron: no month it names has such a day, so it would never run", CRON},
        {PIPELINE STREAM "        read: { parallel: 0 }\n",
         "f.yaml:9:27: spec.source.streams[0].read.parallel: 0 is not between 1 and 64", NULL},
        {PIPELINE STREAM "        read: { chunkRows: 0 }\n",
         "f.yaml:9:28: spec.source.streams[0].read.chunkRows: 0 is not between 1 and 1000000000", NULL},
    };
    CHECK(CASES);
}

static void rules_between_fields(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {PIPELINE STREAM "        sync: incremental\n",
         "f.yaml:9:15: spec.source.streams[0].cursor: sync: incremental needs a cursor",
         "add cursor: COLUMN, a column that grows with every change, such as updated_at"},
        {PIPELINE STREAM "        cursor: updated_at\n",
         S0 "cursor: only sync: incremental has a cursor, and this stream's sync is full_refresh",
         "add sync: incremental, or take cursor out"},
        {PIPELINE STREAM "        overlap: 10m\n        sync: full_refresh\n",
         S0 "overlap: only sync: incremental has an overlap, and this stream's sync is full_refresh",
         "add sync: incremental, or take overlap out"},
        {PIPELINE STREAM "        deletes: soft\n", S0 "deletes: a full refresh does not see single deletes",
         "take it out: write: overwrite drops what is gone from the source"},
        {PIPELINE STREAM "        deletes: soft\n        sync: incremental\n        cursor: c\n",
         S0 "deletes: an incremental read does not see deletes",
         "write deletes: { reconcile: 24h }, which compares keys that often"},
        {PIPELINE STREAM "        deletes: { as: hard }\n        sync: incremental\n        cursor: c\n",
         "f.yaml:9:18: spec.source.streams[0].deletes.reconcile: a required field is missing", "add reconcile"},
        {PIPELINE STREAM
         "        deletes: { reconcile: 1h, as: ignore }\n        sync: incremental\n        cursor: c\n",
         "f.yaml:9:39: spec.source.streams[0].deletes.as: expected soft or hard, found the text \"ignore\"",
         "write one of: soft, hard"},
        {PIPELINE STREAM "      - name: customers\n      - name: orders\n",
         "f.yaml:10:15: spec.source.streams[2].name: the stream name \"orders\" is taken by streams[0] (f.yaml:8:9)",
         "list each stream once"},
        {PIPELINE STREAM "      - name: \"a*\"\n      - name: \"a*\"\n",
         "f.yaml:10:15: spec.source.streams[2].name: the stream name \"a*\" is taken by streams[1] (f.yaml:9:9)",
         "list each stream once"},
        {PIPELINE STREAM "        as: t\n      - { name: customers, as: t }\n",
         "f.yaml:10:32: spec.source.streams[1].as: the destination table \"t\" is taken by streams[0] (f.yaml:8:9)",
         "give one of the two another table with as: TABLE"},
        {PIPELINE STREAM "        as: customers\n      - name: customers\n",
         "f.yaml:10:15: spec.source.streams[1].name: the destination table \"customers\" is taken by streams[0] "
         "(f.yaml:8:9)",
         "give one of the two another table with as: TABLE"},
    };
    CHECK(CASES);
}

static void names(void **state)
{
    (void)state;
    static const char FIX[] =
        "use lower-case letters, digits and dashes, a letter or digit at both ends, at most 63 characters";
    static const Case CASES[] = {
        {"metadata: { name: Shop_Orders }\n", "f.yaml:1:19: metadata.name: \"Shop_Orders\" is not a name", FIX},
        {"metadata: { name: -a }\n", "f.yaml:1:19: metadata.name: \"-a\" is not a name", FIX},
        {"metadata: { name: a- }\n", "f.yaml:1:19: metadata.name: \"a-\" is not a name", FIX},
        {"metadata: { name: a.b }\n", "f.yaml:1:19: metadata.name: \"a.b\" is not a name", FIX},
        {"metadata: { name: a123456789012345678901234567890123456789012345678901234567890123 }\n",
         "f.yaml:1:19: metadata.name: \"a123456789012345678901234567890123456789012345678901234567890123\" is not a "
         "name",
         FIX},
        {"metadata: { name: 7 }\n", "f.yaml:1:19: metadata.name: expected a name (text), found the number 7",
         "put it in quotes if it is meant as text: \"7\""},
    };
    CHECK(CASES);
}

static void placeholders(void **state)
{
    (void)state;
    static const char FIX[] =
        "${NAME} takes an environment variable, ${file:PATH} a file's content, $${ is a literal ${";
    static const char ELSEWHERE[] = "write the value itself here";
    static const Case CASES[] = {
        {PIPELINE STREAM "        where: \"region = '${REGION}'\"\n",
         "f.yaml:9:16: spec.source.streams[0].where: a placeholder (${…}) is allowed in a Connection's config values "
         "and alerts.webhook only",
         ELSEWHERE},
        {PIPELINE "  source: { ref: \"${A}\", streams: \"*\" }\n  destination: { ref: b }\n",
         "f.yaml:5:18: spec.source.ref: a placeholder (${…}) is allowed in a Connection's config values and "
         "alerts.webhook only",
         ELSEWHERE},
        {PIPELINE STREAM "        key: [id, \"${KEY}\"]\n",
         "f.yaml:9:19: spec.source.streams[0].key[1]: a placeholder (${…}) is allowed in a Connection's config values "
         "and alerts.webhook only",
         ELSEWHERE},
        {CONNECTION "  connector: \"${A}\"\n",
         "f.yaml:5:14: spec.connector: a placeholder (${…}) is allowed in a Connection's config values and "
         "alerts.webhook only",
         ELSEWHERE},
        {CONNECTION "  connector: x\n  config: { \"${A}\": b }\n",
         "f.yaml:6:13: spec.config[\"${A}\"]: a placeholder (${…}) is allowed in a Connection's config values and "
         "alerts.webhook only",
         ELSEWHERE},
        {"apiVersion: openetl.io/v1alpha1\nkind: Connection\nmetadata: { name: c, labels: { a: \"${B}\" } }\nspec: "
         "{}\n",
         "f.yaml:3:35: metadata.labels.a: a placeholder (${…}) is allowed in a Connection's config values and "
         "alerts.webhook only",
         ELSEWHERE},
        {CONNECTION "  connector: x\n  config: { url: \"${A:-hunter2}\" }\n",
         "f.yaml:6:18: spec.config.url: a default in a placeholder (${NAME:-…}) is not supported; set the variable",
         FIX},
        {CONNECTION "  connector: x\n  config: { url: \"${A\" }\n",
         "f.yaml:6:18: spec.config.url: the placeholder has no closing }; a literal ${ is written $${", FIX},
    };
    CHECK(CASES);
}

static void yaml_syntax(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {"a:\n\tb: 1\n", "f.yaml:2:1: not valid YAML: a tab cannot be used for indentation", "indent with spaces"},
        {"a: [1, 2\nb: 3\n",
         "f.yaml:2:2: not valid YAML: did not find expected ',' or ']', while parsing a flow sequence that begins at "
         "line 1",
         "check the indentation, the brackets and the quotes around this place"},
        {"a: b: c\n", "f.yaml:1:5: not valid YAML: mapping values are not allowed in this context",
         "check the indentation, and put quotes around text that holds \": \""},
        {"a: \"b\n",
         "f.yaml:2:1: not valid YAML: found unexpected end of stream, while scanning a quoted scalar that begins at "
         "line 1",
         "close the quotes, and double those inside"},
        {"a: @b\n",
         "f.yaml:1:4: not valid YAML: found character that cannot start any token, while scanning for the next token",
         "put quotes around text that begins with this character"},
        {"a: *\n",
         "f.yaml:1:5: not valid YAML: did not find expected alphabetic or numeric character, while scanning an alias",
         "put quotes around text that begins with *: \"*\""},
        {"a: &x 1\nb: *x\n", "f.yaml:1:4: a: an anchor (&x) is not supported",
         "write the value out where it is used; put quotes around text that begins with &"},
        {"a: *orders\n", "f.yaml:1:4: a: an alias (*orders) is not supported",
         "write the value out, or put quotes around text that begins with *: \"*orders\""},
        {"a: !!str 5\n", "f.yaml:1:4: a: a tag (tag:yaml.org,2002:str) is not supported",
         "take the tag out; put quotes around what is text"},
        {"a: [!x {}]\n", "f.yaml:1:5: a[0]: a tag (!x) is not supported",
         "take the tag out; put quotes around what is text"},
        {"? [a]\n: b\n", "f.yaml:1:3: a key must be plain text, not a list, a map or an alias", NULL},
        {"a: \"x\\0y\"\n", "f.yaml:1:4: a: text may not hold a NUL character", NULL},
        {"\"x\\0y\": 1\n", "f.yaml:1:1: text may not hold a NUL character", NULL},
    };
    CHECK(CASES);
}

static void bytes(void **state)
{
    (void)state;
    static const char UTF8[] = "save the file as UTF-8";
    static const Case CASES[] = {
        {"a: 1\n\xC3\xA4: \xFF\n", "f.yaml:2:4: not valid UTF-8: invalid leading UTF-8 octet (0xFF)", UTF8},
        {"a: \xC3(\n", "f.yaml:1:5: not valid UTF-8: invalid trailing UTF-8 octet (0x28)", UTF8},
        {"a: \xC3", "f.yaml:1:4: not valid UTF-8: incomplete UTF-8 octet sequence", UTF8},
        {"\xFF\xFE"
         "a",
         "f.yaml:1:1: the file is UTF-16, not UTF-8", UTF8},
        {"a: \x01\n", "f.yaml:1:4: a control character (U+0001) is not allowed",
         "write it as an escape in double quotes, such as \"\\u0001\", or take it out"},
        {"", "f.yaml: there is no resource in it",
         "write one (apiVersion, kind, metadata, spec), or leave the file out"},
        {"# nothing\n", "f.yaml: there is no resource in it",
         "write one (apiVersion, kind, metadata, spec), or leave the file out"},
        {"---\n---\n", "f.yaml: there is no resource in it",
         "write one (apiVersion, kind, metadata, spec), or leave the file out"},
    };
    CHECK(CASES);
    check_text("a: \0b\n", 7, "f.yaml:1:4: a control character (U+0000) is not allowed",
               "write it as an escape in double quotes, such as \"\\u0000\", or take it out");
}

static void limits(void **state)
{
    (void)state;
    char deep[400];
    memset(deep, '[', 200);
    memset(deep + 200, ']', 200);
    check_text(deep, sizeof deep, "f.yaml:1:66: nested deeper than 64 levels", NULL);
    size_t size = 16 * 1024 * 1024 + 1;
    char *large = mem_alloc(size);
    memset(large, '#', size);
    check_text(large, size, "f.yaml: larger than the 16 MiB a resource file may have", NULL);
    for (size_t i = 0; i < 1000001; i++)
        memcpy(large + i * 4, i % 64 == 63 ? "- a\n" : "- b\n", 4);
    check_text(large, (size_t)1000001 * 4, "f.yaml:1000000:3: the file holds more than 1000000 values", NULL);
    free(large);
}

static void the_same_resource_twice(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {CONNECTION "  connector: x\n---\n" PIPELINE ENDS "---\n" CONNECTION "  connector: y\n",
         "f.yaml:14:1: Connection c is defined twice; it stands first at f.yaml:1:1",
         "keep one of the two, or rename one"},
    };
    CHECK(CASES);
}

static void alerts(void **state)
{
    (void)state;
    static const char URL[] = "for example webhook: \"${ALERT_URL}\", with the URL in the environment";
    static const char WORDS[] = "for example command: [notify, --quiet]; for a shell: [sh, -c, \"…\"]";
    static const Case CASES[] = {
        {PIPELINE ENDS "  alerts: { webhok: x }\n",
         "f.yaml:7:13: spec.alerts.webhok: unknown field; did you mean \"webhook\"?",
         "valid fields here: webhook, command, hung, late"},
        {PIPELINE ENDS "  alerts: { webhook: 5 }\n", "f.yaml:7:22: spec.alerts.webhook: expected a URL (text)", URL},
        {PIPELINE ENDS "  alerts: { webhook: \"ftp://secret\" }\n",
         "f.yaml:7:22: spec.alerts.webhook: not a URL of http:// or https://", URL},
        {PIPELINE ENDS "  alerts: { webhook: \"https://a/${B\" }\n",
         "f.yaml:7:22: spec.alerts.webhook: the placeholder has no closing }; a literal ${ is written $${",
         "${NAME} takes an environment variable, ${file:PATH} a file's content, $${ is a literal ${"},
        {PIPELINE ENDS "  alerts: { command: notify }\n",
         "f.yaml:7:22: spec.alerts.command: expected a list of a program and its arguments, found the text \"notify\"",
         WORDS},
        {PIPELINE ENDS "  alerts: { command: [] }\n", "f.yaml:7:22: spec.alerts.command: the list is empty", ""},
        {PIPELINE ENDS "  alerts: { command: [notify, 5] }\n",
         "f.yaml:7:31: spec.alerts.command[1]: expected an argument (text), found the number 5",
         "put it in quotes if it is meant as text: \"5\""},
        {PIPELINE ENDS "  alerts: { command: [notify, \"${TOKEN}\"] }\n",
         "f.yaml:7:31: spec.alerts.command[1]: a placeholder (${…}) is not allowed in a command, whose arguments "
         "everybody "
         "on the machine can see",
         "let the program take the value from its environment, which is openetl's"},
        {PIPELINE ENDS "  alerts: { hung: 1ms }\n", "f.yaml:7:19: spec.alerts.hung: 1ms is shorter than 1s", ""},
        {PIPELINE ENDS "  alerts: { late: soon }\n",
         "f.yaml:7:19: spec.alerts.late: expected a duration such as 90s, 10m or 1h30m, found the text \"soon\"",
         "units are us, ms, s, m, h and d, without blanks"},
    };
    CHECK(CASES);
}

static void the_second_document(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {CONNECTION "  connector: x\n---\n" PIPELINE ENDS "  jobs: {}\n",
         "f.yaml:13:3: spec.jobs: unknown field; did you mean \"job\"?",
         "valid fields here: schedule, source, destination, delivery, job, onDrift, checks, alerts"},
    };
    CHECK(CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_fields),
        cmocka_unit_test(duplicate_keys),
        cmocka_unit_test(wrong_types),
        cmocka_unit_test(long_values_are_shortened),
        cmocka_unit_test(passwords_in_the_wrong_place_are_hidden),
        cmocka_unit_test(missing_fields),
        cmocka_unit_test(words),
        cmocka_unit_test(not_available_yet),
        cmocka_unit_test(durations_sizes_schedules),
        cmocka_unit_test(rules_between_fields),
        cmocka_unit_test(names),
        cmocka_unit_test(placeholders),
        cmocka_unit_test(yaml_syntax),
        cmocka_unit_test(bytes),
        cmocka_unit_test(limits),
        cmocka_unit_test(the_same_resource_twice),
        cmocka_unit_test(alerts),
        cmocka_unit_test(the_second_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
