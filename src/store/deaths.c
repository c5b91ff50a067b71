#include <apr_strings.h>
#include <apr_time.h>

#include "store/children.h"
#include "store/deaths.h"
#include "store/flights.h"

/* The memory of a process that died anywhere may hold anything: rp_flight_copy() makes it safe to read. */
static void describe(rp_death_t *death, rp_segment_t *segment, const rp_flight_copy_t *flight)
{
    death->age_ns = flight->age_ns;
    death->span_age_ns = flight->span_age_ns;
    death->span = *rp_segment_span(segment, flight->span);
    apr_cpystrn(death->method, flight->method, sizeof(death->method));
    apr_cpystrn(death->vhost, flight->vhost, sizeof(death->vhost));
    apr_cpystrn(death->uri, flight->uri, sizeof(death->uri));
}

static void begin(rp_death_t *death, const rp_segment_t *segment, pid_t pid)
{
    *death = (rp_death_t){.pid = (apr_uint32_t)pid, .epoch = segment->epoch, .time_us = apr_time_now()};
}

unsigned rp_deaths_witness(rp_death_t *list, unsigned max, rp_segment_t *segment, pid_t pid)
{
    rp_child_t *child = rp_child_of_pid(segment, pid);
    rp_flight_copy_t flight;
    unsigned filled = 0, lost = 0;

    if (!child || __atomic_load_n(&child->state, __ATOMIC_ACQUIRE) == RP_CHILD_ENDED) {
        return 0;
    }
    for (unsigned i = 0; i < segment->flight_max; i++) {
        if (rp_flight_copy(&flight, segment, rp_child_flight(segment, child, i))) {
            if (lost++ < max) {
                begin(&list[filled], segment, pid);
                describe(&list[filled++], segment, &flight);
            }
        }
    }
    if (!lost) {
        begin(&list[filled++], segment, pid);
    }
    for (unsigned i = 0; i < filled; i++) {
        list[i].lost = lost;
    }
    return filled;
}

void rp_deaths_add(rp_deaths_t *deaths, const rp_death_t *death)
{
    apr_uint32_t number = deaths->number + 1;
    rp_death_t *place = &deaths->ring[number % RP_DEATH_MAX];

    __atomic_store_n(&place->number, 0, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    *place = *death;
    place->number = 0;
    __atomic_store_n(&place->number, number, __ATOMIC_RELEASE);
    __atomic_store_n(&deaths->number, number, __ATOMIC_RELEASE);
}

unsigned rp_deaths_list(const rp_deaths_t *deaths, rp_death_t *list)
{
    apr_uint32_t newest = __atomic_load_n(&deaths->number, __ATOMIC_ACQUIRE);
    unsigned count = 0;

    for (apr_uint32_t number = newest; number && number + RP_DEATH_MAX > newest; number--) {
        const rp_death_t *place = &deaths->ring[number % RP_DEATH_MAX];
        apr_uint32_t before = __atomic_load_n(&place->number, __ATOMIC_ACQUIRE);

        list[count] = *place;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        count += before == number && __atomic_load_n(&place->number, __ATOMIC_RELAXED) == number;
    }
    return count;
}
