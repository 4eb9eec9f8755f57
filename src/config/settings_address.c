/* settings_address.c: listen addresses: their port, and one spelling for each. */
#include "config/settings_draft.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/check.h"
#include "base/memory.h"
#include "net/net.h"

#define HOST_MAX  253 /* letters of a DNS name */
#define PATH_ROOM (sizeof(((struct sockaddr_un *)0)->sun_path))

/* A TCP address cut in pieces. */
struct address {
    const char *prefix;      /* NET_PLAIN_PREFIX or "" */
    char host[HOST_MAX + 1]; /* without brackets */
    const char *port;        /* NULL: not given */
    bool v6;
};

/* Returns the address after notls: */
static const char *without_prefix(const char *text)
{
    size_t length = strlen(NET_PLAIN_PREFIX);

    return strncmp(text, NET_PLAIN_PREFIX, length) == 0 ? text + length : text;
}

/* Cuts host, host:port, v6, [v6] and [v6]:port. False: it is none of them. */
static bool settings_address_cut(const char *whole, struct address *address)
{
    const char *text = without_prefix(whole);
    const char *colon = strchr(text, ':');
    const char *host = text;
    size_t length = strlen(text);

    address->prefix = text != whole ? NET_PLAIN_PREFIX : "";
    address->port = NULL;
    address->v6 = *text == '[' || (colon != NULL && strchr(colon + 1, ':') != NULL);
    if (*text == '[') {
        const char *end = strchr(text, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':')) {
            return false;
        }
        host = text + 1;
        length = (size_t)(end - host);
        address->port = end[1] == ':' ? end + 2 : NULL;
    } else if (!address->v6 && colon != NULL) {
        length = (size_t)(colon - text);
        address->port = colon + 1;
    }
    if (length == 0 || length > HOST_MAX) {
        return false;
    }
    memcpy(address->host, host, length);
    address->host[length] = '\0';
    return true;
}

static bool host_valid(const struct address *address)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    char plain[HOST_MAX + 1];
    struct in6_addr parsed;

    if (!address->v6) {
        return address->host[strspn(address->host, letters)] == '\0';
    }
    strcpy(plain, address->host);
    plain[strcspn(plain, "%")] = '\0'; /* fe80::1%eth0 */
    return inet_pton(AF_INET6, plain, &parsed) == 1;
}

static bool is_loopback(const struct address *address)
{
    struct in_addr parsed; /* 127.example.com is none */

    if (inet_pton(AF_INET, address->host, &parsed) == 1) {
        return ntohl(parsed.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    return strcmp(address->host, "localhost") == 0 || strcmp(address->host, "::1") == 0;
}

static bool parse_port(struct settings_draft *draft, const char *text, unsigned *port,
                       const struct settings_place *place)
{
    static const struct option_row row = {.name = "port", .type = OPTION_NUMBER, .max = 65535};
    struct option_value value;
    char error[OPTIONS_ERROR_MAX];

    if (!options_parse(&row, text, &value, error)) {
        settings_error(draft, place, "%s", error);
        return false;
    }
    *port = (unsigned)value.number;
    return true;
}

static char *spell(const struct address *address, unsigned port)
{
    char *whole;

    CHECK(asprintf(&whole, "%s%s%s%s:%u", address->prefix, address->v6 ? "[" : "", address->host,
                   address->v6 ? "]" : "", port) >= 0);
    return whole;
}

/* Adds a mistake if other machines reach an address and nobody needs to log in; one mistake is
 * enough. */
static void refuse_open(struct settings_draft *draft, const struct address *address,
                        const struct settings_place *place, bool *refused)
{
    const struct settings *settings = draft->settings;
    bool verified = *address->prefix == '\0' && settings_tls_verifies(settings);

    if (*refused || is_loopback(address) || settings->allow_open || settings->auth_file != NULL ||
        verified) {
        return;
    }
    settings_error(draft, place,
                   "%s is reached from other machines, and whoever reaches it can change "
                   "everything: give an auth-file (-Y), TLS with tls.verify: require, or say "
                   "--allow-open",
                   address->host);
    *refused = true;
}

/* The final spelling of a TCP address, malloc'd; NULL with a mistake. */
static char *settings_address_complete(struct settings_draft *draft, const char *text,
                                       const struct settings_place *place, bool *refused)
{
    const char *fallback = draft->port ? draft->port : SETTINGS_PORT_DEFAULT;
    struct address address;
    char quoted[OPTIONS_QUOTE_MAX];
    unsigned port;

    if (!settings_address_cut(text, &address) || !host_valid(&address)) {
        settings_error(draft, place,
                       "an address must be host:port, [v6]:port or /path.sock, not %s",
                       options_quote(text, quoted));
        return NULL;
    }
    if (address.port == NULL || draft->port_replaces) {
        address.port = fallback;
    }
    if (!parse_port(draft, address.port, &port, place)) {
        return NULL;
    }
    refuse_open(draft, &address, place, refused);
    return spell(&address, port);
}

static void check_path(struct settings_draft *draft, const char *path,
                       const struct settings_place *place)
{
    if (strlen(path) >= PATH_ROOM) {
        settings_error(draft, place, "the path of a unix socket has at most %zu bytes, not %zu",
                       PATH_ROOM - 1, strlen(path));
    }
}

/* Several port 0 are several ports. */
static bool same_address(const char *left, const char *right)
{
    left = without_prefix(left);
    right = without_prefix(right);
    size_t length = strlen(left);

    if (*left != '/' && length > 2 && strcmp(left + length - 2, ":0") == 0) {
        return false;
    }
    return strcmp(left, right) == 0;
}

static void check_repeated(struct settings_draft *draft, size_t at)
{
    struct settings *settings = draft->settings;

    for (size_t i = 0; i < at; i++) {
        if (!same_address(settings->listen[i], settings->listen[at])) {
            continue;
        }
        settings_error(draft, &draft->listen[at], "listen address %s given twice%s",
                       settings->listen[at],
                       draft->port_replaces ? " (-p replaces all ports: use -l)" : "");
        return;
    }
}

void settings_address_check(struct settings_draft *draft)
{
    struct settings *settings = draft->settings;
    bool refused = false;

    for (size_t i = 0; i < settings->listen_count; i++) {
        const struct settings_place *place = &draft->listen[i];
        if (settings->listen[i][0] == '/') {
            check_path(draft, settings->listen[i], place);
        } else {
            char *whole = settings_address_complete(draft, settings->listen[i], place, &refused);
            if (whole == NULL) {
                continue;
            }
            free(settings->listen[i]);
            settings->listen[i] = whole;
        }
        check_repeated(draft, i);
    }
}

char *settings_address_remote(struct settings_draft *draft, const char *text, const char *name,
                              const struct settings_place *place)
{
    struct address address;
    char quoted[OPTIONS_QUOTE_MAX];
    unsigned port;

    if (*text == '/') {
        check_path(draft, text, place);
        return memory_strdup(text);
    }
    if (!settings_address_cut(text, &address) || !host_valid(&address)) {
        settings_error(draft, place, "%s must be host:port, [v6]:port or /path.sock, not %s", name,
                       options_quote(text, quoted));
        return NULL;
    }
    if (!parse_port(draft, address.port != NULL ? address.port : SETTINGS_PORT_DEFAULT, &port,
                    place)) {
        return NULL;
    }
    if (port == 0) {
        settings_error(draft, place, "%s: nobody listens on port 0", name);
        return NULL;
    }
    return spell(&address, port);
}

void settings_address_check_admin(struct settings_draft *draft)
{
    struct settings *settings = draft->settings;
    const struct settings_place *place = settings_draft_place(draft, "admin");
    struct address address;
    char quoted[OPTIONS_QUOTE_MAX];
    unsigned port;

    if (settings->admin == NULL) {
        return;
    }
    if (without_prefix(settings->admin) != settings->admin ||
        !settings_address_cut(settings->admin, &address) || !host_valid(&address)) {
        settings_error(draft, place, "admin must be host:port or [v6]:port, not %s",
                       options_quote(settings->admin, quoted));
        return;
    }
    if (!parse_port(draft, address.port != NULL ? address.port : SETTINGS_ADMIN_PORT, &port,
                    place)) {
        return;
    }
    if (!is_loopback(&address) && settings->admin_auth_file == NULL && !settings->allow_open) {
        settings_error(draft, place,
                       "admin: %s is reached from other machines, and whoever reaches it can see "
                       "everything but values: give an admin-auth, or say --allow-open",
                       address.host);
        return;
    }
    free(settings->admin);
    settings->admin = spell(&address, port);
}
