/*
 * link_socket.h: what a link asks of the system: its socket, and what wakes it. Included by link.c,
 * and by a simulation that has a network of its own.
 */
#ifndef ROLLCALL_REPL_LINK_SOCKET_H
#define ROLLCALL_REPL_LINK_SOCKET_H

#include "repl/link.h"

bool link_socket_open(struct repl_link *link); /* link->wake_fd. False: there is no descriptor */
void link_socket_close(struct repl_link *link);
void link_socket_wake(struct repl_link *link); /* any thread */
/* Waits for one of the events (of poll), a wake, or until_us. Returns what the socket said. */
short link_socket_poll(struct repl_link *link, short events, uint64_t until_us);
int link_socket_error(struct repl_link *link); /* of connecting: an errno, or 0 */

/* Reads without waiting: returns how many bytes; 0: none now; -1: the connection is over. */
ssize_t link_socket_read(struct repl_link *link, char *to, size_t room);
ssize_t link_socket_send(struct repl_link *link, const char *bytes, size_t length);

#endif
