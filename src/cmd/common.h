/* What commands share: printing answers and errors, opening the state store, reading resource files. Everything opened
 * here closes when the invocation's arena is released. */
#ifndef OPENETL_CMD_COMMON_H
#define OPENETL_CMD_COMMON_H

#include "base/buf.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "config/resource.h"
#include "state/state.h"

#include <jansson.h>

enum { ANSWER_DONE = 0, ANSWER_NO = 1, ANSWER_MAX_BYTES = 1 << 30 };

/* Prints the error: text on standard error and, under --output json when no answer was printed, {"error": …} on
 * standard output. Returns its exit code. */
int command_fail(Invocation *invocation, const Err *err);
/* USAGE in one call. */
int command_usage(Invocation *invocation, const char *fix, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Print an answer to standard output; take what they are given. */
void answer_text(Invocation *invocation, Buf *text);
void answer_json(Invocation *invocation, json_t *answer);
bool wants_json(const Invocation *invocation);
/* Neither --no-color nor NO_COLOR. */
bool colors_allowed(const Invocation *invocation);

/* --limit, or `fallback`. */
bool command_limit(const Invocation *invocation, int fallback, int *limit, Err *err);

bool command_state(Invocation *invocation, bool read_only, State **state, Err *err);
/* Where files go that are too large for memory: TMPDIR, or beside the state store where that is a file, or /tmp. */
const char *command_spill_directory(const Invocation *invocation);
/* The resources of -f; RESOURCE_INVALID when they hold none. Without -f an empty set. */
bool command_files(Invocation *invocation, ResourceSet *set, Err *err);
/* -f's resources before the stored ones: what a name may refer to. */
ResourceSet resources_join(const ResourceSet *given, const ResourceSet *stored, Arena *arena);
/* A resource by name, or RESOURCE_NOT_FOUND with the nearest name. */
bool resource_require(const ResourceSet *set, ResourceKind kind, const char *name, Arena *arena,
                      const Resource **resource, Err *err);

#endif
