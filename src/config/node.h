/* The tree a resource is read from, whether it came from a YAML file (yaml.h) or from stored JSON: scalars, lists and
 * maps, each with its place. Nodes are immutable and live in the arena they were made in. Depth and number are bounded
 * by the makers, so walking a tree by recursion is safe.
 *
 * A scalar keeps its text as written ("5432", "1.10", "true"), so that a config value never changes on its way. */
#ifndef OPENETL_CONFIG_NODE_H
#define OPENETL_CONFIG_NODE_H

#include "config/resource.h"

enum { NODE_MAX_DEPTH = 64, NODE_MAX_COUNT = 1000000 };

typedef enum NodeKind { NODE_NULL, NODE_BOOL, NODE_INT, NODE_REAL, NODE_TEXT, NODE_LIST, NODE_MAP } NodeKind;

typedef struct Node Node;

typedef struct NodeEntry {
    const char *key;
    Place place; /* of the key */
    const Node *value;
} NodeEntry;

struct Node {
    NodeKind kind;
    Place place;
    const char *text; /* scalars */
    int64_t integer;  /* NODE_INT */
    bool boolean;     /* NODE_BOOL */
    int count;        /* of items or entries */
    const Node **items;
    NodeEntry *entries;
};

/* The way from the document's root to a node: on the stack of whoever walks the tree. `key` NULL: an index of a list.
 */
typedef struct FieldPath {
    const struct FieldPath *parent;
    const char *key;
    int index;
} FieldPath;

enum { PATH_TEXT_MAX = 384, SHOWN_MAX = 96, PLACE_TEXT_MAX = 256 };

/* "spec.source.streams[0].cursor"; a key that is not a plain word is shown as ["a b"]. Empty for the root (NULL). */
void path_text(const FieldPath *path, char out[PATH_TEXT_MAX]);
/* "shop.yaml:12:7", or "stored" where there is no line. A long file name keeps its end. */
void place_text(const Place *place, char out[PLACE_TEXT_MAX]);
/* Text made fit for a message: shortened at a whole character, control characters escaped, passwords of URLs hidden. */
void shown_text(const char *text, char out[SHOWN_MAX]);
/* What a node is, for "expected …, found …": `the text "abc"`, `the number 5`, "true", "a list", "a map", "nothing". */
void node_shown(const Node *node, char out[SHOWN_MAX + 16]);

/* RESOURCE_INVALID with "FILE:LINE:COLUMN: FIELD.PATH: what". */
bool config_error(Err *err, const Place *place, const FieldPath *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The entry of a key, or NULL. `map` may be NULL or another kind of node. */
const NodeEntry *node_entry(const Node *map, const char *key);
const Node *node_get(const Node *map, const char *key);

/* A plain (unquoted) YAML scalar's kind by the core schema of YAML 1.2, where booleans are only true and false. A
 * number with leading zeros is text: YAML 1.1 and 1.2 read it differently. `integer` is set for NODE_INT. */
NodeKind scalar_kind(const char *text, int64_t *integer);

/* A new reference. `scalars_as_text`: numbers and booleans become strings with their text. */
json_t *node_to_json(const Node *node, bool scalars_as_text);
/* Every node's place is `place`. False when the JSON is deeper or larger than a node tree may be, or holds a NUL. */
bool node_from_json(const json_t *json, Place place, Arena *arena, const Node **node, Err *err);

#endif
