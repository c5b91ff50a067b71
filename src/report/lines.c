#include <string.h>
#include <httpd.h>
#include <http_protocol.h>
#include <apr_strings.h>

#include "base/escape.h"
#include "report/figures.h"
#include "report/lines.h"
#include "store/line_costs.h"

#define U64 "%" APR_UINT64_T_FMT

enum {
    COSTLIEST = 20
};

static const char *source_name(rp_line_source_t source)
{
    return source == RP_LINE_LIVE ? "live" : "replay";
}

static apr_uint64_t per_request(const rp_snapshot_t *snapshot, apr_uint64_t ns)
{
    return snapshot->requests ? (ns + snapshot->requests / 2) / snapshot->requests : 0;
}

static void put_string(request_rec *r, const char *name, const char *value)
{
    ap_rprintf(r, "\"%s\":\"%s\",", name, rp_escape_json(r->pool, value));
}

/* Of lines that are timed live, only a log is known to match or not. */
static const char *matches(apr_pool_t *pool, const rp_line_cost_t *line)
{
    return line->source == RP_LINE_LIVE && line->phase != RP_PHASE_LOG ? "null"
                                                                       : apr_psprintf(pool, U64, line->matched);
}

static void put_line(request_rec *r, const rp_snapshot_t *snapshot, const rp_line_cost_t *line)
{
    ap_rputs("{", r);
    put_string(r, "file", line->file);
    ap_rprintf(r, "\"line\":%u,", line->number);
    put_string(r, "directive", line->directive);
    put_string(r, "args", line->args);
    put_string(r, "scope", line->scope);
    ap_rprintf(r, "\"scopes\":%u,\"source\":\"%s\",\"evaluated\":" U64 ",\"matched\":%s,\"decided\":" U64,
               line->scope_count, source_name(line->source), line->evaluated, matches(r->pool, line), line->decided);
    ap_rprintf(r, ",\"told\":%s,\"sum_ns\":" U64 ",\"ci95_ns\":" U64 ",\"mean_ns\":" U64 ",\"ns_per_request\":" U64
               ",\"share\":%.6f}", line->is_told ? "true" : "false", line->total_ns, line->ci95_ns,
               rp_line_mean_ns(line), per_request(snapshot, line->total_ns),
               rp_figures_share(snapshot, line->total_ns));
}

static void put_modules(request_rec *r, const rp_line_costs_t *costs)
{
    ap_rputs("\"lines_not_attributed\":[", r);
    for (unsigned i = 0; i < RP_LINE_MODULES && costs->line_count; i++) {
        const rp_line_module_t *module = &costs->modules[i];

        ap_rprintf(r, "%s{\"owner\":\"%s\",\"hook\":\"%s\",\"live_ns\":" U64 ",\"attributed_ns\":" U64
                   ",\"not_attributed_ns\":" U64 "}", i ? ",\n" : "", module->owner, module->hook, module->live_ns,
                   module->attributed_ns, module->live_ns - module->attributed_ns);
    }
    ap_rputs("]", r);
}

void rp_lines_put_json(request_rec *r, const rp_snapshot_t *snapshot)
{
    const rp_line_costs_t *costs = rp_line_costs_take(r->pool, snapshot);
    unsigned listed = 0;

    ap_rputs("\"lines\":[\n", r);
    for (unsigned i = 0; i < costs->line_count; i++) {
        if (costs->lines[i].source != RP_LINE_UNMEASURED) {
            ap_rputs(listed++ ? ",\n" : "", r);
            put_line(r, snapshot, &costs->lines[i]);
        }
    }
    ap_rputs("],\n", r);
    put_modules(r, costs);
}

/* Patterns are full of backslashes, so only what could break the line is replaced. */
static const char *shortened(apr_pool_t *pool, const char *text)
{
    char *line = apr_pstrdup(pool, text);

    for (char *c = line; *c; c++) {
        *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    }
    return strlen(line) > 60 ? apr_psprintf(pool, "%.57s...", line) : line;
}

static void put_row(request_rec *r, const rp_snapshot_t *snapshot, const rp_line_cost_t *line)
{
    ap_rprintf(r, "Line: %11.3f %9.3f %6.2f %9" APR_UINT64_T_FMT " %9" APR_UINT64_T_FMT " %-6s %s:%u %s %s\n",
               rp_figures_us_per_request(snapshot, line->total_ns), rp_figures_us_per_request(snapshot, line->ci95_ns),
               100 * rp_figures_share(snapshot, line->total_ns), line->evaluated, line->matched,
               source_name(line->source), rp_escape_line(r->pool, line->file), line->number, line->directive,
               shortened(r->pool, line->args));
}

void rp_lines_put_text(request_rec *r, const rp_snapshot_t *snapshot)
{
    const rp_line_costs_t *costs = rp_line_costs_take(r->pool, snapshot);
    const rp_line_cost_t *costliest[COSTLIEST];
    unsigned count = rp_line_costliest(r->pool, costs, costliest, COSTLIEST);

    if (!costs->line_count) {
        return;
    }
    ap_rputs("\n# The costliest lines of the configuration, in microseconds of all requests, with a 95 % confidence\n"
             "# interval where a line was replayed.\n"
             "#     per request     +/-   share% evaluated   matched source where\n", r);
    for (unsigned i = 0; i < count; i++) {
        put_row(r, snapshot, costliest[i]);
    }
    for (unsigned i = 0; i < RP_LINE_MODULES; i++) {
        const rp_line_module_t *module = &costs->modules[i];
        if (module->live_ns) {
            ap_rprintf(r, "NotAttributed: %11.3f of %11.3f %s %s\n",
                       rp_figures_us_per_request(snapshot, module->live_ns - module->attributed_ns),
                       rp_figures_us_per_request(snapshot, module->live_ns), module->owner, module->hook);
        }
    }
    ap_rprintf(r, "LinesReplayedOn: " U64 "\nLinesReplayedUs: %.1f\n", costs->replay_requests,
               (double)costs->replay_ns / 1e3);
}

int rp_lines_share(const rp_line_costs_t *costs, const rp_span_t *span)
{
    for (unsigned i = 0; i < RP_LINE_MODULES && costs->line_count; i++) {
        if (span->kind == RP_KIND_HOOK && !strcmp(span->owner, costs->modules[i].owner)
            && !strcmp(span->hook, costs->modules[i].hook)) {
            return 1;
        }
    }
    return 0;
}

/* A semicolon ends a frame. */
static const char *frame_of(apr_pool_t *pool, const rp_line_cost_t *line)
{
    char *frame = apr_psprintf(pool, "%s:%u %s %s", line->file, line->number, line->directive, line->args);

    for (char *c = frame; *c; c++) {
        *c = *c == ';' ? ':' : (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    }
    return frame;
}

static void put_frame(request_rec *r, const rp_line_module_t *module, const char *frame, apr_uint64_t ns)
{
    if (ns) {
        ap_rprintf(r, "%s;%s;%s;%s " U64 "\n", rp_phase_name(module->phase), module->owner, module->hook, frame, ns);
    }
}

void rp_lines_put_folded(request_rec *r, const rp_line_costs_t *costs)
{
    for (unsigned i = 0; i < RP_LINE_MODULES && costs->line_count; i++) {
        const rp_line_module_t *module = &costs->modules[i];

        for (unsigned j = 0; j < costs->line_count; j++) {
            const rp_line_cost_t *line = &costs->lines[j];
            if (line->source == RP_LINE_REPLAY && line->owner == module->owner && line->hook == module->hook) {
                put_frame(r, module, frame_of(r->pool, line), line->total_ns);
            }
        }
        put_frame(r, module, "not attributed", module->live_ns - module->attributed_ns);
    }
}
