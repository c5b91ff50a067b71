/**
 * @file escape.h
 * @brief Foreign text made safe for the place it is printed in.
 *
 * URLs, host names and log targets come from clients and configurations and may hold anything. Every function returns
 * valid UTF-8: a byte that is not part of it is shown as U+FFFD. A text that needs no change is returned as it is,
 * else a copy in the pool. Any thread.
 */
#ifndef RP_BASE_ESCAPE_H
#define RP_BASE_ESCAPE_H

#include <apr_pools.h>

/** For HTML text and quoted attribute values. Control characters are shown as U+FFFD. */
const char *rp_escape_html(apr_pool_t *pool, const char *text);

/** For the inside of a JSON string, quotes not included (RFC 8259). */
const char *rp_escape_json(apr_pool_t *pool, const char *text);

/** For the inside of a Prometheus label value, quotes not included. Control characters but newline are U+FFFD. */
const char *rp_escape_label(apr_pool_t *pool, const char *text);

/** For one line of plain text: control characters and backslashes as \xhh, so that nothing starts a line of its own. */
const char *rp_escape_line(apr_pool_t *pool, const char *text);

#endif
