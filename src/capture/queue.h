/**
 * @file queue.h
 * @brief How long a new connection lay in the kernel before httpd took it.
 */
#ifndef RP_CAPTURE_QUEUE_H
#define RP_CAPTURE_QUEUE_H

#include <httpd.h>

/**
 * Count a connection and how long it waited. Linux says when its last data came; other systems count the connection
 * only. First in pre_connection; the streams of HTTP/2 are not connections of their own.
 */
int rp_queue_pre_connection(conn_rec *c, void *client_socket);

#endif
