#include <string.h>
#include <apr_strings.h>
#include <apr_time.h>
#include <httpd.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>

#include "report/handler.h"
#include "report/params.h"
#include "report/render.h"
#include "store/segment.h"

static const struct {
    const char *content_type;
    void (*render)(request_rec *r, const rp_report_t *report);
} formats[RP_FORMAT_COUNT] = {
#define RP_FORMAT(id, name, content_type, renderer) {content_type, renderer},
#include "report/formats.def"
#undef RP_FORMAT
};

/* Styles stand in the page itself; nothing else is loaded or run, whatever a client may have put into a URL. */
static void set_headers(request_rec *r, const char *content_type)
{
    ap_set_content_type(r, content_type);
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    apr_table_setn(r->headers_out, "X-Content-Type-Options", "nosniff");
    apr_table_setn(r->headers_out, "Content-Security-Policy",
                   "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
                   "frame-ancestors 'self'");
}

static int answer_sentence(request_rec *r, int status, const char *sentence)
{
    r->status = status;
    set_headers(r, "text/plain; charset=utf-8");
    if (!r->header_only) {
        ap_rputs(sentence, r);
        ap_rputs("\n", r);
    }
    return OK;
}

static const char *no_such_child(request_rec *r, const rp_params_t *params)
{
    const rp_snapshot_t *all = rp_snapshot_take(r->pool, rp_segment_current(), 0);
    const char *running = "";

    for (unsigned i = 0; i < all->child_count; i++) {
        if (all->children[i].pid) {
            running = apr_psprintf(r->pool, "%s%s%u", running, *running ? ", " : "", all->children[i].pid);
        }
    }
    return apr_psprintf(r->pool, "child \"%u\": accepted is the process number of a running child: %s",
                        params->child_pid, running);
}

static const rp_snapshot_t *take_snapshot(apr_pool_t *pool, const rp_params_t *params)
{
    rp_segment_t *segment = rp_segment_current();

    return params->child_pid ? rp_snapshot_take(pool, segment, params->child_pid)
                             : rp_snapshot_window(pool, segment, params->window, apr_time_now());
}

static int answer_report(request_rec *r, const rp_params_t *params)
{
    rp_report_t report = {params, take_snapshot(r->pool, params), ap_get_server_description()};

    if (!report.snapshot) {
        return answer_sentence(r, HTTP_SERVICE_UNAVAILABLE,
                               "Nothing is measured: ReqProf is Off, or the profiler's shared memory could not be "
                               "created. The error log says which.");
    }
    if (params->child_pid && !report.snapshot->child_count) {
        return answer_sentence(r, HTTP_BAD_REQUEST, no_such_child(r, params));
    }
    set_headers(r, formats[params->format].content_type);
    if (params->refresh_s) {
        apr_table_setn(r->headers_out, "Refresh", apr_itoa(r->pool, (int)params->refresh_s));
    }
    if (!r->header_only) {
        formats[params->format].render(r, &report);
    }
    return OK;
}

int rp_report_handler(request_rec *r)
{
    rp_params_t params;
    const char *wrong;

    if (!r->handler || strcmp(r->handler, "reqprof-status")) {
        return DECLINED;
    }
    ap_allow_standard_methods(r, REPLACE_ALLOW, M_GET, -1);
    if (r->method_number != M_GET) {
        return HTTP_METHOD_NOT_ALLOWED;
    }
    wrong = rp_params_parse(&params, r->pool, r->args);
    return wrong ? answer_sentence(r, HTTP_BAD_REQUEST, wrong) : answer_report(r, &params);
}
