#include "base/phases.h"

static const struct {
    const char *name;
    const char *help;
} phases[] = {
#define RP_PHASE(id, name, help) {name, help},
#include "base/phases.def"
#undef RP_PHASE
};

const char *rp_phase_name(unsigned phase)
{
    return phases[phase < RP_PHASE_COUNT ? phase : RP_PHASE_OTHER].name;
}

const char *rp_phase_help(unsigned phase)
{
    return phases[phase < RP_PHASE_COUNT ? phase : RP_PHASE_OTHER].help;
}
