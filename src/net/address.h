/*
 * address.h: socket addresses as text, both ways.
 *
 * Text is one of host:port, [v6]:port, :port or *:port (all interfaces) and /path of a unix socket.
 * Pure functions, any thread. Names are not resolved here.
 */
#ifndef ROLLCALL_NET_ADDRESS_H
#define ROLLCALL_NET_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#define NET_ADDRESS_TEXT_MAX 128 /* bytes of a printed address, the NUL included */
#define NET_ADDRESS_HOST_MAX 256
#define NET_ADDRESS_PORT_MAX 32

struct net_address_parts {
    bool is_unix;                    /* then the text itself is the path, the rest empty */
    char host[NET_ADDRESS_HOST_MAX]; /* "": all interfaces */
    char port[NET_ADDRESS_PORT_MAX]; /* digits or a service's name */
};

/* Takes `text` apart. False: it is none of the forms above. */
bool net_address_split(const char *text, struct net_address_parts *parts);

/* Prints an address in the form split takes; "unix" for a unix socket without a name. */
void net_address_print(const struct sockaddr_storage *address, socklen_t length,
                       char text[NET_ADDRESS_TEXT_MAX]);

#endif
