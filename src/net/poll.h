/*
 * poll.h: what a worker's sockets have to say, asked of epoll.
 *
 * Apart from libevent, which the main thread uses, because a loop for sockets alone costs a request
 * a tenth of the instructions. Level-triggered: a watcher that does not read everything is told
 * again.
 *
 * One thread. A watcher that is forgotten, or asked for other events, hears nothing more of what
 * came before: so a callback may end any connection, also one whose event is still to be delivered.
 */
#ifndef ROLLCALL_NET_POLL_H
#define ROLLCALL_NET_POLL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#define NET_POLL_EVENTS 128 /* taken from the kernel at one time */

/* Hears of events. Its owner keeps it for as long as events are asked for. */
struct net_watcher {
    void (*ready)(void *owner); /* also of an error or the end of the peer */
    void *owner;
    uint32_t events; /* asked for now: EPOLLIN, EPOLLOUT or 0 */
};

struct net_poll {
    int fd;    /* -1: none */
    int at;    /* events delivered of this wait … */
    int count; /* … and how many came */
    struct epoll_event events[NET_POLL_EVENTS];
};

bool net_poll_init(struct net_poll *poll); /* false: errno */
void net_poll_fini(struct net_poll *poll);
/* net_poll_want() of other events than now. */
bool net_poll_change(struct net_poll *poll, struct net_watcher *watcher, int fd, uint32_t events);
/* Asks for events of fd in place of those asked for now; 0: forgets it, before it is closed. False:
 * errno, and none are asked for. */
static inline bool net_poll_want(struct net_poll *poll, struct net_watcher *watcher, int fd,
                                 uint32_t events)
{
    return watcher->events == events || net_poll_change(poll, watcher, fd, events);
}
/* Waits for at most this many milliseconds until a watcher is ready. A signal ends it early. */
void net_poll_wait(struct net_poll *poll, int wait_ms);
/* Calls the watchers that were ready then. */
void net_poll_deliver(struct net_poll *poll);
/* For a watcher that is called: returns whether no other is known to be called after it. */
static inline bool net_poll_is_last(const struct net_poll *poll)
{
    return poll->at >= poll->count;
}

#endif
