/* The table-driven reader: a table says which fields a map may have, of what type, and where each goes in a struct.
 * What the table does not name is refused, with the nearest name; what it names as not available in this version is
 * refused as such. Values are copied into the arena by pointer: the node tree must live as long as the struct. */
#ifndef OPENETL_CONFIG_FIELDS_H
#define OPENETL_CONFIG_FIELDS_H

#include "config/node.h"

#include <stddef.h>

/* What a field's own reader gets. */
typedef struct FieldSite {
    Arena *arena;
    const Node *node;      /* the value */
    const FieldPath *path; /* of the value */
} FieldSite;

typedef bool FieldRead(const FieldSite *site, void *target, Err *err);

typedef enum FieldKind {
    FIELD_TEXT,     /* const char *: text, not empty */
    FIELD_TEXTS,    /* const char **, count at `also`: a list of texts, not empty, each once */
    FIELD_BOOL,     /* bool */
    FIELD_INT,      /* int, from least to most */
    FIELD_COUNT,    /* int64_t, from least to most */
    FIELD_DURATION, /* int64_t microseconds, at least `least` */
    FIELD_SIZE,     /* int64_t bytes, at least `least` */
    FIELD_WORD,     /* an enum whose values count from 0 in the order of `words` */
    FIELD_MAP,      /* another table, into the same target */
    FIELD_OWN,      /* its own reader */
    FIELD_LATER,    /* known, not available in this version */
} FieldKind;

typedef struct FieldTable FieldTable;

typedef struct FieldRule {
    const char *name;
    FieldKind kind;
    bool required;
    size_t at;    /* where the value goes: FIELD_AT(Type, member) */
    size_t also;  /* a bool "it was given" (FIELD_TEXTS: the int count); 0: none */
    size_t place; /* a Place for the value's place; 0: none */
    int64_t least, most;
    const char *what; /* what is expected, where the type alone does not say it: "a cursor column" */
    const char *const *words;
    const char *const *later_words; /* known words that are not available in this version */
    const FieldTable *table;
    FieldRead *read;
    const char *instead; /* FIELD_LATER, later_words: what to do instead */
} FieldRule;

struct FieldTable {
    const FieldRule *items;
    int count;
};

/* Offsets are kept plus one, so that 0 can mean "none". */
#define FIELD_AT(Type, member) (offsetof(Type, member) + 1)
#define FIELD_TABLE(fields)                                                                                            \
    {                                                                                                                  \
        (fields), (int)(sizeof(fields) / sizeof *(fields))                                                             \
    }

/* Reads a map's fields in the file's order, then looks for missing ones. */
bool fields_read(const FieldTable *table, const FieldSite *site, void *target, Err *err);
/* RESOURCE_INVALID "expected WHAT, found …" at the node. */
bool field_wrong(const FieldSite *site, const char *what, Err *err);
bool field_expect(const FieldSite *site, NodeKind kind, const char *what, Err *err);
/* Text that is not empty. */
bool field_text(const FieldSite *site, const char *what, const char **text, Err *err);
/* One of `words` (ended by NULL). */
bool field_word(const FieldSite *site, const char *const *words, const char *const *later_words, const char *instead,
                int *index, Err *err);
/* "a, b or c" */
const char *words_text(const char *const *words, const char *last_joint, Arena *arena);

#endif
