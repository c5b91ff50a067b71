/**
 * @file template.h
 * @brief Fills a page that is a real file: {{name}} is a value, {{#name}} … {{/name}} a section a row of a list.
 *
 * A section whose list is empty is left out, so a list of one or no row is a condition. Sections nest. The functions
 * print into whatever their context names; a name that has no row in the tables prints nothing and makes
 * rp_template_run() say so.
 */
#ifndef RP_REPORT_TEMPLATE_H
#define RP_REPORT_TEMPLATE_H

#include <apr.h>

typedef struct {
    const char *name;
    void (*put)(void *context); /**< prints the value, escaped */
} rp_template_value_t;

typedef struct {
    const char *name;
    int (*row)(void *context, unsigned index); /**< makes row `index` current; 0 when there is none */
} rp_template_list_t;

typedef struct {
    const rp_template_value_t *values; /**< ended by a NULL name */
    const rp_template_list_t *lists;   /**< ended by a NULL name */
    void (*put_text)(void *context, const char *text, apr_size_t bytes);
    void *context;
} rp_template_t;

/** @return 1, or 0 when a name was unknown or a section not closed. Any thread. */
int rp_template_run(const rp_template_t *page, const char *text);

#endif
