#include <apr_strings.h>

#include "report/duration.h"
#include "report/figures.h"
#include "report/findings.h"

static void say(apr_array_header_t *findings, const char *sentence)
{
    APR_ARRAY_PUSH(findings, const char *) = sentence;
}

/* Those older than a second, most of which hang in one span: that one is named. */
typedef struct {
    const rp_span_t *span;
    unsigned count;
} hang_t;

static unsigned hanging_in(const rp_snapshot_t *snapshot, const rp_span_t *span)
{
    unsigned count = 0;

    for (unsigned i = 0; i < snapshot->flight_count; i++) {
        count += snapshot->flights[i].age_ns > RP_LONG_FLIGHT_NS && snapshot->flights[i].span == span;
    }
    return count;
}

static hang_t worst_hang(const rp_snapshot_t *snapshot)
{
    hang_t worst = {NULL, 0};

    for (unsigned i = 0; i < snapshot->flight_count && snapshot->flights[i].age_ns > RP_LONG_FLIGHT_NS; i++) {
        unsigned count = hanging_in(snapshot, snapshot->flights[i].span);

        if (count > worst.count) {
            worst = (hang_t){snapshot->flights[i].span, count};
        }
    }
    return worst;
}

static void find_hangs(apr_array_header_t *findings, const rp_snapshot_t *snapshot)
{
    unsigned count = rp_figures_long_flights(snapshot);
    hang_t worst;

    if (!count) {
        return;
    }
    worst = worst_hang(snapshot);
    say(findings, apr_psprintf(findings->pool, "%u request%s been running for more than a second, the oldest for %s; "
                               "%u of them %s in %s (phase %s).",
                               count, count == 1 ? " has" : "s have",
                               rp_duration(findings->pool, snapshot->flights[0].age_ns), worst.count,
                               worst.count == 1 ? "is" : "are", rp_figures_span_label(findings->pool, worst.span),
                               rp_phase_name(worst.span->phase)));
}

static const rp_child_times_t *worst_leak(const rp_snapshot_t *snapshot)
{
    const rp_child_times_t *worst = NULL;

    for (unsigned i = 0; i < snapshot->child_count; i++) {
        const rp_child_times_t *child = &snapshot->children[i];

        if (child->growth.word == RP_GROWTH_GROWING
            && (!worst || child->growth.bytes_per_request > worst->growth.bytes_per_request)) {
            worst = child;
        }
    }
    return worst;
}

static void find_leak(apr_array_header_t *findings, const rp_snapshot_t *snapshot)
{
    const rp_child_times_t *worst = worst_leak(snapshot);

    if (worst) {
        say(findings, apr_psprintf(findings->pool, "Memory grows with the requests: child %u by %.0f bytes a request "
                                   "(95 %% CI %.0f to %.0f), %s private after %s requests. MaxConnectionsPerChild "
                                   "bounds what a leak can take.",
                                   worst->pid, worst->growth.bytes_per_request, worst->growth.low, worst->growth.high,
                                   rp_size(findings->pool, worst->life.private_bytes),
                                   rp_grouped(findings->pool, worst->requests)));
    }
}

static void find_deaths(apr_array_header_t *findings, const rp_snapshot_t *snapshot)
{
    unsigned lost = snapshot->segment->lost_flights;

    if (lost) {
        say(findings, apr_psprintf(findings->pool, "%u request%s died with %s child since this configuration started.",
                                   lost, lost == 1 ? "" : "s", lost == 1 ? "its" : "their"));
    }
}

static void find_full_queue(apr_array_header_t *findings, const rp_lasting_t *lasting, const rp_listen_t *listen)
{
    if (lasting->overflows && listen->queue_longest >= listen->queue_limit) {
        say(findings, apr_psprintf(findings->pool, "The accept queue of %s holds %u connections and was full: %s "
                                   "connections found no room, and their clients try again after 1, 3 and "
                                   "7 s. All workers were busy for %.0f s: more of them (MaxRequestWorkers) or a "
                                   "longer queue (ListenBacklog) help.",
                                   listen->address, listen->queue_limit,
                                   rp_grouped(findings->pool, lasting->overflows),
                                   (double)lasting->all_busy_us / 1e6));
    }
}

static void find_backlog(apr_array_header_t *findings, const rp_snapshot_t *snapshot)
{
    const rp_lasting_t *lasting = snapshot->lasting;

    if (lasting->gauges.workers_max && lasting->gauges.workers_busy >= lasting->gauges.workers_max) {
        say(findings, apr_psprintf(findings->pool, "All %u workers are busy: new connections wait in the kernel.",
                                   lasting->gauges.workers_max));
    }
    for (unsigned i = 0; i < lasting->listen_count; i++) {
        find_full_queue(findings, lasting, &lasting->listens[i]);
    }
}

apr_array_header_t *rp_findings(apr_pool_t *pool, const rp_snapshot_t *snapshot)
{
    apr_array_header_t *findings = apr_array_make(pool, 8, sizeof(const char *));

    find_hangs(findings, snapshot);
    find_backlog(findings, snapshot);
    find_deaths(findings, snapshot);
    find_leak(findings, snapshot);
    return findings;
}
