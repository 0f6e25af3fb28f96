/* Placeholders in `config:` values: ${NAME} is an environment variable, ${file:PATH} a file's content (one trailing
 * newline taken off), $${ a literal ${. Resolved at the moment of use, into the arena given; the stored resource keeps
 * the placeholder. Errors name the placeholder and its place, never a value. */
#ifndef OPENETL_CONFIG_SECRETS_H
#define OPENETL_CONFIG_SECRETS_H

#include "config/resource.h"

/* SECRET_MISSING when a variable is unset or a file cannot be read. */
bool secret_resolve(const char *text, const Place *place, const char *field, Arena *arena, const char **value,
                    Err *err);
/* Whether every placeholder in the text is well formed; looks nothing up. RESOURCE_INVALID otherwise. */
bool secret_check(const char *text, const Place *place, const char *field, Err *err);
/* Whether the text holds something of the form ${…}: for places where placeholders are not allowed. */
bool secret_has_placeholder(const char *text);
/* The text with passwords hidden, for messages: "postgresql://user:***@host/db", "password=***". */
const char *secret_hide_url(const char *url, Arena *arena);

#endif
