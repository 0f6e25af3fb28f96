#include "config/suggest.h"

#include <stddef.h>

enum { LONGEST = 64 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Optimal string alignment: insertions, deletions, substitutions, swaps of neighbours. */
static int distance(const char *a, int a_length, const char *b, int b_length)
{
    int rows[3][LONGEST + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (int j = 0; j <= b_length; j++)
        above[j] = j;
    for (int i = 1; i <= a_length; i++) {
        row[0] = i;
        for (int j = 1; j <= b_length; j++) {
            int cost = a[i - 1] != b[j - 1];
            row[j] = least(least(above[j] + 1, row[j - 1] + 1), above[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        int *spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[b_length];
}

const char *suggest_name(const char *given, const char *const *valid, int count)
{
    size_t given_length = strlen(given);
    const char *best = NULL;
    int best_distance = LONGEST + 1;
    if (given_length == 0 || given_length > LONGEST) return NULL;
    for (int i = 0; i < count; i++) {
        size_t valid_length = strlen(valid[i]);
        if (valid_length == 0 || valid_length > LONGEST) continue;
        int longer = (int)(valid_length > given_length ? valid_length : given_length);
        int allowed = longer / 3 > 1 ? longer / 3 : 1;
        int found = distance(given, (int)given_length, valid[i], (int)valid_length);
        /* As far apart as they are long: nothing in common ("z" for "s"). */
        if (found > allowed || found >= longer || found >= best_distance) continue;
        best = valid[i];
        best_distance = found;
    }
    return best;
}
