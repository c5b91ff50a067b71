#include <math.h>
#include <string.h>

#include "base/growth.h"

#define PARTS_MAX 12
#define PARTS_MIN 5
/* Less than this is what allocators and page tables do by themselves. */
#define NOISE_BYTES (512.0 * 1024)
#define NOISE_SHARE 0.02
#define STEP_BYTES (1024.0 * 1024)

static const char *const names[] = {"unknown", "plateau", "step", "growing"};

const char *rp_growth_name(rp_growth_word_t word)
{
    return names[word];
}

/* The 97.5 % quantile of Student's t by degrees of freedom (Fisher and Yates). */
static double t_quantile(unsigned df)
{
    static const double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201};

    return table[df - 1];
}

/* A copy of the points that can lose a step. */
typedef struct {
    double requests[RP_GROWTH_ROOM];
    double bytes[RP_GROWTH_ROOM];
    unsigned count;
} way_t;

/* Without the first tenth of the requests, but never without so much that too little is left. */
static void take_way(way_t *way, const rp_growth_point_t *points, unsigned count)
{
    apr_uint64_t warm = points[0].requests + (points[count - 1].requests - points[0].requests) / 10;
    unsigned first = 0;

    while (first + PARTS_MIN + 1 < count && points[first].requests < warm) {
        first++;
    }
    *way = (way_t){.count = count - first};
    for (unsigned i = 0; i < way->count; i++) {
        way->requests[i] = (double)points[first + i].requests;
        way->bytes[i] = (double)points[first + i].bytes;
    }
}

static double at(const way_t *way, double requests)
{
    unsigned i = 1;

    while (i + 1 < way->count && way->requests[i] < requests) {
        i++;
    }
    if (way->requests[i] <= way->requests[i - 1]) {
        return way->bytes[i];
    }
    return way->bytes[i - 1]
           + (way->bytes[i] - way->bytes[i - 1]) * (requests - way->requests[i - 1])
                 / (way->requests[i] - way->requests[i - 1]);
}

static double length(const way_t *way)
{
    return way->requests[way->count - 1] - way->requests[0];
}

static double rise(const way_t *way)
{
    return way->bytes[way->count - 1] - way->bytes[0];
}

/* Fills the slope and its interval. @return the growth of the last third of the way */
static double estimate_slope(rp_growth_t *growth, const way_t *way)
{
    unsigned parts = way->count - 1 < PARTS_MAX ? way->count - 1 : PARTS_MAX;
    double width = length(way) / parts, sum = 0, squares = 0, half;

    for (unsigned i = 0; i < parts; i++) {
        double from = way->requests[0] + width * i;
        double slope = (at(way, from + width) - at(way, from)) / width;

        sum += slope;
        squares += slope * slope;
    }
    growth->bytes_per_request = sum / parts;
    half = t_quantile(parts - 1) * sqrt(fmax(0, (squares - sum * sum / parts) / (parts - 1)) / parts);
    growth->low = growth->bytes_per_request - half;
    growth->high = growth->bytes_per_request + half;
    return way->bytes[way->count - 1] - at(way, way->requests[0] + length(way) * 2 / 3);
}

static int is_above_noise(const way_t *way)
{
    return rise(way) > NOISE_BYTES && rise(way) > NOISE_SHARE * way->bytes[0];
}

/* @return the place behind the largest jump between neighbours, when it makes up most of the growth; 0 for none */
static unsigned find_step(const way_t *way)
{
    unsigned largest = 1;
    double jump;

    for (unsigned i = 2; i < way->count; i++) {
        if (way->bytes[i] - way->bytes[i - 1] > way->bytes[largest] - way->bytes[largest - 1]) {
            largest = i;
        }
    }
    jump = way->bytes[largest] - way->bytes[largest - 1];
    /* A part with a third of all requests may well have most of the growth. */
    return jump > STEP_BYTES && jump > 0.6 * rise(way)
                   && way->requests[largest] - way->requests[largest - 1] < length(way) / 3
               ? largest : 0;
}

static apr_uint64_t remove_step(way_t *way, unsigned place)
{
    double height = way->bytes[place] - way->bytes[place - 1];

    for (unsigned i = place; i < way->count; i++) {
        way->bytes[i] -= height;
    }
    return (apr_uint64_t)height;
}

/* Growth that goes on: in the whole, and in the last third at not much less than the whole's pace. */
static int goes_on(const rp_growth_t *growth, const way_t *way, double last_third)
{
    return is_above_noise(way) && growth->low > 0 && last_third > rise(way) / 8;
}

void rp_growth_estimate(rp_growth_t *growth, const rp_growth_point_t *points, unsigned count)
{
    way_t way;
    unsigned step;
    double last_third;

    *growth = (rp_growth_t){0};
    if (count < RP_GROWTH_POINTS_MIN || points[count - 1].requests <= points[0].requests) {
        return;
    }
    take_way(&way, points, count < RP_GROWTH_ROOM ? count : RP_GROWTH_ROOM);
    if (length(&way) <= 0) {
        return;
    }
    step = find_step(&way);
    if (step) {
        growth->step_bytes = remove_step(&way, step);
    }
    last_third = estimate_slope(growth, &way);
    if (goes_on(growth, &way, last_third)) {
        growth->word = RP_GROWTH_GROWING;
        growth->low -= RP_GROWTH_BLOCK_OVERHEAD;
    }
    else {
        growth->word = step ? RP_GROWTH_STEP : RP_GROWTH_PLATEAU;
    }
}

static void thin_out(rp_growth_record_t *record)
{
    for (unsigned i = 0; i < RP_GROWTH_ROOM / 2; i++) {
        record->points[i] = record->points[2 * i + 1];
    }
    record->count = RP_GROWTH_ROOM / 2;
    record->stride = 2 * record->stride + 1;
}

void rp_growth_add(rp_growth_record_t *record, apr_uint64_t requests, apr_uint64_t bytes)
{
    if (record->skipped++ < record->stride) {
        return;
    }
    record->skipped = 0;
    if (record->count == RP_GROWTH_ROOM) {
        thin_out(record);
    }
    record->points[record->count++] = (rp_growth_point_t){requests, bytes};
}
