/*
 * wire.h: one connection of a tool to a daemon: connecting, TLS, the login, lines out and in.
 *
 * Every wait has a bound, `patience_ms`: for the connection, for a byte of an answer, for room to
 * send; and all of them end at `until_us`, if that is set. While it sends it takes in what comes,
 * so neither side waits for the other.
 *
 * Thread rule: a wire belongs to one thread.
 */
#ifndef ROLLCALL_TOOLS_WIRE_H
#define ROLLCALL_TOOLS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/exit_status.h"
#include "tools/rollcall/wire_peer.h"

#define WIRE_ANSWER_MAX (256u << 20) /* bytes that are read and not taken */

struct net_tls;

struct wire {
    const struct wire_peer *peer;
    unsigned patience_ms;
    uint64_t until_us;   /* clock_monotonic_us(); 0: each wait has its patience */
    bool logs_in;        /* true at first; false: the peer's login is not for the wire */
    int fd;              /* -1: closed */
    struct net_tls *tls; /* NULL: none */
    bool lost;           /* the other side closed it, since the last wire_connect */
    bool absent;         /* nobody listened there, at the last wire_connect */
    bool refused;        /* the login was, or is asked for */
    bool failed;         /* since the last wire_connect: there is no connection, or no answer */
    bool answered;       /* by wire_stat's last question */
    char *in;
    size_t in_at, in_length, in_room;
    char error[WIRE_ERROR_MAX]; /* a sentence, when something said false or NULL */
};

/* The peer stays the caller's, and lives longer. */
void wire_init(struct wire *wire, const struct wire_peer *peer, unsigned patience_ms);
void wire_fini(struct wire *wire);

/* Connects and logs in, once. *later: another try may help. False with `error`. */
bool wire_connect_once(struct wire *wire, bool *later);
/* The same again and again until its patience is over: a daemon that loads opens its port late.
 * waits: called before each further try; may be NULL. */
bool wire_connect(struct wire *wire, void (*waits)(void *context, const char *why), void *context);
void wire_close(struct wire *wire);
/* What a verb that could not go on exits with: NO_ANSWER if the wire failed, REFUSED if that was
 * for the login, FAILED if the wire is as it should be. */
enum exit_status wire_status(const struct wire *wire);

bool wire_send(struct wire *wire, const void *bytes, size_t length);
/* The next line, without its end, NUL added; valid until the next call. NULL: there is none. */
char *wire_line(struct wire *wire, size_t *length);
/* Takes these bytes, if they are what has come next. */
static inline bool wire_take(struct wire *wire, const char *bytes, size_t length)
{
    bool same = wire->in_length - wire->in_at >= length &&
                memcmp(wire->in + wire->in_at, bytes, length) == 0;

    wire->in_at += same ? length : 0;
    return same;
}
/* All until the other side closes, NUL added; valid as the wire. NULL with `error`. */
char *wire_rest(struct wire *wire);

/* Is that line the daemon's word that it wants a user? Then `error` says so, and what to do. */
bool wire_wants_login(struct wire *wire, const char *line);

/* Reads one figure of `stats ARGS` as text; false with `error`: no answer, or (answered) there is
 * none. */
bool wire_stat(struct wire *wire, const char *args, const char *name, char *text, size_t size);

#endif
