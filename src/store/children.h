/**
 * @file children.h
 * @brief The parts of the children: claimed at start, given back at exit, kept in the sums when a child has gone.
 */
#ifndef RP_STORE_CHILDREN_H
#define RP_STORE_CHILDREN_H

#include <sys/types.h>

#include "store/layout.h"

/** Claim a free part for this process. @return the part, or NULL when none is free. child_init. */
rp_child_t *rp_child_claim(rp_segment_t *segment);

/** Mark the part as left in order. Takes no lock: it may run in a signal handler. The child, at exit. */
void rp_child_release(rp_child_t *child);

/** @return the part that a process has claimed, or NULL. Any process. */
rp_child_t *rp_child_of_pid(rp_segment_t *segment, pid_t pid);

/**
 * Add a departed child's counters to the sums of the departed and free its part. A pid without a part is ignored.
 * A child that has not released its part died: its running requests are counted as lost.
 * The parent only (child_status), so there is one such writer.
 */
void rp_child_fold(rp_segment_t *segment, pid_t pid);

/**
 * Take a slot for a running request.
 * @return NULL when all are taken. Any thread of the child; lock-free.
 */
rp_flight_t *rp_flight_take(const rp_segment_t *segment, rp_child_t *child);

/** Give the slot back. Any thread of the child; lock-free. */
void rp_flight_give(const rp_segment_t *segment, rp_child_t *child, rp_flight_t *flight);

/** @return the slot's index in its child */
unsigned rp_flight_index(const rp_segment_t *segment, rp_child_t *child, const rp_flight_t *flight);

#endif
