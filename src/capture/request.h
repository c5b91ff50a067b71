/**
 * @file request.h
 * @brief The timer stack of a request_rec: begun in create_request, shared by its subrequests and internal redirects,
 *        ended after its logging or with its pool.
 */
#ifndef RP_CAPTURE_REQUEST_H
#define RP_CAPTURE_REQUEST_H

#include <httpd.h>
#include <http_config.h>

#include "capture/stack.h"

typedef struct rp_request_t rp_request_t;

/** A connection's requests that have not ended: with pipelining there are several, newest first. */
typedef struct {
    rp_request_t *live;
    rp_request_t *spare; /**< those made in the connection's pool when the child's slots ran out, for use again */
} rp_conn_t;

typedef enum {
    RP_REQUEST_READING, /**< the header is not complete: nothing is measured yet */
    RP_REQUEST_RUNNING,
    RP_REQUEST_ENDED
} rp_request_state_t;

/** Kept as long as its connection, or the child: a frame may look at it after the request has ended. */
struct rp_request_t {
    rp_stack_t stack;
    apr_uint32_t serial; /**< changes when the request ends: an open frame knows by it */
    rp_request_state_t state;
    rp_conn_t *conn;
    rp_request_t *older; /**< next in the connection's list */
    request_rec *first;  /**< the request as the client sent it */
    unsigned shard;      /**< where the slot's last request was counted */
    int handler_done;    /**< the content is made; what is left is sending it */
    int has_slot;        /**< the flight is in shared memory, not in the connection's pool */
};

/**
 * One open span, on the C stack of the function that opened it. It may outlive its request: the last frames of a
 * request are still open when its pool is destroyed.
 */
typedef struct {
    rp_request_t *request; /**< NULL: nothing was opened */
    apr_uint32_t serial;
    unsigned below;
} rp_frame_t;

/** The index of the module's slot in httpd's vectors, and where this child counts. */
typedef struct {
    rp_segment_t *segment;
    rp_child_t *child; /**< NULL: nothing is measured */
    rp_request_t *requests; /**< one for each flight */
    int slot_index;
    int logging_hooks;
} rp_here_t;

extern rp_here_t rp_here;

/** Before any function below: also for a child that measures nothing. In pre_config. */
void rp_request_init(void);

/** Set for a child before it serves. */
void rp_request_child_init(apr_pool_t *pchild, rp_segment_t *segment, rp_child_t *child, int logging_hooks);

/** Hang a stack on a new request_rec, or the main request's on a subrequest. In create_request. Never fails. */
void rp_request_begin(request_rec *r);

/** Start the clock of a request whose header has been read. @return NULL when it is not to be measured */
rp_request_t *rp_request_start(rp_request_t *request, const request_rec *r);

/** @return the stack of r, started if its header has been read; NULL when r is not measured */
static inline rp_request_t *rp_request_started(request_rec *r)
{
    rp_request_t *request = r->request_config ? ((rp_request_t **)r->request_config)[rp_here.slot_index] : NULL;

    if (__builtin_expect(request && request->state != RP_REQUEST_RUNNING, 0)) {
        return rp_request_start(request, r);
    }
    return request;
}

/** @return the running request that a connection's filters work for now; NULL when there is none */
static inline rp_request_t *rp_request_of_connection(conn_rec *c)
{
    rp_conn_t *conn = c->conn_config ? ((rp_conn_t **)c->conn_config)[rp_here.slot_index] : NULL;

    return conn && conn->live && conn->live->state == RP_REQUEST_RUNNING ? conn->live : NULL;
}

/**
 * Count the request and give its slot back. After the last logging hook.
 * @return for how many ticks it kept a thread busy: its total without reading the header and draining
 */
apr_uint64_t rp_request_finish(rp_request_t *request);

/** Open a span. A NULL request or RP_SPAN_NONE opens nothing. */
static inline rp_frame_t rp_frame_open(rp_request_t *request, unsigned span)
{
    rp_frame_t frame = {NULL, 0, 0};

    if (request && __builtin_expect(span != RP_SPAN_NONE, 1)) {
        frame.request = request;
        frame.serial = request->serial;
        frame.below = rp_stack_enter(&request->stack, span, rp_clock_now());
    }
    return frame;
}

/** @return 1 when something was opened and the request has not ended meanwhile */
static inline int rp_frame_is_open(rp_frame_t frame)
{
    return frame.request && frame.request->serial == frame.serial;
}

/** Close it; does nothing when the request has ended meanwhile. @return the request while it runs, else NULL */
static inline rp_request_t *rp_frame_close(rp_frame_t frame)
{
    if (!rp_frame_is_open(frame)) {
        return NULL;
    }
    rp_stack_leave(&frame.request->stack, frame.below, rp_clock_now());
    return frame.request;
}

/** Close it before another span that opens at once: see rp_stack_leave_lazily(). */
static inline void rp_frame_close_lazily(rp_frame_t frame)
{
    if (rp_frame_is_open(frame)) {
        rp_stack_leave_lazily(&frame.request->stack, frame.below);
    }
}

/** @return 1 when a frame just closed was the only open one of its running request */
static inline int rp_frame_was_lowest(rp_frame_t frame)
{
    return frame.below == frame.request->stack.ground;
}

/**
 * An older request of a connection is worked on while the newest one's span is open on this thread: the newest waits,
 * in `other`, until this frame is closed. @return nothing opened when the request is the newest itself
 */
rp_frame_t rp_request_pause_newest(const rp_request_t *request);

/** Let the time between spans go to this span from now on: after a handler that is suspended, and while draining. */
void rp_request_ground(rp_request_t *request, unsigned span);

#endif
