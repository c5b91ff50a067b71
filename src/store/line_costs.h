/**
 * @file line_costs.h
 * @brief What each configuration line costs, from one snapshot.
 *
 * Lines with a span of their own cost what was measured live. Replayed lines share the live self time of their module:
 * a group's share is its mean replayed time without that of an empty configuration, times the requests it applied to;
 * within a group the lines replayed alone say who has what. What the module's function costs without any line, and what
 * is not replayed, stays "not attributed". For each module: lines + not attributed == live self time, exactly.
 */
#ifndef RP_STORE_LINE_COSTS_H
#define RP_STORE_LINE_COSTS_H

#include "store/snapshot.h"

typedef enum {
    RP_LINE_UNMEASURED, /**< nothing about this directive is measured */
    RP_LINE_LIVE,
    RP_LINE_REPLAY
} rp_line_source_t;

typedef struct {
    const char *file;
    unsigned number;
    const char *directive;
    const char *args;
    const char *scope;
    unsigned scope_count;
    unsigned depth;
    unsigned flags; /**< RP_LINE_… */
    rp_phase_t phase;
    const char *owner; /**< module of the span that the line's time is in; NULL when unmeasured */
    const char *hook;
    rp_line_source_t source;
    apr_uint64_t evaluated; /**< for replayed lines estimated, like matched and decided */
    apr_uint64_t matched;
    apr_uint64_t decided;
    apr_uint64_t total_ns; /**< of all requests */
    apr_uint64_t ci95_ns;  /**< half the width of the 95 % confidence interval of total_ns; 0 where all was measured */
    int is_told;           /**< 0: below what can be told, or not replayed often enough yet */
} rp_line_cost_t;

/** A module whose lines are replayed, in one hook. */
typedef struct {
    const char *owner;
    const char *hook;
    rp_phase_t phase;
    apr_uint64_t live_ns;
    apr_uint64_t attributed_ns;
} rp_line_module_t;

#define RP_LINE_MODULES 3

typedef struct {
    rp_line_cost_t *lines; /**< in the order of the configuration, then what was found in .htaccess files */
    unsigned line_count;
    unsigned left_out; /**< lines that the table had no room for */
    rp_line_module_t modules[RP_LINE_MODULES];
    apr_uint64_t replay_ns; /**< what replaying has cost */
    apr_uint64_t replay_requests;
} rp_line_costs_t;

/** @return the costs; without lines when none are kept. Any thread of any process; the memory is the pool's. */
const rp_line_costs_t *rp_line_costs_take(apr_pool_t *pool, const rp_snapshot_t *snapshot);

/** @return total_ns for each evaluation, rounded; 0 when it was never evaluated */
apr_uint64_t rp_line_mean_ns(const rp_line_cost_t *line);

/**
 * The measured lines, costliest first.
 * @return how many pointers `costliest` was filled with, at most max
 */
unsigned rp_line_costliest(apr_pool_t *pool, const rp_line_costs_t *costs, const rp_line_cost_t **costliest,
                           unsigned max);

#endif
