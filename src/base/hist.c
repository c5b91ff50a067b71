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

/* The value at a rank (0-based, fractional) within a bucket that holds `held` values from rank `before` on. */
static double within_bucket(unsigned index, unsigned bits, apr_uint64_t before, apr_uint64_t held, double rank)
{
    double low = (double)rp_hist_bucket_low(index, bits);
    double width = (double)rp_hist_bucket_low(index + 1, bits) - low;

    return low + width * ((rank - (double)before) + 0.5) / (double)held;
}

double rp_hist_quantile(rp_hist_t hist, double q)
{
    const rp_hist_head_t *head = hist.head;
    double min = (double)rp_hist_min(head);
    double max = (double)head->max;
    double rank, value = max;
    apr_uint64_t before = 0;

    if (!head->count || q <= 0.0) {
        return min;
    }
    rank = q * (double)(head->count - 1);
    for (unsigned i = 0; i < RP_HIST_BUCKETS(hist.bits) && q < 1.0; i++) {
        apr_uint64_t held = hist.buckets[i];

        if (held && rank < (double)(before + held)) {
            value = within_bucket(i, hist.bits, before, held, rank);
            break;
        }
        before += held;
    }
    return value < min ? min : value > max ? max : value;
}
