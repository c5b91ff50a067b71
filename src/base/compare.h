/**
 * @file compare.h
 * @brief Did a change make a difference? Two variants' blocks in, verdicts out.
 *
 * A comparison is created once for two sets of blocks; that checks whether they can be compared at all and which blocks
 * are outliers. Then it is asked for the total and for as many parts (phases, spans, lines) as wanted.
 * No globals; one comparison belongs to one thread, or to many that only read it.
 */
#ifndef RP_BASE_COMPARE_H
#define RP_BASE_COMPARE_H

#include <apr.h>
#include <apr_pools.h>

#include "base/stats.h"
#include "base/verdict.h"

typedef struct {
    double alpha;              /**< 0.05: intervals are 95 % CI */
    double tolerance_ratio;    /**< ReqProfTolerance: smaller differences do not matter; 0.01 */
    double floor_min_ns;       /**< the same in ns, for parts that are tiny; about two clock readings; 50 */
    double mix_limit;          /**< share of requests that may change their kind; 0.02 */
    double load_limit;         /**< ratio of loads from which on they are not comparable; 1.3 */
    double between_ratio;      /**< assumed spread between epochs where it was never measured; 0.002 of the mean */
    apr_uint32_t blocks_min;   /**< on each side; 10 */
    apr_uint32_t requests_min; /**< on each side; 100 */
    apr_uint32_t comparisons;  /**< parts that are looked at together: their intervals hold for all at once; 1 */
    int a_is_over;             /**< 1: only B gets more traffic, so only B's blocks can become more; 1 */
} rp_compare_options_t;

typedef struct rp_compare_t rp_compare_t;

/** Fill in the values named above. */
void rp_compare_options_init(rp_compare_options_t *options);

/**
 * Prepare a comparison.
 * @param pool for about 9 bytes a block; only during this call and for the comparison itself
 * @param a,b blocks in the order of time, epoch after epoch; must outlive the comparison
 * @param options NULL: the defaults
 * @return never NULL
 */
rp_compare_t *rp_compare_create(apr_pool_t *pool, const rp_stats_block_t *a, apr_size_t a_count,
                                const rp_stats_block_t *b, apr_size_t b_count, const rp_compare_options_t *options);

/** @return why the two sides are not comparable, or RP_REASON_NONE */
rp_reason_t rp_compare_obstacle(const rp_compare_t *compare);

/**
 * The verdict for the total. The comparison counts as one, whatever options->comparisons says.
 * @param aa what A/A comparisons of this metric showed on this server, or NULL
 */
void rp_compare_total(rp_verdict_t *out, const rp_compare_t *compare, const rp_stats_aa_t *aa);

/**
 * The verdict for one part.
 * @param a,b its sums, one a block, in the order of the blocks; a block without the part has 0
 * @param aa what A/A comparisons of this part showed on this server, or NULL
 */
void rp_compare_part(rp_verdict_t *out, const rp_compare_t *compare, rp_stats_series_t a, rp_stats_series_t b,
                     const rp_stats_aa_t *aa);

/**
 * Is the mix of requests the same on both sides?
 * @param shift written: the share of requests that changed their kind beyond chance, of the worst group
 * @return the first group whose share is above the limit, or RP_REASON_NONE
 */
rp_reason_t rp_compare_mix(const rp_stats_side_t *a, const rp_stats_side_t *b, double limit, double *shift);

/** @return RP_REASON_LOAD when clients, or rate and requests in flight together, differ by more than the ratio */
rp_reason_t rp_compare_load(const rp_stats_side_t *a, const rp_stats_side_t *b, double limit);

#endif
