#include "tools/rollcall/online_link.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/check.h"
#include "base/memory.h"
#include "tools/rollcall/bench_connect.h"

#define HTTP_PREFIX     "http://"
#define READ_BYTES      65536
#define AUTH_LINE_BYTES 600
#define MS_A_SECOND     1000
#define NS_A_MS         1000000

struct online_link {
    const struct online_target *target;
    int fd; /* -1: none */
    enum exit_status status;
    bool quiet;
    char error[ONLINE_ERROR_MAX];
    char auth[AUTH_LINE_BYTES]; /* name:password; "" is none */
    char *input;                /* what is read and not yet taken, from `taken` on */
    size_t length, taken, room;
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
        fprintf(stderr, "rollcall: %s\n", link->error);
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

bool online_is_http(const struct online_target *target)
{
    return strncmp(target->server, HTTP_PREFIX, strlen(HTTP_PREFIX)) == 0;
}

/* ---- bytes ---- */

static uint64_t link_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * MS_A_SECOND + (uint64_t)now.tv_nsec / NS_A_MS;
}

/* Waits until the descriptor is ready, or the deadline is over. */
static bool link_await(struct online_link *link, short events, uint64_t deadline_ms)
{
    struct pollfd fd = {.fd = link->fd, .events = events};
    uint64_t now = link_now_ms();
    int ready = now < deadline_ms ? poll(&fd, 1, (int)(deadline_ms - now)) : 0;

    if (ready > 0 || (ready < 0 && errno == EINTR)) {
        return true;
    }
    return online_fail(link, EXIT_STATUS_NO_ANSWER, "%s: no answer within %u ms (--timeout)",
                       link->target->server, link->target->timeout_ms);
}

static bool link_send(struct online_link *link, const char *bytes, size_t length)
{
    uint64_t deadline_ms = link_now_ms() + link->target->timeout_ms;

    while (length > 0) {
        ssize_t sent = send(link->fd, bytes, length, MSG_NOSIGNAL);

        if (sent >= 0) {
            bytes += sent;
            length -= (size_t)sent;
        } else if (errno != EAGAIN && errno != EINTR) {
            return online_fail(link, EXIT_STATUS_NO_ANSWER, "%s: %s", link->target->server,
                               strerror(errno));
        } else if (!link_await(link, POLLOUT, deadline_ms)) {
            return false;
        }
    }
    return true;
}

/* Reads some more. *ended: the other side has closed. */
static bool link_read_more(struct online_link *link, uint64_t deadline_ms, bool *ended)
{
    if (link->room - link->length < READ_BYTES) {
        link->room *= 2;
        link->input = realloc(link->input, link->room);
        CHECK(link->input != NULL);
    }
    if (link_now_ms() >= deadline_ms) {
        return link_await(link, POLLIN, deadline_ms); /* that says it */
    }
    for (;;) {
        ssize_t got = recv(link->fd, link->input + link->length, READ_BYTES, 0);

        if (got >= 0) {
            *ended = got == 0;
            link->length += (size_t)got;
            return link->length <= ONLINE_ANSWER_MAX ||
                   online_fail(link, EXIT_STATUS_NO_ANSWER, "%s: the answer is longer than %u MiB",
                               link->target->server, ONLINE_ANSWER_MAX >> 20);
        }
        if (errno != EAGAIN && errno != EINTR) {
            return online_fail(link, EXIT_STATUS_NO_ANSWER, "%s: %s", link->target->server,
                               strerror(errno));
        }
        if (!link_await(link, POLLIN, deadline_ms)) {
            return false;
        }
    }
}

/* ---- the memcached protocol ---- */

/* The next line, without its end; NULL: it was lost. It lasts until the next one. */
static char *link_next_line(struct online_link *link, uint64_t deadline_ms, size_t *length)
{
    for (;;) {
        char *from = link->input + link->taken;
        size_t left = link->length - link->taken;
        char *end = left > 0 ? memchr(from, '\n', left) : NULL;
        bool ended = false;

        if (end != NULL) {
            *length = (size_t)(end - from);
            link->taken += *length + 1;
            *length -= *length > 0 && from[*length - 1] == '\r' ? 1 : 0;
            from[*length] = '\0';
            return from;
        }
        memmove(link->input, from, left);
        link->taken = 0;
        link->length = left;
        if (!link_read_more(link, deadline_ms, &ended)) {
            return NULL;
        }
        if (ended) {
            online_fail(
                link, EXIT_STATUS_NO_ANSWER,
                "%s closed the connection: is it a rollcalld, and does it want TLS? This program "
                "speaks none; a unix socket and addresses written notls:host:port are without",
                link->target->server);
            return NULL;
        }
    }
}

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
    uint64_t deadline_ms = link_now_ms() + link->target->timeout_ms;
    bool is_value = false; /* the line is data: it ends nothing */

    if (link->status != EXIT_STATUS_DONE || !link_send(link, command, strlen(command))) {
        return false;
    }
    for (;;) {
        size_t length;
        const char *line = link_next_line(link, deadline_ms, &length);

        if (line == NULL) {
            return false;
        }
        if (!is_value && begins(line, "CLIENT_ERROR unauthenticated")) {
            return online_fail(link, EXIT_STATUS_REFUSED,
                               "%s wants a user: give --auth-file FILE, whose first line is "
                               "name:password",
                               link->target->server);
        }
        take(context, line, length);
        if (!is_value && is_last(line)) {
            return true;
        }
        is_value = !is_value && begins(line, "VALUE ");
    }
}

/* ---- who we are ---- */

static bool read_auth(struct online_link *link)
{
    const char *name = link->target->auth_file;
    FILE *file = fopen(name, "re");

    if (file == NULL) {
        return online_fail(link, EXIT_STATUS_USAGE, "%s: %s", name, strerror(errno));
    }
    if (fgets(link->auth, sizeof(link->auth), file) == NULL) {
        link->auth[0] = '\0';
    }
    fclose(file);
    link->auth[strcspn(link->auth, "\r\n")] = '\0';
    return strchr(link->auth, ':') != NULL ||
           online_fail(link, EXIT_STATUS_USAGE, "%s: its first line must be name:password", name);
}

static void keep_verdict(void *context, const char *line, size_t length)
{
    char *verdict = context;

    snprintf(verdict, ONLINE_ERROR_MAX, "%.*s", (int)length, line);
}

static bool log_in(struct online_link *link)
{
    char command[AUTH_LINE_BYTES + 64], verdict[ONLINE_ERROR_MAX] = "";
    char *colon = strchr(link->auth, ':');

    snprintf(command, sizeof(command), "set login 0 0 %zu\r\n%.*s %s\r\n", strlen(link->auth),
             (int)(colon - link->auth), link->auth, colon + 1);
    bool answered = online_ask(link, command, keep_verdict, verdict);

    explicit_bzero(command, sizeof(command));
    return answered && (begins(verdict, "STORED") ||
                        online_fail(link, EXIT_STATUS_REFUSED, "%s refuses the user of %s: %.200s",
                                    link->target->server, link->target->auth_file, verdict));
}

struct online_link *online_open(const struct online_target *target, bool quiet)
{
    struct online_link *link = memory_zalloc(sizeof(*link));
    bool http = online_is_http(target);
    char error[BENCH_CONNECT_ERROR_MAX];
    char address[ONLINE_ERROR_MAX];

    link->target = target;
    link->fd = -1;
    link->room = 2 * READ_BYTES;
    link->input = memory_zalloc(link->room);
    link->quiet = quiet;
    snprintf(address, sizeof(address), "%s", target->server + (http ? strlen(HTTP_PREFIX) : 0));
    if (http) {
        address[strcspn(address, "/")] = '\0';
    }
    bool good = target->auth_file == NULL || read_auth(link);

    if (good) {
        link->fd = bench_connect(address, http ? ONLINE_ADMIN_PORT : BENCH_PORT, target->timeout_ms,
                                 error);
        good = link->fd >= 0 ||
               online_fail(link, EXIT_STATUS_NO_ANSWER, "cannot connect to %s", error);
    }
    good = good && (http || target->auth_file == NULL || log_in(link));
    CHECK(good == (link->status == EXIT_STATUS_DONE));
    return link;
}

void online_close(struct online_link *link)
{
    if (link == NULL) {
        return;
    }
    if (link->fd >= 0) {
        close(link->fd);
    }
    explicit_bzero(link->auth, sizeof(link->auth));
    free(link->input);
    free(link);
}

/* ---- HTTP ---- */

static bool send_get(struct online_link *link, const char *path)
{
    char encoded[2 * AUTH_LINE_BYTES], request[4 * AUTH_LINE_BYTES];

    base64_encode(link->auth, strlen(link->auth), encoded);
    snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\nHost: %.200s\r\n%s%s%s\r\n", path,
             link->target->server + strlen(HTTP_PREFIX),
             *link->auth != '\0' ? "Authorization: Basic " : "", encoded,
             *link->auth != '\0' ? "\r\n" : "");
    bool sent = link_send(link, request, strlen(request));

    explicit_bzero(request, sizeof(request));
    explicit_bzero(encoded, sizeof(encoded));
    return sent;
}

static char *body_of(struct online_link *link)
{
    const char *body = strstr(link->input, "\r\n\r\n");
    int code = 0;

    if (body == NULL || sscanf(link->input, "HTTP/%*s %d", &code) != 1) {
        online_fail(link, EXIT_STATUS_NO_ANSWER, "%s: no HTTP answer", link->target->server);
        return NULL;
    }
    if (code != 200) {
        online_fail(link, code == 401 || code == 429 ? EXIT_STATUS_REFUSED : EXIT_STATUS_NO_ANSWER,
                    "%s answers %d: %.200s%s", link->target->server, code, body + 4,
                    code == 401 ? "(give --auth-file FILE, whose first line is name:password)"
                                : "");
        return NULL;
    }
    return memory_strdup(body + 4);
}

char *online_get(struct online_link *link, const char *path)
{
    uint64_t deadline_ms = link_now_ms() + link->target->timeout_ms;
    bool ended = false;

    if (link->status != EXIT_STATUS_DONE || !send_get(link, path)) {
        return NULL;
    }
    while (!ended) {
        if (!link_read_more(link, deadline_ms, &ended)) {
            return NULL;
        }
    }
    link->input[link->length] =
        '\0'; /* there is room: link_read_more() asks for more than it reads */
    return body_of(link);
}
