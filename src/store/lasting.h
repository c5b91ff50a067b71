/**
 * @file lasting.h
 * @brief The shared memory that outlives restarts: what must be known of the epochs before. doc/shm-layout.md draws it.
 */
#ifndef RP_STORE_LASTING_H
#define RP_STORE_LASTING_H

#include <apr_pools.h>

#include "store/blocks.h"
#include "store/deaths.h"

#define RP_LASTING_MAGIC 0x4c515252u /* "RRQL" */
#define RP_LASTING_VERSION 1u

#define RP_LISTEN_MAX 16

/** The accept queue of one listening socket, as the kernel last said (Linux). */
typedef struct {
    char address[64];
    apr_uint32_t queue_length;  /**< connections that wait to be accepted */
    apr_uint32_t queue_limit;   /**< how many may: ListenBacklog, or less where the kernel allows less */
    apr_uint32_t queue_longest; /**< that was ever seen */
    apr_uint32_t spare;
} rp_listen_t;

/** All-zero memory after the header is valid and empty. */
typedef struct {
    apr_uint32_t magic;
    apr_uint32_t version;
    apr_uint64_t bytes;
    apr_int64_t started_us; /**< when the server was first started */
    apr_uint32_t epoch;      /**< whose children may collect */
    apr_uint32_t listen_count;
    apr_int64_t collected_us; /**< when the collector was last at work; moving it on is the claim to the next time */
    apr_uint64_t all_busy_us; /**< how long all workers were busy, since the first start */
    apr_uint64_t overflows; /**< connections that found an accept queue full since the start: of the host */
    apr_uint64_t drops;     /**< connections dropped for any reason, likewise */
    apr_uint64_t overflows_before;
    apr_uint64_t drops_before;
    apr_uint64_t host_was_read;
    rp_listen_t listens[RP_LISTEN_MAX];
    rp_block_gauges_t gauges; /**< at the last collection */
    rp_deaths_t deaths;
    rp_blocks_t blocks;
} rp_lasting_t;

/**
 * Find the lasting memory, or create it at the first start. The parent, in post_config.
 * @param process_pool the pool that outlives restarts (s->process->pool)
 * @return APR_SUCCESS, or why there is none; rp_lasting_current() is then NULL
 */
apr_status_t rp_lasting_parent_find(apr_pool_t *process_pool);

/**
 * Claim the next collection. @param now_us the time now @param pause_us how long after the last one
 * @return 1 when it is the caller's
 */
int rp_lasting_claim(rp_lasting_t *lasting, apr_int64_t now_us, apr_int64_t pause_us);

/** @return NULL when there is none. Any process, any thread. */
rp_lasting_t *rp_lasting_current(void);

#endif
