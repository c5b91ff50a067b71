#include <string.h>

#include "report/template.h"

/* A tag: {{name}}, {{#name}} or {{/name}}. */
typedef struct {
    const char *start; /* the first brace */
    const char *end;   /* behind the last brace */
    const char *name;
    apr_size_t name_bytes;
    char sort; /* '#', '/' or 0 */
} tag_t;

static int next_tag(tag_t *tag, const char *from, const char *end)
{
    const char *close;

    tag->start = memmem(from, (size_t)(end - from), "{{", 2);
    close = tag->start ? memmem(tag->start, (size_t)(end - tag->start), "}}", 2) : NULL;
    if (!close) {
        return 0;
    }
    tag->name = tag->start + 2;
    tag->sort = *tag->name == '#' || *tag->name == '/' ? *tag->name++ : 0;
    tag->name_bytes = (apr_size_t)(close - tag->name);
    tag->end = close + 2;
    return 1;
}

static int is_named(const tag_t *tag, const char *name)
{
    return !strncmp(name, tag->name, tag->name_bytes) && name[tag->name_bytes] == '\0';
}

/* @return where the section that a tag opens is closed, in *close; sections of the same name do not nest */
static int find_close(tag_t *close, const tag_t *open, const char *end)
{
    const char *from = open->end;

    while (next_tag(close, from, end)) {
        if (close->sort == '/' && close->name_bytes == open->name_bytes
            && !memcmp(close->name, open->name, open->name_bytes)) {
            return 1;
        }
        from = close->end;
    }
    return 0;
}

static int run(const rp_template_t *page, const char *from, const char *end);

static int put_value(const rp_template_t *page, const tag_t *tag)
{
    for (const rp_template_value_t *value = page->values; value->name; value++) {
        if (is_named(tag, value->name)) {
            value->put(page->context);
            return 1;
        }
    }
    return 0;
}

static int put_section(const rp_template_t *page, const tag_t *open, const tag_t *close)
{
    for (const rp_template_list_t *list = page->lists; list->name; list++) {
        if (is_named(open, list->name)) {
            int known = 1;

            for (unsigned i = 0; list->row(page->context, i); i++) {
                known &= run(page, open->end, close->start);
            }
            return known;
        }
    }
    return 0;
}

static int run(const rp_template_t *page, const char *from, const char *end)
{
    tag_t tag, close;
    int known = 1;

    while (next_tag(&tag, from, end)) {
        page->put_text(page->context, from, (apr_size_t)(tag.start - from));
        from = tag.end;
        if (tag.sort == '#' && find_close(&close, &tag, end)) {
            known &= put_section(page, &tag, &close);
            from = close.end;
        }
        else {
            known &= !tag.sort && put_value(page, &tag);
        }
    }
    page->put_text(page->context, from, (apr_size_t)(end - from));
    return known;
}

int rp_template_run(const rp_template_t *page, const char *text)
{
    return run(page, text, text + strlen(text));
}
