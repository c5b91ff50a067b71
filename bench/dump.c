/**
 * @file dump.c
 * @brief Makes callgrind write its counters when a byte comes through the pipe "dump" in the server's root.
 *
 * It has no hook that runs with a request, so that nothing of it is in what is measured. A thread of its own reads the
 * pipe, since threads of the MPMs block signals.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#include <httpd.h>
#include <http_config.h>
#include <valgrind/callgrind.h>

static void *dump_when_told(void *path)
{
    int pipe_fd = open(path, O_RDWR);
    char byte;

    while (pipe_fd >= 0 && read(pipe_fd, &byte, 1) == 1) {
        CALLGRIND_DUMP_STATS;
    }
    return NULL;
}

static void child_init(apr_pool_t *pool, server_rec *s)
{
    char *path = ap_server_root_relative(pool, "dump");
    pthread_t thread;

    (void)s;
    if (mkfifo(path, 0600) == 0) {
        pthread_create(&thread, NULL, dump_when_told, path);
    }
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
