/*
 * The page: assets/page.html, filled from a snapshot. Here stand only the values and lists that the file names;
 * whatever comes from a client or a configuration passes put_escaped().
 */
#include <string.h>
#include <httpd.h>
#include <http_core.h>
#include <http_protocol.h>
#include <apr_strings.h>

#include "mod_reqprof.h"
#include "base/escape.h"
#include "report/assets.h"
#include "report/config.h"
#include "report/duration.h"
#include "report/figures.h"
#include "report/findings.h"
#include "report/render.h"
#include "report/template.h"
#include "report/timeline.h"

#define BLOCK_ROWS 30

/* What is being printed: the report, and the current row of each list. */
typedef struct {
    request_rec *r;
    const rp_report_t *report;
    const rp_snapshot_t *snapshot;
    rp_dropped_t dropped[RP_DROPPED_COUNT];
    const rp_times_t *times; /* of the current row, whatever it is */
    unsigned phase;
    unsigned status; /* class - 1 */
    const rp_span_times_t *span;
    const rp_child_times_t *child;
    const rp_flight_view_t *flight;
    const rp_death_t *death;
    const apr_array_header_t *findings;
    const char *finding;
    rp_window_t window; /* of the links */
    const rp_listen_t *listen;
    rp_timeline_t timeline;
    const rp_block_t *block;
    unsigned block_phase;
    const rp_dropped_t *drop;
} page_t;

/* ---- printing ---- */

static void put_text(void *context, const char *text, apr_size_t bytes)
{
    ap_rwrite(text, (int)bytes, ((page_t *)context)->r);
}

static void put_escaped(const page_t *page, const char *text)
{
    ap_rputs(rp_escape_html(page->r->pool, text), page->r);
}

static void put_count(const page_t *page, apr_uint64_t number)
{
    ap_rputs(rp_grouped(page->r->pool, number), page->r);
}

static void put_ns(const page_t *page, apr_uint64_t ns)
{
    ap_rputs(rp_duration(page->r->pool, ns), page->r);
}

static void put_quantile(const page_t *page, const rp_times_t *times, double q)
{
    put_ns(page, rp_snapshot_quantile_ns(page->snapshot, times, q));
}

/* Nothing measured is a dash, not a zero. */
static int put_dash_if_none(const page_t *page)
{
    if (page->times->hist.head->count) {
        return 0;
    }
    ap_rputs("–", page->r);
    return 1;
}

static void put_row_quantile(const page_t *page, double q)
{
    if (!put_dash_if_none(page)) {
        put_quantile(page, page->times, q);
    }
}

static void put_row_mean(const page_t *page)
{
    if (!put_dash_if_none(page)) {
        put_ns(page, rp_snapshot_mean_ns(page->times));
    }
}

/* Two decimals, whole part in groups. */
static void put_decimal(const page_t *page, double value)
{
    apr_uint64_t hundredths = (apr_uint64_t)(value * 100 + 0.5);

    ap_rprintf(page->r, "%s.%02d", rp_grouped(page->r->pool, hundredths / 100), (int)(hundredths % 100));
}

static void put_class(const page_t *page, apr_uint64_t wanted, const char *name)
{
    if (wanted) {
        ap_rprintf(page->r, " class=\"%s\"", name);
    }
}

/* "2026-03-01 12:34:56 UTC" */
static void put_time(const page_t *page, apr_int64_t time_us)
{
    const char *iso = rp_iso_time(page->r->pool, time_us);

    ap_rprintf(page->r, "%.10s %.8s UTC", iso, iso + 11);
}

static void put_child_query(const page_t *page, const char *before)
{
    if (page->report->params->child_pid) {
        ap_rprintf(page->r, "%schild=%u", before, page->report->params->child_pid);
    }
}

static void put_refresh_query(const page_t *page)
{
    if (page->report->params->refresh_s) {
        ap_rprintf(page->r, "refresh=%u", page->report->params->refresh_s);
    }
}

static void put_owner(const page_t *page)
{
    put_escaped(page, page->span->span->owner);
    if (page->span->span->which) {
        ap_rprintf(page->r, " #%d", page->span->span->which + 1);
    }
}

static void put_child_link(const page_t *page)
{
    if (page->child->pid) {
        ap_rprintf(page->r, "<a href=\"?child=%u\">%u</a>", page->child->pid, page->child->pid);
    }
    else {
        ap_rputs("gone", page->r);
    }
}

static void put_block_share(const page_t *page)
{
    const rp_block_series_t *series = page->block->series;

    ap_rprintf(page->r, "%.2f", 100 * rp_figures_ratio((double)series[RP_SERIES_PHASES + page->block_phase].sum_ns,
                                                     (double)series[RP_SERIES_TOTAL].sum_ns));
}

static void put_queue_mean(const page_t *page)
{
    put_ns(page, rp_snapshot_mean_ns(&page->snapshot->queue));
}

/* What a child has not said yet is a dash. */
static void put_child_bytes(const page_t *page, apr_uint64_t bytes)
{
    ap_rputs(page->child->life.sampled_us ? rp_size(page->r->pool, bytes) : "–", page->r);
}

static void put_child_growth(const page_t *page)
{
    ap_rputs(page->child->pid ? rp_figures_growth(page->r->pool, &page->child->growth) : "–", page->r);
}

static void put_child_cpu(const page_t *page)
{
    const rp_life_t *life = &page->child->life;

    put_ns(page, (life->cpu_user_us + life->cpu_system_us) * 1000);
}

static void put_child_age(const page_t *page)
{
    if (page->child->pid && page->snapshot->taken_us > page->child->started_us) {
        put_ns(page, (apr_uint64_t)(page->snapshot->taken_us - page->child->started_us) * 1000);
    }
    else {
        ap_rputs("–", page->r);
    }
}

static void put_clock_read(const page_t *page)
{
    const rp_clock_t *clock = &page->snapshot->segment->clock;

    ap_rprintf(page->r, "%.1f ns", clock->read_ticks * clock->ns_per_tick);
}

static void put_cost_share(const page_t *page)
{
    double mean_ns = (double)rp_snapshot_mean_ns(&page->snapshot->total);

    ap_rprintf(page->r, "%.2f", 100 * rp_figures_ratio((double)rp_snapshot_cost_ns(page->snapshot), mean_ns));
}

/* ---- rows: each makes row `index` of its list current, and returns 0 when there is none ---- */

static int phase_row(page_t *page, unsigned index)
{
    if (index >= RP_PHASE_COUNT) {
        return 0;
    }
    page->phase = index;
    page->times = &page->snapshot->phases[index];
    return 1;
}

static int is_span(const page_t *page, const rp_span_times_t *span)
{
    (void)page;
    return !rp_figures_is_ground(span);
}

static int is_span_of_phase(const page_t *page, const rp_span_times_t *span)
{
    return is_span(page, span) && span->span->phase == page->phase;
}

static int is_log(const page_t *page, const rp_span_times_t *span)
{
    (void)page;
    return span->span->kind == RP_KIND_LOG;
}

/* @return the span at a place among those that are wanted, or NULL */
static const rp_span_times_t *find_span(const page_t *page, unsigned index,
                                        int (*wanted)(const page_t *page, const rp_span_times_t *span))
{
    for (unsigned i = 0; i < page->snapshot->span_count; i++) {
        if (wanted(page, &page->snapshot->spans[i]) && !index--) {
            return &page->snapshot->spans[i];
        }
    }
    return NULL;
}

static int any_span(const page_t *page, int (*wanted)(const page_t *page, const rp_span_times_t *span))
{
    return find_span(page, 0, wanted) != NULL;
}

static int span_row(page_t *page, unsigned index, int (*wanted)(const page_t *page, const rp_span_times_t *span))
{
    page->span = find_span(page, index, wanted);
    if (page->span) {
        page->times = &page->span->self;
    }
    return page->span != NULL;
}

static int phase_took_time(const page_t *page)
{
    return page->times->sum_ns > 0;
}

static int phase_has_spans(const page_t *page)
{
    return any_span(page, is_span_of_phase);
}

static int phase_with(page_t *page, unsigned index, int (*wanted)(const page_t *page))
{
    for (unsigned phase = 0; phase_row(page, phase); phase++) {
        if (wanted(page) && !index--) {
            return 1;
        }
    }
    return 0;
}

static int total_row(page_t *page, unsigned index)
{
    page->times = &page->snapshot->total;
    return !index;
}

static int status_row(page_t *page, unsigned index)
{
    for (page->status = 0; page->status < RP_STATUS_CLASSES; page->status++) {
        if (page->snapshot->by_status[page->status] && !index--) {
            return 1;
        }
    }
    return 0;
}

static int child_row(page_t *page, unsigned index)
{
    if (index >= page->snapshot->child_count) {
        return 0;
    }
    page->child = &page->snapshot->children[index];
    page->times = &page->child->total;
    return 1;
}

static int flight_row(page_t *page, unsigned index)
{
    page->flight = &page->snapshot->flights[index];
    return index < page->snapshot->flight_count;
}

static int finding_row(page_t *page, unsigned index)
{
    if (index >= (unsigned)page->findings->nelts) {
        return 0;
    }
    page->finding = APR_ARRAY_IDX(page->findings, index, const char *);
    return 1;
}

static int window_row(page_t *page, unsigned index)
{
    page->window = (rp_window_t)index;
    return index < RP_WINDOW_COUNT;
}

static int listen_row(page_t *page, unsigned index)
{
    page->listen = &page->snapshot->lasting->listens[index];
    return index < page->snapshot->lasting->listen_count;
}

/* Newest first, as many as fit on a screen. */
static int block_row(page_t *page, unsigned index)
{
    if (index >= page->timeline.count || index >= BLOCK_ROWS) {
        return 0;
    }
    page->block = &page->timeline.blocks[page->timeline.count - 1 - index];
    return 1;
}

static int block_phase_row(page_t *page, unsigned index)
{
    for (page->block_phase = 0; page->block_phase < RP_PHASE_COUNT; page->block_phase++) {
        if (page->block->series[RP_SERIES_PHASES + page->block_phase].sum_ns && !index--) {
            return 1;
        }
    }
    return 0;
}

static int death_row(page_t *page, unsigned index)
{
    page->death = &page->snapshot->deaths[index];
    return index < page->snapshot->death_count;
}

static int drop_row(page_t *page, unsigned index)
{
    for (unsigned i = 0; i < RP_DROPPED_COUNT; i++) {
        page->drop = &page->dropped[i];
        if (page->drop->count && !index--) {
            return 1;
        }
    }
    return 0;
}

/* ---- the names in the file ---- */

#define RP_VALUES "report/page_values.def"
#define RP_LISTS "report/page_lists.def"
#include "report/template_names.inc"

void rp_render_html(request_rec *r, const rp_report_t *report)
{
    page_t page = {.r = r, .report = report, .snapshot = report->snapshot, .times = &report->snapshot->total};
    const rp_template_t template = {values, lists, put_text, &page};

    if (report->params->view == RP_VIEW_CONFIG) {
        rp_render_config(r, report);
        return;
    }
    page.timeline = rp_timeline(r->pool, report->snapshot);
    page.findings = rp_findings(r->pool, report->snapshot);
    rp_figures_dropped(page.dropped, report->snapshot);
    rp_template_run(&template, rp_asset_page_html);
}
