#include <httpd.h>
#include <http_config.h>
#include <apr_portable.h>
#if defined(__linux__)
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#endif

#include "capture/queue.h"
#include "capture/request.h"
#include "capture/server_conf.h"
#include "store/record.h"

/*
 * Data that lies in the kernel came with the connection or after it; without any, the kernel counts from the
 * handshake. @return milliseconds, in steps of the kernel's tick (4 ms at 250 Hz); -1 where nobody knows
 */
static long waited_ms(apr_socket_t *socket)
{
#if defined(__linux__)
    struct tcp_info info;
    socklen_t bytes = sizeof(info);
    apr_os_sock_t descriptor;

    if (apr_os_sock_get(&descriptor, socket) == APR_SUCCESS
        && getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0
        && bytes >= offsetof(struct tcp_info, tcpi_last_data_recv) + sizeof(info.tcpi_last_data_recv)) {
        return (long)info.tcpi_last_data_recv;
    }
#else
    (void)socket;
#endif
    return -1;
}

int rp_queue_pre_connection(conn_rec *c, void *client_socket)
{
    rp_life_t *life;
    long ms;

    if (!rp_here.child || c->master || !client_socket || !rp_server_conf(c->base_server)->enabled) {
        return DECLINED;
    }
    life = rp_child_life(rp_here.segment, rp_here.child);
    __atomic_fetch_add(&life->connections, 1, __ATOMIC_RELAXED);
    ms = waited_ms(client_socket);
    if (ms >= 0) {
        apr_uint64_t ticks = rp_clock_ticks(&rp_here.segment->clock, (apr_uint64_t)ms * 1000000);
        rp_record_queue(rp_here.segment, rp_here.child, ticks);
    }
    return DECLINED;
}
