/**
 * @file blocks.h
 * @brief What happened in each second, for ten minutes; in each ten seconds, for three hours; in each five minutes, for
 *        three days. Outlives restarts; one writer, the collector.
 */
#ifndef RP_STORE_BLOCKS_H
#define RP_STORE_BLOCKS_H

#include "store/layout.h"

/** Buckets of a block's histograms: one below 1,024 ns, then four an octave up to 36 minutes. */
#define RP_BLOCK_BUCKETS 125

typedef struct {
    apr_uint64_t sum_ns;
    apr_uint32_t count;
    apr_uint32_t buckets[RP_BLOCK_BUCKETS];
} rp_block_series_t;

typedef enum {
    RP_SERIES_TOTAL,
    RP_SERIES_QUEUE,
    RP_SERIES_PHASES /**< the first phase */
} rp_series_t;

#define RP_SERIES_COUNT (RP_SERIES_PHASES + RP_PHASE_COUNT)

/** What is counted at a moment, not over a time. Of a block: the last moment's, but the most busy workers. */
typedef struct {
    apr_uint32_t flights;      /**< requests in flight */
    apr_uint32_t long_flights; /**< of these, for more than a second */
    apr_uint32_t workers_busy;
    apr_uint32_t workers_max;
    apr_uint64_t private_bytes; /**< of all children together */
} rp_block_gauges_t;

typedef struct {
    apr_uint32_t sequence; /**< odd while it is written */
    apr_uint32_t epoch;    /**< of its last part */
    apr_int64_t start_s;   /**< since 1970; a multiple of the ring's step; 0: unused */
    apr_uint32_t requests;
    apr_uint32_t by_status[RP_STATUS_CLASSES];
    rp_block_gauges_t gauges;
    rp_block_series_t series[RP_SERIES_COUNT];
} rp_block_t;

#define RP_RING_1S 600
#define RP_RING_10S 1080
#define RP_RING_300S 864

/** All-zero memory is three empty rings. */
typedef struct {
    rp_block_t seconds[RP_RING_1S];
    rp_block_t tens[RP_RING_10S];
    rp_block_t fives[RP_RING_300S];
} rp_blocks_t;

/** A ring as a reader or the writer walks it. */
typedef struct {
    rp_block_t *blocks;
    unsigned count;
    unsigned step_s;
} rp_ring_t;

#define RP_RING_COUNT 3

/** @param which 0 is the finest */
rp_ring_t rp_blocks_ring(rp_blocks_t *blocks, unsigned which);

/** Fill a block with what a shard holds; sums become nanoseconds here, each once. Gauges and time are left alone. */
void rp_block_fill(rp_block_t *block, rp_shard_t *counted, const rp_clock_t *clock);

/** Add what was counted until now to the block of this time in each ring. The collector only. */
void rp_blocks_add(rp_blocks_t *blocks, const rp_block_t *counted, apr_int64_t now_s);

/** Add counters of one block to another; gauges are the newer's. */
void rp_block_add(rp_block_t *into, const rp_block_t *from);

/** @return 1 with a whole copy of the block that begins at this time; 0 when the ring has none. Any process. */
int rp_ring_copy(rp_block_t *copy, rp_ring_t ring, apr_int64_t start_s);

/** @return the quantile q (0..1) in ns, interpolated within its bucket; 0 when the series is empty */
apr_uint64_t rp_block_quantile_ns(const rp_block_series_t *series, double q);

#endif
