#include "tools/rollcall/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fail.h"
#include "net/tls.h"
#include "tools/rollcall/dial.h"

#define ROOM_FIRST   (256u << 10)
#define LINE_MAX     (4u << 20) /* of an answer, before it is no line of ours */
#define TRY_EVERY_MS 100
#define CONNECT_MS   5000
#define LOSSES_MAX   10 /* of a handshake or login: a daemon that is killed may come back */

void wire_init(struct wire *wire, const struct wire_peer *peer, unsigned patience_ms)
{
    *wire = (struct wire){.peer = peer, .patience_ms = patience_ms, .logs_in = true, .fd = -1};
}

void wire_close(struct wire *wire)
{
    net_tls_destroy(wire->tls);
    wire->tls = NULL;
    if (wire->fd >= 0) {
        close(wire->fd);
    }
    wire->fd = -1;
    wire->in_at = wire->in_length = 0;
}

void wire_fini(struct wire *wire)
{
    wire_close(wire);
    free(wire->in);
    wire->in = NULL;
    wire->in_room = 0;
}

static bool wire_fail(struct wire *wire, const char *what)
{
    snprintf(wire->error, sizeof(wire->error), "%.200s: %.250s", wire->peer->address, what);
    wire->failed = true;
    return false;
}

/* ---- waiting ---- */

/* Milliseconds that a wait may last. */
static int wire_left_ms(const struct wire *wire)
{
    uint64_t now_us = clock_monotonic_us();

    if (wire->until_us == 0) {
        return (int)wire->patience_ms;
    }
    uint64_t left_ms = now_us < wire->until_us ? (wire->until_us - now_us + 999) / 1000 : 0;
    return left_ms < wire->patience_ms ? (int)left_ms : (int)wire->patience_ms;
}

static bool wire_late(struct wire *wire)
{
    char words[64];

    snprintf(words, sizeof(words), "no answer within %g s (--timeout)", wire->patience_ms / 1000.0);
    return wire_fail(wire, words);
}

/* What TLS waits for may be the other direction than that of the call. */
static bool wire_wait(struct wire *wire, short events, short *ready)
{
    bool turned = wire->tls != NULL && net_tls_turned(wire->tls);
    short other = events & POLLOUT ? POLLIN : POLLOUT;
    struct pollfd fd = {.fd = wire->fd, .events = turned ? other : events};
    int count = poll(&fd, 1, wire_left_ms(wire));

    if (count == 0) {
        return wire_late(wire);
    }
    *ready = fd.revents;
    return count > 0 || errno == EINTR || wire_fail(wire, strerror(errno));
}

/* ---- bytes ---- */

/* Room after what came, moved to the front if need be; a byte more for a NUL. */
static void wire_make_room(struct wire *wire)
{
    if (wire->in_at > 0 && wire->in_at == wire->in_length) {
        wire->in_at = wire->in_length = 0;
    }
    if (wire->in_length + 1 < wire->in_room) {
        return;
    }
    if (wire->in_at > wire->in_room / 2) {
        wire->in_length -= wire->in_at;
        memmove(wire->in, wire->in + wire->in_at, wire->in_length);
        wire->in_at = 0;
        return;
    }
    wire->in_room = wire->in_room == 0 ? ROOM_FIRST : 2 * wire->in_room;
    wire->in = realloc(wire->in, wire->in_room);
    CHECK(wire->in != NULL);
}

/* Why a handshake failed, or the connection. */
static bool wire_over(struct wire *wire)
{
    const char *refused = wire->tls != NULL ? net_tls_refused(wire->tls) : NULL;

    wire->lost = true;
    if (refused != NULL) {
        char words[WIRE_ERROR_MAX];

        snprintf(words, sizeof(words), "its certificate is refused: %.200s", refused);
        return wire_fail(wire, words);
    }
    /* it may be agreed here, and refused there: TLS 1.3 tells of a certificate afterwards */
    if (wire->tls != NULL && (!net_tls_established(wire->tls) || net_tls_failed(wire->tls))) {
        return wire_fail(wire, "the TLS handshake failed: does it speak TLS, and want a "
                               "certificate of ours (--tls-cert)?");
    }
    return wire_fail(wire, "the server closed the connection: is it a rollcalld, and does it want "
                           "TLS (--tls)?");
}

/* -1: it is over, and error has why. 0: nothing now. */
static ssize_t wire_read(struct wire *wire, char *to, size_t room)
{
    ssize_t got =
        wire->tls != NULL ? net_tls_read(wire->tls, to, room) : recv(wire->fd, to, room, 0);
    bool closed = wire->tls != NULL ? got < 0 : got == 0;

    if (closed) {
        (void)wire_over(wire);
        return -1;
    }
    if (got < 0 && errno != EAGAIN && errno != EINTR) {
        wire->lost = errno == ECONNRESET;
        (void)wire_fail(wire, strerror(errno));
        return -1;
    }
    return got < 0 ? 0 : got;
}

/* Takes in what has come. False: the connection is over. */
static bool take_in(struct wire *wire)
{
    wire_make_room(wire);
    ssize_t got = wire_read(wire, wire->in + wire->in_length, wire->in_room - wire->in_length - 1);

    wire->in_length += got > 0 ? (size_t)got : 0;
    return got >= 0;
}

/* Waits until something has come, and takes it in. */
static bool wire_await_in(struct wire *wire)
{
    short ready;

    if (wire->tls != NULL && net_tls_pending(wire->tls)) {
        return take_in(wire);
    }
    return wire_wait(wire, POLLIN, &ready) && take_in(wire);
}

/* -1: it is over, and error has why. 0: nothing now. */
static ssize_t wire_write(struct wire *wire, const char *bytes, size_t length)
{
    ssize_t sent = wire->tls != NULL ? net_tls_write(wire->tls, bytes, length)
                                     : send(wire->fd, bytes, length, MSG_NOSIGNAL);

    if (sent >= 0) {
        return sent;
    }
    if (wire->tls != NULL) {
        (void)wire_over(wire);
        return -1;
    }
    if (errno == EAGAIN || errno == EINTR) {
        return 0;
    }
    wire->lost = errno == EPIPE || errno == ECONNRESET;
    (void)wire_fail(wire, strerror(errno));
    return -1;
}

bool wire_send(struct wire *wire, const void *bytes, size_t length)
{
    const char *at = bytes;
    const char *end = at + length;

    while (at < end) {
        ssize_t sent = wire_write(wire, at, (size_t)(end - at));
        short ready;

        if (sent < 0) {
            return false;
        }
        at += sent;
        if (sent == 0 &&
            (!wire_wait(wire, POLLIN | POLLOUT, &ready) || ((ready & POLLIN) && !take_in(wire)))) {
            return false;
        }
    }
    return true;
}

/* ---- lines ---- */

/* The next line, if it has come already. NULL: not yet, or never. */
static char *wire_line_there(struct wire *wire, size_t *length)
{
    char *start = wire->in + wire->in_at;
    size_t left = wire->in_length - wire->in_at;
    char *end = left > 0 ? memchr(start, '\n', left) : NULL;

    if (end == NULL) {
        return NULL;
    }
    wire->in_at += (size_t)(end - start) + 1;
    if (end > start && end[-1] == '\r') {
        end--;
    }
    *end = '\0';
    *length = (size_t)(end - start);
    return start;
}

char *wire_line(struct wire *wire, size_t *length)
{
    for (;;) {
        char *line = wire->in_length > wire->in_at ? wire_line_there(wire, length) : NULL;

        if (line != NULL) {
            return line;
        }
        if (wire->in_length - wire->in_at > LINE_MAX) {
            (void)wire_fail(wire, "the answer is no line: not a rollcalld?");
            return NULL;
        }
        if (wire->fd < 0 || !wire_await_in(wire)) {
            return NULL;
        }
    }
}

char *wire_rest(struct wire *wire)
{
    while (wire_await_in(wire)) {
        if (wire->in_length - wire->in_at > WIRE_ANSWER_MAX) {
            (void)wire_fail(wire, "the answer is longer than 256 MiB");
            return NULL;
        }
    }
    if (!wire->lost || wire->in_length == wire->in_at) {
        return NULL;
    }
    wire->in[wire->in_length] = '\0';
    return wire->in + wire->in_at;
}

/* ---- connecting ---- */

static bool wire_begin_tls(struct wire *wire)
{
    const struct net_tls_context *context = wire->peer->tls;

    if (context == NULL) {
        return true;
    }
    wire->tls = net_tls_create_client(context, wire->fd, wire->peer->host);
    if (wire->tls == NULL) {
        return wire_fail(wire, "there is no memory for TLS");
    }
    bool good = take_in(wire);

    while (good && !net_tls_established(wire->tls)) {
        good = wire_await_in(wire);
    }
    return good;
}

/* *later: it loads. */
static bool wire_log_in(struct wire *wire, bool *later)
{
    const char *login = wire->peer->login;
    const char *colon = strchr(login, ':');
    char command[WIRE_LOGIN_MAX + 64];
    size_t length;

    if (colon == NULL || !wire->logs_in) {
        return true;
    }
    int bytes = snprintf(command, sizeof(command), "set login 0 0 %zu\r\n%.*s %s\r\n",
                         strlen(login), (int)(colon - login), login, colon + 1);
    bool sent = wire_send(wire, command, (size_t)bytes);

    explicit_bzero(command, sizeof(command));
    const char *line = sent ? wire_line(wire, &length) : NULL;

    if (line == NULL || strcmp(line, "STORED") == 0) {
        return line != NULL;
    }
    *later = strncmp(line, "SERVER_ERROR loading", 20) == 0;
    wire->refused = !*later;
    wire->failed = *later; /* loading past the patience is no answer in time */
    return fail_with(wire->error, sizeof(wire->error), "%.150s refuses the user of %.150s: %.150s",
                     wire->peer->address, wire->peer->auth_file, line);
}

bool wire_connect_once(struct wire *wire, bool *later)
{
    unsigned connect_ms = wire->patience_ms < CONNECT_MS ? wire->patience_ms : CONNECT_MS;
    char why[DIAL_ERROR_MAX] = "";

    wire_close(wire);
    wire->lost = wire->refused = wire->failed = false;
    wire->fd = dial_server(wire->peer->address, wire->peer->port, connect_ms, why);
    wire->absent = wire->fd < 0 && errno == ECONNREFUSED;
    *later = errno == ECONNREFUSED || errno == ENOENT || errno == ECONNRESET;
    if (wire->fd < 0) {
        snprintf(wire->error, sizeof(wire->error), "cannot connect to %s", why);
        wire->failed = true;
        return false;
    }
    *later = false;
    if (wire_begin_tls(wire) && wire_log_in(wire, later)) {
        return true;
    }
    wire_close(wire);
    return false;
}

bool wire_connect(struct wire *wire, void (*waits)(void *context, const char *why), void *context)
{
    uint64_t until = clock_monotonic_us() + wire->patience_ms * 1000ull;
    unsigned losses = 0;
    bool later;

    while (!wire_connect_once(wire, &later)) {
        const struct timespec pause = {0, TRY_EVERY_MS * 1000000l};

        losses += wire->lost;
        later = later || (wire->lost && losses < LOSSES_MAX);
        if (!later || clock_monotonic_us() >= until) {
            return false;
        }
        if (waits != NULL) {
            waits(context, wire->error);
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

enum exit_status wire_status(const struct wire *wire)
{
    return wire->refused  ? EXIT_STATUS_REFUSED
           : wire->failed ? EXIT_STATUS_NO_ANSWER
                          : EXIT_STATUS_FAILED;
}

bool wire_wants_login(struct wire *wire, const char *line)
{
    wire->refused = strncmp(line, "CLIENT_ERROR unauthenticated", 28) == 0;
    if (wire->refused) {
        (void)wire_fail(wire, "it wants a user: give --auth-file FILE, whose first line is "
                              "name:password");
    }
    return wire->refused;
}

/* ---- figures ---- */

bool wire_stat(struct wire *wire, const char *args, const char *name, char *text, size_t size)
{
    char request[256];
    size_t name_length = strlen(name);
    size_t length;
    bool found = false;
    int bytes = snprintf(request, sizeof(request), "stats %s\r\n", args);

    wire->answered = false;
    if (!wire_send(wire, request, (size_t)bytes)) {
        return false;
    }
    for (;;) {
        const char *line = wire_line(wire, &length);

        if (line == NULL) {
            return false;
        }
        if (wire_wants_login(wire, line)) {
            return false;
        }
        if (strncmp(line, "STAT ", 5) != 0) {
            wire->answered = strcmp(line, "END") == 0;
            if (!found) {
                (void)wire_fail(wire, wire->answered ? "no such figure" : line);
                wire->failed = false; /* there was an answer */
            }
            return found;
        }
        const char *rest = line + 5;

        if (strncmp(rest, name, name_length) == 0 && rest[name_length] == ' ') {
            snprintf(text, size, "%s", rest + name_length + 1);
            found = true;
        }
    }
}
