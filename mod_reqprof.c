/**
 * @file mod_reqprof.c
 * @brief The module record, its directives and its hooks; nothing else.
 */
#include <stdlib.h>
#include <apr_strings.h>
#include <httpd.h>
#include <http_config.h>
#include <http_connection.h>
#include <http_log.h>
#include <http_protocol.h>
#include <ap_mpm.h>
#include <mpm_common.h>

#include "mod_reqprof.h"
#include "base/settings.h"
#include "capture/capture.h"
#include "capture/collector.h"
#include "capture/queue.h"
#include "capture/server_conf.h"
#include "report/handler.h"
#include "store/layout.h"

static rp_settings_t settings;

static void *create_server_conf(apr_pool_t *pool, server_rec *server)
{
    rp_server_conf_t *conf = apr_pcalloc(pool, sizeof(*conf));

    (void)server;
    conf->enabled = -1;
    return conf;
}

static void *merge_server_conf(apr_pool_t *pool, void *base_conf, void *own_conf)
{
    const rp_server_conf_t *base = base_conf, *own = own_conf;
    rp_server_conf_t *conf = apr_pcalloc(pool, sizeof(*conf));

    conf->enabled = own->enabled >= 0 ? own->enabled : base->enabled;
    conf->lines = own->lines;
    return conf;
}

static void *create_dir_conf(apr_pool_t *pool, char *directory)
{
    (void)directory;
    return apr_pcalloc(pool, sizeof(rp_dir_conf_t));
}

static void *merge_dir_conf(apr_pool_t *pool, void *base_conf, void *own_conf)
{
    const rp_dir_conf_t *base = base_conf, *own = own_conf;
    rp_dir_conf_t *conf = apr_palloc(pool, sizeof(*conf));

    conf->lines = *rp_line_chain_join(pool, &base->lines, &own->lines);
    return conf;
}

static const char *set_enabled(cmd_parms *cmd, void *dir_conf, int on)
{
    rp_server_conf_t *conf = ap_get_module_config(cmd->server->module_config, &reqprof_module);

    (void)dir_conf;
    conf->enabled = on;
    return NULL;
}

static const char *refuse(const cmd_parms *cmd, const char *value, const char *accepted)
{
    return apr_psprintf(cmd->pool, "%s \"%s\": accepted is %s", cmd->cmd->name, value, accepted);
}

static const char *set_detail(cmd_parms *cmd, void *dir_conf, const char *value)
{
    const char *wrong_place = ap_check_cmd_context(cmd, GLOBAL_ONLY);

    (void)dir_conf;
    if (wrong_place) {
        return wrong_place;
    }
    if (!ap_cstr_casecmp(value, "phases")) {
        settings.detail = RP_DETAIL_PHASES;
    }
    else if (!ap_cstr_casecmp(value, "spans")) {
        settings.detail = RP_DETAIL_SPANS;
    }
    else if (!ap_cstr_casecmp(value, "lines")) {
        settings.detail = RP_DETAIL_LINES;
    }
    else {
        return refuse(cmd, value, "phases, spans or lines");
    }
    return NULL;
}

static const char *set_clock(cmd_parms *cmd, void *dir_conf, const char *value)
{
    const char *wrong_place = ap_check_cmd_context(cmd, GLOBAL_ONLY);

    (void)dir_conf;
    if (wrong_place) {
        return wrong_place;
    }
    if (!ap_cstr_casecmp(value, "auto")) {
        settings.clock = RP_CLOCK_AUTO;
    }
    else if (!ap_cstr_casecmp(value, "monotonic")) {
        settings.clock = RP_CLOCK_MONOTONIC;
    }
    else if (ap_cstr_casecmp(value, "tsc")) {
        return refuse(cmd, value, "auto, tsc or monotonic");
    }
    else if (!rp_clock_tsc_usable()) {
        return "ReqProfClock tsc: this machine's time stamp counter is not invariant or not the kernel's clock source; "
               "use auto or monotonic";
    }
    else {
        settings.clock = RP_CLOCK_TSC;
    }
    return NULL;
}

static const char *set_span_max(cmd_parms *cmd, void *dir_conf, const char *value)
{
    const char *wrong_place = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    char *end;
    apr_int64_t number = apr_strtoi64(value, &end, 10);

    (void)dir_conf;
    if (wrong_place) {
        return wrong_place;
    }
    if (*end || end == value || number < 32 || number > RP_SPAN_LIMIT) {
        return refuse(cmd, value, "a number from 32 to " APR_STRINGIFY(RP_SPAN_LIMIT));
    }
    settings.span_max = (unsigned)number;
    return NULL;
}

static const char *set_line_budget(cmd_parms *cmd, void *dir_conf, const char *value)
{
    const char *wrong_place = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    char *end;
    double percent = strtod(value, &end);

    (void)dir_conf;
    if (wrong_place) {
        return wrong_place;
    }
    if (*end || end == value || !(percent >= 0 && percent <= 10)) {
        return refuse(cmd, value, "a percentage from 0 (off) to 10");
    }
    settings.line_budget = percent / 100;
    return NULL;
}

/*
 * Those that decide how spans are numbered are executed while the configuration is read, before any Require line.
 */
static const command_rec directives[] = {
    AP_INIT_FLAG("ReqProf", set_enabled, NULL, RSRC_CONF, "On (default) or Off: measure the requests of this server"),
    AP_INIT_TAKE1("ReqProfDetail", set_detail, NULL, RSRC_CONF | EXEC_ON_READ,
                  "how finely time is told apart: phases, spans or lines (default)"),
    AP_INIT_TAKE1("ReqProfClock", set_clock, NULL, RSRC_CONF | EXEC_ON_READ,
                  "auto (default), tsc (the processor's time stamp counter) or monotonic (CLOCK_MONOTONIC)"),
    AP_INIT_TAKE1("ReqProfMaxSpans", set_span_max, NULL, RSRC_CONF | EXEC_ON_READ,
                  "how many spans there may be, default 1024; time of those beyond it counts in the enclosing span"),
    AP_INIT_TAKE1("ReqProfLineBudget", set_line_budget, NULL, RSRC_CONF,
                  "percentage of busy time that may be spent on replaying configuration lines, default 0.2; 0 is off"),
#define RP_REPLAYED(name, module, where, what)                                                                         \
    AP_INIT_RAW_ARGS(name, rp_lines_note, NULL, where, "noted, so that its cost can be told line by line"),
#include "capture/replayed.def"
#undef RP_REPLAYED
    {NULL}
};

static int pre_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp)
{
    (void)plog;
    (void)ptemp;
    rp_capture_pre_config(pconf, &settings);
    return OK;
}

/*
 * Hooks of requests are not among these: capture exchanges other modules' functions instead, so that
 * their order is seen and kept. Only the page's handler is one; a connection is not a request.
 */
static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    /* Not in pre_config: by then the directives that are executed while the configuration is read have been. */
    settings = (rp_settings_t)RP_SETTINGS_DEFAULT;
    ap_hook_pre_config(pre_config, NULL, NULL, APR_HOOK_REALLY_LAST + 10);
    ap_hook_open_logs(rp_capture_open_logs, NULL, NULL, APR_HOOK_REALLY_FIRST - 10);
    ap_hook_post_config(rp_capture_post_config, NULL, NULL, APR_HOOK_REALLY_LAST + 10);
    ap_hook_child_init(rp_capture_child_init, NULL, NULL, APR_HOOK_REALLY_FIRST - 10);
    ap_hook_child_status(rp_capture_child_status, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_end_generation(rp_capture_end_generation, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_monitor(rp_collector_monitor, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_pre_connection(rp_queue_pre_connection, NULL, NULL, APR_HOOK_REALLY_FIRST - 10);
    ap_hook_handler(rp_report_handler, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(reqprof) = {
    STANDARD20_MODULE_STUFF,
    create_dir_conf,
    merge_dir_conf,
    create_server_conf,
    merge_server_conf,
    directives,
    register_hooks
};
