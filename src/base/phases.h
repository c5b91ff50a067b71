/**
 * @file phases.h
 * @brief The fixed list of phases (phases.def) as an enumeration, with their names.
 */
#ifndef RP_BASE_PHASES_H
#define RP_BASE_PHASES_H

typedef enum {
#define RP_PHASE(id, name, help) RP_PHASE_##id,
#include "base/phases.def"
#undef RP_PHASE
    RP_PHASE_COUNT
} rp_phase_t;

/** @return the phase's name as reports print it; "other" for a number out of range. Any thread. */
const char *rp_phase_name(unsigned phase);

/** @return one line that says what falls in the phase. Any thread. */
const char *rp_phase_help(unsigned phase);

#endif
