/*
 * recovery_private.h: what the files of a recovery share. Included by recovery*.c only.
 *
 *     recovery.c          the order of things; ends it: manifest, journal, logs
 *     recovery_tables.c   table files into engines, several at once
 *     recovery_replay.c   the journal into engines
 *     recovery_history.c  who reigned since when, of manifest and journal
 *     recovery_progress.c what is said meanwhile
 *
 * All on the thread of data_recover, but the loaders of recovery_tables.c.
 */
#ifndef ROLLCALL_DATA_RECOVERY_PRIVATE_H
#define ROLLCALL_DATA_RECOVERY_PRIVATE_H

#include "data/data_private.h"
#include "engine/change_record.h"

#define RECOVERY_BATCH 64 /* changes of a space that are replayed together */

struct journal_record;

struct recovery_space {
    struct space *space;
    const struct manifest_space *known; /* NULL: new to the directory. While it starts */
    bool begun;                         /* it is in the directory, or the journal */
    uint64_t c, m;                      /* DATA_LABEL_C, DATA_LABEL_M */
    size_t count;                       /* of the batch */
    struct engine_replay batch[RECOVERY_BATCH];
};

struct recovery {
    struct data *data;
    const _Atomic bool *stop;
    char *error; /* [DATA_ERROR_MAX] */
    size_t count;
    struct recovery_space *spaces[SETTINGS_SPACES_MAX];
    struct recovery_space *by_number[CHANGE_SPACE_MAX + 1];
    uint64_t begun_us;
    uint64_t told_us;       /* the service manager was told something */
    uint64_t logged_us;     /* a line was logged */
    unsigned logged_tenth;  /* of the bytes, by then */
    uint64_t replay_end;    /* replay goes up to here at most, as the names of segments say */
    bool follows;           /* it goes on (follow.c) … */
    bool live;              /* … and others read meanwhile */
    _Atomic bool slots_due; /* slots may differ from the configuration's, or no more */
    uint64_t cut_lsn;       /* the journal ends there; 0: where it ends */
    uint64_t needed_lsn;    /* the journal must reach this far: files and states are of that time */
    struct journal_reign *reigns; /* those the journal has */
    size_t reign_count, reign_room;
    bool reign_begins; /* with this start, where the scan has ended */
    bool parted;       /* the journal has a reign that recovery_parts() */
    struct journal_scan scan;
    enum journal_scan_end scan_end;
};

/* ---- recovery.c ---- */

void recovery_fini(struct recovery *recovery);
/* Returns whether the present configuration loses nothing of what is there. False: `error` says
 * what. */
bool recovery_check_losses(struct recovery *recovery);
/* Spaces that are new have their numbers on the disk before a record names one. Under data's lock.
 */
bool recovery_store_manifest(struct recovery *recovery);
/* A space decides for itself, under the configuration of now, which may have changed since. World
 * stopped, or nobody else there. */
bool recovery_begin_space(struct recovery *recovery, const struct recovery_space *begun);
void recovery_add_space(struct recovery *recovery, struct space *space);

/* ---- recovery_tables.c ---- */

/* Loads the files of all spaces. False: `error`, or an empty one when *stop was true. */
bool recovery_tables(struct recovery *recovery);

/* ---- recovery_replay.c ---- */

/* Replays the journal. As above. */
bool recovery_replay(struct recovery *recovery);
/* Returns whether the journal is cut at or below this LSN. */
bool recovery_replay_is_cut(const struct recovery *recovery, uint64_t lsn);
/* Replays one record of the journal, which may stay in a batch. False: `error`. */
bool recovery_replay_take(struct recovery *recovery, const struct journal_record *record);
/* False, with `error`: what is wrong with a record, and how to give it up. */
bool recovery_refuse_record(struct recovery *recovery, uint64_t lsn, const char *why);
/* What is in batches. Likewise. */
bool recovery_replay_flush_all(struct recovery *recovery);
/* The space that an event SPACE begins gets its number; again: no-op. Under data's lock. Likewise.
 */
bool recovery_replay_name(struct recovery *recovery, uint64_t lsn, uint32_t number,
                          const struct change_space_head *head);

/* ---- recovery_history.c ---- */

/* A reign of the journal (journal_reign_fn). */
bool recovery_take_reign(void *context, const struct journal_reign *reign);
/*
 * Called after the scan: makes the manifest's history what both say. A reign whose record was not
 * written, or was cut off, is dropped. False: they contradict each other, as `error` says.
 */
bool recovery_history(struct recovery *recovery);
/* Returns whether a reign is of another leader than tables here are, which hold what lies below the
 * LSN where it begins and above. Its epoch is none that they have heard of. */
bool recovery_parts(const struct recovery *recovery, uint64_t epoch, uint64_t lsn);
/* Adds that of this start, the next epoch. False: `error`. */
bool recovery_begin_reign(struct recovery *recovery);
/* If it was added: its record, the first of the new journal, and durable. False: `error`. */
bool recovery_put_reign(struct recovery *recovery);

/* ---- recovery_progress.c: called often, say something seldom ---- */

void recovery_tell_loading(struct recovery *recovery, uint64_t done, uint64_t total);
/* Before it begins: finds how far the journal may reach. */
void recovery_tell_replay(struct recovery *recovery);
void recovery_tell_replaying(struct recovery *recovery, uint64_t records, uint64_t lsn);

#endif
