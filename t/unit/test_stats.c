/*
 * The verdict engine against generated traffic with known truth. Every seed is fixed: a run is the same each time.
 * `test_stats --table` prints the calibration table of doc/statistics.md instead.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <apr_general.h>

#include "base/compare.h"
#include "base/interleaved.h"
#include "traffic.h"

#ifndef RUNS
#define RUNS 200
#endif

static apr_pool_t *pool;
static traffic_side_t a_side, b_side;
static const rp_stats_series_t own = {NULL, 0};

static rp_compare_t *compare_sides(const rp_compare_options_t *options)
{
    return rp_compare_create(pool, a_side.blocks, a_side.count, b_side.blocks, b_side.count, options);
}

static rp_verdict_t verdict_total(const rp_compare_options_t *options, const rp_stats_aa_t *aa)
{
    rp_verdict_t verdict;

    rp_compare_total(&verdict, compare_sides(options), aa);
    apr_pool_clear(pool);
    return verdict;
}

static int is_confident(const rp_verdict_t *verdict)
{
    return verdict->kind == RP_VERDICT_SLOWER || verdict->kind == RP_VERDICT_FASTER;
}

/* ---- calibration ---- */

typedef struct {
    const char *name;
    traffic_t traffic;       /* of A; B is the same but for its ratio */
    unsigned history_epochs; /* further epochs of A that the A/A floor is taken from */
} scenario_t;

typedef struct {
    unsigned kinds[RP_VERDICT_FASTER + 1];
    unsigned covered;
    unsigned
        wrong; /* slower or faster where nothing changed, or the wrong one of both, or no difference where 2 % are */
    double half_width; /* mean, relative */
} tally_t;

static const scenario_t scenarios[] = {
    /* name, {epochs, blocks of each, requests a block, mean ns, sigma, block sd and rho, epoch sd, tail, ratio} */
    {"independent seconds, 1 min", {1, 60, 50, 1e5, 0.3, 0.02, 0, 0, 0, 1, 1, 0}, 0},
    {"only 12 s", {1, 12, 50, 1e5, 0.3, 0.02, 0, 0, 0, 1, 1, 0}, 0},
    {"neighbours correlated 0.5", {1, 120, 50, 1e5, 0.3, 0.03, 0.5, 0, 0, 1, 1, 0}, 0},
    {"neighbours correlated 0.8", {1, 120, 50, 1e5, 0.3, 0.03, 0.8, 0, 0, 1, 1, 0}, 0},
    {"neighbours correlated 0.95", {1, 120, 50, 1e5, 0.3, 0.03, 0.95, 0, 0, 1, 1, 0}, 0},
    {"the same, 10 min", {1, 600, 50, 1e5, 0.3, 0.03, 0.95, 0, 0, 1, 1, 0}, 0},
    {"500 requests a second, 5 min", {1, 300, 500, 1e5, 0.3, 0.01, 0.3, 0, 0, 1, 1, 0}, 0},
    {"10 ms requests, 5 a second", {1, 120, 5, 1e7, 0.3, 0.02, 0.3, 0, 0, 1, 1, 0}, 0},
    {"heavy tail, shape 2.2", {1, 120, 50, 1e5, 0.3, 0.02, 0.3, 0, 0.02, 2.2, 1, 0}, 0},
    {"heavy tail, shape 1.5", {1, 120, 50, 1e5, 0.3, 0.02, 0.3, 0, 0.02, 1.5, 1, 0}, 0},
    {"log-normal sigma 1.5", {1, 120, 50, 1e5, 1.5, 0.02, 0.3, 0, 0, 1, 1, 0}, 0},
    {"1 epoch each, offsets 1 %, 6 more known", {1, 60, 40, 8e4, 0.3, 0.01, 0.3, 0.01, 0, 1, 1, 0}, 6},
    {"2 epochs each, offsets 1 %", {2, 60, 40, 8e4, 0.3, 0.01, 0.3, 0.01, 0, 1, 1, 0}, 0},
    {"4 epochs each, offsets 1 %", {4, 60, 40, 8e4, 0.3, 0.01, 0.3, 0.01, 0, 1, 1, 0}, 0},
    {"8 epochs each, offsets 2 %", {8, 60, 40, 8e4, 0.3, 0.01, 0.3, 0.02, 0, 1, 1, 0}, 0},
};
/* One epoch of each variant and none before them: what epochs differ by cannot be known. Not part of the promise. */
static const scenario_t unknown_offsets = {
    "1 epoch each, offsets 1 %, none known", {1, 60, 40, 8e4, 0.3, 0.01, 0.3, 0.01, 0, 1, 1, 0}, 0};
#define SCENARIOS (sizeof(scenarios) / sizeof(*scenarios))

static int known_aa(rp_stats_aa_t *aa, random_t *random, const scenario_t *scenario)
{
    static traffic_side_t history;
    traffic_t traffic = scenario->traffic;
    rp_stats_side_t side;

    if (!scenario->history_epochs) {
        return 0;
    }
    traffic.epochs = scenario->history_epochs;
    traffic_generate(&history, random, &traffic);
    side = (rp_stats_side_t){history.blocks, history.count, NULL};
    rp_stats_aa_floor(aa, &side, own);
    return 1;
}

static int is_wrong(const rp_verdict_t *verdict, double ratio)
{
    if (ratio == 1) {
        return is_confident(verdict);
    }
    return verdict->kind == (ratio > 1 ? RP_VERDICT_FASTER : RP_VERDICT_SLOWER) ||
           (verdict->kind == RP_VERDICT_NO_DIFFERENCE &&
            fabs(ratio - 1) > fmax(0.0101, verdict->floor_ns / verdict->a_mean_ns));
}

static tally_t calibrate(const scenario_t *scenario, double ratio, unsigned runs, apr_uint64_t seed)
{
    tally_t tally = {{0}, 0, 0, 0};
    random_t random = {seed};
    traffic_t changed = scenario->traffic;

    changed.ratio = ratio;
    for (unsigned i = 0; i < runs; i++) {
        rp_stats_aa_t aa;
        int known = known_aa(&aa, &random, scenario);
        rp_verdict_t verdict;

        traffic_generate(&a_side, &random, &scenario->traffic);
        traffic_generate(&b_side, &random, &changed);
        verdict = verdict_total(NULL, known ? &aa : NULL);
        tally.kinds[verdict.kind]++;
        tally.covered += verdict.ratio_low <= ratio - 1 && ratio - 1 <= verdict.ratio_high;
        tally.wrong += is_wrong(&verdict, ratio);
        tally.half_width += (verdict.ratio_high - verdict.ratio_low) / 2 / runs;
    }
    return tally;
}

static void print_row(const scenario_t *scenario, double ratio)
{
    tally_t t = calibrate(scenario, ratio, RUNS, 7);

    printf("| %s | %+.0f %% | %u | %u | %u | %u | %u | %.1f %% | ±%.2f %% |\n", scenario->name, (ratio - 1) * 100,
           t.kinds[RP_VERDICT_SLOWER], t.kinds[RP_VERDICT_FASTER], t.kinds[RP_VERDICT_NO_DIFFERENCE],
           t.kinds[RP_VERDICT_INCONCLUSIVE], t.kinds[RP_VERDICT_NOT_COMPARABLE], 100.0 * t.covered / RUNS,
           100 * t.half_width);
}

static void print_table(void)
{
    static const double ratios[] = {1, 1.02, 1.1};

    printf(
        "| traffic | true change | slower | faster | no difference | inconclusive | not comparable | CI covers truth "
        "| mean half width |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (unsigned r = 0; r < sizeof(ratios) / sizeof(*ratios); r++) {
        for (unsigned i = 0; i < SCENARIOS; i++) {
            print_row(&scenarios[i], ratios[r]);
        }
        print_row(&unknown_offsets, ratios[r]);
    }
}

static void aa_comparisons_say_slower_or_faster_in_at_most_5_percent(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SCENARIOS; i++) {
        tally_t tally = calibrate(&scenarios[i], 1, RUNS, 1 + i);
        print_message("# %s: %u of %u\n", scenarios[i].name, tally.wrong, RUNS);
        assert_true(tally.wrong * 20 <= RUNS);
        assert_int_equal(tally.kinds[RP_VERDICT_NOT_COMPARABLE], 0);
    }
}

static void the_interval_covers_a_change_of_2_percent_in_90_of_100(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SCENARIOS; i++) {
        tally_t tally = calibrate(&scenarios[i], 1.02, RUNS, 101 + i);
        /* A machine state that lasts 20 blocks, seen for 120 of them, is six observations: below the promise. */
        unsigned wanted = scenarios[i].traffic.block_rho > 0.9 ? RUNS * 3 / 4 : RUNS * 9 / 10;
        print_message("# %s: %u of %u\n", scenarios[i].name, tally.covered, RUNS);
        assert_true(tally.covered >= wanted);
        assert_true(tally.wrong * 20 <= RUNS);
    }
}

static const traffic_t busy = {1, 180, 500, 1e5, 0.3, 0.01, 0.3, 0, 0, 1, 1, 0};

static const scenario_t busy_scenario = {"busy", {1, 180, 500, 1e5, 0.3, 0.01, 0.3, 0, 0, 1, 1, 0}, 0};

static void a_change_of_10_percent_is_seen_and_named_the_right_way_round(void **state)
{
    (void)state;
    assert_true(calibrate(&busy_scenario, 1.1, RUNS, 5).kinds[RP_VERDICT_SLOWER] >= RUNS * 9 / 10);
    assert_true(calibrate(&busy_scenario, 0.9, RUNS, 6).kinds[RP_VERDICT_FASTER] >= RUNS * 9 / 10);
}

static void no_difference_is_said_where_there_is_none_and_never_at_2_percent(void **state)
{
    (void)state;
    assert_true(calibrate(&busy_scenario, 1, RUNS, 8).kinds[RP_VERDICT_NO_DIFFERENCE] >= RUNS / 2);
    assert_int_equal(calibrate(&busy_scenario, 1.02, RUNS, 9).kinds[RP_VERDICT_NO_DIFFERENCE], 0);
}

/* ---- parts ---- */

static rp_stats_series_t part_series(const traffic_side_t *side, int part)
{
    return (rp_stats_series_t){&side->parts[0][part], sizeof(side->parts[0])};
}

static void a_change_of_20_us_in_one_phase_is_found_there_and_nowhere_else(void **state)
{
    random_t random = {11};
    unsigned found = 0, elsewhere = 0;
    rp_compare_options_t options;
    (void)state;

    rp_compare_options_init(&options);
    options.comparisons = TRAFFIC_PARTS;
    for (unsigned run = 0; run < RUNS / 4; run++) {
        int changed = (int)(random_bits(&random) % TRAFFIC_PARTS);
        rp_compare_t *compare;
        traffic_generate(&a_side, &random, &busy);
        traffic_generate(&b_side, &random, &busy);
        traffic_divide(&a_side, &random, 0.05, -1, 0);
        traffic_divide(&b_side, &random, 0.05, changed, 20000);
        compare = compare_sides(&options);
        for (int p = 0; p < TRAFFIC_PARTS; p++) {
            rp_verdict_t verdict;
            rp_compare_part(&verdict, compare, part_series(&a_side, p), part_series(&b_side, p), NULL);
            found += p == changed && verdict.kind == RP_VERDICT_SLOWER && fabs(verdict.diff_ns - 20000) < 2000;
            elsewhere += p != changed && is_confident(&verdict);
        }
        apr_pool_clear(pool);
    }
    print_message("# found %u of %u, elsewhere %u\n", found, RUNS / 4, elsewhere);
    assert_int_equal(found, RUNS / 4);
    assert_int_equal(elsewhere, 0);
}

static void parts_looked_at_together_have_wider_intervals(void **state)
{
    random_t random = {14};
    rp_compare_options_t options;
    rp_verdict_t alone, among_many;
    (void)state;

    rp_compare_options_init(&options);
    traffic_generate(&a_side, &random, &busy);
    traffic_generate(&b_side, &random, &busy);
    rp_compare_part(&alone, compare_sides(&options), own, own, NULL);
    options.comparisons = 100;
    rp_compare_part(&among_many, compare_sides(&options), own, own, NULL);
    assert_true(among_many.high_ns - among_many.low_ns > 1.5 * (alone.high_ns - alone.low_ns));
    assert_true(among_many.diff_ns == alone.diff_ns);
}

static void a_part_that_only_b_has_is_slower_without_a_percentage(void **state)
{
    static const apr_uint64_t nothing[TRAFFIC_BLOCKS_MAX];
    random_t random = {12};
    rp_verdict_t verdict;
    (void)state;

    traffic_generate(&a_side, &random, &busy);
    traffic_generate(&b_side, &random, &busy);
    traffic_divide(&b_side, &random, 0.05, -1, 0);
    rp_compare_part(&verdict, compare_sides(NULL), (rp_stats_series_t){nothing, sizeof(*nothing)},
                    part_series(&b_side, 4), NULL);
    assert_int_equal(verdict.kind, RP_VERDICT_SLOWER);
    assert_false(verdict.has_ratio);
    assert_true(verdict.diff_ns > 1500 && verdict.diff_ns < 2500);
}

static void parts_and_rest_add_up_to_the_total_to_the_last_bit(void **state)
{
    random_t random = {13};
    (void)state;

    for (unsigned run = 0; run < 100; run++) {
        rp_part_t parts[30] = {{0}};
        double total = 30000 * random_normal(&random), rest, sum;
        for (unsigned i = 0; i < 30; i++) {
            parts[i].diff_ns = 1e4 * random_normal(&random) * random_unit(&random);
        }
        sum = rest = rp_compare_attribute(parts, 30, &total);
        for (unsigned i = 0; i < 30; i++) {
            sum += parts[i].diff_ns;
            assert_true(i == 0 || fabs(parts[i - 1].diff_ns) >= fabs(parts[i].diff_ns));
            assert_true(fabs(parts[i].share * total - parts[i].diff_ns) < 1e-6);
        }
        assert_true(sum == total);
    }
}

static void nothing_to_attribute_gives_no_shares(void **state)
{
    rp_part_t part = {.name = "map", .diff_ns = 3};
    double total = 0;
    (void)state;

    assert_true(rp_compare_attribute(&part, 1, &total) == -3);
    assert_true(part.share == 0);
    assert_true(rp_compare_attribute(NULL, 0, &total) == 0);
}

/* ---- trouble ---- */

static void generate_both(random_t *random)
{
    traffic_generate(&a_side, random, &busy);
    traffic_generate(&b_side, random, &busy);
}

static void one_outlier_block_is_left_out_and_changes_no_verdict(void **state)
{
    random_t random = {21};
    unsigned confident = 0, slower = 0;
    (void)state;

    for (unsigned run = 0; run < RUNS; run++) {
        apr_size_t at = random_bits(&random) % busy.blocks_per_epoch;
        rp_verdict_t verdict;
        generate_both(&random);
        traffic_slow_down(&b_side, at, at + 1, 30);
        verdict = verdict_total(NULL, NULL);
        confident += is_confident(&verdict);
        assert_true(verdict.left_out >= 1);
        traffic_slow_down(&b_side, 0, b_side.count, 1.1);
        verdict = verdict_total(NULL, NULL);
        slower += verdict.kind == RP_VERDICT_SLOWER;
    }
    assert_true(confident * 20 <= RUNS);
    assert_true(slower >= RUNS * 9 / 10);
}

/* A B made of many slow seconds is slower: they are no outliers. */
static void many_slow_blocks_are_not_left_out(void **state)
{
    random_t random = {22};
    rp_verdict_t verdict;
    (void)state;

    generate_both(&random);
    for (apr_size_t i = 0; i < b_side.count; i += 5) {
        traffic_slow_down(&b_side, i, i + 1, 3);
    }
    verdict = verdict_total(NULL, NULL);
    assert_int_equal(verdict.left_out, 0);
    assert_true(verdict.ratio > 0.3 && verdict.ratio < 0.5);
}

static void drift_for_a_while_is_never_a_confident_wrong_answer(void **state)
{
    random_t random = {23};
    unsigned confident = 0, drift = 0, no_difference = 0, noticeable = 0;
    (void)state;

    for (unsigned run = 0; run < RUNS; run++) {
        apr_size_t length = busy.blocks_per_epoch * (2 + random_bits(&random) % 68) / 100;
        apr_size_t from = random_bits(&random) % (busy.blocks_per_epoch - length);
        rp_verdict_t verdict;
        generate_both(&random);
        traffic_slow_down(run % 2 ? &a_side : &b_side, from, from + length, 1.1);
        verdict = verdict_total(NULL, NULL);
        confident += is_confident(&verdict);
        if (length * 10 >= busy.blocks_per_epoch) {
            noticeable++;
            no_difference += verdict.kind == RP_VERDICT_NO_DIFFERENCE;
            drift += verdict.kind == RP_VERDICT_INCONCLUSIVE && verdict.reason == RP_REASON_DRIFT;
        }
    }
    print_message("# confident %u of %u, no difference %u, drift %u of %u\n", confident, RUNS, no_difference, drift,
                  noticeable);
    assert_int_equal(confident, 0);
    assert_int_equal(no_difference, 0);
    assert_true(drift * 10 >= noticeable * 9);
}

static void a_burst_of_404s_is_a_changed_mix_or_inconclusive(void **state)
{
    random_t random = {24};
    unsigned confident = 0, long_bursts = 0, named = 0;
    (void)state;

    for (unsigned run = 0; run < RUNS; run++) {
        apr_size_t length = 1 + random_bits(&random) % (busy.blocks_per_epoch / 2);
        apr_size_t from = random_bits(&random) % (busy.blocks_per_epoch - length);
        double share = 0.1 + 0.8 * random_unit(&random);
        rp_verdict_t verdict;
        generate_both(&random);
        traffic_404s(run % 2 ? &a_side : &b_side, from, from + length, share);
        verdict = verdict_total(NULL, NULL);
        confident += is_confident(&verdict);
        if ((double)length * share > 0.04 * busy.blocks_per_epoch && length > 9) {
            long_bursts++;
            named += verdict.kind == RP_VERDICT_NOT_COMPARABLE && verdict.reason == RP_REASON_STATUSES;
        }
    }
    print_message("# confident %u, long bursts %u, named %u\n", confident, long_bursts, named);
    assert_int_equal(confident, 0);
    assert_int_equal(named, long_bursts);
}

/* 1 % of 404s that cost a tenth make the mean 0.9 % smaller: below the limit of the mix, so the interval is widened. */
static void a_small_change_of_the_mix_widens_the_interval(void **state)
{
    random_t random = {25};
    rp_verdict_t before, after;
    (void)state;

    generate_both(&random);
    before = verdict_total(NULL, NULL);
    traffic_404s(&b_side, 0, b_side.count, 0.015);
    after = verdict_total(NULL, NULL);
    assert_true(before.mix_shift == 0);
    assert_true(after.mix_shift > 0.008 && after.mix_shift < 0.015);
    assert_true(after.ratio_high - after.ratio_low > before.ratio_high - before.ratio_low + 0.015);
    assert_false(is_confident(&after));
}

static void assert_obstacle(rp_reason_t reason)
{
    rp_verdict_t verdict = verdict_total(NULL, NULL);

    assert_int_equal(verdict.kind, RP_VERDICT_NOT_COMPARABLE);
    assert_int_equal(verdict.reason, reason);
}

static void each_changed_mix_has_its_own_reason(void **state)
{
    random_t random = {26};
    (void)state;

    generate_both(&random);
    for (apr_size_t i = 0; i < b_side.count; i++) {
        b_side.blocks[i].mix.keepalive -= 100;
        b_side.blocks[i].mix.first += 100;
    }
    assert_obstacle(RP_REASON_KEEPALIVE);
    generate_both(&random);
    for (apr_size_t i = 0; i < b_side.count; i++) {
        b_side.blocks[i].mix.url[0] -= 100;
        b_side.blocks[i].mix.url[RP_MIX_URLS - 1] += 100;
    }
    assert_obstacle(RP_REASON_URLS);
    generate_both(&random);
    for (apr_size_t i = 0; i < b_side.count; i++) {
        b_side.blocks[i].mix.vhost[0] -= 100;
        b_side.blocks[i].mix.vhost[3] += 100;
    }
    assert_obstacle(RP_REASON_VHOSTS);
}

static void a_mix_that_one_side_does_not_know_is_not_compared(void **state)
{
    random_t random = {27};
    (void)state;

    generate_both(&random);
    for (apr_size_t i = 0; i < b_side.count; i++) {
        memset(&b_side.blocks[i].mix, 0, sizeof(b_side.blocks[i].mix));
    }
    assert_int_not_equal(verdict_total(NULL, NULL).kind, RP_VERDICT_NOT_COMPARABLE);
}

static void scale_side(traffic_side_t *side, double count, double time, double clients)
{
    for (apr_size_t i = 0; i < side->count; i++) {
        rp_stats_block_t *block = &side->blocks[i];
        block->sum_ns = (apr_uint64_t)((double)block->sum_ns * count * time);
        block->count = (apr_uint64_t)((double)block->count * count);
        block->clients *= (float)clients;
        traffic_mix(block);
    }
}

static void a_doubled_load_is_not_comparable(void **state)
{
    random_t random = {28};
    (void)state;

    generate_both(&random);
    scale_side(&b_side, 2, 1.3, 1); /* twice the requests, each a little slower */
    assert_obstacle(RP_REASON_LOAD);
    generate_both(&random);
    scale_side(&b_side, 1, 2, 2); /* a saturated server with twice the clients: each waits twice as long */
    assert_obstacle(RP_REASON_LOAD);
    generate_both(&random);
    scale_side(&a_side, 2, 1.3, 1);
    assert_obstacle(RP_REASON_LOAD);
}

static void a_slow_configuration_is_not_taken_for_a_changed_load(void **state)
{
    random_t random = {29};
    (void)state;

    generate_both(&random);
    scale_side(&b_side, 0.5, 2, 1); /* clients that wait for their answers send half as many requests */
    assert_int_equal(verdict_total(NULL, NULL).kind, RP_VERDICT_SLOWER);
    generate_both(&random);
    scale_side(&b_side, 1, 2, 1); /* clients that do not wait */
    assert_int_equal(verdict_total(NULL, NULL).kind, RP_VERDICT_SLOWER);
}

static void too_little_traffic_is_not_comparable(void **state)
{
    random_t random = {30};
    traffic_t few = busy;
    (void)state;

    few.requests_per_block = 4;
    traffic_generate(&a_side, &random, &busy);
    traffic_generate(&b_side, &random, &busy);
    b_side.count = 9;
    assert_obstacle(RP_REASON_FEW_BLOCKS);
    b_side.count = 0;
    assert_obstacle(RP_REASON_FEW_BLOCKS);
    a_side.count = 0;
    assert_obstacle(RP_REASON_FEW_BLOCKS);
    few.blocks_per_epoch = 15;
    traffic_generate(&a_side, &random, &few);
    traffic_generate(&b_side, &random, &few);
    assert_obstacle(RP_REASON_FEW_REQUESTS);
}

static void blocks_without_requests_do_not_count(void **state)
{
    random_t random = {31};
    rp_verdict_t verdict;
    (void)state;

    generate_both(&random);
    for (apr_size_t i = 0; i < 60; i++) {
        memset(&b_side.blocks[i * 3], 0, sizeof(b_side.blocks[0]));
    }
    verdict = verdict_total(NULL, NULL);
    assert_int_equal(verdict.b_blocks + verdict.left_out, b_side.count - 60);
}

/* ---- A/A floor, and how much more traffic ---- */

static double floor_median_ratio(unsigned epochs, double epoch_sd)
{
    traffic_t traffic = busy;
    double sum = 0;
    random_t random = {41};

    traffic.epochs = epochs;
    traffic.blocks_per_epoch = 40;
    traffic.epoch_sd = epoch_sd;
    for (unsigned run = 0; run < 50; run++) {
        rp_stats_side_t side;
        rp_stats_aa_t aa;
        traffic_generate(&a_side, &random, &traffic);
        side = (rp_stats_side_t){a_side.blocks, a_side.count, NULL};
        rp_stats_aa_floor(&aa, &side, own);
        assert_int_equal(aa.epochs, epochs);
        assert_int_equal(aa.from_parts, epochs == 1);
        assert_true(aa.df > 0);
        sum += aa.between_sd_ns / aa.mean_ns / 50;
    }
    return sum;
}

static void the_aa_floor_measures_what_epochs_differ_by(void **state)
{
    double measured = floor_median_ratio(10, 0.03);
    (void)state;

    print_message("# between epochs 3 %%: measured %.2f %%\n", measured * 100);
    assert_true(measured > 0.025 && measured < 0.035);
    assert_true(floor_median_ratio(10, 0) < 0.004);
    assert_true(floor_median_ratio(1, 0) < 0.01);
}

static void the_aa_floor_of_nothing_is_nothing(void **state)
{
    rp_stats_aa_t aa;
    rp_stats_side_t side = {a_side.blocks, 0, NULL};
    (void)state;

    rp_stats_aa_floor(&aa, &side, own);
    assert_true(aa.df == 0 && aa.floor_ns == 0);
}

static void a_wide_aa_floor_silences_a_small_difference(void **state)
{
    random_t random = {42};
    rp_stats_aa_t aa = {.mean_ns = 1e5, .between_sd_ns = 3000, .df = 9, .floor_ns = 4500, .epochs = 10};
    rp_verdict_t verdict;
    (void)state;

    generate_both(&random);
    traffic_slow_down(&b_side, 0, b_side.count, 1.05);
    assert_int_equal(verdict_total(NULL, NULL).kind, RP_VERDICT_SLOWER);
    verdict = verdict_total(NULL, &aa);
    assert_int_equal(verdict.kind, RP_VERDICT_INCONCLUSIVE);
    assert_true(verdict.floor_ns == 4500);
    assert_true(verdict.minutes_more == RP_MINUTES_UNREACHABLE);
}

static void the_minutes_asked_for_are_about_enough(void **state)
{
    traffic_t traffic = {1, 30, 100, 1e5, 0.3, 0.02, 0, 0, 0, 1, 1, 0};
    rp_compare_options_t options;
    random_t random = {43};
    unsigned asked = 0, enough = 0;
    (void)state;

    rp_compare_options_init(&options);
    options.a_is_over = 0;
    for (unsigned run = 0; run < RUNS; run++) {
        rp_verdict_t verdict;
        double blocks;
        traffic.blocks_per_epoch = 30;
        traffic.ratio = 1;
        traffic_generate(&a_side, &random, &traffic);
        traffic.ratio = 1.04;
        traffic_generate(&b_side, &random, &traffic);
        verdict = verdict_total(&options, NULL);
        blocks = 30 + verdict.minutes_more * 60;
        if (verdict.kind == RP_VERDICT_INCONCLUSIVE && verdict.minutes_more > 0 && blocks < TRAFFIC_BLOCKS_MAX) {
            asked++;
            traffic.blocks_per_epoch = (unsigned)blocks + 1;
            traffic_generate(&b_side, &random, &traffic);
            traffic.ratio = 1;
            traffic_generate(&a_side, &random, &traffic);
            verdict = verdict_total(&options, NULL);
            enough += verdict.kind != RP_VERDICT_INCONCLUSIVE;
        }
    }
    print_message("# enough %u of %u\n", enough, asked);
    assert_true(asked > 20);
    assert_true(enough * 2 >= asked);
}

/* ---- interleaved rounds ---- */

#define ROUNDS 60

typedef struct {
    double ratio;    /* of B */
    double aa_ratio; /* of the second A: 1 unless the method is broken */
    double restart_sd;
    double tail;  /* share of measurements that are half as slow again */
    double drift; /* of the machine over all rounds */
} rounds_t;

static rp_stats_sample_t measure(random_t *random, const rounds_t *rounds, double ratio, double machine)
{
    double mean_ns = 1e5 * ratio * machine * (1 + rounds->restart_sd * random_normal(random));

    if (random_unit(random) < rounds->tail) {
        mean_ns *= 1.5;
    }
    return (rp_stats_sample_t){1000, (apr_uint64_t)(mean_ns * 1000)};
}

/* The mean difference of the rounds up to this one: drift and slow measurements stretch it. */
static double rounds_truth_ns(const rounds_t *rounds, unsigned round)
{
    return 1e5 * (rounds->ratio - 1) * (1 + rounds->drift * round / 2 / ROUNDS) * (1 + rounds->tail * 0.5);
}

/* Look after each round, stop at the first sure answer. */
static rp_verdict_t run_rounds(random_t *random, const rounds_t *rounds, unsigned *covered)
{
    rp_stats_round_t done[ROUNDS];
    double scratch[ROUNDS];
    rp_verdict_t verdict = {.kind = RP_VERDICT_INCONCLUSIVE}, first = verdict;
    int sure = 0;

    *covered = 1;
    for (unsigned i = 0; i < ROUNDS; i++) {
        double machine = 1 + rounds->drift * i / ROUNDS, truth = rounds_truth_ns(rounds, i);
        done[i] =
            (rp_stats_round_t){measure(random, rounds, 1, machine), measure(random, rounds, rounds->ratio, machine),
                               measure(random, rounds, rounds->aa_ratio, machine), 15000000000};
        if (rp_stats_interleaved(&verdict, done, i + 1, scratch, NULL) && !sure) {
            sure = 1;
            first = verdict;
        }
        *covered &= i < 1 || (verdict.low_ns <= truth && truth <= verdict.high_ns);
    }
    return sure ? first : verdict;
}

static tally_t tally_rounds(const rounds_t *rounds, apr_uint64_t seed, double *mean_rounds)
{
    tally_t tally = {{0}, 0, 0, 0};
    random_t random = {seed};

    *mean_rounds = 0;
    for (unsigned run = 0; run < RUNS; run++) {
        unsigned covered;
        rp_verdict_t verdict = run_rounds(&random, rounds, &covered);
        tally.kinds[verdict.kind]++;
        tally.covered += covered;
        tally.wrong += is_wrong(&verdict, rounds->ratio);
        *mean_rounds += (double)verdict.a_blocks / RUNS;
    }
    return tally;
}

static const rounds_t rounds_cases[] = {
    /* ratio, A/A, restart sd, tail, drift */
    {1, 1, 0.02, 0, 0},     {1, 1, 0.005, 0, 0},   {1, 1, 0.02, 0.05, 0},    {1, 1, 0.02, 0, 0.1},
    {1.02, 1, 0.005, 0, 0}, {1.05, 1, 0.02, 0, 0}, {1.05, 1, 0.02, 0.05, 0}, {0.95, 1, 0.02, 0, 0.1}};
#define ROUNDS_CASES (sizeof(rounds_cases) / sizeof(*rounds_cases))

static void looking_after_each_round_keeps_the_5_percent(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ROUNDS_CASES; i++) {
        double mean_rounds;
        tally_t tally = tally_rounds(&rounds_cases[i], 51 + i, &mean_rounds);
        print_message("# case %u: wrong %u, covered at all looks %u of %u, mean rounds %.0f\n", i, tally.wrong,
                      tally.covered, RUNS, mean_rounds);
        assert_true(tally.wrong * 20 <= RUNS);
        assert_true(tally.covered * 100 >= RUNS * 93);
    }
}

static void interleaved_rounds_find_5_percent_and_stop_early(void **state)
{
    double mean_rounds;
    rounds_t rounds = {1.05, 1, 0.01, 0, 0.1};
    tally_t tally = tally_rounds(&rounds, 61, &mean_rounds);
    (void)state;

    assert_true(tally.kinds[RP_VERDICT_SLOWER] >= RUNS * 9 / 10);
    assert_true(mean_rounds < ROUNDS * 2 / 3);
}

static void interleaved_rounds_say_no_difference_when_sure(void **state)
{
    double mean_rounds;
    rounds_t rounds = {1, 1, 0.01, 0, 0.1};
    (void)state;

    assert_true(tally_rounds(&rounds, 62, &mean_rounds).kinds[RP_VERDICT_NO_DIFFERENCE] >= RUNS / 2);
}

static void an_aa_pair_that_differs_takes_the_verdict_away(void **state)
{
    rounds_t rounds = {1.1, 1.1, 0.005, 0, 0};
    random_t random = {63};
    unsigned covered;
    rp_verdict_t verdict = run_rounds(&random, &rounds, &covered);
    (void)state;

    assert_int_equal(verdict.kind, RP_VERDICT_INCONCLUSIVE);
    assert_int_equal(verdict.reason, RP_REASON_AA);
}

static void too_few_rounds_give_no_verdict(void **state)
{
    rp_stats_round_t rounds[RP_ROUNDS_MIN] = {{{0, 0}, {0, 0}, {0, 0}, 0}};
    double scratch[RP_ROUNDS_MIN];
    rp_verdict_t verdict;
    (void)state;

    assert_int_equal(rp_stats_interleaved(&verdict, rounds, 0, scratch, NULL), 0);
    assert_int_equal(rp_stats_interleaved(&verdict, rounds, RP_ROUNDS_MIN, scratch, NULL), 0);
    assert_int_equal(verdict.kind, RP_VERDICT_NOT_COMPARABLE);
    assert_int_equal(verdict.reason, RP_REASON_FEW_BLOCKS);
}

/* ---- the formulas themselves ---- */

static void t_quantiles_agree_with_printed_tables(void **state)
{
    static const struct {
        double p, df, t;
    } rows[] = {{0.975, 1, 12.7062}, {0.975, 2, 4.3027},  {0.975, 4, 2.7764},   {0.975, 10, 2.2281},
                {0.95, 5, 2.0150},   {0.995, 20, 2.8453}, {0.975, 120, 1.9799}, {0.975, 1e9, 1.95996},
                {0.5, 3, 0},         {0.025, 10, -2.2281}};
    (void)state;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_true(fabs(rp_stats_t_quantile(rows[i].p, rows[i].df) - rows[i].t) < 1e-4);
        assert_true(fabs(rp_stats_t_cdf(rows[i].t, rows[i].df) - rows[i].p) < 1e-4);
    }
}

static void the_mean_is_over_requests_not_over_blocks(void **state)
{
    rp_stats_estimate_t estimate;
    rp_stats_side_t side = {a_side.blocks, 4, NULL};
    (void)state;

    memset(a_side.blocks, 0, 4 * sizeof(*a_side.blocks));
    for (unsigned i = 0; i < 4; i++) {
        a_side.blocks[i].count = i ? 1 : 97;
        a_side.blocks[i].sum_ns = i ? 1000 : 9700;
    }
    assert_int_equal(rp_stats_estimate(&estimate, &side, own), 1);
    assert_true(fabs(estimate.mean_ns - 127) < 1e-9);
    assert_int_equal(estimate.requests, 100);
}

static void equal_blocks_have_no_variance(void **state)
{
    rp_verdict_t verdict;
    (void)state;

    memset(a_side.blocks, 0, 20 * sizeof(*a_side.blocks));
    for (unsigned i = 0; i < 20; i++) {
        a_side.blocks[i].count = 100;
        a_side.blocks[i].sum_ns = 10000000;
        b_side.blocks[i] = a_side.blocks[i];
    }
    a_side.count = b_side.count = 20;
    verdict = verdict_total(NULL, NULL);
    assert_true(verdict.diff_ns == 0);
    assert_int_equal(verdict.kind, RP_VERDICT_NO_DIFFERENCE);
}

static void the_sequence_is_wider_than_a_single_look_and_narrows(void **state)
{
    (void)state;
    assert_true(isinf(rp_stats_sequence_width(1, 0.05)));
    for (unsigned n = 6; n < 1000; n++) {
        assert_true(rp_stats_sequence_width(n, 0.05) > rp_stats_t_quantile(0.975, n - 1.0) / sqrt(n));
        assert_true(rp_stats_sequence_width(n + 1, 0.05) < rp_stats_sequence_width(n, 0.05));
        assert_true(rp_stats_sequence_width(n, 0.01) > rp_stats_sequence_width(n, 0.05));
    }
}

/* ---- words ---- */

static const rp_verdict_t numbers = {.a_mean_ns = 100000,
                                     .b_mean_ns = 119400,
                                     .diff_ns = 19400,
                                     .low_ns = 18800,
                                     .high_ns = 20100,
                                     .has_ratio = 1,
                                     .ratio = 0.194,
                                     .ratio_low = 0.188,
                                     .ratio_high = 0.201,
                                     .floor_ns = 1000,
                                     .a_requests = 12000,
                                     .b_requests = 13000,
                                     .a_blocks = 120,
                                     .b_blocks = 130,
                                     .comparisons = 1};

static const char *sentence(rp_verdict_t verdict)
{
    static char buffer[RP_SENTENCE_BYTES];

    rp_compare_sentence(buffer, sizeof(buffer), "setenvif", &verdict);
    return buffer;
}

static void each_verdict_has_its_sentence(void **state)
{
    rp_verdict_t v = numbers;
    (void)state;

    v.kind = RP_VERDICT_SLOWER;
    assert_string_equal(sentence(v),
                        "setenvif: slower by 19.4 µs (19.4 %), 95 % CI +18.8 to +20.1 µs (+18.8 to +20.1 %); "
                        "A: 120 blocks, 12000 requests, B: 130 blocks, 13000 requests");
    v.kind = RP_VERDICT_NO_DIFFERENCE;
    v.low_ns = -300;
    v.ratio_low = -0.003;
    v.high_ns = 200;
    v.ratio_high = 0.002;
    v.left_out = 2;
    assert_string_equal(sentence(v),
                        "setenvif: no difference: at most ±0.30 µs (±0.30 %), 95 % CI -0.30 to +0.20 µs "
                        "(-0.30 to +0.20 %); A: 120 blocks, 12000 requests, B: 130 blocks, 13000 requests; "
                        "2 outlying blocks left out");
    v = numbers;
    v.kind = RP_VERDICT_NOT_COMPARABLE;
    v.reason = RP_REASON_LOAD;
    assert_string_equal(sentence(v), "setenvif: not comparable: the load changed; A: 120 blocks, 12000 requests, "
                                     "B: 130 blocks, 13000 requests");
}

static void inconclusive_is_never_worded_as_no_difference(void **state)
{
    rp_verdict_t v = numbers;
    (void)state;

    v.kind = RP_VERDICT_INCONCLUSIVE;
    v.reason = RP_REASON_NOISE;
    v.low_ns = -800;
    v.has_ratio = 0;
    v.minutes_more = 11.2;
    assert_string_equal(sentence(v),
                        "setenvif: inconclusive, 95 % CI -0.80 to +20.1 µs; the interval is too wide; about 12 "
                        "more minutes at this traffic needed; A: 120 blocks, 12000 requests, B: 130 blocks, "
                        "13000 requests");
    v.minutes_more = RP_MINUTES_UNREACHABLE;
    assert_non_null(strstr(sentence(v), "more epochs"));
    v.minutes_more = 1e6;
    assert_non_null(strstr(sentence(v), "more than a week"));
    for (int reason = RP_REASON_NOISE; reason <= RP_REASON_AA; reason++) {
        v.reason = reason;
        assert_null(strstr(sentence(v), "no difference"));
    }
}

static void a_sentence_never_exceeds_its_buffer(void **state)
{
    char buffer[300], whole[RP_SENTENCE_BYTES];
    rp_verdict_t v = numbers;
    (void)state;

    v.kind = RP_VERDICT_INCONCLUSIVE;
    v.reason = RP_REASON_DRIFT;
    v.low_ns = -1e18;
    v.high_ns = 1e18;
    v.comparisons = 4000000000u;
    v.a_requests = v.b_requests = ~(apr_uint64_t)0;
    v.a_blocks = v.b_blocks = v.left_out = ~(apr_uint32_t)0;
    v.minutes_more = RP_MINUTES_UNREACHABLE;
    assert_true(rp_compare_sentence(whole, sizeof(whole), "x", &v) < sizeof(whole) - 100);
    for (apr_size_t size = 0; size < sizeof(buffer) - 1; size++) {
        memset(buffer, '#', sizeof(buffer));
        assert_true(rp_compare_sentence(buffer, size, "x", &v) <= size);
        assert_true(buffer[size] == '#');
        assert_true(size == 0 || strlen(buffer) < size);
    }
}

static void the_words_follow_from_interval_and_floor(void **state)
{
    static const struct {
        double low, high, drift;
        rp_verdict_kind_t kind;
        rp_reason_t reason;
    } rows[] = {{101, 200, 0, RP_VERDICT_SLOWER, RP_REASON_NONE},
                {-200, -101, 0, RP_VERDICT_FASTER, RP_REASON_NONE},
                {-100, 100, 0, RP_VERDICT_NO_DIFFERENCE, RP_REASON_NONE},
                {20, 90, 0, RP_VERDICT_NO_DIFFERENCE, RP_REASON_NONE},
                {99, 200, 0, RP_VERDICT_INCONCLUSIVE, RP_REASON_NOISE},
                {-200, 200, 0, RP_VERDICT_INCONCLUSIVE, RP_REASON_NOISE},
                {101, 200, 150, RP_VERDICT_INCONCLUSIVE, RP_REASON_DRIFT},
                {-20, 20, 150, RP_VERDICT_INCONCLUSIVE, RP_REASON_DRIFT},
                {151, 200, 150, RP_VERDICT_SLOWER, RP_REASON_NONE}};
    (void)state;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        rp_verdict_t v = {.low_ns = rows[i].low, .high_ns = rows[i].high, .drift_ns = rows[i].drift, .floor_ns = 100};
        rp_verdict_decide(&v);
        assert_int_equal(v.kind, rows[i].kind);
        assert_int_equal(v.reason, rows[i].reason);
    }
}

static void print_rounds_table(void)
{
    printf("\n| rounds: spread of a restart | true change | slow rounds | drift | slower | faster | no difference | "
           "inconclusive "
           "| mean rounds |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (unsigned i = 0; i < ROUNDS_CASES; i++) {
        const rounds_t *c = &rounds_cases[i];
        double mean_rounds;
        tally_t t = tally_rounds(c, 7, &mean_rounds);
        printf("| %.1f %% | %+.0f %% | %.0f %% | %.0f %% | %u | %u | %u | %u | %.0f |\n", c->restart_sd * 100,
               (c->ratio - 1) * 100, c->tail * 100, c->drift * 100, t.kinds[RP_VERDICT_SLOWER],
               t.kinds[RP_VERDICT_FASTER], t.kinds[RP_VERDICT_NO_DIFFERENCE], t.kinds[RP_VERDICT_INCONCLUSIVE],
               mean_rounds);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(t_quantiles_agree_with_printed_tables),
    cmocka_unit_test(the_mean_is_over_requests_not_over_blocks),
    cmocka_unit_test(equal_blocks_have_no_variance),
    cmocka_unit_test(the_words_follow_from_interval_and_floor),
    cmocka_unit_test(aa_comparisons_say_slower_or_faster_in_at_most_5_percent),
    cmocka_unit_test(the_interval_covers_a_change_of_2_percent_in_90_of_100),
    cmocka_unit_test(a_change_of_10_percent_is_seen_and_named_the_right_way_round),
    cmocka_unit_test(no_difference_is_said_where_there_is_none_and_never_at_2_percent),
    cmocka_unit_test(a_change_of_20_us_in_one_phase_is_found_there_and_nowhere_else),
    cmocka_unit_test(parts_looked_at_together_have_wider_intervals),
    cmocka_unit_test(a_part_that_only_b_has_is_slower_without_a_percentage),
    cmocka_unit_test(parts_and_rest_add_up_to_the_total_to_the_last_bit),
    cmocka_unit_test(nothing_to_attribute_gives_no_shares),
    cmocka_unit_test(one_outlier_block_is_left_out_and_changes_no_verdict),
    cmocka_unit_test(many_slow_blocks_are_not_left_out),
    cmocka_unit_test(drift_for_a_while_is_never_a_confident_wrong_answer),
    cmocka_unit_test(a_burst_of_404s_is_a_changed_mix_or_inconclusive),
    cmocka_unit_test(a_small_change_of_the_mix_widens_the_interval),
    cmocka_unit_test(each_changed_mix_has_its_own_reason),
    cmocka_unit_test(a_mix_that_one_side_does_not_know_is_not_compared),
    cmocka_unit_test(a_doubled_load_is_not_comparable),
    cmocka_unit_test(a_slow_configuration_is_not_taken_for_a_changed_load),
    cmocka_unit_test(too_little_traffic_is_not_comparable),
    cmocka_unit_test(blocks_without_requests_do_not_count),
    cmocka_unit_test(the_aa_floor_measures_what_epochs_differ_by),
    cmocka_unit_test(the_aa_floor_of_nothing_is_nothing),
    cmocka_unit_test(a_wide_aa_floor_silences_a_small_difference),
    cmocka_unit_test(the_minutes_asked_for_are_about_enough),
    cmocka_unit_test(the_sequence_is_wider_than_a_single_look_and_narrows),
    cmocka_unit_test(looking_after_each_round_keeps_the_5_percent),
    cmocka_unit_test(interleaved_rounds_find_5_percent_and_stop_early),
    cmocka_unit_test(interleaved_rounds_say_no_difference_when_sure),
    cmocka_unit_test(an_aa_pair_that_differs_takes_the_verdict_away),
    cmocka_unit_test(too_few_rounds_give_no_verdict),
    cmocka_unit_test(each_verdict_has_its_sentence),
    cmocka_unit_test(inconclusive_is_never_worded_as_no_difference),
    cmocka_unit_test(a_sentence_never_exceeds_its_buffer),
};

int main(int argc, char **argv)
{
    int failed = 0;

    if (apr_initialize() != APR_SUCCESS || apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "--table") == 0) {
        print_table();
        print_rounds_table();
    }
    else {
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    }
    apr_terminate();
    return failed;
}
