#include "tools/rollcall/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define HOST_MAX 256

static int connect_one(const struct addrinfo *to, unsigned timeout_ms)
{
    int on = 1, fd = socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC, to->ai_protocol);
    const struct timeval limit = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};

    if (fd < 0) {
        return -1;
    }
    if (to->ai_family != AF_UNIX) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)); /* of connect, too */
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0) {
        return fd;
    }
    int reason = errno == EINPROGRESS || errno == EAGAIN ? ETIMEDOUT : errno;
    close(fd);
    errno = reason;
    return -1;
}

static int connect_unix(const char *path, unsigned timeout_ms)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct addrinfo to = {.ai_family = AF_UNIX,
                                .ai_socktype = SOCK_STREAM,
                                .ai_addr = (struct sockaddr *)&address,
                                .ai_addrlen = sizeof(address)};

    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    return connect_one(&to, timeout_ms);
}

/* Cuts "host:port", "[v6]:port" or "host" in two. */
static bool split_address(const char *text, const char *port_default, char host[HOST_MAX],
                          char port[HOST_MAX])
{
    bool bracket = text[0] == '[';
    const char *start = bracket ? text + 1 : text;
    const char *end = bracket ? strchr(start, ']') : strrchr(start, ':');

    if (end == NULL && !bracket) {
        end = start + strlen(start);
    }
    if (end == NULL || (size_t)(end - start) >= HOST_MAX || end == start) {
        return false;
    }
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = '\0';
    const char *rest = bracket ? end + 1 : end;
    if (*rest != '\0' && (*rest != ':' || rest[1] == '\0')) {
        return false;
    }
    int length = snprintf(port, HOST_MAX, "%s", *rest == ':' ? rest + 1 : port_default);
    return length > 0 && length < HOST_MAX;
}

void dial_host(const char *address, char *host, size_t size)
{
    char name[HOST_MAX] = "", port[HOST_MAX];

    if (address[0] != '/') {
        (void)split_address(address, DIAL_PORT, name, port);
    }
    snprintf(host, size, "%s", name);
}

/* -1 with what is wrong in `error`, which is left alone when errno says it. */
static int connect_tcp(const char *text, const char *port_default, unsigned timeout_ms,
                       char error[DIAL_ERROR_MAX])
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    char host[HOST_MAX], port[HOST_MAX];
    int fd = -1;

    if (!split_address(text, port_default, host, port)) {
        snprintf(error, DIAL_ERROR_MAX, "not host:port, [v6]:port or /path");
        return -1;
    }
    int failed = getaddrinfo(host, port, &hints, &found);
    if (failed != 0) {
        snprintf(error, DIAL_ERROR_MAX, "%s", gai_strerror(failed));
        return -1;
    }
    for (const struct addrinfo *to = found; to != NULL && fd < 0; to = to->ai_next) {
        fd = connect_one(to, timeout_ms);
    }
    int reason = errno;
    freeaddrinfo(found);
    errno = reason;
    return fd;
}

int dial_server(const char *address, const char *port, unsigned timeout_ms,
                char error[DIAL_ERROR_MAX])
{
    char reason[DIAL_ERROR_MAX] = "";
    int fd = address[0] == '/' ? connect_unix(address, timeout_ms)
                               : connect_tcp(address, port, timeout_ms, reason);

    if (fd < 0) {
        snprintf(error, DIAL_ERROR_MAX, "%.120s: %.120s", address,
                 *reason != '\0' ? reason : strerror(errno));
    }
    return fd;
}
