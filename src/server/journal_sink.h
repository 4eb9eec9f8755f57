/*
 * journal_sink.h: the journal as what engines give changes and events to.
 *
 * A worker has a journal_sink of its own; the spaces share one journal_log, used with the world
 * stopped. What they put is kept when the worker's journal_sink_commit() has said so: it covers all
 * that anyone put before.
 *
 * The log keeps the room it has asked for (72 KiB, a part of the smallest buffer) until it is used,
 * so that reserve() mostly has it; journal_log_commit() gives it back and need not be called:
 * events leave with the next commit of a worker, and if nobody commits for so long that there is no
 * room left, with the log's own reserve().
 */
#ifndef ROLLCALL_SERVER_JOURNAL_SINK_H
#define ROLLCALL_SERVER_JOURNAL_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/change.h"
#include "store/journal.h"

struct journal_sink {
    struct change_sink sink; /* first */
    struct journal_writer writer;
};

void journal_sink_init(struct journal_sink *sink, struct journal *journal);
void journal_sink_fini(struct journal_sink *sink);
/* Has anything been put since the last commit? */
bool journal_sink_wrote(const struct journal_sink *sink);
/*
 * journal_commit of all so far; *lsn: what must be durable for that to be so under `always`, the
 * journal's head. Never lower than the last one.
 */
bool journal_sink_commit(struct journal_sink *sink, uint64_t *lsn);

/* When a reserve that had no room may have some: journal_wait_room. */
void journal_sink_wait(struct journal_sink *sink, void (*wake)(void *target, uint64_t serial),
                       void *target, uint64_t serial);

struct journal_log {
    struct change_log log; /* first */
    struct journal_writer writer;
};

void journal_log_init(struct journal_log *log, struct journal *journal);
void journal_log_fini(struct journal_log *log);
/* Makes what was put written and gives surplus room back. World stopped, or nobody else there. */
bool journal_log_commit(struct journal_log *log);

#endif
