#include "base/hist.h"

apr_uint64_t rp_hist_bucket_low(unsigned index, unsigned bits)
{
    unsigned octave = index >> bits;
    apr_uint64_t sub = index & ((1u << bits) - 1);

    if (octave == 0) {
        return sub;
    }
    return (((apr_uint64_t)1 << bits) + sub) << (octave - 1);
}

/* The used buckets of a head that another process may be changing: the result is in range whatever it holds. */
static void used_range(const rp_hist_head_t *head, unsigned bits, unsigned *first, unsigned *last)
{
    *first = rp_hist_index(~head->min_inverted, bits);
    *last = rp_hist_index(head->max, bits);
}

void rp_hist_merge(rp_hist_t into, rp_hist_t from)
{
    rp_hist_head_t head = *from.head; /* read once: what is copied and what is said of it must agree */
    unsigned first, last;

    if (!head.count) {
        return;
    }
    used_range(&head, from.bits, &first, &last);
    for (unsigned i = first; i <= last; i++) {
        into.buckets[i] += from.buckets[i];
    }
    into.head->count += head.count;
    into.head->sum += head.sum;
    if (head.max > into.head->max) {
        into.head->max = head.max;
    }
    if (head.min_inverted > into.head->min_inverted) {
        into.head->min_inverted = head.min_inverted;
    }
}

static apr_uint64_t less(apr_uint64_t value, apr_uint64_t by)
{
    return value > by ? value - by : 0;
}

/* Where the extreme value is of the earlier time, the outermost bucket left bounds what came since. */
static void narrow_extremes(rp_hist_t from, const rp_hist_head_t *earlier, unsigned first, unsigned last)
{
    rp_hist_head_t *head = from.head;
    apr_uint64_t low = rp_hist_bucket_low(first, from.bits), high = rp_hist_bucket_low(last + 1, from.bits) - 1;

    if (head->max <= earlier->max && head->max > high) {
        head->max = high;
    }
    if (head->min_inverted <= earlier->min_inverted && ~head->min_inverted < low) {
        head->min_inverted = ~low;
    }
}

void rp_hist_subtract(rp_hist_t from, rp_hist_t earlier)
{
    unsigned first, last, lowest = RP_HIST_BUCKETS(from.bits), highest = 0;

    if (!from.head->count || !earlier.head->count) {
        return;
    }
    used_range(from.head, from.bits, &first, &last);
    for (unsigned i = first; i <= last; i++) {
        from.buckets[i] = less(from.buckets[i], earlier.buckets[i]);
        if (from.buckets[i]) {
            highest = i;
            lowest = lowest < i ? lowest : i;
        }
    }
    from.head->count = less(from.head->count, earlier.head->count);
    from.head->sum = less(from.head->sum, earlier.head->sum);
    if (!from.head->count) {
        *from.head = (rp_hist_head_t){0};
        return;
    }
    narrow_extremes(from, earlier.head, lowest, highest);
}

void rp_hist_clear(rp_hist_t hist)
{
    unsigned first, last;

    if (!hist.head->count) {
        return;
    }
    used_range(hist.head, hist.bits, &first, &last);
    for (unsigned i = first; i <= last; i++) {
        hist.buckets[i] = 0;
    }
    *hist.head = (rp_hist_head_t){0};
}

/* The value at a place (0 is the first) within a bucket of `held` values, which are taken to lie evenly in it. */
static double within_bucket(unsigned index, unsigned bits, apr_uint64_t place, apr_uint64_t held)
{
    double low = (double)rp_hist_bucket_low(index, bits);
    double width = (double)rp_hist_bucket_low(index + 1, bits) - low;

    return low + width * ((double)place + 0.5) / (double)held;
}

/* The value that follows the last one of a bucket. */
static double first_after(rp_hist_t hist, unsigned index)
{
    for (unsigned i = index + 1; i < RP_HIST_BUCKETS(hist.bits); i++) {
        if (hist.buckets[i]) {
            return within_bucket(i, hist.bits, 0, hist.buckets[i]);
        }
    }
    return (double)hist.head->max;
}

static double clamped(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* Between the values at ranks k and k + 1, where bucket `index` holds rank k at this place. */
static double between_ranks(rp_hist_t hist, unsigned index, apr_uint64_t place, apr_uint64_t k, double fraction)
{
    const rp_hist_head_t *head = hist.head;
    apr_uint64_t held = hist.buckets[index];
    double min = (double)rp_hist_min(head), max = (double)head->max;
    double value, next;

    value = k == 0 ? min : clamped(within_bucket(index, hist.bits, place, held), min, max);
    if (k + 2 >= head->count) {
        next = max;
    }
    else {
        next = place + 1 < held ? within_bucket(index, hist.bits, place + 1, held) : first_after(hist, index);
    }
    return value + (clamped(next, value, max) - value) * fraction;
}

double rp_hist_quantile(rp_hist_t hist, double q)
{
    const rp_hist_head_t *head = hist.head;
    apr_uint64_t k, before = 0;
    double rank;

    if (!head->count || q <= 0.0) {
        return (double)rp_hist_min(head);
    }
    rank = q * (double)(head->count - 1);
    k = (apr_uint64_t)rank;
    for (unsigned i = rp_hist_index(rp_hist_min(head), hist.bits); i < RP_HIST_BUCKETS(hist.bits) && q < 1.0; i++) {
        if (k < before + hist.buckets[i]) {
            return between_ranks(hist, i, k - before, k, rank - (double)k);
        }
        before += hist.buckets[i];
    }
    return (double)head->max;
}
