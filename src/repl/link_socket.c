/* link_socket.c: a link's socket, without TLS, and the eventfd that ends its waits. */
#include "repl/link_socket.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define US_A_MS 1000u

bool link_socket_open(struct repl_link *link)
{
    link->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return link->wake_fd >= 0;
}

void link_socket_close(struct repl_link *link)
{
    if (link->wake_fd >= 0) {
        close(link->wake_fd);
    }
    close(link->fd);
    link->fd = link->wake_fd = -1;
}

void link_socket_wake(struct repl_link *link)
{
    const uint64_t one = 1;

    (void)!write(link->wake_fd, &one, sizeof(one)); /* full: it is awake already */
}

short link_socket_poll(struct repl_link *link, short events, uint64_t until_us)
{
    struct pollfd fds[] = {{.fd = link->fd, .events = events},
                           {.fd = link->wake_fd, .events = POLLIN}};
    uint64_t now_us = clock_monotonic_us();
    uint64_t left_us = until_us > now_us ? until_us - now_us : 0;
    uint64_t count;

    if (poll(fds, 2, (int)((left_us + US_A_MS - 1) / US_A_MS)) > 0 && fds[1].revents != 0) {
        (void)!read(link->wake_fd, &count, sizeof(count));
    }
    return fds[0].revents;
}

int link_socket_error(struct repl_link *link)
{
    int error = 0;
    socklen_t length = sizeof(error);

    return getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

ssize_t link_socket_read(struct repl_link *link, char *to, size_t room)
{
    ssize_t got = recv(link->fd, to, room, 0);

    if (got == 0) {
        return -1;
    }
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : got;
}

ssize_t link_socket_send(struct repl_link *link, const char *bytes, size_t length)
{
    ssize_t sent = send(link->fd, bytes, length, MSG_NOSIGNAL);

    return sent < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : sent;
}
