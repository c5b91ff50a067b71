#include <stdlib.h>
#include <string.h>
#include <apr_strings.h>
#include <apr_tables.h>

#include "store/flights.h"
#include "store/segment.h"

static apr_uint64_t age_ns(const rp_segment_t *segment, apr_uint64_t now, apr_uint64_t since)
{
    return now > since ? rp_clock_ns(&segment->clock, now - since) : 0;
}

/* The span that runs, or httpd's own time where a torn or foreign value stands. */
static unsigned span_of(rp_segment_t *segment, unsigned span)
{
    return span < segment->span_max && rp_segment_span(segment, span)->ready ? span : RP_SPAN_OTHER;
}

static void copy_text(char *into, const char *from, apr_size_t bytes)
{
    memcpy(into, from, bytes);
    into[bytes - 1] = '\0';
}

int rp_flight_copy(rp_flight_copy_t *copy, rp_segment_t *segment, const rp_flight_t *flight)
{
    apr_uint64_t serial = __atomic_load_n(&flight->serial, __ATOMIC_ACQUIRE);
    apr_uint64_t now = rp_clock_now();

    if (__atomic_load_n(&flight->state, __ATOMIC_ACQUIRE) != RP_FLIGHT_RUNNING) {
        return 0;
    }
    copy->span = span_of(segment, flight->span);
    copy->span_age_ns = age_ns(segment, now, flight->last_ticks);
    copy->age_ns = age_ns(segment, now, flight->start_ticks);
    copy_text(copy->method, flight->method, sizeof(copy->method));
    copy_text(copy->vhost, flight->vhost, sizeof(copy->vhost));
    copy_text(copy->uri, flight->uri, sizeof(copy->uri));
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&flight->serial, __ATOMIC_RELAXED) == serial
           && __atomic_load_n(&flight->state, __ATOMIC_RELAXED) == RP_FLIGHT_RUNNING;
}

static void add_view(apr_array_header_t *views, rp_segment_t *segment, const rp_child_t *child,
                     const rp_flight_copy_t *flight)
{
    rp_flight_view_t *view = apr_array_push(views);

    view->pid = child->pid;
    view->epoch = segment->epoch;
    view->span = rp_segment_span(segment, flight->span);
    view->span_age_ns = flight->span_age_ns;
    view->age_ns = flight->age_ns;
    view->method = apr_pstrdup(views->pool, flight->method);
    view->uri = apr_pstrdup(views->pool, flight->uri);
    view->vhost = apr_pstrdup(views->pool, flight->vhost);
}

static void add_child(apr_array_header_t *views, rp_segment_t *segment, rp_child_t *child)
{
    rp_flight_copy_t flight;

    for (unsigned i = 0; i < segment->flight_max; i++) {
        if (rp_flight_copy(&flight, segment, rp_child_flight(segment, child, i))) {
            add_view(views, segment, child, &flight);
        }
    }
}

static void add_segment(apr_array_header_t *views, rp_segment_t *segment, apr_uint32_t child_pid)
{
    for (unsigned i = 0; i < segment->child_max; i++) {
        rp_child_t *child = rp_segment_child(segment, i);

        if (child->pid && (!child_pid || child->pid == child_pid)) {
            add_child(views, segment, child);
        }
    }
}

static int longest_first(const void *a, const void *b)
{
    const rp_flight_view_t *x = a, *y = b;

    return (x->age_ns < y->age_ns) - (x->age_ns > y->age_ns);
}

unsigned rp_flights_list(rp_flight_view_t **list, apr_pool_t *pool, rp_segment_t *segment, apr_uint32_t child_pid)
{
    apr_array_header_t *views = apr_array_make(pool, 16, sizeof(rp_flight_view_t));

    add_segment(views, segment, child_pid);
    for (unsigned i = 0; i < RP_SEGMENTS_KNOWN_MAX; i++) {
        rp_segment_t *older = rp_segment_known(i);
        if (older && older->epoch < segment->epoch) {
            add_segment(views, older, child_pid);
        }
    }
    qsort(views->elts, (size_t)views->nelts, (size_t)views->elt_size, longest_first);
    *list = (rp_flight_view_t *)views->elts;
    return (unsigned)views->nelts;
}
