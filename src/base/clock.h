/**
 * @file clock.h
 * @brief The clock of every measurement: ticks, as cheap as the machine allows.
 *
 * A tick is one count of the time stamp counter where the kernel itself uses that counter as its clock source and has
 * found it invariant (its rate is constant and it does not stop), else one nanosecond of CLOCK_MONOTONIC.
 * Ticks are stored as read; a reader converts them with the clock's description, once.
 */
#ifndef RP_BASE_CLOCK_H
#define RP_BASE_CLOCK_H

#include <apr.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

typedef enum {
    RP_CLOCK_AUTO,
    RP_CLOCK_TSC,
    RP_CLOCK_MONOTONIC
} rp_clock_source_t;

/** A calibrated clock. Plain data: it is copied into shared memory and outlives restarts. */
typedef struct {
    apr_uint32_t source;      /**< RP_CLOCK_TSC or RP_CLOCK_MONOTONIC, never AUTO */
    apr_uint32_t read_ticks;  /**< what one reading costs, in ticks (the fastest of many) */
    double ns_per_tick;
} rp_clock_t;

/** True while rp_clock_now() reads the time stamp counter. Set by rp_clock_use(), before threads start. */
extern int rp_clock_is_tsc;

/** @return 1 when the time stamp counter can be used: x86-64, invariant, and the kernel's own clock source. */
int rp_clock_tsc_usable(void);

/**
 * Choose and calibrate a clock. Takes about 50 ms for the time stamp counter.
 * @param wanted AUTO takes the counter where it is usable
 * @return 1, or 0 when the counter was asked for by name and is not usable; *clock is then CLOCK_MONOTONIC
 */
int rp_clock_calibrate(rp_clock_t *clock, rp_clock_source_t wanted);

/** Make rp_clock_now() read the given clock. Call it before the process has other threads. */
void rp_clock_use(const rp_clock_t *clock);

/** @return "tsc" or "monotonic" */
const char *rp_clock_name(const rp_clock_t *clock);

/** @return nanoseconds of CLOCK_MONOTONIC. Not inline: its stack frame would burden every caller. */
apr_uint64_t rp_clock_monotonic_ns(void);

/** @return the time now in ticks. Any thread; never fails. */
static inline apr_uint64_t rp_clock_now(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(rp_clock_is_tsc, 1)) {
        return __rdtsc();
    }
#endif
    return rp_clock_monotonic_ns();
}

/** @return ticks as nanoseconds, rounded down */
static inline apr_uint64_t rp_clock_ns(const rp_clock_t *clock, apr_uint64_t ticks)
{
    return clock->source == RP_CLOCK_MONOTONIC ? ticks : (apr_uint64_t)((double)ticks * clock->ns_per_tick);
}

/** @return nanoseconds as ticks, rounded down */
static inline apr_uint64_t rp_clock_ticks(const rp_clock_t *clock, apr_uint64_t ns)
{
    return clock->source == RP_CLOCK_MONOTONIC ? ns : (apr_uint64_t)((double)ns / clock->ns_per_tick);
}

#endif
