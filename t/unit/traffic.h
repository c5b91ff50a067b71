/**
 * @file traffic.h
 * @brief Generated traffic with known truth, for the statistics' tests: every block of it follows from its seed.
 *
 * Request times are log-normal, a few from a Pareto tail. A block's requests share the machine's state of that second,
 * which wanders (AR(1)); an epoch's share an offset that its start fixed (memory layout, cache colour). Effects are
 * exact.
 */
#ifndef RP_TEST_TRAFFIC_H
#define RP_TEST_TRAFFIC_H

#include <math.h>
#include <string.h>

#include "base/stats.h"

#define TRAFFIC_BLOCKS_MAX 1200
#define TRAFFIC_PARTS 14

typedef struct {
    apr_uint64_t state;
} random_t;

/* splitmix64 (Steele, Lea, Flood 2014) */
static inline apr_uint64_t random_bits(random_t *random)
{
    apr_uint64_t z = (random->state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* in (0, 1) */
static inline double random_unit(random_t *random)
{
    return ((double)(random_bits(random) >> 11) + 0.5) / 9007199254740992.0;
}

static inline double random_normal(random_t *random)
{
    double radius = sqrt(-2 * log(random_unit(random)));

    return radius * cos(2 * M_PI * random_unit(random));
}

typedef struct {
    unsigned epochs, blocks_per_epoch;
    double requests_per_block;
    double mean_ns;
    double request_sigma; /* of the logarithm of one request's time */
    double block_sd;      /* relative; what all requests of a block share */
    double block_rho;     /* its correlation from block to block */
    double epoch_sd;      /* relative; what all blocks of an epoch share */
    double tail_share;    /* requests from a Pareto tail ... */
    double tail_shape;    /* ... of this shape, starting at the mean */
    double ratio;         /* true factor on every request */
    double shift_ns;      /* true addition to every request */
} traffic_t;

typedef struct {
    rp_stats_block_t blocks[TRAFFIC_BLOCKS_MAX];
    apr_uint64_t parts[TRAFFIC_BLOCKS_MAX][TRAFFIC_PARTS];
    apr_size_t count;
} traffic_side_t;

static inline double traffic_request(random_t *random, const traffic_t *traffic)
{
    double sigma = traffic->request_sigma;

    if (traffic->tail_share > 0 && random_unit(random) < traffic->tail_share) {
        return traffic->mean_ns * pow(random_unit(random), -1 / traffic->tail_shape);
    }
    return traffic->mean_ns * exp(sigma * random_normal(random) - sigma * sigma / 2);
}

/* All requests are alike in kind until a test says otherwise. */
static inline void traffic_mix(rp_stats_block_t *block)
{
    apr_uint32_t count = (apr_uint32_t)block->count;

    block->mix = (rp_stats_mix_t){.status = {0, count}, .keepalive = count - count / 10, .first = count / 10};
    block->mix.url[0] = count;
    block->mix.vhost[0] = count;
}

/* The time of a block's requests together. Of several hundred without a tail it is drawn at once, as the sum's normal.
 */
static inline double traffic_requests(random_t *random, const traffic_t *traffic, apr_uint64_t count)
{
    double sum_ns = 0, sigma = traffic->request_sigma;

    if (count >= 200 && traffic->tail_share == 0) {
        double sd_ns = traffic->mean_ns * sqrt((exp(sigma * sigma) - 1) * (double)count);
        return traffic->mean_ns * (double)count + sd_ns * random_normal(random);
    }
    for (apr_uint64_t i = 0; i < count; i++) {
        sum_ns += traffic_request(random, traffic);
    }
    return sum_ns;
}

static inline void traffic_block(rp_stats_block_t *block, random_t *random, const traffic_t *traffic, double factor)
{
    double wanted = traffic->requests_per_block * (1 + 0.1 * random_normal(random));

    memset(block, 0, sizeof(*block));
    block->count = wanted < 1 ? 1 : (apr_uint64_t)wanted;
    block->duration_ns = 1000000000;
    block->clients = 20;
    block->sum_ns = (apr_uint64_t)(traffic_requests(random, traffic, block->count) * traffic->ratio * factor +
                                   traffic->shift_ns * (double)block->count);
    traffic_mix(block);
}

static inline void traffic_generate(traffic_side_t *side, random_t *random, const traffic_t *traffic)
{
    double noise = random_normal(random), step = sqrt(1 - traffic->block_rho * traffic->block_rho);

    side->count = 0;
    for (unsigned e = 0; e < traffic->epochs; e++) {
        double offset = traffic->epoch_sd * random_normal(random);
        for (unsigned i = 0; i < traffic->blocks_per_epoch; i++) {
            rp_stats_block_t *block = &side->blocks[side->count++];
            noise = traffic->block_rho * noise + step * random_normal(random);
            traffic_block(block, random, traffic, (1 + offset) * exp(traffic->block_sd * noise));
            block->epoch = e;
        }
    }
}

/* A machine slower by a factor for a while. */
static inline void traffic_slow_down(traffic_side_t *side, apr_size_t from, apr_size_t to, double factor)
{
    for (apr_size_t i = from; i < to && i < side->count; i++) {
        side->blocks[i].sum_ns = (apr_uint64_t)((double)side->blocks[i].sum_ns * factor);
    }
}

/* Part of the requests of some blocks answered 404, in a tenth of the time. */
static inline void traffic_404s(traffic_side_t *side, apr_size_t from, apr_size_t to, double share)
{
    for (apr_size_t i = from; i < to && i < side->count; i++) {
        rp_stats_block_t *block = &side->blocks[i];
        apr_uint32_t changed = (apr_uint32_t)(share * (double)block->count);
        block->mix.status[1] -= changed;
        block->mix.status[3] += changed;
        block->sum_ns = (apr_uint64_t)((double)block->sum_ns * (1 - 0.9 * share));
    }
}

/* Divide the blocks' times among parts, each with noise of its own; the last takes the remainder. One part may get
 * more. */
static inline void traffic_divide(traffic_side_t *side, random_t *random, double noise_sd, int part, double shift_ns)
{
    static const double shares[TRAFFIC_PARTS] = {.05, .10, .08, .12, .02, .01, .05, .25, .05, .05, .10, .02, .05, .05};

    for (apr_size_t i = 0; i < side->count; i++) {
        apr_uint64_t total = 0;
        for (int p = 0; p < TRAFFIC_PARTS; p++) {
            double part_ns = (double)side->blocks[i].sum_ns * shares[p] * exp(noise_sd * random_normal(random));
            part_ns += p == part ? shift_ns * (double)side->blocks[i].count : 0;
            side->parts[i][p] = (apr_uint64_t)part_ns;
            total += side->parts[i][p];
        }
        side->blocks[i].sum_ns = total;
    }
}

#endif
