/* The nearest valid name, for "did you mean": the smallest Damerau-Levenshtein distance, at most a third of the longer
 * name (at least 1). NULL when none is near. */
#ifndef OPENETL_CONFIG_SUGGEST_H
#define OPENETL_CONFIG_SUGGEST_H

const char *suggest_name(const char *given, const char *const *valid, int count);

#endif
