/**
 * @file render.h
 * @brief One renderer a format (formats.def), each from a const snapshot.
 */
#ifndef RP_REPORT_RENDER_H
#define RP_REPORT_RENDER_H

#include <httpd.h>

#include "report/params.h"
#include "store/snapshot.h"

typedef struct {
    const rp_params_t *params;
    const rp_snapshot_t *snapshot;
    const char *software; /**< httpd's own description of itself */
} rp_report_t;

/* Print the report into the response's body. Headers are the handler's. Any thread. */
#define RP_FORMAT(id, name, content_type, renderer) void renderer(request_rec *r, const rp_report_t *report);
#include "report/formats.def"
#undef RP_FORMAT

#endif
