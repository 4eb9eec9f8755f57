/*
 * journal_write.c: the stream on its way to the files, and the thread that sends it there.
 *
 * No worker writes: a write may take seconds, and reads of the same worker would wait. So a worker
 * submits, and this thread writes what is filled, as far as there is no gap, for all of them at
 * once: while it writes, the next batch collects. It is not the sync thread, because a sync takes
 * its time on any disk, and answers under EVERYSEC do not wait for it.
 */
#include <errno.h>
#include <sched.h>

#include "base/check.h"
#include "base/thread.h"
#include "store/journal_private.h"

#define SPINS_BEFORE_YIELD 100

/* ---- writing ---- */

static void report(struct journal *journal, const char *doing)
{
    char name[JOURNAL_NAME_MAX];
    journal_name(name, journal->current->header.start);
    bool full = errno == ENOSPC || errno == EDQUOT;
    journal_set_trouble(journal, full ? JOURNAL_STUCK : JOURNAL_FAILED, name,
                        journal_offset_of(&journal->current->header, journal->run.end), doing);
}

static void wrote(struct journal *journal, const struct journal_run *run)
{
    uint64_t before = journal->run.end;
    if (journal->unsynced_since_us == 0) {
        journal->unsynced_since_us = journal->vfs->functions->now_us(journal->vfs);
    }
    journal->run = *run;
    journal->records = run->records;
    journal->writes++;
    atomic_store(&journal->written, run->end);
    if (journal->sync == JOURNAL_SYNC_NEVER) {
        journal_ring_clear(&journal->ring, before, run->end);
        journal->cleared = run->end;
        journal_set_limit(journal);
    }
    if (UNLIKELY(atomic_load(&journal->trouble) == JOURNAL_STUCK)) {
        journal_end_trouble(journal);
    }
}

/* After a failed write nobody knows what is in the file after `written`: go on in a new one, once.
 * A full disk is waited for. */
static bool write_failed(struct journal *journal)
{
    bool full = errno == ENOSPC || errno == EDQUOT;
    bool just_begun = journal->run.end == journal->current->header.start;
    if (!full && !just_begun && journal_segment_again(journal, false)) {
        return true;
    }
    report(journal, "cannot write");
    return false;
}

/* Writes a piece of what is filled, if anything is. False: failed or stuck. */
static bool journal_write_piece(struct journal *journal)
{
    if (journal->run.end == journal->current->end && !journal_segment_next(journal)) {
        report(journal, "cannot begin the next segment");
        return false;
    }
    const struct journal_segment *current = journal->current;
    struct journal_run run = journal->run;
    uint64_t until = run.end + JOURNAL_WRITE_BYTES;
    journal_ring_walk(&journal->ring, &run, until < current->end ? until : current->end);
    if (run.end == journal->run.end) {
        return true;
    }
    if (!journal_segment_write(journal, current->fd, &current->header, journal->run.end, run.end)) {
        return write_failed(journal);
    }
    wrote(journal, &run);
    return true;
}

/* After a piece of writing that came no further: a record is being filled, in a moment or, if its
 * thread has lost its processor, later. */
static void await_filled(unsigned *spins)
{
    if (++*spins > SPINS_BEFORE_YIELD) {
        sched_yield();
    }
}

bool journal_write_through(struct journal *journal, uint64_t target)
{
    unsigned spins = 0;
    while (journal->run.end < target) {
        uint64_t before = journal->run.end;
        if (journal_failed(journal) || !journal_write_piece(journal)) {
            return false;
        }
        if (journal->run.end == before) {
            await_filled(&spins);
        }
    }
    return !journal_failed(journal);
}

bool journal_sync_is_needed(const struct journal *journal)
{
    const struct journal_segment *current = journal->current;
    if (journal->spare_fd < 0 && current->end - journal->run.end <= journal->segment_bytes / 2) {
        return true;
    }
    return journal_pages_are_due(journal) || journal->sync == JOURNAL_SYNC_ALWAYS ||
           journal_has_many_open(journal) ||
           (journal->sync == JOURNAL_SYNC_EVERYSEC &&
            journal->run.end - journal->cleared > journal->ring.bytes / 2);
}

/* ---- the thread ---- */

static void tell_room(struct journal *journal)
{
    const struct journal_listener *listener = atomic_load(&journal->listener);
    if (atomic_exchange(&journal->room_came, false)) {
        atomic_store(&journal->room_waited, false); /* who wants room from here on asks again */
        pthread_mutex_lock(&journal->state_lock);
        journal->rooms_told++;
        pthread_cond_broadcast(&journal->roomy);
        pthread_mutex_unlock(&journal->state_lock);
        if (listener) {
            listener->room(listener->context);
        }
    }
}

/* A piece of what is put. False: there is nothing to write, or it cannot be: the sync thread tries
 * again when the disk was full. */
static bool write_some(struct journal *journal, unsigned *spins)
{
    if (atomic_load(&journal->trouble) != JOURNAL_NO_TROUBLE ||
        journal_written(journal) >= journal_ring_head(&journal->ring)) {
        return false;
    }
    pthread_mutex_lock(&journal->write_lock);
    uint64_t before = journal->run.end;
    bool sound = journal_write_piece(journal);
    bool moved = journal->run.end > before;
    bool kick = journal_sync_is_needed(journal);
    pthread_mutex_unlock(&journal->write_lock);
    if (moved) {
        *spins = 0;
        journal_tell_moved(journal);
    } else if (sound) {
        await_filled(spins);
    }
    if (kick) {
        journal_kick(journal);
    }
    return sound;
}

static void *write_main(void *context)
{
    struct journal *journal = context;
    unsigned spins = 0;
    for (;;) {
        kick_await(&journal->writer_kick);
        if (atomic_load(&journal->writer_stops)) {
            return NULL;
        }
        tell_room(journal);
        while (write_some(journal, &spins)) {
        }
        if (journal_failed(journal)) {
            journal_tell_moved(journal);
        }
    }
}

void journal_kick_writer(struct journal *journal)
{
    kick_thread(&journal->writer_kick);
}

bool journal_writer_start(struct journal *journal)
{
    return thread_start(&journal->writer, write_main, journal, "journal-write");
}

void journal_writer_stop(struct journal *journal)
{
    atomic_store(&journal->writer_stops, true); /* the sync thread kicks it, too, to its end */
    kick_thread(&journal->writer_kick);
    pthread_join(journal->writer, NULL);
}
