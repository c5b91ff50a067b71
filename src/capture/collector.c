#include <apr_optional.h>
#include <apr_time.h>
#include <httpd.h>
#include <http_config.h>
#include <http_log.h>
#include <ap_mpm.h>
#include <mod_watchdog.h>
#include <scoreboard.h>

#include "capture/collector.h"
#include "capture/listen.h"
#include "capture/server_conf.h"
#include "store/lasting.h"
#include "store/marks.h"
#include "store/segment.h"
#include "store/snapshot.h"

APLOG_USE_MODULE(reqprof);

#define TICK_US apr_time_from_sec(1)
#define LATE_US apr_time_from_sec(5)
#define LONG_FLIGHT_NS APR_UINT64_C(1000000000)

static int is_busy(int status)
{
    return status != SERVER_DEAD && status != SERVER_STARTING && status != SERVER_READY && status != SERVER_IDLE_KILL;
}

static unsigned count_busy_workers(void)
{
    int servers = 0, threads = 0;
    unsigned busy = 0;

    ap_mpm_query(AP_MPMQ_HARD_LIMIT_DAEMONS, &servers);
    ap_mpm_query(AP_MPMQ_HARD_LIMIT_THREADS, &threads);
    for (int i = 0; i < servers; i++) {
        for (int j = 0; j < (threads ? threads : 1); j++) {
            const worker_score *worker = ap_get_scoreboard_worker_from_indexes(i, j);
            busy += worker && is_busy(worker->status);
        }
    }
    return busy;
}

static unsigned count_workers(void)
{
    int daemons = 0, threads = 0;

    ap_mpm_query(AP_MPMQ_MAX_DAEMONS, &daemons);
    ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads);
    return (unsigned)daemons * (unsigned)(threads ? threads : 1);
}

static rp_block_gauges_t read_gauges(const rp_snapshot_t *snapshot)
{
    rp_block_gauges_t gauges = {.flights = snapshot->flight_count,
                                .workers_busy = count_busy_workers(),
                                .workers_max = count_workers()};

    for (unsigned i = 0; i < snapshot->flight_count; i++) {
        gauges.long_flights += snapshot->flights[i].age_ns > LONG_FLIGHT_NS;
    }
    for (unsigned i = 0; i < snapshot->child_count; i++) {
        gauges.private_bytes += snapshot->children[i].life.private_bytes;
    }
    return gauges;
}

/* A pause longer than the parent's own is nobody's: the server may have been stopped or suspended. */
static void count_all_busy(rp_lasting_t *lasting, apr_int64_t since_us, apr_int64_t now_us)
{
    const rp_block_gauges_t *gauges = &lasting->gauges;

    if (gauges->workers_max && gauges->workers_busy >= gauges->workers_max && now_us > since_us
        && now_us - since_us < apr_time_from_sec(15)) {
        lasting->all_busy_us += (apr_uint64_t)(now_us - since_us);
    }
}

static void collect(apr_pool_t *pool, rp_segment_t *segment, rp_lasting_t *lasting, apr_int64_t now_us)
{
    const rp_snapshot_t *snapshot = rp_snapshot_take(pool, segment, 0);
    rp_block_t *block = apr_pcalloc(pool, sizeof(*block));
    rp_shard_t *sums;
    apr_int64_t since_us;

    if (!snapshot) {
        return;
    }
    sums = apr_pmemdup(pool, snapshot->sums, (apr_size_t)segment->shard_bytes);
    since_us = rp_marks_subtract_last(segment, sums);
    rp_block_fill(block, sums, &segment->clock);
    block->epoch = segment->epoch;
    block->gauges = lasting->gauges = read_gauges(snapshot);
    rp_blocks_add(&lasting->blocks, block, apr_time_sec(now_us));
    rp_marks_take(segment, snapshot->sums, now_us);
    count_all_busy(lasting, since_us, now_us);
    rp_listen_read(lasting);
}

/* Children of an earlier configuration that only finish their requests leave this to the newer ones. */
static void collect_if_due(apr_pool_t *parent_pool, apr_int64_t pause_us)
{
    rp_segment_t *segment = rp_segment_current();
    rp_lasting_t *lasting = rp_lasting_current();
    apr_int64_t now_us = apr_time_now();
    apr_pool_t *pool;

    if (!segment || !lasting || lasting->epoch != segment->epoch || !rp_lasting_claim(lasting, now_us, pause_us)) {
        return;
    }
    apr_pool_create(&pool, parent_pool);
    collect(pool, segment, lasting, now_us);
    apr_pool_destroy(pool);
}

static apr_status_t tick(int state, void *data, apr_pool_t *pool)
{
    (void)data;
    if (state == AP_WATCHDOG_STATE_RUNNING) {
        collect_if_due(pool, TICK_US / 2);
    }
    return APR_SUCCESS;
}

void rp_collector_ask_for_ticks(apr_pool_t *pconf, server_rec *main_server)
{
    APR_OPTIONAL_FN_TYPE(ap_watchdog_get_instance) *get = APR_RETRIEVE_OPTIONAL_FN(ap_watchdog_get_instance);
    APR_OPTIONAL_FN_TYPE(ap_watchdog_register_callback) *add = APR_RETRIEVE_OPTIONAL_FN(ap_watchdog_register_callback);
    ap_watchdog_t *watchdog = NULL;
    apr_status_t rv;

    if (!get || !add) {
        return;
    }
    rv = get(&watchdog, "_reqprof_", 0, 1, pconf);
    if (rv == APR_SUCCESS) {
        rv = add(watchdog, TICK_US, NULL, tick);
    }
    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, rv, main_server,
                     "RP013: mod_watchdog gives no ticks; windows and the timeline have steps of ten seconds");
    }
}

int rp_collector_monitor(apr_pool_t *pool, server_rec *main_server)
{
    (void)main_server;
    collect_if_due(pool, LATE_US);
    return DECLINED;
}
