/* poll.c: a worker's loop over epoll. */
#include "net/poll.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "base/check.h"
#include "net/direct.h"

bool net_poll_init(struct net_poll *poll)
{
    poll->at = poll->count = 0;
    poll->fd = epoll_create1(EPOLL_CLOEXEC);
    return poll->fd >= 0;
}

void net_poll_fini(struct net_poll *poll)
{
    if (poll->fd >= 0) {
        close(poll->fd);
    }
    poll->fd = -1;
}

/* Drops a watcher's events that came and are still to be delivered. */
static void drop_events(struct net_poll *poll, const struct net_watcher *watcher)
{
    for (int i = poll->at; i < poll->count; i++) {
        if (poll->events[i].data.ptr == watcher) {
            poll->events[i].data.ptr = NULL;
        }
    }
}

bool net_poll_change(struct net_poll *poll, struct net_watcher *watcher, int fd, uint32_t events)
{
    uint32_t before = watcher->events;
    struct epoll_event event = {.events = events, .data.ptr = watcher};
    drop_events(poll, watcher);
    int call = before == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    bool done = epoll_ctl(poll->fd, call, fd, &event) == 0;
    CHECK(done || call == EPOLL_CTL_ADD); /* of a socket it knows it needs no memory */
    watcher->events = done ? events : 0;
    return done;
}

void net_poll_wait(struct net_poll *poll, int wait_ms)
{
    int count = direct_epoll_wait(poll->fd, poll->events, NET_POLL_EVENTS, wait_ms);
    CHECK(count >= 0 || errno == EINTR);
    poll->count = count;
}

void net_poll_deliver(struct net_poll *poll)
{
    int count = poll->count;
    for (int i = 0; i < count; i++) {
        struct net_watcher *watcher = poll->events[i].data.ptr;
        poll->at = i + 1;
        if (LIKELY(watcher != NULL)) {
            watcher->ready(watcher->owner);
        }
    }
    poll->count = 0;
}
