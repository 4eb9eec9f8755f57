/*
 * journal_private.h: what the files of the journal share. Included by journal*.c only.
 *
 *     journal.c          writers, figures
 *     journal_append.c   the stream of another node
 *     journal_write.c    writing out, and the thread that does
 *     journal_open.c     open and close
 *     journal_segment.c  making, naming, marking, replacing and deleting segments
 *     journal_sync.c     the sync thread, waiting for it, trouble
 *     journal_room.c     room on the disk: the next segment, the ballast
 *     journal_pages.c    the current file's pages: in memory before, sent out after
 *
 * Two locks, write before state. Files are written and begun under the write lock, mostly by the
 * writing thread; synced, allocated, sealed and deleted under none: by the sync thread, and by
 * whoever trims. So the write lock may be held for as long as a disk hangs: no worker takes it, nor
 * anybody who has stopped the world. The state lock is held for a moment only.
 *
 * Invariants
 *   1 durable <= written == run.end <= head
 *   2 current->header.start <= run.end <= current->end (journal_append may end it at run.end)
 *   3 of the list, segments before `unsynced` are durable whole; from it on all have an open file.
 *     Only the sync thread makes the next one ahead of its use, and none while too many are open
 *   4 the ring holds all from `cleared` on, but for a piece just being cleared; cleared <= durable
 *     (written, if sync is never)
 *   5 the ring's limit is below cleared + its size, and below what is allocated
 */
#ifndef ROLLCALL_STORE_JOURNAL_PRIVATE_H
#define ROLLCALL_STORE_JOURNAL_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/kick.h"
#include "store/journal.h"
#include "store/journal_format.h"
#include "store/journal_ring.h"

#define JOURNAL_CLASS         0x6a726e6cu /* "jrnl" */
#define JOURNAL_WRITE_BYTES   (1u << 20)  /* a piece of writing */
#define JOURNAL_SECOND_US     1000000u
#define JOURNAL_SMALL_BYTES   (256u << 10) /* of a first segment on a full disk, margin besides */
#define JOURNAL_BALLAST_BYTES (4u << 20)   /* at most a segment */

struct journal_segment {
    struct journal_segment *next;
    struct journal_header header;
    uint64_t end; /* of the stream in it: where it is full, less if it was replaced from there on */
    uint64_t mark_serial; /* of its last mark; the sync thread's */
    int fd;               /* -1: closed, sealed */
};

enum journal_trouble {
    JOURNAL_NO_TROUBLE,
    JOURNAL_STUCK, /* the disk is full although it promised the room: tried again */
    JOURNAL_FAILED,
};

struct journal {
    uint32_t class;
    struct vfs *vfs;
    char *directory;
    enum journal_sync sync;
    _Atomic bool follows; /* puts nothing of its own */
    _Atomic uint64_t epoch;
    uint64_t boot; /* vfs.h */
    uint64_t segment_bytes;
    pthread_t thread, writer;
    pthread_mutex_t write_lock, state_lock, trim_lock;

    /* under the write lock */
    struct journal_segment *first, *unsynced, *current;
    struct journal_segment *dead; /* replaced, to be deleted before any other */
    struct journal_run run; /* what is written, and the running sum of `current` up to there */
    uint64_t durable_sum;   /* of the segment that holds `durable`, up to there */
    uint64_t asked, sent;   /* pages of the current file: in memory, about; going to the disk */
    uint64_t number;        /* of the newest segment */
    int spare_fd;           /* the next segment, allocated, not begun; -1: none */
    bool names_changed;     /* since the last sync_dir */

    /* written under the write lock, read without it */
    _Atomic uint64_t cleared;
    _Atomic uint64_t records, writes, syncs;
    _Atomic uint64_t segments, segments_bytes, oldest; /* of the list: journal_count_segments */
    _Atomic uint64_t open;                             /* segments: journal_count_open */
    _Atomic uint64_t unsynced_since_us;                /* 0: all written is durable */
    _Atomic uint64_t droppable;                        /* journal_may_drop */

    /* under the state lock */
    pthread_cond_t work, done, roomy;
    uint64_t rooms_told; /* times that those who wanted room were told */
    bool stop;
    _Atomic uint64_t sync_target; /* somebody waits for it; read without the lock too */
    uint64_t closed; /* segments before the one that begins there are sealed, and not open */
    char error[JOURNAL_ERROR_MAX];

    /* the sync thread's own */
    uint64_t marked, marked_us; /* the last mark: written up to there */
    bool mark_loose;            /* it is not durable */
    uint64_t synced_us, spare_again_us, stuck_again_us, ballast_again_us;
    bool spare_due; /* without one it is `full` */
    bool ballast;   /* it is there, whole */

    struct journal_ring ring;
    _Alignas(MEMORY_LINE_BYTES) _Atomic uint64_t written;
    _Atomic uint64_t durable;
    _Atomic int trouble; /* enum journal_trouble */
    _Atomic bool full;   /* no further segment could be allocated */
    _Atomic bool keeps;  /* journal_keep_room was called */
    _Atomic bool held;   /* full, and no journal_go_on since */
    _Atomic bool back;   /* held, and there was room for a segment since */
    _Atomic(const struct journal_listener *) listener; /* NULL: nobody */
    /* `rests`: the sync thread has done what it was kicked for, unless that is up again. */
    _Alignas(MEMORY_LINE_BYTES) _Atomic bool kicked;
    _Atomic bool rests;
    _Atomic bool room_wanted, spare_wanted, spare_now;
    _Atomic bool room_waited; /* somebody waits for it */
    _Atomic bool room_came;   /* and is to be told */
    _Alignas(MEMORY_LINE_BYTES) struct kick writer_kick;
    _Atomic bool writer_stops;
    _Atomic uint64_t reserve_failures;
};

/* Returns whether no further segment can be allocated, or an allocated one cannot be written. */
static inline bool journal_is_full(const struct journal *journal)
{
    return atomic_load(&journal->full) || atomic_load(&journal->trouble) == JOURNAL_STUCK;
}

/* `unsynced` or `current` is another. Under the write lock. */
static inline void journal_count_open(struct journal *journal)
{
    journal->open = journal->current->header.number - journal->unsynced->header.number + 1;
}

/* Returns whether a sync is due to close some of the segments. Only the sync thread lowers their
 * number. Whoever raises it kicks that thread after: as with `written`, a look before the kick may
 * miss the last one, and the look after it does not, all being of one order (seq_cst). */
static inline bool journal_has_many_open(const struct journal *journal)
{
    return journal->open > JOURNAL_OPEN_SEGMENTS;
}

/* ---- journal.c ---- */

/* Lets the ring's room follow what was cleared and allocated. Under the write lock. */
void journal_set_limit(struct journal *journal);
/* The list of segments, or the spare, has changed. Under the write lock. */
void journal_count_segments(struct journal *journal);
/* What is written or durable rose, or the journal has failed. Under no lock. */
void journal_tell_moved(struct journal *journal);

/* ---- journal_write.c ---- */

/* Writes what is put, waiting for records that are being filled, up to target. False: failed or
 * stuck. Under the write lock. */
bool journal_write_through(struct journal *journal, uint64_t target);
/* Whether the sync thread should look now, not at its next turn. Under the write lock. */
bool journal_sync_is_needed(const struct journal *journal);
void journal_kick_writer(struct journal *journal);  /* the thread writes what is put by now */
bool journal_writer_start(struct journal *journal); /* false with errno */
void journal_writer_stop(struct journal *journal);

/* ---- journal_segment.c; false, NULL, -1: with errno ---- */

/* A new file of that size under a temporary name, zero, durable but for the name. */
int journal_segment_make(struct journal *journal, const char *temporary, uint64_t bytes);
/* Writes its header, which becomes durable if wanted, and gives it its name. The segment then owns
 * fd; NULL: the file is gone. */
struct journal_segment *journal_segment_begin(struct journal *journal, int fd,
                                              const char *temporary,
                                              const struct journal_header *header, bool durable);
void journal_segment_free(struct journal *journal, struct journal_segment *segment); /* closes */
/* Under the write lock: goes on in the next segment; the current one is full. */
bool journal_segment_next(struct journal *journal);
/*
 * Under the write lock: leaves the current file, which failed, for a new one that ends where it did
 * and is durable. After a failed sync (by the sync thread) it begins at what is durable, holds all
 * written since, and takes the place of every segment that was open; else it begins, empty, at what
 * is written.
 */
bool journal_segment_again(struct journal *journal, bool after_sync);
/* Bytes of the ring into a segment's file. */
bool journal_segment_write(struct journal *journal, int fd, const struct journal_header *header,
                           uint64_t from, uint64_t until);
/* Notes what is durable in a segment; it need not succeed. Sealed: that is its end. The sync
 * thread, or nobody else. */
bool journal_segment_mark(struct journal *journal, struct journal_segment *segment,
                          uint64_t durable, bool sealed);
/* Seals one that is not open. */
void journal_segment_seal(struct journal *journal, const char *name, uint64_t end);
/* Gives back the room after the durable end of a segment, open as fd, once a durable mark of that
 * end says that it is one. */
void journal_segment_shorten(struct journal *journal, int fd, uint64_t start, uint64_t end);
bool journal_unlink(struct journal *journal, const char *name); /* true also if it is not there */

/* ---- journal_room.c; the sync thread's ---- */

bool journal_room_is_due(struct journal *journal, uint64_t now_us);
void journal_room_make(struct journal *journal, uint64_t now_us);

/* ---- journal_pages.c ---- */

bool journal_pages_are_due(const struct journal *journal); /* under the write lock */
/* Some of them, by the sync thread: there may be more. False: none are due. */
bool journal_pages(struct journal *journal);

/* ---- journal_sync.c ---- */

bool journal_sync_start(struct journal *journal); /* false with errno */
void journal_sync_stop(struct journal *journal);
/* Waits until the round that made it durable, if one has, has closed what is below lsn: a short
 * time, none for the sync thread itself. Under none of the locks but that of trims. */
void journal_await_closed(struct journal *journal, uint64_t lsn);
void journal_kick(struct journal *journal);      /* the thread looks whether there is work */
void journal_tell_room(struct journal *journal); /* there may be room: who waits for it looks */
/* Notes trouble with a file, errno its reason; no trouble: only the text. */
void journal_set_trouble(struct journal *journal, enum journal_trouble trouble, const char *name,
                         uint64_t offset, const char *doing);
void journal_end_trouble(struct journal *journal); /* but for failure */

#endif
