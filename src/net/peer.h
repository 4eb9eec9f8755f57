/*
 * peer.h: the other end of a socket, and what is logged of a client that is not let in, or must go.
 *
 * Any thread.
 */
#ifndef ROLLCALL_NET_PEER_H
#define ROLLCALL_NET_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "net/address.h"

/* The peer's address as net_address_print has it; "gone": it is. Returns text. */
const char *net_peer_print(int fd, char text[NET_ADDRESS_TEXT_MAX]);

/* What net_conn_origin() (net.h) says of the socket. */
uint64_t net_peer_origin(int fd);

/* What net_conn_ended() (net.h) says of the socket. */
bool net_peer_ended(int fd);

/* Logs that the peer is not let in. */
void net_peer_log_refused(int fd, const char *why);
/* Logs that its connection, which was open, is closed by us. */
void net_peer_log_closed(int fd, const char *why);

#endif
