/*
 * follow.h: a data directory whose journal another node writes: the same records at the same LSNs.
 * One thread, the receiver's, puts them in as they come; another one, the applier of follow.c,
 * carries them out behind it, so what is taken is safe however long that takes.
 *
 * A directory follows if replication.follow was set when it was opened. Its start replays what it
 * has and begins nothing: no epoch, no space, no record of its own, until it is promoted.
 *
 * What a copy's tables were written with may lie above what its journal has so far: until the
 * applier has come there nobody may read (data_readable).
 *
 * Thread rule: as each function says.
 */
#ifndef ROLLCALL_DATA_FOLLOW_H
#define ROLLCALL_DATA_FOLLOW_H

#include "base/barrier.h"
#include "data/data.h"

bool data_follows(const struct data *data); /* any thread */

/* ---- taking ---- */

/* What it has, as the line follow says it (repl/wire.h). */
struct data_position {
    uint64_t stream[MANIFEST_STREAM_WORDS]; /* all 0: it holds nothing yet, and needs a copy */
    uint64_t epoch;                         /* of the last record it has */
    uint64_t lsn;                           /* the next record begins there */
};
/* Any thread that may wait for the disk; after data_recover. */
void data_position(struct data *data, struct data_position *position);

/* That epoch alone. Any thread, no wait. */
uint64_t data_reign(const struct data *data);

/*
 * Has what the other node's manifest says room in the memory of this configuration: tables, by
 * their number and size there? A start asks it of its own manifest, the receiver of a copy's.
 * False: the sum, in error.
 */
bool data_has_memory(const struct data *data, const struct manifest *manifest,
                     char error[DATA_ERROR_MAX]);

/*
 * One that holds nothing takes the whole of this stream, from LSN 0. The receiver's thread; waits
 * for the disk. False: error.
 */
bool data_take_stream(struct data *data, const uint64_t stream[MANIFEST_STREAM_WORDS],
                      char error[DATA_ERROR_MAX]);

enum data_taken {
    DATA_TAKEN,   /* *taken bytes, at least one record of it */
    DATA_NO_ROOM, /* none now: the disk is full (error), or the buffer until it was synced ("") */
    DATA_BAD,     /* the record behind *taken bytes is not sound, or not the next: error */
    DATA_FAILED,  /* the journal cannot be written any more: error */
};
/*
 * Takes whole records, of which the first begins at `lsn`: the end of what it has. Each one's
 * checksum is looked at. What was taken is written soon. Aligned to 8. The receiver's thread; may
 * wait for the disk.
 */
enum data_taken data_take(struct data *data, uint64_t lsn, const void *bytes, size_t length,
                          size_t *taken, char error[DATA_ERROR_MAX]);

/* May it be read: is what it holds of one moment of the other node? Any thread. */
bool data_readable(const struct data *data);

/* How far it is. WRITTEN and DURABLE are data_journal's; this is what readers see. Any thread. */
uint64_t data_applied(const struct data *data);

/*
 * The running sum (journal_sum) of all records from `from` to `lsn`, of the files. False: it lacks
 * some of them. Reads them again; the receiver's thread.
 */
bool data_sum(struct data *data, uint64_t from, uint64_t lsn, uint64_t *sum);

/*
 * May the next start cut its journal at lsn and go on from there? No image of a table may be newer.
 * Any thread that may wait for the disk.
 */
bool data_can_rewind(struct data *data, uint64_t lsn);

/* ---- carrying out ---- */

/*
 * Starts the applier. *spaces is read with the world stopped. moved: called on its thread whenever
 * it came further, or stopped. False: no thread can be had. After data_recover; data_stop ends it.
 */
bool data_follow(struct data *data, struct barrier *barrier, struct spaces *const *spaces,
                 void (*moved)(void *context), void *context);

/* More was written: the applier looks. Any thread, no wait. Not one that follows: no-op. */
void data_follow_moved(struct data *data);

/* ---- leading ---- */

enum data_promoted {
    DATA_PROMOTED,        /* it leads: changes may be taken */
    DATA_PROMOTE_REFUSED, /* it follows as before: error */
    DATA_PROMOTE_FAILED,  /* neither nor: the daemon is to end: error */
};
/*
 * Nothing is taken any more: carries out what was, begins that epoch behind it (0: the next one),
 * and every space decides for itself from there on. Its record is on the disk before anything else
 * is done. Spaces take the configuration they were made with, as at a start. Not in a bracket of
 * the keeper: it has one of its own. Workers refuse changes until it has said PROMOTED. Not on a
 * worker: waits for the disk, and until until_us (clock_monotonic_us) for the applier.
 */
enum data_promoted data_promote(struct data *data, uint64_t epoch, uint64_t until_us,
                                char error[DATA_ERROR_MAX]);
/* Where the present epoch begins. Behind data_promote. */
uint64_t data_reign_lsn(struct data *data);

/* Why the applier goes no further, as one sentence; "": it does. Any thread. */
void data_follow_trouble(struct data *data, char error[DATA_ERROR_MAX]);

#endif
