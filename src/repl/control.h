/*
 * control.h: an operator, or an agent, changes what a node is to the others. Lines of the text
 * protocol, each with its CR LF; the connection is closed after the answer:
 *
 *     C  promote 1 EPOCH [new-stream] [force]
 *                                         the follower leads from here on. EPOCH: of its reign,
 *                                         `-`: the next one; above all that its journal has.
 *                                         new-stream: of a shard of its own: its journal has
 *                                         another name from there on, so that neither can follow
 *                                         the other any more. Nobody may follow it then
 *     S  OK EPOCH LSN                     that epoch begins at LSN, and changes are taken
 *
 *     C  follow-to 1 HOST:PORT [force]    it follows that node from here on. The daemon begins
 *                                         anew, unless it follows already, by an agent's word.
 *                                         `-` in place of HOST:PORT: nobody, until it is said
 *     S  OK
 *
 *     C  lead 1 EPOCH UNTIL WAITS         with `follow: agent`, to the leader in EPOCH: until then
 *                                         it may take changes. UNTIL: milliseconds of
 *                                         CLOCK_BOOTTIME, at most REPL_LEASE_MS_MAX from now, and
 *                                         not below that of an earlier line.
 *                                         WAITS: the followers that must have each change, one
 *                                         name or two with a comma; `-`: none has to; `*`: one
 *                                         has to who is not named yet, so none is taken. It
 *                                         matters with ack: replica
 *     S  OK WRITTEN [ACKED [ACKED]]       WRITTEN: how far the journal is after that took effect;
 *                                         of each of WAITS how far it has it
 *
 *     S  SERVER_ERROR TEXT                refused, nothing was changed. Without `force` also where
 *                                         something would be lost: TEXT says how much
 *
 * Only from the same machine: over a unix socket or a loopback address. All hold until the daemon
 * is restarted: then it does what its configuration says.
 *
 * UNTIL is a moment and not a time from now: an agent that sleeps between the two makes none later.
 *
 * Thread rule: repl_control_run on a feed's thread; it may take seconds.
 */
#ifndef ROLLCALL_REPL_CONTROL_H
#define ROLLCALL_REPL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "repl/feed.h"
#include "repl/receiver.h"
#include "repl/wire.h"

#define REPL_LEASE_MS_MAX (10u * 60u * 1000u) /* beyond that it is another clock's */

struct repl_promotion {
    bool force, new_stream;
    uint64_t epoch; /* 0: the next one; in the end of the reign that began */
    uint64_t lsn;   /* in the end: where it began */
};

/* What the daemon does, one at a time. True: done. Else `why`, one sentence. */
struct repl_control {
    void *context;
    bool (*promote)(void *context, struct repl_promotion *promotion, char why[REPL_TEXT_MAX + 1]);
    /* *again: the daemon must begin anew after the answer. */
    bool (*follow)(void *context, const char *address, bool force, bool *again,
                   char why[REPL_TEXT_MAX + 1]);
    /* acked: of each of waits. */
    bool (*lead)(void *context, uint64_t epoch, uint64_t until_ms, const struct repl_waits *waits,
                 uint64_t *written, uint64_t acked[REPL_WAITS_MAX], char why[REPL_TEXT_MAX + 1]);
    void (*again)(void *context);
};

/* Returns whether this line is one of those, by its first word. */
bool repl_control_begins(const char *line, size_t length);

/* Carries out a line (without its end) of the peer at fd. Composes the answer, with its end, to
 * answer[]; returns its length. *again: call control->again after the answer has left. */
size_t repl_control_run(const struct repl_control *control, int fd, const char *line, size_t length,
                        char answer[REPL_LINE_MAX], bool *again);

#endif
