/**
 * @file stats.h
 * @brief Means of traffic with an honest uncertainty: estimates over blocks, never over requests.
 *
 * Requests of one second share a machine state and are not independent; blocks nearly are, and what dependence is left
 * between neighbouring blocks is estimated. doc/statistics.md has the formulas and their sources.
 * All functions are pure: no globals, no allocation, no clock; any thread or process may call them.
 */
#ifndef RP_BASE_STATS_H
#define RP_BASE_STATS_H

#include <apr.h>

#define RP_MIX_STATUSES 5
#define RP_MIX_URLS 16
#define RP_MIX_VHOSTS 16

/** An epoch with fewer usable blocks than this has no estimable spread and is left out. */
#define RP_STATS_EPOCH_BLOCKS_MIN 4

/** Share of the epochs' own variance taken off the variance between their means. 1 would be unbiased, but with the few
 * epochs there are, it too often says that epochs do not differ at all. */
#define RP_STATS_CHANCE_TAKEN_OFF 0.5

/** What kind of requests a block consisted of. A group that is all zero on one side means "not known": not checked. */
typedef struct {
    apr_uint32_t status[RP_MIX_STATUSES]; /**< requests by status class, 1xx to 5xx */
    apr_uint32_t keepalive;               /**< requests that were not the first of their connection */
    apr_uint32_t first;                   /**< requests that were the first of their connection */
    apr_uint32_t url[RP_MIX_URLS];        /**< requests by URL class; the last slot takes all that do not fit */
    apr_uint32_t vhost[RP_MIX_VHOSTS];    /**< requests by vhost slot; the last slot takes all that do not fit */
} rp_stats_mix_t;

/** One second (or one round) of traffic of one epoch. */
typedef struct {
    apr_uint64_t count;       /**< finished requests, also when most of them never entered the part looked at */
    apr_uint64_t sum_ns;      /**< their total times added up */
    apr_uint64_t duration_ns; /**< wall time that the block covers; 0: not known, the load is then not checked */
    apr_uint32_t epoch;       /**< equal numbers side by side are one epoch */
    float clients;            /**< mean number of open client connections; 0: not known */
    rp_stats_mix_t mix;
} rp_stats_block_t;

/** The blocks of one variant, epoch after epoch, in the order of time. */
typedef struct {
    const rp_stats_block_t *blocks;
    apr_size_t block_count;
    const apr_byte_t *left_out; /**< a flag a block, or NULL when every block counts */
} rp_stats_side_t;

/** The sums of one metric, one a block of the side it is used with. {NULL, 0} is the blocks' own sum_ns. */
typedef struct {
    const apr_uint64_t *sum_ns;
    apr_size_t stride_bytes; /**< from one block's sum to the next's */
} rp_stats_series_t;

/** A mean per request, and how well it is known. */
typedef struct {
    double mean_ns;
    double within_var;  /**< variance of the mean from the spread inside epochs, in ns^2 */
    double within_df;   /**< its degrees of freedom */
    double weight_sq;   /**< sum of squared epoch weights: 1 for one epoch, 1/E for E equal ones */
    double between_ss;  /**< sum of squared deviations of the epochs' means, relative to the mean */
    double epoch_var;   /**< mean variance of an epoch's own mean, relative to the mean squared */
    double drift_sd_ns; /**< standard deviation between quarters of an epoch beyond chance; of the worst epoch */
    double seconds;     /**< wall time covered */
    apr_uint64_t requests;
    apr_uint32_t blocks; /**< used */
    apr_uint32_t epochs; /**< used */
} rp_stats_estimate_t;

/** How much a metric differs between epochs of one and the same variant. */
typedef struct {
    double mean_ns;
    double between_sd_ns; /**< standard deviation between epochs beyond what their own noise explains */
    double df;            /**< its degrees of freedom; 0: nothing is known, the rest is 0 too */
    double floor_ns;      /**< a difference that two of three A/A comparisons stay under */
    apr_uint32_t epochs;
    apr_uint32_t from_parts; /**< 1: one epoch only, so its quarters stood for epochs, which says less */
} rp_stats_aa_t;

/** @return Student's t distribution function; df > 0, also fractional */
double rp_stats_t_cdf(double t, double df);

/** @return the t with rp_stats_t_cdf(t, df) == p, to 1e-9; 0 < p < 1, df >= 1 (less is taken as 1) */
double rp_stats_t_quantile(double p, double df);

/** @return the sum of one metric in one block, in ns */
apr_uint64_t rp_stats_sum_ns(const rp_stats_side_t *side, rp_stats_series_t series, apr_size_t block);

/**
 * Mean per request of a metric, with the variance of that mean.
 * @return 1, or 0 when no epoch has enough usable blocks (*out is then all zero)
 */
int rp_stats_estimate(rp_stats_estimate_t *out, const rp_stats_side_t *side, rp_stats_series_t series);

/**
 * Flag the few blocks whose mean lies far outside the others' (a backup, a stolen CPU).
 * @param left_out a byte a block, written: 1 for an outlier and for a block without requests
 * @param scratch room for side->block_count doubles
 * @return outliers flagged; more than one in twenty (but at least one) are no longer "a few": the return value then
 * says how many there are and the caller should use rp_stats_keep_all()
 */
apr_uint32_t rp_stats_mark_outliers(apr_byte_t *left_out, const rp_stats_side_t *side, double *scratch);

/** Leave out nothing but blocks without requests. */
void rp_stats_keep_all(apr_byte_t *left_out, const rp_stats_side_t *side);

/** @return how many outliers of so many blocks still count as "a few" */
apr_uint32_t rp_stats_outliers_max(apr_size_t block_count);

/**
 * What comparisons of a variant with itself show on this server: compares its epochs, or the quarters of its only
 * epoch.
 * @param side all known blocks of one variant
 */
void rp_stats_aa_floor(rp_stats_aa_t *out, const rp_stats_side_t *side, rp_stats_series_t series);

#endif
