#include <sched.h>
#include <time.h>

#include "store/record.h"

/*
 * A write takes a microsecond, but its thread may lose the processor in it: first turn, then yield, then sleep, a
 * quarter of a second in all, before the request is dropped.
 */
#define TRIES_BEFORE_YIELD 50
#define TRIES_BEFORE_SLEEP 200
#define TRIES_MAX 1200
#define SLEEP_NS 200000

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

static void wait_a_moment(unsigned tries)
{
    const struct timespec pause = {0, SLEEP_NS};

    if (tries >= TRIES_BEFORE_SLEEP) {
        nanosleep(&pause, NULL);
    }
    else if (tries >= TRIES_BEFORE_YIELD) {
        sched_yield();
    }
}

/*
 * Bounded: on prefork a signal may end the child inside a write, and its clean-up then logs a request
 * on the very thread that holds the lock.
 */
static rp_shard_t *lock_a_shard(const rp_segment_t *segment, rp_child_t *child, unsigned *index)
{
    for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
        rp_shard_t *shard = rp_child_shard(segment, child, *index & (segment->shard_count - 1));
        if (try_lock(shard)) {
            /* Orders the odd sequence before the counters' stores for a reader in another process. */
            __atomic_thread_fence(__ATOMIC_RELEASE);
            return shard;
        }
        (*index)++;
        wait_a_moment(tries);
    }
    return NULL;
}

static void record_log_counters(rp_cell_t *cell, rp_tally_entry_t *entry)
{
    cell->bytes += entry->bytes;
    cell->skipped += entry->skipped;
    entry->bytes = 0;
    entry->skipped = 0;
}

/* Adds the touched entries to their cells and empties them. @return the phases entered, a bit for each */
static unsigned record_spans(rp_segment_t *segment, rp_shard_t *shard, rp_tally_t *tally,
                             apr_uint64_t phase_ticks[RP_PHASE_COUNT])
{
    /* In registers: the compiler cannot know that the counters lie elsewhere. */
    const apr_byte_t *const phases = rp_segment_span_phases(segment);
    const apr_uint16_t *const touched = tally->touched;
    rp_tally_entry_t *const entries = tally->entries;
    const unsigned count = tally->touched_count;
    unsigned entered = 0;

    for (unsigned i = 0; i < count; i++) {
        unsigned id = touched[i];
        rp_tally_entry_t *entry = &entries[id];
        rp_cell_t *cell = rp_shard_cell(shard, id);
        unsigned phase = phases[id];

        if (phase == RP_PHASE_LOG) {
            record_log_counters(cell, entry);
            if (!entry->calls) {
                continue; /* a target that only left the request out was not entered */
            }
        }
        rp_hist_record(rp_hist_coarse(&cell->self), entry->self_ticks);
        cell->calls += entry->calls;
        phase_ticks[phase] += entry->self_ticks;
        entered |= 1u << phase;
        entry->self_ticks = 0;
        entry->calls = 0;
    }
    tally->touched_count = 0;
    return entered;
}

/* @return the sum over the phases */
static apr_uint64_t record_phases(rp_shard_t *shard, const apr_uint64_t phase_ticks[RP_PHASE_COUNT], unsigned entered)
{
    apr_uint64_t sum = 0;

    while (entered) {
        unsigned phase = (unsigned)__builtin_ctz(entered);
        rp_hist_record(rp_hist_fine(&shard->phases[phase]), phase_ticks[phase]);
        sum += phase_ticks[phase];
        entered &= entered - 1;
    }
    return sum;
}

static void record_request(rp_segment_t *segment, rp_shard_t *shard, rp_tally_t *tally, apr_uint64_t total_ticks,
                           int status)
{
    apr_uint64_t phase_ticks[RP_PHASE_COUNT] = {0};
    unsigned entered = record_spans(segment, shard, tally, phase_ticks);
    unsigned status_class = (unsigned)status / 100 - 1;

    shard->unbalanced += record_phases(shard, phase_ticks, entered) != total_ticks;
    rp_hist_record(rp_hist_fine(&shard->total), total_ticks);
    shard->requests++;
    if (status_class < RP_STATUS_CLASSES) {
        shard->by_status[status_class]++;
    }
}

void rp_record(rp_segment_t *segment, rp_child_t *child, unsigned *shard_index, rp_tally_t *tally,
               apr_uint64_t total_ticks, int status)
{
    rp_shard_t *shard = lock_a_shard(segment, child, shard_index);

    if (!shard) {
        __atomic_fetch_add(&child->dropped_busy, 1, __ATOMIC_RELAXED);
        rp_tally_clear(tally);
        return;
    }
    record_request(segment, shard, tally, total_ticks, status);
    unlock(shard);
}

void rp_record_queue(rp_segment_t *segment, rp_child_t *child, apr_uint64_t waited_ticks)
{
    unsigned index = 0;
    rp_shard_t *shard = lock_a_shard(segment, child, &index);

    if (shard) {
        rp_hist_record(rp_hist_fine(&shard->queue), waited_ticks);
        unlock(shard);
    }
}

void rp_tally_clear(rp_tally_t *tally)
{
    for (unsigned i = 0; i < tally->touched_count; i++) {
        tally->entries[tally->touched[i]] = (rp_tally_entry_t){0};
    }
    tally->touched_count = 0;
}
