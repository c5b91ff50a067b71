/**
 * @file record.h
 * @brief The one writer: adds a finished request to its child's counters.
 */
#ifndef RP_STORE_RECORD_H
#define RP_STORE_RECORD_H

#include "store/layout.h"

/** What one request has collected: the entries it touched, by span id. */
typedef struct {
    rp_tally_entry_t *entries; /**< span_max of them */
    apr_uint16_t *touched;     /**< ids with an entry that is not zero, room for span_max */
    unsigned touched_count;
} rp_tally_t;

/** @return the entry of a span, remembered as touched; the caller then counts a call or a skip in it */
static inline rp_tally_entry_t *rp_tally_touch(rp_tally_t *tally, unsigned span)
{
    rp_tally_entry_t *entry = &tally->entries[span];

    if (__builtin_expect(!entry->calls, 1) && !entry->skipped) {
        tally->touched[tally->touched_count++] = (apr_uint16_t)span;
    }
    return entry;
}

/**
 * Add a request to its child's counters and empty the tally.
 * @param shard in and out: the shard to try first, and the one that was used. Kept with the flight and 0 at first, so
 *        that a child's threads spread over the shards only when they meet, and touch no more memory than they need
 * @param status the HTTP status; classes outside 1xx to 5xx count as none
 * When no shard can be had within some microseconds the request is dropped and counted so. Any thread of the child.
 */
void rp_record(rp_segment_t *segment, rp_child_t *child, unsigned *shard, rp_tally_t *tally,
               apr_uint64_t total_ticks, int status);

/** Count how long a new connection had waited. As rp_record(). */
void rp_record_queue(rp_segment_t *segment, rp_child_t *child, apr_uint64_t waited_ticks);

/** Empty the tally without counting it. */
void rp_tally_clear(rp_tally_t *tally);

#endif
