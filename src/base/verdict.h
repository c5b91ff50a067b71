/**
 * @file verdict.h
 * @brief What a comparison of two variants says, in numbers and in one sentence.
 */
#ifndef RP_BASE_VERDICT_H
#define RP_BASE_VERDICT_H

#include <apr.h>

typedef enum {
    RP_VERDICT_NOT_COMPARABLE, /**< see the reason */
    RP_VERDICT_INCONCLUSIVE,   /**< the interval reaches over the floor; says nothing about "no difference" */
    RP_VERDICT_NO_DIFFERENCE,  /**< the whole interval lies within the floor */
    RP_VERDICT_SLOWER,         /**< B needs more time; the whole interval lies beyond the floor */
    RP_VERDICT_FASTER          /**< B needs less time; likewise */
} rp_verdict_kind_t;

/** Why there is no clear answer. Each has a sentence: rp_verdict_reason_text(). */
typedef enum {
    RP_REASON_NONE,
    RP_REASON_FEW_BLOCKS,   /**< not comparable */
    RP_REASON_FEW_REQUESTS, /**< not comparable */
    RP_REASON_STATUSES,     /**< not comparable: mix changed */
    RP_REASON_KEEPALIVE,    /**< not comparable: mix changed */
    RP_REASON_VHOSTS,       /**< not comparable: mix changed */
    RP_REASON_URLS,         /**< not comparable: mix changed */
    RP_REASON_LOAD,         /**< not comparable: much more or less traffic at once */
    RP_REASON_NOISE,        /**< inconclusive: the interval is too wide for an answer */
    RP_REASON_DRIFT,        /**< inconclusive: one variant differed from itself about as much */
    RP_REASON_AA            /**< inconclusive: the A/A pair of an interleaved run differed for certain */
} rp_reason_t;

/** More traffic does not help: what varies is the time between epochs, so more epochs are needed. */
#define RP_MINUTES_UNREACHABLE (-1.0)

/** The verdict for one metric. Plain data; times in ns per request; B minus A. */
typedef struct {
    rp_verdict_kind_t kind;
    rp_reason_t reason;
    double a_mean_ns;
    double b_mean_ns;
    double diff_ns;
    double low_ns; /**< 95 % CI of diff_ns (of all parts together when comparisons > 1) */
    double high_ns;
    int has_ratio; /**< 0: A's mean is zero, the next three mean nothing */
    double ratio;  /**< diff_ns / a_mean_ns */
    double ratio_low;
    double ratio_high;
    double floor_ns;     /**< smaller differences do not matter, or epochs of one variant differ as much */
    double drift_ns;     /**< what a variant differed from itself in this very comparison */
    double mix_shift;    /**< share of requests that changed their kind beyond chance; widens the interval */
    double minutes_more; /**< inconclusive: RP_MINUTES_UNREACHABLE or more traffic needed; else 0 */
    apr_uint64_t a_requests;
    apr_uint64_t b_requests;
    apr_uint32_t a_blocks;
    apr_uint32_t b_blocks;
    apr_uint32_t a_epochs;
    apr_uint32_t b_epochs;
    apr_uint32_t left_out;    /**< blocks of both sides left out as outliers */
    apr_uint32_t comparisons; /**< how many metrics the interval covers together */
    int rounds;               /**< 1: blocks are interleaved rounds */
} rp_verdict_t;

/** One part of a total: a phase, a span, a line. */
typedef struct {
    const char *name;
    double diff_ns;
    double low_ns;
    double high_ns;
    rp_verdict_kind_t kind;
    double share; /**< written: diff_ns as a share of the total's difference; 0 when that is 0 */
} rp_part_t;

/** @return "slower", "faster", "no difference", "inconclusive" or "not comparable" */
const char *rp_verdict_name(rp_verdict_kind_t kind);

/** @return one clause, "the mix of statuses changed"; "" for RP_REASON_NONE */
const char *rp_verdict_reason_text(rp_reason_t reason);

/**
 * Decide from diff, interval, floor and drift; writes kind and reason. The one place where the words are chosen.
 * @param verdict all numbers filled in
 */
void rp_verdict_decide(rp_verdict_t *verdict);

/**
 * Write a verdict as one sentence: difference and interval in us and %, blocks and requests of both sides.
 * @param name what was compared ("total", "setenvif"); printed as it is, the caller escapes
 * @return bytes written without the closing zero, always less than size (the sentence is cut off when it does not fit);
 *         RP_SENTENCE_BYTES and the length of the name are enough
 */
apr_size_t rp_compare_sentence(char *buffer, apr_size_t size, const char *name, const rp_verdict_t *verdict);

#define RP_SENTENCE_BYTES 640

/**
 * Order parts by the size of their difference, largest first, and give each its share of the total's.
 * Differences are rounded to 2^-10 ns, in which a double adds exactly: parts + rest == *total_ns, to the last bit.
 * @param parts disjoint parts of the total; sorted and their diff_ns and share written
 * @param total_ns in: the total's difference; out: the same, rounded likewise
 * @return the rest: what the parts do not explain
 */
double rp_compare_attribute(rp_part_t *parts, apr_size_t part_count, double *total_ns);

#endif
