/**
 * @file line_findings.h
 * @brief What the measured lines suggest to change: each with its cost and what to write instead.
 */
#ifndef RP_REPORT_LINE_FINDINGS_H
#define RP_REPORT_LINE_FINDINGS_H

#include "store/line_costs.h"

typedef struct {
    const rp_line_cost_t *line; /**< the first one it is about */
    unsigned line_count;        /**< how many lines in a row it is about */
    apr_uint64_t cost_ns;       /**< of all requests */
    const char *text;
} rp_line_finding_t;

#define RP_LINE_FINDINGS_MAX 12

/** Fill the list, costliest first. @return its length, at most RP_LINE_FINDINGS_MAX. Any thread. */
unsigned rp_line_findings(apr_pool_t *pool, const rp_line_costs_t *costs, const rp_snapshot_t *snapshot,
                     rp_line_finding_t findings[RP_LINE_FINDINGS_MAX]);

#endif
