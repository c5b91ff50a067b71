/**
 * @file segment.h
 * @brief The shared segment's life: created by the parent for each epoch, kept until its generation has ended.
 */
#ifndef RP_STORE_SEGMENT_H
#define RP_STORE_SEGMENT_H

#include <apr_pools.h>

#include "base/settings.h"
#include "store/layout.h"
#include "store/lines.h"
#include "store/spans.h"

/** What a segment is sized from. */
typedef struct {
    unsigned child_max;  /**< processes that may run at once */
    unsigned thread_max; /**< threads a child that serve requests; 1 on prefork */
    unsigned generation; /**< httpd's number of the configuration */
    unsigned spare_spans; /**< room for spans found while requests run */
    const char *mpm;
    const rp_line_plan_t *lines; /**< the configuration's lines; NULL: none are kept */
} rp_segment_size_t;

/**
 * Create the segment of a new epoch and make it the current one. The parent, in post_config.
 * @param process_pool the pool that outlives restarts (s->process->pool)
 * @return APR_SUCCESS, or why there is no shared memory; the current segment is then NULL
 */
apr_status_t rp_segment_parent_create(apr_pool_t *process_pool, const rp_settings_t *settings,
                                      const rp_span_plan_t *plan, const rp_segment_size_t *size);

/** @return the newest segment of a generation that has not been given back, or NULL. The parent. */
rp_segment_t *rp_segment_of_generation(apr_pool_t *process_pool, unsigned generation);

/** Give back the segment of a generation whose last child has ended. The parent, in end_generation. */
void rp_segment_parent_end(apr_pool_t *process_pool, unsigned generation);

/** Generations whose children may still be serving. */
#define RP_SEGMENTS_KNOWN_MAX 32

/**
 * Look at the segments of epochs that still serve.
 * @param place 0..RP_SEGMENTS_KNOWN_MAX - 1
 * @return the segment kept there, NULL for none. In a child: those there were when it was forked, which stay readable.
 */
rp_segment_t *rp_segment_known(unsigned place);

/** @return the current epoch's segment, NULL when there is none. Any process, any thread. */
rp_segment_t *rp_segment_current(void);

#endif
