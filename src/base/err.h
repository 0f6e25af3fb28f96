/* Errors as values. Every function that can fail returns bool and takes `Err *err` as its last argument; on failure it
 * fills err and returns false. An Err is of fixed size and never allocates. Functions never log and return: whoever
 * stops handling the error prints it, once.
 *
 * An error has four parts: the code (codes.def), what happened, where (`at:`), and what to do (`fix:`).
 * Secrets never belong in any of them. */
#ifndef OPENETL_BASE_ERR_H
#define OPENETL_BASE_ERR_H

#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>

typedef enum ErrCode {
    ERR_NONE = 0,
#define CODE(word, exit, retryable, doc) ERR_##word,
#include "base/codes.def"
#undef CODE
    ERR_COUNT
} ErrCode;

typedef struct Err {
    ErrCode code;
    char message[1024];
    char at[512];
    char fix[768];
} Err;

/* Sets code and message, clears `at` and `fix`. Always returns false, so that `return err_set(...)` reads well. */
bool err_set(Err *err, ErrCode code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Puts a place before the places already noted: the outermost part comes first ("pipeline p, stream s, row 7"). */
void err_at(Err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets what to do about it, replacing an earlier fix. */
void err_fix(Err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints "openetl: CODE: message", then `  at:` and `  fix:` lines where they are set. */
void err_print(FILE *out, const Err *err);

const char *err_word(ErrCode code);
int err_exit_code(ErrCode code);
bool err_retryable(ErrCode code);
const char *err_doc(ErrCode code);
/* The code of a word, or ERR_NONE. */
ErrCode err_from_word(const char *word);

/* A fault in the program itself: says where, exits 70. */
_Noreturn void bug_at(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)

#endif
