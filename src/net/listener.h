/*
 * listener.h: the listening sockets, all of them as one object.
 *
 * Each address of the options becomes one socket for each address its host name has. Readiness
 * accepts at most NET_ACCEPTS_PER_TURN connections and hands each to `accepted`. One descriptor is
 * kept in reserve: without any other, those that wait are told so with it and closed, as many in a
 * turn as would be accepted. Only if that fails, too (or memory is short), accepting pauses for
 * NET_LISTENER_PAUSE_MS: a level-triggered listener would spin.
 *
 * Main thread only.
 */
#ifndef ROLLCALL_NET_LISTENER_H
#define ROLLCALL_NET_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "net/net.h"

#define NET_LISTENER_PAUSE_MS 100

struct event_base;
struct net_listeners;

/* Takes over an accepted, non-blocking socket. tls: the address has TLS. */
typedef void net_listener_accepted(void *context, int fd, bool tls);

/*
 * Binds every address of the options: nobody can connect yet. A unix socket's file that nobody
 * listens on is replaced. Returns NULL with `error` filled, and *in_use set when the reason
 * is a taken address.
 */
struct net_listeners *net_listener_create(const struct net_options *options,
                                          char error[NET_ERROR_MAX], bool *in_use);
void net_listener_destroy(
    struct net_listeners *set); /* stopped; unlinks its unix sockets. NULL ok */

/* Opens the addresses: clients can connect from here on, and queue. False: as above; another
 * program may have been faster. */
bool net_listener_listen(struct net_listeners *set, char error[NET_ERROR_MAX], bool *in_use);

/* Called after that: accepts from now on in `base`, and counts in `metrics`. False: the loop
 * refused. */
bool net_listener_start(struct net_listeners *set, struct event_base *base,
                        net_listener_accepted *accepted, void *context,
                        struct net_metrics *metrics);
void net_listener_stop(struct net_listeners *set);

const char *net_listener_address(const struct net_listeners *set, size_t i); /* as net_address */

bool net_listener_tls(const struct net_listeners *set, size_t i); /* whether it has TLS */

/* Tells a client that there are too many (unless it expects TLS), logs why, and closes. */
void net_listener_refuse(struct net_listeners *set, int fd, bool tls, const char *why);

#endif
