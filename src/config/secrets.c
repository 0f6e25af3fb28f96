#include "config/secrets.h"

#include "base/buf.h"
#include "base/fs.h"
#include "config/node.h"

#include <ctype.h>

enum { SECRET_FILE_MAX = 1024 * 1024, SECRET_VALUE_MAX = 16 * 1024 * 1024, NAME_SHOWN = 120 };

typedef enum PieceKind { PIECE_TEXT, PIECE_ESCAPED, PIECE_VARIABLE, PIECE_FILE, PIECE_WRONG } PieceKind;

/* The next piece of a text: literal bytes, "$${" (a literal "${"), or a placeholder. */
typedef struct Piece {
    PieceKind kind;
    const char *start; /* literal bytes, the variable's name, the file's path, or (wrong) the placeholder itself */
    size_t length;
    const char *next;
    const char *problem; /* PIECE_WRONG */
} Piece;

static Piece wrong(const char *at, size_t length, const char *problem)
{
    return (Piece){PIECE_WRONG, at, length, at + length, problem};
}

/* `at` points to "${". */
static Piece placeholder(const char *at)
{
    const char *inside = at + 2;
    const char *end = strchr(inside, '}');
    if (end == NULL) return wrong(at, strlen(at), "the placeholder has no closing }; a literal ${ is written $${");
    size_t whole = (size_t)(end + 1 - at), length = (size_t)(end - inside);
    if (length == 0) return wrong(at, whole, "the placeholder is empty; write ${NAME} or ${file:PATH}");
    if (strncmp(inside, "file:", 5) == 0) {
        if (length == 5) return wrong(at, whole, "the placeholder names no file");
        return (Piece){PIECE_FILE, inside + 5, length - 5, end + 1, NULL};
    }
    size_t name = 0;
    while (name < length && (isalnum((unsigned char)inside[name]) || inside[name] == '_'))
        name++;
    if (name > 0 && name < length && strchr(":-=?+", inside[name]) != NULL && !isdigit((unsigned char)*inside)) {
        if (inside[name] == ':' && (name + 1 == length || strchr("-=?+", inside[name + 1]) == NULL))
            return wrong(at, whole, "no such kind of placeholder; there are ${NAME} and ${file:PATH}");
        return wrong(at, whole, "a default in a placeholder (${NAME:-…}) is not supported; set the variable");
    }
    if (name < length || isdigit((unsigned char)*inside))
        return wrong(at, whole, "not a variable's name: letters, digits and _, not beginning with a digit");
    return (Piece){PIECE_VARIABLE, inside, length, end + 1, NULL};
}

static Piece next_piece(const char *text)
{
    if (strncmp(text, "$${", 3) == 0) return (Piece){PIECE_ESCAPED, text + 1, 2, text + 3, NULL};
    if (strncmp(text, "${", 2) == 0) return placeholder(text);
    const char *end = text + 1;
    while (*end != '\0' && strncmp(end, "${", 2) != 0 && strncmp(end, "$${", 3) != 0)
        end++;
    return (Piece){PIECE_TEXT, text, (size_t)(end - text), end, NULL};
}

bool secret_has_placeholder(const char *text)
{
    const char *start = strstr(text, "${");
    return start != NULL && strchr(start, '}') != NULL;
}

static bool syntax_error(const Piece *piece, const Place *place, const char *field, Err *err)
{
    char where[PLACE_TEXT_MAX];
    place_text(place, where);
    /* What a broken placeholder holds is not shown: it may be a password with a "${" in it, or a default value. */
    err_set(err, ERR_RESOURCE_INVALID, "%s: %s: %s", where, field, piece->problem);
    err_fix(err, "${NAME} takes an environment variable, ${file:PATH} a file's content, $${ is a literal ${");
    return false;
}

bool secret_check(const char *text, const Place *place, const char *field, Err *err)
{
    for (const char *p = text; *p != '\0';) {
        Piece piece = next_piece(p);
        if (piece.kind == PIECE_WRONG) return syntax_error(&piece, place, field, err);
        p = piece.next;
    }
    return true;
}

static bool missing(Err *err, const Place *place, const char *field, const char *placeholder_text, const char *why)
{
    char where[PLACE_TEXT_MAX];
    place_text(place, where);
    return err_set(err, ERR_SECRET_MISSING, "%s: %s: %s: %s", where, field, placeholder_text, why);
}

static bool take_variable(const Piece *piece, const Place *place, const char *field, Arena *arena, const char **value,
                          Err *err)
{
    const char *name = arena_strndup(arena, piece->start, piece->length);
    *value = getenv(name);
    if (*value != NULL) return true;
    missing(err, place, field, arena_printf(arena, "${%.*s}", NAME_SHOWN, name), "the environment variable is not set");
    err_fix(err, "export %.*s, or take the value from a file with ${file:PATH}", NAME_SHOWN, name);
    return false;
}

static bool take_file(const Piece *piece, const Place *place, const char *field, Arena *arena, const char **value,
                      Err *err)
{
    const char *path = arena_strndup(arena, piece->start, piece->length);
    const char *shown = arena_printf(arena, "${file:%.*s}", NAME_SHOWN, path);
    char *content;
    size_t length;
    Err cause;
    if (!fs_read_file(path, SECRET_FILE_MAX, arena, &content, &length, &cause)) {
        /* The cause begins with the path; only what follows it is news. */
        size_t skip = strlen(path) + 2;
        missing(err, place, field, shown, strlen(cause.message) > skip ? cause.message + skip : cause.message);
        err_fix(err, "make the file readable to this user; a relative path counts from the working directory");
        return false;
    }
    if (memchr(content, '\0', length) != NULL) {
        missing(err, place, field, shown, "the file holds a NUL character, so it is not text");
        err_fix(err, "put the value alone into the file, as text");
        return false;
    }
    if (length > 0 && content[length - 1] == '\n') content[--length] = '\0';
    if (length > 0 && content[length - 1] == '\r') content[--length] = '\0';
    *value = content;
    return true;
}

static bool resolve_pieces(const char *text, const Place *place, const char *field, Arena *arena, Buf *out, Err *err)
{
    for (const char *p = text; *p != '\0';) {
        Piece piece = next_piece(p);
        const char *value = piece.start;
        size_t length = piece.length;
        if (piece.kind == PIECE_WRONG) return syntax_error(&piece, place, field, err);
        if (piece.kind == PIECE_VARIABLE && !take_variable(&piece, place, field, arena, &value, err)) return false;
        if (piece.kind == PIECE_FILE && !take_file(&piece, place, field, arena, &value, err)) return false;
        if (piece.kind == PIECE_VARIABLE || piece.kind == PIECE_FILE) length = strlen(value);
        if (out->length + length >= out->max_bytes)
            return missing(err, place, field, "the value with its placeholders", "too long");
        buf_append(out, value, length);
        p = piece.next;
    }
    return true;
}

bool secret_resolve(const char *text, const Place *place, const char *field, Arena *arena, const char **value, Err *err)
{
    Buf out;
    buf_init(&out, SECRET_VALUE_MAX);
    bool resolved = resolve_pieces(text, place, field, arena, &out, err);
    if (resolved) *value = arena_strndup(arena, buf_text(&out), out.length);
    buf_release(&out);
    return resolved;
}
