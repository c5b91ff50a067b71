#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <apr_general.h>

#include "report/duration.h"

#define S APR_UINT64_C(1000000000)

static apr_pool_t *pool;

static int set_up(void **state)
{
    (void)state;
    apr_initialize();
    return apr_pool_create(&pool, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}

static void each_unit_has_its_range(void **state)
{
    (void)state;
    assert_string_equal(rp_duration(pool, 0), "0 ns");
    assert_string_equal(rp_duration(pool, 850), "850 ns");
    assert_string_equal(rp_duration(pool, 999), "999 ns");
    assert_string_equal(rp_duration(pool, 1000), "1.0 µs");
    assert_string_equal(rp_duration(pool, 4512), "4.5 µs");
    assert_string_equal(rp_duration(pool, 12700000), "12.7 ms");
    assert_string_equal(rp_duration(pool, 3 * S), "3.0 s");
    assert_string_equal(rp_duration(pool, 125 * S), "2 min 5 s");
    assert_string_equal(rp_duration(pool, 120 * S), "2 min");
    assert_string_equal(rp_duration(pool, 12000 * S), "3 h 20 min");
    assert_string_equal(rp_duration(pool, 356400 * S), "4 d 3 h");
    assert_string_equal(rp_duration(pool, APR_UINT64_MAX), "213503 d 23 h");
}

static void rounding_never_gives_a_thousand_of_a_unit(void **state)
{
    (void)state;
    assert_string_equal(rp_duration(pool, 99949), "99.9 µs");
    assert_string_equal(rp_duration(pool, 99960), "100 µs");
    assert_string_equal(rp_duration(pool, 999499), "999 µs");
    assert_string_equal(rp_duration(pool, 999500), "1.0 ms");
    assert_string_equal(rp_duration(pool, 999499999), "999 ms");
    assert_string_equal(rp_duration(pool, 999500000), "1.0 s");
}

static void digits_are_grouped_by_three(void **state)
{
    (void)state;
    assert_string_equal(rp_grouped(pool, 0), "0");
    assert_string_equal(rp_grouped(pool, 999), "999");
    assert_string_equal(rp_grouped(pool, 1000), "1,000");
    assert_string_equal(rp_grouped(pool, 1234567), "1,234,567");
    assert_string_equal(rp_grouped(pool, APR_UINT64_MAX), "18,446,744,073,709,551,615");
}

static void sizes_are_powers_of_a_thousand(void **state)
{
    (void)state;
    assert_string_equal(rp_size(pool, 0), "0 B");
    assert_string_equal(rp_size(pool, 999), "999 B");
    assert_string_equal(rp_size(pool, 4500), "4.5 kB");
    assert_string_equal(rp_size(pool, 999600), "1.0 MB");
    assert_string_equal(rp_size(pool, APR_UINT64_MAX), "18.4 EB");
}

static void times_are_utc_in_iso_8601(void **state)
{
    (void)state;
    assert_string_equal(rp_iso_time(pool, 0), "1970-01-01T00:00:00.000Z");
    assert_string_equal(rp_iso_time(pool, APR_INT64_C(1772368496789123)), "2026-03-01T12:34:56.789Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_unit_has_its_range),
        cmocka_unit_test(rounding_never_gives_a_thousand_of_a_unit),
        cmocka_unit_test(digits_are_grouped_by_three),
        cmocka_unit_test(sizes_are_powers_of_a_thousand),
        cmocka_unit_test(times_are_utc_in_iso_8601),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
