/**
 * @file replay.h
 * @brief Replays SetEnvIf, Allow and Deny lines on finished requests, to tell which of them costs what.
 *
 * The modules' loops are private, so groups of lines are executed again into configurations of their own, and the
 * module's own function runs on a copy of the request: copied tables, a silent log, that one configuration exchanged.
 * What the lines cost live says how much there is to share; the replay only says who has which share.
 */
#ifndef RP_CAPTURE_REPLAY_H
#define RP_CAPTURE_REPLAY_H

#include <httpd.h>

#include "store/lines.h"

/**
 * Compile the groups of the plan.
 * @param budget share of busy time, 0..1; 0: nothing is replayed
 * After rp_lines_collect() and before hooks are wrapped. The parent, in post_config.
 */
void rp_replay_prepare(apr_pool_t *pconf, apr_pool_t *temp, server_rec *main_server, const rp_line_plan_t *plan,
                       double budget);

/** Count in this table from now on. Each child, at start; NULL: nothing is replayed. */
void rp_replay_child_init(apr_pool_t *pchild, rp_lines_t *lines);

/**
 * A request has been answered and counted; perhaps it is this one's turn. Any thread.
 * @param busy_ticks how long it kept the worker busy: what the budget is a share of
 */
void rp_replay_after(request_rec *r, apr_uint64_t busy_ticks);

#endif
