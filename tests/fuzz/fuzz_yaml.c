/* resources_parse on any bytes: it must not crash, leak or hang; and what it accepts must survive the way through
 * canonical JSON text, as the state store takes it, unchanged. */
#include "config/resource.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *canonical_text(const Resource *resource)
{
    char *text = json_dumps(resource->canonical, JSON_SORT_KEYS | JSON_COMPACT);
    if (text == NULL) BUG("no canonical text");
    return text;
}

static void check_round_trip(const Resource *resource, Arena *arena)
{
    Err err;
    Resource again;
    char *before = canonical_text(resource);
    json_t *json = json_loads(before, 0, NULL);
    if (json == NULL) BUG("the canonical text is not JSON: %s", before);
    if (!resource_from_json(json, arena, &again, &err)) BUG("refused on the way back: %s: %s", err.message, before);
    json_decref(json);
    char *after = canonical_text(&again);
    if (strcmp(before, after) != 0) BUG("changed on the way: %s to %s", before, after);
    char first[13], second[13];
    resource_version(resource, first);
    resource_version(&again, second);
    if (strcmp(first, second) != 0) BUG("another version: %s", before);
    free(before);
    free(after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena arena;
    ResourceSet set;
    Err err = {0};
    arena_init(&arena);
    if (resources_parse("fuzz.yaml", (const char *)data, size, &arena, &set, &err)) {
        for (int i = 0; i < set.count; i++)
            check_round_trip(&set.items[i], &arena);
    } else if (err.code != ERR_RESOURCE_INVALID || strncmp(err.message, "fuzz.yaml:", 10) != 0) {
        BUG("an error without its place: %s", err.message);
    }
    arena_release(&arena);
    return 0;
}
