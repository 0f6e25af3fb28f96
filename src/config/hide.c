#include "base/buf.h"
#include "config/secrets.h"

#include <ctype.h>
#include <strings.h>

/* Hiding is greedy: where it is not clear how far a password goes (an unescaped @, / or blank in it), more is hidden
 * rather than less. What it makes is for people to read, not to connect with. */

static const char *const SECRET_WORDS[] = {"password", "passwd",    "pwd",     "passphrase", "passcode",
                                           "secret",   "token",     "apikey",  "credential", "signature",
                                           "private",  "accesskey", "authkey", "sas",        "sig"};

/* A key is compared without its separators: api_key, access-key, ssl.password. */
static bool names_secret(const char *key, size_t length)
{
    char letters[64];
    size_t used = 0;
    for (size_t i = 0; i < length && used + 1 < sizeof letters; i++)
        if (isalnum((unsigned char)key[i])) letters[used++] = key[i];
    letters[used] = '\0';
    for (size_t i = 0; i < sizeof SECRET_WORDS / sizeof *SECRET_WORDS; i++) {
        bool whole = strlen(SECRET_WORDS[i]) <= 3;
        if (whole ? strcasecmp(letters, SECRET_WORDS[i]) == 0 : strcasestr(letters, SECRET_WORDS[i]) != NULL)
            return true;
    }
    return false;
}

static const char *end_of_quoted(const char *p)
{
    for (p++; *p != '\0'; p++) {
        if (*p == '\\' && p[1] != '\0')
            p++;
        else if (*p == '\'')
            return p + 1;
    }
    return p;
}

/* Where a value ends depends on the form its key came in: URL query, ODBC style, or libpq's "key=value key=value". */
static const char *end_of_value(const char *p, char lead)
{
    if (*p == '\'') return end_of_quoted(p);
    for (; *p != '\0'; p++) {
        if (lead == '?' || lead == '&') {
            if (*p == '&') break;
        } else if (lead == ';') {
            if (*p == ';') break;
        } else if (*p == '\\' && p[1] != '\0') {
            p++;
        } else if (isspace((unsigned char)*p)) {
            break;
        }
    }
    return p;
}

/* The length of "key =" with what blanks stand around the sign, when a secret's key begins here; else 0. */
static size_t secret_key_at(const char *p)
{
    size_t length = 0;
    while (isalnum((unsigned char)p[length]) || (p[length] != '\0' && strchr("_-.", p[length]) != NULL))
        length++;
    if (length == 0 || !names_secret(p, length)) return 0;
    while (p[length] == ' ' || p[length] == '\t')
        length++;
    if (p[length] != '=') return 0;
    length++;
    while (p[length] == ' ' || p[length] == '\t')
        length++;
    return length;
}

static void hide_pairs(const char *text, Buf *out)
{
    char lead = ' ';
    for (const char *p = text; *p != '\0';) {
        bool at_key = lead == '?' || lead == '&' || lead == ';' || isspace((unsigned char)lead);
        size_t key = at_key ? secret_key_at(p) : 0;
        if (key > 0) {
            buf_append(out, p, key);
            buf_puts(out, "***");
            p = end_of_value(p + key, lead);
            lead = 'x';
        } else {
            lead = *p;
            buf_putc(out, *p++);
        }
    }
}

/* Where the value of the first secret key begins, or NULL. */
static const char *first_pair(const char *text)
{
    char lead = ' ';
    for (const char *p = text; *p != '\0'; lead = *p++) {
        bool at_key = lead == '?' || lead == '&' || lead == ';' || isspace((unsigned char)lead);
        size_t key = at_key ? secret_key_at(p) : 0;
        if (key > 0) return p + key;
    }
    return NULL;
}

/* The ':' before a URL's password and the '@' after it; false when there is none. */
static bool find_userinfo(const char *text, const char **colon, const char **at)
{
    const char *scheme = strstr(text, "://");
    if (scheme == NULL) return false;
    *at = strrchr(scheme, '@');
    *colon = strchr(scheme + 3, ':');
    return *at != NULL && *colon != NULL && *colon < *at;
}

const char *secret_hide_url(const char *url, Arena *arena)
{
    const char *colon, *at;
    const char *text = url;
    if (find_userinfo(url, &colon, &at)) {
        /* an '@' inside a secret of the query ends no user info: what follows it may be the secret's rest */
        const char *pair = first_pair(url);
        text = arena_printf(arena, "%.*s:***%s", (int)(colon - url), url, pair != NULL && pair <= at ? "" : at);
    }
    Buf out;
    buf_init(&out, strlen(text) * 4 + 64);
    hide_pairs(text, &out);
    const char *hidden = arena_strndup(arena, buf_text(&out), out.length);
    buf_release(&out);
    return hidden;
}
