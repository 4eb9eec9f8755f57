/* receiver_dial.c: a socket to the node that is followed, at whatever address its name has. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "repl/receiver_private.h"

#define SECOND_US  1000000u
#define CONNECT_US (5u * SECOND_US) /* of each address */
#define LOOKUP_S   10u

/* 0, or the errno that says why not. */
static int receiver_dial_one(struct repl_receiver *receiver, const struct sockaddr *address,
                             socklen_t length)
{
    int on = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return errno;
    }
    if (address->sa_family != AF_UNIX) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    if (connect(fd, address, length) != 0 && errno != EINPROGRESS) {
        int error = errno;

        close(fd);
        return error;
    }
    if (!receiver_link(receiver, fd)) {
        return EMFILE;
    }
    int error = repl_link_connected(&receiver->link, clock_monotonic_us() + CONNECT_US);

    if (error != 0) {
        receiver_unlink(receiver);
    }
    return error;
}

static int receiver_dial_unix(struct repl_receiver *receiver, const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    return receiver_dial_one(receiver, (const struct sockaddr *)&name, sizeof(name));
}

/* A look-up that had no answer in time goes on, and is asked again: never two of them. */
static bool receiver_look_up(struct repl_receiver *receiver, const struct net_address_parts *parts)
{
    if (receiver->lookup == NULL) {
        receiver->lookup = repl_lookup_start(parts->host, parts->port);
    }
    if (receiver->lookup == NULL) {
        receiver_trouble(receiver, "its name cannot be looked up: no thread can be had");
        return false;
    }
    if (!repl_lookup_ended(receiver->lookup, clock_monotonic_us() + LOOKUP_S * SECOND_US,
                           &receiver->stop)) {
        receiver_trouble(receiver, "its name is looked up, and no answer came in %u s", LOOKUP_S);
        return false;
    }
    return true;
}

/* Each address of the name until one answers. */
static int receiver_dial_found(struct repl_receiver *receiver, const struct addrinfo *found)
{
    int error = EADDRNOTAVAIL;

    for (const struct addrinfo *at = found; at != NULL && error != 0; at = at->ai_next) {
        if (!atomic_load(&receiver->stop)) {
            error = receiver_dial_one(receiver, at->ai_addr, at->ai_addrlen);
        }
    }
    return error;
}

static bool receiver_reached(struct repl_receiver *receiver, int error)
{
    if (error != 0) {
        receiver_trouble(receiver, "it cannot be reached: %s", strerror(error));
    }
    return error == 0;
}

bool receiver_dial(struct repl_receiver *receiver, const char *address,
                   const struct net_address_parts *parts)
{
    const struct addrinfo *found;
    bool reached = false;

    if (parts->is_unix) {
        return receiver_reached(receiver, receiver_dial_unix(receiver, address));
    }
    if (!receiver_look_up(receiver, parts)) {
        return false;
    }
    int code = repl_lookup_found(receiver->lookup, &found);

    if (code == 0) {
        reached = receiver_reached(receiver, receiver_dial_found(receiver, found));
    } else {
        receiver_trouble(receiver, "its name cannot be looked up: %s", gai_strerror(code));
    }
    repl_lookup_drop(receiver->lookup);
    receiver->lookup = NULL;
    return reached;
}
