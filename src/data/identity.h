/* _openetl_id: which change a row is, the same wherever and whenever it is read again.
 *
 * XXH3-128 over: the stream's name, the generation (8 bytes), and for each non-null column in order of name: the name,
 * a type tag and the value in canonical form, each length-prefixed, key columns first. Canonical: all integers as
 * int64, decimals without trailing zeros, NaN as one pattern, others as they lie in the batch. So the id does not
 * depend on column order, session settings, widened integers or added columns that are NULL. Version 1 of the
 * algorithm; the version is hashed too. Thread: one Identity per feed.
 *
 * The same canonical form serves to compare rows (fingerprint.h): identity_init_part and identity_hash take some columns
 * of a batch alone, without a stream or a generation. */
#ifndef OPENETL_DATA_IDENTITY_H
#define OPENETL_DATA_IDENTITY_H

#include "base/buf.h"
#include "base/hash.h"
#include "data/batch.h"

/* A form in which two types of one column are the same bytes where they mean the same value. */
typedef enum IdentityForm {
    FORM_OWN,     /* as the type has it: integers of all widths, floats of both, utf8 and json are one form already */
    FORM_DECIMAL, /* integers as decimals, also within lists: uint64 beside decimal(20, 0) */
    FORM_FLOAT,   /* integers of up to 32 bits as floats, also within lists: a widened column */
    FORM_AS_TEXT  /* value.h's text; lists as JSON: a uuid beside text, a list beside JSON */
} IdentityForm;

/* A column that takes part in a hash of a part of a row. */
typedef struct IdentityPart {
    int column;         /* in the batch */
    const Field *field; /* whose name and type are hashed: not always the batch's own */
    IdentityForm form;
} IdentityPart;

typedef struct Identity {
    int columns;        /* a batch must have as many; of a part: at least */
    int *order;         /* columns in hashing order: key first, then by name */
    Buf *prefix;        /* a column: its name and type tag, encoded once */
    IdentityForm *form; /* of a part only: a column's */
    int count;
    Buf seed; /* algorithm version, stream, generation; of a part: the version */
    Buf row;  /* scratch */
    Buf text; /* scratch */
} Identity;

void identity_init(Identity *identity, const Schema *schema, const char *stream, uint64_t generation,
                   const char *const *key, int key_count);
void identity_release(Identity *identity);
/* Fills batch->ids. */
void identity_assign(Identity *identity, Batch *batch);
/* The same for changes from a log: which one each is says its place in the log (its _openetl_seq), so the id is a hash of stream,
 * generation and place. */
void identity_assign_log(const char *stream, uint64_t generation, Batch *batch);

/* A hash over these columns alone, in order of name; `parts` may be let go of afterwards. */
void identity_init_part(Identity *identity, const IdentityPart *parts, int count);
Hash128 identity_hash(Identity *identity, const Batch *batch, int64_t row);
/* The form in which values of two types of a column are compared. */
IdentityForm identity_form(const Type *a, const Type *b);

#endif
