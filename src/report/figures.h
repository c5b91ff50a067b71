/**
 * @file figures.h
 * @brief What every format says about a snapshot, computed in one place. Pure; any thread.
 */
#ifndef RP_REPORT_FIGURES_H
#define RP_REPORT_FIGURES_H

#include "store/snapshot.h"

/** @return part / whole; 0 when the whole is 0 */
double rp_figures_ratio(double part, double whole);

/** @return the share of all time that a part took, 0..1 */
double rp_figures_share(const rp_snapshot_t *snapshot, apr_uint64_t sum_ns);

/** @return what a part costs the average request, entered or not, in microseconds */
double rp_figures_us_per_request(const rp_snapshot_t *snapshot, apr_uint64_t sum_ns);

/** @return how long this configuration has been running */
double rp_figures_uptime_s(const rp_snapshot_t *snapshot);

/** @return finished requests a second over the snapshot's time */
double rp_figures_per_second(const rp_snapshot_t *snapshot);

/** From this age on a running request is called long. */
#define RP_LONG_FLIGHT_NS APR_UINT64_C(1000000000)

/** @return how many running requests are older than a second */
unsigned rp_figures_long_flights(const rp_snapshot_t *snapshot);

/** @return the sum of all phases */
apr_uint64_t rp_figures_phases_ns(const rp_snapshot_t *snapshot);

/** @return the sum of all spans but the ground between them */
apr_uint64_t rp_figures_spans_ns(const rp_snapshot_t *snapshot);

/** @return the ground between spans */
apr_uint64_t rp_figures_other_ns(const rp_snapshot_t *snapshot);

/** @return 1 when phases, and spans with the ground between them, both equal the total */
int rp_figures_add_up(const rp_snapshot_t *snapshot);

/** @return 1 for the ground between spans, which reports show as the phase "other" */
static inline int rp_figures_is_ground(const rp_span_times_t *span)
{
    return span->id == RP_SPAN_OTHER;
}

/** @return "live", "ended" or "departed" */
const char *rp_figures_child_state(const rp_child_times_t *child);

/** @return "growing, 380 to 430 B a request", "step of 52.4 MB", "plateau" … */
const char *rp_figures_growth(apr_pool_t *pool, const rp_growth_t *growth);

/** @return the span in words: "fixups mod_rewrite.c", with #2 and so on for a further one of the same name */
const char *rp_figures_span_label(apr_pool_t *pool, const rp_span_t *span);

#define RP_DROPPED(name, figure, help) RP_DROPPED_##name,
enum {
#include "report/dropped.def"
    RP_DROPPED_COUNT
};
#undef RP_DROPPED

typedef struct {
    const char *name; /**< as in JSON */
    const char *help; /**< what it means, after a number */
    apr_uint64_t count;
} rp_dropped_t;

/** Fill a list of RP_DROPPED_COUNT rows, those of dropped.def. @return its length */
unsigned rp_figures_dropped(rp_dropped_t *list, const rp_snapshot_t *snapshot);

#endif
