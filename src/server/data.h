/*
 * data.h: the data directory of a running server: its lock, manifest and journal, recovery at the
 * start, checkpoints while it runs. What is durable when stands in store/DESIGN.md, why images and
 * replay fit together in engine/row_log.h.
 *
 *     DIR/lock             flock of the daemon that uses the directory; its pid, for messages
 *     DIR/MANIFEST         store/manifest.h
 *     DIR/journal-*        store/journal.h
 *     DIR/SPACE-*.table    store/table_file.h: <space>-<serial>-<layer>-<generation>.table
 *
 * Order of a start: data_open (before the port is open: everything that can be refused without
 * reading tables); net opens, `version` and `stats` are answered; data_recover on a thread of its
 * own; then the journal is open and changes are taken. Of a stop: workers are gone, data_close.
 *
 * Thread rule: open, start, close on the main thread; recover on one thread; the rest as said.
 */
#ifndef ROLLCALL_SERVER_DATA_H
#define ROLLCALL_SERVER_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/barrier.h"
#include "server/settings.h"
#include "server/spaces.h"
#include "store/journal.h"

#define DATA_ERROR_MAX 1024

struct data;
struct journal_log;
struct vfs;

/* Is such a space stored? Not those of kind plain. */
bool data_stores(const struct space_settings *space);

/*
 * Takes the directory (made if it is not there, 0700), reads the manifest, and compares it with the
 * settings: a space of another kind, or one that the configuration lacks, is refused. NULL with
 * `error`: one sentence with the path, and what would be right.
 */
struct data *data_open(const struct settings *settings, char error[DATA_ERROR_MAX]);
/* The same over any file system. */
struct data *data_open_with(struct vfs *vfs, const struct settings *settings,
                            char error[DATA_ERROR_MAX]);

/*
 * The number of a space in the journal: that of the manifest, or a new one that is never given to
 * another. In a running server (a reload) a space that is new is in the manifest, durable, before
 * this returns: that blocks, so best before the world is stopped. Main thread. False with `error`.
 */
bool data_number(struct data *data, const char *space, const char *kind, uint32_t *number,
                 char error[DATA_ERROR_MAX]);
/* Takes that back, for a space that never began after all: no record names it. Main thread. */
void data_number_undo(struct data *data, const char *space);

/*
 * Loads the tables, replays the journal, opens it, and gives every space its log. Blocks for as
 * long as that takes; logs its progress and says it to the service manager. False with `error`, or
 * with an empty one when *stop became true: nothing was changed on the disk then.
 */
bool data_recover(struct data *data, struct spaces *spaces, const _Atomic bool *stop,
                  char error[DATA_ERROR_MAX]);

/* After data_recover: for the workers' sinks, and the log all spaces share. NULL before. */
struct journal *data_journal(struct data *data);
struct journal_log *data_log(struct data *data);
/* Room in that log for so many events, whatever they are. World stopped. False: there is none. */
bool data_log_room(struct data *data, size_t events);

/*
 * Starts the thread of checkpoints: every so often, after so much journal, when asked to. It joins
 * the barrier. *spaces is read with the world stopped. False: no thread can be had.
 */
bool data_start(struct data *data, struct barrier *barrier, struct spaces *const *spaces);
void data_checkpoint(struct data *data); /* asks for one. Any thread */
/* A reload: settings of checkpoints may change while it runs. Any thread. */
void data_reconfigure(struct data *data, const struct settings *settings);
/* Ends the thread of checkpoints, in the midst of one if need be. Main thread; the world may run.
 */
void data_stop(struct data *data);

/*
 * Workers are gone. clean: a last checkpoint, journal closed, the manifest says so; false if that
 * could not be done (it is logged; the journal has everything all the same). Frees it. NULL: no-op.
 */
bool data_close(struct data *data, struct spaces *spaces, bool clean);

struct data_stats {
    bool loading; /* then: */
    uint64_t load_done_bytes, load_total_bytes, replayed_records;
    /* else: */
    uint64_t checkpoints, checkpoint_failures;
    uint64_t last_checkpoint_s;  /* wall clock of its end; 0: none yet */
    uint64_t last_checkpoint_us; /* it took so long */
    uint64_t checkpoint_lsn;     /* replay would begin there */
    bool checkpoint_running;
    uint64_t images, image_bytes; /* written since the start */
    uint64_t table_files, table_file_bytes;
    uint64_t recovery_us, recovered_records, cut_bytes; /* of the start */
};
void data_stats(const struct data *data, struct data_stats *stats); /* any thread */

#endif
