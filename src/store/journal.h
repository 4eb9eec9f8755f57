/*
 * journal.h: one totally ordered stream of records on disk: every change of every space.
 *
 * A position in the stream is an LSN: 64 bits, bytes since the first record ever. The stream lies
 * in segments, files of a fixed size named journal-<start LSN in 16 hex digits>; the format of
 * segment and record stands at the top of journal_format.h.
 *
 * Way of a record:
 *   - journal_reserve, before anything is changed: room in the ring and on the disk. False: none
 *     now, nothing may be changed. Room is taken from the ring in large pieces, so this is rarely
 *     more than a subtraction.
 *   - journal_put, under the lock of what changed, so that the order of LSNs is the order of the
 *     changes of an id: takes the LSN and fills the record in the ring.
 *   - journal_submit, at the end of a turn: the journal's thread makes the stream written (handed
 *     to the system) through the ring's head of that moment. A write may take as long as a disk
 *     hangs, so nobody waits for it: the answers leave when the listener has been told that the
 *     stream moved that far.
 *   - durable by fdatasync: by the sync thread each second (EVERYSEC), or as soon as something is
 *     written (ALWAYS: the answers wait for that). Under NEVER, too, when JOURNAL_OPEN_SEGMENTS
 *     are open and one more is begun: then their files are closed. Nobody waits for that one, but
 *     the next segment is not made before it has ended.
 * So a killed process loses no acknowledged change under any sync setting, and a power cut loses
 * none under ALWAYS, and about the last second under EVERYSEC.
 *
 * Room on the disk is allocated before it is promised: a segment is made whole, and the next one
 * before the present one is used up, so a full disk makes journal_reserve() say no (`full`), and
 * never a record that cannot be written. The sync thread tries again each second. Should a file
 * system break that promise, journal_commit() says false, `full` is set and the records stay in the
 * ring until they can be written: not acknowledged, but not lost.
 *
 * On a full disk a checkpoint, which frees older segments, may find no room either. So the
 * checkpoint's thread calls journal_keep_room(): from then on room that comes back is the
 * checkpoint's first, and writers get it after journal_go_on(). And once there is room for it
 * besides the next segment, a small file is kept as ballast for the start after a kill, which needs
 * a segment before it can trim any: it then begins with a small one. A start takes the ballast only
 * if it must, and does without if there is none.
 *
 * A failed fdatasync is never tried again on its file: what the kernel then holds is unknown. The
 * journal begins a new segment at the durable position and writes what is not durable again, from
 * the ring, which keeps it until then. If that fails too the journal is `failed`: every
 * journal_reserve() says no until a restart. Under NEVER it fails at once, since the ring keeps
 * nothing that is written. A write that fails is tried once more in a new segment.
 *
 * After a kill or a power cut journal_open() begins where journal_scan() found the end; what is
 * older is made durable first, and what lies after is deleted.
 *
 * Thread rule: a writer belongs to one thread; all else any thread. Nobody waits for room. What
 * waits for the disk says so ("not on a worker"); nothing else ever does.
 */
#ifndef ROLLCALL_STORE_JOURNAL_H
#define ROLLCALL_STORE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/vfs.h"

#define JOURNAL_RECORD_MAX        2040 /* bytes: 255 units of 8, header included */
#define JOURNAL_HEADER_BYTES      8    /* of a record */
#define JOURNAL_PAYLOAD_MAX       (JOURNAL_RECORD_MAX - JOURNAL_HEADER_BYTES)
#define JOURNAL_SEGMENT_BYTES_MIN (1ull << 20)
#define JOURNAL_SEGMENT_BYTES_MAX (16ull << 30)
#define JOURNAL_OPEN_SEGMENTS     3 /* of more the whole ones are made durable and closed */
#define JOURNAL_BUFFER_BYTES_MIN  (256ull << 10)
#define JOURNAL_BUFFER_BYTES_MAX  (4ull << 30)
#define JOURNAL_ERROR_MAX         512
#define JOURNAL_ROOM_WAIT_US      1000000u
#define JOURNAL_BALLAST_NAME      "journal-ballast"
#define JOURNAL_TYPES_RESERVED    16 /* record types 0..15 are the journal's own */

/* Files that it has open at one time: one segment more is written when a sync becomes due, one was
 * made before, and a failed sync is written again into a new file, whose directory is synced. */
#define JOURNAL_FILES_MAX (JOURNAL_OPEN_SEGMENTS + 4)

enum journal_sync { JOURNAL_SYNC_NEVER, JOURNAL_SYNC_EVERYSEC, JOURNAL_SYNC_ALWAYS };

struct journal_config {
    struct vfs *vfs;
    const char *directory;  /* exists */
    uint64_t segment_bytes; /* a multiple of 4096 */
    uint64_t buffer_bytes;  /* of the ring: a power of two */
    enum journal_sync sync;
    uint64_t epoch;     /* of this start: raised by every start without a clean stop */
    uint64_t start_lsn; /* where the stream goes on: the end that recovery found, a multiple of 8 */
    uint64_t sum; /* journal_scan's, with its end; 0: unknown, one check less at the next scan */
    bool follows; /* it takes another node's stream (journal_append), and puts nothing of its own */
};

struct journal;
struct journal_reign;

/* Begins a new segment at start_lsn, starts the sync thread. NULL with `error`. All below start_lsn
 * is durable when it returns. */
struct journal *journal_open(const struct journal_config *config, char error[JOURNAL_ERROR_MAX]);
/*
 * A reign begins here: puts its record (lsn is filled in) and has it written. It is to be durable
 * before anybody counts on it, whatever `sync` says: the caller calls journal_sync_now(). Nothing
 * else was put since the start, or whoever puts is stopped. False: as journal_commit, or there is
 * no room for it.
 */
bool journal_begin_reign(struct journal *journal, struct journal_reign *reign);
/* Writes and syncs all, notes the clean end in the stream unless it follows, ends the threads.
 * Writers are gone. NULL: no-op. */
void journal_close(struct journal *journal);

/* ---- writing ---- */

struct journal_writer {
    struct journal *journal;
    uint64_t credit; /* bytes of room it holds */
    uint64_t end;    /* LSN after its last record */
    bool wrote;      /* since the last commit */
};

void journal_writer_init(struct journal_writer *writer, struct journal *journal);
void journal_writer_fini(struct journal_writer *writer); /* gives its room back */

/* Room for records of `bytes` together, their headers included. What is not used
 * stays the writer's until its next commit. Never more than the ring holds. */
bool journal_reserve(struct journal_writer *writer, size_t bytes);
/*
 * Appends a record: type at least JOURNAL_TYPES_RESERVED, two bytes and a payload of the caller's:
 * whole words, one or more. Its room was reserved. Returns the LSN where it begins. Never fails,
 * never waits.
 */
uint64_t journal_put(struct journal_writer *writer, uint8_t type, uint8_t a, uint8_t b,
                     const uint64_t *payload, size_t bytes);
/* The same of a payload of two words, which most have. */
uint64_t journal_put_two(struct journal_writer *writer, uint8_t type, uint8_t a, uint8_t b,
                         uint64_t first, uint64_t second);
/*
 * Has everything put so far, by anyone, written by the journal's thread. Returns where that ends:
 * what was put may be acknowledged when journal_written() is there. Surplus room is given back.
 */
uint64_t journal_submit(struct journal_writer *writer);
/*
 * The same, done by this thread, and waited for. False: the journal has failed or the disk broke
 * its promise, and what this writer put since its last commit must not be acknowledged. Not on a
 * worker, nor with the world stopped.
 */
bool journal_commit(struct journal_writer *writer);
/* Gives room back beyond `keep` bytes: a writer that put nothing and will not commit soon must not
 * keep it. */
void journal_give_back(struct journal_writer *writer, uint64_t keep);

/* ---- another node's stream ---- */

enum journal_appended {
    JOURNAL_APPENDED,
    JOURNAL_APPEND_NO_ROOM, /* as journal_reserve, or the disk did not keep its promise */
    JOURNAL_APPEND_BAD,     /* the next one is no sound record of this place: error */
};
/*
 * Appends whole records that begin at the head, as they are: pads and the other's own types too.
 * *taken: their bytes, also where it stops. Where a record would cross the end of a segment the
 * next one begins, and what is in front of it is waited for. Has them written. By one thread, while
 * nobody puts; aligned to 8. Not on a worker.
 */
enum journal_appended journal_append(struct journal_writer *writer, const void *bytes,
                                     size_t length, size_t *taken, char error[JOURNAL_ERROR_MAX]);
/*
 * Ends following: records may be put from here on. journal_begin_reign comes next, and its record
 * begins at the head. Nobody appends. False: what was appended cannot be written. Not on a worker.
 */
bool journal_stop_following(struct journal *journal);

/* ---- durability ---- */

uint64_t journal_head(const struct journal *journal);    /* after the last record put */
uint64_t journal_written(const struct journal *journal); /* handed to the system up to here */
uint64_t journal_durable(const struct journal *journal); /* survives a power cut up to here */

/* Is told how the journal goes on: from any thread, under none of the journal's locks, and possibly
 * by two threads at once; not after journal_close(). A listener that notes what it waits for (an
 * atomic, seq_cst) and then looks at written or durable either sees them there or is told: moved()
 * is called after they rose, and finds the note. */
struct journal_listener {
    void (*moved)(void *context); /* written or durable rose, or the journal has failed */
    void (*room)(void *context);  /* what journal_want_room() was asked for */
    void *context;
};
/* Once; the listener lives on until journal_close() has returned. */
void journal_listen(struct journal *journal, const struct journal_listener *listener);
/* Has room() called when a reserve of `bytes` may have room that had none, or the disk was found
 * full, or the journal has failed; soon if it is so already. One call answers all that wait for
 * room by then; a writer that still finds none asks again. A waiting writer has submitted
 * before. */
void journal_want_room(struct journal *journal, size_t bytes);
/* journal_reserve that waits for room, JOURNAL_ROOM_WAIT_US at most; not at all for a full disk.
 * Not on a worker, nor with the world stopped. */
bool journal_await_room(struct journal_writer *writer, size_t bytes);
/* Makes all that is written durable now and waits for it. False: failed. Not on a worker. */
bool journal_sync_now(struct journal *journal);

/* Deletes segments that end at or below lsn and are durable whole, with a successor that is. Waits
 * for the journal's thread to close them. False: one could not be (errno); it is tried again at the
 * next call. Not on a worker. */
bool journal_trim(struct journal *journal, uint64_t lsn);
/* What ends at or below lsn is not needed, and stays only while the disk has room: it is trimmed
 * before the journal is found full. It never falls. */
void journal_may_drop(struct journal *journal, uint64_t lsn);

/* ---- room on the disk ---- */

enum journal_room {
    JOURNAL_ROOM,
    JOURNAL_ROOM_NONE, /* the disk was full, and is: no segment could be allocated */
    JOURNAL_ROOM_HELD, /* it was full, and had room for one: journal_go_on is waited for */
};

void journal_keep_room(struct journal *journal); /* once, of an open journal */
enum journal_room journal_room(const struct journal *journal);
/* A checkpoint was made and the journal trimmed: room for a segment is the writers', if there is
 * some. It is looked for at once; without it the journal is full again, and JOURNAL_ROOM_NONE.
 * Until that look the answer is JOURNAL_ROOM. */
void journal_go_on(struct journal *journal);
/* Makes the ballast of a directory shorter by so much, at most to nothing. No journal is open
 * there. False: none is left. */
bool journal_ballast_give(struct vfs *vfs, const char *directory, uint64_t bytes);
/* Its size; 0: there is none. Any thread that may wait for the disk. */
uint64_t journal_ballast_bytes(struct vfs *vfs, const char *directory);
/* Returns the bytes of the disk with which a journal of such a configuration can be opened. */
uint64_t journal_start_bytes(uint64_t segment_bytes, uint64_t buffer_bytes);

struct journal_stats {
    uint64_t head, written, durable;
    uint64_t oldest; /* where the first segment begins */
    uint64_t segments, segment_bytes, buffer_used_bytes;
    uint64_t records, writes, syncs;
    uint64_t unsynced_us; /* age of the oldest byte that is not durable */
    uint64_t reserve_failures;
    bool full; /* no room on the disk for a further segment */
    bool failed;
    char error[JOURNAL_ERROR_MAX]; /* why, with file and offset; "" if nothing is wrong */
};
void journal_stats(const struct journal *journal, struct journal_stats *stats);
bool journal_failed(const struct journal *journal); /* as in the figures */

/* ---- reading: recovery, verify, inspect ---- */

struct journal_record {
    uint64_t lsn;
    uint8_t type, a, b;
    const void *payload; /* valid during the call; aligned to 8 */
    size_t bytes;        /* of the payload: whole words */
};

/* Return false to stop the scan. */
typedef bool journal_record_fn(void *context, const struct journal_record *record);

enum journal_scan_end {
    JOURNAL_SCAN_CLEAN,   /* ends where a journal_close() ended it */
    JOURNAL_SCAN_TORN,    /* ends at an incomplete record above the marks: a kill, a cut */
    JOURNAL_SCAN_STOPPED, /* the callback wanted no more */
    JOURNAL_SCAN_DAMAGED, /* something is wrong or missing that no kill or cut has left so */
    JOURNAL_SCAN_FAILED,  /* a file could not be read */
};

#define JOURNAL_FROM_OLDEST UINT64_MAX /* whatever there is: for verify, inspect */

/* The node that leads from an LSN on, as the record there says. */
struct journal_reign {
    uint64_t lsn;    /* where that record begins */
    uint64_t epoch;  /* rises from one to the next */
    uint64_t node;   /* a hash of its name; 0: it has none */
    uint64_t unix_s; /* when it began, by its clock */
};
typedef bool journal_reign_fn(void *context, const struct journal_reign *reign);

struct journal_scan {
    uint64_t from;           /* in: records at or above this LSN are given */
    journal_reign_fn *reign; /* in: reigns likewise, with the same context; NULL: they are not */
    uint64_t first;          /* out: where the oldest segment begins */
    uint64_t end;            /* out: after the last sound record: the start_lsn of the next open */
    uint64_t sum;            /* out: for the next open, with `end` */
    uint64_t durable;        /* out: the highest durable mark seen */
    uint64_t epoch;          /* out: the highest seen */
    uint64_t torn_bytes;     /* out: cut off after `end`; up to where 1 MiB holds nothing */
    /* out: TORN: sound records of the stream after `end`, which are cut off too: a power cut left
     * them without what is before them, or that was damaged */
    uint64_t lost_records, lost_bytes;
    uint64_t lost_first;           /* LSN */
    bool empty;                    /* out: there is no segment at all */
    char error[JOURNAL_ERROR_MAX]; /* out: DAMAGED, FAILED: what, file, offset, what to do */
};

/*
 * Reads the stream of a directory in order. Never changes a file. Segments must follow one another
 * without a gap from the one that holds `from`; older ones are not read. It is damage too if none
 * holds `from`, or the stream ends below it. `record` (NULL: nobody) is given
 * none of the journal's own records but reigns. No segment at all: CLEAN and `empty`, with end =
 * from, if from is 0 or JOURNAL_FROM_OLDEST (then end is 0).
 */
enum journal_scan_end journal_scan(struct vfs *vfs, const char *directory,
                                   struct journal_scan *scan, journal_record_fn *record,
                                   void *context);

#endif
