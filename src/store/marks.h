/**
 * @file marks.h
 * @brief Copies of an epoch's sums at earlier times: a window's counters are now's less one of them.
 *
 * For each window there are RP_MARKS_A_WINDOW marks, a fifth of the window apart, so that one of them is between one
 * and one and a fifth of the window old. One more holds the sums of the last collection.
 */
#ifndef RP_STORE_MARKS_H
#define RP_STORE_MARKS_H

#include "base/windows.h"
#include "store/layout.h"

#define RP_MARKS_A_WINDOW 7
#define RP_MARK_LAST ((RP_WINDOW_COUNT - 1) * RP_MARKS_A_WINDOW)
#define RP_MARK_COUNT (RP_MARK_LAST + 1)

/** Head of one mark; a shard and its cells follow. Written by the collector only. */
typedef struct {
    apr_uint32_t sequence; /**< odd while it is written */
    apr_uint32_t spare;
    apr_int64_t taken_us; /**< 0: unused */
    apr_uint64_t more_spare[6];
} rp_mark_t;

/** Keep the sums of this moment in every window's marks whose newest is old enough, and as the last ones. */
void rp_marks_take(rp_segment_t *segment, rp_shard_t *sums, apr_int64_t now_us);

/**
 * Take from the sums what they held when the window began. The window begins at the newest mark that is as old as the
 * window, or with the epoch when there is none.
 * @param sums now's; changed to the window's
 * @return when the window began
 */
apr_int64_t rp_marks_subtract(rp_segment_t *segment, rp_shard_t *sums, rp_window_t window, apr_int64_t now_us);

/** Take from the sums what they held at the last collection. @return when that was, or when the epoch began */
apr_int64_t rp_marks_subtract_last(rp_segment_t *segment, rp_shard_t *sums);

#endif
