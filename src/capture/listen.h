/**
 * @file listen.h
 * @brief What the kernel says of the accept queues of httpd's listening sockets (Linux).
 */
#ifndef RP_CAPTURE_LISTEN_H
#define RP_CAPTURE_LISTEN_H

#include "store/lasting.h"

/** Remember the host's count of overflows at the first start. The parent, in post_config. */
void rp_listen_parent_start(void);

/** Read all queues. Any process that has the listening sockets open. */
void rp_listen_read(rp_lasting_t *lasting);

#endif
