/**
 * @file crash.h
 * @brief Says in the error log what a child was doing when it died.
 */
#ifndef RP_CAPTURE_CRASH_H
#define RP_CAPTURE_CRASH_H

#include <httpd.h>

#include "store/layout.h"

/** Log and keep the requests of a child that did not end in order; nothing for others. The parent, in child_status. */
void rp_crash_witness(server_rec *main_server, rp_segment_t *segment, pid_t pid);

#endif
