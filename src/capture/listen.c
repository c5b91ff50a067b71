#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <apr_portable.h>
#include <apr_strings.h>
#include <httpd.h>
#include <ap_listen.h>
#if defined(__linux__)
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#endif

#include "capture/listen.h"

#if defined(__linux__)

/* Of a listening socket, tcpi_unacked is the queue's length and tcpi_sacked its limit. */
static void read_queue(rp_listen_t *listen, int descriptor)
{
    struct tcp_info info;
    socklen_t bytes = sizeof(info);

    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0) {
        listen->queue_length = info.tcpi_unacked;
        listen->queue_limit = info.tcpi_sacked;
        if (info.tcpi_unacked > listen->queue_longest) {
            listen->queue_longest = info.tcpi_unacked;
        }
    }
}

/* The place of an address, which keeps it over restarts; a new one when it has none. */
static rp_listen_t *place_of(rp_lasting_t *lasting, const char *address)
{
    for (unsigned i = 0; i < lasting->listen_count; i++) {
        if (!strncmp(lasting->listens[i].address, address, sizeof(lasting->listens[i].address) - 1)) {
            return &lasting->listens[i];
        }
    }
    if (lasting->listen_count == RP_LISTEN_MAX) {
        return NULL;
    }
    apr_cpystrn(lasting->listens[lasting->listen_count].address, address, sizeof(lasting->listens[0].address));
    return &lasting->listens[lasting->listen_count++];
}

static void read_listener(rp_lasting_t *lasting, const ap_listen_rec *listener)
{
    char host[46] = "*", address[sizeof(lasting->listens[0].address)];
    apr_os_sock_t descriptor;
    rp_listen_t *listen;

    if (!listener->bind_addr || apr_os_sock_get(&descriptor, listener->sd) != APR_SUCCESS || descriptor < 0) {
        return;
    }
    apr_sockaddr_ip_getbuf(host, sizeof(host), listener->bind_addr);
    apr_snprintf(address, sizeof(address), "%s:%d", host, listener->bind_addr->port);
    listen = place_of(lasting, address);
    if (listen) {
        read_queue(listen, descriptor);
    }
}

/* @return the place of a word among the words of a line; -1 when it is not there */
static int place_of_word(char *line, const char *word)
{
    char *state;
    int place = 0;

    for (char *at = apr_strtok(line, " ", &state); at; at = apr_strtok(NULL, " ", &state), place++) {
        if (!strcmp(at, word)) {
            return place;
        }
    }
    return -1;
}

static apr_uint64_t number_at(char *line, int place)
{
    char *state, *at = apr_strtok(line, " ", &state);

    while (at && place-- > 0) {
        at = apr_strtok(NULL, " ", &state);
    }
    return at ? strtoull(at, NULL, 10) : 0;
}

/* @return bytes of the file, ended by a zero byte */
static ssize_t read_netstat(char *text, size_t room)
{
    int file = open("/proc/net/netstat", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file >= 0 ? read(file, text, room - 1) : 0;

    if (file >= 0) {
        close(file);
    }
    text[bytes > 0 ? bytes : 0] = '\0';
    return bytes;
}

static char *cut_line(char *line)
{
    char *end = line ? strchr(line, '\n') : NULL;

    if (end) {
        *end = '\0';
    }
    return end ? end + 1 : NULL;
}

/* A number of /proc/net/netstat: a line of names, then one of numbers, both beginning with TcpExt. */
static apr_uint64_t host_count(const char *name)
{
    char text[8192];
    char *names, *numbers;
    int place;

    read_netstat(text, sizeof(text));
    names = strstr(text, "TcpExt:");
    numbers = cut_line(names);
    cut_line(numbers);
    place = numbers ? place_of_word(names, name) : -1;
    return place > 0 ? number_at(numbers, place) : 0;
}

static apr_uint64_t since(apr_uint64_t now, apr_uint64_t before)
{
    return now > before ? now - before : 0;
}

void rp_listen_parent_start(void)
{
    rp_lasting_t *lasting = rp_lasting_current();

    if (!lasting->host_was_read) {
        lasting->overflows_before = host_count("ListenOverflows");
        lasting->drops_before = host_count("ListenDrops");
        lasting->host_was_read = 1;
    }
}

void rp_listen_read(rp_lasting_t *lasting)
{
    for (const ap_listen_rec *listener = ap_listeners; listener; listener = listener->next) {
        read_listener(lasting, listener);
    }
    lasting->overflows = since(host_count("ListenOverflows"), lasting->overflows_before);
    lasting->drops = since(host_count("ListenDrops"), lasting->drops_before);
}

#else

void rp_listen_parent_start(void)
{
}

void rp_listen_read(rp_lasting_t *lasting)
{
    (void)lasting;
}

#endif
