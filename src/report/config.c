#include <math.h>
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
#include "report/line_findings.h"
#include "report/template.h"
#include "store/line_costs.h"

enum {
    COSTLIEST = 20,
    BLOCK_MIN = 8 /* neighbouring lines of one directive that are folded */
};

typedef enum {
    PART_FILE,
    PART_LINE,
    PART_BLOCK
} part_sort_t;

/* A piece of the listing: a file's name, a line, or a folded block of lines. */
typedef struct {
    part_sort_t sort;
    const rp_line_cost_t *first;
    unsigned count;
    apr_uint64_t total_ns;
} part_t;

/* What is being printed, and the current row of each list. */
typedef struct {
    request_rec *r;
    const rp_snapshot_t *snapshot;
    const rp_line_costs_t *costs;
    part_t *parts;
    unsigned part_count;
    const part_t *part;
    const rp_line_cost_t *line;
    const rp_line_module_t *module;
    const rp_line_cost_t *costliest[COSTLIEST];
    unsigned costliest_count;
    rp_line_finding_t findings[RP_LINE_FINDINGS_MAX];
    unsigned finding_count;
    const rp_line_finding_t *finding;
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

/* For the average request: single nanoseconds still matter, seven thousand lines have them. */
static void put_cost(const page_t *page, apr_uint64_t total_ns)
{
    double us = rp_figures_us_per_request(page->snapshot, total_ns);

    ap_rprintf(page->r, us < 0.0995 ? "%.1f ns" : us < 99.5 ? "%.2f µs" : "%.0f µs", us < 0.0995 ? us * 1000 : us);
}

static void put_line_cost(const page_t *page)
{
    const rp_line_cost_t *line = page->line;

    if (line->source == RP_LINE_UNMEASURED) {
        return;
    }
    if (!line->evaluated) {
        ap_rputs("not evaluated", page->r);
        return;
    }
    ap_rputs(line->is_told ? "" : "~", page->r);
    put_cost(page, line->total_ns);
}

static void put_counts(const page_t *page)
{
    const rp_line_cost_t *line = page->line;

    if (line->source == RP_LINE_LIVE) {
        ap_rputs("live ", page->r);
        put_count(page, line->evaluated);
    }
    else if (line->source == RP_LINE_REPLAY && line->matched) {
        put_count(page, line->matched);
        ap_rputs(line->decided ? " decided" : " matched", page->r);
    }
}

static void put_matching_lines(const page_t *page)
{
    unsigned matching = 0;

    for (unsigned i = 0; i < page->part->count; i++) {
        matching += page->part->first[i].matched > 0;
    }
    if (matching) {
        ap_rprintf(page->r, "%u matched", matching);
    }
}

static void put_place(const page_t *page, const rp_line_cost_t *line)
{
    const char *slash = strrchr(line->file, '/');

    put_escaped(page, slash ? slash + 1 : line->file);
    ap_rprintf(page->r, ":%u", line->number);
}

static void put_scope(const page_t *page)
{
    ap_rprintf(page->r, " title=\"%s\"", rp_escape_html(page->r->pool, page->line->scope));
}

/* From 10 ns to the costliest line, on a logarithmic scale. */
static void put_heat(const page_t *page, apr_uint64_t total_ns)
{
    double ns = rp_figures_us_per_request(page->snapshot, total_ns) * 1000;
    double most = page->costliest_count
                      ? rp_figures_us_per_request(page->snapshot, page->costliest[0]->total_ns) * 1000
                      : 0;

    ap_rprintf(page->r, "%.2f", ns > 10 && most > 10 ? fmin(log(ns / 10) / log(most / 10), 1) : 0);
}

/* ---- rows ---- */

static int module_row(page_t *page, unsigned index)
{
    for (unsigned i = 0; i < RP_LINE_MODULES; i++) {
        page->module = &page->costs->modules[i];
        if (page->module->live_ns && !index--) {
            return 1;
        }
    }
    return 0;
}

static int part_row(page_t *page, unsigned index)
{
    if (index >= page->part_count) {
        return 0;
    }
    page->part = &page->parts[index];
    page->line = page->part->first;
    return 1;
}

static int block_row(page_t *page, unsigned index)
{
    if (index >= page->part->count) {
        return 0;
    }
    page->line = page->part->first + index;
    return 1;
}

static int goes_on(const rp_line_cost_t *line, const rp_line_cost_t *next)
{
    return next->file == line->file && next->directive == line->directive && next->depth == line->depth
           && next->source == line->source && !(line->flags & RP_LINE_SECTION);
}

static unsigned block_length(const rp_line_costs_t *costs, unsigned from)
{
    unsigned end = from + 1;

    while (end < costs->line_count && goes_on(&costs->lines[end - 1], &costs->lines[end])) {
        end++;
    }
    return end - from;
}

static void add_part(page_t *page, part_sort_t sort, const rp_line_cost_t *first, unsigned count)
{
    part_t *part = &page->parts[page->part_count++];

    *part = (part_t){sort, first, count, 0};
    for (unsigned i = 0; i < count; i++) {
        part->total_ns += first[i].total_ns;
    }
}

static void make_parts(page_t *page)
{
    const rp_line_costs_t *costs = page->costs;

    page->parts = apr_palloc(page->r->pool, (2 * costs->line_count + 1) * sizeof(*page->parts));
    for (unsigned i = 0; i < costs->line_count;) {
        const rp_line_cost_t *line = &costs->lines[i];
        unsigned length = block_length(costs, i);

        if (!i || line->file != line[-1].file) {
            add_part(page, PART_FILE, line, 0);
        }
        length = length >= BLOCK_MIN ? length : 1;
        add_part(page, length > 1 ? PART_BLOCK : PART_LINE, line, length);
        i += length;
    }
}

/* ---- the names in the file ---- */

#define RP_VALUES "report/config_values.def"
#define RP_LISTS "report/config_lists.def"
#include "report/template_names.inc"

void rp_render_config(request_rec *r, const rp_report_t *report)
{
    page_t page = {.r = r, .snapshot = report->snapshot, .costs = rp_line_costs_take(r->pool, report->snapshot)};
    const rp_template_t template = {values, lists, put_text, &page};

    page.costliest_count = rp_line_costliest(r->pool, page.costs, page.costliest, COSTLIEST);
    page.finding_count = rp_line_findings(r->pool, page.costs, report->snapshot, page.findings);
    make_parts(&page);
    rp_template_run(&template, rp_asset_config_html);
}
