/**
 * @file params.h
 * @brief The query string of the report's address, as plain values. Plain C and APR: tested without httpd.
 */
#ifndef RP_REPORT_PARAMS_H
#define RP_REPORT_PARAMS_H

#include <apr_pools.h>

#include "base/windows.h"

#define RP_REFRESH_MAX_S 3600
#define RP_REFRESH_DEFAULT_S 10

typedef enum {
#define RP_FORMAT(id, name, content_type, renderer) RP_FORMAT_##id,
#include "report/formats.def"
#undef RP_FORMAT
    RP_FORMAT_COUNT
} rp_format_t;

typedef enum {
    RP_VIEW_OVERVIEW,
    RP_VIEW_CONFIG
} rp_view_t;

typedef struct {
    rp_format_t format;
    rp_window_t window;
    rp_view_t view;
    unsigned refresh_s;     /**< 1..RP_REFRESH_MAX_S; 0 when not asked for */
    apr_uint32_t child_pid; /**< 0 for all children */
} rp_params_t;

/**
 * Read a query string such as "format=json&child=123". Names stand once in params.c, with what each accepts.
 * @param query as it came, percent-encoded; NULL or "" gives the defaults
 * @return NULL, or a sentence that names the wrong parameter and says what is accepted. It repeats what the client
 *         sent, without control characters but not escaped for HTML.
 */
const char *rp_params_parse(rp_params_t *params, apr_pool_t *pool, const char *query);

#endif
