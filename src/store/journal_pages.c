/*
 * journal_pages.c: what the system keeps in memory of the current file: the pages that are written
 * next are there before, and those that were written are on their way to the disk.
 *
 * A write into a page that is in memory copies; into another the system has to find one first, and
 * under a hypervisor that one may have to come from the host: twice to three times as long, in the
 * turn of the writer. So the sync thread asks for the pages ahead of that. The file is allocated
 * and nothing is there yet, so as a rule no disk is asked, and the pages are clean: the system may
 * have them back. And what is sent out before a sync it need not wait for; that is not for whoever
 * writes either: it waits when the disk has its hands full.
 *
 * All of it is advice: where it fails the writing, or the sync, is only slower. It comes when there
 * is nothing else to do, so not during a sync: one that takes longer than the pages ahead last has
 * writers find the others themselves, and what they write meanwhile is the next sync's.
 */
#include "store/journal_private.h"

#define AHEAD_BYTES      (16u << 20)  /* a fifth of a second at 3 million changes a second */
#define AHEAD_PIECE      (128u << 10) /* at a time: of more Linux may leave the rest out, unsaid */
#define BEHIND_BYTES_MIN (1u << 20)   /* fewer are not sent out by themselves */

struct range {
    uint64_t from, until; /* equal: nothing */
};

struct pages {
    struct journal_header header;
    int fd;
    struct range ahead, behind;
};

/* Under the write lock. A piece at a time, whole ones but for the file's last. */
static struct range find_ahead(const struct journal *journal)
{
    uint64_t written = journal->run.end;
    uint64_t end = journal->current->end;
    uint64_t from = journal->asked > written ? journal->asked : written;
    uint64_t until = from + AHEAD_PIECE < end ? from + AHEAD_PIECE : end;
    bool due = from < end && until <= written + AHEAD_BYTES;
    return (struct range){from, due ? until : from};
}

static struct range find_behind(const struct journal *journal)
{
    uint64_t written = journal->run.end;
    bool due = written - journal->sent >= BEHIND_BYTES_MIN;
    return (struct range){journal->sent, due ? written : journal->sent};
}

static bool is_empty(const struct range *range)
{
    return range->from == range->until;
}

bool journal_pages_are_due(const struct journal *journal)
{
    struct range ahead = find_ahead(journal);
    struct range behind = find_behind(journal);
    return !is_empty(&ahead) || !is_empty(&behind);
}

static struct pages journal_pages_take(struct journal *journal)
{
    pthread_mutex_lock(&journal->write_lock);
    struct pages pages = {.header = journal->current->header,
                          .fd = journal->current->fd,
                          .ahead = find_ahead(journal),
                          .behind = find_behind(journal)};
    journal->asked = pages.ahead.until;
    journal->sent = pages.behind.until;
    pthread_mutex_unlock(&journal->write_lock);
    return pages;
}

/* Only this thread closes files of the stream: what was current stays open meanwhile. */
bool journal_pages(struct journal *journal)
{
    const struct vfs_functions *file = journal->vfs->functions;
    struct pages pages = journal_pages_take(journal);
    if (!is_empty(&pages.behind)) {
        file->writeback(journal->vfs, pages.fd, journal_offset_of(&pages.header, pages.behind.from),
                        pages.behind.until - pages.behind.from);
    }
    if (!is_empty(&pages.ahead)) {
        file->readahead(journal->vfs, pages.fd, journal_offset_of(&pages.header, pages.ahead.from),
                        pages.ahead.until - pages.ahead.from);
    }
    return !is_empty(&pages.behind) || !is_empty(&pages.ahead);
}
