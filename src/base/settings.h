/**
 * @file settings.h
 * @brief What the administrator has set for the whole server, as plain values.
 */
#ifndef RP_BASE_SETTINGS_H
#define RP_BASE_SETTINGS_H

#include "base/clock.h"

typedef enum {
    RP_DETAIL_PHASES,
    RP_DETAIL_SPANS,
    RP_DETAIL_LINES
} rp_detail_t;

typedef struct {
    rp_detail_t detail;      /**< ReqProfDetail */
    rp_clock_source_t clock; /**< ReqProfClock */
    unsigned span_max;       /**< ReqProfMaxSpans */
    double line_budget;      /**< ReqProfLineBudget: share of busy time, 0..1 */
} rp_settings_t;

#define RP_SETTINGS_DEFAULT {RP_DETAIL_LINES, RP_CLOCK_AUTO, 1024, 0.002}

#endif
