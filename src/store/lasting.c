#include <apr_shm.h>
#include <apr_time.h>

#include "store/lasting.h"

/* Its number is the layout's: a module of another version that is loaded at a restart makes memory of its own. */
#define LASTING_KEY "mod_reqprof:lasting:1"

static rp_lasting_t *current;

rp_lasting_t *rp_lasting_current(void)
{
    return current;
}

static apr_status_t create(apr_pool_t *process_pool)
{
    apr_shm_t *shm;
    apr_status_t rv = apr_shm_create(&shm, sizeof(rp_lasting_t), NULL, process_pool);

    if (rv == APR_SUCCESS) {
        current = apr_shm_baseaddr_get(shm);
        current->magic = RP_LASTING_MAGIC;
        current->version = RP_LASTING_VERSION;
        current->bytes = sizeof(*current);
        current->started_us = apr_time_now();
        apr_pool_userdata_set(current, LASTING_KEY, apr_pool_cleanup_null, process_pool);
    }
    return rv;
}

apr_status_t rp_lasting_parent_find(apr_pool_t *process_pool)
{
    void *found = NULL;

    apr_pool_userdata_get(&found, LASTING_KEY, process_pool);
    current = found;
    return current ? APR_SUCCESS : create(process_pool);
}

int rp_lasting_claim(rp_lasting_t *lasting, apr_int64_t now_us, apr_int64_t pause_us)
{
    apr_int64_t last_us = __atomic_load_n(&lasting->collected_us, __ATOMIC_RELAXED);

    return (now_us - last_us >= pause_us || now_us < last_us)
           && __atomic_compare_exchange_n(&lasting->collected_us, &last_us, now_us, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED);
}
