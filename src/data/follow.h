/*
 * follow.h: a data directory whose journal another node writes: the same records at the same LSNs.
 * One thread, the receiver's, puts them in as they come; another one, the applier of follow.c,
 * carries them out later, so what is taken is safe however long that takes.
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
 * Returns whether the tables of the other node's manifest, by their number and size, have room in
 * the memory of this configuration. A start asks for its own manifest, the receiver for a copy's.
 * False: the sum is in error.
 */
bool data_has_memory(const struct data *data, const struct manifest *manifest,
                     char error[DATA_ERROR_MAX]);

/*
 * A directory that holds nothing takes the whole of this stream, from LSN 0. The receiver's thread;
 * waits for the disk. False: error.
 */
bool data_take_stream(struct data *data, const uint64_t stream[MANIFEST_STREAM_WORDS],
                      char error[DATA_ERROR_MAX]);

enum data_taken {
    DATA_TAKEN,   /* *taken bytes, at least one record of it */
    DATA_NO_ROOM, /* none now: the disk is full (error), or the buffer until it was synced ("") */
    DATA_BAD,     /* the record after *taken bytes is not sound, or not the next: error */
    DATA_FAILED,  /* the journal cannot be written any more: error */
};
/*
 * Takes whole records; the first begins at `lsn`, the end of what is here. The checksum of each is
 * looked at. What was taken is written soon. Aligned to 8. The receiver's thread; may wait for the
 * disk.
 */
enum data_taken data_take(struct data *data, uint64_t lsn, const void *bytes, size_t length,
                          size_t *taken, char error[DATA_ERROR_MAX]);

/* Returns whether reads may be answered: the directory holds one moment of the other node. Any
 * thread. */
bool data_readable(const struct data *data);

/* Returns whether checkpoints and dumps may be made: tables are neither ahead of the journal, as a
 * copy's are, nor what is left of a record that could not be carried out. Any thread. */
bool data_may_store(const struct data *data);

/* How far it is. WRITTEN and DURABLE are data_journal's; this is what readers see. Any thread. */
uint64_t data_applied(const struct data *data);

/*
 * The running sum (journal_sum) of all records from `from` to `lsn`, of the files; 0, which none
 * has: a record here ends beyond `from`. False: it lacks some of them. Reads them again; the
 * receiver's thread.
 */
bool data_sum(struct data *data, uint64_t from, uint64_t lsn, uint64_t *sum);

enum data_rewind {
    DATA_REWIND,        /* the next start may cut the journal there and go on */
    DATA_REWIND_COPY,   /* a table's image is newer, or the manifest names a space that is */
    DATA_REWIND_PARTED, /* no record ends there, as one does at the other node: two have led */
};
/* May the journal be cut at lsn? Reads it from there on. Any thread that may wait for the disk. */
enum data_rewind data_can_rewind(struct data *data, uint64_t lsn);

/*
 * Returns whether the disk has room for a start (which may take the ballast), or a promotion: asked
 * before anything is ended that answers reads. False: error. Any thread that may wait for the disk.
 */
bool data_has_room(struct data *data, bool starts, char error[DATA_ERROR_MAX]);

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
 * Takes nothing any more: carries out what was taken, then begins that epoch (0: a higher one that
 * no start of the other node has taken unheard), and every space decides for itself from there on.
 * Its record is on the disk before anything else is done. new_stream: the journal has another name
 * from there on, so it is no other node's story. Spaces take the configuration they were made with,
 * as at a start. Not in a bracket of the keeper: it has one of its own. Workers refuse changes
 * until it has said PROMOTED. Not on a worker: waits for the disk, and until until_us
 * (clock_monotonic_us) for the applier.
 */
enum data_promoted data_promote(struct data *data, uint64_t epoch, bool new_stream,
                                uint64_t until_us, char error[DATA_ERROR_MAX]);
/*
 * Returns whether data_promote would be taken, as far as is known: the journal has not failed, the
 * disk had room a second ago (a quota half a minute ago, unless the journal was found full), and
 * nothing ails the applier. Any thread, no wait.
 */
bool data_can_lead(struct data *data);
/* Returns where the present epoch begins. Called after data_promote. */
uint64_t data_reign_lsn(struct data *data);

/*
 * The other node's tables have grown beyond what `memory` here leaves for them: by how much, as one
 * sentence; "": they have not. They get the memory all the same: nothing is lost, readers go on.
 */
void data_follow_grown(struct data *data, char error[DATA_ERROR_MAX]);

/* Where spaces have other slots than this configuration gives them, which a promotion would bring:
 * "space feed: the other node has the slots …"; "": nowhere. Any thread. */
void data_follow_unlike(struct data *data, char error[DATA_ERROR_MAX]);
/* Says that the settings of spaces may be others: the applier compares their slots again. Any
 * thread. */
void data_follow_reloaded(struct data *data);

/* Why the applier goes no further, as one sentence; "": it does. Any thread. */
void data_follow_trouble(struct data *data, char error[DATA_ERROR_MAX]);

#endif
