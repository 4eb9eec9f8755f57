/*
 * agent_lock.c: one agent beside a daemon: an abstract unix socket with the daemon's identity in
 * its name. It is there as long as the process that made it lives, however that ends, and is seen
 * by every process of the same network namespace, by whatever pid it goes in its own.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/rollcall/agent.h"

#define NETWORK_FILE "/proc/self/ns/net"

uint64_t agent_lock_scope(void)
{
    struct stat status;

    return stat(NETWORK_FILE, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

static socklen_t agent_lock_address(const char *identity, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
                          "rollcall-agent-%.*s", AGENT_IDENTITY_MAX, identity);

    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Is the holder an agent of this daemon's? Another user's is not. holder: 0 where its process is of
 * another pid namespace. */
static bool agent_lock_ask(const struct sockaddr_un *address, socklen_t length, pid_t *holder)
{
    struct ucred peer = {.pid = 0};
    socklen_t peer_length = sizeof(peer);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        return false;
    }
    bool known = connect(fd, (const struct sockaddr *)address, length) == 0 &&
                 getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_length) == 0;

    close(fd);
    *holder = peer.pid;
    return known && (peer.uid == geteuid() || peer.uid == 0);
}

enum agent_lock_result agent_lock_take(struct agent_lock *lock, const char *identity)
{
    struct sockaddr_un address;
    socklen_t length = agent_lock_address(identity, &address);

    if (lock->fd >= 0 && strcmp(lock->identity, identity) == 0) {
        return AGENT_LOCK_HAD;
    }
    agent_lock_end(lock);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return AGENT_LOCK_NONE;
    }
    if (bind(fd, (const struct sockaddr *)&address, length) != 0 || listen(fd, SOMAXCONN) != 0) {
        bool taken = errno == EADDRINUSE;

        /* Asked until it is known: the holder takes no connection out of its queue. */
        lock->held = taken && (lock->held || agent_lock_ask(&address, length, &lock->holder));
        close(fd);
        return lock->held ? AGENT_LOCK_HELD : AGENT_LOCK_NONE;
    }
    lock->fd = fd;
    lock->held = false;
    snprintf(lock->identity, sizeof(lock->identity), "%s", identity);
    return AGENT_LOCK_HAD;
}

void agent_lock_end(struct agent_lock *lock)
{
    if (lock->fd >= 0) {
        close(lock->fd);
    }
    lock->fd = -1;
}
