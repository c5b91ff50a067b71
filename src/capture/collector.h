/**
 * @file collector.h
 * @brief Once a second, adds what has happened since to the blocks and keeps the sums for windows.
 *
 * It runs on mod_watchdog's tick in one child, which mod_watchdog chooses; without mod_watchdog the parent collects
 * every ten seconds, in httpd's monitor hook.
 */
#ifndef RP_CAPTURE_COLLECTOR_H
#define RP_CAPTURE_COLLECTOR_H

#include <httpd.h>

/** Register with mod_watchdog where it is loaded. The parent, in open_logs: before mod_watchdog's post_config. */
void rp_collector_ask_for_ticks(apr_pool_t *pconf, server_rec *main_server);

/** Collect when nobody else has for some seconds. The parent, in monitor. */
int rp_collector_monitor(apr_pool_t *pool, server_rec *main_server);

#endif
