/**
 * @file htaccess.h
 * @brief Times what reading and executing each .htaccess file costs a request.
 *
 * httpd closes the file after its directives were executed, so the span is open from the file's opening to its closing.
 */
#ifndef RP_CAPTURE_HTACCESS_H
#define RP_CAPTURE_HTACCESS_H

#include <httpd.h>
#include <http_config.h>

#include "store/spans.h"

/** Plan the span of files that get none of their own. The parent, in post_config. */
void rp_htaccess_plan(rp_span_plan_t *plan);

/** From now on spans of files are claimed in this segment. Each child, at start. */
void rp_htaccess_child_init(rp_segment_t *segment);

/** A file was opened for a request: stand between httpd and it. Any thread. */
void rp_htaccess_opened(request_rec *r, ap_configfile_t **file, const char *path);

#endif
