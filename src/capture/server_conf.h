/**
 * @file server_conf.h
 * @brief What a virtual host sets for itself, as kept in httpd's per-server configuration.
 */
#ifndef RP_CAPTURE_SERVER_CONF_H
#define RP_CAPTURE_SERVER_CONF_H

#include <httpd.h>
#include <http_config.h>

#include "capture/lines.h"

/* The one exported symbol: everything else is compiled with hidden visibility. */
extern module AP_MODULE_DECLARE_DATA reqprof_module __attribute__((visibility("default")));

typedef struct {
    int enabled; /**< ReqProf; -1 until set */
    rp_section_lines_t *lines; /**< noted lines of this server outside of directories; never merged */
} rp_server_conf_t;

typedef struct {
    rp_line_chain_t lines; /**< own and those of the sections before it */
} rp_dir_conf_t;

static inline const rp_server_conf_t *rp_server_conf(const server_rec *server)
{
    return ap_get_module_config(server->module_config, &reqprof_module);
}

#endif
