/**
 * @file stack.h
 * @brief The timer stack of one request: each nanosecond belongs to exactly one span.
 *
 * A transition gives the ticks since the last one to the span on top. The sum over all spans is therefore last - start,
 * always. span[0] of the flight is the ground: where time goes while no span is open. One thread at a time
 * works on a stack; nothing here fails or allocates.
 */
#ifndef RP_CAPTURE_STACK_H
#define RP_CAPTURE_STACK_H

#include "store/layout.h"
#include "store/record.h"

typedef struct {
    rp_flight_t *flight; /**< open spans, visible to other processes */
    rp_tally_t tally;
    apr_uint64_t start_ticks;
    apr_uint64_t last_ticks; /**< the last transition */
    unsigned top;            /**< the span that runs now */
    unsigned too_deep;       /**< spans not opened because RP_DEPTH_MAX were */
} rp_stack_t;

/** Give the time since the last transition to the span on top. A clock that went back gives nothing. */
static inline void rp_stack_charge(rp_stack_t *stack, apr_uint64_t now)
{
    if (now > stack->last_ticks) {
        stack->tally.entries[stack->top].self_ticks += now - stack->last_ticks;
        stack->last_ticks = now;
    }
}

static inline void rp_stack_set(rp_stack_t *stack, unsigned depth, unsigned span, apr_uint64_t now)
{
    rp_flight_t *flight = stack->flight;

    flight->entered_ticks[depth] = now;
    flight->span[depth] = (apr_uint16_t)span;
    flight->depth = depth;
    stack->top = span;
}

/** Open a span. @return the depth to hand to rp_stack_leave() */
static inline unsigned rp_stack_enter(rp_stack_t *stack, unsigned span, apr_uint64_t now)
{
    unsigned depth = stack->flight->depth;

    rp_stack_charge(stack, now);
    rp_tally_touch(&stack->tally, span)->calls++;
    if (depth + 1 < RP_DEPTH_MAX) {
        rp_stack_set(stack, depth + 1, span, now);
    }
    else {
        stack->too_deep++;
    }
    return depth;
}

/** Close the span opened at this depth, and all above it that were never closed. */
static inline void rp_stack_leave(rp_stack_t *stack, unsigned depth, apr_uint64_t now)
{
    rp_stack_charge(stack, now);
    stack->flight->depth = depth;
    stack->top = stack->flight->span[depth];
}

/** Let the time between spans go to another span from now on. */
static inline void rp_stack_ground(rp_stack_t *stack, unsigned span, apr_uint64_t now)
{
    rp_tally_entry_t *entry = rp_tally_touch(&stack->tally, span);

    if (stack->flight->depth == 0) {
        rp_stack_charge(stack, now);
        stack->top = span;
        stack->flight->entered_ticks[0] = now;
    }
    stack->flight->span[0] = (apr_uint16_t)span;
    entry->calls += !entry->calls;
}

/** Start the clock of a request that began at start_ticks: the time until now is `read`, from now on `other`. */
static inline void rp_stack_start(rp_stack_t *stack, apr_uint64_t start_ticks, apr_uint64_t now)
{
    stack->start_ticks = stack->last_ticks = start_ticks;
    rp_stack_set(stack, 0, RP_SPAN_READ, start_ticks);
    rp_tally_touch(&stack->tally, RP_SPAN_READ)->calls++;
    rp_stack_ground(stack, RP_SPAN_OTHER, now);
}

#endif
