#include "base/err.h"

#include <stdlib.h>
#include <string.h>

typedef struct CodeInfo {
    const char *word;
    int exit_code;
    bool retryable;
    const char *doc;
} CodeInfo;

static const CodeInfo CODES[ERR_COUNT] = {
    [ERR_NONE] = {"NONE", 0, false, ""},
#define CODE(word, exit, retryable, doc) [ERR_##word] = {#word, exit, retryable, doc},
#include "base/codes.def"
#undef CODE
};

bool err_set(Err *err, ErrCode code, const char *format, ...)
{
    va_list args;
    err->code = code;
    err->at[0] = '\0';
    err->fix[0] = '\0';
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return false;
}

void err_at(Err *err, const char *format, ...)
{
    char inner[sizeof err->at];
    memcpy(inner, err->at, sizeof inner);
    va_list args;
    va_start(args, format);
    vsnprintf(err->at, sizeof err->at, format, args);
    va_end(args);
    size_t used = strlen(err->at);
    if (strncmp(inner, err->at, used) == 0 && (inner[used] == '\0' || inner[used] == ',')) {
        memcpy(err->at, inner, sizeof inner); /* said already, by who called for it and by who was called */
        return;
    }
    if (inner[0] != '\0' && used + 3 < sizeof err->at)
        snprintf(err->at + used, sizeof err->at - used, ", %.*s", (int)(sizeof err->at - used - 3), inner);
}

void err_fix(Err *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(err->fix, sizeof err->fix, format, args);
    va_end(args);
}

void err_print(FILE *out, const Err *err)
{
    fprintf(out, "openetl: %s: %s\n", err_word(err->code), err->message);
    if (err->at[0] != '\0') fprintf(out, "  at:  %s\n", err->at);
    if (err->fix[0] != '\0') fprintf(out, "  fix: %s\n", err->fix);
}

const char *err_word(ErrCode code)
{
    return CODES[code].word;
}
int err_exit_code(ErrCode code)
{
    return CODES[code].exit_code;
}
bool err_retryable(ErrCode code)
{
    return CODES[code].retryable;
}
const char *err_doc(ErrCode code)
{
    return CODES[code].doc;
}

ErrCode err_from_word(const char *word)
{
    for (int i = 1; i < ERR_COUNT; i++)
        if (strcmp(CODES[i].word, word) == 0) return (ErrCode)i;
    return ERR_NONE;
}

_Noreturn void bug_at(const char *file, int line, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "openetl: BUG: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n  at:  %s:%d\n  fix: please report it, with the command and this message\n", file, line);
    exit(70);
}
