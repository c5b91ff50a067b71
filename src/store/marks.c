#include <apr_time.h>

#include "store/marks.h"
#include "store/shard.h"

static rp_mark_t *mark_at(const rp_segment_t *segment, unsigned index)
{
    return (rp_mark_t *)((char *)segment + segment->marks_offset + index * segment->mark_bytes);
}

static rp_shard_t *sums_of(rp_mark_t *mark)
{
    return (rp_shard_t *)(mark + 1);
}

/* A writer that died left an odd sequence: the next one takes over. */
static void write_mark(const rp_segment_t *segment, rp_mark_t *mark, rp_shard_t *sums, apr_int64_t now_us)
{
    apr_uint32_t sequence = mark->sequence | 1;

    __atomic_store_n(&mark->sequence, sequence, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    rp_shard_clear(sums_of(mark), segment->span_max);
    rp_shard_add(sums_of(mark), sums, segment->span_max);
    mark->taken_us = now_us;
    __atomic_store_n(&mark->sequence, sequence + 1, __ATOMIC_RELEASE);
}

/* @return the newest mark of a window, or any unused one */
static unsigned newest_of(const rp_segment_t *segment, unsigned window)
{
    unsigned newest = window * RP_MARKS_A_WINDOW;

    for (unsigned i = newest + 1; i < (window + 1) * RP_MARKS_A_WINDOW; i++) {
        if (mark_at(segment, i)->taken_us > mark_at(segment, newest)->taken_us) {
            newest = i;
        }
    }
    return newest;
}

static unsigned next_after(unsigned mark, unsigned window)
{
    unsigned first = window * RP_MARKS_A_WINDOW;

    return first + (mark - first + 1) % RP_MARKS_A_WINDOW;
}

static apr_int64_t window_us(unsigned window)
{
    return apr_time_from_sec((apr_int64_t)rp_window_seconds((rp_window_t)window));
}

void rp_marks_take(rp_segment_t *segment, rp_shard_t *sums, apr_int64_t now_us)
{
    for (unsigned window = 0; window < RP_WINDOW_EPOCH; window++) {
        unsigned newest = newest_of(segment, window);
        if (now_us - mark_at(segment, newest)->taken_us >= window_us(window) / 5) {
            write_mark(segment, mark_at(segment, next_after(newest, window)), sums, now_us);
        }
    }
    write_mark(segment, mark_at(segment, RP_MARK_LAST), sums, now_us);
}

/* @return 1, or 0 when the mark was written meanwhile; the sums are then spoilt */
static int subtract_mark(const rp_segment_t *segment, rp_shard_t *sums, rp_mark_t *mark, apr_int64_t taken_us)
{
    apr_uint32_t before = __atomic_load_n(&mark->sequence, __ATOMIC_ACQUIRE);

    if (before & 1 || mark->taken_us != taken_us) {
        return 0;
    }
    rp_shard_subtract(sums, sums_of(mark), segment->span_max);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&mark->sequence, __ATOMIC_RELAXED) == before;
}

/* @return the newest mark that is as old as the window, or NULL */
static rp_mark_t *mark_for(const rp_segment_t *segment, unsigned window, apr_int64_t now_us)
{
    rp_mark_t *found = NULL;

    for (unsigned i = window * RP_MARKS_A_WINDOW; i < (window + 1) * RP_MARKS_A_WINDOW; i++) {
        rp_mark_t *mark = mark_at(segment, i);
        if (mark->taken_us && mark->taken_us <= now_us - window_us(window) && !(mark->sequence & 1)
            && (!found || mark->taken_us > found->taken_us)) {
            found = mark;
        }
    }
    return found;
}

/*
 * Only the oldest mark of a window is ever written. The one looked for becomes that in a fifth of the window at the
 * earliest, long after this reading.
 */
apr_int64_t rp_marks_subtract(rp_segment_t *segment, rp_shard_t *sums, rp_window_t window, apr_int64_t now_us)
{
    rp_mark_t *mark = window < RP_WINDOW_EPOCH ? mark_for(segment, window, now_us) : NULL;
    apr_int64_t taken_us = mark ? mark->taken_us : 0;

    return mark && subtract_mark(segment, sums, mark, taken_us) ? taken_us : segment->started_us;
}

apr_int64_t rp_marks_subtract_last(rp_segment_t *segment, rp_shard_t *sums)
{
    rp_mark_t *mark = mark_at(segment, RP_MARK_LAST);
    apr_int64_t taken_us = mark->taken_us;

    return taken_us && subtract_mark(segment, sums, mark, taken_us) ? taken_us : segment->started_us;
}
