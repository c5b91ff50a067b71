/* The timer stack: every tick belongs to exactly one span. Time is made by hand, no clock is read. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "capture/stack.h"

#define SPANS 256

enum { A = RP_SPAN_FIRST, B, C };

static rp_flight_t flight;
static rp_tally_entry_t entries[SPANS];
static apr_uint16_t touched[SPANS];
static rp_stack_t stack;

/* A request that began at 100 and whose first hook is at 130. */
static int start(void **state)
{
    (void)state;
    memset(&flight, 0, sizeof(flight));
    memset(entries, 0, sizeof(entries));
    memset(&stack, 0, sizeof(stack));
    stack.flight = &flight;
    stack.tally = (rp_tally_t){entries, touched, 0};
    rp_stack_start(&stack, 100, 130);
    return 0;
}

static apr_uint64_t sum_of_spans(void)
{
    apr_uint64_t sum = 0;

    for (unsigned i = 0; i < SPANS; i++) {
        sum += entries[i].self_ticks;
    }
    return sum;
}

static void assert_adds_up(void)
{
    assert_int_equal(sum_of_spans(), flight.last_ticks - flight.start_ticks);
}

static void reading_the_header_is_a_span(void **state)
{
    (void)state;
    rp_stack_charge(&stack, 150);
    assert_int_equal(entries[RP_SPAN_READ].self_ticks, 30);
    assert_int_equal(entries[RP_SPAN_OTHER].self_ticks, 20);
    assert_adds_up();
}

static void a_nested_span_is_not_its_parents_time(void **state)
{
    unsigned a, b;

    (void)state;
    a = rp_stack_enter(&stack, A, 140);
    b = rp_stack_enter(&stack, B, 150);
    rp_stack_leave(&stack, b, 170);
    rp_stack_leave(&stack, a, 175);
    rp_stack_charge(&stack, 176);
    assert_int_equal(entries[A].self_ticks, 15);
    assert_int_equal(entries[B].self_ticks, 20);
    assert_int_equal(entries[RP_SPAN_OTHER].self_ticks, 11);
    assert_int_equal(entries[A].calls, 1);
    assert_adds_up();
}

static void a_span_inside_itself_counts_twice_and_its_time_once(void **state)
{
    unsigned outer, inner;

    (void)state;
    outer = rp_stack_enter(&stack, A, 140);
    inner = rp_stack_enter(&stack, A, 150);
    rp_stack_leave(&stack, inner, 160);
    rp_stack_leave(&stack, outer, 170);
    assert_int_equal(entries[A].self_ticks, 30);
    assert_int_equal(entries[A].calls, 2);
    assert_adds_up();
}

static void leaving_a_span_closes_those_left_open_above_it(void **state)
{
    unsigned a;

    (void)state;
    a = rp_stack_enter(&stack, A, 140);
    rp_stack_enter(&stack, B, 150);
    rp_stack_enter(&stack, C, 160);
    rp_stack_leave(&stack, a, 170);
    rp_stack_charge(&stack, 180);
    assert_true(rp_stack_is_on_ground(&stack));
    assert_int_equal(entries[RP_SPAN_OTHER].self_ticks, 20);
    assert_int_equal(entries[C].self_ticks, 10);
    assert_adds_up();
}

static void a_clock_that_goes_back_gives_nothing(void **state)
{
    unsigned a;

    (void)state;
    a = rp_stack_enter(&stack, A, 140);
    rp_stack_leave(&stack, a, 120);
    rp_stack_charge(&stack, 145);
    assert_int_equal(entries[A].self_ticks, 0);
    assert_int_equal(entries[RP_SPAN_OTHER].self_ticks, 15);
    assert_adds_up();
}

static void a_request_whose_first_hook_comes_before_its_start_adds_up(void **state)
{
    (void)state;
    memset(entries, 0, sizeof(entries));
    stack.tally.touched_count = 0;
    rp_stack_start(&stack, 200, 190);
    rp_stack_charge(&stack, 210);
    assert_int_equal(entries[RP_SPAN_READ].self_ticks, 0);
    assert_adds_up();
}

static void a_span_left_lazily_is_charged_until_the_next_one_opens(void **state)
{
    unsigned a, b;

    (void)state;
    a = rp_stack_enter(&stack, A, 140);
    rp_stack_leave_lazily(&stack, a);
    assert_true(rp_stack_is_on_ground(&stack));
    b = rp_stack_enter(&stack, B, 155);
    assert_int_equal(b, RP_SPAN_OTHER);
    rp_stack_leave(&stack, b, 165);
    rp_stack_charge(&stack, 170);
    assert_int_equal(entries[A].self_ticks, 15);
    assert_int_equal(entries[B].self_ticks, 10);
    assert_int_equal(entries[RP_SPAN_OTHER].self_ticks, 15);
    assert_adds_up();
}

static void a_span_left_lazily_ends_with_the_one_around_it(void **state)
{
    unsigned a, b;

    (void)state;
    a = rp_stack_enter(&stack, A, 140);
    b = rp_stack_enter(&stack, B, 150);
    rp_stack_leave_lazily(&stack, b);
    assert_int_equal(flight.span, A);
    rp_stack_leave(&stack, a, 170);
    assert_int_equal(entries[A].self_ticks, 10);
    assert_int_equal(entries[B].self_ticks, 20);
    assert_adds_up();
}

static void the_ground_changes_at_once_when_no_span_is_open(void **state)
{
    (void)state;
    rp_stack_ground(&stack, RP_SPAN_DRAIN, 140);
    rp_stack_charge(&stack, 160);
    assert_int_equal(entries[RP_SPAN_OTHER].self_ticks, 10);
    assert_int_equal(entries[RP_SPAN_DRAIN].self_ticks, 20);
    assert_int_equal(entries[RP_SPAN_DRAIN].calls, 1);
    assert_adds_up();
}

static void each_touched_span_is_remembered_once(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        rp_stack_leave(&stack, rp_stack_enter(&stack, A + (unsigned)i % 3, 140), 150);
    }
    assert_int_equal(stack.tally.touched_count, 5); /* read, other and three more */
}

/* Whatever is opened and closed in whatever order, nothing is lost or counted twice. */
static void random_walks_add_up(void **state)
{
    unsigned depths[1000];
    apr_uint64_t now = 130;

    (void)state;
    srand(7);
    for (unsigned round = 0; round < 500; round++) {
        int open = 0;

        start(NULL);
        for (unsigned step = 0; step < 1000; step++) {
            now += (apr_uint64_t)(rand() % 50) - 5;
            if (open > 0 && rand() % 2) {
                open -= 1 + rand() % open % 3;
                open = open < 0 ? 0 : open;
                if (rand() % 3) {
                    rp_stack_leave(&stack, depths[open], now);
                }
                else {
                    rp_stack_leave_lazily(&stack, depths[open]);
                }
            }
            else if (open == 0 && rand() % 20 == 0) {
                rp_stack_ground(&stack, rand() % 2 ? RP_SPAN_DRAIN : RP_SPAN_OTHER, now);
            }
            else {
                depths[open++] = rp_stack_enter(&stack, (unsigned)rand() % SPANS, now);
            }
        }
        assert_adds_up();
        assert_true(stack.tally.touched_count <= SPANS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(reading_the_header_is_a_span, start),
        cmocka_unit_test_setup(a_nested_span_is_not_its_parents_time, start),
        cmocka_unit_test_setup(a_span_inside_itself_counts_twice_and_its_time_once, start),
        cmocka_unit_test_setup(leaving_a_span_closes_those_left_open_above_it, start),
        cmocka_unit_test_setup(a_clock_that_goes_back_gives_nothing, start),
        cmocka_unit_test_setup(a_request_whose_first_hook_comes_before_its_start_adds_up, start),
        cmocka_unit_test_setup(a_span_left_lazily_is_charged_until_the_next_one_opens, start),
        cmocka_unit_test_setup(a_span_left_lazily_ends_with_the_one_around_it, start),
        cmocka_unit_test_setup(the_ground_changes_at_once_when_no_span_is_open, start),
        cmocka_unit_test_setup(each_touched_span_is_remembered_once, start),
        cmocka_unit_test_setup(random_walks_add_up, start),
    };

    return cmocka_run_group_tests_name("timer stack", tests, NULL, NULL);
}
