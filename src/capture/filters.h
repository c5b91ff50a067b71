/**
 * @file filters.h
 * @brief Wraps output and input filters, so that each call of one is a span.
 *
 * A filter's registration record keeps its identity; only the function in it is exchanged. httpd has no list of
 * filters: names come from filters.def, from the configuration, and from the chains of running requests.
 */
#ifndef RP_CAPTURE_FILTERS_H
#define RP_CAPTURE_FILTERS_H

#include <httpd.h>
#include <http_config.h>

#include "store/spans.h"

/** Wrap the filters that are known or named in the configuration. The parent, in post_config. */
void rp_filters_wrap(rp_span_plan_t *plan, apr_pool_t *pool, const ap_directive_t *tree);

/** From now on spans of filters found in running requests are claimed in this segment. Each child, at start. */
void rp_filters_child_init(rp_segment_t *segment);

/** Wrap what is not wrapped yet in the chains of a request. Any thread, after insert_filter. */
void rp_filters_inspect(request_rec *r);

#endif
