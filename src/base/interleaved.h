/**
 * @file interleaved.h
 * @brief A and B measured in turns, looked at after every round, stopped as soon as the answer is sure.
 *
 * Each round measures A, B and A once more, in random order, each after a restart. The interval is a confidence
 * sequence: with probability 1 - alpha it covers the truth after *every* round, so looking and stopping early cost
 * nothing.
 */
#ifndef RP_BASE_INTERLEAVED_H
#define RP_BASE_INTERLEAVED_H

#include <apr.h>

#include "base/compare.h"

/** Requests and their times added up; of one part when a part is compared, the count always of all requests. */
typedef struct {
    apr_uint64_t count;
    apr_uint64_t sum_ns;
} rp_stats_sample_t;

typedef struct {
    rp_stats_sample_t a;
    rp_stats_sample_t b;
    rp_stats_sample_t aa; /**< A once more; count 0 when the round had none */
    apr_uint64_t duration_ns;
} rp_stats_round_t;

/** Fewer rounds never give a verdict. */
#define RP_ROUNDS_MIN 6

/**
 * The verdict after so many rounds.
 * @param rounds all rounds so far; one whose a or b has no requests is passed over
 * @param scratch room for round_count doubles
 * @param options alpha, tolerance_ratio, floor_min_ns and comparisons count; NULL: the defaults
 * The verdict's drift_ns is the mean difference of the A/A pairs: slower and faster lie beyond it, and no difference is
 * not said while it exceeds the floor.
 * @return 1: the answer is sure and measuring may stop; 0: another round, please
 */
int rp_stats_interleaved(rp_verdict_t *out, const rp_stats_round_t *rounds, apr_size_t round_count, double *scratch,
                         const rp_compare_options_t *options);

/**
 * Half the width of the confidence sequence of a mean, in standard deviations of one value.
 * @param count values so far
 * @return HUGE_VAL while there are too few for any answer
 */
double rp_stats_sequence_width(apr_size_t count, double alpha);

#endif
