/**
 * @file hooks.h
 * @brief Wraps every module's function in every request hook, so that each call is a span.
 */
#ifndef RP_CAPTURE_HOOKS_H
#define RP_CAPTURE_HOOKS_H

#include <httpd.h>
#include <http_config.h>

#include "store/spans.h"

/**
 * Exchange the functions of all request hooks for wrappers. httpd's order of them and its rules stay as they are.
 * The parent, once for each configuration, after every other module's post_config.
 * @return hook functions left unwrapped because no slot was left
 */
unsigned rp_hooks_wrap(rp_span_plan_t *plan);

/** @return how many functions the log_transaction hook has: the last of them ends a request */
int rp_hooks_logging_count(void);

/** Called after the last insert_filter function, with a request whose filters are complete. NULL for none. */
void rp_hooks_on_filters_inserted(void (*inspect)(request_rec *r));

/** Called when mod_log_config's logging has run. NULL for none. */
void rp_hooks_on_logged(void (*note)(request_rec *r));

/** Called when a request is counted and its answer sent, with the ticks it kept a thread busy. NULL for none. */
void rp_hooks_on_finished(void (*note)(request_rec *r, apr_uint64_t busy_ticks));

/** Called when an .htaccess file was opened. NULL for none. */
void rp_hooks_on_htaccess(void (*opened)(request_rec *r, ap_configfile_t **file, const char *path));

/** @return a module's name as reports show it: its source file without ".c", "core" for httpd's own */
const char *rp_hooks_owner(apr_pool_t *pool, const char *source_name);

#endif
