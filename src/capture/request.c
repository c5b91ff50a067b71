#include <time.h>
#include <apr_strings.h>

#include "capture/request.h"
#include "capture/server_conf.h"
#include "store/children.h"

static struct {
    rp_segment_t *segment;
    rp_child_t *child;
    int logging_hooks;
} here;

void rp_request_child_init(rp_segment_t *segment, rp_child_t *child, int logging_hooks)
{
    here.segment = segment;
    here.child = child;
    here.logging_hooks = logging_hooks;
}

static rp_request_t *request_of(const request_rec *r)
{
    return r->request_config ? ap_get_module_config(r->request_config, &reqprof_module) : NULL;
}

/* True while the request is one of its connection's live ones: only then may its memory be read. */
static int is_live(const rp_conn_t *conn, const rp_request_t *request, apr_uint32_t serial)
{
    for (const rp_request_t *live = conn->live; live; live = live->older) {
        if (live == request) {
            return live->serial == serial;
        }
    }
    return 0;
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

/* Ends the request's life for every frame that is still open and for other processes. */
static void end(rp_request_t *request)
{
    request->state = RP_REQUEST_ENDED;
    unlink_from_connection(request);
    __atomic_store_n(&request->stack.flight->state, RP_FLIGHT_FREE, __ATOMIC_RELEASE);
    if (request->has_slot) {
        rp_flight_give(here.segment, here.child, request->stack.flight);
    }
}

/* A request whose logging never ran (a closed idle connection, a fake request of a module) is not counted. */
static apr_status_t end_with_pool(void *data)
{
    rp_request_t *request = data;

    if (request->state == RP_REQUEST_RUNNING && !here.logging_hooks) {
        rp_request_finish(request);
    }
    else if (request->state != RP_REQUEST_ENDED) {
        rp_tally_clear(&request->stack.tally);
        end(request);
    }
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
    tally->touched = (apr_uint16_t *)(entries + here.segment->span_max);
    tally->touched_count = 0;
}

/* The slot in shared memory, or private memory of the request when all slots are taken. */
static void use_flight(rp_request_t *request, apr_pool_t *pool)
{
    rp_stack_t *stack = &request->stack;

    stack->flight = rp_flight_take(here.segment, here.child);
    request->has_slot = stack->flight != NULL;
    if (request->has_slot) {
        use_tally(&stack->tally, rp_child_tally(here.segment, here.child,
                                                rp_flight_index(here.segment, here.child, stack->flight)));
        return;
    }
    stack->flight = apr_pcalloc(pool, sizeof(*stack->flight));
    use_tally(&stack->tally, apr_pcalloc(pool, (apr_size_t)here.segment->tally_bytes));
    __atomic_fetch_add(&here.child->pool_flights, 1, __ATOMIC_RELAXED);
}

static rp_request_t *begin_first(request_rec *r)
{
    rp_request_t *request = apr_palloc(r->pool, sizeof(*request));

    use_flight(request, r->pool);
    request->stack.too_deep = 0;
    request->stack.flight->depth = 0;
    request->conn = conn_of(r->connection);
    request->first = r;
    request->serial = ++request->conn->serial;
    request->state = RP_REQUEST_READING;
    request->handler_done = 0;
    request->older = request->conn->live;
    request->conn->live = request;
    apr_pool_cleanup_register(r->pool, request, end_with_pool, apr_pool_cleanup_null);
    return request;
}

void rp_request_begin(request_rec *r)
{
    const request_rec *parent = r->main ? r->main : r->prev;
    rp_request_t *request = NULL;

    if (parent) {
        request = request_of(parent);
    }
    else if (here.child && r->connection && r->connection->conn_config) {
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
    elapsed = rp_clock_ticks(&here.segment->clock, (apr_uint64_t)elapsed_ns);
    return elapsed < now ? now - elapsed : now;
}

static void show_flight(rp_flight_t *flight, const request_rec *r, apr_uint64_t start)
{
    apr_cpystrn(flight->method, r->method ? r->method : "-", sizeof(flight->method));
    apr_cpystrn(flight->uri, r->uri ? r->uri : "-", sizeof(flight->uri));
    apr_cpystrn(flight->vhost, r->server->server_hostname ? r->server->server_hostname : "-", sizeof(flight->vhost));
    flight->start_ticks = start;
    __atomic_store_n(&flight->serial, flight->serial + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&flight->state, RP_FLIGHT_RUNNING, __ATOMIC_RELEASE);
}

static rp_request_t *start(rp_request_t *request, const request_rec *r)
{
    apr_uint64_t now = rp_clock_now();
    apr_uint64_t began = start_ticks(r, now);

    if (!rp_server_conf(r->server)->enabled) {
        end(request);
        return NULL;
    }
    rp_stack_start(&request->stack, began, now);
    show_flight(request->stack.flight, r, began);
    request->state = RP_REQUEST_RUNNING;
    return request;
}

rp_request_t *rp_request_started(request_rec *r)
{
    rp_request_t *request = request_of(r);

    if (!request || request->state == RP_REQUEST_RUNNING) {
        return request;
    }
    return request->state == RP_REQUEST_READING ? start(request, r) : NULL;
}

rp_request_t *rp_request_of_connection(conn_rec *c)
{
    rp_conn_t *conn = c->conn_config ? ap_get_module_config(c->conn_config, &reqprof_module) : NULL;

    return conn && conn->live && conn->live->state == RP_REQUEST_RUNNING ? conn->live : NULL;
}

void rp_request_finish(rp_request_t *request)
{
    rp_stack_t *stack = &request->stack;
    const request_rec *last = request->first;
    unsigned hint = request->has_slot ? rp_flight_index(here.segment, here.child, stack->flight) : 0;

    while (last->next) {
        last = last->next;
    }
    rp_stack_charge(stack, rp_clock_now());
    rp_record(here.segment, here.child, hint, &stack->tally, stack->last_ticks - stack->start_ticks, last->status);
    if (stack->too_deep) {
        __atomic_fetch_add(&here.child->deep_frames, stack->too_deep, __ATOMIC_RELAXED);
    }
    end(request);
}

/* A span of an older request opens while the newest one's is open on this thread: the newest waits, in `other`. */
static void pause_newest(rp_frame_t *frame, apr_uint64_t now)
{
    rp_request_t *newest = frame->conn->live;

    if (newest != frame->request && newest->state == RP_REQUEST_RUNNING && newest->stack.flight->depth > 0) {
        frame->paused = newest;
        frame->paused_serial = newest->serial;
        frame->paused_depth = rp_stack_enter(&newest->stack, RP_SPAN_OTHER, now);
    }
}

void rp_frame_open(rp_frame_t *frame, rp_request_t *request, unsigned span)
{
    apr_uint64_t now;

    if (!request || span == RP_SPAN_NONE) {
        frame->request = NULL;
        return;
    }
    now = rp_clock_now();
    frame->request = request;
    frame->conn = request->conn;
    frame->serial = request->serial;
    frame->paused = NULL;
    pause_newest(frame, now);
    frame->depth = rp_stack_enter(&request->stack, span, now);
}

rp_request_t *rp_frame_close(rp_frame_t *frame)
{
    rp_request_t *request = frame->request;
    apr_uint64_t now;

    if (!request) {
        return NULL;
    }
    now = rp_clock_now();
    if (frame->paused && is_live(frame->conn, frame->paused, frame->paused_serial)) {
        rp_stack_leave(&frame->paused->stack, frame->paused_depth, now);
    }
    if (!is_live(frame->conn, request, frame->serial)) {
        return NULL;
    }
    rp_stack_leave(&request->stack, frame->depth, now);
    return request;
}

void rp_request_ground(rp_request_t *request, unsigned span)
{
    if (request->stack.flight->span[0] != span) {
        rp_stack_ground(&request->stack, span, rp_clock_now());
    }
}
