#include <apr_strings.h>

#include "report/duration.h"
#include "report/figures.h"

double rp_figures_ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

double rp_figures_share(const rp_snapshot_t *snapshot, apr_uint64_t sum_ns)
{
    return rp_figures_ratio((double)sum_ns, (double)snapshot->total.sum_ns);
}

double rp_figures_us_per_request(const rp_snapshot_t *snapshot, apr_uint64_t sum_ns)
{
    return rp_figures_ratio((double)sum_ns / 1e3, (double)snapshot->requests);
}

double rp_figures_per_second(const rp_snapshot_t *snapshot)
{
    return rp_figures_ratio((double)snapshot->requests, snapshot->seconds);
}

double rp_figures_uptime_s(const rp_snapshot_t *snapshot)
{
    return (double)(snapshot->taken_us - snapshot->segment->started_us) / 1e6;
}

unsigned rp_figures_long_flights(const rp_snapshot_t *snapshot)
{
    unsigned count = 0;

    for (unsigned i = 0; i < snapshot->flight_count; i++) {
        count += snapshot->flights[i].age_ns > RP_LONG_FLIGHT_NS;
    }
    return count;
}

apr_uint64_t rp_figures_phases_ns(const rp_snapshot_t *snapshot)
{
    apr_uint64_t sum_ns = 0;

    for (unsigned i = 0; i < RP_PHASE_COUNT; i++) {
        sum_ns += snapshot->phases[i].sum_ns;
    }
    return sum_ns;
}

static apr_uint64_t sum_of_spans(const rp_snapshot_t *snapshot, int ground)
{
    apr_uint64_t sum_ns = 0;

    for (unsigned i = 0; i < snapshot->span_count; i++) {
        sum_ns += rp_figures_is_ground(&snapshot->spans[i]) == ground ? snapshot->spans[i].self.sum_ns : 0;
    }
    return sum_ns;
}

apr_uint64_t rp_figures_spans_ns(const rp_snapshot_t *snapshot)
{
    return sum_of_spans(snapshot, 0);
}

apr_uint64_t rp_figures_other_ns(const rp_snapshot_t *snapshot)
{
    return sum_of_spans(snapshot, 1);
}

int rp_figures_add_up(const rp_snapshot_t *snapshot)
{
    apr_uint64_t total_ns = snapshot->total.sum_ns;

    return rp_figures_phases_ns(snapshot) == total_ns
           && rp_figures_spans_ns(snapshot) + rp_figures_other_ns(snapshot) == total_ns;
}

const char *rp_figures_child_state(const rp_child_times_t *child)
{
    return !child->pid ? "departed" : child->state == RP_CHILD_ENDED ? "ended" : "live";
}

const char *rp_figures_growth(apr_pool_t *pool, const rp_growth_t *growth)
{
    switch (growth->word) {
    case RP_GROWTH_GROWING:
        return apr_psprintf(pool, "growing, %.0f to %.0f B a request", growth->low, growth->high);
    case RP_GROWTH_STEP:
        return apr_psprintf(pool, "step of %s", rp_size(pool, growth->step_bytes));
    default:
        return rp_growth_name(growth->word);
    }
}

const char *rp_figures_span_label(apr_pool_t *pool, const rp_span_t *span)
{
    const char *which = span->which ? apr_psprintf(pool, " #%d", span->which + 1) : "";

    return apr_pstrcat(pool, span->hook, " ", span->owner, which, span->detail[0] ? " " : "", span->detail, NULL);
}

unsigned rp_figures_dropped(rp_dropped_t *list, const rp_snapshot_t *snapshot)
{
    unsigned count = 0;

#define RP_DROPPED(name, figure, help) list[count++] = (rp_dropped_t){#name, help, figure};
#include "report/dropped.def"
#undef RP_DROPPED
    return count;
}
