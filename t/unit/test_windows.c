/* Blocks and marks, fed by a clock of the test's own. */
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <apr_general.h>
#include <apr_time.h>

#include "store/blocks.h"
#include "store/marks.h"
#include "store/segment.h"
#include "store/shard.h"

static rp_blocks_t *blocks;
static rp_segment_t *segment;
static rp_shard_t *sums, *window;
static apr_pool_t *pool;
static const rp_clock_t ns_clock = {RP_CLOCK_MONOTONIC, 1, 1.0};

static int set_up(void **state)
{
    static rp_settings_t settings = RP_SETTINGS_DEFAULT;
    rp_segment_size_t size = {2, 1, 1, 4, "test"};

    (void)state;
    apr_initialize();
    apr_pool_create(&pool, NULL);
    settings.clock = RP_CLOCK_MONOTONIC;
    blocks = calloc(1, sizeof(*blocks));
    if (rp_segment_parent_create(pool, &settings, rp_span_plan_create(pool, &settings), &size) != APR_SUCCESS) {
        return -1;
    }
    segment = rp_segment_current();
    sums = calloc(1, (size_t)segment->shard_bytes);
    window = calloc(1, (size_t)segment->shard_bytes);
    return 0;
}

/* Requests of a millisecond each, spent in the handler. */
static void serve(rp_shard_t *shard, unsigned count, apr_uint64_t ns)
{
    for (unsigned i = 0; i < count; i++) {
        rp_hist_record(rp_hist_fine(&shard->total), ns);
        rp_hist_record(rp_hist_fine(&shard->phases[RP_PHASE_HANDLER]), ns);
        rp_hist_record(rp_hist_coarse(&rp_shard_cell(shard, RP_SPAN_OTHER)->self), ns);
        rp_shard_cell(shard, RP_SPAN_OTHER)->calls++;
        shard->requests++;
    }
}

static unsigned requests_in(unsigned ring, apr_int64_t from_s, apr_int64_t to_s)
{
    rp_ring_t r = rp_blocks_ring(blocks, ring);
    rp_block_t copy;
    unsigned requests = 0;

    for (apr_int64_t s = from_s - from_s % r.step_s; s < to_s; s += r.step_s) {
        requests += rp_ring_copy(&copy, r, s) ? copy.requests : 0;
    }
    return requests;
}

static void add_block(unsigned count, apr_uint64_t ns, apr_int64_t now_s)
{
    rp_shard_t *counted = calloc(1, (size_t)segment->shard_bytes);
    rp_block_t *block = calloc(1, sizeof(*block));

    serve(counted, count, ns);
    rp_block_fill(block, counted, &ns_clock);
    rp_blocks_add(blocks, block, now_s);
    free(block);
    free(counted);
}

static void after_a_burst_and_an_idle_hour_the_minute_is_empty_and_the_hour_has_it(void **state)
{
    const apr_int64_t start_s = 1800000000;

    (void)state;
    add_block(500, 1000000, start_s);
    for (apr_int64_t s = 1; s <= 3600; s++) {
        add_block(0, 0, start_s + s);
    }
    assert_int_equal(requests_in(0, start_s + 3540, start_s + 3601), 0);
    assert_int_equal(requests_in(1, start_s, start_s + 3601), 500);
    assert_int_equal(requests_in(2, start_s, start_s + 3601), 500);
    assert_int_equal(requests_in(0, start_s, start_s + 3601), 0); /* seconds are kept for ten minutes */
}

static void a_coarser_block_is_the_sum_of_finer_ones(void **state)
{
    const apr_int64_t start_s = 1900000000;
    rp_block_t ten, one;
    apr_uint64_t sum_ns = 0;

    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        add_block(i + 1, (i + 1) * 1000000, start_s + i);
    }
    assert_true(rp_ring_copy(&ten, rp_blocks_ring(blocks, 1), start_s));
    for (unsigned i = 0; i < 10; i++) {
        assert_true(rp_ring_copy(&one, rp_blocks_ring(blocks, 0), start_s + i));
        sum_ns += one.series[RP_SERIES_TOTAL].sum_ns;
    }
    assert_int_equal(ten.requests, 55);
    assert_int_equal(ten.series[RP_SERIES_TOTAL].count, 55);
    assert_int_equal(ten.series[RP_SERIES_TOTAL].sum_ns, sum_ns);
    assert_int_equal(ten.series[RP_SERIES_PHASES + RP_PHASE_HANDLER].sum_ns, sum_ns);
}

/* A quarter of an octave is a bucket's width. */
static void percentiles_of_a_block_are_within_a_bucket(void **state)
{
    const apr_int64_t now_s = 1950000000;
    const apr_uint64_t times_ns[] = {1500, 40000, 3000000, 700000000, 90000000000};
    rp_block_t block;

    (void)state;
    for (unsigned i = 0; i < sizeof(times_ns) / sizeof(times_ns[0]); i++) {
        add_block(100, times_ns[i], now_s + i);
        assert_true(rp_ring_copy(&block, rp_blocks_ring(blocks, 0), now_s + i));
        for (double q = 0; q <= 1; q += 0.25) {
            double seen = (double)rp_block_quantile_ns(&block.series[RP_SERIES_TOTAL], q);
            assert_true(seen > (double)times_ns[i] * 0.75 && seen < (double)times_ns[i] * 1.33);
        }
    }
}

static void a_window_is_the_difference_of_the_sums_now_and_then(void **state)
{
    apr_int64_t now_us = apr_time_from_sec(2000000000);

    (void)state;
    for (unsigned s = 0; s < 100; s++) {
        serve(sums, s == 20 ? 1000 : 1, s == 20 ? 8000000 : 1000);
        rp_marks_take(segment, sums, now_us + apr_time_from_sec(s));
    }
    now_us += apr_time_from_sec(99);
    rp_shard_add(window, sums, segment->span_max);
    assert_int_equal(now_us - rp_marks_subtract(segment, window, RP_WINDOW_S10, now_us), apr_time_from_sec(11));
    assert_int_equal(window->requests, 11);
    assert_int_equal(window->total.head.count, 11);
    assert_int_equal(window->total.head.sum, 11 * 1000);
    assert_int_equal(rp_shard_cell(window, RP_SPAN_OTHER)->calls, 11);
    assert_true(window->total.head.max < 2000);
    rp_shard_clear(window, segment->span_max);
    rp_shard_add(window, sums, segment->span_max);
    assert_int_equal(rp_marks_subtract_last(segment, window), now_us);
    assert_int_equal(window->requests, 0);
}

static void an_old_burst_leaves_a_window_and_stays_in_a_longer_one(void **state)
{
    apr_int64_t now_us = apr_time_from_sec(2000000099);

    (void)state;
    rp_shard_clear(window, segment->span_max);
    rp_shard_add(window, sums, segment->span_max);
    rp_marks_subtract(segment, window, RP_WINDOW_M1, now_us);
    assert_in_range(window->requests, 60, 72);
    rp_shard_clear(window, segment->span_max);
    rp_shard_add(window, sums, segment->span_max);
    assert_int_equal(rp_marks_subtract(segment, window, RP_WINDOW_H1, now_us), segment->started_us);
    assert_int_equal(window->requests, 1099);
}

static void a_writer_that_died_in_a_mark_or_block_is_taken_over(void **state)
{
    const apr_int64_t now_s = 2100000000;
    rp_block_t copy;

    (void)state;
    add_block(1, 1000, now_s);
    rp_blocks_ring(blocks, 0).blocks[now_s % RP_RING_1S].sequence |= 1;
    assert_false(rp_ring_copy(&copy, rp_blocks_ring(blocks, 0), now_s));
    add_block(2, 1000, now_s);
    assert_true(rp_ring_copy(&copy, rp_blocks_ring(blocks, 0), now_s));
    assert_int_equal(copy.requests, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_burst_and_an_idle_hour_the_minute_is_empty_and_the_hour_has_it),
        cmocka_unit_test(a_coarser_block_is_the_sum_of_finer_ones),
        cmocka_unit_test(percentiles_of_a_block_are_within_a_bucket),
        cmocka_unit_test(a_window_is_the_difference_of_the_sums_now_and_then),
        cmocka_unit_test(an_old_burst_leaves_a_window_and_stays_in_a_longer_one),
        cmocka_unit_test(a_writer_that_died_in_a_mark_or_block_is_taken_over),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
