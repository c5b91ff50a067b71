/**
 * @file shard.h
 * @brief Arithmetic with all counters of a shard at once. The caller keeps writers away, or looks at the sequence.
 */
#ifndef RP_STORE_SHARD_H
#define RP_STORE_SHARD_H

#include "store/layout.h"

/** Add all counters of one shard to another. @param span_count cells that follow each of them */
void rp_shard_add(rp_shard_t *into, rp_shard_t *from, unsigned span_count);

/** Take away what it held at an earlier time. */
void rp_shard_subtract(rp_shard_t *from, rp_shard_t *earlier, unsigned span_count);

/** Set all counters to zero; writes only what was used. */
void rp_shard_clear(rp_shard_t *shard, unsigned span_count);

#endif
