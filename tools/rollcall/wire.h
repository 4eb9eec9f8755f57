/*
 * wire.h: one connection of a tool to a daemon, in the text protocol: lines, values, waiting.
 *
 * Every wait has a bound, `patience_s`: for the connection, for a byte of an answer, for room to
 * send. While it sends it takes in what comes, so neither side waits for the other.
 *
 * Thread rule: a wire belongs to one thread.
 */
#ifndef ROLLCALL_TOOLS_WIRE_H
#define ROLLCALL_TOOLS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_SERVER     "127.0.0.1:11211"
#define WIRE_ERROR_MAX  512
#define WIRE_PATIENCE_S 60

struct wire {
    const char *address;
    unsigned patience_s;
    int fd;        /* -1: closed */
    bool lost;     /* the other side closed it, since the last wire_connect */
    bool answered; /* by wire_stat's last question */
    char *in;
    size_t in_at, in_length, in_room;
    char error[WIRE_ERROR_MAX]; /* a sentence, when something said false or NULL */
};

void wire_init(struct wire *wire, const char *address, unsigned patience_s);
void wire_fini(struct wire *wire);

/* Connects, again and again until its patience is over: a daemon that loads opens its port late.
 * waits: called before each further try; may be NULL. */
bool wire_connect(struct wire *wire, void (*waits)(void *context, const char *why), void *context);
void wire_close(struct wire *wire);

bool wire_send(struct wire *wire, const void *bytes, size_t length);
/* The next line, without its end, NUL added; valid until the next call. NULL: there is none. */
char *wire_line(struct wire *wire, size_t *length);
/* The same, if it has come already. NULL: not yet, or never. */
char *wire_line_there(struct wire *wire, size_t *length);

/* Reads one figure of `stats ARGS` as text; false with `error`: no answer, or (answered) there is
 * none. */
bool wire_stat(struct wire *wire, const char *args, const char *name, char *text, size_t size);

#endif
