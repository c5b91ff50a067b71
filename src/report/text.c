/*
 * Plain text for a terminal and for scripts. Every line that is not empty and does not start with # is "Key: value".
 * A table's rows carry the table's name as their key; text that may hold blanks comes last in its row.
 */
#include <httpd.h>
#include <http_protocol.h>

#include "mod_reqprof.h"
#include "base/escape.h"
#include "report/duration.h"
#include "report/figures.h"
#include "report/findings.h"
#include "report/lines.h"
#include "report/render.h"
#include "store/spans.h"

#define U64 "%" APR_UINT64_T_FMT

static const struct {
    const char *name;
    double q;
    int in_text;
} quantiles[] = {
#define RP_QUANTILE(name, q, in_text) {name, q, in_text},
#include "report/quantiles.def"
#undef RP_QUANTILE
};

#define QUANTILE_COUNT (sizeof(quantiles) / sizeof(quantiles[0]))

static double us(apr_uint64_t ns)
{
    return (double)ns / 1e3;
}

static double mb(apr_uint64_t bytes)
{
    return (double)bytes / 1e6;
}

static double quantile_us(const rp_snapshot_t *snapshot, const rp_times_t *times, double q)
{
    return us(rp_snapshot_quantile_ns(snapshot, times, q));
}

static double mean_us(const rp_times_t *times)
{
    return us(rp_snapshot_mean_ns(times));
}

static void put_server(request_rec *r, const rp_report_t *report)
{
    const rp_segment_t *segment = report->snapshot->segment;

    ap_rprintf(r, "ServerVersion: %s\n", report->software);
    ap_rprintf(r, "ServerMPM: %s\n", segment->mpm);
    ap_rprintf(r, "ProfilerVersion: %s\n", REQPROF_VERSION);
    ap_rprintf(r, "Clock: %s\n", rp_clock_name(&segment->clock));
    ap_rprintf(r, "ClockReadNs: %.1f\n", segment->clock.read_ticks * segment->clock.ns_per_tick);
    ap_rprintf(r, "Epoch: %u\n", segment->epoch);
    ap_rprintf(r, "Started: %s\n", rp_iso_time(r->pool, segment->started_us));
    ap_rprintf(r, "Uptime: %.3f\n", rp_figures_uptime_s(report->snapshot));
    ap_rprintf(r, "Window: %s, %.3f s\n", rp_window_name(report->params->window), report->snapshot->seconds);
    if (report->params->child_pid) {
        ap_rprintf(r, "OnlyChild: %u\n", report->params->child_pid);
    }
}

static void put_requests(request_rec *r, const rp_snapshot_t *snapshot)
{
    ap_rprintf(r, "Requests: " U64 "\n", snapshot->requests);
    ap_rprintf(r, "RequestsPerSecond: %.3f\n", rp_figures_per_second(snapshot));
    for (int i = 0; i < RP_STATUS_CLASSES; i++) {
        ap_rprintf(r, "Requests%dxx: " U64 "\n", i + 1, snapshot->by_status[i]);
    }
    ap_rprintf(r, "InFlight: %u\n", snapshot->flight_count);
    ap_rprintf(r, "InFlightOver1s: %u\n", rp_figures_long_flights(snapshot));
    ap_rprintf(r, "LostRequests: %u\n", snapshot->segment->lost_flights);
    ap_rprintf(r, "TotalMeanUs: %.2f\n", mean_us(&snapshot->total));
    for (unsigned i = 0; i < QUANTILE_COUNT; i++) {
        if (quantiles[i].in_text) {
            ap_rprintf(r, "Total%sPercentUs: %.2f\n", quantiles[i].name,
                       quantile_us(snapshot, &snapshot->total, quantiles[i].q));
        }
    }
}

static void put_profiler(request_rec *r, const rp_snapshot_t *snapshot)
{
    rp_dropped_t dropped[RP_DROPPED_COUNT];
    unsigned count = rp_figures_dropped(dropped, snapshot);
    apr_uint64_t cost_ns = rp_snapshot_cost_ns(snapshot);

    ap_rprintf(r, "ProfilerUsPerRequest: %.3f\n", us(cost_ns));
    ap_rprintf(r, "ProfilerPercent: %.3f\n",
               100 * rp_figures_ratio((double)cost_ns, (double)rp_snapshot_mean_ns(&snapshot->total)));
    for (unsigned i = 0; i < count; i++) {
        ap_rprintf(r, "Dropped_%s: " U64 "\n", dropped[i].name, dropped[i].count);
    }
}

static void put_phase_row(request_rec *r, const rp_snapshot_t *snapshot, const char *name, const rp_times_t *times)
{
    ap_rprintf(r, "Phase: %-8s %9" APR_UINT64_T_FMT " %11.2f %6.2f", name, times->hist.head->count,
               rp_figures_us_per_request(snapshot, times->sum_ns), 100 * rp_figures_share(snapshot, times->sum_ns));
    for (unsigned i = 0; i < QUANTILE_COUNT; i++) {
        if (quantiles[i].in_text) {
            ap_rprintf(r, " %9.1f", quantile_us(snapshot, times, quantiles[i].q));
        }
    }
    ap_rputs("\n", r);
}

static void put_phases(request_rec *r, const rp_snapshot_t *snapshot)
{
    ap_rputs("\n# Time in each phase, in microseconds. Per request: of all requests, so these add up to the total.\n"
             "# Percentiles: of the requests that entered the phase.\n"
             "#      phase     entered per request share%", r);
    for (unsigned i = 0; i < QUANTILE_COUNT; i++) {
        if (quantiles[i].in_text) {
            ap_rprintf(r, " %8s%%", quantiles[i].name);
        }
    }
    ap_rputs("\n", r);
    for (unsigned i = 0; i < RP_PHASE_COUNT; i++) {
        put_phase_row(r, snapshot, rp_phase_name(i), &snapshot->phases[i]);
    }
    put_phase_row(r, snapshot, "total", &snapshot->total);
}

static void put_spans(request_rec *r, const rp_snapshot_t *snapshot)
{
    ap_rputs("\n# Time in each module, filter and log, in microseconds. Per request: of all requests. Mean and\n"
             "# percentiles: of the requests that entered it.\n"
             "#     phase       calls per request share%      mean       50%       99%      100% kind     where\n", r);
    for (unsigned i = 0; i < snapshot->span_count; i++) {
        const rp_span_times_t *times = &snapshot->spans[i];

        if (rp_figures_is_ground(times)) {
            continue;
        }
        ap_rprintf(r, "Span: %-8s %8" APR_UINT64_T_FMT " %11.2f %6.2f %9.1f %9.1f %9.1f %9.1f %-8s %s\n",
                   rp_phase_name(times->span->phase), times->calls,
                   rp_figures_us_per_request(snapshot, times->self.sum_ns),
                   100 * rp_figures_share(snapshot, times->self.sum_ns), mean_us(&times->self),
                   quantile_us(snapshot, &times->self, 0.5), quantile_us(snapshot, &times->self, 0.99),
                   quantile_us(snapshot, &times->self, 1), rp_kind_name(times->span->kind),
                   rp_escape_line(r->pool, rp_figures_span_label(r->pool, times->span)));
    }
}

static void put_logs(request_rec *r, const rp_snapshot_t *snapshot)
{
    ap_rputs("\n# Access logs: writing only; formatting is a span of mod_log_config.\n"
             "#  written   skipped         bytes   mean us target\n", r);
    for (unsigned i = 0; i < snapshot->span_count; i++) {
        const rp_span_times_t *times = &snapshot->spans[i];

        if (times->span->kind == RP_KIND_LOG) {
            ap_rprintf(r, "Log: %5" APR_UINT64_T_FMT " %9" APR_UINT64_T_FMT " %13" APR_UINT64_T_FMT " %9.2f %s\n",
                       times->calls, times->skipped, times->bytes, mean_us(&times->self),
                       rp_escape_line(r->pool, times->span->detail));
        }
    }
}

static void put_children(request_rec *r, const rp_snapshot_t *snapshot)
{
    ap_rputs("\n# Children; those that have gone are one row, with process number 0. Memory, CPU: as last said.\n"
             "#          pid state     requests connections  mean us     50% us     99% us    private MB    RSS MB"
             "  heap used MB   CPU s growth\n", r);
    for (unsigned i = 0; i < snapshot->child_count; i++) {
        const rp_child_times_t *child = &snapshot->children[i];
        const rp_life_t *life = &child->life;

        ap_rprintf(r, "Child: %7u %-8s %9" APR_UINT64_T_FMT " %11" APR_UINT64_T_FMT " %8.1f %10.1f %10.1f", child->pid,
                   rp_figures_child_state(child), child->requests, life->connections, mean_us(&child->total),
                   quantile_us(snapshot, &child->total, 0.5), quantile_us(snapshot, &child->total, 0.99));
        ap_rprintf(r, " %13.1f %9.1f %13.1f %7.2f %s\n", mb(life->private_bytes), mb(life->rss_bytes),
                   mb(life->heap_used_bytes), (double)(life->cpu_user_us + life->cpu_system_us) / 1e6,
                   rp_figures_growth(r->pool, &child->growth));
    }
}

static void put_flights(request_rec *r, const rp_snapshot_t *snapshot)
{
    ap_rputs("\n# Requests running now, longest first, this one included: where each is and for how long.\n"
             "#           pid        age us phase       in span us request; span\n", r);
    for (unsigned i = 0; i < snapshot->flight_count; i++) {
        const rp_flight_view_t *flight = &snapshot->flights[i];

        ap_rprintf(r, "Flight: %7u %13.1f %-8s %13.1f %s %s %s; %s\n", flight->pid, us(flight->age_ns),
                   rp_phase_name(flight->span->phase), us(flight->span_age_ns), rp_escape_line(r->pool, flight->method),
                   rp_escape_line(r->pool, flight->vhost), rp_escape_line(r->pool, flight->uri),
                   rp_escape_line(r->pool, rp_figures_span_label(r->pool, flight->span)));
    }
}

static void put_death(request_rec *r, const rp_death_t *death)
{
    ap_rprintf(r, "Death: %s %7u", rp_iso_time(r->pool, death->time_us), death->pid);
    if (death->lost) {
        ap_rprintf(r, " %-8s %13.1f %s %s %s; %s\n", rp_phase_name(death->span.phase), us(death->age_ns),
                   rp_escape_line(r->pool, death->method), rp_escape_line(r->pool, death->vhost),
                   rp_escape_line(r->pool, death->uri),
                   rp_escape_line(r->pool, rp_figures_span_label(r->pool, &death->span)));
    }
    else {
        ap_rputs(" -                    - served no request\n", r);
    }
}

static void put_deaths(request_rec *r, const rp_snapshot_t *snapshot)
{
    ap_rputs("\n# Requests that died with their child, newest first: where each was.\n"
             "#                             pid phase           age us request; span\n", r);
    for (unsigned i = 0; i < snapshot->death_count; i++) {
        put_death(r, &snapshot->deaths[i]);
    }
}

static void put_findings(request_rec *r, const rp_snapshot_t *snapshot)
{
    const apr_array_header_t *findings = rp_findings(r->pool, snapshot);

    for (int i = 0; i < findings->nelts; i++) {
        ap_rprintf(r, "Finding: %s\n", rp_escape_line(r->pool, APR_ARRAY_IDX(findings, i, const char *)));
    }
}

static void put_workers(request_rec *r, const rp_snapshot_t *snapshot)
{
    const rp_lasting_t *lasting = snapshot->lasting;

    ap_rprintf(r, "\n# Workers and accept queues, as last looked at; the queue histogram is of new connections.\n"
               "WorkersBusy: %u\nWorkersMax: %u\nAllWorkersBusySeconds: %.3f\n"
               "ListenOverflows: " U64 "\nListenDrops: " U64 "\n",
               lasting->gauges.workers_busy, lasting->gauges.workers_max, (double)lasting->all_busy_us / 1e6,
               lasting->overflows, lasting->drops);
    for (unsigned i = 0; i < lasting->listen_count; i++) {
        const rp_listen_t *listen = &lasting->listens[i];

        ap_rprintf(r, "Listen: %s queue %u of %u, longest %u\n", listen->address, listen->queue_length,
                   listen->queue_limit, listen->queue_longest);
    }
    ap_rprintf(r, "Queue: " U64 " connections, mean us %.1f, 50%% %.1f, 99%% %.1f, 100%% %.1f\n",
               snapshot->queue.hist.head->count, mean_us(&snapshot->queue),
               quantile_us(snapshot, &snapshot->queue, 0.5), quantile_us(snapshot, &snapshot->queue, 0.99),
               quantile_us(snapshot, &snapshot->queue, 1));
}

static void put_proof(request_rec *r, const rp_snapshot_t *snapshot)
{
    ap_rprintf(r, "\nPartsAddUp: %s, phases " U64 " ns, spans " U64 " ns + other " U64 " ns, total " U64 " ns\n",
               rp_figures_add_up(snapshot) ? "yes" : "no", rp_figures_phases_ns(snapshot),
               rp_figures_spans_ns(snapshot), rp_figures_other_ns(snapshot), snapshot->total.sum_ns);
}

void rp_render_text(request_rec *r, const rp_report_t *report)
{
    static void (*const parts[])(request_rec *r, const rp_snapshot_t *snapshot) = {
        put_findings, put_requests, put_profiler, put_phases, put_spans, rp_lines_put_text, put_logs,
        put_workers, put_children, put_flights, put_deaths, put_proof};

    put_server(r, report);
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        parts[i](r, report->snapshot);
    }
}
