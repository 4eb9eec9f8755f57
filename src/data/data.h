/*
 * data.h: the data directory of a running server: its lock, manifest and journal, recovery at the
 * start, checkpoints while it runs. What is durable when stands in store/DESIGN.md, why images and
 * replay fit together in row/row_log.h.
 *
 *     DIR                  locked by the daemon that uses it (store/dir_lock.h)
 *     DIR/lock             its pid, for messages
 *     DIR/MANIFEST         store/manifest.h
 *     DIR/journal-*        store/journal.h
 *     DIR/SPACE-*.table    store/table_file.h: <space>-<serial>-<layer>-<generation>.table; layer:
 *                          row_file_number() of row/row_data.h
 *
 * Order of a start: data_open (everything that can be refused without reading tables);
 * data_recover on a thread of its own, so that signals are heard; then the journal is open, clients
 * may connect, and changes are taken.
 *
 * Order of a stop: data_stop while workers live, as the reads of dumped tables that it ends wake
 * them; workers go; data_close, which sees the spaces a last time; the spaces go, and with them the
 * files of dumped tables that their engines hold; data_destroy.
 *
 * Thread rule: open, start, close on the main thread; recover on one thread; the rest as said.
 */
#ifndef ROLLCALL_DATA_DATA_H
#define ROLLCALL_DATA_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/barrier.h"
#include "config/settings.h"
#include "space/spaces.h"
#include "store/journal.h"
#include "store/manifest.h"

#define DATA_ERROR_MAX 1024
/* Files of dumped tables open at one time beside one for each thread that reads them: that of a
 * checkpoint that merges, that of a start. */
#define DATA_OPEN_FILES_MORE 2

struct cold;
struct data;
struct engine;
struct journal_log;
struct open_files_stats;
struct vfs;

/* Returns whether a space of this kind is stored: not of kind plain. */
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

/* The start cuts the journal there, if its tables allow that; what follows comes again. Of one that
 * follows, before data_recover. */
void data_cut(struct data *data, uint64_t lsn);

/*
 * The number of a space in the journal: that of the manifest, or a new one that is never given to
 * another. In a running server (a reload) a space that is new is in the manifest, durable, before
 * this returns: that blocks, so best before the world is stopped. By a reload. False with `error`.
 */
bool data_number(struct data *data, const char *space, const char *kind, uint32_t *number,
                 char error[DATA_ERROR_MAX]);
/* Takes that back, for a space that never began after all: no record names it. Likewise. */
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
/* Its files, by its path: those of the directory that is locked (store/dir_lock.h). */
struct vfs *data_vfs(const struct data *data);
/* Returns what reads dumped tables; NULL: no table is dumped. After data_recover. */
struct cold *data_cold(const struct data *data);
/* Of the files of dumped tables. Any thread. */
void data_files_stats(const struct data *data, struct open_files_stats *stats);
/*
 * A reload: a space that is new begins in the journal, which has been asked for room. World
 * stopped. data_recover does it for all others.
 */
void data_begin_space(struct data *data, struct engine *engine);
/* Room in that log for this many events of any kind. World stopped. False: there is none. */
bool data_log_room(struct data *data, size_t events);

/*
 * Starts the thread of checkpoints: every so often, after so much journal, when asked to. It joins
 * the barrier. *spaces is read with the world stopped. False: no thread can be had.
 */
bool data_start(struct data *data, struct barrier *barrier, struct spaces *const *spaces);
void data_checkpoint(struct data *data); /* asks for one. Any thread */
/* A reload: settings of checkpoints may change while it runs. Any thread. */
void data_reconfigure(struct data *data, const struct settings *settings);
/*
 * Ends the thread of checkpoints, in the midst of one if need be, and reads of dumped tables:
 * waiting requests are woken, and refused from now on. Main thread; the world may run. Again:
 * no-op.
 */
void data_stop(struct data *data);

/*
 * Workers are gone. clean: a last checkpoint, journal closed, the manifest says so; false if that
 * could not be done (it is logged; the journal has everything all the same). NULL: no-op.
 */
bool data_close(struct data *data, struct spaces *spaces, bool clean);
/* After data_close, if anything was recovered, and after the engines: frees it. NULL: no-op. */
void data_destroy(struct data *data);

/* As row_parts_share, of a space that may have no row; with or without a data directory. */
void data_share_memory(struct engine *engine, struct engine_growth *growth);

/* What tells its stream from others, and who reigned since when. Any thread that may wait for the
 * disk; after data_recover. Returns how many reigns there are. */
size_t data_history(struct data *data, uint64_t stream[MANIFEST_STREAM_WORDS],
                    struct manifest_reign reigns[MANIFEST_HISTORY_MAX]);

/* A number that tells its directory from any other, of this machine since it booted, and of others:
 * that of a copied machine, too. Any thread. */
uint64_t data_identity(const struct data *data);

struct data_stats {
    uint64_t load_done_bytes, load_total_bytes; /* of the start, also while it loads */
    uint64_t checkpoints, checkpoint_failures;
    uint64_t last_checkpoint_s;  /* wall clock of its end; 0: none yet */
    uint64_t last_checkpoint_us; /* it took so long */
    uint64_t checkpoint_lsn;     /* replay would begin there */
    bool checkpoint_running;
    uint64_t images, image_bytes; /* written since the start */
    uint64_t table_files, table_file_bytes;
    uint64_t recovery_us, recovered_records, cut_bytes; /* of the start */
    uint64_t dumps, merges, dump_failures;              /* since the start */
    uint64_t dump_files, dump_file_bytes;               /* of the table files */
    uint64_t disk_bytes, disk_free_bytes;               /* of its file system, as last noted */
};
void data_stats(const struct data *data, struct data_stats *stats); /* any thread */

#endif
