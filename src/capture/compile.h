/**
 * @file compile.h
 * @brief Executes SetEnvIf, Allow and Deny lines again, into a per-directory configuration that only a replay sees.
 */
#ifndef RP_CAPTURE_COMPILE_H
#define RP_CAPTURE_COMPILE_H

#include <httpd.h>
#include <http_config.h>

#include "capture/lines.h"

/** A replayed SetEnvIf line sets a variable of this name and its place in the group instead of its own. */
#define RP_REPLAY_VARIABLE "reqprof-replay-"

/** The module whose function a family runs, and that function as it was before it was wrapped. */
typedef struct {
    module *owner; /**< NULL: not loaded, nothing of the family is replayed */
    int (*function)(request_rec *r);
} rp_replayed_module_t;

/** Find the modules. Before their functions are wrapped. The parent, in post_config. */
void rp_compile_begin(void);

/** @return the module of a family */
const rp_replayed_module_t *rp_compile_module(rp_family_t family);

/**
 * Execute lines into a fresh configuration of their module.
 * @param pool what the configuration lives in
 * @param temp cleared by the caller
 * @param line_count 0 gives the configuration without any line
 * @param error set to httpd's own sentence when a line is refused
 * @return the configuration, NULL when the module is missing or a line is refused
 * One thread at a time.
 */
void *rp_compile(apr_pool_t *pool, apr_pool_t *temp, server_rec *server, rp_family_t family,
                 const rp_noted_line_t *lines, unsigned line_count, const char **error);

#endif
