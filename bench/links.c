/**
 * @file links.c
 * @brief A module of eight hook functions that do nothing: more links for a request to pass.
 *
 * Compiled with -DLINKS=links07 and so on, for as many modules as are wanted.
 */
#include <httpd.h>
#include <http_config.h>
#include <http_protocol.h>
#include <http_request.h>

static int decline(request_rec *r)
{
    return r->assbackwards ? OK : DECLINED;
}

static int pass(request_rec *r)
{
    return r->assbackwards ? OK : DECLINED;
}

static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_post_read_request(pass, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_translate_name(decline, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_map_to_storage(decline, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_header_parser(pass, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_type_checker(decline, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_fixups(pass, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(decline, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_log_transaction(pass, NULL, NULL, APR_HOOK_MIDDLE);
}

/* LINKS must be replaced before it is made part of a name. */
#define DECLARE(name) AP_DECLARE_MODULE(name)

DECLARE(LINKS) = {
    STANDARD20_MODULE_STUFF,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    register_hooks
};
