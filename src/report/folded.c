/*
 * Folded stacks as flame graph tools read them: phase;owner;line value, with a frame more where lines are replayed. The
 * value is the sum of self time in nanoseconds; all values add up to the total.
 */
#include <httpd.h>
#include <http_protocol.h>
#include <apr_strings.h>

#include "base/escape.h"
#include "report/figures.h"
#include "report/lines.h"
#include "report/render.h"

/* A semicolon ends a frame. */
static const char *frame(apr_pool_t *pool, const char *text)
{
    char *copy = apr_pstrdup(pool, rp_escape_line(pool, text));

    for (char *c = strchr(copy, ';'); c; c = strchr(c, ';')) {
        *c = ':';
    }
    return copy;
}

/* The innermost frame: the hook or direction, and what tells this span from its like. */
static const char *line(apr_pool_t *pool, const rp_span_t *span)
{
    const char *which = span->which ? apr_psprintf(pool, " #%d", span->which + 1) : "";

    return apr_pstrcat(pool, span->hook, which, span->detail[0] ? " " : "", span->detail, NULL);
}

void rp_render_folded(request_rec *r, const rp_report_t *report)
{
    const rp_snapshot_t *snapshot = report->snapshot;
    const rp_line_costs_t *costs = rp_line_costs_take(r->pool, snapshot);

    for (unsigned i = 0; i < snapshot->span_count; i++) {
        const rp_span_times_t *times = &snapshot->spans[i];

        if (times->self.sum_ns && !rp_lines_share(costs, times->span)) {
            ap_rprintf(r, "%s;%s;%s %" APR_UINT64_T_FMT "\n", rp_phase_name(times->span->phase),
                       frame(r->pool, times->span->owner), frame(r->pool, line(r->pool, times->span)),
                       times->self.sum_ns);
        }
    }
    rp_lines_put_folded(r, costs);
}
