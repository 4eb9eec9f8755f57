#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

static bool copy_part(char *to, size_t capacity, const char *from, size_t length)
{
    if (length >= capacity) {
        return false;
    }
    memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

bool net_address_split(const char *text, struct net_address_parts *parts)
{
    memset(parts, 0, sizeof(*parts));
    if (text[0] == '/') {
        parts->is_unix = true;
        return true;
    }
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon[1] == '\0') {
        return false;
    }
    const char *host = text;
    size_t length = (size_t)(colon - text);
    if (length >= 2 && host[0] == '[' && host[length - 1] == ']') {
        host++;
        length -= 2;
    } else if (memchr(host, ':', length) != NULL) {
        return false; /* a v6 address without brackets: its port cannot be told */
    }
    if (length == 1 && host[0] == '*') {
        length = 0;
    }
    return copy_part(parts->host, sizeof(parts->host), host, length) &&
           copy_part(parts->port, sizeof(parts->port), colon + 1, strlen(colon + 1));
}

static void print_inet(const struct sockaddr_in *in, char text[NET_ADDRESS_TEXT_MAX])
{
    char host[INET_ADDRSTRLEN] = "?";
    inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
    snprintf(text, NET_ADDRESS_TEXT_MAX, "%s:%u", host, ntohs(in->sin_port));
}

static void print_inet6(const struct sockaddr_in6 *in6, char text[NET_ADDRESS_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN] = "?";
    inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
    snprintf(text, NET_ADDRESS_TEXT_MAX, "[%s]:%u", host, ntohs(in6->sin6_port));
}

void net_address_print(const struct sockaddr_storage *address, socklen_t length,
                       char text[NET_ADDRESS_TEXT_MAX])
{
    if (address->ss_family == AF_INET) {
        print_inet((const struct sockaddr_in *)address, text);
    } else if (address->ss_family == AF_INET6) {
        print_inet6((const struct sockaddr_in6 *)address, text);
    } else {
        const struct sockaddr_un *un = (const struct sockaddr_un *)address;
        bool named = length > offsetof(struct sockaddr_un, sun_path) && un->sun_path[0] != '\0';
        size_t room = named ? length - offsetof(struct sockaddr_un, sun_path) : 0;
        snprintf(text, NET_ADDRESS_TEXT_MAX, "%.*s", named ? (int)room : 4,
                 named ? un->sun_path : "unix");
    }
}
