#include <sched.h>

#include "store/record.h"

/* Tries before a request is dropped: some milliseconds, far longer than any write takes. */
#define SPINS_MAX 2000
#define SPINS_BEFORE_YIELD 50

static int try_lock(rp_shard_t *shard)
{
    apr_uint32_t sequence = __atomic_load_n(&shard->sequence, __ATOMIC_RELAXED);

    return !(sequence & 1)
           && __atomic_compare_exchange_n(&shard->sequence, &sequence, sequence + 1, 0, __ATOMIC_ACQUIRE,
                                          __ATOMIC_RELAXED);
}

static void unlock(rp_shard_t *shard)
{
    __atomic_store_n(&shard->sequence, shard->sequence + 1, __ATOMIC_RELEASE);
}

/*
 * Bounded: on prefork a signal may end the child inside a write, and its clean-up then logs a request
 * on the very thread that holds the lock.
 */
static rp_shard_t *lock_a_shard(const rp_segment_t *segment, rp_child_t *child, unsigned hint)
{
    for (unsigned spin = 0; spin < SPINS_MAX; spin++) {
        rp_shard_t *shard = rp_child_shard(segment, child, (hint + spin) & (segment->shard_count - 1));
        if (try_lock(shard)) {
            /* Orders the odd sequence before the counters' stores for a reader in another process. */
            __atomic_thread_fence(__ATOMIC_RELEASE);
            return shard;
        }
        if (spin >= SPINS_BEFORE_YIELD) {
            sched_yield();
        }
    }
    return NULL;
}

/* Adds the touched entries to their cells and empties them. @return the sum of their self times */
static apr_uint64_t record_spans(const rp_segment_t *segment, rp_shard_t *shard, rp_tally_t *tally,
                                 apr_uint64_t phase_ticks[RP_PHASE_COUNT], unsigned *phases_entered)
{
    const rp_span_t *spans = (const rp_span_t *)((const char *)segment + segment->spans_offset);
    apr_uint64_t sum = 0;

    for (unsigned i = 0; i < tally->touched_count; i++) {
        unsigned id = tally->touched[i];
        rp_tally_entry_t *entry = &tally->entries[id];
        rp_cell_t *cell = rp_shard_cell(shard, id);
        unsigned phase = spans[id].phase;

        if (entry->calls) {
            rp_hist_record(rp_hist_coarse(&cell->self), entry->self_ticks);
            cell->calls += entry->calls;
            cell->bytes += entry->bytes;
            phase_ticks[phase] += entry->self_ticks;
            *phases_entered |= 1u << phase;
            sum += entry->self_ticks;
        }
        cell->skipped += entry->skipped;
        *entry = (rp_tally_entry_t){0};
    }
    tally->touched_count = 0;
    return sum;
}

static void record_request(const rp_segment_t *segment, rp_shard_t *shard, rp_tally_t *tally, apr_uint64_t total_ticks,
                           int status)
{
    apr_uint64_t phase_ticks[RP_PHASE_COUNT] = {0};
    unsigned entered = 0;
    unsigned status_class = (unsigned)status / 100 - 1;

    shard->unbalanced += record_spans(segment, shard, tally, phase_ticks, &entered) != total_ticks;
    for (unsigned phase = 0; phase < RP_PHASE_COUNT; phase++) {
        if (entered & (1u << phase)) {
            rp_hist_record(rp_hist_fine(&shard->phases[phase]), phase_ticks[phase]);
        }
    }
    rp_hist_record(rp_hist_fine(&shard->total), total_ticks);
    shard->requests++;
    if (status_class < RP_STATUS_CLASSES) {
        shard->by_status[status_class]++;
    }
}

void rp_record(const rp_segment_t *segment, rp_child_t *child, unsigned shard_hint, rp_tally_t *tally,
               apr_uint64_t total_ticks, int status)
{
    rp_shard_t *shard = lock_a_shard(segment, child, shard_hint);

    if (!shard) {
        __atomic_fetch_add(&child->dropped_busy, 1, __ATOMIC_RELAXED);
        rp_tally_clear(tally);
        return;
    }
    record_request(segment, shard, tally, total_ticks, status);
    unlock(shard);
}

void rp_tally_clear(rp_tally_t *tally)
{
    for (unsigned i = 0; i < tally->touched_count; i++) {
        tally->entries[tally->touched[i]] = (rp_tally_entry_t){0};
    }
    tally->touched_count = 0;
}
