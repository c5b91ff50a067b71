#include <httpd.h>
#include <http_config.h>
#include <http_core.h>
#include <http_log.h>
#include <ap_mpm.h>
#include <mpm_common.h>

#include "capture/capture.h"
#include "capture/collector.h"
#include "capture/crash.h"
#include "capture/filters.h"
#include "capture/hooks.h"
#include "capture/htaccess.h"
#include "capture/lines.h"
#include "capture/listen.h"
#include "capture/logs.h"
#include "capture/providers.h"
#include "capture/replay.h"
#include "capture/request.h"
#include "capture/server_conf.h"
#include "store/children.h"
#include "store/lasting.h"
#include "store/segment.h"

APLOG_USE_MODULE(reqprof);

/* Room for filters and .htaccess files that only running requests reveal. */
#define SPARE_SPANS 96

static const rp_settings_t *settings;
static rp_span_plan_t *plan;

void rp_capture_pre_config(apr_pool_t *pconf, const rp_settings_t *chosen)
{
    settings = chosen;
    rp_request_init();
    plan = rp_span_plan_create(pconf, settings);
    rp_providers_wrap(plan, pconf);
    rp_lines_config_begin(pconf);
}

/* The first of httpd's two readings at start is thrown away. */
static int is_rehearsal(void)
{
    return ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG;
}

static int any_enabled(const server_rec *s)
{
    for (; s; s = s->next) {
        if (rp_server_conf(s)->enabled) {
            return 1;
        }
    }
    return 0;
}

int rp_capture_open_logs(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *main_server)
{
    (void)plog;
    (void)ptemp;
    rp_providers_config_done();
    if (!is_rehearsal() && any_enabled(main_server)) {
        rp_logs_wrap(plan, pconf, main_server);
        /* mod_watchdog looks in its post_config at what has been asked for. */
        rp_collector_ask_for_ticks(pconf, main_server);
    }
    return OK;
}

static rp_segment_size_t size_of_mpm(void)
{
    rp_segment_size_t size = {1, 1, 0, SPARE_SPANS, ap_show_mpm(), NULL};
    int value;

    if (ap_mpm_query(AP_MPMQ_HARD_LIMIT_DAEMONS, &value) == APR_SUCCESS && value > 0) {
        size.child_max = (unsigned)value;
    }
    if (ap_mpm_query(AP_MPMQ_MAX_THREADS, &value) == APR_SUCCESS && value > 0) {
        size.thread_max = (unsigned)value;
    }
    if (ap_mpm_query(AP_MPMQ_GENERATION, &value) == APR_SUCCESS) {
        size.generation = (unsigned)value;
    }
    return size;
}

static void warn_of_unwrapped(server_rec *s, unsigned unwrapped)
{
    if (unwrapped) {
        rp_segment_current()->unwrapped_links = unwrapped;
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, s,
                     "RP002: %u hook functions are not measured, there are more than reqprof has slots for; "
                     "their time is shown as other", unwrapped);
    }
}

/* The configuration's lines, and their replay, which needs the modules' functions before they are wrapped. */
static rp_line_plan_t *plan_lines(apr_pool_t *pconf, apr_pool_t *ptemp, server_rec *main_server)
{
    rp_line_plan_t *lines = rp_line_plan_create(ptemp);

    rp_lines_collect(lines, ptemp, main_server, ap_conftree);
    rp_replay_prepare(pconf, ptemp, main_server, lines, settings->line_budget);
    rp_hooks_on_finished(rp_replay_after);
    return lines;
}

int rp_capture_post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *main_server)
{
    rp_segment_size_t size = size_of_mpm();
    rp_line_plan_t *lines = NULL;
    unsigned unwrapped;
    apr_status_t rv;

    (void)plog;
    if (is_rehearsal() || !any_enabled(main_server)) {
        return OK;
    }
    if (settings->detail == RP_DETAIL_LINES) {
        size.lines = lines = plan_lines(pconf, ptemp, main_server);
    }
    rp_hooks_on_filters_inserted(rp_filters_inspect);
    rp_hooks_on_logged(rp_logs_count_skipped);
    rp_hooks_on_htaccess(rp_htaccess_opened);
    rp_htaccess_plan(plan);
    unwrapped = rp_hooks_wrap(plan);
    rp_filters_wrap(plan, ptemp, ap_conftree);
    if (lines) {
        rp_lines_connect(lines, ptemp, plan->spans, ap_conftree);
    }
    rv = rp_lasting_parent_find(main_server->process->pool);
    if (rv == APR_SUCCESS) {
        rv = rp_segment_parent_create(main_server->process->pool, settings, plan, &size);
    }
    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, rv, main_server,
                     "RP001: no shared memory for the counters of %u children; requests are served unmeasured "
                     "(a lower ServerLimit or ReqProfMaxSpans needs less)", size.child_max);
        return OK;
    }
    rp_lasting_current()->epoch = rp_segment_current()->epoch;
    rp_listen_parent_start();
    warn_of_unwrapped(main_server, unwrapped);
    return OK;
}

static apr_status_t release(void *child)
{
    rp_child_release(child);
    return APR_SUCCESS;
}

void rp_capture_child_init(apr_pool_t *pchild, server_rec *main_server)
{
    rp_segment_t *segment = rp_segment_current();
    rp_child_t *child = segment ? rp_child_claim(segment) : NULL;

    if (!segment) {
        return;
    }
    if (!child) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, main_server,
                     "RP003: all %u parts for children are taken; this child's requests are not measured",
                     segment->child_max);
        return;
    }
    rp_request_child_init(pchild, segment, child, rp_hooks_logging_count());
    rp_filters_child_init(segment);
    rp_htaccess_child_init(segment);
    rp_replay_child_init(pchild, rp_segment_lines(segment));
    apr_pool_cleanup_register(pchild, child, release, apr_pool_cleanup_null);
}

void rp_capture_child_status(server_rec *main_server, pid_t pid, ap_generation_t generation, int slot,
                             mpm_child_status state)
{
    rp_segment_t *segment;

    (void)slot;
    if (state == MPM_CHILD_EXITED) {
        segment = rp_segment_of_generation(main_server->process->pool, (unsigned)generation);
        if (segment) {
            rp_crash_witness(main_server, segment, pid);
            rp_child_fold(segment, pid);
        }
    }
}

void rp_capture_end_generation(server_rec *main_server, ap_generation_t generation)
{
    rp_segment_parent_end(main_server->process->pool, (unsigned)generation);
}
