/*
 * lead.h: what a running node is to others, and how that changes: it follows, is promoted, follows
 * somebody else, or has to begin anew because its journal or its tables are replaced.
 *
 * Thread rule: create, begin, end, destroy on the main thread; all else is called by threads of
 * src/repl, one at a time.
 */
#ifndef ROLLCALL_DAEMON_LEAD_H
#define ROLLCALL_DAEMON_LEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "request/server.h"

struct lead;
struct repl_receiver_counts;

/* What the daemon is told: it is to stop serving, and to begin anew or to end with a failure. Any
 * thread; once. */
struct lead_owner {
    void *context;
    struct repl_receiver_counts *counts; /* of the process: another start goes on with them */
    /* cut_lsn 0: the journal stays as it is. follow: the node it follows then; NULL: as before.
     * led: it leads until then: a last checkpoint would be of changes that nobody else may have. */
    void (*again)(void *context, uint64_t cut_lsn, const char *follow, bool led);
    void (*fail)(void *context);
};

/* After server_loaded. Never NULL. */
struct lead *lead_create(struct server *server, struct data *data, const struct lead_owner *owner);
/* Begins to follow, if it does. False: no thread can be had. Before clients connect. */
bool lead_begin(struct lead *lead);
/* Ends what it began. While the journal is open, before the feeds are stopped. NULL: no-op. */
void lead_end(struct lead *lead);
/* After the journal was closed. NULL: no-op. */
void lead_destroy(struct lead *lead);

#endif
