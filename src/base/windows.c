#include "base/windows.h"

static const struct {
    const char *name;
    unsigned seconds;
} windows[] = {
#define RP_WINDOW(id, name, seconds) {name, seconds},
#include "base/windows.def"
#undef RP_WINDOW
};

const char *rp_window_name(rp_window_t window)
{
    return windows[window].name;
}

unsigned rp_window_seconds(rp_window_t window)
{
    return windows[window].seconds;
}
