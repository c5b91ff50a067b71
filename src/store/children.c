#include <string.h>
#include <unistd.h>
#include <apr_time.h>

#include "store/children.h"
#include "store/shard.h"

static void link_flights(rp_segment_t *segment, rp_child_t *child)
{
    for (unsigned i = 0; i < segment->flight_max; i++) {
        rp_flight_t *flight = rp_child_flight(segment, child, i);
        flight->state = RP_FLIGHT_FREE;
        flight->next_free = i + 1 < segment->flight_max ? i + 2 : 0;
    }
    child->free_flights = 1;
}

rp_child_t *rp_child_claim(rp_segment_t *segment)
{
    for (unsigned i = 0; i < segment->child_max; i++) {
        rp_child_t *child = rp_segment_child(segment, i);
        apr_uint32_t expected = 0;

        /* The pid is the claim: a child that dies right after it can still be found and folded. */
        if (__atomic_compare_exchange_n(&child->pid, &expected, (apr_uint32_t)getpid(), 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            child->started_us = apr_time_now();
            link_flights(segment, child);
            __atomic_store_n(&child->state, RP_CHILD_LIVE, __ATOMIC_RELEASE);
            return child;
        }
    }
    return NULL;
}

void rp_child_release(rp_child_t *child)
{
    __atomic_store_n(&child->state, RP_CHILD_ENDED, __ATOMIC_RELEASE);
}

rp_child_t *rp_child_of_pid(rp_segment_t *segment, pid_t pid)
{
    for (unsigned i = 0; i < segment->child_max; i++) {
        rp_child_t *child = rp_segment_child(segment, i);
        if (child->pid == (apr_uint32_t)pid) {
            return child;
        }
    }
    return NULL;
}

static void move_shard(const rp_segment_t *segment, rp_shard_t *into, rp_shard_t *from)
{
    rp_shard_add(into, from, segment->span_count);
    rp_shard_clear(from, segment->span_count);
    from->sequence = 0;
}

/*
 * A child that ended in order has finished its requests; those of one that died are lost with it.
 * Slots that were never used are not touched.
 */
static unsigned clear_flights(rp_segment_t *segment, rp_child_t *child)
{
    unsigned running = 0;

    for (unsigned i = 0; i < segment->flight_max; i++) {
        rp_flight_t *flight = rp_child_flight(segment, child, i);
        if (flight->serial) {
            running += flight->state == RP_FLIGHT_RUNNING;
            flight->state = RP_FLIGHT_FREE;
            memset(rp_child_tally(segment, child, i), 0, (size_t)segment->tally_bytes);
        }
    }
    return running;
}

static void move_life(rp_life_t *into, rp_life_t *from)
{
    into->connections += from->connections;
    into->cpu_user_us += from->cpu_user_us;
    into->cpu_system_us += from->cpu_system_us;
    memset(from, 0, sizeof(*from));
}

void rp_child_fold(rp_segment_t *segment, pid_t pid)
{
    rp_child_t *child = rp_child_of_pid(segment, pid);
    rp_shard_t *departed = rp_child_shard(segment, rp_segment_child(segment, segment->child_max), 0);

    if (!child) {
        return;
    }
    __atomic_add_fetch(&segment->fold_sequence, 1, __ATOMIC_SEQ_CST);
    segment->lost_flights += clear_flights(segment, child);
    for (unsigned i = 0; i < segment->shard_count; i++) {
        rp_shard_t *shard = rp_child_shard(segment, child, i);
        segment->damaged_flights += shard->sequence & 1;
        move_shard(segment, departed, shard);
    }
    move_life(rp_child_life(segment, rp_segment_child(segment, segment->child_max)), rp_child_life(segment, child));
    segment->departed_dropped_busy += child->dropped_busy;
    segment->departed_flights_dropped += child->pool_flights;
    memset((char *)child + sizeof(child->state) + sizeof(child->pid), 0,
           sizeof(*child) - sizeof(child->state) - sizeof(child->pid));
    child->state = RP_CHILD_FREE;
    __atomic_add_fetch(&segment->fold_sequence, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&child->pid, 0, __ATOMIC_RELEASE);
}

/* The list's head carries a count of its changes, so that a slot that left and came back is not mistaken for itself. */
static apr_uint64_t changed_head(apr_uint64_t head, apr_uint32_t first)
{
    return ((head >> 32) + 1) << 32 | first;
}

rp_flight_t *rp_flight_take(const rp_segment_t *segment, rp_child_t *child)
{
    apr_uint64_t head = __atomic_load_n(&child->free_flights, __ATOMIC_ACQUIRE);

    while ((apr_uint32_t)head) {
        rp_flight_t *flight = rp_child_flight(segment, child, (apr_uint32_t)head - 1);
        apr_uint32_t next = __atomic_load_n(&flight->next_free, __ATOMIC_RELAXED);

        if (__atomic_compare_exchange_n(&child->free_flights, &head, changed_head(head, next), 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            return flight;
        }
    }
    return NULL;
}

void rp_flight_give(const rp_segment_t *segment, rp_child_t *child, rp_flight_t *flight)
{
    apr_uint64_t head = __atomic_load_n(&child->free_flights, __ATOMIC_ACQUIRE);
    apr_uint32_t place = rp_flight_index(segment, child, flight) + 1;

    do {
        __atomic_store_n(&flight->next_free, (apr_uint32_t)head, __ATOMIC_RELAXED);
    } while (!__atomic_compare_exchange_n(&child->free_flights, &head, changed_head(head, place), 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
}

unsigned rp_flight_index(const rp_segment_t *segment, rp_child_t *child, const rp_flight_t *flight)
{
    return (unsigned)(flight - rp_child_flight(segment, child, 0));
}
