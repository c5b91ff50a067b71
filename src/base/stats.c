#define _DEFAULT_SOURCE /* lgamma_r: lgamma writes a global */
#include "base/stats.h"

#include <math.h>
#include <string.h>

#define EPS 1e-300
#define COSINES_MAX 64
#define SLOW_COSINES_MIN 4
#define QUARTERS 4

/* ---- Student's t ---- */

static double away_from_zero(double x)
{
    return fabs(x) < EPS ? EPS : x;
}

/* Continued fraction of the incomplete beta function (Abramowitz & Stegun 26.5.8), evaluated by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), value = d;

    for (int m = 1; m <= 500; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double step;

        d = 1 / away_from_zero(1 + even * d);
        c = away_from_zero(1 + even / c);
        value *= c * d;
        d = 1 / away_from_zero(1 + odd * d);
        c = away_from_zero(1 + odd / c);
        step = c * d;
        value *= step;
        if (fabs(step - 1) < 1e-15) {
            break;
        }
    }
    return value;
}

/* Regularized incomplete beta function I_x(a, b). */
static double beta_ratio(double a, double b, double x)
{
    int sign;
    double front;

    if (x <= 0) {
        return 0;
    }
    if (x >= 1) {
        return 1;
    }
    front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) {
        return front * beta_fraction(a, b, x) / a;
    }
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double rp_stats_t_cdf(double t, double df)
{
    double tail;

    if (df > 1e6) {
        return 0.5 * erfc(-t / sqrt(2));
    }
    tail = 0.5 * beta_ratio(df / 2, 0.5, df / (df + t * t));
    return t > 0 ? 1 - tail : tail;
}

double rp_stats_t_quantile(double p, double df)
{
    double low = 0, high = 2;

    if (p < 0.5) {
        return -rp_stats_t_quantile(1 - p, df);
    }
    df = df < 1 ? 1 : df;
    while (rp_stats_t_cdf(high, df) < p && high < 1e12) {
        low = high;
        high *= 2;
    }
    while (high - low > 1e-10 * (1 + high)) {
        double middle = (low + high) / 2;
        if (rp_stats_t_cdf(middle, df) < p) {
            low = middle;
        }
        else {
            high = middle;
        }
    }
    return (low + high) / 2;
}

/* ---- blocks, and runs of blocks ---- */

/* Part of one epoch: usable blocks among [from, to), with their sums. */
typedef struct {
    apr_size_t from, to;
    double requests, sum_ns, seconds;
    unsigned blocks;
} run_t;

/* Spread of the blocks of a run around its own mean. */
typedef struct {
    double var; /* of the run's mean, in ns^2 */
    double df;
} spread_t;

static int is_used(const rp_stats_side_t *side, apr_size_t i)
{
    return side->blocks[i].count > 0 && !(side->left_out && side->left_out[i]);
}

apr_uint64_t rp_stats_sum_ns(const rp_stats_side_t *side, rp_stats_series_t series, apr_size_t block)
{
    if (!series.sum_ns) {
        return side->blocks[block].sum_ns;
    }
    return *(const apr_uint64_t *)(const void *)((const char *)series.sum_ns + block * series.stride_bytes);
}

static void run_add(run_t *run, const rp_stats_side_t *side, rp_stats_series_t series, apr_size_t i)
{
    run->requests += (double)side->blocks[i].count;
    run->sum_ns += (double)rp_stats_sum_ns(side, series, i);
    run->seconds += (double)side->blocks[i].duration_ns * 1e-9;
    run->blocks++;
}

/* The next epoch at or after from; 0 at the end. */
static int run_of_epoch(run_t *run, const rp_stats_side_t *side, rp_stats_series_t series, apr_size_t from)
{
    memset(run, 0, sizeof(*run));
    run->from = run->to = from;
    while (run->to < side->block_count && side->blocks[run->to].epoch == side->blocks[from].epoch) {
        if (is_used(side, run->to)) {
            run_add(run, side, series, run->to);
        }
        run->to++;
    }
    return from < side->block_count;
}

static double run_mean(const run_t *run)
{
    return run->requests > 0 ? run->sum_ns / run->requests : 0;
}

/* Residual of the ratio estimator (Cochran, Sampling Techniques, 6.3): what block i has beyond its requests' share. */
static double residual(const rp_stats_side_t *side, rp_stats_series_t series, double mean_ns, apr_size_t i)
{
    return (double)rp_stats_sum_ns(side, series, i) - mean_ns * (double)side->blocks[i].count;
}

/* Variance of the run's mean as if its blocks were independent. */
static spread_t spread_independent(const run_t *run, const rp_stats_side_t *side, rp_stats_series_t series)
{
    double squares = 0, mean_ns = run_mean(run);

    for (apr_size_t i = run->from; i < run->to; i++) {
        if (is_used(side, i)) {
            double u = residual(side, series, mean_ns, i);
            squares += u * u;
        }
    }
    if (run->blocks < 2) {
        return (spread_t){0, 1};
    }
    return (spread_t){squares * run->blocks / (run->blocks - 1.0) / (run->requests * run->requests), run->blocks - 1.0};
}

static unsigned cosine_count(unsigned blocks)
{
    unsigned wanted = (unsigned)(0.4 * pow(blocks, 2.0 / 3) + 0.5);

    wanted = wanted < 2 ? 2 : wanted;
    return wanted > COSINES_MAX ? COSINES_MAX : wanted;
}

/*
 * Project the residuals onto the slowest cosines (type II). What neighbouring blocks share, drift included, is in them.
 * Neighbouring multiples of an angle follow from each other, so a block costs one call of cos().
 */
static void project(double *coefficient, unsigned cosines, const run_t *run, const rp_stats_side_t *side,
                    rp_stats_series_t series)
{
    double mean_ns = run_mean(run), position = 0.5;

    memset(coefficient, 0, cosines * sizeof(*coefficient));
    for (apr_size_t i = run->from; i < run->to; i++) {
        double u, first, now, before = 1;
        if (!is_used(side, i)) {
            continue;
        }
        u = residual(side, series, mean_ns, i);
        now = first = cos(M_PI * position / run->blocks);
        for (unsigned j = 0; j < cosines; j++) {
            double next = 2 * first * now - before;
            coefficient[j] += u * now;
            before = now;
            now = next;
        }
        position++;
    }
}

static double mean_square(const double *values, unsigned count)
{
    double squares = 0;

    for (unsigned i = 0; i < count; i++) {
        squares += values[i] * values[i];
    }
    return squares / count;
}

/*
 * Variance of the run's mean with the blocks' dependence in it: equal-weighted cosine estimator of the long-run
 * variance, one degree of freedom a cosine. It is never less than for independent blocks, as dependence that seems to
 * help is not trusted, and never less than what the slowest third of the cosines says, which sees dependence over many
 * blocks.
 */
static spread_t spread_of(const run_t *run, const rp_stats_side_t *side, rp_stats_series_t series)
{
    double coefficient[COSINES_MAX], var, slow;
    unsigned cosines = cosine_count(run->blocks), slow_cosines = (cosines + 2) / 3;

    slow_cosines = slow_cosines < SLOW_COSINES_MIN ? SLOW_COSINES_MIN : slow_cosines;
    slow_cosines = slow_cosines > cosines ? cosines : slow_cosines;
    project(coefficient, cosines, run, side, series);
    slow = mean_square(coefficient, slow_cosines);
    var = mean_square(coefficient, cosines);
    var = 2 * (slow > var ? slow : var) / (run->requests * run->requests);
    slow = spread_independent(run, side, series).var;
    return (spread_t){slow > var ? slow : var, cosines};
}

/* Split a run into quarters with equal numbers of used blocks and give the variance between their means beyond chance.
 */
static double quarters_variance(const run_t *run, const rp_stats_side_t *side, rp_stats_series_t series)
{
    run_t quarter[QUARTERS] = {{0}};
    double sum = 0, squares = 0, chance = 0;
    unsigned seen = 0, q = 0;

    for (apr_size_t i = run->from; i < run->to; i++) {
        if (is_used(side, i)) {
            q = seen++ * QUARTERS / run->blocks;
            run_add(&quarter[q], side, series, i);
            if (quarter[q].blocks == 1) {
                quarter[q].from = i;
            }
            quarter[q].to = i + 1;
        }
    }
    for (q = 0; q < QUARTERS; q++) {
        double mean_ns = run_mean(&quarter[q]);
        sum += mean_ns;
        squares += mean_ns * mean_ns;
        chance += spread_independent(&quarter[q], side, series).var / QUARTERS;
    }
    squares = (squares - sum * sum / QUARTERS) / (QUARTERS - 1);
    return squares > chance ? squares - chance : 0;
}

/* ---- the estimate of a side ---- */

static double drift_sd(const run_t *run, const rp_stats_side_t *side, rp_stats_series_t series)
{
    return run->blocks >= 2 * QUARTERS ? sqrt(quarters_variance(run, side, series)) : 0;
}

static void estimate_sums(rp_stats_estimate_t *out, const rp_stats_side_t *side, rp_stats_series_t series)
{
    double requests = 0, sum_ns = 0;
    run_t run;

    for (apr_size_t at = 0; run_of_epoch(&run, side, series, at); at = run.to) {
        if (run.blocks >= RP_STATS_EPOCH_BLOCKS_MIN) {
            requests += run.requests;
            sum_ns += run.sum_ns;
            out->seconds += run.seconds;
            out->blocks += run.blocks;
            out->epochs++;
        }
    }
    out->requests = (apr_uint64_t)requests;
    out->mean_ns = requests > 0 ? sum_ns / requests : 0;
}

/* What the epochs add up to beside the fields of the estimate. */
typedef struct {
    double df_part;      /* sum of variance^2 / df */
    double sum, squares; /* of the epochs' means, relative to the mean of all, less 1 */
} epochs_t;

static void estimate_epoch(rp_stats_estimate_t *out, epochs_t *epochs, const run_t *run, const rp_stats_side_t *side,
                           rp_stats_series_t series)
{
    spread_t spread = spread_of(run, side, series);
    double weight = run->requests / (double)out->requests, part = weight * weight * spread.var;
    double drift_ns = drift_sd(run, side, series);

    out->within_var += part;
    out->weight_sq += weight * weight;
    out->drift_sd_ns = drift_ns > out->drift_sd_ns ? drift_ns : out->drift_sd_ns;
    epochs->df_part += part * part / spread.df;
    if (out->mean_ns > 0) {
        double relative = run_mean(run) / out->mean_ns - 1;
        out->epoch_var += spread.var / (out->mean_ns * out->mean_ns) / out->epochs;
        epochs->sum += relative;
        epochs->squares += relative * relative;
    }
}

int rp_stats_estimate(rp_stats_estimate_t *out, const rp_stats_side_t *side, rp_stats_series_t series)
{
    epochs_t epochs = {0, 0, 0};
    run_t run;

    memset(out, 0, sizeof(*out));
    estimate_sums(out, side, series);
    for (apr_size_t at = 0; run_of_epoch(&run, side, series, at); at = run.to) {
        if (run.blocks >= RP_STATS_EPOCH_BLOCKS_MIN) {
            estimate_epoch(out, &epochs, &run, side, series);
        }
    }
    /* Satterthwaite's degrees of freedom of a sum of variances. */
    out->within_df = epochs.df_part > 0 ? out->within_var * out->within_var / epochs.df_part : 1e9;
    out->between_ss = out->epochs > 1 ? epochs.squares - epochs.sum * epochs.sum / out->epochs : 0;
    return out->epochs > 0;
}

/* ---- outliers ---- */

/* Shell sort: qsort may allocate. */
static void sort_doubles(double *values, apr_size_t count)
{
    for (apr_size_t gap = count / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
        for (apr_size_t i = gap; i < count; i++) {
            double moved = values[i];
            apr_size_t j = i;
            for (; j >= gap && values[j - gap] > moved; j -= gap) {
                values[j] = values[j - gap];
            }
            values[j] = moved;
        }
    }
}

static double median(double *values, apr_size_t count)
{
    sort_doubles(values, count);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Block means are skewed to the right; their logarithms less. */
static double block_log_mean(const rp_stats_block_t *block)
{
    return log(((double)block->sum_ns + 1) / (double)block->count);
}

apr_uint32_t rp_stats_outliers_max(apr_size_t block_count)
{
    return block_count >= 40 ? (apr_uint32_t)(block_count / 20) : 1;
}

void rp_stats_keep_all(apr_byte_t *left_out, const rp_stats_side_t *side)
{
    for (apr_size_t i = 0; i < side->block_count; i++) {
        left_out[i] = side->blocks[i].count == 0;
    }
}

static apr_size_t collect_log_means(double *values, const rp_stats_side_t *side, const double *center)
{
    apr_size_t used = 0;

    for (apr_size_t i = 0; i < side->block_count; i++) {
        if (side->blocks[i].count) {
            double value = block_log_mean(&side->blocks[i]);
            values[used++] = center ? fabs(value - *center) : value;
        }
    }
    return used;
}

/* Hampel's identifier: far from the median in units of the median absolute deviation. A block of few requests is
 * allowed the wider spread that few requests have. */
apr_uint32_t rp_stats_mark_outliers(apr_byte_t *left_out, const rp_stats_side_t *side, double *scratch)
{
    double center, sd, mean_count = 0;
    apr_size_t used = collect_log_means(scratch, side, NULL);
    apr_uint32_t marked = 0;

    rp_stats_keep_all(left_out, side);
    if (used < RP_STATS_EPOCH_BLOCKS_MIN) {
        return 0;
    }
    center = median(scratch, used);
    collect_log_means(scratch, side, &center);
    sd = 1.4826 * median(scratch, used) + 1e-3;
    for (apr_size_t i = 0; i < side->block_count; i++) {
        mean_count += (double)side->blocks[i].count / (double)used;
    }
    for (apr_size_t i = 0; i < side->block_count; i++) {
        const rp_stats_block_t *block = &side->blocks[i];
        if (block->count) {
            double few = mean_count > (double)block->count ? sqrt(mean_count / (double)block->count) : 1;
            left_out[i] = fabs(block_log_mean(block) - center) > 6 * sd * few;
            marked += left_out[i];
        }
    }
    return marked;
}

/* ---- A/A ---- */

/* t at one standard deviation, so that few epochs make the floor wider: an A/A difference has sqrt(2) times their
 * spread. */
static void aa_finish(rp_stats_aa_t *out, double variance_ns2, double df)
{
    out->between_sd_ns = sqrt(variance_ns2);
    out->df = df;
    out->floor_ns = rp_stats_t_quantile(0.8413447, df) * sqrt(2) * out->between_sd_ns;
}

void rp_stats_aa_floor(rp_stats_aa_t *out, const rp_stats_side_t *side, rp_stats_series_t series)
{
    rp_stats_estimate_t estimate;

    memset(out, 0, sizeof(*out));
    if (!rp_stats_estimate(&estimate, side, series)) {
        return;
    }
    out->mean_ns = estimate.mean_ns;
    out->epochs = estimate.epochs;
    if (estimate.epochs > 1) {
        double relative =
            estimate.between_ss / (estimate.epochs - 1.0) - estimate.epoch_var * RP_STATS_CHANCE_TAKEN_OFF;
        aa_finish(out, relative > 0 ? relative * estimate.mean_ns * estimate.mean_ns : 0, estimate.epochs - 1.0);
    }
    else if (estimate.blocks >= 2 * QUARTERS) {
        out->from_parts = 1;
        aa_finish(out, estimate.drift_sd_ns * estimate.drift_sd_ns, QUARTERS - 1);
    }
}
