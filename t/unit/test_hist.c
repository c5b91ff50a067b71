/* Histograms against an exact, sorted array of the same values. */
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hist.h"

#define VALUES 20000

static rp_hist_fine_t fine_a, fine_b, fine_all;
static rp_hist_coarse_t coarse_a, coarse_b, coarse_all;
static apr_uint64_t values[VALUES];

static int clear_all(void **state)
{
    (void)state;
    memset(&fine_a, 0, sizeof(fine_a));
    memset(&fine_b, 0, sizeof(fine_b));
    memset(&fine_all, 0, sizeof(fine_all));
    memset(&coarse_a, 0, sizeof(coarse_a));
    memset(&coarse_b, 0, sizeof(coarse_b));
    memset(&coarse_all, 0, sizeof(coarse_all));
    return 0;
}

/* Splitmix64 (Steele, Lea, Flood, 2014): the same values at each run. */
static apr_uint64_t next_random(void)
{
    static apr_uint64_t seed = 42;
    apr_uint64_t z = (seed += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Spread over all octaves up to 2^40, as durations are. */
static apr_uint64_t random_duration(void)
{
    return next_random() >> (24 + next_random() % 40);
}

static int by_value(const void *a, const void *b)
{
    const apr_uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void sort_values(unsigned count)
{
    qsort(values, count, sizeof(values[0]), by_value);
}

/* Hyndman and Fan's type 7 of the sorted values. */
static double exact_quantile(unsigned count, double q)
{
    double rank = q * (count - 1);
    unsigned below = (unsigned)rank;
    double low = (double)values[below];

    return below + 1 < count ? low + ((double)values[below + 1] - low) * (rank - below) : low;
}

static void every_value_lies_in_its_bucket(void **state)
{
    (void)state;
    for (unsigned bits = RP_HIST_COARSE_BITS; bits <= RP_HIST_FINE_BITS; bits++) {
        for (unsigned i = 0; i < VALUES; i++) {
            apr_uint64_t value = random_duration();
            unsigned index = rp_hist_index(value, bits);

            assert_true(index < RP_HIST_BUCKETS(bits));
            assert_true(rp_hist_bucket_low(index, bits) <= value);
            assert_true(rp_hist_bucket_low(index + 1, bits) > value);
        }
    }
}

static void bucket_bounds_are_their_own_buckets(void **state)
{
    (void)state;
    for (unsigned bits = RP_HIST_COARSE_BITS; bits <= RP_HIST_FINE_BITS; bits++) {
        for (unsigned i = 0; i < RP_HIST_BUCKETS(bits); i++) {
            assert_int_equal(rp_hist_index(rp_hist_bucket_low(i, bits), bits), i);
            assert_int_equal(rp_hist_index(rp_hist_bucket_low(i + 1, bits) - 1, bits), i);
        }
    }
}

static void a_bucket_is_no_wider_than_promised(void **state)
{
    (void)state;
    for (unsigned bits = RP_HIST_COARSE_BITS; bits <= RP_HIST_FINE_BITS; bits++) {
        for (unsigned i = 1u << bits; i < RP_HIST_BUCKETS(bits); i++) {
            apr_uint64_t low = rp_hist_bucket_low(i, bits);
            assert_true((rp_hist_bucket_low(i + 1, bits) - low) << bits <= low);
        }
    }
}

static void values_beyond_the_range_are_counted_in_the_last_bucket(void **state)
{
    static const apr_uint64_t edges[] = {(apr_uint64_t)1 << 41, (apr_uint64_t)1 << 63, ~(apr_uint64_t)0};
    rp_hist_t hist = rp_hist_fine(&fine_a);

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        rp_hist_record(hist, edges[i]);
    }
    assert_int_equal(fine_a.buckets[RP_HIST_FINE_BUCKETS - 1], 3);
    assert_int_equal(rp_hist_min(hist.head), edges[0]);
    assert_int_equal(hist.head->max, edges[2]);
}

static void edge_values_are_exact(void **state)
{
    static const apr_uint64_t edges[] = {0, 1, (apr_uint64_t)1 << 40, (apr_uint64_t)1 << 63, ~(apr_uint64_t)0};

    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        rp_hist_t hist = rp_hist_coarse(&coarse_a);

        rp_hist_clear(hist);
        rp_hist_record(hist, edges[i]);
        assert_int_equal(rp_hist_min(hist.head), edges[i]);
        assert_int_equal(hist.head->max, edges[i]);
        assert_int_equal(hist.head->sum, edges[i]);
        assert_true(rp_hist_quantile(hist, 0.0) == (double)edges[i]);
        assert_true(rp_hist_quantile(hist, 0.5) == (double)edges[i]);
        assert_true(rp_hist_quantile(hist, 1.0) == (double)edges[i]);
    }
}

static void an_empty_histogram_has_only_zeros(void **state)
{
    rp_hist_t hist = rp_hist_fine(&fine_a);

    (void)state;
    assert_int_equal(rp_hist_min(hist.head), 0);
    assert_true(rp_hist_quantile(hist, 0.0) == 0.0);
    assert_true(rp_hist_quantile(hist, 0.5) == 0.0);
    assert_true(rp_hist_quantile(hist, 1.0) == 0.0);
}

static void check_quantiles(rp_hist_t hist, unsigned count)
{
    static const double wanted[] = {0.0, 0.001, 0.1, 0.25, 0.5, 0.66, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0};

    for (unsigned i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        double exact = exact_quantile(count, wanted[i]);
        double error = rp_hist_quantile(hist, wanted[i]) - exact;
        double allowed = exact / (1 << hist.bits) + 1.0;

        if (error > allowed || error < -allowed) {
            fail_msg("%u values, q %g: exact %g, error %g, allowed %g", count, wanted[i], exact, error, allowed);
        }
    }
}

static void quantiles_are_within_a_bucket_of_the_exact_ones(void **state)
{
    static const unsigned counts[] = {1, 2, 3, 10, 100, 1000, VALUES};

    (void)state;
    for (unsigned c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        clear_all(NULL);
        for (unsigned i = 0; i < counts[c]; i++) {
            values[i] = random_duration();
            rp_hist_record(rp_hist_fine(&fine_a), values[i]);
            rp_hist_record(rp_hist_coarse(&coarse_a), values[i]);
        }
        sort_values(counts[c]);
        check_quantiles(rp_hist_fine(&fine_a), counts[c]);
        check_quantiles(rp_hist_coarse(&coarse_a), counts[c]);
    }
}

static void check_monotonic(rp_hist_t hist)
{
    double last = rp_hist_quantile(hist, 0.0);

    assert_true(last == (double)rp_hist_min(hist.head));
    for (unsigned i = 1; i <= 10000; i++) {
        double now = rp_hist_quantile(hist, i / 10000.0);
        assert_true(now >= last);
        last = now;
    }
    assert_true(last == (double)hist.head->max);
}

static void quantiles_never_fall(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 500; i++) {
        rp_hist_record(rp_hist_fine(&fine_a), random_duration());
        rp_hist_record(rp_hist_coarse(&coarse_a), random_duration());
    }
    check_monotonic(rp_hist_fine(&fine_a));
    check_monotonic(rp_hist_coarse(&coarse_a));
}

/* One value in a bucket below a crowded one, and the other way round. */
static void quantiles_never_fall_beside_a_crowded_bucket(void **state)
{
    rp_hist_t up = rp_hist_coarse(&coarse_a), down = rp_hist_coarse(&coarse_b);

    (void)state;
    rp_hist_record(up, 900);
    rp_hist_record(up, 1000);
    rp_hist_record(down, 1300);
    rp_hist_record(up, 1270);
    rp_hist_record(down, 1500);
    for (unsigned i = 0; i < 50; i++) {
        rp_hist_record(up, 1100);
        rp_hist_record(down, 1260);
    }
    check_monotonic(up);
    check_monotonic(down);
}

static void merging_equals_recording_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < VALUES; i++) {
        apr_uint64_t value = random_duration();

        rp_hist_record(rp_hist_fine(i % 3 ? &fine_a : &fine_b), value);
        rp_hist_record(rp_hist_fine(&fine_all), value);
        rp_hist_record(rp_hist_coarse(i % 3 ? &coarse_a : &coarse_b), value);
        rp_hist_record(rp_hist_coarse(&coarse_all), value);
    }
    rp_hist_merge(rp_hist_fine(&fine_a), rp_hist_fine(&fine_b));
    rp_hist_merge(rp_hist_coarse(&coarse_a), rp_hist_coarse(&coarse_b));
    assert_memory_equal(&fine_a, &fine_all, sizeof(fine_all));
    assert_memory_equal(&coarse_a, &coarse_all, sizeof(coarse_all));
}

static void merging_with_an_empty_one_changes_nothing(void **state)
{
    (void)state;
    rp_hist_record(rp_hist_fine(&fine_a), 77);
    rp_hist_record(rp_hist_fine(&fine_all), 77);
    rp_hist_merge(rp_hist_fine(&fine_a), rp_hist_fine(&fine_b));
    assert_memory_equal(&fine_a, &fine_all, sizeof(fine_all));
    rp_hist_merge(rp_hist_fine(&fine_b), rp_hist_fine(&fine_a));
    assert_memory_equal(&fine_b, &fine_all, sizeof(fine_all));
}

static void a_cleared_histogram_is_all_zero(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        rp_hist_record(rp_hist_fine(&fine_a), next_random() >> (next_random() % 64));
    }
    rp_hist_clear(rp_hist_fine(&fine_a));
    assert_memory_equal(&fine_a, &fine_b, sizeof(fine_a));
}

/* A copy that was torn by a writer may hold any head: the functions stay inside the buckets all the same. */
static void any_head_keeps_the_functions_inside_the_buckets(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        fine_a.head = (rp_hist_head_t){next_random(), next_random(), next_random(), next_random()};
        rp_hist_merge(rp_hist_fine(&fine_b), rp_hist_fine(&fine_a));
        rp_hist_quantile(rp_hist_fine(&fine_a), 0.5);
        rp_hist_clear(rp_hist_fine(&fine_a));
    }
    assert_int_equal(fine_a.head.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_value_lies_in_its_bucket, clear_all),
        cmocka_unit_test_setup(bucket_bounds_are_their_own_buckets, clear_all),
        cmocka_unit_test_setup(a_bucket_is_no_wider_than_promised, clear_all),
        cmocka_unit_test_setup(values_beyond_the_range_are_counted_in_the_last_bucket, clear_all),
        cmocka_unit_test_setup(edge_values_are_exact, clear_all),
        cmocka_unit_test_setup(an_empty_histogram_has_only_zeros, clear_all),
        cmocka_unit_test_setup(quantiles_are_within_a_bucket_of_the_exact_ones, clear_all),
        cmocka_unit_test_setup(quantiles_never_fall, clear_all),
        cmocka_unit_test_setup(quantiles_never_fall_beside_a_crowded_bucket, clear_all),
        cmocka_unit_test_setup(merging_equals_recording_all, clear_all),
        cmocka_unit_test_setup(merging_with_an_empty_one_changes_nothing, clear_all),
        cmocka_unit_test_setup(a_cleared_histogram_is_all_zero, clear_all),
        cmocka_unit_test_setup(any_head_keeps_the_functions_inside_the_buckets, clear_all),
    };

    return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
