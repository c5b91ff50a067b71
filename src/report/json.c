#include <httpd.h>
#include <http_protocol.h>
#include <apr_time.h>

#include "mod_reqprof.h"
#include "base/escape.h"
#include "report/duration.h"
#include "report/figures.h"
#include "report/findings.h"
#include "report/lines.h"
#include "report/render.h"
#include "report/timeline.h"
#include "store/spans.h"

#define U64 "%" APR_UINT64_T_FMT

static const struct {
    const char *name;
    double q;
} quantiles[] = {
#define RP_QUANTILE(name, q, in_text) {name, q},
#include "report/quantiles.def"
#undef RP_QUANTILE
};

#define QUANTILE_COUNT (sizeof(quantiles) / sizeof(quantiles[0]))

static const char *comma(unsigned i)
{
    return i ? ",\n" : "";
}

/* A string member, its name and colon included. */
static void put_string(request_rec *r, const char *name, const char *value)
{
    ap_rprintf(r, "\"%s\":\"%s\"", name, rp_escape_json(r->pool, value));
}

static void put_hist(request_rec *r, const rp_snapshot_t *snapshot, const rp_times_t *times)
{
    ap_rprintf(r, "{\"count\":" U64 ",\"sum_ns\":" U64 ",\"mean_ns\":" U64, times->hist.head->count, times->sum_ns,
               rp_snapshot_mean_ns(times));
    ap_rprintf(r, ",\"min_ns\":" U64 ",\"max_ns\":" U64 ",\"p\":{", rp_snapshot_quantile_ns(snapshot, times, 0),
               rp_snapshot_quantile_ns(snapshot, times, 1));
    for (unsigned i = 0; i < QUANTILE_COUNT; i++) {
        ap_rprintf(r, "%s\"%s\":" U64, i ? "," : "", quantiles[i].name,
                   rp_snapshot_quantile_ns(snapshot, times, quantiles[i].q));
    }
    ap_rputs("}}", r);
}

static void put_by_status(request_rec *r, const apr_uint64_t by_status[RP_STATUS_CLASSES])
{
    ap_rputs("\"by_status\":{", r);
    for (int i = 0; i < RP_STATUS_CLASSES; i++) {
        ap_rprintf(r, "%s\"%dxx\":" U64, i ? "," : "", i + 1, by_status[i]);
    }
    ap_rputs("}", r);
}

static void put_server(request_rec *r, const rp_report_t *report)
{
    const rp_segment_t *segment = report->snapshot->segment;

    ap_rputs("\"server\":{", r);
    put_string(r, "software", report->software);
    ap_rputs(",", r);
    put_string(r, "mpm", segment->mpm);
    ap_rprintf(r, ",\"epoch\":%u,\"started\":\"%s\",\"uptime_s\":%.3f}", segment->epoch,
               rp_iso_time(r->pool, segment->started_us), rp_figures_uptime_s(report->snapshot));
}

static void put_profiler(request_rec *r, const rp_snapshot_t *snapshot)
{
    const rp_clock_t *clock = &snapshot->segment->clock;
    apr_uint64_t cost_ns = rp_snapshot_cost_ns(snapshot);
    rp_dropped_t dropped[RP_DROPPED_COUNT];
    unsigned count = rp_figures_dropped(dropped, snapshot);

    ap_rprintf(r, "\"profiler\":{\"version\":\"%s\",\"clock\":\"%s\",\"clock_read_ns\":%.1f", REQPROF_VERSION,
               rp_clock_name(clock), clock->read_ticks * clock->ns_per_tick);
    ap_rprintf(r, ",\"replay_ns\":" U64 ",\"replay_requests\":" U64, snapshot->replay_ns, snapshot->replay_requests);
    ap_rprintf(r, ",\"cost_ns_per_request\":" U64 ",\"cost_share\":%.6f,\"dropped\":{", cost_ns,
               rp_figures_ratio((double)cost_ns, (double)rp_snapshot_mean_ns(&snapshot->total)));
    for (unsigned i = 0; i < count; i++) {
        ap_rprintf(r, "%s\"%s\":" U64, i ? "," : "", dropped[i].name, dropped[i].count);
    }
    ap_rputs("}}", r);
}

static void put_window(request_rec *r, const rp_report_t *report)
{
    const rp_snapshot_t *snapshot = report->snapshot;

    ap_rprintf(r, "\"window\":{\"name\":\"%s\",\"start\":\"%s\",\"end\":\"%s\",\"seconds\":%.3f}",
               rp_window_name(report->params->window), rp_iso_time(r->pool, snapshot->begun_us),
               rp_iso_time(r->pool, snapshot->taken_us), snapshot->seconds);
}

static void put_requests(request_rec *r, const rp_snapshot_t *snapshot)
{
    ap_rprintf(r, "\"requests\":{\"count\":" U64 ",\"per_second\":%.3f,\"in_flight\":%u,\"in_flight_over_1s\":%u,"
               "\"lost\":%u,", snapshot->requests, rp_figures_per_second(snapshot), snapshot->flight_count,
               rp_figures_long_flights(snapshot), snapshot->segment->lost_flights);
    put_by_status(r, snapshot->by_status);
    ap_rputs("}", r);
}

static void put_phases(request_rec *r, const rp_snapshot_t *snapshot)
{
    ap_rputs("\"phases\":[\n", r);
    for (unsigned i = 0; i < RP_PHASE_COUNT; i++) {
        const rp_times_t *times = &snapshot->phases[i];

        ap_rprintf(r, "%s{\"phase\":\"%s\",\"share\":%.6f,\"self\":", comma(i), rp_phase_name(i),
                   rp_figures_share(snapshot, times->sum_ns));
        put_hist(r, snapshot, times);
        ap_rputs("}", r);
    }
    ap_rputs("]", r);
}

/* What tells a span from others: for a log its target, else a directive's place or nothing. */
static void put_span_identity(request_rec *r, const rp_span_t *span)
{
    ap_rprintf(r, "\"phase\":\"%s\",\"kind\":\"%s\",", rp_phase_name(span->phase), rp_kind_name(span->kind));
    put_string(r, "hook", span->hook);
    ap_rputs(",", r);
    put_string(r, "owner", span->owner);
    ap_rprintf(r, ",\"which\":%d,", span->which);
    put_string(r, span->kind == RP_KIND_LOG ? "target" : "detail", span->detail);
}

static void put_span(request_rec *r, const rp_snapshot_t *snapshot, const rp_span_times_t *times)
{
    ap_rputs("{", r);
    put_span_identity(r, times->span);
    if (times->span->kind == RP_KIND_LOG) {
        ap_rprintf(r, ",\"written\":" U64 ",\"skipped\":" U64 ",\"bytes\":" U64, times->calls, times->skipped,
                   times->bytes);
    }
    ap_rprintf(r, ",\"calls\":" U64 ",\"self\":", times->calls);
    put_hist(r, snapshot, &times->self);
    ap_rputs(",\"cpu_mean_ns\":null}", r);
}

static void put_spans(request_rec *r, const rp_snapshot_t *snapshot)
{
    unsigned listed = 0;

    ap_rputs("\"spans\":[\n", r);
    for (unsigned i = 0; i < snapshot->span_count; i++) {
        if (!rp_figures_is_ground(&snapshot->spans[i])) {
            ap_rputs(comma(listed++), r);
            put_span(r, snapshot, &snapshot->spans[i]);
        }
    }
    ap_rputs("]", r);
}

/* The growth's interval is NULL while there is none. */
static void put_growth(request_rec *r, const rp_growth_t *growth)
{
    ap_rprintf(r, "\"growth\":{\"word\":\"%s\"", rp_growth_name(growth->word));
    if (growth->word == RP_GROWTH_UNKNOWN) {
        ap_rputs(",\"bytes_per_request\":null,\"low\":null,\"high\":null,\"step_bytes\":null},", r);
        return;
    }
    ap_rprintf(r, ",\"bytes_per_request\":%.1f,\"low\":%.1f,\"high\":%.1f,\"step_bytes\":" U64 "},",
               growth->bytes_per_request, growth->low, growth->high, growth->step_bytes);
}

static void put_life(request_rec *r, const rp_child_times_t *child)
{
    const rp_life_t *life = &child->life;

    ap_rprintf(r, ",\"connections\":" U64 ",\"rss_bytes\":" U64 ",\"private_bytes\":" U64 ",\"heap_used_bytes\":" U64
               ",\"heap_held_bytes\":" U64 ",", life->connections, life->rss_bytes, life->private_bytes,
               life->heap_used_bytes, life->heap_held_bytes);
    ap_rprintf(r, "\"cpu_user_s\":%.3f,\"cpu_system_s\":%.3f,", (double)life->cpu_user_us / 1e6,
               (double)life->cpu_system_us / 1e6);
    put_growth(r, &child->growth);
}

static void put_children(request_rec *r, const rp_snapshot_t *snapshot)
{
    ap_rputs("\"children\":[\n", r);
    for (unsigned i = 0; i < snapshot->child_count; i++) {
        const rp_child_times_t *child = &snapshot->children[i];

        ap_rprintf(r, "%s{\"pid\":%u,\"epoch\":%u,\"state\":\"%s\",\"requests\":" U64, comma(i), child->pid,
                   child->epoch, rp_figures_child_state(child), child->requests);
        put_life(r, child);
        put_by_status(r, child->by_status);
        ap_rputs(",\"total\":", r);
        put_hist(r, snapshot, &child->total);
        ap_rputs("}", r);
    }
    ap_rputs("]", r);
}

static void put_flight(request_rec *r, const rp_flight_view_t *flight)
{
    ap_rprintf(r, "{\"pid\":%u,\"epoch\":%u,\"phase\":\"%s\",", flight->pid, flight->epoch,
               rp_phase_name(flight->span->phase));
    put_string(r, "span", rp_figures_span_label(r->pool, flight->span));
    ap_rprintf(r, ",\"span_age_ns\":" U64 ",\"age_ns\":" U64 ",", flight->span_age_ns, flight->age_ns);
    put_string(r, "method", flight->method);
    ap_rputs(",", r);
    put_string(r, "uri", flight->uri);
    ap_rputs(",", r);
    put_string(r, "vhost", flight->vhost);
    ap_rputs("}", r);
}

static void put_flights(request_rec *r, const rp_snapshot_t *snapshot)
{
    ap_rputs("\"flights\":[", r);
    for (unsigned i = 0; i < snapshot->flight_count; i++) {
        ap_rputs(comma(i), r);
        put_flight(r, &snapshot->flights[i]);
    }
    ap_rputs("]", r);
}

static void put_lost_request(request_rec *r, const rp_death_t *death)
{
    ap_rprintf(r, ",\"phase\":\"%s\",", rp_phase_name(death->span.phase));
    put_string(r, "span", rp_figures_span_label(r->pool, &death->span));
    ap_rprintf(r, ",\"span_age_ns\":" U64 ",\"age_ns\":" U64 ",", death->span_age_ns, death->age_ns);
    put_string(r, "method", death->method);
    ap_rputs(",", r);
    put_string(r, "uri", death->uri);
    ap_rputs(",", r);
    put_string(r, "vhost", death->vhost);
}

static void put_deaths(request_rec *r, const rp_snapshot_t *snapshot)
{
    ap_rputs("\"deaths\":[", r);
    for (unsigned i = 0; i < snapshot->death_count; i++) {
        const rp_death_t *death = &snapshot->deaths[i];

        ap_rprintf(r, "%s{\"time\":\"%s\",\"pid\":%u,\"epoch\":%u,\"lost\":%u", comma(i),
                   rp_iso_time(r->pool, death->time_us), death->pid, death->epoch, death->lost);
        if (death->lost) {
            put_lost_request(r, death);
        }
        ap_rputs("}", r);
    }
    ap_rputs("]", r);
}

static void put_workers(request_rec *r, const rp_snapshot_t *snapshot)
{
    const rp_lasting_t *lasting = snapshot->lasting;

    ap_rprintf(r, "\"workers\":{\"busy\":%u,\"max\":%u,\"all_busy_s\":%.3f},\n\"kernel\":{\"listen_overflows\":" U64
               ",\"listen_drops\":" U64 "},\n\"listen\":[",
               lasting->gauges.workers_busy, lasting->gauges.workers_max, (double)lasting->all_busy_us / 1e6,
               lasting->overflows, lasting->drops);
    for (unsigned i = 0; i < lasting->listen_count; i++) {
        const rp_listen_t *listen = &lasting->listens[i];

        ap_rprintf(r, "%s{\"address\":\"%s\",\"queue_length\":%u,\"queue_limit\":%u,\"queue_longest\":%u}",
                   comma(i), rp_escape_json(r->pool, listen->address), listen->queue_length, listen->queue_limit,
                   listen->queue_longest);
    }
    ap_rputs("]", r);
}

static void put_series(request_rec *r, const char *name, const rp_block_series_t *series)
{
    ap_rprintf(r, "\"%s\":{\"count\":%u,\"sum_ns\":" U64 ",\"p50_ns\":" U64 ",\"p99_ns\":" U64 "}", name, series->count,
               series->sum_ns, rp_block_quantile_ns(series, 0.5), rp_block_quantile_ns(series, 0.99));
}

static void put_block(request_rec *r, const rp_block_t *block)
{
    ap_rprintf(r, "{\"start\":\"%s\",\"epoch\":%u,\"requests\":%u,",
               rp_iso_time(r->pool, apr_time_from_sec(block->start_s)), block->epoch, block->requests);
    ap_rprintf(r, "\"in_flight\":%u,\"in_flight_over_1s\":%u,\"workers_busy\":%u,\"workers_max\":%u,"
               "\"private_bytes\":" U64 ",", block->gauges.flights, block->gauges.long_flights,
               block->gauges.workers_busy, block->gauges.workers_max, block->gauges.private_bytes);
    put_series(r, "total", &block->series[RP_SERIES_TOTAL]);
    ap_rputs(",", r);
    put_series(r, "queue", &block->series[RP_SERIES_QUEUE]);
    ap_rputs(",\"phases\":{", r);
    for (unsigned i = 0; i < RP_PHASE_COUNT; i++) {
        ap_rputs(i ? "," : "", r);
        put_series(r, rp_phase_name(i), &block->series[RP_SERIES_PHASES + i]);
    }
    ap_rputs("}}", r);
}

static void put_timeline(request_rec *r, const rp_snapshot_t *snapshot)
{
    rp_timeline_t timeline = rp_timeline(r->pool, snapshot);

    ap_rprintf(r, "\"timeline\":{\"step_s\":%u,\"blocks\":[", timeline.step_s);
    for (unsigned i = 0; i < timeline.count; i++) {
        ap_rputs(comma(i), r);
        put_block(r, &timeline.blocks[i]);
    }
    ap_rputs("]}", r);
}

static void put_findings(request_rec *r, const rp_snapshot_t *snapshot)
{
    const apr_array_header_t *findings = rp_findings(r->pool, snapshot);

    ap_rputs("\"findings\":[", r);
    for (int i = 0; i < findings->nelts; i++) {
        ap_rprintf(r, "%s\"%s\"", i ? "," : "", rp_escape_json(r->pool, APR_ARRAY_IDX(findings, i, const char *)));
    }
    ap_rputs("]", r);
}

static void put_epochs(request_rec *r, const rp_snapshot_t *snapshot)
{
    ap_rprintf(r, "\"epochs\":[{\"id\":%u,\"started\":\"%s\",\"ended\":null,\"requests\":" U64 "}]",
               snapshot->segment->epoch, rp_iso_time(r->pool, snapshot->segment->started_us), snapshot->epoch_requests);
}

static void put_head(request_rec *r, const rp_report_t *report)
{
    ap_rputs("{\"schema\":1,\n", r);
    put_server(r, report);
    ap_rputs(",\n", r);
    put_profiler(r, report->snapshot);
    ap_rputs(",\n", r);
    put_window(r, report);
    ap_rputs(",\n", r);
    put_requests(r, report->snapshot);
    ap_rputs(",\n\"total\":", r);
    put_hist(r, report->snapshot, &report->snapshot->total);
    ap_rputs(",\n\"queue\":", r);
    put_hist(r, report->snapshot, &report->snapshot->queue);
}

void rp_render_json(request_rec *r, const rp_report_t *report)
{
    static void (*const lists[])(request_rec *r, const rp_snapshot_t *snapshot) = {
        put_phases, put_spans, put_children, put_flights, put_deaths, put_findings, put_workers,
        put_timeline, put_epochs, rp_lines_put_json};

    put_head(r, report);
    for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        ap_rputs(",\n", r);
        lists[i](r, report->snapshot);
    }
    ap_rputs(",\n\"slow\":[]}\n", r);
}
