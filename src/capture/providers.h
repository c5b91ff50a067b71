/**
 * @file providers.h
 * @brief Wraps the providers of `Require` lines and of AuthBasicProvider, so that each line and each password
 *        check is a span.
 */
#ifndef RP_CAPTURE_PROVIDERS_H
#define RP_CAPTURE_PROVIDERS_H

#include <apr_pools.h>

#include "store/spans.h"

/**
 * Register every authorization and authentication provider again, under its own name, with a wrapper. Last
 * in pre_config, before the lines that use them are read. The parent.
 */
void rp_providers_wrap(rp_span_plan_t *plan, apr_pool_t *pool);

/** The lines of the configuration are read: those in .htaccess files share a span for each provider. */
void rp_providers_config_done(void);

#endif
