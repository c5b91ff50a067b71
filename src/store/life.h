/**
 * @file life.h
 * @brief What a child says about its own memory and CPU time.
 */
#ifndef RP_STORE_LIFE_H
#define RP_STORE_LIFE_H

#include "store/layout.h"

/** Sample this process. One thread of it at a time; takes some 100 microseconds. */
void rp_life_sample(rp_segment_t *segment, rp_child_t *child);

/**
 * Sample when the last time was a second ago. At the end of a request; any thread of the child.
 * @param now_ticks the time now
 */
static inline void rp_life_sample_if_due(rp_segment_t *segment, rp_child_t *child, apr_uint64_t now_ticks)
{
    rp_life_t *life = rp_child_life(segment, child);
    apr_uint64_t due = __atomic_load_n(&life->due_ticks, __ATOMIC_RELAXED);

    if (__builtin_expect(now_ticks >= due, 0)) {
        apr_uint64_t next = now_ticks + rp_clock_ticks(&segment->clock, 1000000000);
        if (__atomic_compare_exchange_n(&life->due_ticks, &due, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            rp_life_sample(segment, child);
        }
    }
}

/** Whether a child's memory grows: as malloc sees it where it shows the growth, since that is finer than pages. */
void rp_life_growth(rp_growth_t *growth, const rp_life_t *life);

#endif
