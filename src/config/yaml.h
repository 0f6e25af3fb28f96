/* YAML text to node trees, by libyaml's events. Refused, with the place: text that is not YAML or not UTF-8, duplicate
 * keys (both places named), anchors, aliases, tags, keys that are not plain text, NUL characters, more than 16 MB,
 * nesting deeper than NODE_MAX_DEPTH, more than NODE_MAX_COUNT values. Documents with nothing in them are left out. */
#ifndef OPENETL_CONFIG_YAML_H
#define OPENETL_CONFIG_YAML_H

#include "config/node.h"

enum { YAML_MAX_BYTES = 16 * 1024 * 1024 };

typedef struct YamlDocuments {
    const Node **items; /* the root of each document */
    int count;
} YamlDocuments;

bool yaml_parse(const char *file, const char *text, size_t length, Arena *arena, YamlDocuments *documents, Err *err);

#endif
