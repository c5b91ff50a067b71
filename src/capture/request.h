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
    apr_uint32_t serial; /**< of the newest; tells a request from a later one at the same address */
} rp_conn_t;

typedef enum {
    RP_REQUEST_READING, /**< the header is not complete: nothing is measured yet */
    RP_REQUEST_RUNNING,
    RP_REQUEST_ENDED
} rp_request_state_t;

struct rp_request_t {
    rp_stack_t stack;
    rp_conn_t *conn;
    rp_request_t *older;
    request_rec *first; /**< the request as the client sent it */
    apr_uint32_t serial;
    rp_request_state_t state;
    int handler_done; /**< the content is made; what is left is sending it */
    int has_slot;     /**< the flight is in shared memory, not in the request's pool */
};

/**
 * One open span, on the C stack of the function that opened it. It may outlive its request: the last frames of a
 * request are still open when its pool is destroyed.
 */
typedef struct {
    rp_request_t *request; /**< NULL: nothing was opened */
    rp_request_t *paused;  /**< a newer request of the connection whose span was open on this thread */
    rp_conn_t *conn;
    apr_uint32_t serial;
    apr_uint32_t paused_serial;
    unsigned depth;
    unsigned paused_depth;
} rp_frame_t;

/** Set for a child before it serves: where its requests are counted. NULL segment or child: nothing is measured. */
void rp_request_child_init(rp_segment_t *segment, rp_child_t *child, int logging_hooks);

/** Hang a stack on a new request_rec, or the main request's on a subrequest. In create_request. Never fails. */
void rp_request_begin(request_rec *r);

/** @return the stack of r, started if its header has been read; NULL when r is not measured */
rp_request_t *rp_request_started(request_rec *r);

/** @return the running request that a connection's filters work for now; NULL when there is none */
rp_request_t *rp_request_of_connection(conn_rec *c);

/** Count the request and give its slot back. After the last logging hook. */
void rp_request_finish(rp_request_t *request);

/** Open a span. A NULL request or RP_SPAN_NONE opens nothing. */
void rp_frame_open(rp_frame_t *frame, rp_request_t *request, unsigned span);

/** Close it; does nothing when the request has ended meanwhile. @return the request while it runs, else NULL */
rp_request_t *rp_frame_close(rp_frame_t *frame);

/** Let the time between spans go to this span from now on: after a handler that is suspended, and while draining. */
void rp_request_ground(rp_request_t *request, unsigned span);

#endif
