#include <apr_hash.h>
#include <apr_optional.h>
#include <apr_strings.h>
#include <httpd.h>
#include <http_config.h>
#include <mod_log_config.h>

#include "capture/logs.h"
#include "capture/request.h"

static struct {
    rp_span_plan_t *plan;
    apr_pool_t *pool;
    ap_log_writer_init *init;
    ap_log_writer *write;
    apr_hash_t *spans;   /* handle -> span id; read only once the logs are open */
    apr_hash_t *targets; /* server -> array of the span ids of its targets */
    server_rec *main_server;
} logs;

static unsigned *span_copy(unsigned span)
{
    return apr_pmemdup(logs.pool, &span, sizeof(span));
}

static void remember_target(server_rec *s, unsigned span)
{
    apr_array_header_t *targets = apr_hash_get(logs.targets, &s, sizeof(s));

    if (!targets) {
        targets = apr_array_make(logs.pool, 4, sizeof(unsigned));
        apr_hash_set(logs.targets, apr_pmemdup(logs.pool, &s, sizeof(s)), sizeof(s), targets);
    }
    APR_ARRAY_PUSH(targets, unsigned) = span;
}

/* The handle is returned untouched: BufferedLogs casts it. */
static void *open_target(apr_pool_t *p, server_rec *s, const char *name)
{
    void *handle = logs.init(p, s, name);
    rp_span_key_t key = {RP_KIND_LOG, RP_PHASE_LOG, "log_transaction", "mod_log_config", name};

    if (handle) {
        unsigned span = rp_span_plan_add(logs.plan, &key);
        apr_hash_set(logs.spans, apr_pmemdup(logs.pool, &handle, sizeof(handle)), sizeof(handle), span_copy(span));
        if (span != RP_SPAN_NONE) {
            remember_target(s, span);
        }
    }
    return handle;
}

static void count_bytes(rp_request_t *request, unsigned span, apr_size_t bytes)
{
    request->stack.tally.entries[span].bytes += bytes;
}

static apr_status_t write_target(request_rec *r, void *handle, const char **portions, int *lengths, int count,
                                 apr_size_t bytes)
{
    const unsigned *span = apr_hash_get(logs.spans, &handle, sizeof(handle));
    rp_request_t *request = span ? rp_request_started(r) : NULL;
    rp_frame_t frame;
    apr_status_t rv;

    frame = rp_frame_open(request, span ? *span : RP_SPAN_NONE);
    rv = logs.write(r, handle, portions, lengths, count, bytes);
    request = rp_frame_close(frame);
    if (request) {
        count_bytes(request, *span, bytes);
    }
    return rv;
}

void rp_logs_wrap(rp_span_plan_t *plan, apr_pool_t *pool, server_rec *main_server)
{
    APR_OPTIONAL_FN_TYPE(ap_log_set_writer_init) *set_init = APR_RETRIEVE_OPTIONAL_FN(ap_log_set_writer_init);
    APR_OPTIONAL_FN_TYPE(ap_log_set_writer) *set_writer = APR_RETRIEVE_OPTIONAL_FN(ap_log_set_writer);

    if (!set_init || !set_writer) {
        return;
    }
    logs.plan = plan;
    logs.pool = pool;
    logs.main_server = main_server;
    logs.spans = apr_hash_make(pool);
    logs.targets = apr_hash_make(pool);
    logs.init = set_init(open_target);
    logs.write = set_writer(write_target);
}

static void count_if_left_out(rp_tally_t *tally, unsigned span)
{
    if (!tally->entries[span].calls) {
        rp_tally_touch(tally, span)->skipped++;
    }
}

/* A virtual host without targets of its own writes to the main server's, as mod_log_config has it. */
void rp_logs_count_skipped(request_rec *r)
{
    rp_request_t *request = rp_request_started(r);
    apr_array_header_t *targets;

    if (!request || !logs.targets) {
        return;
    }
    targets = apr_hash_get(logs.targets, &r->server, sizeof(r->server));
    if (!targets && logs.main_server) {
        targets = apr_hash_get(logs.targets, &logs.main_server, sizeof(logs.main_server));
    }
    for (int i = 0; targets && i < targets->nelts; i++) {
        count_if_left_out(&request->stack.tally, APR_ARRAY_IDX(targets, i, unsigned));
    }
}
