#include <string.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "report/duration.h"

#define U64 "%" APR_UINT64_T_FMT
#define NS_PER_S APR_UINT64_C(1000000000)

/* One decimal below 100, none from there on, decided after rounding: 99.96 is "100". */
static const char *scaled(apr_pool_t *pool, double value, const char *unit)
{
    return apr_psprintf(pool, value < 99.95 ? "%.1f %s" : "%.0f %s", value, unit);
}

static const char *two_units(apr_pool_t *pool, apr_uint64_t seconds, unsigned big_s, const char *big, unsigned small_s,
                             const char *small)
{
    apr_uint64_t rest = seconds % big_s / small_s;

    if (!rest) {
        return apr_psprintf(pool, U64 " %s", seconds / big_s, big);
    }
    return apr_psprintf(pool, U64 " %s " U64 " %s", seconds / big_s, big, rest, small);
}

static const char *long_duration(apr_pool_t *pool, apr_uint64_t seconds)
{
    if (seconds < 3600) {
        return two_units(pool, seconds, 60, "min", 1, "s");
    }
    return seconds < 86400 ? two_units(pool, seconds, 3600, "h", 60, "min")
                           : two_units(pool, seconds, 86400, "d", 3600, "h");
}

const char *rp_duration(apr_pool_t *pool, apr_uint64_t ns)
{
    if (ns < 1000) {
        return apr_psprintf(pool, "%d ns", (int)ns);
    }
    if (ns < 999500) {
        return scaled(pool, (double)ns / 1e3, "µs");
    }
    if (ns < 999500000) {
        return scaled(pool, (double)ns / 1e6, "ms");
    }
    return ns < 100 * NS_PER_S ? scaled(pool, (double)ns / 1e9, "s") : long_duration(pool, ns / NS_PER_S);
}

const char *rp_grouped(apr_pool_t *pool, apr_uint64_t number)
{
    const char *digits = apr_psprintf(pool, U64, number);
    apr_size_t length = strlen(digits), at = 0;
    char *grouped = apr_palloc(pool, 2 * length + 1);

    for (apr_size_t i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) {
            grouped[at++] = ',';
        }
        grouped[at++] = digits[i];
    }
    grouped[at] = '\0';
    return grouped;
}

const char *rp_size(apr_pool_t *pool, apr_uint64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    int unit = 0;

    while (value >= 999.5) {
        value /= 1000;
        unit++;
    }
    return unit ? scaled(pool, value, units[unit]) : apr_psprintf(pool, "%d B", (int)bytes);
}

const char *rp_iso_time(apr_pool_t *pool, apr_int64_t time_us)
{
    apr_time_exp_t t;

    apr_time_exp_gmt(&t, time_us);
    return apr_psprintf(pool, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday,
                        t.tm_hour, t.tm_min, t.tm_sec, (int)(t.tm_usec / 1000));
}
