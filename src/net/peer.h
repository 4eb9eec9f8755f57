/*
 * peer.h: who is at the other end of a socket, and what is said of one that is not let in.
 *
 * Any thread.
 */
#ifndef ROLLCALL_NET_PEER_H
#define ROLLCALL_NET_PEER_H

#include <stdint.h>

#include "base/log.h"
#include "net/address.h"

/* The peer's address as net_address_print has it; "gone": it is. Returns text. */
const char *net_peer_print(int fd, char text[NET_ADDRESS_TEXT_MAX]);

/* What net_conn_origin() (net.h) says of the socket. */
uint64_t net_peer_origin(int fd);

/* Logs that the peer is not let in, unless the limit says no. */
void net_peer_log_refused(int fd, const char *why, struct log_limit *limit);
/* Logs how many such lines were missed. Once a second. */
void net_peer_log_missed(struct log_limit *limit);

#endif
