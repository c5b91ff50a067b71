/**
 * @file windows.h
 * @brief The list of windows (windows.def) as an enumeration.
 */
#ifndef RP_BASE_WINDOWS_H
#define RP_BASE_WINDOWS_H

typedef enum {
#define RP_WINDOW(id, name, seconds) RP_WINDOW_##id,
#include "base/windows.def"
#undef RP_WINDOW
    RP_WINDOW_COUNT
} rp_window_t;

/** @return "10s", "1m" … "epoch": as the parameter and the reports spell it */
const char *rp_window_name(rp_window_t window);

/** @return its length; 0 for the epoch, which has none */
unsigned rp_window_seconds(rp_window_t window);

#endif
