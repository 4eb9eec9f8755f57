/* journal.c: writers, writing out, figures. */
#include "store/journal.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "store/journal_private.h"

#define SPINS_BEFORE_YIELD 100

void journal_writer_init(struct journal_writer *writer, struct journal *journal)
{
    CHECK(journal->class == JOURNAL_CLASS);
    *writer = (struct journal_writer){.journal = journal, .end = journal_durable(journal)};
}

void journal_give_back(struct journal_writer *writer)
{
    if (writer->credit > 0) {
        journal_ring_give(&writer->journal->ring, writer->credit);
        writer->credit = 0;
        journal_tell_room(writer->journal);
    }
}

void journal_writer_fini(struct journal_writer *writer)
{
    journal_give_back(writer);
    writer->journal = NULL;
}

/* ---- room ---- */

static __attribute__((cold, noinline)) bool no_room(struct journal *journal)
{
    atomic_fetch_add_explicit(&journal->reserve_failures, 1, memory_order_relaxed);
    atomic_store(&journal->room_wanted, true);
    atomic_store(&journal->spare_wanted, true);
    journal_kick(journal);
    return false;
}

bool journal_reserve(struct journal_writer *writer, size_t bytes)
{
    struct journal *journal = writer->journal;
    if (UNLIKELY(atomic_load_explicit(&journal->trouble, memory_order_relaxed))) {
        return no_room(journal);
    }
    if (LIKELY(writer->credit >= bytes)) {
        return true;
    }
    uint64_t taken = journal_ring_take(&journal->ring, (bytes + 7 - writer->credit) & ~(size_t)7);
    writer->credit += taken;
    return taken > 0 || no_room(journal);
}

uint64_t journal_put(struct journal_writer *writer, uint8_t type, uint8_t a, uint8_t b,
                     const uint64_t *payload, size_t bytes)
{
    size_t words = bytes / JOURNAL_UNIT;
    uint64_t whole = journal_ring_record_bytes(words);
    CHECK(type >= JOURNAL_TYPES_RESERVED && bytes > 0 && bytes <= JOURNAL_PAYLOAD_MAX);
    CHECK(bytes % JOURNAL_UNIT == 0 && writer->credit >= whole);
    writer->credit -= whole;
    uint64_t lsn = journal_ring_put(&writer->journal->ring, type, a, b, payload, words);
    writer->end = lsn + whole;
    writer->wrote = true;
    return lsn;
}

void journal_set_limit(struct journal *journal)
{
    uint64_t allocated = journal->current->end;
    if (journal->spare_fd >= 0) {
        allocated += journal->segment_bytes - JOURNAL_PAGE_BYTES;
    }
    journal_ring_limit(&journal->ring, journal->cleared, allocated);
    journal_tell_room(journal);
}

/* ---- writing out ---- */

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
    journal->writes++;
    atomic_store_explicit(&journal->written, run->end, memory_order_release);
    if (journal->sync == JOURNAL_SYNC_NEVER) {
        journal_ring_clear(&journal->ring, before, run->end);
        journal->cleared = run->end;
        journal_set_limit(journal);
    }
    if (UNLIKELY(atomic_load(&journal->trouble) == JOURNAL_STUCK)) {
        journal_end_trouble(journal);
    }
}

/* A write that failed says nothing of what is in the file behind `written`: go on in a new one,
 * once. A full disk is waited for. */
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

/* Writes a piece of what is filled. False: failed or stuck. */
static bool write_piece(struct journal *journal, unsigned *spins)
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
        if (++*spins > SPINS_BEFORE_YIELD) {
            sched_yield();
        }
        return true;
    }
    *spins = 0;
    if (!journal_segment_write(journal, current->fd, &current->header, journal->run.end, run.end)) {
        return write_failed(journal);
    }
    wrote(journal, &run);
    return true;
}

bool journal_write_through(struct journal *journal, uint64_t target)
{
    unsigned spins = 0;
    while (journal->run.end < target) {
        if (journal_failed(journal) || !write_piece(journal, &spins)) {
            return false;
        }
    }
    return !journal_failed(journal);
}

/* Whether the sync thread should look now, not at its next turn. */
static bool is_thread_needed(const struct journal *journal)
{
    const struct journal_segment *current = journal->current;
    if (journal->spare_fd < 0 && current->end - journal->run.end <= journal->segment_bytes / 2) {
        return true;
    }
    return journal_pages_are_due(journal) || journal->sync == JOURNAL_SYNC_ALWAYS ||
           (journal->sync == JOURNAL_SYNC_EVERYSEC &&
            journal->run.end - journal->cleared > journal->ring.bytes / 2);
}

bool journal_commit(struct journal_writer *writer)
{
    struct journal *journal = writer->journal;
    journal_give_back(writer);
    writer->wrote = false;
    uint64_t target = journal_ring_head(&journal->ring);
    if (journal_written(journal) >= target) {
        return !journal_failed(journal);
    }
    pthread_mutex_lock(&journal->write_lock);
    bool written = journal_write_through(journal, target);
    bool kick = is_thread_needed(journal);
    pthread_mutex_unlock(&journal->write_lock);
    if (kick) {
        journal_kick(journal);
    }
    return written;
}

/* ---- figures ---- */

uint64_t journal_head(const struct journal *journal)
{
    return journal_ring_head(&journal->ring);
}

uint64_t journal_written(const struct journal *journal)
{
    return atomic_load_explicit(&journal->written, memory_order_acquire);
}

uint64_t journal_durable(const struct journal *journal)
{
    return atomic_load_explicit(&journal->durable, memory_order_acquire);
}

static void segment_stats(const struct journal *journal, struct journal_stats *stats)
{
    for (const struct journal_segment *s = journal->first; s; s = s->next) {
        stats->segments++;
        stats->segment_bytes += s->header.bytes;
    }
    if (journal->spare_fd >= 0) {
        stats->segment_bytes += journal->segment_bytes;
    }
    stats->oldest = journal->first->header.start;
    stats->buffer_used_bytes = journal_head(journal) - journal->cleared;
    stats->records = journal->run.records;
    stats->writes = journal->writes;
    stats->syncs = journal->syncs;
    if (journal->unsynced_since_us > 0) {
        stats->unsynced_us =
            journal->vfs->functions->now_us(journal->vfs) - journal->unsynced_since_us;
    }
}

void journal_stats(const struct journal *journal, struct journal_stats *stats)
{
    struct journal *locked = (struct journal *)(uintptr_t)journal; /* only its locks change */
    CHECK(journal->class == JOURNAL_CLASS);
    memset(stats, 0, sizeof *stats);
    stats->durable = journal_durable(journal);
    stats->written = journal_written(journal);
    stats->head = journal_head(journal);
    stats->reserve_failures = atomic_load(&journal->reserve_failures);
    stats->full = atomic_load(&journal->full) || atomic_load(&journal->trouble) == JOURNAL_STUCK;
    stats->failed = journal_failed(journal);
    pthread_mutex_lock(&locked->write_lock);
    segment_stats(journal, stats);
    pthread_mutex_unlock(&locked->write_lock);
    pthread_mutex_lock(&locked->state_lock);
    snprintf(stats->error, sizeof stats->error, "%s", journal->error);
    pthread_mutex_unlock(&locked->state_lock);
}
