/**
 * @file spans.h
 * @brief The span table: planned in the parent while it reads its configuration, then fixed in the shared segment.
 */
#ifndef RP_STORE_SPANS_H
#define RP_STORE_SPANS_H

#include <apr_pools.h>
#include <apr_tables.h>

#include "base/settings.h"
#include "store/layout.h"

/** What identifies a span. Strings are cut at the lengths of rp_span_t. */
typedef struct {
    rp_kind_t kind;
    rp_phase_t phase;
    const char *hook;
    const char *owner;
    const char *detail; /**< NULL for none */
} rp_span_key_t;

/** The list of spans to be, in the parent, before the segment exists. */
typedef struct {
    const rp_settings_t *settings; /**< span_max ends the table; with detail phases all spans of a phase are one */
    apr_array_header_t *spans;     /**< of rp_span_t */
    unsigned left_out;             /**< spans refused because of the limit */
} rp_span_plan_t;

/** A plan with the spans read, other and drain. The settings may still change until the first span is added. */
rp_span_plan_t *rp_span_plan_create(apr_pool_t *pool, const rp_settings_t *settings);

/**
 * Plan a span of its own for the key, also where an equal one exists (`which` then tells them apart).
 * @return its id; RP_SPAN_NONE when the limit is reached
 * The parent, while it starts.
 */
unsigned rp_span_plan_add(rp_span_plan_t *plan, const rp_span_key_t *key);

/** As rp_span_plan_add(), but an equal span that is planned already is used again. */
unsigned rp_span_plan_share(rp_span_plan_t *plan, const rp_span_key_t *key);

/**
 * Find or claim a span while requests run.
 * @return its id; RP_SPAN_NONE when the table is full (counted in the segment, never fails otherwise)
 * Any thread of any child; lock-free.
 */
unsigned rp_spans_claim(rp_segment_t *segment, const rp_span_key_t *key);

/** @return "hook", "filter" … as the JSON contract spells the kind */
const char *rp_kind_name(unsigned kind);

#endif
