/* The shared segment in plain processes: spans, children that come, go and die, flights, and sums that stay exact. */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <apr_general.h>

#include "store/children.h"
#include "store/record.h"
#include "store/segment.h"
#include "store/snapshot.h"
#include "store/spans.h"

#define CHILDREN 4
#define THREADS 8
#define SPARE_SPANS 4

static rp_settings_t settings;
static apr_pool_t *process_pool; /* outlives the segments of a test, as httpd's outlives restarts */
static rp_segment_t *segment;
static unsigned span_a, span_b, span_c, span_log;
static unsigned generation;

static unsigned add(rp_span_plan_t *plan, rp_phase_t phase, const char *owner)
{
    rp_span_key_t key = {RP_KIND_HOOK, phase, "fixups", owner, NULL};

    return rp_span_plan_add(plan, &key);
}

static int new_segment(unsigned threads)
{
    rp_span_plan_t *plan = rp_span_plan_create(process_pool, &settings);
    rp_segment_size_t size = {CHILDREN, threads, ++generation, SPARE_SPANS, "test"};

    span_a = add(plan, RP_PHASE_FIXUP, "mod_a");
    span_b = add(plan, RP_PHASE_HANDLER, "mod_b");
    span_c = add(plan, RP_PHASE_HANDLER, "mod_c");
    span_log = add(plan, RP_PHASE_LOG, "access.log");
    if (rp_segment_parent_create(process_pool, &settings, plan, &size) != APR_SUCCESS) {
        return 1;
    }
    segment = rp_segment_current();
    return 0;
}

static int setup(void **state)
{
    (void)state;
    settings = (rp_settings_t)RP_SETTINGS_DEFAULT;
    settings.clock = RP_CLOCK_MONOTONIC; /* a tick is a nanosecond: sums can be checked by hand */
    apr_pool_create(&process_pool, NULL);
    return new_segment(THREADS);
}

static int teardown(void **state)
{
    (void)state;
    apr_pool_destroy(process_pool);
    return 0;
}

/* A tally in private memory, as a request has when all slots are taken. */
static rp_tally_t *new_tally(void)
{
    rp_tally_t *tally = calloc(1, sizeof(*tally) + segment->tally_bytes);

    tally->entries = (rp_tally_entry_t *)(tally + 1);
    tally->touched = (apr_uint16_t *)(tally->entries + segment->span_max);
    return tally;
}

static void spend(rp_tally_t *tally, unsigned span, apr_uint64_t ticks)
{
    rp_tally_entry_t *entry = rp_tally_touch(tally, span);

    entry->calls++;
    entry->self_ticks += ticks;
}

/* A request of 7 + n ticks. */
static void record_one(rp_child_t *child, rp_tally_t *tally, unsigned hint, unsigned n, int status)
{
    spend(tally, RP_SPAN_OTHER, 4);
    spend(tally, span_a, 3);
    spend(tally, n % 2 ? span_b : span_c, n);
    rp_record(segment, child, &hint, tally, 7 + n, status);
}

static const rp_snapshot_t *snapshot_of(apr_uint32_t pid)
{
    const rp_snapshot_t *snapshot = rp_snapshot_take(process_pool, segment, pid);

    assert_non_null(snapshot);
    return snapshot;
}

static const rp_span_times_t *span_in(const rp_snapshot_t *snapshot, unsigned id)
{
    for (unsigned i = 0; i < snapshot->span_count; i++) {
        if (snapshot->spans[i].id == id) {
            return &snapshot->spans[i];
        }
    }
    return NULL;
}

/* Every sum of a snapshot against every other. @return 0 and says which one, when two differ */
static int adds_up(const rp_snapshot_t *s)
{
    apr_uint64_t phases_ns = 0, spans_ns = 0, children_ns = 0, children = 0, statuses = 0;

    for (int i = 0; i < RP_PHASE_COUNT; i++) {
        phases_ns += s->phases[i].sum_ns;
    }
    for (unsigned i = 0; i < s->span_count; i++) {
        spans_ns += s->spans[i].self.sum_ns;
    }
    for (unsigned i = 0; i < s->child_count; i++) {
        children_ns += s->children[i].total.sum_ns;
        children += s->children[i].requests;
    }
    for (int i = 0; i < RP_STATUS_CLASSES; i++) {
        statuses += s->by_status[i];
    }
    /* The histogram's own sum is counted apart from the spans; on this clock both are nanoseconds. */
    if (phases_ns == s->total.sum_ns && spans_ns == s->total.sum_ns && children_ns == s->total.sum_ns
        && s->total.hist.head->sum == s->total.sum_ns && children == s->requests && statuses == s->requests
        && s->total.hist.head->count == s->requests && s->unbalanced == 0) {
        return 1;
    }
    fprintf(stderr, "total %llu (spans' own), %llu; phases %llu, spans %llu, children %llu; requests %llu, %llu, %llu, "
            "%llu; unbalanced %llu\n", (unsigned long long)s->total.sum_ns,
            (unsigned long long)s->total.hist.head->sum, (unsigned long long)phases_ns, (unsigned long long)spans_ns,
            (unsigned long long)children_ns, (unsigned long long)s->requests, (unsigned long long)children,
            (unsigned long long)statuses, (unsigned long long)s->total.hist.head->count,
            (unsigned long long)s->unbalanced);
    return 0;
}

/* Runs a function in a forked child that has claimed a part; it never returns into the test. */
static pid_t fork_child(void (*work)(rp_child_t *child))
{
    pid_t pid = fork();

    if (pid == 0) {
        rp_child_t *child = rp_child_claim(segment);
        if (child) {
            work(child);
            rp_child_release(child);
        }
        _exit(child ? 0 : 3);
    }
    assert_true(pid > 0);
    return pid;
}

static int wait_for(pid_t pid)
{
    int status = -1;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- spans ---- */

static void equal_spans_of_a_plan_are_told_apart(void **state)
{
    rp_span_plan_t *plan = rp_span_plan_create(process_pool, &settings);
    unsigned first = add(plan, RP_PHASE_FIXUP, "mod_a"), second = add(plan, RP_PHASE_FIXUP, "mod_a");

    (void)state;
    assert_int_equal(first, RP_SPAN_FIRST);
    assert_int_equal(second, first + 1);
    assert_int_equal(APR_ARRAY_IDX(plan->spans, (int)first, rp_span_t).which, 0);
    assert_int_equal(APR_ARRAY_IDX(plan->spans, (int)second, rp_span_t).which, 1);
}

static void a_shared_span_is_planned_once(void **state)
{
    rp_span_plan_t *plan = rp_span_plan_create(process_pool, &settings);
    rp_span_key_t key = {RP_KIND_FILTER, RP_PHASE_DEFLATE, "output", "DEFLATE", NULL};
    unsigned id = rp_span_plan_share(plan, &key);

    (void)state;
    assert_int_equal(rp_span_plan_share(plan, &key), id);
    key.owner = "INFLATE";
    assert_int_not_equal(rp_span_plan_share(plan, &key), id);
}

static void with_phases_only_a_phase_is_one_span(void **state)
{
    rp_span_plan_t *plan;

    (void)state;
    settings.detail = RP_DETAIL_PHASES;
    plan = rp_span_plan_create(process_pool, &settings);
    assert_int_equal(add(plan, RP_PHASE_FIXUP, "mod_a"), add(plan, RP_PHASE_FIXUP, "mod_b"));
    assert_int_not_equal(add(plan, RP_PHASE_FIXUP, "mod_a"), add(plan, RP_PHASE_MAP, "mod_a"));
}

static void spans_beyond_the_limit_are_refused_and_counted(void **state)
{
    rp_span_plan_t *plan;

    (void)state;
    settings.span_max = RP_SPAN_FIRST + 2;
    plan = rp_span_plan_create(process_pool, &settings);
    assert_int_equal(add(plan, RP_PHASE_MAP, "a"), RP_SPAN_FIRST);
    assert_int_equal(add(plan, RP_PHASE_MAP, "b"), RP_SPAN_FIRST + 1);
    assert_int_equal(add(plan, RP_PHASE_MAP, "c"), RP_SPAN_NONE);
    assert_int_equal(plan->left_out, 1);
}

static void names_longer_than_a_span_holds_are_cut_and_found_again(void **state)
{
    char name[300];
    rp_span_key_t key = {RP_KIND_LOG, RP_PHASE_LOG, name, name, name};
    unsigned id;

    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    id = rp_spans_claim(segment, &key);
    assert_int_not_equal(id, RP_SPAN_NONE);
    assert_int_equal(rp_spans_claim(segment, &key), id);
    assert_int_equal(strlen(rp_segment_span(segment, id)->owner), sizeof(((rp_span_t *)0)->owner) - 1);
}

static void a_planned_span_is_found_while_requests_run(void **state)
{
    rp_span_key_t key = {RP_KIND_HOOK, RP_PHASE_FIXUP, "fixups", "mod_a", NULL};

    (void)state;
    assert_int_equal(rp_spans_claim(segment, &key), span_a);
}

static void claiming_beyond_the_table_is_refused_and_counted(void **state)
{
    char name[16];
    rp_span_key_t key = {RP_KIND_FILTER, RP_PHASE_FILTER, "output", name, NULL};

    (void)state;
    for (unsigned i = 0; i < SPARE_SPANS + 3; i++) {
        snprintf(name, sizeof(name), "F%u", i);
        assert_true((rp_spans_claim(segment, &key) == RP_SPAN_NONE) == (i >= SPARE_SPANS));
    }
    assert_int_equal(segment->unplanned_spans, 3);
    assert_int_equal(segment->span_count, segment->span_max);
}

static void *claim_spans(void *data)
{
    char name[16];
    rp_span_key_t key = {RP_KIND_FILTER, RP_PHASE_FILTER, "output", name, NULL};

    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "F%d", (i + *(int *)data) % 50);
        unsigned id = rp_spans_claim(segment, &key);
        /* A span that is handed out is a whole one. */
        if (id != RP_SPAN_NONE && strcmp(rp_segment_span(segment, id)->owner, name)) {
            return "wrong span";
        }
    }
    return NULL;
}

static void threads_that_claim_at_once_get_whole_spans(void **state)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, claim_spans, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        void *fault;
        pthread_join(threads[i], &fault);
        assert_null(fault);
    }
    assert_int_equal(segment->span_count, segment->span_max);
}

/* ---- the segment ---- */

static void fresh_memory_is_an_empty_report(void **state)
{
    const rp_snapshot_t *snapshot = snapshot_of(0);

    (void)state;
    assert_int_equal(snapshot->requests, 0);
    assert_int_equal(snapshot->span_count, 0);
    assert_int_equal(snapshot->child_count, 0);
    assert_int_equal(snapshot->flight_count, 0);
    for (int i = 0; i < RP_PHASE_COUNT; i++) {
        assert_int_equal(snapshot->phases[i].hist.head->count, 0);
        assert_int_equal(rp_snapshot_quantile_ns(snapshot, &snapshot->phases[i], 0.5), 0);
        assert_int_equal(rp_snapshot_mean_ns(&snapshot->phases[i]), 0);
    }
    assert_true(adds_up(snapshot));
}

static void without_a_segment_there_is_no_snapshot(void **state)
{
    (void)state;
    assert_null(rp_snapshot_take(process_pool, NULL, 0));
}

static void a_generation_is_found_until_it_has_ended(void **state)
{
    unsigned old = generation;
    rp_segment_t *before = segment;

    (void)state;
    assert_int_equal(new_segment(THREADS), 0);
    assert_ptr_equal(rp_segment_of_generation(process_pool, old), before);
    assert_ptr_equal(rp_segment_of_generation(process_pool, generation), segment);
    assert_int_equal(segment->epoch, before->epoch + 1);
    rp_segment_parent_end(process_pool, old);
    assert_null(rp_segment_of_generation(process_pool, old));
    assert_ptr_equal(rp_segment_of_generation(process_pool, generation), segment);
}

/* A hard restart ends a generation before the next one has a segment. */
static void a_generation_that_ended_first_is_given_back_with_the_next(void **state)
{
    unsigned old = generation;

    (void)state;
    rp_segment_parent_end(process_pool, old);
    assert_ptr_equal(rp_segment_current(), segment);
    assert_int_equal(new_segment(THREADS), 0);
    assert_null(rp_segment_of_generation(process_pool, old));
}

static unsigned mappings(void)
{
    unsigned count = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");

    while (maps && fgets(line, sizeof(line), maps)) {
        count += strstr(line, "/dev/zero") != NULL;
    }
    if (maps) {
        fclose(maps);
    }
    return count;
}

static void many_restarts_keep_a_bounded_number_of_segments(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(new_segment(1), 0);
    }
    assert_true(mappings() <= 32);
    assert_int_equal(segment->epoch, 101);
}

/* ---- children ---- */

static void a_child_has_a_part_until_there_are_no_more(void **state)
{
    rp_child_t *parts[CHILDREN];

    (void)state;
    for (int i = 0; i < CHILDREN; i++) {
        parts[i] = rp_child_claim(segment);
        assert_non_null(parts[i]);
        assert_int_equal(parts[i]->pid, getpid());
        for (int j = 0; j < i; j++) {
            assert_ptr_not_equal(parts[i], parts[j]);
        }
    }
    assert_null(rp_child_claim(segment));
}

static void serve_ten(rp_child_t *child)
{
    rp_tally_t *tally = new_tally();

    for (unsigned i = 0; i < 10; i++) {
        record_one(child, tally, i, i, i < 7 ? 200 : 404);
    }
}

static void a_childs_counts_are_seen_from_other_processes(void **state)
{
    const rp_snapshot_t *snapshot;
    pid_t pid = fork_child(serve_ten);

    (void)state;
    assert_int_equal(wait_for(pid), 0);
    snapshot = snapshot_of(0);
    assert_int_equal(snapshot->requests, 10);
    assert_int_equal(snapshot->by_status[1], 7);
    assert_int_equal(snapshot->by_status[3], 3);
    assert_int_equal(snapshot->total.sum_ns, 10 * 7 + 45);
    assert_int_equal(span_in(snapshot, span_a)->calls, 10);
    assert_int_equal(span_in(snapshot, span_b)->self.sum_ns, 1 + 3 + 5 + 7 + 9);
    assert_int_equal(snapshot->phases[RP_PHASE_HANDLER].hist.head->count, 10);
    assert_int_equal(snapshot->child_count, 1);
    assert_int_equal(snapshot->children[0].pid, pid);
    assert_int_equal(snapshot->children[0].state, RP_CHILD_ENDED);
    assert_true(adds_up(snapshot));
}

static void a_departed_childs_counts_stay_in_the_sums(void **state)
{
    const rp_snapshot_t *before, *after;
    pid_t pid = fork_child(serve_ten);

    (void)state;
    wait_for(pid);
    before = snapshot_of(0);
    rp_child_fold(segment, pid);
    after = snapshot_of(0);
    assert_int_equal(after->requests, 10);
    assert_int_equal(after->total.sum_ns, before->total.sum_ns);
    assert_memory_equal(after->total.hist.buckets, before->total.hist.buckets,
                        RP_HIST_FINE_BUCKETS * sizeof(apr_uint64_t));
    assert_int_equal(after->child_count, 1);
    assert_int_equal(after->children[0].pid, 0);
    assert_true(adds_up(after));
}

static void a_snapshot_of_one_child_has_only_that_one(void **state)
{
    pid_t first = fork_child(serve_ten), second = fork_child(serve_ten);

    (void)state;
    wait_for(first);
    wait_for(second);
    assert_int_equal(snapshot_of((apr_uint32_t)first)->requests, 10);
    assert_int_equal(snapshot_of(0)->requests, 20);
    rp_child_fold(segment, first);
    assert_int_equal(snapshot_of((apr_uint32_t)first)->requests, 0);
    assert_int_equal(snapshot_of((apr_uint32_t)second)->requests, 10);
    assert_int_equal(snapshot_of(0)->requests, 20);
}

static void folding_a_process_without_a_part_changes_nothing(void **state)
{
    (void)state;
    rp_child_fold(segment, 999999);
    assert_int_equal(segment->fold_sequence, 0);
    assert_int_equal(snapshot_of(0)->requests, 0);
}

static void children_that_come_and_go_use_the_parts_again(void **state)
{
    (void)state;
    for (int i = 0; i < 5 * CHILDREN; i++) {
        pid_t pid = fork_child(serve_ten);

        assert_int_equal(wait_for(pid), 0);
        rp_child_fold(segment, pid);
    }
    assert_int_equal(snapshot_of(0)->requests, 50 * CHILDREN);
    assert_true(adds_up(snapshot_of(0)));
}

/* Dies between the two stores of a write: everything is in but the sequence. */
static void die_in_a_write(rp_child_t *child)
{
    serve_ten(child);
    rp_child_shard(segment, child, 0)->sequence |= 1;
    raise(SIGKILL);
}

static void a_child_that_dies_in_a_write_blocks_no_reader(void **state)
{
    pid_t pid = fork_child(die_in_a_write);

    (void)state;
    assert_true(WIFSIGNALED(wait_for(pid)));
    assert_int_equal(snapshot_of(0)->requests, 10);
    rp_child_fold(segment, pid);
    assert_int_equal(segment->damaged_flights, 1);
    assert_int_equal(snapshot_of(0)->requests, 10);
    assert_true(adds_up(snapshot_of(0)));
}

static void a_part_that_a_dead_child_left_odd_serves_the_next_one(void **state)
{
    pid_t pid = fork_child(die_in_a_write);

    (void)state;
    wait_for(pid);
    rp_child_fold(segment, pid);
    pid = fork_child(serve_ten);
    assert_int_equal(wait_for(pid), 0);
    assert_int_equal(snapshot_of(0)->requests, 20);
    assert_int_equal(snapshot_of(0)->dropped_busy, 0);
}

static void die_with_a_flight(rp_child_t *child)
{
    rp_flight_t *flight = rp_flight_take(segment, child);
    rp_tally_entry_t *entries = rp_child_tally(segment, child, rp_flight_index(segment, child, flight));

    flight->serial = 1;
    flight->state = RP_FLIGHT_RUNNING;
    flight->start_ticks = flight->last_ticks = rp_clock_now();
    strcpy(flight->uri, "/hangs");
    entries[span_a].calls = 1;
    entries[span_a].self_ticks = 1000;
    raise(SIGKILL);
}

static void a_dead_childs_request_is_seen_and_then_counted_as_lost(void **state)
{
    pid_t pid = fork_child(die_with_a_flight);
    const rp_snapshot_t *snapshot;

    (void)state;
    wait_for(pid);
    snapshot = snapshot_of(0);
    assert_int_equal(snapshot->flight_count, 1);
    assert_int_equal(snapshot->flights[0].pid, pid);
    assert_string_equal(snapshot->flights[0].uri, "/hangs");
    rp_child_fold(segment, pid);
    assert_int_equal(segment->lost_flights, 1);
    assert_int_equal(snapshot_of(0)->flight_count, 0);
}

static void check_clean_tallies(rp_child_t *child)
{
    for (unsigned i = 0; i < segment->flight_max; i++) {
        rp_flight_t *flight = rp_flight_take(segment, child);
        rp_tally_entry_t *entries = flight
            ? rp_child_tally(segment, child, rp_flight_index(segment, child, flight)) : NULL;

        for (unsigned id = 0; entries && id < segment->span_max; id++) {
            if (entries[id].calls || entries[id].self_ticks) {
                _exit(4);
            }
        }
    }
}

static void what_a_dead_request_had_collected_is_nobody_elses(void **state)
{
    pid_t pid = fork_child(die_with_a_flight);

    (void)state;
    wait_for(pid);
    rp_child_fold(segment, pid);
    assert_int_equal(wait_for(fork_child(check_clean_tallies)), 0);
}

/* ---- flights ---- */

static void each_slot_is_taken_once(void **state)
{
    rp_child_t *child = rp_child_claim(segment);
    char *seen = calloc(segment->flight_max, 1);

    (void)state;
    for (unsigned i = 0; i < segment->flight_max; i++) {
        rp_flight_t *flight = rp_flight_take(segment, child);
        unsigned index;

        assert_non_null(flight);
        index = rp_flight_index(segment, child, flight);
        assert_true(index < segment->flight_max);
        assert_int_equal(seen[index]++, 0);
    }
    assert_null(rp_flight_take(segment, child));
    rp_flight_give(segment, child, rp_child_flight(segment, child, 3));
    assert_ptr_equal(rp_flight_take(segment, child), rp_child_flight(segment, child, 3));
    assert_null(rp_flight_take(segment, child));
    free(seen);
}

static unsigned *owners; /* by slot: how many threads believe that it is theirs */

static void *take_and_give(void *data)
{
    rp_child_t *child = data;

    for (int i = 0; i < 50000; i++) {
        rp_flight_t *flights[3];

        for (int j = 0; j < 3; j++) {
            flights[j] = rp_flight_take(segment, child);
            if (!flights[j]
                || __atomic_add_fetch(&owners[rp_flight_index(segment, child, flights[j])], 1, __ATOMIC_SEQ_CST) != 1) {
                return "a slot was missing or had two owners";
            }
        }
        for (int j = 0; j < 3; j++) {
            __atomic_sub_fetch(&owners[rp_flight_index(segment, child, flights[j])], 1, __ATOMIC_SEQ_CST);
            rp_flight_give(segment, child, flights[j]);
        }
    }
    return NULL;
}

static void no_two_threads_have_the_same_slot(void **state)
{
    rp_child_t *child = rp_child_claim(segment);
    pthread_t threads[THREADS];

    (void)state;
    owners = calloc(segment->flight_max, sizeof(*owners));
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, take_and_give, child);
    }
    for (int i = 0; i < THREADS; i++) {
        void *fault;
        pthread_join(threads[i], &fault);
        assert_null(fault);
    }
    for (unsigned i = 0; i < segment->flight_max; i++) {
        assert_non_null(rp_flight_take(segment, child));
    }
    assert_null(rp_flight_take(segment, child));
    free(owners);
}

/* ---- recording ---- */

static void recording_empties_the_tally(void **state)
{
    rp_child_t *child = rp_child_claim(segment);
    rp_tally_t *tally = new_tally();
    rp_tally_t *empty = new_tally();

    (void)state;
    record_one(child, tally, 0, 5, 200);
    assert_int_equal(tally->touched_count, 0);
    assert_memory_equal(tally->entries, empty->entries, segment->span_max * sizeof(rp_tally_entry_t));
    free(tally);
    free(empty);
}

static void a_request_whose_spans_do_not_add_up_is_counted_as_unbalanced(void **state)
{
    rp_child_t *child = rp_child_claim(segment);
    rp_tally_t *tally = new_tally();
    unsigned shard = 0;

    (void)state;
    spend(tally, span_a, 10);
    rp_record(segment, child, &shard, tally, 11, 200);
    assert_int_equal(snapshot_of(0)->unbalanced, 1);
    assert_int_equal(snapshot_of(0)->requests, 1);
    free(tally);
}

static void statuses_out_of_range_count_as_none(void **state)
{
    static const int statuses[] = {0, -1, 99, 600, 1000};
    rp_child_t *child = rp_child_claim(segment);
    rp_tally_t *tally = new_tally();
    const rp_snapshot_t *snapshot;

    (void)state;
    for (int i = 0; i < 5; i++) {
        record_one(child, tally, 0, 1, statuses[i]);
    }
    snapshot = snapshot_of(0);
    assert_int_equal(snapshot->requests, 5);
    for (int i = 0; i < RP_STATUS_CLASSES; i++) {
        assert_int_equal(snapshot->by_status[i], 0);
    }
    free(tally);
}

static void a_target_that_was_left_out_counts_as_skipped_only(void **state)
{
    rp_child_t *child = rp_child_claim(segment);
    rp_tally_t *tally = new_tally();
    const rp_span_times_t *span;

    (void)state;
    rp_tally_touch(tally, span_log)->skipped++;
    record_one(child, tally, 0, 2, 200);
    span = span_in(snapshot_of(0), span_log);
    assert_int_equal(span->skipped, 1);
    assert_int_equal(span->calls, 0);
    assert_int_equal(span->self.hist.head->count, 0);
    assert_true(adds_up(snapshot_of(0)));
    free(tally);
}

/* As when a signal ends a prefork child inside a write, and its clean-up logs a request on the same thread. */
static void a_request_that_finds_all_shards_taken_is_dropped_and_counted(void **state)
{
    rp_child_t *child = rp_child_claim(segment);
    rp_tally_t *tally = new_tally();

    (void)state;
    for (unsigned i = 0; i < segment->shard_count; i++) {
        rp_child_shard(segment, child, i)->sequence = 1;
    }
    record_one(child, tally, 0, 5, 200);
    assert_int_equal(tally->touched_count, 0);
    assert_int_equal(tally->entries[span_a].calls, 0);
    assert_int_equal(snapshot_of(0)->dropped_busy, 1);
    assert_int_equal(snapshot_of(0)->requests, 0);
    free(tally);
}

static void a_request_goes_to_another_shard_when_its_own_is_taken(void **state)
{
    rp_child_t *child = rp_child_claim(segment);
    rp_tally_t *tally = new_tally();

    (void)state;
    if (segment->shard_count == 1) {
        free(tally);
        skip(); /* one processor, one shard */
    }
    rp_child_shard(segment, child, 0)->sequence = 1;
    record_one(child, tally, 0, 5, 200);
    rp_child_shard(segment, child, 0)->sequence = 2;
    assert_int_equal(snapshot_of(0)->requests, 1);
    assert_int_equal(rp_child_shard(segment, child, 0)->requests, 0);
    free(tally);
}

#define PER_THREAD 20000

typedef struct {
    rp_child_t *child;
    unsigned number;
} worker_t;

static void *record_many(void *data)
{
    const worker_t *worker = data;
    rp_tally_t *tally = new_tally();

    for (unsigned i = 0; i < PER_THREAD; i++) {
        record_one(worker->child, tally, worker->number, i % 1000, 200 + 100 * (int)(i % 4));
    }
    free(tally);
    return NULL;
}

static void serve_with_threads(rp_child_t *child)
{
    pthread_t threads[THREADS];
    worker_t workers[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){child, i};
        pthread_create(&threads[i], NULL, record_many, &workers[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* One answer of a reader beside the writers. @return 1 when all its sums agree and no count has fallen; no assertions,
 * since it runs in forked processes too */
static int answer_is_right(apr_uint64_t *requests)
{
    apr_pool_t *pool;
    const rp_snapshot_t *snapshot;
    int right;

    apr_pool_create(&pool, process_pool);
    snapshot = rp_snapshot_take(pool, segment, 0);
    right = adds_up(snapshot) && snapshot->requests >= *requests;
    *requests = snapshot->requests;
    apr_pool_destroy(pool);
    return right;
}

/* Reads until all children have gone, and folds them as they go. @return requests of the last answer */
static apr_uint64_t watch(pid_t *pids, unsigned count)
{
    apr_uint64_t requests = 0;
    unsigned left = count;

    while (left) {
        assert_true(answer_is_right(&requests));
        for (unsigned i = 0; i < count; i++) {
            if (pids[i] && waitpid(pids[i], NULL, WNOHANG) == pids[i]) {
                rp_child_fold(segment, pids[i]);
                pids[i] = 0;
                left--;
            }
        }
    }
    assert_true(answer_is_right(&requests));
    return requests;
}

static void sums_are_exact_while_threads_of_children_write(void **state)
{
    pid_t pids[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        pids[i] = fork_child(serve_with_threads);
    }
    assert_int_equal(watch(pids, 2) + segment->departed_dropped_busy, 2 * THREADS * PER_THREAD);
    assert_int_equal(segment->damaged_flights, 0);
}

static pid_t fork_reader(apr_uint64_t until_requests)
{
    pid_t pid = fork();

    if (pid == 0) {
        apr_uint64_t requests = 0;
        while (requests < until_requests) {
            if (!answer_is_right(&requests)) {
                _exit(5);
            }
        }
        _exit(0);
    }
    return pid;
}

/* The parent folds while another process reads. */
static void no_request_is_lost_or_doubled_while_a_child_is_folded(void **state)
{
    pid_t pid = fork_reader(1000);

    (void)state;
    for (int i = 0; i < 100; i++) {
        pid_t child = fork_child(serve_ten);

        wait_for(child);
        rp_child_fold(segment, child);
    }
    assert_int_equal(wait_for(pid), 0);
    assert_int_equal(snapshot_of(0)->requests, 1000);
}

static void serve_for_ever(rp_child_t *child)
{
    for (;;) {
        serve_with_threads(child);
    }
}

static apr_uint64_t distance(apr_uint64_t a, apr_uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Of a write that a death cut short some counters are in and some are not: at most one request for each shard. */
static void children_killed_at_any_moment_leave_sums_that_are_off_by_what_is_said(void **state)
{
    const rp_snapshot_t *snapshot;
    apr_uint64_t last = 0;

    (void)state;
    for (int i = 0; i < 40; i++) {
        pid_t pid = fork_child(serve_for_ever);

        usleep(2000 + 137 * (unsigned)i);
        kill(pid, SIGKILL);
        assert_true(WIFSIGNALED(wait_for(pid)));
        rp_child_fold(segment, pid);
        snapshot = snapshot_of(0);
        assert_true(snapshot->requests >= last);
        last = snapshot->requests;
    }
    snapshot = snapshot_of(0);
    assert_true(snapshot->requests > 0);
    assert_true(distance(snapshot->requests, snapshot->total.hist.head->count) <= segment->damaged_flights);
    assert_int_equal(snapshot->children[0].total.sum_ns, snapshot->total.sum_ns);
    assert_int_equal(snapshot->unbalanced, 0);
    assert_int_equal(segment->lost_flights, 0);
    assert_int_equal(wait_for(fork_child(serve_ten)), 0);
    assert_int_equal(snapshot_of(0)->requests, last + 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(equal_spans_of_a_plan_are_told_apart),
        TEST(a_shared_span_is_planned_once),
        TEST(with_phases_only_a_phase_is_one_span),
        TEST(spans_beyond_the_limit_are_refused_and_counted),
        TEST(names_longer_than_a_span_holds_are_cut_and_found_again),
        TEST(a_planned_span_is_found_while_requests_run),
        TEST(claiming_beyond_the_table_is_refused_and_counted),
        TEST(threads_that_claim_at_once_get_whole_spans),
        TEST(fresh_memory_is_an_empty_report),
        TEST(without_a_segment_there_is_no_snapshot),
        TEST(a_generation_is_found_until_it_has_ended),
        TEST(a_generation_that_ended_first_is_given_back_with_the_next),
        TEST(many_restarts_keep_a_bounded_number_of_segments),
        TEST(a_child_has_a_part_until_there_are_no_more),
        TEST(a_childs_counts_are_seen_from_other_processes),
        TEST(a_departed_childs_counts_stay_in_the_sums),
        TEST(a_snapshot_of_one_child_has_only_that_one),
        TEST(folding_a_process_without_a_part_changes_nothing),
        TEST(children_that_come_and_go_use_the_parts_again),
        TEST(a_child_that_dies_in_a_write_blocks_no_reader),
        TEST(a_part_that_a_dead_child_left_odd_serves_the_next_one),
        TEST(a_dead_childs_request_is_seen_and_then_counted_as_lost),
        TEST(what_a_dead_request_had_collected_is_nobody_elses),
        TEST(each_slot_is_taken_once),
        TEST(no_two_threads_have_the_same_slot),
        TEST(recording_empties_the_tally),
        TEST(a_request_whose_spans_do_not_add_up_is_counted_as_unbalanced),
        TEST(statuses_out_of_range_count_as_none),
        TEST(a_target_that_was_left_out_counts_as_skipped_only),
        TEST(a_request_that_finds_all_shards_taken_is_dropped_and_counted),
        TEST(a_request_goes_to_another_shard_when_its_own_is_taken),
        TEST(sums_are_exact_while_threads_of_children_write),
        TEST(no_request_is_lost_or_doubled_while_a_child_is_folded),
        TEST(children_killed_at_any_moment_leave_sums_that_are_off_by_what_is_said),
    };

    apr_initialize();
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
