/* The clock: it advances, agrees with CLOCK_MONOTONIC, and converts both ways. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/phases.h"

static void never_goes_back(const rp_clock_t *clock)
{
    apr_uint64_t last;

    rp_clock_use(clock);
    last = rp_clock_now();
    for (int i = 0; i < 200000; i++) {
        apr_uint64_t now = rp_clock_now();
        assert_true(now >= last);
        last = now;
    }
}

static void the_monotonic_clock_counts_nanoseconds(void **state)
{
    rp_clock_t clock;

    (void)state;
    assert_int_equal(rp_clock_calibrate(&clock, RP_CLOCK_MONOTONIC), 1);
    assert_int_equal(clock.source, RP_CLOCK_MONOTONIC);
    assert_string_equal(rp_clock_name(&clock), "monotonic");
    assert_int_equal(rp_clock_ns(&clock, 123456789), 123456789);
    assert_int_equal(rp_clock_ticks(&clock, 123456789), 123456789);
    assert_true(clock.read_ticks > 0);
    never_goes_back(&clock);
}

static void the_counter_is_refused_by_name_where_it_is_not_usable(void **state)
{
    rp_clock_t clock;
    int usable = rp_clock_tsc_usable();

    (void)state;
    assert_int_equal(rp_clock_calibrate(&clock, RP_CLOCK_TSC), usable);
    assert_int_equal(clock.source, usable ? RP_CLOCK_TSC : RP_CLOCK_MONOTONIC);
}

static void auto_takes_the_counter_where_it_is_usable(void **state)
{
    rp_clock_t clock;

    (void)state;
    assert_int_equal(rp_clock_calibrate(&clock, RP_CLOCK_AUTO), 1);
    assert_string_equal(rp_clock_name(&clock), rp_clock_tsc_usable() ? "tsc" : "monotonic");
    assert_true(clock.ns_per_tick > 0.05 && clock.ns_per_tick <= 1000.0);
    never_goes_back(&clock);
}

static void a_reading_costs_less_than_ten_microseconds(void **state)
{
    rp_clock_t clock;

    (void)state;
    rp_clock_calibrate(&clock, RP_CLOCK_AUTO);
    assert_true(clock.read_ticks > 0);
    assert_true(clock.read_ticks * clock.ns_per_tick < 10000.0);
}

/* Two brackets: what our clock says has passed lies between the least and the most that CLOCK_MONOTONIC says. */
static void it_agrees_with_the_kernel_within_a_thousandth(void **state)
{
    const struct timespec pause = {0, 50000000};
    apr_uint64_t outer_start, inner_start, inner_end, outer_end, ticks;
    rp_clock_t clock;
    double passed;

    (void)state;
    rp_clock_calibrate(&clock, RP_CLOCK_AUTO);
    outer_start = rp_clock_monotonic_ns();
    ticks = rp_clock_now();
    inner_start = rp_clock_monotonic_ns();
    nanosleep(&pause, NULL);
    inner_end = rp_clock_monotonic_ns();
    ticks = rp_clock_now() - ticks;
    outer_end = rp_clock_monotonic_ns();
    passed = (double)rp_clock_ns(&clock, ticks);
    assert_true(passed >= (double)(inner_end - inner_start) * 0.999);
    assert_true(passed <= (double)(outer_end - outer_start) * 1.001);
}

static void converting_there_and_back_loses_at_most_a_tick(void **state)
{
    rp_clock_t clock;

    (void)state;
    rp_clock_calibrate(&clock, RP_CLOCK_AUTO);
    for (apr_uint64_t ns = 1; ns < (apr_uint64_t)1 << 40; ns = ns * 3 + 1) {
        double back = (double)rp_clock_ns(&clock, rp_clock_ticks(&clock, ns));

        assert_true(back <= (double)ns);
        assert_true(back >= (double)ns - 1.0 - clock.ns_per_tick);
    }
}

static void each_phase_has_a_name_of_its_own_and_a_help(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RP_PHASE_COUNT; i++) {
        assert_true(strlen(rp_phase_help(i)) > 3);
        for (unsigned j = 0; j < i; j++) {
            assert_string_not_equal(rp_phase_name(i), rp_phase_name(j));
        }
    }
    assert_string_equal(rp_phase_name(RP_PHASE_READ), "read");
    assert_string_equal(rp_phase_name(RP_PHASE_OTHER), "other");
    assert_string_equal(rp_phase_name(RP_PHASE_COUNT + 5), "other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_monotonic_clock_counts_nanoseconds),
        cmocka_unit_test(the_counter_is_refused_by_name_where_it_is_not_usable),
        cmocka_unit_test(auto_takes_the_counter_where_it_is_usable),
        cmocka_unit_test(a_reading_costs_less_than_ten_microseconds),
        cmocka_unit_test(it_agrees_with_the_kernel_within_a_thousandth),
        cmocka_unit_test(converting_there_and_back_loses_at_most_a_tick),
        cmocka_unit_test(each_phase_has_a_name_of_its_own_and_a_help),
    };

    return cmocka_run_group_tests_name("clock and phases", tests, NULL, NULL);
}
