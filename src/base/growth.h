/**
 * @file growth.h
 * @brief Does a process's memory grow with its requests, or has it grown once, or not at all?
 *
 * The way from the first point to the last, less a tenth of its requests for warming up, is cut into parts of equally
 * many requests. The growth of each part is one observation; their mean is the slope, and Student's t gives its 95 %
 * confidence interval. Pure; any thread.
 */
#ifndef RP_BASE_GROWTH_H
#define RP_BASE_GROWTH_H

#include <apr.h>

typedef struct {
    apr_uint64_t requests; /**< served by the process so far; never falls from one point to the next */
    apr_uint64_t bytes;
} rp_growth_point_t;

typedef enum {
    RP_GROWTH_UNKNOWN, /**< fewer than RP_GROWTH_POINTS_MIN points */
    RP_GROWTH_PLATEAU, /**< nothing above the noise, or the growth has come to an end */
    RP_GROWTH_STEP,    /**< it grew at one moment, and not before or after */
    RP_GROWTH_GROWING  /**< each part of the way grew, the last third too */
} rp_growth_word_t;

#define RP_GROWTH_POINTS_MIN 8

/**
 * glibc's malloc adds 8 to 23 bytes to a block, which belong to the growth but not to what a module asked for. A
 * growing process's interval therefore reaches this much lower: one block a request.
 */
#define RP_GROWTH_BLOCK_OVERHEAD 24

typedef struct {
    rp_growth_word_t word;
    double bytes_per_request; /**< mean slope; of a step: what is left without it */
    double low, high;         /**< 95 % confidence interval of the slope */
    apr_uint64_t step_bytes;  /**< of a step: its height */
} rp_growth_t;

/** @param points in the order of time */
void rp_growth_estimate(rp_growth_t *growth, const rp_growth_point_t *points, unsigned count);

/** @return "unknown", "plateau", "step" or "growing" */
const char *rp_growth_name(rp_growth_word_t word);

/** A bounded record of a process's whole life: when it is full, every second point is dropped, and from then on. */
#define RP_GROWTH_ROOM 64

typedef struct {
    apr_uint32_t count;
    apr_uint32_t stride;  /**< offered points for each one kept, less 1 */
    apr_uint32_t skipped; /**< since the last one kept */
    apr_uint32_t spare;
    rp_growth_point_t points[RP_GROWTH_ROOM];
} rp_growth_record_t;

/** Offer a point; all-zero memory is an empty record. The caller keeps other writers away. */
void rp_growth_add(rp_growth_record_t *record, apr_uint64_t requests, apr_uint64_t bytes);

#endif
