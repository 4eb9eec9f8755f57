/* link.c: a connection that one thread waits for. */
#include "repl/link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "repl/link_socket.h"

bool repl_link_open(struct repl_link *link, int fd, struct net_tls *tls, const char *bytes,
                    size_t length)
{
    *link = (struct repl_link){.fd = fd, .tls = tls, .wake_fd = -1};
    link->heard_us = clock_monotonic_us();
    link->in = memory_zalloc(REPL_LINK_IN_BYTES);
    if (!link_socket_open(link) || length > REPL_LINK_IN_BYTES) {
        repl_link_close(link);
        return false;
    }
    memcpy(link->in, bytes, length);
    link->in_length = length;
    return true;
}

void repl_link_close(struct repl_link *link)
{
    net_tls_destroy(link->tls);
    link_socket_close(link);
    free(link->in);
    link->tls = NULL;
    link->in = NULL;
}

void repl_link_wake(struct repl_link *link, bool stop)
{
    if (stop) {
        atomic_store(&link->stop, true);
    }
    link_socket_wake(link);
}

/* ---- waiting ---- */

void repl_link_wait(struct repl_link *link, uint64_t until_us)
{
    bool pending = link->tls != NULL && net_tls_pending(link->tls);

    if (!atomic_load(&link->stop) && !pending) {
        (void)link_socket_poll(link, POLLIN, until_us);
    }
}

void repl_link_pause(struct repl_link *link, uint64_t until_us)
{
    if (!atomic_load(&link->stop)) {
        (void)link_socket_poll(link, 0, until_us);
    }
}

int repl_link_connected(struct repl_link *link, uint64_t until_us)
{
    short said = 0;

    while (said == 0 && !atomic_load(&link->stop) && clock_monotonic_us() < until_us) {
        said = link_socket_poll(link, POLLOUT, until_us);
    }
    if (atomic_load(&link->stop)) {
        return ECANCELED;
    }
    if (said == 0) {
        return ETIMEDOUT;
    }
    return link_socket_error(link);
}

void repl_link_rest(struct repl_link *link, uint64_t until_us)
{
    short said = 0;

    while (said == 0 && !atomic_load(&link->stop) && clock_monotonic_us() < until_us) {
        said = link_socket_poll(link, 0, until_us);
    }
}

/* ---- reading ---- */

static ssize_t repl_link_read(struct repl_link *link, char *to, size_t room)
{
    if (link->tls != NULL) {
        return net_tls_read(link->tls, to, room);
    }
    return link_socket_read(link, to, room);
}

bool repl_link_fill(struct repl_link *link)
{
    if (atomic_load(&link->stop)) {
        return false;
    }
    if (link->in_at > 0) {
        memmove(link->in, link->in + link->in_at, link->in_length - link->in_at);
        link->in_length -= link->in_at;
        link->in_at = 0;
    }
    if (link->in_length == REPL_LINK_IN_BYTES) {
        return true;
    }
    ssize_t got =
        repl_link_read(link, link->in + link->in_length, REPL_LINK_IN_BYTES - link->in_length);

    if (got > 0) {
        link->in_length += (size_t)got;
        link->heard_us = clock_monotonic_us();
    }
    return got >= 0;
}

ssize_t repl_link_bytes(struct repl_link *link, void *to, size_t room)
{
    size_t have = link->in_length - link->in_at;

    if (atomic_load(&link->stop)) {
        return -1;
    }
    if (have > 0) {
        size_t taken = have < room ? have : room;

        memcpy(to, link->in + link->in_at, taken);
        link->in_at += taken;
        return (ssize_t)taken;
    }
    ssize_t got = repl_link_read(link, to, room);

    if (got > 0) {
        link->heard_us = clock_monotonic_us();
    }
    return got;
}

const char *repl_link_line(struct repl_link *link, size_t *length)
{
    const char *line = link->in + link->in_at;
    size_t left = link->in_length - link->in_at;
    const char *end = memchr(line, '\n', left);

    if (end == NULL) {
        *length = left;
        return NULL;
    }
    *length = (size_t)(end - line);
    link->in_at += *length + 1;
    if (*length > 0 && line[*length - 1] == '\r') {
        (*length)--;
    }
    return line;
}

/* ---- writing ---- */

static ssize_t repl_link_send(struct repl_link *link, const char *bytes, size_t length)
{
    if (link->tls != NULL) {
        return net_tls_write(link->tls, bytes, length);
    }
    return link_socket_send(link, bytes, length);
}

bool repl_link_write(struct repl_link *link, const void *bytes, size_t length, unsigned silence_s)
{
    const char *at = bytes;
    uint64_t patience_us = (uint64_t)silence_s * 1000000u;
    uint64_t until_us = clock_monotonic_us() + patience_us;

    while (length > 0 && !atomic_load(&link->stop)) {
        ssize_t sent = repl_link_send(link, at, length);

        if (sent < 0) {
            return false;
        }
        at += sent;
        length -= (size_t)sent;
        uint64_t now_us = clock_monotonic_us();

        if (sent > 0) {
            until_us = now_us + patience_us;
        } else if (now_us >= until_us) {
            return false;
        }
        if (length > 0) {
            bool turned = link->tls != NULL && net_tls_turned(link->tls);

            (void)link_socket_poll(link, turned ? POLLIN : POLLOUT, until_us);
        }
    }
    return length == 0;
}
