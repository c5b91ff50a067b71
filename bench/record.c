/**
 * @file record.c
 * @brief How long counting a request takes when many threads of a child do it at once, and what a transition takes.
 *
 *   record clock                    clock reads and transitions, ns each
 *   record threads N [SPANS]        rp_record() in N threads, ns of processor time a call, calls a second, drops
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <apr_general.h>
#include <apr_strings.h>

#include "capture/stack.h"
#include "store/children.h"
#include "store/record.h"
#include "store/segment.h"

enum {
    SPANS_MAX = 512,
    CALLS = 60000,
    TRANSITIONS = 4000000,
    ROUNDS = 7
};

static rp_segment_t *segment;
static rp_child_t *child;
static pthread_barrier_t start_line;
static unsigned span_count = 30;

typedef struct {
    pthread_t thread;
    double cpu_ns_per_call;
} runner_t;

static double seconds(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static rp_tally_t new_tally(void)
{
    rp_tally_t tally = {0};

    tally.entries = calloc(1, (size_t)segment->tally_bytes);
    tally.touched = (apr_uint16_t *)(tally.entries + segment->span_max);
    return tally;
}

/* One thread's requests; building the tally is timed alone, too, and taken off. */
static double run_calls(int with_record)
{
    rp_tally_t tally = new_tally();
    unsigned shard = 0; /* as a new flight's; it moves away from where others are */
    double started_s = seconds(CLOCK_THREAD_CPUTIME_ID);

    for (unsigned call = 0; call < CALLS; call++) {
        apr_uint64_t total = 0;
        for (unsigned span = RP_SPAN_FIRST; span < RP_SPAN_FIRST + span_count; span++) {
            rp_tally_entry_t *entry = rp_tally_touch(&tally, span);
            entry->calls++;
            entry->self_ticks = 100 + (call * 37 + span * 11) % 5000;
            total += entry->self_ticks;
        }
        if (with_record) {
            rp_record(segment, child, &shard, &tally, total, 200);
        }
        else {
            rp_tally_clear(&tally);
        }
    }
    return (seconds(CLOCK_THREAD_CPUTIME_ID) - started_s) * 1e9 / CALLS;
}

static void *run_thread(void *data)
{
    runner_t *runner = data;
    double without_ns = run_calls(0);

    pthread_barrier_wait(&start_line);
    runner->cpu_ns_per_call = run_calls(1) - without_ns;
    return NULL;
}

static int bench_threads(unsigned thread_count)
{
    runner_t *runners = calloc(thread_count, sizeof(*runners));
    double started_s, wall_s, sum_ns = 0;

    pthread_barrier_init(&start_line, NULL, thread_count + 1);
    for (unsigned i = 0; i < thread_count; i++) {
        if (pthread_create(&runners[i].thread, NULL, run_thread, &runners[i])) {
            fprintf(stderr, "no thread %u\n", i);
            return 1;
        }
    }
    pthread_barrier_wait(&start_line);
    started_s = seconds(CLOCK_MONOTONIC);
    for (unsigned i = 0; i < thread_count; i++) {
        pthread_join(runners[i].thread, NULL);
        sum_ns += runners[i].cpu_ns_per_call;
    }
    wall_s = seconds(CLOCK_MONOTONIC) - started_s;
    printf("%u %.1f %.0f %lu\n", thread_count, sum_ns / thread_count, thread_count * CALLS / wall_s,
           (unsigned long)child->dropped_busy);
    return 0;
}

static double clock_loop_ns(void)
{
    double started_s = seconds(CLOCK_MONOTONIC);
    volatile apr_uint64_t sink;

    for (unsigned i = 0; i < TRANSITIONS; i++) {
        sink = rp_clock_now();
    }
    (void)sink;
    return (seconds(CLOCK_MONOTONIC) - started_s) * 1e9 / TRANSITIONS;
}

/* Enter and leave, through a pointer that the compiler knows nothing about. */
static double transition_loop_ns(rp_stack_t *stack)
{
    double started_s = seconds(CLOCK_MONOTONIC);

    for (unsigned i = 0; i < TRANSITIONS / 2; i++) {
        unsigned below = rp_stack_enter(stack, RP_SPAN_FIRST + i % span_count, rp_clock_now());
        __asm__ volatile("" : "+r"(stack)::"memory");
        rp_stack_leave(stack, below, rp_clock_now());
        __asm__ volatile("" : "+r"(stack)::"memory");
    }
    return (seconds(CLOCK_MONOTONIC) - started_s) * 1e9 / TRANSITIONS;
}

/* The fastest of some rounds: whatever else ran made the others slower. */
static int bench_clock(void)
{
    rp_stack_t stack = {0};
    double clock_ns = 1e9, transition_ns = 1e9;

    stack.flight = rp_flight_take(segment, child);
    stack.tally = new_tally();
    rp_stack_start(&stack, rp_clock_now(), rp_clock_now());
    for (unsigned round = 0; round < ROUNDS; round++) {
        double a = clock_loop_ns(), b = transition_loop_ns(&stack);
        clock_ns = a < clock_ns ? a : clock_ns;
        transition_ns = b < transition_ns ? b : transition_ns;
    }
    printf("%.3f %.3f %s\n", clock_ns, transition_ns, rp_clock_name(&segment->clock));
    return 0;
}

static void create_segment(apr_pool_t *pool)
{
    static rp_settings_t settings = RP_SETTINGS_DEFAULT;
    rp_segment_size_t size = {1, 64, 0, 16, "bench"};
    rp_span_plan_t *plan = rp_span_plan_create(pool, &settings);

    for (unsigned i = 0; i < span_count; i++) {
        rp_span_key_t key = {RP_KIND_HOOK, (rp_phase_t)(i % RP_PHASE_COUNT), "hook", apr_psprintf(pool, "mod_%u.c", i),
                             NULL};
        rp_span_plan_add(plan, &key);
    }
    if (rp_segment_parent_create(pool, &settings, plan, &size) != APR_SUCCESS) {
        fprintf(stderr, "no segment\n");
        exit(1);
    }
    segment = rp_segment_current();
    child = rp_child_claim(segment);
}

int main(int argc, char **argv)
{
    apr_pool_t *pool;

    apr_initialize();
    apr_pool_create(&pool, NULL);
    if (argc > 3 && atoi(argv[3]) > 0 && atoi(argv[3]) < SPANS_MAX) {
        span_count = (unsigned)atoi(argv[3]);
    }
    create_segment(pool);
    if (argc > 1 && !strcmp(argv[1], "clock")) {
        return bench_clock();
    }
    if (argc > 2 && !strcmp(argv[1], "threads") && atoi(argv[2]) > 0) {
        return bench_threads((unsigned)atoi(argv[2]));
    }
    fprintf(stderr, "record clock | record threads N [SPANS]\n");
    return 2;
}
