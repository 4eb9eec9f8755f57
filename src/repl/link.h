/*
 * link.h: one side's end of a connection between a follower and the node it follows: lines in,
 * bytes out, with or without TLS. It waits with poll, never longer than it is told, and its owner
 * can wake it.
 *
 * Thread rule: a link belongs to one thread; repl_link_wake any.
 */
#ifndef ROLLCALL_REPL_LINK_H
#define ROLLCALL_REPL_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "net/tls.h"

#define REPL_LINK_IN_BYTES (64u << 10) /* that may wait to be read as lines */

struct repl_link {
    int fd; /* does not block */
    struct net_tls *tls;
    int wake_fd; /* eventfd */
    _Atomic bool stop;
    char *in; /* REPL_LINK_IN_BYTES; from in_at on not read yet */
    size_t in_at, in_length;
    uint64_t heard_us; /* when bytes came last, clock_monotonic_us */
};

/* Takes fd and tls (NULL: none) over, whatever comes, and copies what has been read of it already.
 * False, all closed: that is too much, or there is no descriptor. */
bool repl_link_open(struct repl_link *link, int fd, struct net_tls *tls, const char *bytes,
                    size_t length);
void repl_link_close(struct repl_link *link);

/* Ends every wait of the link, also one that is yet to come, once. stop: all later ones, too, and
 * reads and writes say that it is over. */
void repl_link_wake(struct repl_link *link, bool stop);

/* Waits until a socket that is being connected is connected, or until until_us. Returns 0, or the
 * errno that says why not; ECANCELED: it was stopped. */
int repl_link_connected(struct repl_link *link, uint64_t until_us);

/* Waits until bytes came, somebody wakes it, or until_us is there. */
void repl_link_wait(struct repl_link *link, uint64_t until_us);
/* The same, whatever came: the other side cannot take more yet. */
void repl_link_pause(struct repl_link *link, uint64_t until_us);
/* Waits until until_us is there, the connection is broken, or it is stopped. */
void repl_link_rest(struct repl_link *link, uint64_t until_us);
/* Takes what has come without waiting. False: the connection is over, or was stopped. */
bool repl_link_fill(struct repl_link *link);
/* The next whole line without its end; valid until the next call of fill. NULL: none has come.
 * *length is REPL_LINK_IN_BYTES if none can: the buffer is full. */
const char *repl_link_line(struct repl_link *link, size_t *length);

/* Takes up to `room` bytes that have come and are not read yet, without waiting. -1: the connection
 * is over, or was stopped. */
ssize_t repl_link_bytes(struct repl_link *link, void *to, size_t room);

/* Writes all of it. False: over, stopped, or no progress for silence_s. */
bool repl_link_write(struct repl_link *link, const void *bytes, size_t length, unsigned silence_s);

#endif
