/* What the parsers of this folder share. Pure; any thread. */
#ifndef OPENETL_DATA_SCAN_H
#define OPENETL_DATA_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Says why a text is not a value; always false, so that `return refuse(...)` reads well. */
static inline bool refuse(const char **why, const char *reason)
{
    *why = reason;
    return false;
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Whether the text is the word, in upper or lower case. */
static inline bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && strncasecmp(text, word, length) == 0;
}

/* NaN and infinity as databases spell them. */
static inline bool is_nan_word(const char *text, size_t length)
{
    return is_word(text, length, "nan");
}

static inline bool is_infinity_word(const char *text, size_t length)
{
    return is_word(text, length, "infinity") || is_word(text, length, "inf");
}

#endif
