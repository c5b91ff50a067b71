#include <time.h>
#include <apr_strings.h>

#include "capture/request.h"
#include "capture/server_conf.h"
#include "store/children.h"
#include "store/life.h"

rp_here_t rp_here;

void rp_request_init(void)
{
    rp_here.slot_index = reqprof_module.module_index;
}

void rp_request_child_init(apr_pool_t *pchild, rp_segment_t *segment, rp_child_t *child, int logging_hooks)
{
    rp_here.segment = segment;
    rp_here.requests = apr_pcalloc(pchild, segment->flight_max * sizeof(rp_request_t));
    rp_here.logging_hooks = logging_hooks;
    rp_here.child = child;
}

static void unlink_from_connection(rp_request_t *request)
{
    rp_request_t **link = &request->conn->live;

    while (*link && *link != request) {
        link = &(*link)->older;
    }
    if (*link) {
        *link = request->older;
    }
}

static rp_request_t *request_of(const request_rec *r)
{
    return r->request_config ? ap_get_module_config(r->request_config, &reqprof_module) : NULL;
}

/* The stack will serve another request: no request_rec of this one may lead to it any more. */
static void unhang(request_rec *r)
{
    for (; r; r = r->next) {
        ap_set_module_config(r->request_config, &reqprof_module, NULL);
    }
}

/* Ends the request's life for every frame that is still open and for other processes. */
static void end(rp_request_t *request)
{
    request->state = RP_REQUEST_ENDED;
    request->serial++;
    unhang(request->first);
    unlink_from_connection(request);
    __atomic_store_n(&request->stack.flight->state, RP_FLIGHT_FREE, __ATOMIC_RELEASE);
    if (request->has_slot) {
        rp_flight_give(rp_here.segment, rp_here.child, request->stack.flight);
    }
    else {
        request->older = request->conn->spare;
        request->conn->spare = request;
    }
}

/* A request whose logging never ran (a closed idle connection, a fake request of a module) is not counted. */
static apr_status_t end_with_pool(void *data)
{
    rp_request_t *request = request_of(data);

    if (!request) {
        return APR_SUCCESS;
    }
    if (request->state == RP_REQUEST_RUNNING && !rp_here.logging_hooks) {
        rp_request_finish(request);
        return APR_SUCCESS;
    }
    rp_tally_clear(&request->stack.tally);
    end(request);
    return APR_SUCCESS;
}

static rp_conn_t *conn_of(conn_rec *c)
{
    rp_conn_t *conn = ap_get_module_config(c->conn_config, &reqprof_module);

    if (!conn) {
        conn = apr_pcalloc(c->pool, sizeof(*conn));
        ap_set_module_config(c->conn_config, &reqprof_module, conn);
    }
    return conn;
}

static void use_tally(rp_tally_t *tally, rp_tally_entry_t *entries)
{
    tally->entries = entries;
    tally->touched = (apr_uint16_t *)(entries + rp_here.segment->span_max);
    tally->touched_count = 0;
}

/* With all slots taken: private memory of the connection, used again by its later requests. */
static rp_request_t *request_in_pool(rp_conn_t *conn, apr_pool_t *pool)
{
    rp_request_t *request = conn->spare;

    __atomic_fetch_add(&rp_here.child->pool_flights, 1, __ATOMIC_RELAXED);
    if (request) {
        conn->spare = request->older;
        return request;
    }
    request = apr_pcalloc(pool, sizeof(*request));
    request->stack.flight = apr_pcalloc(pool, sizeof(*request->stack.flight));
    use_tally(&request->stack.tally, apr_pcalloc(pool, (apr_size_t)rp_here.segment->tally_bytes));
    return request;
}

static rp_request_t *request_in_slot(rp_flight_t *flight)
{
    unsigned index = rp_flight_index(rp_here.segment, rp_here.child, flight);
    rp_request_t *request = &rp_here.requests[index];

    if (!request->has_slot) {
        request->has_slot = 1;
        request->stack.flight = flight;
        use_tally(&request->stack.tally, rp_child_tally(rp_here.segment, rp_here.child, index));
    }
    return request;
}

static rp_request_t *begin_first(request_rec *r)
{
    rp_conn_t *conn = conn_of(r->connection);
    rp_flight_t *flight = rp_flight_take(rp_here.segment, rp_here.child);
    rp_request_t *request = flight ? request_in_slot(flight) : request_in_pool(conn, r->connection->pool);

    request->conn = conn;
    request->first = r;
    request->state = RP_REQUEST_READING;
    request->handler_done = 0;
    request->older = conn->live;
    conn->live = request;
    apr_pool_cleanup_register(r->pool, r, end_with_pool, apr_pool_cleanup_null);
    return request;
}

void rp_request_begin(request_rec *r)
{
    const request_rec *parent = r->main ? r->main : r->prev;
    rp_request_t *request = NULL;

    if (parent) {
        request = request_of(parent);
    }
    else if (rp_here.child && r->connection && r->connection->conn_config) {
        request = begin_first(r);
    }
    ap_set_module_config(r->request_config, &reqprof_module, request);
}

/*
 * When the request began, in ticks. r->request_time is cut to microseconds, so that the total is at least what %D says.
 */
static apr_uint64_t start_ticks(const request_rec *r, apr_uint64_t now)
{
    struct timespec ts;
    apr_int64_t elapsed_ns;
    apr_uint64_t elapsed;

    clock_gettime(CLOCK_REALTIME, &ts);
    elapsed_ns = (apr_int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec - r->request_time * 1000;
    if (elapsed_ns <= 0 || r->request_time == 0) {
        return now;
    }
    elapsed = rp_clock_ticks(&rp_here.segment->clock, (apr_uint64_t)elapsed_ns);
    return elapsed < now ? now - elapsed : now;
}

static void show_flight(rp_flight_t *flight, const request_rec *r)
{
    apr_cpystrn(flight->method, r->method ? r->method : "-", sizeof(flight->method));
    apr_cpystrn(flight->uri, r->uri ? r->uri : "-", sizeof(flight->uri));
    apr_cpystrn(flight->vhost, r->server->server_hostname ? r->server->server_hostname : "-", sizeof(flight->vhost));
    __atomic_store_n(&flight->serial, flight->serial + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&flight->state, RP_FLIGHT_RUNNING, __ATOMIC_RELEASE);
}

rp_request_t *rp_request_start(rp_request_t *request, const request_rec *r)
{
    apr_uint64_t now = rp_clock_now();

    if (request->state != RP_REQUEST_READING) {
        return NULL;
    }
    if (!rp_server_conf(r->server)->enabled) {
        end(request);
        return NULL;
    }
    rp_stack_start(&request->stack, start_ticks(r, now), now);
    show_flight(request->stack.flight, r);
    request->state = RP_REQUEST_RUNNING;
    return request;
}

apr_uint64_t rp_request_finish(rp_request_t *request)
{
    rp_stack_t *stack = &request->stack;
    const request_rec *last = request->first;
    apr_uint64_t now = rp_clock_now();
    apr_uint64_t busy;

    while (last->next) {
        last = last->next;
    }
    rp_stack_charge(stack, now);
    busy = stack->flight->last_ticks - stack->flight->start_ticks - stack->tally.entries[RP_SPAN_READ].self_ticks
           - stack->tally.entries[RP_SPAN_DRAIN].self_ticks;
    rp_record(rp_here.segment, rp_here.child, &request->shard, &stack->tally,
              stack->flight->last_ticks - stack->flight->start_ticks, last->status);
    end(request);
    rp_life_sample_if_due(rp_here.segment, rp_here.child, now);
    return busy;
}

rp_frame_t rp_request_pause_newest(const rp_request_t *request)
{
    rp_request_t *newest = request->conn->live;
    int waits = newest != request && newest->state == RP_REQUEST_RUNNING && !rp_stack_is_on_ground(&newest->stack);

    return rp_frame_open(waits ? newest : NULL, RP_SPAN_OTHER);
}

void rp_request_ground(rp_request_t *request, unsigned span)
{
    if (request->stack.ground != span) {
        rp_stack_ground(&request->stack, span, rp_clock_now());
    }
}
