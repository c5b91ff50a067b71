/**
 * @file dump.c
 * @brief Makes callgrind write its counters when the process gets SIGUSR2, between two requests.
 *
 * It has no hook that runs with a request, so that nothing of it is in what is measured.
 */
#include <signal.h>
#include <httpd.h>
#include <http_config.h>
#include <valgrind/callgrind.h>

static void dump(int signal_number)
{
    (void)signal_number;
    CALLGRIND_DUMP_STATS;
}

static void child_init(apr_pool_t *pool, server_rec *s)
{
    struct sigaction action = {.sa_handler = dump, .sa_flags = SA_RESTART};

    (void)pool;
    (void)s;
    sigaction(SIGUSR2, &action, NULL);
}

static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_child_init(child_init, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(dump) = {
    STANDARD20_MODULE_STUFF,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    register_hooks
};
