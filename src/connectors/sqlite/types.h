/* SQLite's types. A column's type follows from its declared type alone (the table in README.md), never from a sample of
 * its values; each value's storage class is checked against it, because SQLite stores anything anywhere. Pure. */
#ifndef OPENETL_CONNECTORS_SQLITE_TYPES_H
#define OPENETL_CONNECTORS_SQLITE_TYPES_H

#include "base/buf.h"
#include "data/batch.h"

#include <sqlite3.h>

/* The type a declared type ("VARCHAR(20)", "", NULL) is delivered as. `note` says how it travels where that is not
 * plain, or NULL. */
Type lite_type(const char *declared, Arena *arena, const char **note);

/* Why a value does not fit, and the type that would take it as it is. */
typedef struct LiteMisfit {
    const char *why;
    const char *instead; /* "utf8" */
} LiteMisfit;

/* Appends the value in column `index` of the current row to `out`. `overridden`: the type is the stream's own choice
 * (columns.types), so that text is read as value_parse reads it. False: it does not fit, nothing is appended. Never
 * converts the statement's value, so that it can be looked at again. */
bool lite_value(sqlite3_stmt *stmt, int index, bool overridden, Column *out, LiteMisfit *misfit);
/* The same value as text for messages: at most 40 characters, quoted when it is text, with its storage class. */
void lite_describe(sqlite3_stmt *stmt, int index, Buf *out);

/* A date (in days), timestamp or timestamptz (in microseconds) as this room reads it: ISO text that begins with four
 * digits of a year. */
bool lite_moment(TypeId id, const char *text, size_t length, int64_t *value, const char **why);

#endif
