/* journal_sync.c: the thread that makes the journal durable and has it allocate room. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/thread.h"
#include "store/journal_private.h"

#define CLEAR_BYTES (256u << 10) /* at a time */

/* ---- trouble ---- */

void journal_set_trouble(struct journal *journal, enum journal_trouble trouble, const char *name,
                         uint64_t offset, const char *doing)
{
    int error = errno;
    pthread_mutex_lock(&journal->state_lock);
    if (!journal_failed(journal)) {
        snprintf(journal->error, sizeof(journal->error), "%s/%s: offset %" PRIu64 ": %s: %s%s",
                 journal->directory, name, offset, doing, strerror(error),
                 trouble == JOURNAL_FAILED ? "; check the disk, then restart the daemon" : "");
        if (trouble != JOURNAL_NO_TROUBLE) {
            atomic_store(&journal->trouble, (int)trouble);
        }
    }
    pthread_cond_broadcast(&journal->done);
    pthread_mutex_unlock(&journal->state_lock);
    if (trouble != JOURNAL_NO_TROUBLE) {
        journal_tell_room(journal); /* who waits for it waits in vain */
        journal_kick_writer(journal);
    }
    journal_kick(journal);
}

void journal_end_trouble(struct journal *journal)
{
    pthread_mutex_lock(&journal->state_lock);
    if (!journal_failed(journal)) {
        atomic_store(&journal->trouble, (int)JOURNAL_NO_TROUBLE);
        journal->error[0] = '\0'; /* of a segment that cannot be allocated it is soon said again */
    }
    pthread_mutex_unlock(&journal->state_lock);
}

/* ---- waiting ---- */

void journal_kick(struct journal *journal)
{
    if (!atomic_exchange(&journal->kicked, true)) {
        pthread_mutex_lock(&journal->state_lock);
        pthread_cond_signal(&journal->work);
        pthread_mutex_unlock(&journal->state_lock);
    }
}

static bool is_settled(const struct journal *journal, uint64_t lsn)
{
    return journal_durable(journal) >= lsn || journal_failed(journal);
}

void journal_tell_room(struct journal *journal)
{
    if (UNLIKELY(atomic_load(&journal->room_waited))) {
        atomic_store(&journal->room_came, true);
        journal_kick_writer(journal);
    }
}

/* What is given between noting that somebody waits and looking whether there is room comes with
 * journal_tell_room: either the look sees it, or the giver sees the note. For that the note, and
 * all that is looked at, are of one order of all threads (seq_cst), here and in the ring. */
void journal_want_room(struct journal *journal, size_t bytes)
{
    atomic_store(&journal->room_waited, true);
    if (journal_ring_left(&journal->ring) >= bytes || journal_is_full(journal) ||
        journal_failed(journal)) {
        journal_tell_room(journal);
    }
    journal_kick(journal);
}

/* Returns the time that many microseconds from now. The clock of the table of file calls may be
 * another than the system's. */
static struct timespec in_us(uint64_t us)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    uint64_t ns = (uint64_t)at.tv_nsec + us * 1000;
    at.tv_sec += (time_t)(ns / 1000000000u);
    at.tv_nsec = (long)(ns % 1000000000u);
    return at;
}

/* Waits until all who want room have been told once. False: not by then. */
static bool await_told(struct journal *journal, size_t bytes, const struct timespec *until)
{
    pthread_mutex_lock(&journal->state_lock);
    uint64_t told = journal->rooms_told;
    pthread_mutex_unlock(&journal->state_lock);
    journal_want_room(journal, bytes);
    pthread_mutex_lock(&journal->state_lock);
    int error = 0;
    while (told == journal->rooms_told && error == 0) {
        error = pthread_cond_timedwait(&journal->roomy, &journal->state_lock, until);
    }
    pthread_mutex_unlock(&journal->state_lock);
    return error == 0;
}

bool journal_await_room(struct journal_writer *writer, size_t bytes)
{
    struct journal *journal = writer->journal;
    const struct timespec until = in_us(JOURNAL_ROOM_WAIT_US);
    bool room = journal_reserve(writer, bytes);
    bool told = true;
    while (!room && told && !journal_is_full(journal) && !journal_failed(journal)) {
        (void)journal_submit(writer); /* it is full of what nobody may have submitted */
        told = await_told(journal, bytes, &until);
        room = journal_reserve(writer, bytes);
    }
    return room;
}

bool journal_sync_now(struct journal *journal)
{
    uint64_t target = journal_written(journal);
    pthread_mutex_lock(&journal->state_lock);
    if (journal->sync_target < target) {
        journal->sync_target = target;
    }
    atomic_store(&journal->kicked, true);
    pthread_cond_signal(&journal->work);
    while (!is_settled(journal, target)) {
        pthread_cond_wait(&journal->done, &journal->state_lock);
    }
    pthread_mutex_unlock(&journal->state_lock);
    return journal_durable(journal) >= target && !journal_failed(journal);
}

void journal_await_closed(struct journal *journal, uint64_t lsn)
{
    pthread_mutex_lock(&journal->write_lock);
    uint64_t durable = journal->unsynced->header.start; /* what is before it gets closed */
    pthread_mutex_unlock(&journal->write_lock);
    uint64_t until = lsn < durable ? lsn : durable;
    pthread_mutex_lock(&journal->state_lock);
    while (journal->closed < until) {
        pthread_cond_wait(&journal->done, &journal->state_lock);
    }
    pthread_mutex_unlock(&journal->state_lock);
}

/* ---- one sync ---- */

struct sync_round {
    struct journal_segment *first, *last; /* what is open, as far as it is written */
    uint64_t target, sum;
    uint64_t began_us;
    bool names_changed;
};

static struct sync_round begin_round(struct journal *journal)
{
    struct sync_round round = {.began_us = journal->vfs->functions->now_us(journal->vfs)};
    pthread_mutex_lock(&journal->write_lock);
    round.first = journal->unsynced;
    round.last = journal->current;
    round.target = journal->run.end;
    round.sum = journal->run.sum;
    round.names_changed = journal->names_changed;
    journal->names_changed = false;
    pthread_mutex_unlock(&journal->write_lock);
    return round;
}

/* Names first: what is in a file without a durable name is not durable. Segments between first and
 * last do not change any more, so the list may be followed without a lock. */
static bool sync_files(struct journal *journal, const struct sync_round *round)
{
    const struct vfs_functions *file = journal->vfs->functions;
    if (round->names_changed && file->sync_dir(journal->vfs, journal->directory) != 0) {
        return false;
    }
    for (struct journal_segment *s = round->first;; s = s->next) {
        if (file->fdatasync(journal->vfs, s->fd) != 0) {
            return false;
        }
        if (s == round->last) {
            return true;
        }
    }
}

/* A failed sync: what is not durable is written again into a new file, from the ring. */
static bool journal_sync_write_again(struct journal *journal, struct sync_round *round)
{
    char name[JOURNAL_NAME_MAX];
    journal_name(name, round->first->header.start);
    uint64_t offset = journal_offset_of(&round->first->header, journal_durable(journal));
    bool kept = journal->sync != JOURNAL_SYNC_NEVER && !journal_failed(journal);
    pthread_mutex_lock(&journal->write_lock);
    bool again = kept && journal_segment_again(journal, true);
    if (!again) {
        journal_set_trouble(journal, JOURNAL_FAILED, name, offset, "cannot make durable");
    } else {
        round->first = round->last = journal->current;
        round->target = journal->run.end;
        round->sum = journal->run.sum;
    }
    pthread_mutex_unlock(&journal->write_lock);
    return again;
}

static void note_durable(struct journal *journal, const struct sync_round *round)
{
    pthread_mutex_lock(&journal->write_lock);
    journal->durable_sum = round->sum;
    journal->unsynced = round->last;
    journal_count_open(journal);
    journal->syncs++;
    journal->unsynced_since_us = journal->run.end > round->target ? round->began_us : 0;
    atomic_store(&journal->durable, round->target);
    pthread_mutex_unlock(&journal->write_lock);
    pthread_mutex_lock(&journal->state_lock);
    pthread_cond_broadcast(&journal->done);
    pthread_mutex_unlock(&journal->state_lock);
    journal_tell_moved(journal);
}

static void give_room(struct journal *journal, uint64_t target)
{
    if (journal->sync == JOURNAL_SYNC_NEVER) {
        return; /* given when it was written */
    }
    for (uint64_t from = journal->cleared; from < target; from = journal->cleared) {
        uint64_t until = target - from > CLEAR_BYTES ? from + CLEAR_BYTES : target;
        journal_ring_clear(&journal->ring, from, until);
        pthread_mutex_lock(&journal->write_lock);
        journal->cleared = until;
        journal_set_limit(journal);
        pthread_mutex_unlock(&journal->write_lock);
        if (until < target) {
            sched_yield(); /* tens of MiB: other threads of the core go first */
        }
    }
}

/* Writes a mark of what is durable and written by now. */
static void mark(struct journal *journal, struct journal_segment *segment)
{
    journal->marked = journal_written(journal);
    journal->marked_us = journal->vfs->functions->now_us(journal->vfs);
    journal_segment_mark(journal, segment, journal_durable(journal), false);
}

/* Between syncs, and without any: so that a start in the same run of the system knows how far the
 * stream must go. */
static void mark_written(struct journal *journal)
{
    pthread_mutex_lock(&journal->write_lock);
    struct journal_segment *current = journal->current; /* only this thread closes one */
    pthread_mutex_unlock(&journal->write_lock);
    mark(journal, current);
}

/* The last segment's successor does not count as there before it is durable: so only those are
 * sealed that were complete when the round began. */
static void mark_segments(struct journal *journal, const struct sync_round *round)
{
    struct journal_segment *s = round->first;
    while (s != round->last) {
        struct journal_segment *next = s->next;
        journal_segment_mark(journal, s, s->end, true);
        int fd = s->fd;
        pthread_mutex_lock(&journal->write_lock);
        s->fd = -1; /* a trim may free it from now on */
        pthread_mutex_unlock(&journal->write_lock);
        journal->vfs->functions->close(journal->vfs, fd);
        s = next;
    }
    pthread_mutex_lock(&journal->state_lock);
    journal->closed = round->last->header.start;
    pthread_cond_broadcast(&journal->done);
    pthread_mutex_unlock(&journal->state_lock);
    mark(journal, round->last);
    journal->mark_loose = true;
}

static void sync_round(struct journal *journal)
{
    struct sync_round round = begin_round(journal);
    bool synced = sync_files(journal, &round);
    if (!synced && !journal_sync_write_again(journal, &round)) {
        journal_tell_moved(journal);
        return;
    }
    journal->mark_loose = false;
    if (synced && round.target == journal_durable(journal)) {
        return; /* it was for the mark alone */
    }
    note_durable(journal, &round);
    give_room(journal, round.target);
    mark_segments(journal, &round);
    journal->synced_us = round.began_us;
}

/* Tries to write what a full disk held up. */
static void write_stuck(struct journal *journal, uint64_t now_us)
{
    journal->stuck_again_us = now_us + JOURNAL_SECOND_US;
    pthread_mutex_lock(&journal->write_lock);
    journal_write_through(journal, journal_ring_head(&journal->ring));
    pthread_mutex_unlock(&journal->write_lock);
    journal_tell_moved(journal);
}

/* ---- the thread ---- */

enum sync_work { WORK_NONE, WORK_WRITE, WORK_SPARE, WORK_SYNC, WORK_MARK };

/* The mark of the last sync becomes durable with the next one, a second later at most. Not in a
 * full segment: what fails there could not be written again. */
static bool is_mark_due(struct journal *journal, uint64_t now_us)
{
    if (!journal->mark_loose || now_us - journal->synced_us < JOURNAL_SECOND_US) {
        return false;
    }
    pthread_mutex_lock(&journal->write_lock);
    bool room = journal->run.end < journal->current->end;
    pthread_mutex_unlock(&journal->write_lock);
    return room && journal->sync != JOURNAL_SYNC_NEVER;
}

/* Of many open segments: descriptors are few, and a checkpoint, which has all synced, wants some of
 * its own. */
static bool is_sync_due(struct journal *journal, uint64_t now_us)
{
    uint64_t durable = journal_durable(journal);
    uint64_t unsynced = journal_written(journal) - durable;
    if (unsynced == 0) {
        return is_mark_due(journal, now_us);
    }
    if (journal->sync_target > durable || journal->sync == JOURNAL_SYNC_ALWAYS ||
        journal_has_many_open(journal)) {
        return true;
    }
    bool room_wanted = atomic_exchange(&journal->room_wanted, false);
    return journal->sync == JOURNAL_SYNC_EVERYSEC &&
           (room_wanted || unsynced > journal->ring.bytes / 2 ||
            now_us - journal->synced_us >= JOURNAL_SECOND_US);
}

/* Called without a lock: the write lock comes before the state lock. */
static enum sync_work find_work(struct journal *journal, uint64_t now_us)
{
    if (journal_failed(journal)) {
        return WORK_NONE;
    }
    if (is_sync_due(journal, now_us)) {
        return WORK_SYNC;
    }
    if (journal_written(journal) > journal->marked &&
        now_us - journal->marked_us >= JOURNAL_SECOND_US) {
        return WORK_MARK;
    }
    if (journal_room_is_due(journal, now_us)) {
        return WORK_SPARE;
    }
    if (atomic_load(&journal->trouble) == JOURNAL_STUCK && now_us >= journal->stuck_again_us) {
        return WORK_WRITE;
    }
    return WORK_NONE;
}

static bool do_work(struct journal *journal)
{
    uint64_t now_us = journal->vfs->functions->now_us(journal->vfs);
    switch (find_work(journal, now_us)) {
    case WORK_SYNC:
        sync_round(journal);
        return true;
    case WORK_MARK:
        mark_written(journal);
        return true;
    case WORK_SPARE:
        journal_room_make(journal, now_us);
        return true;
    case WORK_WRITE:
        write_stuck(journal, now_us);
        return true;
    case WORK_NONE:
        break;
    }
    return !journal_failed(journal) && journal_pages(journal);
}

/* At most a second. */
static void wait_for_work(struct journal *journal)
{
    uint64_t now_us = journal->vfs->functions->now_us(journal->vfs);
    uint64_t passed_us = now_us - journal->synced_us;
    uint64_t wait_us = JOURNAL_SECOND_US;
    if (journal->sync == JOURNAL_SYNC_EVERYSEC && passed_us < JOURNAL_SECOND_US &&
        journal_written(journal) > journal_durable(journal)) {
        wait_us -= passed_us;
    }
    const struct timespec until = in_us(wait_us);
    pthread_cond_timedwait(&journal->work, &journal->state_lock, &until);
}

static void *sync_main(void *context)
{
    struct journal *journal = context;
    pthread_mutex_lock(&journal->state_lock);
    while (!journal->stop) {
        atomic_store(&journal->kicked, false);
        pthread_mutex_unlock(&journal->state_lock);
        bool worked = do_work(journal);
        pthread_mutex_lock(&journal->state_lock);
        if (!worked && !journal->stop && !atomic_load(&journal->kicked)) {
            journal->rests = true;
            wait_for_work(journal);
            journal->rests = false;
        }
    }
    pthread_mutex_unlock(&journal->state_lock);
    return NULL;
}

bool journal_sync_start(struct journal *journal)
{
    journal->synced_us = journal->vfs->functions->now_us(journal->vfs);
    journal->closed = journal->unsynced->header.start;
    journal->marked_us = journal->synced_us;
    journal->marked = journal_written(journal);
    return thread_start(&journal->thread, sync_main, journal, "journal");
}

void journal_sync_stop(struct journal *journal)
{
    pthread_mutex_lock(&journal->state_lock);
    journal->stop = true;
    pthread_cond_signal(&journal->work);
    pthread_mutex_unlock(&journal->state_lock);
    pthread_join(journal->thread, NULL);
}
