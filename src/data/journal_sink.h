/*
 * journal_sink.h: the journal as what engines give changes and events to.
 *
 * A worker has a journal_sink of its own; the spaces share one journal_log, used with the world
 * stopped. What they put is kept when the journal is written up to where a later submit, by anyone,
 * said that it ends.
 *
 * The log keeps the room it has asked for (72 KiB, a part of the smallest buffer) until it is used,
 * so that reserve() mostly has it. It never waits for the disk: if there is no room, what was put
 * is submitted, and the next request for room may find some. await() waits instead, outside the
 * barrier, and takes the room while the workers still run: left in the buffer it would be theirs
 * again before the world stops. Events leave with the next submit of a worker.
 */
#ifndef ROLLCALL_DATA_JOURNAL_SINK_H
#define ROLLCALL_DATA_JOURNAL_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/change_record.h"
#include "store/journal.h"

struct journal_sink {
    struct change_sink sink; /* first */
    struct journal_writer writer;
};

void journal_sink_init(struct journal_sink *sink, struct journal *journal);
void journal_sink_fini(struct journal_sink *sink);
/* Returns whether anything was put since the last submit. */
bool journal_sink_wrote(const struct journal_sink *sink);
/* journal_submit of all so far: the journal's head, which is never lower than the last one. */
uint64_t journal_sink_submit(struct journal_sink *sink);

/* After a reserve that had no room: journal_want_room. */
void journal_sink_want_room(struct journal_sink *sink);

struct journal_log {
    struct change_log log; /* first */
    struct journal_writer writer;
    _Atomic uint64_t ahead; /* room that await() has taken for the next reserve() */
    struct change_space_head heads[CHANGE_SPACE_MAX + 1]; /* by number; of those it was told */
};

void journal_log_init(struct journal_log *log, struct journal *journal);
void journal_log_fini(struct journal_log *log);
/*
 * A space of that number is called so, before its first event: SPACE says it in front of what the
 * engine gives (engine/change_record.h). Again with the same: no-op. By who gives numbers.
 */
void journal_log_name(struct journal_log *log, uint32_t number, const char *name, const char *kind);
/* Room for this many events of any length; as reserve(). */
bool journal_log_room(struct journal_log *log, size_t events);
/* Has what was put written soon, and gives surplus room back. World stopped, or nobody else there.
 */
void journal_log_submit(struct journal_log *log);
/* The same, and waits for the disk: nobody else is there. False: journal_commit. */
bool journal_log_commit(struct journal_log *log);

#endif
