/* Whether memory grows, on generated lives of a process. */
#include <string.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/growth.h"

#define MIB (1024.0 * 1024)

static rp_growth_point_t points[RP_GROWTH_ROOM];
static rp_growth_t growth;

/* Splitmix64 (Steele, Lea, Flood, 2014): the same values at each run. */
static double noise(double width)
{
    static apr_uint64_t seed = 7;
    apr_uint64_t z = (seed += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return width * ((double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0 - 0.5);
}

/* A point a second, about 5,000 requests each, memory as a function of the requests. */
static const rp_growth_t *grow(double (*bytes)(double requests), unsigned count)
{
    double requests = 0;

    for (unsigned i = 0; i < count; i++) {
        points[i].requests = (apr_uint64_t)requests;
        points[i].bytes = (apr_uint64_t)(9 * MIB + bytes(requests) + noise(60000));
        requests += 5000 + noise(3000);
    }
    rp_growth_estimate(&growth, points, count);
    return &growth;
}

static double leak_400(double requests) { return 400 * requests; }
static double leak_with_malloc(double requests) { return 416 * requests; }
static double flat(double requests) { (void)requests; return 0; }
static double step_50_mib(double requests) { return requests > 52000 ? 50 * MIB : 0; }
static double late_step(double requests) { return requests > 90000 ? 50 * MIB : 0; }
static double step_and_leak(double requests) { return step_50_mib(requests) + 400 * requests; }
static double shrinks(double requests) { return requests > 30000 ? -5 * MIB : 0; }

/* Fast at first, then no more: 11 MB to 32.5 MB in the first third, as a server was watched to do. */
static double fills_up(double requests) { return requests < 35000 ? 600 * requests : 21 * MIB; }

/* 2 MiB pages: what is leaked becomes resident in jumps. */
static double leak_in_huge_pages(double requests)
{
    return (double)((apr_uint64_t)(400 * requests / (2 * MIB))) * 2 * MIB;
}

static void a_leak_of_400_bytes_is_growing_and_its_interval_covers_400(void **state)
{
    (void)state;
    for (int run = 0; run < 50; run++) {
        grow(leak_400, 21);
        assert_int_equal(growth.word, RP_GROWTH_GROWING);
        assert_true(growth.low < 400 && growth.high > 390);
        assert_true(growth.high - growth.low < 100);
    }
}

static void the_interval_covers_what_was_asked_for_when_malloc_takes_more(void **state)
{
    (void)state;
    grow(leak_with_malloc, 21);
    assert_int_equal(growth.word, RP_GROWTH_GROWING);
    assert_true(growth.low < 400 && growth.high > 400);
    assert_true(growth.high - growth.low < 100);
}

/* The covering rate of a 95 % interval, less the allowance at its lower end: of 400 lives, at most a tenth miss. */
static void the_interval_covers_the_slope_about_as_often_as_it_says(void **state)
{
    unsigned missed = 0;

    (void)state;
    for (int run = 0; run < 400; run++) {
        grow(leak_400, 21);
        missed += growth.low + RP_GROWTH_BLOCK_OVERHEAD > 400 || growth.high < 400;
    }
    assert_true(missed < 40);
}

static void a_flat_process_is_a_plateau(void **state)
{
    (void)state;
    for (int run = 0; run < 50; run++) {
        assert_int_equal(grow(flat, 21)->word, RP_GROWTH_PLATEAU);
        assert_true(growth.low < 0 + 1 && growth.high > -1);
    }
}

static void fifty_mebibytes_at_once_are_a_step(void **state)
{
    (void)state;
    assert_int_equal(grow(step_50_mib, 21)->word, RP_GROWTH_STEP);
    assert_in_range(growth.step_bytes, 49 * 1024 * 1024, 51 * 1024 * 1024);
    assert_true(growth.bytes_per_request < 10);
    assert_int_equal(grow(late_step, 21)->word, RP_GROWTH_STEP);
}

static void a_leak_beside_a_step_is_growing(void **state)
{
    (void)state;
    grow(step_and_leak, 21);
    assert_int_equal(growth.word, RP_GROWTH_GROWING);
    assert_true(growth.low < 400 && growth.high > 380);
}

static void a_process_that_fills_up_and_stays_is_a_plateau(void **state)
{
    (void)state;
    assert_int_equal(grow(fills_up, 30)->word, RP_GROWTH_PLATEAU);
}

static void a_process_that_shrinks_is_a_plateau(void **state)
{
    (void)state;
    assert_int_equal(grow(shrinks, 21)->word, RP_GROWTH_PLATEAU);
}

static void a_leak_in_huge_pages_is_growing(void **state)
{
    (void)state;
    assert_int_equal(grow(leak_in_huge_pages, 21)->word, RP_GROWTH_GROWING);
    assert_true(growth.low < 400 && growth.high > 400);
}

static void too_few_points_say_nothing(void **state)
{
    (void)state;
    assert_int_equal(grow(leak_400, RP_GROWTH_POINTS_MIN - 1)->word, RP_GROWTH_UNKNOWN);
    memset(points, 0, sizeof(points));
    rp_growth_estimate(&growth, points, RP_GROWTH_ROOM);
    assert_int_equal(growth.word, RP_GROWTH_UNKNOWN);
    assert_string_equal(rp_growth_name(growth.word), "unknown");
}

static void the_record_spans_a_whole_life_in_bounded_room(void **state)
{
    static rp_growth_record_t record;

    (void)state;
    for (apr_uint64_t i = 1; i <= 100000; i++) {
        rp_growth_add(&record, i * 10, i);
        assert_in_range(record.count, 1, RP_GROWTH_ROOM);
    }
    assert_true(record.count >= RP_GROWTH_ROOM / 2);
    assert_true(record.points[0].requests < 100000 * 10 / 16);
    assert_true(record.points[record.count - 1].requests > 100000 * 10 * 15 / 16);
    for (unsigned i = 1; i < record.count; i++) {
        assert_true(record.points[i].requests > record.points[i - 1].requests);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leak_of_400_bytes_is_growing_and_its_interval_covers_400),
        cmocka_unit_test(the_interval_covers_what_was_asked_for_when_malloc_takes_more),
        cmocka_unit_test(the_interval_covers_the_slope_about_as_often_as_it_says),
        cmocka_unit_test(a_flat_process_is_a_plateau),
        cmocka_unit_test(fifty_mebibytes_at_once_are_a_step),
        cmocka_unit_test(a_leak_beside_a_step_is_growing),
        cmocka_unit_test(a_process_that_fills_up_and_stays_is_a_plateau),
        cmocka_unit_test(a_process_that_shrinks_is_a_plateau),
        cmocka_unit_test(a_leak_in_huge_pages_is_growing),
        cmocka_unit_test(too_few_points_say_nothing),
        cmocka_unit_test(the_record_spans_a_whole_life_in_bounded_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
