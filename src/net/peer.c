#include "net/peer.h"

#include <netinet/in.h>
#include <poll.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"

const char *net_peer_print(int fd, char text[NET_ADDRESS_TEXT_MAX])
{
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof(peer);
    if (getpeername(fd, (struct sockaddr *)&peer, &length) != 0) {
        strcpy(text, "gone");
    } else {
        net_address_print(&peer, length, text);
    }
    return text;
}

static uint64_t user_of(int fd)
{
    struct ucred who;
    socklen_t length = sizeof(who);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 ? who.uid : UINT64_MAX;
}

uint64_t net_peer_origin(int fd)
{
    union {
        struct sockaddr_storage any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } peer = {.any = {0}};
    socklen_t length = sizeof(peer);
    uint64_t who = 0;
    if (getpeername(fd, (struct sockaddr *)&peer.any, &length) != 0) {
        return 0;
    }
    if (peer.any.ss_family == AF_INET) {
        who = peer.v4.sin_addr.s_addr;
    } else if (peer.any.ss_family == AF_INET6) {
        memcpy(&who, &peer.v6.sin6_addr, sizeof(who)); /* its network: the upper 64 bits */
    } else {
        who = user_of(fd);
    }
    return hash_words2(peer.any.ss_family, who, 0);
}

bool net_peer_ended(int fd)
{
    /* Not a look at what is to be read: unread bytes would hide the end. */
    struct pollfd socket = {.fd = fd, .events = POLLRDHUP};
    return poll(&socket, 1, 0) > 0;
}

void net_peer_log_refused(int fd, const char *why)
{
    char text[NET_ADDRESS_TEXT_MAX];
    log_warning("a connection was refused peer=%s reason=\"%s\"", net_peer_print(fd, text), why);
}

void net_peer_log_closed(int fd, const char *why)
{
    char text[NET_ADDRESS_TEXT_MAX];
    log_info("a client was closed peer=%s reason=\"%s\"", net_peer_print(fd, text), why);
}
