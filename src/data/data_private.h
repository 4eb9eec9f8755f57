/*
 * data_private.h: what the files of the data directory share. Included by data*.c, recovery*.c and
 * checkpoint*.c only.
 *
 *     data.c              its life, numbers, figures
 *     data_open.c         taking the directory: lock, manifest, what is refused
 *     data_manifest.c     storing a manifest, files it does not name
 *     pins.c              of those, what a copy of the directory still needs
 *     data_cold.c         where dumped tables are read
 *     fill.c              a directory that is filled without a daemon
 *     recovery*.c         the start
 *     follow*.c           the start that goes on, of one that follows
 *     checkpoint*.c       the thread, and one round of it
 *
 * Two locks. `lock`: over the manifest and its file, held while that is written, never with the
 * world stopped. `bell_lock`: a leaf, for the checkpoint thread's sleep.
 */
#ifndef ROLLCALL_DATA_DATA_PRIVATE_H
#define ROLLCALL_DATA_DATA_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/data.h"
#include "data/journal_sink.h"
#include "engine/change_record.h"
#include "engine/engine.h"
#include "row/row_data.h"
#include "store/cold.h"
#include "store/dir_lock.h"
#include "store/manifest.h"
#include "store/open_files.h"
#include "store/vfs.h"

#define DATA_JOURNAL_PREFIX "journal-"
#define DATA_NUMBER_FIRST   1          /* of a space */
#define DATA_EXTEND_US      "60000000" /* the service manager waits so long for the next word */

/* Labels of a space in the manifest. No label: it has begun, and no checkpoint was made since. */
#define DATA_LABEL_STATE "state" /* row_state_write(), at C */
#define DATA_LABEL_C     "c"     /* 8 bytes: records of the space below are in the state or files */
#define DATA_LABEL_M     "m"     /* 8 bytes: events of tables below are in the files */

struct checkpoint;
struct checkpoint_pending;
struct follow;

/* A table file that no manifest names, and a pin does. */
struct data_kept {
    char name[MANIFEST_FILE_NAME_MAX + 1];
    uint64_t bytes;
};

/* struct data_stats, as it is counted. */
struct data_figures {
    _Atomic bool checkpoint_running;
    _Atomic uint64_t load_done_bytes, load_total_bytes, replayed_records;
    _Atomic uint64_t checkpoints, checkpoint_failures, last_checkpoint_s, last_checkpoint_us;
    _Atomic uint64_t checkpoint_lsn, images, image_bytes, table_files, table_file_bytes;
    _Atomic uint64_t recovery_us, recovered_records, cut_bytes;
    _Atomic uint64_t dumps, merges, dump_failures, dump_files, dump_file_bytes;
    _Atomic uint64_t disk_bytes, disk_free_bytes;
};

struct data {
    struct vfs *vfs; /* from the lock on dir_lock.vfs */
    char *directory;
    struct dir_lock dir_lock;
    uint64_t identity;
    unsigned threads; /* that load tables */
    enum journal_sync sync;
    uint64_t segment_bytes, buffer_bytes;
    _Atomic uint64_t checkpoint_every_ms, checkpoint_journal_bytes; /* 0: not for that reason */

    _Atomic uint64_t keep_bytes; /* of journal that no start needs, for followers */

    pthread_mutex_t lock;
    struct manifest *manifest; /* as it is stored, or was to be stored and is next */
    uint64_t generation;       /* of the last table file: no name is used twice */
    bool moved;                /* it was not at its path when that was stored last */
    bool leftovers; /* one could not be stored: what those before it named may be there still */
    struct data_pin *pins;  /* under the lock */
    struct data_kept *kept; /* likewise: to be deleted when no pin names them */
    size_t kept_count, kept_room;

    _Atomic uint64_t reign; /* the epoch of the journal's last record */

    struct follow *follow;   /* NULL: its journal is its own */
    struct journal *journal; /* NULL before recovery has ended */
    struct journal_log log;
    struct checkpoint *checkpoint; /* its thread; NULL: none */
    pthread_mutex_t bell_lock;
    pthread_cond_t bell;                /* for that thread: one of the next two, or its end */
    _Atomic bool asked;                 /* for a checkpoint */
    _Atomic bool dumps_asked;           /* engines have notified */
    struct checkpoint_pending *pending; /* dumps of rounds whose manifest may not be durable */

    struct open_files *files; /* of dumped tables: none has a descriptor of its own */
    struct cold_config cold_config;
    bool cold_wanted;               /* by the settings */
    struct engine_cold engine_cold; /* its cold is NULL before recovery, or if nothing is dumped */
    _Atomic uint64_t complained_us; /* log_is_due: of reads that failed */
    bool merge_failed;              /* the last one did; the thread of checkpoints */
    uint64_t noted_us;              /* data_note_disk() looked last; 0: never */
    struct data_figures figures;
};

/*
 * Notes how much of the disk is free, at most once a second. That may wait for the disk, so whoever
 * looks at figures reads what was noted. By the start, and from then on by who makes checkpoints.
 */
void data_note_disk(struct data *data);

/* ---- data_manifest.c ---- */

/* Deletes a file of the directory; one that cannot be deleted is left to the next start. */
void data_delete_file(struct data *data, const char *name);
/* The 8 bytes of a label; `otherwise` if there is no such label. */
uint64_t data_label(const struct manifest_space *space, const char *label, uint64_t otherwise);

/* Gives the journal of that manifest a name of its own, at random. */
void data_name_stream(struct manifest *manifest);

/* Copies a space with its labels, without files. NULL: see manifest_add_space. */
struct manifest_space *data_copy_space(struct manifest *to, const struct manifest_space *space);

/*
 * Under the lock. Stores data->manifest. False with `error`: the one on the disk may be this or an
 * older one, so nothing may be deleted before one has been stored.
 */
bool data_store(struct data *data, char error[DATA_ERROR_MAX]);

/*
 * Under the lock, right after a data_store that said true: deletes table files it does not name,
 * and what was left half made. What cannot be deleted is tried again the next time. This and the
 * next leave what a pin names to its end.
 */
void data_sweep(struct data *data);

/* Under the lock, right after a data_store that said true: deletes the files of the manifest before
 * that it does not name. */
void data_delete_replaced(struct data *data, const struct manifest *before);

/* Under the lock: the figures of data->manifest, and of what pins keep. */
void data_count_files(struct data *data);

/* Under the lock: a number for a space that is new to the manifest, or the one it has. */
bool data_give_number(struct data *data, const char *space, const char *kind, uint32_t *number,
                      char error[DATA_ERROR_MAX]);

/* Prints into `error`; returns false, for a caller to return. */
__attribute__((format(printf, 2, 3))) bool data_refuse(char error[DATA_ERROR_MAX],
                                                       const char *format, ...);

/* ---- pins.c ---- */

/* Under the lock: deletes a file that neither the manifest names nor an engine reads any more, or
 * keeps it as long as a pin names it. A file is discarded once, or after data->kept was emptied. */
void data_discard_file(struct data *data, const char *name);

/* ---- follow.c ---- */

void follow_create(struct data *data, const struct settings *settings); /* data->follow */
/* What tables hold is of there: the journal's head, or what was carried out of it. */
uint64_t data_head(const struct data *data);
void follow_end(struct data *data);     /* the applier's thread; no-op without */
void follow_destroy(struct data *data); /* likewise */

/* ---- fill.c ---- */

/* False with `error`: it is being filled, and this is no fill. */
bool data_refuse_filling(const struct data *data, char error[DATA_ERROR_MAX]);
/* Under its lock: it is empty, but for the mark, from here on. False with `error`. */
bool data_fill_begin(const struct data *data, char error[DATA_ERROR_MAX]);

/* ---- data_cold.c ---- */

void data_cold_configure(struct data *data, const struct settings *settings);
/* If the settings or the manifest have dumped tables. */
bool data_cold_create(struct data *data, char error[DATA_ERROR_MAX]);

/* ---- checkpoint_dumps.c ---- */

/* The end: closes what still waits for a manifest. */
void checkpoint_pending_drop(struct data *data);

/* ---- checkpoint.c ---- */

/* Ends the thread of checkpoints. None: no-op. */
void checkpoint_end(struct data *data);

/*
 * Makes one checkpoint of the spaces of a stopped server, with nobody else there. Logs what went
 * wrong.
 */
bool checkpoint_last(struct data *data, const struct spaces *spaces);

/* data_cold.c: the engine's tables may be dumped, if there is where to read them; before it is
 * restored. */
void data_attach(struct data *data, struct engine *engine);

#endif
