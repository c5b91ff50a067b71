#include "base/verdict.h"

#include <math.h>
#include <stdarg.h>
#include <apr_strings.h>

#define SUM_QUANTUM 1024.0 /* a power of two, so that rounded differences add without error */
#define WEEK_MINUTES (7 * 24 * 60.0)

const char *rp_verdict_name(rp_verdict_kind_t kind)
{
    switch (kind) {
    case RP_VERDICT_SLOWER:
        return "slower";
    case RP_VERDICT_FASTER:
        return "faster";
    case RP_VERDICT_NO_DIFFERENCE:
        return "no difference";
    case RP_VERDICT_INCONCLUSIVE:
        return "inconclusive";
    default:
        return "not comparable";
    }
}

const char *rp_verdict_reason_text(rp_reason_t reason)
{
    switch (reason) {
    case RP_REASON_FEW_BLOCKS:
        return "too few blocks";
    case RP_REASON_FEW_REQUESTS:
        return "too few requests";
    case RP_REASON_STATUSES:
        return "the mix of statuses changed";
    case RP_REASON_KEEPALIVE:
        return "the share of keep-alive requests changed";
    case RP_REASON_VHOSTS:
        return "the mix of virtual hosts changed";
    case RP_REASON_URLS:
        return "the mix of URL classes changed";
    case RP_REASON_LOAD:
        return "the load changed";
    case RP_REASON_NOISE:
        return "the interval is too wide";
    case RP_REASON_DRIFT:
        return "one side drifted while it was measured";
    case RP_REASON_AA:
        return "the A/A pair differs";
    default:
        return "";
    }
}

void rp_verdict_decide(rp_verdict_t *verdict)
{
    double sure_ns = fmax(verdict->floor_ns, verdict->drift_ns);

    verdict->reason = RP_REASON_NONE;
    if (verdict->low_ns > sure_ns) {
        verdict->kind = RP_VERDICT_SLOWER;
    }
    else if (verdict->high_ns < -sure_ns) {
        verdict->kind = RP_VERDICT_FASTER;
    }
    else if (verdict->low_ns >= -verdict->floor_ns && verdict->high_ns <= verdict->floor_ns &&
             verdict->drift_ns <= verdict->floor_ns) {
        verdict->kind = RP_VERDICT_NO_DIFFERENCE;
    }
    else {
        verdict->kind = RP_VERDICT_INCONCLUSIVE;
        verdict->reason = verdict->drift_ns > verdict->floor_ns ? RP_REASON_DRIFT : RP_REASON_NOISE;
    }
}

/* ---- the sentence ---- */

typedef struct {
    char *at;
    apr_size_t left; /* the closing zero included */
} text_t;

static void put(text_t *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(text_t *text, const char *format, ...)
{
    va_list args;
    int length;

    if (text->left < 2) {
        return;
    }
    va_start(args, format);
    length = apr_vsnprintf(text->at, text->left, format, args);
    va_end(args);
    if (length < 0) {
        return;
    }
    if ((apr_size_t)length >= text->left) {
        length = (int)text->left - 1;
    }
    text->at += length;
    text->left -= (apr_size_t)length;
}

/* Three figures are as many as an interval ever supports. */
static int decimals(double value)
{
    double size = fabs(value);

    return size < 10 ? 2 : size < 100 ? 1 : 0;
}

static void put_us(text_t *text, double ns, const char *sign)
{
    put(text, "%s%.*f", ns < 0 ? "-" : sign, decimals(ns / 1000), fabs(ns) / 1000);
}

static void put_percent(text_t *text, double ratio, const char *sign)
{
    put(text, "%s%.*f", ratio < 0 ? "-" : sign, decimals(ratio * 100), fabs(ratio) * 100);
}

static double bound(double low, double high)
{
    return fmax(fabs(low), fabs(high));
}

static void put_size(text_t *text, const rp_verdict_t *v)
{
    put(text, " by ");
    put_us(text, fabs(v->diff_ns), "");
    put(text, " µs");
    if (v->has_ratio) {
        put(text, " (");
        put_percent(text, fabs(v->ratio), "");
        put(text, " %%)");
    }
}

static void put_bound(text_t *text, const rp_verdict_t *v)
{
    put(text, ": at most ±");
    put_us(text, bound(v->low_ns, v->high_ns), "");
    put(text, " µs");
    if (v->has_ratio) {
        put(text, " (±");
        put_percent(text, bound(v->ratio_low, v->ratio_high), "");
        put(text, " %%)");
    }
}

static void put_interval(text_t *text, const rp_verdict_t *v)
{
    put(text, ", 95 %% CI ");
    put_us(text, v->low_ns, "+");
    put(text, " to ");
    put_us(text, v->high_ns, "+");
    put(text, " µs");
    if (v->has_ratio) {
        put(text, " (");
        put_percent(text, v->ratio_low, "+");
        put(text, " to ");
        put_percent(text, v->ratio_high, "+");
        put(text, " %%)");
    }
    if (v->comparisons > 1) {
        put(text, " for all %u parts together", v->comparisons);
    }
}

static void put_more(text_t *text, const rp_verdict_t *v)
{
    put(text, "; %s", rp_verdict_reason_text(v->reason));
    if (v->reason == RP_REASON_AA) {
        return;
    }
    if (v->minutes_more < 0) {
        put(text, "; more traffic alone does not help, more epochs of both variants do");
    }
    else if (v->minutes_more > WEEK_MINUTES) {
        put(text, "; more than a week at this traffic needed");
    }
    else if (v->minutes_more > 0) {
        put(text, "; about %.0f more %s at this traffic needed", ceil(v->minutes_more),
            v->minutes_more > 1 ? "minutes" : "minute");
    }
}

static void put_counts(text_t *text, const rp_verdict_t *v)
{
    const char *unit = v->rounds ? "rounds" : "blocks";

    put(text, "; A: %u %s, %" APR_UINT64_T_FMT " requests, B: %u %s, %" APR_UINT64_T_FMT " requests", v->a_blocks, unit,
        v->a_requests, v->b_blocks, unit, v->b_requests);
    if (v->left_out) {
        put(text, "; %u outlying %s left out", v->left_out, unit);
    }
}

apr_size_t rp_compare_sentence(char *buffer, apr_size_t size, const char *name, const rp_verdict_t *verdict)
{
    text_t text = {buffer, size};

    if (size == 0) {
        return 0;
    }
    *buffer = '\0';
    put(&text, "%s: %s", name, rp_verdict_name(verdict->kind));
    switch (verdict->kind) {
    case RP_VERDICT_SLOWER:
    case RP_VERDICT_FASTER:
        put_size(&text, verdict);
        put_interval(&text, verdict);
        break;
    case RP_VERDICT_NO_DIFFERENCE:
        put_bound(&text, verdict);
        put_interval(&text, verdict);
        break;
    case RP_VERDICT_INCONCLUSIVE:
        put_interval(&text, verdict);
        put_more(&text, verdict);
        break;
    default:
        put(&text, ": %s", rp_verdict_reason_text(verdict->reason));
    }
    put_counts(&text, verdict);
    return (apr_size_t)(text.at - buffer);
}

/* ---- attribution ---- */

static double rounded(double ns)
{
    return rint(ns * SUM_QUANTUM) / SUM_QUANTUM;
}

/* Insertion sort keeps equal parts in the caller's order, and there are few. */
static void sort_parts(rp_part_t *parts, apr_size_t part_count)
{
    for (apr_size_t i = 1; i < part_count; i++) {
        rp_part_t moved = parts[i];
        apr_size_t j = i;
        for (; j > 0 && fabs(parts[j - 1].diff_ns) < fabs(moved.diff_ns); j--) {
            parts[j] = parts[j - 1];
        }
        parts[j] = moved;
    }
}

double rp_compare_attribute(rp_part_t *parts, apr_size_t part_count, double *total_ns)
{
    double rest = *total_ns = rounded(*total_ns);

    for (apr_size_t i = 0; i < part_count; i++) {
        parts[i].diff_ns = rounded(parts[i].diff_ns);
        parts[i].share = *total_ns != 0 ? parts[i].diff_ns / *total_ns : 0;
        rest -= parts[i].diff_ns;
    }
    sort_parts(parts, part_count);
    return rest;
}
