/*
 * sim_journal.h: a small journal on a simulated disk (tests/support/vfs_sim.h) whose writes or
 * syncs can be stopped and failed, for tests of what stands on a journal.
 */
#ifndef ROLLCALL_TESTS_SIM_JOURNAL_H
#define ROLLCALL_TESTS_SIM_JOURNAL_H

#include <pthread.h>

#include "data/journal_sink.h"
#include "tests/support/vfs_sim.h"

#define SIM_JOURNAL_DIRECTORY     "/journal"
#define SIM_JOURNAL_SEGMENT_BYTES JOURNAL_SEGMENT_BYTES_MIN
#define SIM_JOURNAL_BUFFER_BYTES  JOURNAL_BUFFER_BYTES_MIN

struct sim_journal {
    struct vfs_sim *sim;
    struct journal *journal;
    struct journal_log log;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed[VFS_SIM_OPS]; /* the gates */
    unsigned waiting;
};

void sim_journal_open(struct sim_journal *from, enum journal_sync sync);
/* Opens the gates, closes the journal and forgets the disk. Writers are gone. */
void sim_journal_close(struct sim_journal *from);

/* From now on calls of op wait; `await` blocks until one does. */
void sim_journal_gate(struct sim_journal *from, enum vfs_sim_op op);
void sim_journal_await(struct sim_journal *from);
void sim_journal_ungate(struct sim_journal *from);

/* From now on every call that changes the disk fails. */
void sim_journal_break(struct sim_journal *from);

#endif
