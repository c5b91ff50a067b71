#include <httpd.h>
#include <http_config.h>
#include <http_log.h>

#include "capture/crash.h"
#include "capture/server_conf.h"
#include "store/lasting.h"

APLOG_USE_MODULE(reqprof);

/* A child of event may serve hundreds of requests; these say enough. */
#define LINES_MAX 16

static void log_death(server_rec *s, const rp_death_t *death)
{
    const rp_span_t *span = &death->span;

    ap_log_error(APLOG_MARK, APLOG_ERR, 0, s,
                 "RP010: child %u died with a request in %s %s%s%s (phase %s): %s %s of %s, begun %" APR_UINT64_T_FMT
                 " ms ago",
                 death->pid, span->hook, span->owner, span->detail[0] ? " " : "", span->detail,
                 rp_phase_name(span->phase), death->method, death->uri, death->vhost, death->age_ns / 1000000);
}

static void log_deaths(server_rec *s, const rp_death_t *deaths, unsigned count)
{
    if (!deaths->lost) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s, "RP011: child %u died while it served no request", deaths->pid);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        log_death(s, &deaths[i]);
    }
    if (deaths->lost > count) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s, "RP012: and %u more requests died with child %u",
                     deaths->lost - count, deaths->pid);
    }
}

void rp_crash_witness(server_rec *main_server, rp_segment_t *segment, pid_t pid)
{
    rp_lasting_t *lasting = rp_lasting_current();
    rp_death_t deaths[LINES_MAX];
    unsigned count = rp_deaths_witness(deaths, LINES_MAX, segment, pid);

    if (!count) {
        return;
    }
    log_deaths(main_server, deaths, count);
    for (unsigned i = 0; lasting && i < count; i++) {
        rp_deaths_add(&lasting->deaths, &deaths[i]);
    }
}
