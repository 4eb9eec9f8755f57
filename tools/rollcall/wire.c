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
#include "tools/rollcall/bench_connect.h"

#define ROOM_FIRST   (256u << 10)
#define ANSWER_MAX   (4u << 20) /* of an answer, before it is no line of ours */
#define TRY_EVERY_MS 100
#define CONNECT_MS   5000

void wire_init(struct wire *wire, const char *address, unsigned patience_s)
{
    *wire = (struct wire){.address = address, .patience_s = patience_s, .fd = -1};
}

void wire_close(struct wire *wire)
{
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
    snprintf(wire->error, sizeof(wire->error), "%.200s: %.200s", wire->address, what);
    return false;
}

bool wire_connect(struct wire *wire, void (*waits)(void *context, const char *why), void *context)
{
    uint64_t until = clock_monotonic_us() + wire->patience_s * 1000000ull;
    char why[BENCH_CONNECT_ERROR_MAX] = "";

    wire_close(wire);
    wire->lost = false;
    for (;;) {
        wire->fd = bench_connect(wire->address, BENCH_PORT, CONNECT_MS, why);
        if (wire->fd >= 0) {
            return true;
        }
        bool later = errno == ECONNREFUSED || errno == ENOENT || errno == ECONNRESET;

        if (!later || clock_monotonic_us() >= until) {
            snprintf(wire->error, sizeof(wire->error), "%s", why);
            return false;
        }
        if (waits != NULL) {
            waits(context, why);
        }
        const struct timespec pause = {0, TRY_EVERY_MS * 1000000l};

        nanosleep(&pause, NULL);
    }
}

/* ---- reading ---- */

/* Makes room after what came, which is moved to the front if need be. */
static void wire_make_room(struct wire *wire)
{
    if (wire->in_at > 0 && wire->in_at == wire->in_length) {
        wire->in_at = wire->in_length = 0;
    }
    if (wire->in_length < wire->in_room) {
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

/* Takes in what has come. False: the connection is over. */
static bool take_in(struct wire *wire)
{
    wire_make_room(wire);
    ssize_t got = recv(wire->fd, wire->in + wire->in_length, wire->in_room - wire->in_length, 0);

    wire->lost = got == 0 || (got < 0 && errno == ECONNRESET);
    if (got == 0) {
        return wire_fail(wire, "the server closed the connection");
    }
    if (got < 0) {
        return errno == EAGAIN || errno == EINTR || wire_fail(wire, strerror(errno));
    }
    wire->in_length += (size_t)got;
    return true;
}

static bool wire_wait(struct wire *wire, short events, short *ready)
{
    struct pollfd fd = {.fd = wire->fd, .events = events};
    int count = poll(&fd, 1, (int)wire->patience_s * 1000);

    if (count == 0) {
        return wire_fail(wire, "no answer");
    }
    *ready = fd.revents;
    return count > 0 || errno == EINTR || wire_fail(wire, strerror(errno));
}

char *wire_line_there(struct wire *wire, size_t *length)
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
        short ready;

        if (line != NULL) {
            return line;
        }
        if (wire->in_length - wire->in_at > ANSWER_MAX) {
            (void)wire_fail(wire, "the answer is no line: not a rollcalld?");
            return NULL;
        }
        if (wire->fd < 0 || !wire_wait(wire, POLLIN, &ready) || !take_in(wire)) {
            return NULL;
        }
    }
}

/* ---- sending ---- */

bool wire_send(struct wire *wire, const void *bytes, size_t length)
{
    const char *at = bytes;
    const char *end = at + length;

    while (at < end) {
        ssize_t sent = send(wire->fd, at, (size_t)(end - at), MSG_NOSIGNAL);
        short ready;

        if (sent > 0) {
            at += sent;
            continue;
        }
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            wire->lost = errno == EPIPE || errno == ECONNRESET;
            return wire_fail(wire, strerror(errno));
        }
        if (!wire_wait(wire, POLLIN | POLLOUT, &ready) || ((ready & POLLIN) && !take_in(wire))) {
            return false;
        }
    }
    return true;
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
        if (strncmp(line, "STAT ", 5) != 0) {
            wire->answered = strcmp(line, "END") == 0;
            return found || wire_fail(wire, strcmp(line, "END") == 0 ? "no such figure" : line);
        }
        const char *rest = line + 5;

        if (strncmp(rest, name, name_length) == 0 && rest[name_length] == ' ') {
            snprintf(text, size, "%s", rest + name_length + 1);
            found = true;
        }
    }
}
