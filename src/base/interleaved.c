#include "base/interleaved.h"

#include <math.h>
#include <string.h>

typedef struct {
    apr_size_t count;
    double mean;
    double sd;
} moments_t;

/*
 * The mixture t-test statistic with a standard normal prior on the standardized effect and the scale integrated out is
 * a martingale under "mean = m", whatever the scale; Ville's inequality bounds it by 1/alpha for ever. Solved for m:
 * t^2 / (n-1) = (k - 1) / (1 - k / (1 + n)) with k = ((1 + n) / alpha^2)^(1/n).
 */
double rp_stats_sequence_width(apr_size_t count, double alpha)
{
    double n = (double)count, k, squared;

    if (count < 2) {
        return HUGE_VAL;
    }
    k = pow((1 + n) / (alpha * alpha), 1 / n);
    if (k >= 1 + n) {
        return HUGE_VAL;
    }
    squared = (n - 1) * (k - 1) / (1 - k / (1 + n));
    return sqrt(squared / n);
}

static double sample_mean(const rp_stats_sample_t *sample)
{
    return (double)sample->sum_ns / (double)sample->count;
}

static int has_pair(const rp_stats_round_t *round)
{
    return round->a.count > 0 && round->b.count > 0;
}

static int has_aa(const rp_stats_round_t *round)
{
    return has_pair(round) && round->aa.count > 0;
}

static moments_t moments_of(const double *values, apr_size_t count)
{
    moments_t m = {count, 0, 0};
    double squares = 0;

    for (apr_size_t i = 0; i < count; i++) {
        m.mean += values[i] / (double)count;
    }
    for (apr_size_t i = 0; i < count; i++) {
        squares += (values[i] - m.mean) * (values[i] - m.mean);
    }
    m.sd = count > 1 ? sqrt(squares / ((double)count - 1)) : 0;
    return m;
}

/* Where a round measured A twice, both count as A, which makes the difference to B less noisy. */
static double round_a_mean(const rp_stats_round_t *round)
{
    return has_aa(round) ? (sample_mean(&round->a) + sample_mean(&round->aa)) / 2 : sample_mean(&round->a);
}

static moments_t differences(const rp_stats_round_t *rounds, apr_size_t round_count, double *scratch, int aa)
{
    apr_size_t used = 0;

    for (apr_size_t i = 0; i < round_count; i++) {
        const rp_stats_round_t *round = &rounds[i];
        if (aa && has_aa(round)) {
            scratch[used++] = sample_mean(&round->aa) - sample_mean(&round->a);
        }
        else if (!aa && has_pair(round)) {
            scratch[used++] = sample_mean(&round->b) - round_a_mean(round);
        }
    }
    return moments_of(scratch, used);
}

/* Counts, A's mean over rounds, and the minutes that a round takes. */
static double add_up(rp_verdict_t *out, const rp_stats_round_t *rounds, apr_size_t round_count)
{
    double a_sum = 0, duration_ns = 0;

    for (apr_size_t i = 0; i < round_count; i++) {
        if (has_pair(&rounds[i])) {
            out->a_requests += rounds[i].a.count + rounds[i].aa.count;
            out->b_requests += rounds[i].b.count;
            out->a_blocks++;
            a_sum += round_a_mean(&rounds[i]);
            duration_ns += (double)rounds[i].duration_ns;
        }
    }
    out->b_blocks = out->a_blocks;
    out->a_mean_ns = out->a_blocks ? a_sum / out->a_blocks : 0;
    return out->a_blocks ? duration_ns / out->a_blocks / 60e9 : 0;
}

static void fill(rp_verdict_t *out, const moments_t *m, double alpha)
{
    double half_ns = m->sd * rp_stats_sequence_width(m->count, alpha);

    out->diff_ns = m->mean;
    out->b_mean_ns = out->a_mean_ns + m->mean;
    out->low_ns = m->mean - half_ns;
    out->high_ns = m->mean + half_ns;
    out->has_ratio = out->a_mean_ns > 0;
    if (out->has_ratio) {
        out->ratio = out->diff_ns / out->a_mean_ns;
        out->ratio_low = out->low_ns / out->a_mean_ns;
        out->ratio_high = out->high_ns / out->a_mean_ns;
    }
}

/* Rounds until the sequence, at the difference and spread seen so far, lies on one side of the floor. */
static double rounds_more(const rp_verdict_t *out, const moments_t *m, double alpha)
{
    double room = fabs(fabs(out->diff_ns) - out->floor_ns);
    apr_size_t rounds = m->count;

    while (rounds < 1000000 && m->sd * rp_stats_sequence_width(rounds, alpha) > room) {
        rounds += 1 + rounds / 50;
    }
    return (double)(rounds - m->count);
}

static int decide(rp_verdict_t *out, const moments_t *m, const moments_t *aa, double alpha, double round_minutes)
{
    double aa_half_ns = aa->sd * rp_stats_sequence_width(aa->count, alpha);

    if (m->count < RP_ROUNDS_MIN) {
        out->kind = RP_VERDICT_NOT_COMPARABLE;
        out->reason = RP_REASON_FEW_BLOCKS;
        return 0;
    }
    rp_verdict_decide(out);
    /* Twice the same configuration, and yet a difference beyond doubt that matters: something else decides. */
    if (aa->count >= RP_ROUNDS_MIN && fabs(aa->mean) > aa_half_ns && fabs(aa->mean) >= out->floor_ns) {
        out->kind = RP_VERDICT_INCONCLUSIVE;
        out->reason = RP_REASON_AA;
        out->minutes_more = RP_MINUTES_UNREACHABLE;
        return 0;
    }
    if (out->kind == RP_VERDICT_INCONCLUSIVE) {
        out->reason = RP_REASON_NOISE;
        out->minutes_more = rounds_more(out, m, alpha) * round_minutes;
        return 0;
    }
    return 1;
}

int rp_stats_interleaved(rp_verdict_t *out, const rp_stats_round_t *rounds, apr_size_t round_count, double *scratch,
                         const rp_compare_options_t *options)
{
    rp_compare_options_t defaults;
    moments_t difference, aa;
    double alpha, round_minutes;

    if (!options) {
        rp_compare_options_init(&defaults);
        options = &defaults;
    }
    memset(out, 0, sizeof(*out));
    out->rounds = 1;
    out->comparisons = options->comparisons ? options->comparisons : 1;
    alpha = options->alpha / out->comparisons;
    round_minutes = add_up(out, rounds, round_count);
    aa = differences(rounds, round_count, scratch, 1);
    difference = differences(rounds, round_count, scratch, 0);
    out->floor_ns = fmax(options->tolerance_ratio * out->a_mean_ns, options->floor_min_ns);
    out->drift_ns = fabs(aa.mean);
    if (difference.count >= 2) {
        fill(out, &difference, alpha);
    }
    return decide(out, &difference, &aa, alpha, round_minutes);
}
