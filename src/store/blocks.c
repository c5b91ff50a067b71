#include <string.h>

#include "store/blocks.h"

#define BITS RP_HIST_COARSE_BITS
#define FIRST_OCTAVE 10
/* The bucket of a coarse histogram that a block's bucket 1 is. */
#define FIRST_INDEX ((FIRST_OCTAVE - BITS + 1) << BITS)

rp_ring_t rp_blocks_ring(rp_blocks_t *blocks, unsigned which)
{
    const rp_ring_t rings[RP_RING_COUNT] = {
        {blocks->seconds, RP_RING_1S, 1}, {blocks->tens, RP_RING_10S, 10}, {blocks->fives, RP_RING_300S, 300}};

    return rings[which];
}

static unsigned bucket_of(apr_uint64_t ns)
{
    unsigned index = rp_hist_index(ns, BITS);

    if (index < FIRST_INDEX) {
        return 0;
    }
    index = index - FIRST_INDEX + 1;
    return index < RP_BLOCK_BUCKETS ? index : RP_BLOCK_BUCKETS - 1;
}

static double bucket_low(unsigned bucket)
{
    return bucket ? (double)rp_hist_bucket_low(bucket - 1 + FIRST_INDEX, BITS) : 0;
}

static void fill_series(rp_block_series_t *series, rp_hist_fine_t *hist, const rp_clock_t *clock)
{
    unsigned first, last;

    memset(series, 0, sizeof(*series));
    if (!hist->head.count) {
        return;
    }
    first = rp_hist_index(rp_hist_min(&hist->head), RP_HIST_FINE_BITS);
    last = rp_hist_index(hist->head.max, RP_HIST_FINE_BITS);
    for (unsigned i = first; i <= last; i++) {
        apr_uint64_t middle =
            (rp_hist_bucket_low(i, RP_HIST_FINE_BITS) + rp_hist_bucket_low(i + 1, RP_HIST_FINE_BITS)) / 2;

        if (hist->buckets[i]) {
            series->buckets[bucket_of(rp_clock_ns(clock, middle))] += (apr_uint32_t)hist->buckets[i];
        }
    }
    series->count = (apr_uint32_t)hist->head.count;
    series->sum_ns = rp_clock_ns(clock, hist->head.sum);
}

void rp_block_fill(rp_block_t *block, rp_shard_t *counted, const rp_clock_t *clock)
{
    block->requests = (apr_uint32_t)counted->requests;
    for (int i = 0; i < RP_STATUS_CLASSES; i++) {
        block->by_status[i] = (apr_uint32_t)counted->by_status[i];
    }
    fill_series(&block->series[RP_SERIES_TOTAL], &counted->total, clock);
    fill_series(&block->series[RP_SERIES_QUEUE], &counted->queue, clock);
    for (int i = 0; i < RP_PHASE_COUNT; i++) {
        fill_series(&block->series[RP_SERIES_PHASES + i], &counted->phases[i], clock);
    }
}

static void add_series(rp_block_series_t *into, const rp_block_series_t *from)
{
    if (!from->count) {
        return;
    }
    into->sum_ns += from->sum_ns;
    into->count += from->count;
    for (unsigned i = 0; i < RP_BLOCK_BUCKETS; i++) {
        into->buckets[i] += from->buckets[i];
    }
}

static void add_gauges(rp_block_gauges_t *into, const rp_block_gauges_t *from)
{
    apr_uint32_t busy = into->workers_busy;

    *into = *from;
    if (into->workers_busy < busy) {
        into->workers_busy = busy;
    }
}

void rp_block_add(rp_block_t *into, const rp_block_t *from)
{
    into->epoch = from->epoch;
    into->requests += from->requests;
    for (int i = 0; i < RP_STATUS_CLASSES; i++) {
        into->by_status[i] += from->by_status[i];
    }
    add_gauges(&into->gauges, &from->gauges);
    for (unsigned i = 0; i < RP_SERIES_COUNT; i++) {
        add_series(&into->series[i], &from->series[i]);
    }
}

static rp_block_t *place_of(rp_ring_t ring, apr_int64_t start_s)
{
    return &ring.blocks[(apr_uint64_t)start_s / ring.step_s % ring.count];
}

/* A writer that died left an odd sequence: the next one takes over. */
static void add_to_ring(rp_ring_t ring, const rp_block_t *counted, apr_int64_t now_s)
{
    apr_int64_t start_s = now_s - now_s % ring.step_s;
    rp_block_t *block = place_of(ring, start_s);
    apr_uint32_t sequence = block->sequence | 1;

    __atomic_store_n(&block->sequence, sequence, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    if (block->start_s != start_s) {
        memset(block, 0, sizeof(*block));
        block->sequence = sequence;
        block->start_s = start_s;
    }
    rp_block_add(block, counted);
    __atomic_store_n(&block->sequence, sequence + 1, __ATOMIC_RELEASE);
}

void rp_blocks_add(rp_blocks_t *blocks, const rp_block_t *counted, apr_int64_t now_s)
{
    for (unsigned i = 0; i < RP_RING_COUNT; i++) {
        add_to_ring(rp_blocks_ring(blocks, i), counted, now_s);
    }
}

int rp_ring_copy(rp_block_t *copy, rp_ring_t ring, apr_int64_t start_s)
{
    rp_block_t *block = place_of(ring, start_s);

    for (int tries = 0; tries < 100; tries++) {
        apr_uint32_t before = __atomic_load_n(&block->sequence, __ATOMIC_ACQUIRE);

        if (block->start_s != start_s) {
            return 0;
        }
        *copy = *block;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (!(before & 1) && before == __atomic_load_n(&block->sequence, __ATOMIC_RELAXED)) {
            return copy->start_s == start_s;
        }
    }
    return 0;
}

apr_uint64_t rp_block_quantile_ns(const rp_block_series_t *series, double q)
{
    double rank = q * (series->count ? series->count - 1 : 0), before = 0;

    for (unsigned i = 0; i < RP_BLOCK_BUCKETS; i++) {
        double held = series->buckets[i];

        if (held > 0 && rank < before + held) {
            double low = bucket_low(i);
            return (apr_uint64_t)(low + (bucket_low(i + 1) - low) * (rank - before + 0.5) / held);
        }
        before += held;
    }
    return 0;
}
