/*
 * journal_warm.c: the pages of the current file that are written next are in memory before.
 *
 * A write into a page that the system has in memory copies; into another it has to find one first,
 * and under a hypervisor that one may have to come from the host: twice to three times as long, in
 * the turn of whoever writes. So the sync thread asks for the pages ahead of that. The file is
 * allocated and nothing is there yet, so as a rule no disk is asked, and the pages are clean: the
 * system may have them back. It is advice, and where it fails the writing is only slower.
 */
#include "store/journal_private.h"

#define WARM_AHEAD_BYTES (16u << 20)  /* a fifth of a second at 3 million changes a second */
#define WARM_PIECE_BYTES (256u << 10) /* at a time: whoever shares its core is held up for less */

struct piece {
    struct journal_header header;
    uint64_t from, until;
    int fd;
};

static uint64_t end_of_piece(const struct journal *journal, uint64_t from)
{
    uint64_t until = from + WARM_PIECE_BYTES;
    uint64_t end = journal->current->end;
    return until < end ? until : end;
}

/* Where the next piece begins; false: it is not its turn. Under the write lock. */
static bool is_due(const struct journal *journal, uint64_t *from)
{
    uint64_t written = journal->run.end;
    uint64_t warmed = atomic_load_explicit(&journal->warmed, memory_order_relaxed);
    *from = warmed > written ? warmed : written;
    return *from < journal->current->end &&
           end_of_piece(journal, *from) <= written + WARM_AHEAD_BYTES;
}

bool journal_warm_is_due(const struct journal *journal)
{
    uint64_t from;
    return is_due(journal, &from);
}

/* Only this thread seals, so the file stays open. */
bool journal_warm(struct journal *journal)
{
    struct piece piece;
    pthread_mutex_lock(&journal->write_lock);
    bool due = is_due(journal, &piece.from);
    piece.header = journal->current->header;
    piece.until = end_of_piece(journal, piece.from);
    piece.fd = journal->current->fd;
    pthread_mutex_unlock(&journal->write_lock);
    if (due) {
        (void)journal->vfs->functions->readahead(journal->vfs, piece.fd,
                                                 journal_offset_of(&piece.header, piece.from),
                                                 piece.until - piece.from);
        atomic_store(&journal->warmed, piece.until);
    }
    return due;
}
