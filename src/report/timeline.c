#include <apr_time.h>

#include "report/timeline.h"

/* Which ring, and how far back. */
static const struct {
    unsigned ring;
    unsigned blocks;
} spans[RP_WINDOW_COUNT] = {[RP_WINDOW_S10] = {0, 10}, [RP_WINDOW_M1] = {0, 60},   [RP_WINDOW_M5] = {0, 300},
                            [RP_WINDOW_H1] = {1, 360}, [RP_WINDOW_H24] = {2, 288}, [RP_WINDOW_EPOCH] = {1, 180}};

rp_timeline_t rp_timeline(apr_pool_t *pool, const rp_snapshot_t *snapshot)
{
    unsigned wanted = spans[snapshot->window].blocks;
    rp_ring_t ring = rp_blocks_ring(&snapshot->lasting->blocks, spans[snapshot->window].ring);
    apr_int64_t now_s = apr_time_sec(snapshot->taken_us), newest_s = now_s - now_s % ring.step_s;
    rp_timeline_t timeline = {ring.step_s, 0, apr_palloc(pool, wanted * sizeof(rp_block_t))};

    for (unsigned i = wanted; i-- > 0;) {
        apr_int64_t start_s = newest_s - (apr_int64_t)i * ring.step_s;
        timeline.count += (unsigned)rp_ring_copy(&timeline.blocks[timeline.count], ring, start_s);
    }
    return timeline;
}
