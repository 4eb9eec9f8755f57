/* wires.c: a network of two. */
#include "tests/sim/wires.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "repl/link_socket.h"
#include "tests/sim/actors.h"

#define WIRES_MAX  64u
#define FD_FIRST   1000000
#define PIPE_BYTES (300u << 10) /* under way at most, as in a socket's buffers */

/* What one side says. */
struct pipe {
    char *bytes;
    size_t length, arrived; /* of those */
};

struct wire {
    bool used;
    bool open[2];  /* it has not closed */
    bool ended[2]; /* it has been told that it is over */
    _Atomic bool woken[2];
    struct pipe pipe[2];
};

static struct wire wires[WIRES_MAX];
static struct wires_weather weather;
static uint64_t turned;

static struct wire *wire_of(const struct repl_link *link, unsigned *side)
{
    unsigned at = (unsigned)(link->fd - FD_FIRST);

    CHECK(at < 2 * WIRES_MAX && wires[at / 2].used);
    *side = at % 2;
    return &wires[at / 2];
}

/* ---- the network ---- */

void wires_end(void)
{
    for (size_t i = 0; i < WIRES_MAX; i++) {
        CHECK(!wires[i].open[0] && !wires[i].open[1]);
        free(wires[i].pipe[0].bytes);
        free(wires[i].pipe[1].bytes);
        wires[i] = (struct wire){.used = false};
    }
}

void wires_begin(void)
{
    wires_end();
    weather = (struct wires_weather){.turn_in = 0};
    turned = 0;
}

struct wires_weather *wires_weather(void)
{
    return &weather;
}

uint64_t wires_turned(void)
{
    return turned;
}

void wires_dial(int fds[2])
{
    size_t i = 0;

    while (i < WIRES_MAX && (wires[i].open[0] || wires[i].open[1])) {
        i++;
    }
    CHECK(i < WIRES_MAX);
    struct wire *wire = &wires[i];

    for (unsigned side = 0; side < 2; side++) {
        wire->pipe[side].length = wire->pipe[side].arrived = 0;
        wire->open[side] = true;
        wire->ended[side] = false;
        wire->woken[side] = false;
        if (wire->pipe[side].bytes == NULL) {
            wire->pipe[side].bytes = memory_zalloc(PIPE_BYTES);
        }
        fds[side] = FD_FIRST + (int)(2 * i + side);
    }
    wire->used = true;
}

void wires_flow(void)
{
    weather.holds[0] = weather.holds[1] = false;
    for (size_t i = 0; i < WIRES_MAX; i++) {
        wires[i].pipe[0].arrived = wires[i].pipe[0].length;
        wires[i].pipe[1].arrived = wires[i].pipe[1].length;
    }
    actors_changed();
}

void wires_cut(struct test_random *random, bool quiet)
{
    for (size_t i = 0; i < WIRES_MAX; i++) {
        struct wire *wire = &wires[i];
        unsigned told = (unsigned)test_random_below(random, 2);

        for (unsigned side = 0; side < 2; side++) {
            wire->pipe[side].length = wire->pipe[side].arrived;
            wire->ended[side] = wire->ended[side] || !quiet || side == told;
        }
    }
    actors_changed();
}

unsigned wires_open(void)
{
    unsigned count = 0;

    for (size_t i = 0; i < WIRES_MAX; i++) {
        const struct wire *wire = &wires[i];

        count += wire->open[0] && wire->open[1] && !wire->ended[0] && !wire->ended[1];
    }
    return count;
}

/* ---- in place of repl/link_socket.c ---- */

bool link_socket_open(struct repl_link *link)
{
    (void)link;
    return true;
}

void link_socket_close(struct repl_link *link)
{
    unsigned side;
    struct wire *wire = wire_of(link, &side);

    wire->open[side] = false;
    if (!wire->ended[side]) { /* else nobody hears of it */
        wire->ended[1 - side] = true;
    }
    link->fd = link->wake_fd = -1;
    actors_changed();
}

void link_socket_wake(struct repl_link *link)
{
    unsigned side;

    wire_of(link, &side)->woken[side] = true;
}

static short wire_says(const struct wire *wire, unsigned side, short events)
{
    const struct pipe *in = &wire->pipe[1 - side], *out = &wire->pipe[side];
    short said = wire->ended[side] ? POLLHUP : 0;

    if (in->arrived > 0 || wire->ended[side]) {
        said = (short)(said | (events & POLLIN));
    }
    if (out->length < PIPE_BYTES) {
        said = (short)(said | (events & POLLOUT));
    }
    return said;
}

struct waiting {
    struct wire *wire;
    unsigned side;
    short events;
};

static bool is_ready(void *context)
{
    const struct waiting *waiting = context;

    return waiting->wire->woken[waiting->side] ||
           wire_says(waiting->wire, waiting->side, waiting->events) != 0;
}

short link_socket_poll(struct repl_link *link, short events, uint64_t until_us)
{
    struct waiting waiting = {.events = events};

    waiting.wire = wire_of(link, &waiting.side);
    actors_park(is_ready, &waiting, until_us);
    waiting.wire->woken[waiting.side] = false;
    return wire_says(waiting.wire, waiting.side, events);
}

int link_socket_error(struct repl_link *link)
{
    (void)link;
    return 0;
}

ssize_t link_socket_read(struct repl_link *link, char *to, size_t room)
{
    unsigned side;
    struct wire *wire = wire_of(link, &side);
    struct pipe *in = &wire->pipe[1 - side];
    size_t got = in->arrived < room ? in->arrived : room;

    if (got == 0) {
        return wire->ended[side] ? -1 : 0;
    }
    memcpy(to, in->bytes, got);
    memmove(in->bytes, in->bytes + got, in->length - got);
    in->length -= got;
    in->arrived -= got;
    return (ssize_t)got;
}

static void turn(unsigned side, char *bytes, size_t length)
{
    if (side != 1 || weather.turn_in == 0) {
        return;
    }
    if (weather.turn_in <= length) {
        bytes[weather.turn_in - 1] = (char)(bytes[weather.turn_in - 1] ^ 1 << turned % 8);
        turned++;
        weather.turn_in = 0;
        return;
    }
    weather.turn_in -= length;
}

ssize_t link_socket_send(struct repl_link *link, const char *bytes, size_t length)
{
    unsigned side;
    struct wire *wire = wire_of(link, &side);
    struct pipe *out = &wire->pipe[side];
    size_t room = PIPE_BYTES - out->length;
    size_t sent = length < room ? length : room;

    if (wire->ended[side]) {
        return -1;
    }
    memcpy(out->bytes + out->length, bytes, sent);
    turn(side, out->bytes + out->length, sent);
    out->length += sent;
    if (!weather.holds[side]) {
        out->arrived = out->length;
    }
    return (ssize_t)sent;
}
