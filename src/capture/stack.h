/**
 * @file stack.h
 * @brief The timer stack of one request: each nanosecond belongs to exactly one span.
 *
 * A transition gives the ticks since the last one to the span that is charged. The sum over all spans is therefore
 * last - start, always. The stack itself is the C stack: who opens a span keeps the one below it and
 * hands it back. Below all lies the ground, a span that takes the time while no other is open. One
 * thread at a time works on a stack; nothing here fails or allocates.
 */
#ifndef RP_CAPTURE_STACK_H
#define RP_CAPTURE_STACK_H

#include "store/layout.h"
#include "store/record.h"

typedef struct {
    rp_flight_t *flight;       /**< the open span and the last transition, visible to other processes */
    rp_tally_entry_t *charged; /**< whose time runs: the open span's, or after a lazy leave still the last one's */
    rp_tally_t tally;
    unsigned ground; /**< RP_SPAN_OTHER, RP_SPAN_DRAIN, or a suspended handler's span */
} rp_stack_t;

/** Give the time since the last transition to the charged span. A clock that went back gives nothing. */
static inline void rp_stack_charge(rp_stack_t *stack, apr_uint64_t now)
{
    rp_flight_t *flight = stack->flight;
    apr_uint64_t last = flight->last_ticks;

    if (__builtin_expect(now > last, 1)) {
        stack->charged->self_ticks += now - last;
        flight->last_ticks = now;
    }
}

/** Open a span. @return the span below it, to hand to rp_stack_leave() */
static inline unsigned rp_stack_enter(rp_stack_t *stack, unsigned span, apr_uint64_t now)
{
    rp_flight_t *flight = stack->flight;
    unsigned below = flight->span;
    rp_tally_entry_t *entry = rp_tally_touch(&stack->tally, span);

    entry->calls++;
    rp_stack_charge(stack, now);
    stack->charged = entry;
    flight->span = (apr_uint16_t)span;
    return below;
}

/** Close the span that was opened above `below`, and all above it that were never closed. */
static inline void rp_stack_leave(rp_stack_t *stack, unsigned below, apr_uint64_t now)
{
    rp_stack_charge(stack, now);
    stack->charged = &stack->tally.entries[below];
    stack->flight->span = (apr_uint16_t)below;
}

/**
 * Close a span that another will follow at once: the clock is read only then, and the few instructions
 * between the two are the first one's.
 */
static inline void rp_stack_leave_lazily(rp_stack_t *stack, unsigned below)
{
    stack->flight->span = (apr_uint16_t)below;
}

/** @return 1 when no span is open */
static inline int rp_stack_is_on_ground(const rp_stack_t *stack)
{
    return stack->flight->span == stack->ground;
}

/** Let the time between spans go to another span from now on. On the ground only. */
static inline void rp_stack_ground(rp_stack_t *stack, unsigned span, apr_uint64_t now)
{
    rp_stack_charge(stack, now);
    stack->charged = rp_tally_touch(&stack->tally, span);
    stack->charged->calls += !stack->charged->calls;
    stack->flight->span = (apr_uint16_t)span;
    stack->ground = span;
}

/** Start the clock of a request that began at start_ticks: the time until now is `read`, from now on `other`. */
static inline void rp_stack_start(rp_stack_t *stack, apr_uint64_t start_ticks, apr_uint64_t now)
{
    stack->flight->start_ticks = stack->flight->last_ticks = start_ticks;
    stack->charged = rp_tally_touch(&stack->tally, RP_SPAN_READ);
    stack->charged->calls++;
    rp_stack_ground(stack, RP_SPAN_OTHER, now);
}

#endif
