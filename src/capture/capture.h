/**
 * @file capture.h
 * @brief The order in which the parts of capture are set up, from reading the configuration to the child's start.
 */
#ifndef RP_CAPTURE_CAPTURE_H
#define RP_CAPTURE_CAPTURE_H

#include <httpd.h>
#include <http_config.h>
#include <mpm_common.h>

#include "base/settings.h"

/** Wrap the providers of Require lines and passwords before the lines are read. Last in pre_config. */
void rp_capture_pre_config(apr_pool_t *pconf, const rp_settings_t *settings);

/** Wrap the log writer. First in open_logs. */
int rp_capture_open_logs(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *main_server);

/** Wrap hooks and filters and create the epoch's segment. After every module's post_config. Never stops the start. */
int rp_capture_post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *main_server);

/** Claim the child's part of the segment. */
void rp_capture_child_init(apr_pool_t *pchild, server_rec *main_server);

/** Keep a departed child's counters in the sums. The parent. */
void rp_capture_child_status(server_rec *main_server, pid_t pid, ap_generation_t generation, int slot,
                             mpm_child_status state);

/** Give back the segment of a generation that has ended. The parent. */
void rp_capture_end_generation(server_rec *main_server, ap_generation_t generation);

#endif
