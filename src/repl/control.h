/*
 * control.h: an operator, or an agent, changes what a node is to the others. Lines of the text
 * protocol, each with its CR LF; the connection is closed after the answer:
 *
 *     C  promote 1 EPOCH [force]          the follower leads from here on. EPOCH: of its reign,
 * `-`: the next one; it must be above all that its journal has S  OK EPOCH LSN that epoch begins at
 * LSN, and changes are taken
 *
 *     C  follow-to 1 HOST:PORT [force]    it follows that node from here on. The daemon begins anew
 *     S  OK
 *
 *     S  SERVER_ERROR TEXT                refused, nothing was changed. Without `force` also where
 *                                         something would be lost: TEXT says how much
 *
 * Only from the same machine: over a unix socket or a loopback address. Both hold until the daemon
 * is restarted: then it does what its configuration says.
 *
 * Thread rule: repl_control_run on a feed's thread; it may take seconds.
 */
#ifndef ROLLCALL_REPL_CONTROL_H
#define ROLLCALL_REPL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "repl/wire.h"

#define REPL_CONTROL_VERSION 1u
#define REPL_ADDRESS_MAX     256u

/* What the daemon does, one at a time. True: done. Else `why`, one sentence. */
struct repl_control {
    void *context;
    /* epoch 0: the next one. *epoch and *lsn: of the reign that began. */
    bool (*promote)(void *context, bool force, uint64_t *epoch, uint64_t *lsn,
                    char why[REPL_TEXT_MAX + 1]);
    bool (*follow)(void *context, const char *address, bool force, char why[REPL_TEXT_MAX + 1]);
    /* Called after an answer that said OK to follow-to: the daemon begins anew. */
    void (*again)(void *context);
};

/* Returns whether this line is one of those, by its first word. */
bool repl_control_begins(const char *line, size_t length);

/* Carries out a line (without its end) of the peer at fd. Composes the answer, with its end, to
 * answer[]; returns its length. *again: call control->again after the answer has left. */
size_t repl_control_run(const struct repl_control *control, int fd, const char *line, size_t length,
                        char answer[REPL_LINE_MAX], bool *again);

#endif
