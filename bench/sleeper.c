/**
 * @file sleeper.c
 * @brief A page as an application server makes it: five milliseconds of waiting, then two kilobytes.
 */
#include <apr_time.h>
#include <httpd.h>
#include <http_config.h>
#include <http_protocol.h>

static int answer(request_rec *r)
{
    static const char line[] = "<p>One more line of a page that a database was asked for.</p>\n";

    if (!r->handler || strcmp(r->handler, "bench-sleeper")) {
        return DECLINED;
    }
    apr_sleep(5000);
    ap_set_content_type(r, "text/plain");
    ap_set_content_length(r, 32 * (sizeof(line) - 1));
    for (int i = 0; i < 32; i++) {
        ap_rwrite(line, sizeof(line) - 1, r);
    }
    return OK;
}

static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_handler(answer, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(sleeper) = {
    STANDARD20_MODULE_STUFF,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    register_hooks
};
