/**
 * @file handler.h
 * @brief The handler "reqprof-status": reads parameters, takes a snapshot, calls one renderer.
 */
#ifndef RP_REPORT_HANDLER_H
#define RP_REPORT_HANDLER_H

#include <httpd.h>

/**
 * @return DECLINED for another handler's request; OK when answered, also with 400 (a wrong parameter) or 503
 *         (nothing is measured), which carry a sentence; HTTP_METHOD_NOT_ALLOWED for anything but GET and HEAD
 */
int rp_report_handler(request_rec *r);

#endif
