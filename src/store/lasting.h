/**
 * @file lasting.h
 * @brief The shared memory that outlives restarts: what must be known of the epochs before. doc/shm-layout.md draws it.
 */
#ifndef RP_STORE_LASTING_H
#define RP_STORE_LASTING_H

#include <apr_pools.h>

#include "store/deaths.h"

#define RP_LASTING_MAGIC 0x4c515252u /* "RRQL" */
#define RP_LASTING_VERSION 1u

/** All-zero memory after the header is valid and empty. */
typedef struct {
    apr_uint32_t magic;
    apr_uint32_t version;
    apr_uint64_t bytes;
    apr_int64_t started_us; /**< when the server was first started */
    rp_deaths_t deaths;
} rp_lasting_t;

/**
 * Find the lasting memory, or create it at the first start. The parent, in post_config.
 * @param process_pool the pool that outlives restarts (s->process->pool)
 * @return APR_SUCCESS, or why there is none; rp_lasting_current() is then NULL
 */
apr_status_t rp_lasting_parent_find(apr_pool_t *process_pool);

/** @return NULL when there is none. Any process, any thread. */
rp_lasting_t *rp_lasting_current(void);

#endif
