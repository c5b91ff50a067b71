/**
 * @file duration.h
 * @brief Times and counts as people read them. Pure; any thread; results are the pool's.
 */
#ifndef RP_REPORT_DURATION_H
#define RP_REPORT_DURATION_H

#include <apr_pools.h>

/** @return "0 ns", "850 ns", "4.5 µs", "12.7 ms", "3.0 s", "2 min 5 s", "3 h 20 min", "4 d 3 h" */
const char *rp_duration(apr_pool_t *pool, apr_uint64_t ns);

/** @return the number with a comma between groups of three digits: "1,234,567" */
const char *rp_grouped(apr_pool_t *pool, apr_uint64_t number);

/** @return "512 B", "4.5 kB", "12.7 MB": powers of 1000 */
const char *rp_size(apr_pool_t *pool, apr_uint64_t bytes);

/** @return the time in UTC as ISO 8601 with milliseconds: "2026-03-01T12:34:56.789Z" */
const char *rp_iso_time(apr_pool_t *pool, apr_int64_t time_us);

#endif
