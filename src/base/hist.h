/**
 * @file hist.h
 * @brief Log-linear histograms without pointers, for shared memory.
 *
 * A value v >= 2^k (k = sub-bucket bits) lies in octave floor(log2 v), which 2^k buckets of equal width divide; values
 * below 2^k have a bucket each. A bucket is thus at most v / 2^k wide: 3.2 % for k = 5, 25 % for k = 2. Values beyond
 * the last octave fall into the last bucket. Same scheme as HdrHistogram (Tene), with a fixed layout.
 * All-zero memory is an empty histogram, so that fresh pages of a segment need no initialization.
 */
#ifndef RP_BASE_HIST_H
#define RP_BASE_HIST_H

#include <apr.h>

/** The highest octave: 2^40 ticks are 219 s at 5 GHz and 1,100 s on a nanosecond clock. */
#define RP_HIST_MAX_OCTAVE 40

#define RP_HIST_BUCKETS(k) ((RP_HIST_MAX_OCTAVE - (k) + 2) << (k))

#define RP_HIST_FINE_BITS 5
#define RP_HIST_COARSE_BITS 2
#define RP_HIST_FINE_BUCKETS RP_HIST_BUCKETS(RP_HIST_FINE_BITS)
#define RP_HIST_COARSE_BUCKETS RP_HIST_BUCKETS(RP_HIST_COARSE_BITS)

/** Exact figures of a histogram. min is stored inverted, so that zero means "none yet". */
typedef struct {
    apr_uint64_t count;
    apr_uint64_t sum;
    apr_uint64_t max;
    apr_uint64_t min_inverted; /**< ~min, or 0 while count is 0 */
} rp_hist_head_t;

/** 32 buckets an octave. */
typedef struct {
    rp_hist_head_t head;
    apr_uint64_t buckets[RP_HIST_FINE_BUCKETS];
} rp_hist_fine_t;

/** 4 buckets an octave. */
typedef struct {
    rp_hist_head_t head;
    apr_uint64_t buckets[RP_HIST_COARSE_BUCKETS];
} rp_hist_coarse_t;

/** A view of either kind: what the functions below take. */
typedef struct {
    rp_hist_head_t *head;
    apr_uint64_t *buckets;
    unsigned bits; /**< sub-bucket bits k */
} rp_hist_t;

static inline rp_hist_t rp_hist_fine(rp_hist_fine_t *hist)
{
    return (rp_hist_t){&hist->head, hist->buckets, RP_HIST_FINE_BITS};
}

static inline rp_hist_t rp_hist_coarse(rp_hist_coarse_t *hist)
{
    return (rp_hist_t){&hist->head, hist->buckets, RP_HIST_COARSE_BITS};
}

/** @return the index of the bucket of a value; below RP_HIST_BUCKETS(bits) for any value */
static inline unsigned rp_hist_index(apr_uint64_t value, unsigned bits)
{
    const apr_uint64_t limit = ((apr_uint64_t)1 << (RP_HIST_MAX_OCTAVE + 1)) - 1;
    apr_uint64_t v = value < limit ? value : limit;
    /* 63 ^ clz is one instruction; values below 2^bits count as of the octave that has a bucket for each. */
    unsigned shift = (63u ^ (unsigned)__builtin_clzll(v | ((apr_uint64_t)1 << bits))) - bits;

    return (shift << bits) + (unsigned)(v >> shift);
}

/** @return the smallest value of a bucket; of the bucket after the last: one beyond the range */
apr_uint64_t rp_hist_bucket_low(unsigned index, unsigned bits);

/** Count one value. The caller keeps other writers away. */
static inline void rp_hist_record(rp_hist_t hist, apr_uint64_t value)
{
    rp_hist_head_t *head = hist.head;

    hist.buckets[rp_hist_index(value, hist.bits)]++;
    head->count++;
    head->sum += value;
    if (value > head->max) {
        head->max = value;
    }
    if (~value > head->min_inverted) {
        head->min_inverted = ~value;
    }
}

/** Add all of one histogram to another with the same bits. Reads only the buckets between min and max. */
void rp_hist_merge(rp_hist_t into, rp_hist_t from);

/**
 * Take away what a histogram held at an earlier time, so that what came since is left. min and max are exact where the
 * newer values exceed the earlier ones, else the bounds of the outermost buckets left.
 * @param earlier a copy of `from` at an earlier time
 */
void rp_hist_subtract(rp_hist_t from, rp_hist_t earlier);

/** Empty a histogram; writes only the buckets that were used. */
void rp_hist_clear(rp_hist_t hist);

/** @return the smallest recorded value, 0 when there is none */
static inline apr_uint64_t rp_hist_min(const rp_hist_head_t *head)
{
    return head->count ? ~head->min_inverted : 0;
}

/**
 * The quantile of the recorded values: Hyndman and Fan's type 7, where a bucket's values are taken to be spread evenly
 * in it. At most a bucket's width from the exact one, never falling with q, and never outside min..max.
 * @param q 0..1; 0 gives min, 1 gives max, exactly
 * @return 0 when the histogram is empty
 */
double rp_hist_quantile(rp_hist_t hist, double q);

#endif
