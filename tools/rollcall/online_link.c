#include "tools/rollcall/online_link.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/memory.h"
#include "tools/rollcall/dial.h"
#include "tools/rollcall/verb.h"
#include "tools/rollcall/wire.h"

#define HTTP_PREFIX "http://"

struct online_link {
    const struct online_target *target;
    struct wire_peer *peer; /* NULL: an option of it is wrong */
    struct wire wire;
    enum exit_status status;
    bool quiet;
    char error[ONLINE_ERROR_MAX];
};

/* ---- what goes wrong ---- */

bool online_fail(struct online_link *link, enum exit_status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(link->error, sizeof(link->error), format, arguments);
    va_end(arguments);
    link->status = status;
    if (!link->quiet) {
        verb_complain(stderr, "%s", link->error);
    }
    return false;
}

enum exit_status online_status(const struct online_link *link)
{
    return link->status;
}

const char *online_error(const struct online_link *link)
{
    return link->error;
}

bool online_is_absent(const struct online_link *link)
{
    return link->wire.absent;
}

bool online_is_http(const struct online_target *target)
{
    return strncmp(target->wire.server, HTTP_PREFIX, strlen(HTTP_PREFIX)) == 0;
}

/* The wire has said why. */
static bool link_fail(struct online_link *link)
{
    enum exit_status status = link->wire.refused ? EXIT_STATUS_REFUSED : EXIT_STATUS_NO_ANSWER;

    return online_fail(link, status, "%s", link->wire.error);
}

static void link_set_deadline(struct online_link *link)
{
    link->wire.until_us = clock_monotonic_us() + link->target->timeout_ms * 1000ull;
}

/* ---- the memcached protocol ---- */

static bool begins(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

static bool is_last(const char *line)
{
    static const char
        *const last[] = {"END",        "ERROR", "CLIENT_ERROR ", "SERVER_ERROR ", "STORED",
                         "NOT_STORED", "OK",    "RESET",         "VERSION ",      "STREAM ",
                         "REWIND ",    "COPY ", "BUSY "}; /* the last four: of `follow` */

    for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++) {
        if (begins(line, last[i])) {
            return true;
        }
    }
    return false;
}

bool online_ask(struct online_link *link, const char *command, online_line_fn *take, void *context)
{
    bool is_value = false; /* the line is data: it ends nothing */

    if (link->status != EXIT_STATUS_DONE) {
        return false;
    }
    link_set_deadline(link);
    if (!wire_send(&link->wire, command, strlen(command))) {
        return link_fail(link);
    }
    for (;;) {
        size_t length;
        const char *line = wire_line(&link->wire, &length);

        if (line == NULL) {
            return link_fail(link);
        }
        if (!is_value && wire_wants_login(&link->wire, line)) {
            return link_fail(link);
        }
        take(context, line, length);
        if (!is_value && is_last(line)) {
            return true;
        }
        is_value = !is_value && begins(line, "VALUE ");
    }
}

/* ---- opening ---- */

/* Of a status page: what is between http:// and the path. */
static struct wire_peer *link_make_peer(const struct online_target *target,
                                        char error[WIRE_ERROR_MAX])
{
    struct wire_target whom = target->wire;
    char address[ONLINE_ERROR_MAX];

    if (!online_is_http(target)) {
        return wire_peer_create(&whom, DIAL_PORT, error);
    }
    snprintf(address, sizeof(address), "%s", target->wire.server + strlen(HTTP_PREFIX));
    address[strcspn(address, "/")] = '\0';
    whom.server = address;
    whom.tls = false;
    whom.tls_ca = whom.tls_cert = whom.tls_key = NULL;
    return wire_peer_create(&whom, ONLINE_ADMIN_PORT, error);
}

struct online_link *online_open(const struct online_target *target, bool quiet)
{
    struct online_link *link = memory_zalloc(sizeof(*link));
    char error[WIRE_ERROR_MAX];
    bool later;

    link->target = target;
    link->quiet = quiet;
    link->peer = link_make_peer(target, error);
    wire_init(&link->wire, link->peer, target->timeout_ms);
    if (link->peer == NULL) {
        (void)online_fail(link, EXIT_STATUS_USAGE, "%s", error);
        return link;
    }
    link->wire.logs_in = !online_is_http(target);
    link_set_deadline(link);
    if (!wire_connect_once(&link->wire, &later)) {
        (void)link_fail(link);
    }
    return link;
}

void online_close(struct online_link *link)
{
    if (link == NULL) {
        return;
    }
    wire_fini(&link->wire);
    wire_peer_destroy(link->peer);
    free(link);
}

/* ---- HTTP ---- */

static bool send_get(struct online_link *link, const char *path)
{
    const char *login = link->peer->login;
    char encoded[2 * WIRE_LOGIN_MAX], request[4 * WIRE_LOGIN_MAX];

    base64_encode(login, strlen(login), encoded);
    snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\nHost: %.200s\r\n%s%s%s\r\n", path,
             link->peer->address, *login != '\0' ? "Authorization: Basic " : "", encoded,
             *login != '\0' ? "\r\n" : "");
    bool sent = wire_send(&link->wire, request, strlen(request));

    explicit_bzero(request, sizeof(request));
    explicit_bzero(encoded, sizeof(encoded));
    return sent || link_fail(link);
}

static char *body_of(struct online_link *link, const char *input)
{
    const char *body = strstr(input, "\r\n\r\n");
    int code = 0;

    if (body == NULL || sscanf(input, "HTTP/%*s %d", &code) != 1) {
        online_fail(link, EXIT_STATUS_NO_ANSWER, "%s: no HTTP answer", link->target->wire.server);
        return NULL;
    }
    if (code != 200) {
        online_fail(link, code == 401 || code == 429 ? EXIT_STATUS_REFUSED : EXIT_STATUS_NO_ANSWER,
                    "%s answers %d: %.200s%s", link->target->wire.server, code, body + 4,
                    code == 401 ? "(give --auth-file FILE, whose first line is name:password)"
                                : "");
        return NULL;
    }
    return memory_strdup(body + 4);
}

char *online_get(struct online_link *link, const char *path)
{
    if (link->status != EXIT_STATUS_DONE) {
        return NULL;
    }
    link_set_deadline(link);
    if (!send_get(link, path)) {
        return NULL;
    }
    const char *input = wire_rest(&link->wire);

    if (input == NULL) {
        (void)link_fail(link);
    }
    return input != NULL ? body_of(link, input) : NULL;
}
