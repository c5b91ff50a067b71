/**
 * @file timeline.h
 * @brief The blocks that go with a window, in the order of time.
 */
#ifndef RP_REPORT_TIMELINE_H
#define RP_REPORT_TIMELINE_H

#include "store/snapshot.h"

typedef struct {
    unsigned step_s; /**< what one block covers */
    unsigned count;
    rp_block_t *blocks; /**< without those that were never collected */
} rp_timeline_t;

/**
 * Up to 360 blocks: each second of 10 s to 5 min, ten seconds of an hour, five minutes of a day; of the epoch, the last
 * half hour. Any thread.
 */
rp_timeline_t rp_timeline(apr_pool_t *pool, const rp_snapshot_t *snapshot);

#endif
