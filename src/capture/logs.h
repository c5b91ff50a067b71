/**
 * @file logs.h
 * @brief Times what each CustomLog and TransferLog target's write costs, apart from the formatting.
 */
#ifndef RP_CAPTURE_LOGS_H
#define RP_CAPTURE_LOGS_H

#include <httpd.h>

#include "store/spans.h"

/**
 * Stand between mod_log_config and its log writer. Before the logs are opened (first in open_logs), so that every
 * target is seen; without mod_log_config nothing happens. The parent.
 */
void rp_logs_wrap(rp_span_plan_t *plan, apr_pool_t *pool, server_rec *main_server);

/** Count the targets of the request's server that left it out. After mod_log_config's hook. */
void rp_logs_count_skipped(request_rec *r);

#endif
