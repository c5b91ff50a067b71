/**
 * @file deaths.h
 * @brief Which requests children were serving when they died: the witness of a crash.
 */
#ifndef RP_STORE_DEATHS_H
#define RP_STORE_DEATHS_H

#include <sys/types.h>

#include "store/layout.h"

/** One request that died with its child, or a child that died while it served none. */
typedef struct {
    apr_uint32_t number; /**< counts the entries of the ring from 1, stored last; 0: unused */
    apr_uint32_t pid;
    apr_uint32_t epoch;
    apr_uint32_t lost;    /**< requests that died with this child; 0: none was running, and what follows is empty */
    apr_int64_t time_us;  /**< when the parent noticed */
    apr_uint64_t age_ns;  /**< how long the request had been running then */
    apr_uint64_t span_age_ns;
    rp_span_t span; /**< a copy: the epoch's own table may be gone when this is read */
    char method[16];
    char vhost[64];
    char uri[208];
} rp_death_t;

#define RP_DEATH_MAX 32

/** The last RP_DEATH_MAX of them. All-zero memory is an empty ring. */
typedef struct {
    apr_uint32_t number; /**< of the newest */
    apr_uint32_t spare;
    rp_death_t ring[RP_DEATH_MAX];
} rp_deaths_t;

/**
 * Look at what a child left behind. Before rp_child_fold(), the parent only.
 * @param list room for max entries, max > 0; further requests are counted in `lost` only
 * @return entries filled; 0 when the child has ended in order or has no part in this segment
 */
unsigned rp_deaths_witness(rp_death_t *list, unsigned max, rp_segment_t *segment, pid_t pid);

/** Keep an entry; the oldest makes room. The parent only. */
void rp_deaths_add(rp_deaths_t *deaths, const rp_death_t *death);

/** @param list room for RP_DEATH_MAX entries, newest first @return how many. Any process. */
unsigned rp_deaths_list(const rp_deaths_t *deaths, rp_death_t *list);

#endif
