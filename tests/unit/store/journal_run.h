/*
 * journal_run.h: what the tests of the journal share: records whose content tells where they
 * belong, and a scan that checks them all.
 *
 * A record of writer W (its byte `a`) carries its number in W's sequence, from 1, and the life of
 * the journal it was put in; the rest of its payload follows from these. A scan finds each
 * writer's numbers without a gap and lives that never fall, or fails the test.
 * Thread rule: none; a recovered belongs to one thread.
 */
#ifndef ROLLCALL_TESTS_UNIT_STORE_JOURNAL_RUN_H
#define ROLLCALL_TESTS_UNIT_STORE_JOURNAL_RUN_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/journal.h"
#include "tests/support/vfs_sim.h"

#define RUN_DIRECTORY     "/journal"
#define RUN_WRITERS       8
#define RUN_TYPE          77
#define RUN_PAYLOAD_MIN   16
#define RUN_SEGMENT_BYTES JOURNAL_SEGMENT_BYTES_MIN
#define RUN_BUFFER_BYTES  JOURNAL_BUFFER_BYTES_MIN

/* What a scan found, or what one found before if it goes on from there. */
struct recovered {
    enum journal_scan_end end;
    struct journal_scan scan;
    uint64_t count[RUN_WRITERS]; /* the highest number of each */
    uint64_t life;
};

struct journal_config run_config(struct vfs *vfs, enum journal_sync sync);
/* Made if it is not there; its name durable. */
void run_make_directory(struct vfs *vfs);

/* Opens where `recovered` (NULL: nothing) ended. Fails the test if it cannot. */
struct journal *run_open(struct journal_config *config, const struct recovered *recovered);

/* Room there is as soon as others, the disk and the sync thread have done their part. */
void run_reserve(struct journal_writer *writer, size_t bytes);
/* Puts a record of so many bytes of payload; its room is reserved. Returns its LSN. */
uint64_t run_put(struct journal_writer *writer, uint8_t w, uint64_t number, uint64_t life,
                 size_t bytes);
/* Reserves, puts, commits. False: what the commit said. */
bool run_write(struct journal_writer *writer, uint8_t w, uint64_t number, uint64_t life,
               size_t bytes);

/* Reads the stream from `from` on. Below it, `recovered` holds what is there. */
void run_scan(struct vfs *vfs, uint64_t from, struct recovered *recovered);
/* A sealed segment's mark is of its end. Returns how many are sealed. */
unsigned run_check_seals(struct vfs *vfs);

/* One journal in a directory of its own, and who writes to it. */
#define RUN_WORLD_ENDS 20
struct run_world {
    struct vfs_sim *sim;
    struct vfs *vfs;
    struct journal_config config;
    struct journal *journal;
    struct journal_writer writer;
    uint64_t number, life;             /* of the records so far */
    uint64_t ends[RUN_WORLD_ENDS + 1]; /* LSN after the n-th of the first ones */
};
/* Nothing becomes durable in it but by journal_sync_now. */
void run_world_begin(struct run_world *world, uint64_t seed, enum journal_sync sync);
/* The process ends, by a kill or not; what it wrote is there. */
void run_world_end(struct run_world *world, bool kill);
struct recovered run_world_scan(struct run_world *world);

/* Ends the process before its n-th call that a thread makes: run_die_at is the hook. */
struct run_doom {
    struct vfs_sim *sim;
    uint64_t at; /* n */
    _Atomic uint64_t calls;
    uint64_t cut_seed; /* 0: a kill */
};
void run_die_at(void *context, enum vfs_sim_op op, const char *path);

/* Somebody who is told how a journal goes on. It lives until the journal is closed. */
struct run_listener {
    struct journal_listener listener;
    pthread_mutex_t lock;
    pthread_cond_t told;
    uint64_t moved, room; /* times it was */
};
void run_listen(struct run_listener *listener, struct journal *journal);
/* Waits until the journal is durable (else: written) up to lsn, and looks only when it was told.
 * False: it has failed. Any thread. */
bool run_wait_moved(struct run_listener *listener, struct journal *journal, bool durable,
                    uint64_t lsn);
uint64_t run_room_told(struct run_listener *listener); /* times */
/* Waits until it was told of room so many times. */
void run_wait_room(struct run_listener *listener, uint64_t times);

/* Waits until the condition holds, at most a minute; then fails the test. */
#define RUN_WAIT_FOR(condition)                                                                    \
    do {                                                                                           \
        uint64_t run_waited = 0;                                                                   \
        while (!(condition)) {                                                                     \
            run_pause(&run_waited);                                                                \
        }                                                                                          \
    } while (0)
void run_pause(uint64_t *waited);

#endif
