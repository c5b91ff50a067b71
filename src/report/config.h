/**
 * @file config.h
 * @brief The page of ?view=config: the configuration, line by line, with what each line costs.
 */
#ifndef RP_REPORT_CONFIG_H
#define RP_REPORT_CONFIG_H

#include "report/render.h"

/** Print assets/config.html, filled. Any thread. */
void rp_render_config(request_rec *r, const rp_report_t *report);

#endif
