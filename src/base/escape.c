#include <string.h>

#include "base/escape.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */
#define ESCAPE_BYTES_MAX 8          /* the longest replacement of one character, and its end */

/* Says what stands for a character below 0x80, in room for ESCAPE_BYTES_MAX. @return NULL to leave it as it is */
typedef const char *(*ascii_rule_t)(unsigned char c, char *room);

/* Follows the table of well-formed byte sequences (Unicode Standard, table 3-7). @return 0 when there is none here */
static unsigned utf8_length(const unsigned char *s)
{
    unsigned length = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    unsigned char low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;

    for (unsigned i = 1; i < length; i++) {
        if (s[i] < (i == 1 ? low : 0x80) || s[i] > (i == 1 ? high : 0xBF)) {
            return 0;
        }
    }
    return length;
}

/* Writes the escaped text when `to` is given. @return its length; *changed says whether it differs from the text */
static apr_size_t escape_into(char *to, const char *text, ascii_rule_t rule, int *changed)
{
    const unsigned char *s = (const unsigned char *)text;
    apr_size_t written = 0;

    while (*s) {
        char room[ESCAPE_BYTES_MAX];
        unsigned length = utf8_length(s);
        const char *instead = length == 0 ? REPLACEMENT : length == 1 ? rule(*s, room) : NULL;
        const char *from = instead ? instead : (const char *)s;
        apr_size_t bytes = instead ? strlen(instead) : length;

        if (to) {
            memcpy(to + written, from, bytes);
        }
        *changed |= instead != NULL;
        written += bytes;
        s += length ? length : 1;
    }
    return written;
}

static const char *escape(apr_pool_t *pool, const char *text, ascii_rule_t rule)
{
    int changed = 0;
    apr_size_t bytes = escape_into(NULL, text, rule, &changed);
    char *escaped;

    if (!changed) {
        return text;
    }
    escaped = apr_palloc(pool, bytes + 1);
    escape_into(escaped, text, rule, &changed);
    escaped[bytes] = '\0';
    return escaped;
}

static int is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7F;
}

static const char *hex(char *room, const char *prefix, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    apr_size_t at = strlen(prefix);

    memcpy(room, prefix, at);
    room[at++] = digits[c >> 4];
    room[at++] = digits[c & 15];
    room[at] = '\0';
    return room;
}

static const char *html_rule(unsigned char c, char *room)
{
    (void)room;
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return is_control(c) ? REPLACEMENT : NULL;
    }
}

static const char *json_rule(unsigned char c, char *room)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\t':
        return "\\t";
    default:
        return is_control(c) ? hex(room, "\\u00", c) : NULL;
    }
}

static const char *label_rule(unsigned char c, char *room)
{
    (void)room;
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    default:
        return is_control(c) ? REPLACEMENT : NULL;
    }
}

static const char *line_rule(unsigned char c, char *room)
{
    return is_control(c) || c == '\\' ? hex(room, "\\x", c) : NULL;
}

const char *rp_escape_html(apr_pool_t *pool, const char *text)
{
    return escape(pool, text, html_rule);
}

const char *rp_escape_json(apr_pool_t *pool, const char *text)
{
    return escape(pool, text, json_rule);
}

const char *rp_escape_label(apr_pool_t *pool, const char *text)
{
    return escape(pool, text, label_rule);
}

const char *rp_escape_line(apr_pool_t *pool, const char *text)
{
    return escape(pool, text, line_rule);
}
