/**
 * @file snapshot.h
 * @brief The one reader: a consistent copy of a segment's counters, merged and converted to nanoseconds.
 *
 * Sums are converted where they are smallest, for each child and span, and only added up from there. So
 * the spans' sums, the phases' sums and the children's sums each equal the total, to the nanosecond.
 */
#ifndef RP_STORE_SNAPSHOT_H
#define RP_STORE_SNAPSHOT_H

#include <apr_pools.h>

#include "store/deaths.h"
#include "store/flights.h"
#include "store/lasting.h"
#include "store/layout.h"
#include "base/windows.h"

/** A histogram to report. Bucket bounds are ticks: convert with rp_snapshot_quantile_ns(). */
typedef struct {
    rp_hist_t hist;      /**< count, min, max and buckets in ticks */
    apr_uint64_t sum_ns; /**< exact and additive */
} rp_times_t;

typedef struct {
    const rp_span_t *span;
    unsigned id;
    rp_times_t self;
    apr_uint64_t calls;
    apr_uint64_t bytes;
    apr_uint64_t skipped;
} rp_span_times_t;

/** Figures of one child; the departed are one more entry with pid 0 when any request is in their sums. */
typedef struct {
    apr_uint32_t pid;
    apr_uint32_t epoch;
    rp_child_state_t state;
    apr_int64_t started_us;
    apr_uint64_t requests;
    apr_uint64_t by_status[RP_STATUS_CLASSES];
    rp_times_t total;
    rp_life_t life;     /**< as the child last said; of the departed: connections and CPU time added up */
    rp_growth_t growth; /**< of its memory, with its requests */
} rp_child_times_t;

typedef struct {
    const rp_segment_t *segment; /**< clock, epoch, start, mpm, sizes, drops */
    rp_window_t window;
    apr_int64_t begun_us; /**< where the window begins */
    apr_int64_t taken_us;
    double seconds; /**< covered by the counters */
    apr_uint64_t requests;
    apr_uint64_t epoch_requests; /**< of the whole epoch, whatever the window */
    apr_uint64_t by_status[RP_STATUS_CLASSES];
    apr_uint64_t unbalanced;
    apr_uint64_t dropped_busy;
    apr_uint64_t pool_flights;
    apr_uint64_t replay_ns;       /**< processor time that replaying configuration lines has cost */
    apr_uint64_t replay_requests; /**< requests whose lines were replayed */
    rp_times_t total;
    rp_times_t queue; /**< how long new connections lay in the kernel; beside the total, not part of it */
    rp_times_t phases[RP_PHASE_COUNT]; /**< count is requests that entered the phase */
    rp_shard_t *sums;                  /**< what all of this is from, in ticks; cells of all spans follow it */
    rp_span_times_t *spans;            /**< entered at least once; by phase, then costliest first; "other" included */
    unsigned span_count;
    rp_child_times_t *children;
    unsigned child_count;
    rp_flight_view_t *flights; /**< longest first; of all epochs that still serve */
    unsigned flight_count;
    rp_lasting_t *lasting; /**< accept queues, workers, blocks; NULL when there is none */
    rp_death_t *deaths; /**< requests that died with their child, the newest first; of all epochs */
    unsigned death_count;
} rp_snapshot_t;

/**
 * Take a snapshot. Reads only what was touched and never makes a writer wait.
 * @param child_pid 0 for all children, else the only one to count
 * @return NULL when there is no segment. Any thread of any process; the memory is the pool's.
 */
const rp_snapshot_t *rp_snapshot_take(apr_pool_t *pool, rp_segment_t *segment, apr_uint32_t child_pid);

/**
 * Take a snapshot of a window: requests, statuses, total, queue, phases and spans are those that ended in it; children,
 * flights, deaths and drops are as ever.
 * @param now_us the time now
 */
const rp_snapshot_t *rp_snapshot_window(apr_pool_t *pool, rp_segment_t *segment, rp_window_t window,
                                        apr_int64_t now_us);

/** @return the quantile q (0..1) in ns, rounded; 0 gives min, 1 gives max */
apr_uint64_t rp_snapshot_quantile_ns(const rp_snapshot_t *snapshot, const rp_times_t *times, double q);

/** @return sum_ns / count, rounded; 0 when empty */
apr_uint64_t rp_snapshot_mean_ns(const rp_times_t *times);

/** @return the profiler's own cost a request in ns, estimated from its transitions and the clock's reading time, with
 *          what replaying configuration lines has cost */
apr_uint64_t rp_snapshot_cost_ns(const rp_snapshot_t *snapshot);

#endif
