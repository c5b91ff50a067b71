/**
 * @file flights.h
 * @brief Reads requests that are being served, in any process, also in one that is dead.
 */
#ifndef RP_STORE_FLIGHTS_H
#define RP_STORE_FLIGHTS_H

#include <apr_pools.h>

#include "store/layout.h"

/** A running request as it was a moment ago. */
typedef struct {
    apr_uint32_t pid;
    apr_uint32_t epoch;
    const rp_span_t *span; /**< the span that runs now */
    apr_uint64_t span_age_ns;
    apr_uint64_t age_ns;
    const char *method;
    const char *uri;
    const char *vhost;
} rp_flight_view_t;

/** A running request, as it was at one moment; every text ends within its room, the span is in the table. */
typedef struct {
    unsigned span;
    apr_uint64_t age_ns;
    apr_uint64_t span_age_ns;
    char method[sizeof(((rp_flight_t *)0)->method)];
    char vhost[sizeof(((rp_flight_t *)0)->vhost)];
    char uri[sizeof(((rp_flight_t *)0)->uri)];
} rp_flight_copy_t;

/** @return 1, or 0 when the slot holds no running request or its request ended while it was read. Any process. */
int rp_flight_copy(rp_flight_copy_t *copy, rp_segment_t *segment, const rp_flight_t *flight);

/**
 * List what the children of all epochs that still serve are doing now.
 * @param segment the newest epoch's
 * @param child_pid 0 for all children, else the only one to look at
 * @param list set to the list, longest first; the memory is the pool's
 * @return how many. Any thread of any process.
 */
unsigned rp_flights_list(rp_flight_view_t **list, apr_pool_t *pool, rp_segment_t *segment, apr_uint32_t child_pid);

#endif
