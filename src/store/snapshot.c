#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "store/lasting.h"
#include "store/life.h"
#include "store/marks.h"
#include "store/shard.h"
#include "store/snapshot.h"

/* Tries for a copy without a writer in between. Enough for a child that does nothing but write. */
#define COPY_TRIES 20000
/* Tries that wait for the end of one write: its thread may have lost the processor, or its child be dead. */
#define WRITE_YIELDS 50
#define WRITE_WAITS 50
#define FOLD_TRIES 20
#define WAIT_US 1000

/* What a snapshot is built with; gone afterwards with the pool. */
typedef struct {
    rp_snapshot_t *snapshot;
    rp_segment_t *segment;
    apr_pool_t *pool;
    rp_shard_t *scratch;   /* a copy of one shard */
    rp_shard_t *sums;      /* all shards added up, ticks */
    rp_child_times_t *now; /* the child being added */
    apr_uint64_t *span_ns; /* converted sums by span */
} builder_t;

static void wait_for_write(unsigned tries)
{
    if (tries < WRITE_YIELDS) {
        sched_yield();
    }
    else {
        apr_sleep(WAIT_US);
    }
}

/*
 * Seqlock reader (Boehm, "Can seqlocks get along with programming language memory models?", 2012). The odd sequence
 * of a dead child never becomes even: after some waiting its part is taken as it is.
 */
static void copy_shard(builder_t *b, rp_shard_t *shard)
{
    apr_uint32_t last = 0;
    unsigned same = 0;

    for (int i = 0; i < COPY_TRIES; i++) {
        apr_uint32_t before = __atomic_load_n(&shard->sequence, __ATOMIC_ACQUIRE);

        same = before == last ? same + 1 : 0;
        last = before;
        if ((before & 1) && same < WRITE_YIELDS + WRITE_WAITS) {
            wait_for_write(same);
            continue;
        }
        rp_shard_clear(b->scratch, b->segment->span_max);
        rp_shard_add(b->scratch, shard, b->segment->span_max);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (before == __atomic_load_n(&shard->sequence, __ATOMIC_RELAXED)) {
            return;
        }
    }
}

/* Converts the scratch shard's sums: the one place where ticks of a sum become nanoseconds. */
static void add_sums_ns(builder_t *b, rp_shard_t *shard)
{
    rp_snapshot_t *snapshot = b->snapshot;

    for (unsigned id = 0; id < b->segment->span_max; id++) {
        rp_cell_t *cell = rp_shard_cell(shard, id);
        apr_uint64_t ns;

        if (!cell->calls) {
            continue;
        }
        ns = rp_clock_ns(&b->segment->clock, cell->self.head.sum);
        b->span_ns[id] += ns;
        snapshot->phases[rp_segment_span(b->segment, id)->phase].sum_ns += ns;
        snapshot->total.sum_ns += ns;
        b->now->total.sum_ns += ns;
    }
}

static void add_child_shard(builder_t *b, rp_shard_t *shard)
{
    rp_child_times_t *now = b->now;

    copy_shard(b, shard);
    now->requests += b->scratch->requests;
    for (int i = 0; i < RP_STATUS_CLASSES; i++) {
        now->by_status[i] += b->scratch->by_status[i];
    }
    rp_hist_merge(now->total.hist, rp_hist_fine(&b->scratch->total));
    add_sums_ns(b, b->scratch);
    rp_shard_add(b->sums, b->scratch, b->segment->span_max);
}

static rp_times_t fine_times(apr_pool_t *pool)
{
    return (rp_times_t){rp_hist_fine(apr_pcalloc(pool, sizeof(rp_hist_fine_t))), 0};
}

static void add_child(builder_t *b, unsigned index, rp_child_t *child)
{
    rp_snapshot_t *snapshot = b->snapshot;
    int departed = index == b->segment->child_max;

    b->now = &snapshot->children[snapshot->child_count++];
    *b->now = (rp_child_times_t){0};
    b->now->pid = departed ? 0 : child->pid;
    b->now->epoch = b->segment->epoch;
    b->now->state = departed ? RP_CHILD_FREE : (rp_child_state_t)child->state;
    b->now->started_us = departed ? b->segment->started_us : child->started_us;
    b->now->total = fine_times(b->pool);
    b->now->life = *rp_child_life(b->segment, child);
    rp_life_growth(&b->now->growth, &b->now->life);
    for (unsigned i = 0; i < (departed ? 1 : b->segment->shard_count); i++) {
        add_child_shard(b, rp_child_shard(b->segment, child, i));
    }
    snapshot->dropped_busy += departed ? b->segment->departed_dropped_busy : child->dropped_busy;
    snapshot->pool_flights += departed ? b->segment->departed_flights_dropped : child->pool_flights;
    if (departed && !b->now->requests) {
        snapshot->child_count--;
    }
}

static void add_children(builder_t *b, apr_uint32_t child_pid)
{
    for (unsigned i = 0; i <= b->segment->child_max; i++) {
        rp_child_t *child = rp_segment_child(b->segment, i);
        int departed = i == b->segment->child_max;

        if ((child->pid && (!child_pid || child->pid == child_pid)) || (departed && !child_pid)) {
            add_child(b, i, child);
        }
    }
}

static int by_phase_then_cost(const void *a, const void *b)
{
    const rp_span_times_t *x = a, *y = b;

    if (x->span->phase != y->span->phase) {
        return x->span->phase - y->span->phase;
    }
    return (x->self.sum_ns < y->self.sum_ns) - (x->self.sum_ns > y->self.sum_ns);
}

static void list_spans(builder_t *b)
{
    rp_snapshot_t *snapshot = b->snapshot;

    snapshot->spans = apr_pcalloc(b->pool, b->segment->span_max * sizeof(*snapshot->spans));
    for (unsigned id = 0; id < b->segment->span_max; id++) {
        rp_cell_t *cell = rp_shard_cell(b->sums, id);

        if (cell->calls || cell->skipped) {
            snapshot->spans[snapshot->span_count++] = (rp_span_times_t){
                rp_segment_span(b->segment, id), id, {rp_hist_coarse(&cell->self), b->span_ns[id]}, cell->calls,
                cell->bytes, cell->skipped};
        }
    }
    qsort(snapshot->spans, snapshot->span_count, sizeof(*snapshot->spans), by_phase_then_cost);
}

static void list_deaths(rp_snapshot_t *snapshot, apr_pool_t *pool)
{
    rp_lasting_t *lasting = rp_lasting_current();

    snapshot->lasting = lasting;
    if (lasting) {
        snapshot->deaths = apr_palloc(pool, RP_DEATH_MAX * sizeof(*snapshot->deaths));
        snapshot->death_count = rp_deaths_list(&lasting->deaths, snapshot->deaths);
    }
}

static void reset(builder_t *b)
{
    rp_segment_t *segment = b->segment;
    rp_snapshot_t *snapshot = apr_pcalloc(b->pool, sizeof(*snapshot));

    b->snapshot = snapshot;
    b->scratch = apr_pcalloc(b->pool, (apr_size_t)segment->shard_bytes);
    b->sums = apr_pcalloc(b->pool, (apr_size_t)segment->shard_bytes);
    b->span_ns = apr_pcalloc(b->pool, segment->span_max * sizeof(*b->span_ns));
    snapshot->segment = segment;
    snapshot->children = apr_palloc(b->pool, (segment->child_max + 1) * sizeof(*snapshot->children));
    snapshot->total.hist = rp_hist_fine(&b->sums->total);
    snapshot->queue.hist = rp_hist_fine(&b->sums->queue);
    for (int i = 0; i < RP_PHASE_COUNT; i++) {
        snapshot->phases[i].hist = rp_hist_fine(&b->sums->phases[i]);
    }
}

/* Adds up all children; again when the parent moved a departed child's counters meanwhile. */
static void add_up(builder_t *b, apr_uint32_t child_pid)
{
    for (int i = 0; i < FOLD_TRIES; i++) {
        apr_uint32_t before = __atomic_load_n(&b->segment->fold_sequence, __ATOMIC_ACQUIRE);

        if ((before & 1) && i + 1 < FOLD_TRIES) {
            apr_sleep(WAIT_US);
            continue;
        }
        reset(b);
        add_children(b, child_pid);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (!(before & 1) && before == __atomic_load_n(&b->segment->fold_sequence, __ATOMIC_RELAXED)) {
            return;
        }
    }
}

/* The window's own sums, converted span by span as those of a child are. */
static void convert_window(builder_t *b)
{
    rp_child_times_t window = {0};

    b->now = &window;
    b->snapshot->total.sum_ns = 0;
    for (int i = 0; i < RP_PHASE_COUNT; i++) {
        b->snapshot->phases[i].sum_ns = 0;
    }
    memset(b->span_ns, 0, b->segment->span_max * sizeof(*b->span_ns));
    add_sums_ns(b, b->sums);
}

static void take_window(builder_t *b, rp_window_t window, apr_int64_t now_us)
{
    rp_snapshot_t *snapshot = b->snapshot;

    snapshot->window = window;
    snapshot->epoch_requests = b->sums->requests;
    snapshot->taken_us = now_us;
    snapshot->begun_us = b->segment->started_us;
    if (window != RP_WINDOW_EPOCH) {
        snapshot->begun_us = rp_marks_subtract(b->segment, b->sums, window, now_us);
    }
    if (snapshot->begun_us != b->segment->started_us) {
        convert_window(b);
    }
    snapshot->seconds = (double)(snapshot->taken_us - snapshot->begun_us) / APR_USEC_PER_SEC;
}

static const rp_snapshot_t *take(apr_pool_t *pool, rp_segment_t *segment, apr_uint32_t child_pid, rp_window_t window,
                                 apr_int64_t now_us)
{
    builder_t b = {.segment = segment, .pool = pool};

    if (!segment || !__atomic_load_n(&segment->ready, __ATOMIC_ACQUIRE)) {
        return NULL;
    }
    add_up(&b, child_pid);
    take_window(&b, window, now_us ? now_us : apr_time_now());
    b.snapshot->sums = b.sums;
    b.snapshot->requests = b.sums->requests;
    b.snapshot->unbalanced = b.sums->unbalanced;
    b.snapshot->queue.sum_ns = rp_clock_ns(&segment->clock, b.sums->queue.head.sum);
    if (rp_segment_lines(segment)) {
        b.snapshot->replay_ns = rp_segment_lines(segment)->replay_ns;
        b.snapshot->replay_requests = rp_segment_lines(segment)->replay_requests;
    }
    for (int i = 0; i < RP_STATUS_CLASSES; i++) {
        b.snapshot->by_status[i] = b.sums->by_status[i];
    }
    list_spans(&b);
    b.snapshot->flight_count = rp_flights_list(&b.snapshot->flights, pool, segment, child_pid);
    list_deaths(b.snapshot, pool);
    return b.snapshot;
}

const rp_snapshot_t *rp_snapshot_take(apr_pool_t *pool, rp_segment_t *segment, apr_uint32_t child_pid)
{
    return take(pool, segment, child_pid, RP_WINDOW_EPOCH, 0);
}

const rp_snapshot_t *rp_snapshot_window(apr_pool_t *pool, rp_segment_t *segment, rp_window_t window, apr_int64_t now_us)
{
    return take(pool, segment, 0, window, now_us);
}

apr_uint64_t rp_snapshot_quantile_ns(const rp_snapshot_t *snapshot, const rp_times_t *times, double q)
{
    const rp_clock_t *clock = &snapshot->segment->clock;

    return (apr_uint64_t)(rp_hist_quantile(times->hist, q) * clock->ns_per_tick + 0.5);
}

apr_uint64_t rp_snapshot_mean_ns(const rp_times_t *times)
{
    apr_uint64_t count = times->hist.head ? times->hist.head->count : 0;

    return count ? (times->sum_ns + count / 2) / count : 0;
}

apr_uint64_t rp_snapshot_cost_ns(const rp_snapshot_t *snapshot)
{
    apr_uint64_t transitions = 0;
    double read_ns = snapshot->segment->clock.read_ticks * snapshot->segment->clock.ns_per_tick;

    for (unsigned i = 0; i < snapshot->span_count; i++) {
        transitions += 2 * snapshot->spans[i].calls;
    }
    return snapshot->requests ? (apr_uint64_t)(((double)transitions * read_ns + (double)snapshot->replay_ns)
                                               / (double)snapshot->requests + 0.5)
                              : 0;
}
