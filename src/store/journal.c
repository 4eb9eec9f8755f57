/* journal.c: writers, figures. */
#include "store/journal.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "store/journal_private.h"

void journal_writer_init(struct journal_writer *writer, struct journal *journal)
{
    CHECK(journal->class == JOURNAL_CLASS);
    *writer = (struct journal_writer){.journal = journal, .end = journal_durable(journal)};
}

void journal_give_back(struct journal_writer *writer, uint64_t keep)
{
    if (writer->credit > keep) {
        journal_ring_give(&writer->journal->ring, writer->credit - keep);
        writer->credit = keep;
        journal_tell_room(writer->journal);
    }
}

void journal_writer_fini(struct journal_writer *writer)
{
    journal_give_back(writer, 0);
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

/* There is less credit. Apart, so that nearly all do without its frame. */
static __attribute__((noinline)) bool take_credit(struct journal_writer *writer, size_t bytes)
{
    struct journal *journal = writer->journal;
    uint64_t taken = journal_ring_take(&journal->ring, (bytes + 7 - writer->credit) & ~(size_t)7);
    writer->credit += taken;
    return taken > 0 || no_room(journal);
}

bool journal_reserve(struct journal_writer *writer, size_t bytes)
{
    struct journal *journal = writer->journal;
    if (UNLIKELY(atomic_load_explicit(&journal->trouble, memory_order_relaxed))) {
        return no_room(journal);
    }
    return LIKELY(writer->credit >= bytes) || take_credit(writer, bytes);
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

uint64_t journal_put_two(struct journal_writer *writer, uint8_t type, uint8_t a, uint8_t b,
                         uint64_t first, uint64_t second)
{
    const uint64_t whole = journal_ring_record_bytes(2);
    CHECK(type >= JOURNAL_TYPES_RESERVED && writer->credit >= whole);
    writer->credit -= whole;
    uint64_t lsn = journal_ring_put_two(&writer->journal->ring, type, a, b, first, second);
    writer->end = lsn + whole;
    writer->wrote = true;
    return lsn;
}

bool journal_begin_reign(struct journal *journal, struct journal_reign *reign)
{
    const uint64_t payload[] = {reign->epoch, reign->node, reign->unix_s};
    const size_t words = sizeof(payload) / JOURNAL_UNIT;
    struct journal_writer writer;
    journal_writer_init(&writer, journal);
    bool begun = journal_reserve(&writer, JOURNAL_REIGN_BYTES);
    if (begun) {
        writer.credit -= JOURNAL_REIGN_BYTES;
        reign->lsn = journal_ring_put(&journal->ring, JOURNAL_REIGN, 0, 0, payload, words);
        begun = journal_commit(&writer);
        journal->epoch = reign->epoch;
    }
    journal_writer_fini(&writer);
    return begun;
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

/* ---- leaving ---- */

uint64_t journal_submit(struct journal_writer *writer)
{
    struct journal *journal = writer->journal;
    journal_give_back(writer, 0);
    writer->wrote = false;
    uint64_t head = journal_ring_head(&journal->ring);
    if (journal_written(journal) < head) {
        journal_kick_writer(journal);
    }
    return head;
}

bool journal_commit(struct journal_writer *writer)
{
    struct journal *journal = writer->journal;
    journal_give_back(writer, 0);
    writer->wrote = false;
    uint64_t target = journal_ring_head(&journal->ring);
    if (journal_written(journal) >= target) {
        return !journal_failed(journal);
    }
    pthread_mutex_lock(&journal->write_lock);
    bool written = journal_write_through(journal, target);
    bool kick = journal_sync_is_needed(journal);
    pthread_mutex_unlock(&journal->write_lock);
    journal_tell_moved(journal);
    if (kick) {
        journal_kick(journal);
    }
    return written;
}

/* ---- figures ---- */

bool journal_failed(const struct journal *journal)
{
    return atomic_load_explicit(&journal->trouble, memory_order_acquire) == JOURNAL_FAILED;
}

uint64_t journal_head(const struct journal *journal)
{
    return journal_ring_head(&journal->ring);
}

uint64_t journal_written(const struct journal *journal)
{
    return atomic_load(&journal->written);
}

uint64_t journal_durable(const struct journal *journal)
{
    return atomic_load(&journal->durable);
}

void journal_listen(struct journal *journal, const struct journal_listener *listener)
{
    CHECK(journal->class == JOURNAL_CLASS && atomic_load(&journal->listener) == NULL);
    atomic_store(&journal->listener, listener);
}

void journal_tell_moved(struct journal *journal)
{
    const struct journal_listener *listener = atomic_load(&journal->listener);
    if (listener) {
        listener->moved(listener->context);
    }
}

void journal_count_segments(struct journal *journal)
{
    uint64_t count = 0;
    uint64_t bytes = journal->spare_fd >= 0 ? journal->segment_bytes : 0;
    for (const struct journal_segment *s = journal->first; s; s = s->next) {
        count++;
        bytes += s->header.bytes;
    }
    journal_count_open(journal);
    journal->segments = count;
    journal->segments_bytes = bytes;
    journal->oldest = journal->first->header.start;
}

void journal_stats(const struct journal *journal, struct journal_stats *stats)
{
    struct journal *locked = (struct journal *)(uintptr_t)journal; /* only its lock changes */
    CHECK(journal->class == JOURNAL_CLASS);
    memset(stats, 0, sizeof(*stats));
    stats->durable = journal_durable(journal);
    stats->written = journal_written(journal);
    uint64_t cleared = journal->cleared;
    stats->head = journal_head(journal);
    stats->buffer_used_bytes = stats->head - cleared;
    stats->segments = journal->segments;
    stats->segment_bytes = journal->segments_bytes;
    stats->oldest = journal->oldest;
    stats->records = journal->records;
    stats->writes = journal->writes;
    stats->syncs = journal->syncs;
    uint64_t since_us = journal->unsynced_since_us;
    if (since_us > 0) {
        uint64_t now_us = journal->vfs->functions->now_us(journal->vfs);
        stats->unsynced_us = now_us > since_us ? now_us - since_us : 0;
    }
    stats->reserve_failures = atomic_load(&journal->reserve_failures);
    stats->full = journal_is_full(journal);
    stats->failed = journal_failed(journal);
    pthread_mutex_lock(&locked->state_lock);
    snprintf(stats->error, sizeof(stats->error), "%s", journal->error);
    pthread_mutex_unlock(&locked->state_lock);
}
