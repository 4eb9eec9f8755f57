/*
 * journal_warm.c: the pages of the current file that are written next are in memory before.
 *
 * A write into a page that the system has in memory copies; into another it has to find one first,
 * and under a hypervisor that one may have to come from the host: three times as long, in the turn
 * of whoever writes. So while much is written the sync thread reads ahead of that. The file is
 * allocated and nothing is there yet, so as a rule no disk is asked, and the pages are clean. What
 * is read is of no interest, and what fails is only slower.
 */
#include "store/journal_private.h"

#define WARM_FROM_BYTES  (8u << 20) /* written in a second: less is no matter */
#define WARM_AHEAD_BYTES (16u << 20)
#define WARM_PIECE_BYTES (256u << 10) /* at a time: whoever shares its core is held up for less */
#define WARM_READ_BYTES  (64u << 10)

/* Is much written? Once a second. */
static void look_again(struct journal *journal, uint64_t now_us)
{
    uint64_t written = journal_written(journal);
    if (now_us - journal->warm_seen_us < JOURNAL_SECOND_US) {
        return;
    }
    bool busy = written - journal->warm_seen >= WARM_FROM_BYTES;
    uint64_t warmed = atomic_load(&journal->warmed);
    journal->warm_seen = written;
    journal->warm_seen_us = now_us;
    if (!busy || warmed == JOURNAL_NOT_WARMED) {
        atomic_store(&journal->warmed, busy ? written : JOURNAL_NOT_WARMED);
    }
}

/* What is to be warmed next; from == until: nothing. Only this thread seals, so the file stays. */
struct range {
    struct journal_header header;
    uint64_t from, until;
    int fd;
};

static void find_range(struct journal *journal, struct range *range)
{
    pthread_mutex_lock(&journal->write_lock);
    const struct journal_segment *current = journal->current;
    uint64_t warmed = atomic_load(&journal->warmed);
    uint64_t end = journal->run.end + WARM_AHEAD_BYTES;
    range->header = current->header;
    range->fd = current->fd;
    range->from = warmed > journal->run.end ? warmed : journal->run.end;
    range->until = end < current->end ? end : current->end;
    pthread_mutex_unlock(&journal->write_lock);
    if (warmed == JOURNAL_NOT_WARMED || range->from > range->until) {
        range->until = range->from;
    }
}

bool journal_warm_is_due(struct journal *journal, uint64_t now_us)
{
    struct range range;
    look_again(journal, now_us);
    find_range(journal, &range);
    return range.from < range.until;
}

void journal_warm(struct journal *journal)
{
    char unread[WARM_READ_BYTES];
    struct range range;
    find_range(journal, &range);
    uint64_t piece = range.from + WARM_PIECE_BYTES;
    uint64_t until = piece < range.until ? piece : range.until;
    bool sound = true;
    for (uint64_t at = range.from; at < until && sound; at += WARM_READ_BYTES) {
        uint64_t bytes = until - at < WARM_READ_BYTES ? until - at : WARM_READ_BYTES;
        uint64_t offset = journal_offset_of(&range.header, at);
        sound = journal->vfs->functions->pread(journal->vfs, range.fd, unread, bytes, offset) >= 0;
    }
    atomic_store(&journal->warmed, sound ? until : range.until); /* not again and again */
}

bool journal_warm_is_low(const struct journal *journal)
{
    uint64_t warmed = atomic_load_explicit(&journal->warmed, memory_order_relaxed);
    return warmed < journal->current->end &&
           warmed < journal->run.end + WARM_AHEAD_BYTES - WARM_PIECE_BYTES;
}
