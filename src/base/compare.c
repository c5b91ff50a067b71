#include "base/compare.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define MIX_KINDS_MAX 16
#define MIX_CHANCE_SD 3 /* with the two or three dozen kinds of requests that are looked at, chance stays below this   \
                         */

struct rp_compare_t {
    rp_compare_options_t options;
    rp_stats_side_t a, b;
    apr_uint32_t left_out;
    double mix_shift;
    rp_reason_t obstacle;
};

void rp_compare_options_init(rp_compare_options_t *options)
{
    *options = (rp_compare_options_t){
        .alpha = 0.05,
        .tolerance_ratio = 0.01,
        .floor_min_ns = 50,
        .mix_limit = 0.02,
        .load_limit = 1.3,
        .between_ratio = 0.002,
        .blocks_min = 10,
        .requests_min = 100,
        .comparisons = 1,
        .a_is_over = 1,
    };
}

/* ---- mix ---- */

_Static_assert(RP_MIX_STATUSES <= MIX_KINDS_MAX && RP_MIX_URLS <= MIX_KINDS_MAX && RP_MIX_VHOSTS <= MIX_KINDS_MAX,
               "a group of the mix fits into mix_group_t");

typedef struct {
    double kinds[MIX_KINDS_MAX];
    double all;
} mix_group_t;

typedef struct {
    rp_reason_t reason;
    apr_size_t offset; /* in rp_stats_mix_t */
    unsigned kind_count;
} mix_layout_t;

/* keepalive and first are neighbours in the struct, so they form an array of two kinds like the others. */
_Static_assert(offsetof(rp_stats_mix_t, first) == offsetof(rp_stats_mix_t, keepalive) + sizeof(apr_uint32_t),
               "keepalive and first are one group");

static const mix_layout_t mix_layouts[] = {
    {RP_REASON_STATUSES, offsetof(rp_stats_mix_t, status), RP_MIX_STATUSES},
    {RP_REASON_KEEPALIVE, offsetof(rp_stats_mix_t, keepalive), 2},
    {RP_REASON_VHOSTS, offsetof(rp_stats_mix_t, vhost), RP_MIX_VHOSTS},
    {RP_REASON_URLS, offsetof(rp_stats_mix_t, url), RP_MIX_URLS},
};

static int is_used(const rp_stats_side_t *side, apr_size_t i)
{
    return side->blocks[i].count > 0 && !(side->left_out && side->left_out[i]);
}

static void mix_add_up(mix_group_t *group, const rp_stats_side_t *side, const mix_layout_t *layout)
{
    memset(group, 0, sizeof(*group));
    for (apr_size_t i = 0; i < side->block_count; i++) {
        const apr_uint32_t *kinds =
            (const apr_uint32_t *)(const void *)((const char *)&side->blocks[i].mix + layout->offset);
        for (unsigned k = 0; k < layout->kind_count && is_used(side, i); k++) {
            group->kinds[k] += kinds[k];
            group->all += kinds[k];
        }
    }
}

/* Total variation distance of two mixes, counting only what requests drawn at random would not show. */
static double mix_distance(const mix_group_t *a, const mix_group_t *b, unsigned kind_count)
{
    double more = 0, less = 0;

    if (a->all <= 0 || b->all <= 0) {
        return 0;
    }
    for (unsigned k = 0; k < kind_count; k++) {
        double common = (a->kinds[k] + b->kinds[k]) / (a->all + b->all);
        double chance = MIX_CHANCE_SD * sqrt(common * (1 - common) * (1 / a->all + 1 / b->all));
        double change = b->kinds[k] / b->all - a->kinds[k] / a->all;
        more += fmax(0, change - chance);
        less += fmax(0, -change - chance);
    }
    return fmax(more, less);
}

rp_reason_t rp_compare_mix(const rp_stats_side_t *a, const rp_stats_side_t *b, double limit, double *shift)
{
    rp_reason_t reason = RP_REASON_NONE;

    *shift = 0;
    for (unsigned i = 0; i < sizeof(mix_layouts) / sizeof(*mix_layouts); i++) {
        mix_group_t a_group, b_group;
        double distance;

        mix_add_up(&a_group, a, &mix_layouts[i]);
        mix_add_up(&b_group, b, &mix_layouts[i]);
        distance = mix_distance(&a_group, &b_group, mix_layouts[i].kind_count);
        *shift = fmax(*shift, distance);
        if (distance > limit && reason == RP_REASON_NONE) {
            reason = mix_layouts[i].reason;
        }
    }
    return reason;
}

/* ---- load ---- */

typedef struct {
    double rate;      /* requests a second */
    double in_flight; /* requests at once: Little's law */
    double clients;
} load_t;

static load_t load_of(const rp_stats_side_t *side)
{
    double count = 0, sum_ns = 0, duration_ns = 0, clients = 0, blocks = 0;

    for (apr_size_t i = 0; i < side->block_count; i++) {
        if (is_used(side, i)) {
            count += (double)side->blocks[i].count;
            sum_ns += (double)side->blocks[i].sum_ns;
            duration_ns += (double)side->blocks[i].duration_ns;
            clients += side->blocks[i].clients;
            blocks++;
        }
    }
    if (duration_ns <= 0) {
        return (load_t){0, 0, blocks > 0 ? clients / blocks : 0};
    }
    return (load_t){count * 1e9 / duration_ns, sum_ns / duration_ns, clients / blocks};
}

/* How many times more on side b, as a logarithm; 0 when one side does not know. */
static double log_ratio(double a, double b)
{
    return a > 0 && b > 0 ? log(b / a) : 0;
}

/*
 * A slower configuration alone changes either the rate (clients that wait for their answer) or the requests in flight
 * (clients that do not), so neither of them is load by itself; both in one direction is.
 */
rp_reason_t rp_compare_load(const rp_stats_side_t *a, const rp_stats_side_t *b, double limit)
{
    load_t a_load = load_of(a), b_load = load_of(b);
    double rate = log_ratio(a_load.rate, b_load.rate);
    double in_flight = log_ratio(a_load.in_flight, b_load.in_flight);
    double clients = log_ratio(a_load.clients, b_load.clients);

    if (fabs(clients) > log(limit) || (fabs(rate) > log(limit) && rate * in_flight > fabs(rate) * log(limit) / 2)) {
        return RP_REASON_LOAD;
    }
    return RP_REASON_NONE;
}

/* ---- the comparison ---- */

static apr_uint32_t mark_side(apr_pool_t *pool, rp_stats_side_t *side)
{
    apr_byte_t *left_out = apr_pcalloc(pool, side->block_count + 1);
    double *scratch;
    apr_pool_t *temporary = pool;
    apr_uint32_t marked;

    if (apr_pool_create(&temporary, pool) != APR_SUCCESS) {
        temporary = pool;
    }
    scratch = apr_palloc(temporary, (side->block_count + 1) * sizeof(*scratch));
    marked = rp_stats_mark_outliers(left_out, side, scratch);
    side->left_out = left_out;
    if (temporary != pool) {
        apr_pool_destroy(temporary);
    }
    return marked;
}

/* Outliers are left out on both sides or on none: else one side would lose its slow blocks and the other keep them. */
static void leave_out_outliers(rp_compare_t *compare, apr_pool_t *pool)
{
    apr_uint32_t a_marked = mark_side(pool, &compare->a), b_marked = mark_side(pool, &compare->b);

    compare->left_out = a_marked + b_marked;
    if (a_marked > rp_stats_outliers_max(compare->a.block_count) ||
        b_marked > rp_stats_outliers_max(compare->b.block_count)) {
        rp_stats_keep_all((apr_byte_t *)compare->a.left_out, &compare->a);
        rp_stats_keep_all((apr_byte_t *)compare->b.left_out, &compare->b);
        compare->left_out = 0;
    }
}

static rp_reason_t find_size_obstacle(const rp_compare_t *compare)
{
    rp_stats_estimate_t a, b;
    rp_stats_series_t own = {NULL, 0};

    rp_stats_estimate(&a, &compare->a, own);
    rp_stats_estimate(&b, &compare->b, own);
    if (a.blocks < compare->options.blocks_min || b.blocks < compare->options.blocks_min) {
        return RP_REASON_FEW_BLOCKS;
    }
    if (a.requests < compare->options.requests_min || b.requests < compare->options.requests_min) {
        return RP_REASON_FEW_REQUESTS;
    }
    return RP_REASON_NONE;
}

static rp_reason_t find_obstacle(rp_compare_t *compare)
{
    rp_reason_t size = find_size_obstacle(compare);
    rp_reason_t mix = rp_compare_mix(&compare->a, &compare->b, compare->options.mix_limit, &compare->mix_shift);

    if (size != RP_REASON_NONE) {
        return size;
    }
    return mix != RP_REASON_NONE ? mix : rp_compare_load(&compare->a, &compare->b, compare->options.load_limit);
}

rp_compare_t *rp_compare_create(apr_pool_t *pool, const rp_stats_block_t *a, apr_size_t a_count,
                                const rp_stats_block_t *b, apr_size_t b_count, const rp_compare_options_t *options)
{
    rp_compare_t *compare = apr_pcalloc(pool, sizeof(*compare));

    if (options) {
        compare->options = *options;
    }
    else {
        rp_compare_options_init(&compare->options);
    }
    compare->a = (rp_stats_side_t){a, a_count, NULL};
    compare->b = (rp_stats_side_t){b, b_count, NULL};
    leave_out_outliers(compare, pool);
    compare->obstacle = find_obstacle(compare);
    return compare;
}

rp_reason_t rp_compare_obstacle(const rp_compare_t *compare)
{
    return compare->obstacle;
}

/* The variance of the difference, split by what makes it smaller. */
typedef struct {
    double a_within, b_within;   /* more blocks */
    double a_between, b_between; /* more epochs */
    double df;
} variance_t;

/* Spread between epochs relative to the mean, squared; the epochs of both sides are pooled. */
static double between_measured(const rp_stats_estimate_t *a, const rp_stats_estimate_t *b, double *df)
{
    double degrees = a->epochs + b->epochs - 2.0, chance;

    *df = degrees;
    if (degrees <= 0) {
        return 0;
    }
    chance = (a->epochs * a->epoch_var + b->epochs * b->epoch_var) / (a->epochs + b->epochs);
    return fmax(0, (a->between_ss + b->between_ss) / degrees - chance * RP_STATS_CHANCE_TAKEN_OFF);
}

static double between_variance(const rp_compare_t *compare, const rp_stats_estimate_t *a, const rp_stats_estimate_t *b,
                               const rp_stats_aa_t *aa, double *df)
{
    double assumed = compare->options.between_ratio * compare->options.between_ratio;
    double measured = between_measured(a, b, df);
    int known = *df > 0;

    if (aa && aa->df > 0 && !aa->from_parts && aa->mean_ns > 0) {
        double from_aa = aa->between_sd_ns * aa->between_sd_ns / (aa->mean_ns * aa->mean_ns);
        if (!known || from_aa > measured) {
            measured = from_aa;
            *df = aa->df;
        }
        known = 1;
    }
    if (!known || measured < assumed) {
        *df = 1e9;
        return assumed;
    }
    return measured;
}

static variance_t variance_of(const rp_compare_t *compare, const rp_stats_estimate_t *a, const rp_stats_estimate_t *b,
                              const rp_stats_aa_t *aa)
{
    double between_df, between = between_variance(compare, a, b, aa, &between_df), all, parts;
    variance_t v = {.a_within = a->within_var, .b_within = b->within_var};

    v.a_between = between * a->weight_sq * a->mean_ns * a->mean_ns;
    v.b_between = between * b->weight_sq * b->mean_ns * b->mean_ns;
    between = v.a_between + v.b_between;
    all = v.a_within + v.b_within + between;
    parts = v.a_within * v.a_within / a->within_df + v.b_within * v.b_within / b->within_df +
            between * between / between_df;
    v.df = parts > 0 ? all * all / parts : 1e9; /* Welch and Satterthwaite */
    return v;
}

/* Minutes until the interval, at the difference seen so far, lies on one side of the floor. */
static double minutes_more(const rp_verdict_t *out, const rp_stats_estimate_t *a, const rp_stats_estimate_t *b,
                           const variance_t *v, double t, int a_is_over)
{
    double sure_ns = fmax(out->floor_ns, out->drift_ns), size = fabs(out->diff_ns);
    double room = size > sure_ns ? size - sure_ns : out->floor_ns - size;
    double target = (room - out->mix_shift * fmax(a->mean_ns, b->mean_ns)) / t;
    double fixed = v->a_between + v->b_between + (a_is_over ? v->a_within : 0),
           moving = v->b_within + (a_is_over ? 0 : v->a_within);
    double seconds = a_is_over ? b->seconds : fmax(a->seconds, b->seconds), factor;

    if (target <= 0 || target * target <= fixed) {
        return RP_MINUTES_UNREACHABLE;
    }
    factor = moving / (target * target - fixed);
    return factor > 1 ? (factor - 1) * seconds / 60 : 0;
}

static void fill_interval(rp_verdict_t *out, const variance_t *v, double t)
{
    double a = out->a_mean_ns, b = out->b_mean_ns;
    double mix_ns = out->mix_shift * fmax(a, b);
    double a_var = v->a_within + v->a_between, b_var = v->b_within + v->b_between;
    double half_ns = t * sqrt(a_var + b_var) + mix_ns;

    out->diff_ns = b - a;
    out->low_ns = out->diff_ns - half_ns;
    out->high_ns = out->diff_ns + half_ns;
    out->has_ratio = a > 0;
    if (out->has_ratio) {
        /* Delta method for the ratio b / a. */
        double half = t * sqrt(b_var + a_var * (b / a) * (b / a)) / a + mix_ns / a;
        out->ratio = out->diff_ns / a;
        out->ratio_low = out->ratio - half;
        out->ratio_high = out->ratio + half;
    }
}

static void fill_counts(rp_verdict_t *out, const rp_compare_t *compare, const rp_stats_estimate_t *a,
                        const rp_stats_estimate_t *b)
{
    out->a_mean_ns = a->mean_ns;
    out->b_mean_ns = b->mean_ns;
    out->a_requests = a->requests;
    out->b_requests = b->requests;
    out->a_blocks = a->blocks;
    out->b_blocks = b->blocks;
    out->a_epochs = a->epochs;
    out->b_epochs = b->epochs;
    out->left_out = compare->left_out;
    out->mix_shift = compare->mix_shift;
}

static double floor_of(const rp_compare_options_t *options, double a_mean_ns, const rp_stats_aa_t *aa)
{
    double floor_ns = fmax(options->tolerance_ratio * a_mean_ns, options->floor_min_ns);

    return aa && !aa->from_parts ? fmax(floor_ns, aa->floor_ns) : floor_ns;
}

/* What a side differs from itself: quarters of an epoch stand for two of three A/A comparisons, as in
 * rp_stats_aa_floor. */
static double drift_of(const rp_stats_estimate_t *a, const rp_stats_estimate_t *b, const rp_stats_aa_t *aa)
{
    double drift_ns = rp_stats_t_quantile(0.8413447, 3) * sqrt(2) * fmax(a->drift_sd_ns, b->drift_sd_ns);

    return aa && aa->from_parts ? fmax(drift_ns, aa->floor_ns) : drift_ns;
}

static void compare_series(rp_verdict_t *out, const rp_compare_t *compare, rp_stats_series_t a_series,
                           rp_stats_series_t b_series, const rp_stats_aa_t *aa, apr_uint32_t comparisons)
{
    rp_stats_estimate_t a, b;
    variance_t variance;
    double t;

    memset(out, 0, sizeof(*out));
    out->comparisons = comparisons ? comparisons : 1;
    rp_stats_estimate(&a, &compare->a, a_series);
    rp_stats_estimate(&b, &compare->b, b_series);
    fill_counts(out, compare, &a, &b);
    if (compare->obstacle != RP_REASON_NONE) {
        out->kind = RP_VERDICT_NOT_COMPARABLE;
        out->reason = compare->obstacle;
        return;
    }
    variance = variance_of(compare, &a, &b, aa);
    t = rp_stats_t_quantile(1 - compare->options.alpha / (2.0 * out->comparisons), variance.df);
    fill_interval(out, &variance, t);
    out->floor_ns = floor_of(&compare->options, a.mean_ns, aa);
    out->drift_ns = drift_of(&a, &b, aa);
    rp_verdict_decide(out);
    if (out->kind == RP_VERDICT_INCONCLUSIVE) {
        out->minutes_more = minutes_more(out, &a, &b, &variance, t, compare->options.a_is_over);
    }
}

void rp_compare_total(rp_verdict_t *out, const rp_compare_t *compare, const rp_stats_aa_t *aa)
{
    rp_stats_series_t own = {NULL, 0};

    compare_series(out, compare, own, own, aa, 1);
}

void rp_compare_part(rp_verdict_t *out, const rp_compare_t *compare, rp_stats_series_t a, rp_stats_series_t b,
                     const rp_stats_aa_t *aa)
{
    compare_series(out, compare, a, b, aa, compare->options.comparisons);
}
