/* journal_segment.c: the journal's files while it is open. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/check.h"
#include "store/journal_chain.h"
#include "store/journal_private.h"

bool journal_unlink(struct journal *journal, const char *name)
{
    return vfs_unlink_in(journal->vfs, journal->directory, name) == 0 || errno == ENOENT;
}

/* Gives up a file that has not got its name yet. */
static void journal_segment_drop(struct journal *journal, int fd, const char *temporary)
{
    int error = errno;
    journal->vfs->functions->close(journal->vfs, fd);
    journal_unlink(journal, temporary);
    errno = error;
}

int journal_segment_make(struct journal *journal, const char *temporary, uint64_t bytes)
{
    const struct vfs_functions *file = journal->vfs->functions;
    char path[VFS_PATH_MAX];
    if (!vfs_path(path, journal->directory, temporary)) {
        return -1;
    }
    /* Always a new file: no old byte of it can come back after a power cut. */
    file->unlink(journal->vfs, path);
    int fd = file->open(journal->vfs, path, O_RDWR | O_CREAT | O_EXCL);
    if (fd < 0) {
        return -1;
    }
    if (file->allocate(journal->vfs, fd, bytes) != 0 || file->fdatasync(journal->vfs, fd) != 0) {
        journal_segment_drop(journal, fd, temporary);
        return -1;
    }
    return fd;
}

static bool rename_to(struct journal *journal, const char *temporary, uint64_t start)
{
    char from[VFS_PATH_MAX];
    char to[VFS_PATH_MAX];
    char name[JOURNAL_NAME_MAX];
    journal_name(name, start);
    return vfs_path(from, journal->directory, temporary) &&
           vfs_path(to, journal->directory, name) &&
           journal->vfs->functions->rename(journal->vfs, from, to) == 0;
}

static bool write_header(struct journal *journal, int fd, const struct journal_header *header)
{
    _Alignas(uint64_t) unsigned char page[JOURNAL_PAGE_BYTES];
    journal_page_encode(header, page);
    return vfs_write_all(journal->vfs, fd, page, sizeof(page), 0);
}

static struct journal_segment *segment_create(int fd, const struct journal_header *header)
{
    struct journal_segment *segment = memory_zalloc(sizeof(*segment));
    *segment = (struct journal_segment){.header = *header, .end = journal_end_of(header), .fd = fd};
    return segment;
}

struct journal_segment *journal_segment_begin(struct journal *journal, int fd,
                                              const char *temporary,
                                              const struct journal_header *header, bool durable)
{
    if (!write_header(journal, fd, header) ||
        (durable && journal->vfs->functions->fdatasync(journal->vfs, fd) != 0) ||
        !rename_to(journal, temporary, header->start)) {
        journal_segment_drop(journal, fd, temporary);
        return NULL;
    }
    journal->names_changed = true;
    return segment_create(fd, header);
}

void journal_segment_free(struct journal *journal, struct journal_segment *segment)
{
    vfs_close(journal->vfs, segment->fd);
    free(segment);
}

/* Begins the next segment in the spare file; if there is none, or it fails, in a new file. */
static struct journal_segment *begin_next(struct journal *journal,
                                          const struct journal_header *header)
{
    int fd = journal->spare_fd;
    journal->spare_fd = -1;
    struct journal_segment *next = NULL;
    if (fd >= 0) {
        next = journal_segment_begin(journal, fd, JOURNAL_SPARE_NAME, header, false);
    }
    if (!next) {
        fd = journal_segment_make(journal, JOURNAL_SPARE_NAME, journal->segment_bytes);
        next =
            fd < 0 ? NULL : journal_segment_begin(journal, fd, JOURNAL_SPARE_NAME, header, false);
    }
    return next;
}

bool journal_segment_next(struct journal *journal)
{
    struct journal_segment *last = journal->current;
    CHECK(journal->run.end == last->end);
    struct journal_header header = {
        .epoch = journal->epoch,
        .number = journal->number + 1,
        .start = last->end,
        .bytes = journal->segment_bytes,
        .durable = atomic_load(&journal->durable),
        .boot = journal->boot,
        .previous = {.number = last->header.number,
                     .start = last->header.start,
                     .sum = journal->run.sum},
    };
    struct journal_segment *next = begin_next(journal, &header);
    if (!next) {
        journal_count_segments(journal); /* the spare is gone */
        return false;
    }
    journal->number++;
    last->next = next;
    journal->current = next;
    journal->run.sum = 0;
    journal->asked = journal->sent = header.start;
    journal_count_segments(journal);
    journal_set_limit(journal);
    return true;
}

bool journal_segment_write(struct journal *journal, int fd, const struct journal_header *header,
                           uint64_t from, uint64_t until)
{
    while (from < until) {
        uint64_t bytes = until - from;
        const void *at = journal_ring_at(&journal->ring, from, &bytes);
        if (!vfs_write_all(journal->vfs, fd, at, bytes, journal_offset_of(header, from))) {
            return false;
        }
        from += bytes;
    }
    return true;
}

/* ---- writing again ---- */

/* The last segment that begins below lsn; NULL: none. */
static struct journal_segment *segment_before(struct journal *journal, uint64_t lsn)
{
    struct journal_segment *before = NULL;
    for (struct journal_segment *s = journal->first; s && s->header.start < lsn; s = s->next) {
        before = s;
    }
    return before;
}

/* What a segment that begins at `from` follows: it takes over the link of the one it replaces. */
static struct journal_link link_at(struct journal *journal, struct journal_segment *before,
                                   uint64_t from, uint64_t sum)
{
    struct journal_segment *replaced = before ? before->next : journal->first;
    if (replaced && replaced->header.start == from) {
        return replaced->header.previous;
    }
    CHECK(before);
    return (struct journal_link){
        .number = before->header.number, .start = before->header.start, .sum = sum};
}

/* A file with header and records, durable and in place. NULL with errno: nothing is changed. */
static struct journal_segment *journal_segment_write_again(struct journal *journal,
                                                           const struct journal_header *header,
                                                           uint64_t *sum)
{
    const struct vfs_functions *file = journal->vfs->functions;
    struct journal_run run = {.end = header->start};
    journal_ring_walk(&journal->ring, &run, journal->run.end);
    CHECK(run.end == journal->run.end);
    *sum = run.sum;
    int fd = journal_segment_make(journal, JOURNAL_AGAIN_NAME, header->bytes);
    if (fd < 0) {
        return NULL;
    }
    if (!write_header(journal, fd, header) ||
        !journal_segment_write(journal, fd, header, header->start, run.end) ||
        file->fdatasync(journal->vfs, fd) != 0 ||
        !rename_to(journal, JOURNAL_AGAIN_NAME, header->start)) {
        journal_segment_drop(journal, fd, JOURNAL_AGAIN_NAME);
        return NULL;
    }
    if (file->sync_dir(journal->vfs, journal->directory) != 0) {
        /* The file may be there after a power cut or not: the stream is the same either way. */
        vfs_close(journal->vfs, fd);
        return NULL;
    }
    return segment_create(fd, header);
}

/* What a new segment replaced: one was overwritten by its name, the others are deleted before the
 * next trim. */
static void bury(struct journal *journal, struct journal_segment *dead, uint64_t overwritten)
{
    while (dead) {
        struct journal_segment *next = dead->next;
        if (dead->header.start == overwritten) {
            journal_segment_free(journal, dead);
        } else {
            journal->vfs->functions->close(journal->vfs, dead->fd);
            dead->fd = -1;
            dead->next = journal->dead;
            journal->dead = dead;
        }
        dead = next;
    }
}

/* The list ends with `again` after `before`; what it replaced is gone. */
static void replace_by(struct journal *journal, struct journal_segment *before,
                       struct journal_segment *again)
{
    struct journal_segment *dead = before ? before->next : journal->first;
    if (before) {
        before->end = again->header.start;
        before->next = again;
    } else {
        journal->first = again;
    }
    bury(journal, dead, again->header.start);
    journal->current = again;
}

/* After a failed sync, by the sync thread: all below `again` is durable, and so is that. */
static void only_again_is_open(struct journal *journal, struct journal_segment *before)
{
    if (before && before->fd >= 0) {
        journal_segment_mark(journal, before, before->end, true);
        journal->vfs->functions->close(journal->vfs, before->fd);
        before->fd = -1;
    }
    journal->unsynced = journal->current;
}

bool journal_segment_again(struct journal *journal, bool after_sync)
{
    uint64_t from = after_sync ? atomic_load(&journal->durable) : journal->run.end;
    uint64_t sum = after_sync ? journal->durable_sum : journal->run.sum;
    struct journal_segment *before = segment_before(journal, from);
    CHECK(from < journal->current->end && (after_sync || from > journal->current->header.start));
    struct journal_header header = {
        .epoch = journal->epoch,
        .number = journal->number + 1,
        .start = from,
        .bytes = JOURNAL_PAGE_BYTES + journal->current->end - from,
        .durable = atomic_load(&journal->durable),
        .boot = journal->boot,
        .previous = link_at(journal, before, from, sum),
    };
    uint64_t new_sum;
    struct journal_segment *again = journal_segment_write_again(journal, &header, &new_sum);
    if (!again) {
        return false;
    }
    journal->number++;
    journal->run.sum = new_sum;
    journal->asked = journal->sent = journal->run.end;
    journal->names_changed = false;
    replace_by(journal, before, again);
    if (after_sync) {
        only_again_is_open(journal, before);
    }
    journal_count_segments(journal);
    return true;
}

/* ---- marks ---- */

bool journal_segment_mark(struct journal *journal, struct journal_segment *segment,
                          uint64_t durable, bool sealed)
{
    unsigned char bytes[JOURNAL_MARK_BYTES];
    struct journal_mark mark = {.durable = durable,
                                .written = sealed ? durable : journal_written(journal),
                                .serial = ++segment->mark_serial,
                                .sealed = sealed};
    uint64_t offset = journal_mark_encode(&segment->header, &mark, bytes);
    return vfs_write_all(journal->vfs, segment->fd, bytes, sizeof(bytes), offset) &&
           (!sealed || journal->vfs->functions->fdatasync(journal->vfs, segment->fd) == 0);
}

/* Reads the header page of a segment that is not open, so that it can be marked; its start is in
 * found. False: it is not sound, or cannot be read. */
static bool segment_take(struct journal *journal, int fd, struct journal_found *found,
                         struct journal_segment *segment)
{
    if (journal_page_read(journal->vfs, fd, found) != 0 || found->state != JOURNAL_PAGE_SOUND) {
        return false;
    }
    *segment = (struct journal_segment){
        .header = found->header, .mark_serial = found->mark.serial, .fd = fd};
    return true;
}

void journal_segment_seal(struct journal *journal, const char *name, uint64_t end)
{
    const struct vfs_functions *file = journal->vfs->functions;
    struct journal_found found = {0};
    int fd = journal_name_parse(name, &found.name_start)
                 ? vfs_open_in(journal->vfs, journal->directory, name, O_RDWR)
                 : -1;
    if (fd < 0) {
        return;
    }
    struct journal_segment segment;
    if (segment_take(journal, fd, &found, &segment) &&
        (!found.mark.sealed || found.mark.durable > end)) {
        journal_segment_mark(journal, &segment, end, true);
    }
    file->close(journal->vfs, fd);
}

void journal_segment_shorten(struct journal *journal, int fd, uint64_t start, uint64_t end)
{
    const struct vfs_functions *file = journal->vfs->functions;
    struct journal_found found = {.name_start = start};
    struct journal_segment segment;
    if (!segment_take(journal, fd, &found, &segment) || found.mark.durable > end) {
        return; /* until a start has cut it, what it was marked with is missed */
    }
    uint64_t used = journal_offset_of(&found.header, end);
    bool told = found.mark.durable == end || journal_segment_mark(journal, &segment, end, false);
    if (told && file->fdatasync(journal->vfs, fd) == 0 && found.size > used) {
        file->truncate(journal->vfs, fd, used);
    }
}

/* ---- deleting ---- */

/* The list that the next one to delete heads: the dead, else the stream, if its oldest is sealed
 * and ends at or below lsn. NULL: nothing is to be deleted. */
static struct journal_segment **list_to_trim(struct journal *journal, uint64_t lsn)
{
    const struct journal_segment *oldest = journal->first;
    if (journal->dead) {
        return &journal->dead;
    }
    bool kept = oldest == journal->current || oldest->fd >= 0 || oldest->end > lsn;
    return kept ? NULL : &journal->first;
}

static struct journal_segment *journal_segment_take_out(struct journal *journal, uint64_t lsn,
                                                        struct journal_segment ***list)
{
    struct journal_segment *taken = NULL;
    pthread_mutex_lock(&journal->write_lock);
    *list = list_to_trim(journal, lsn);
    if (*list) {
        taken = **list;
        **list = taken->next;
        journal_count_segments(journal);
    }
    pthread_mutex_unlock(&journal->write_lock);
    return taken;
}

static void put_back(struct journal *journal, struct journal_segment **list,
                     struct journal_segment *taken)
{
    pthread_mutex_lock(&journal->write_lock);
    taken->next = *list;
    *list = taken;
    journal_count_segments(journal);
    pthread_mutex_unlock(&journal->write_lock);
}

/* The directory is synced after each, so that a power cut leaves no gap. Dead ones first: without
 * the segment that ended them they would be taken for part of the stream. */
static bool delete_file(struct journal *journal, uint64_t start)
{
    char name[JOURNAL_NAME_MAX];
    journal_name(name, start);
    return journal_unlink(journal, name) &&
           journal->vfs->functions->sync_dir(journal->vfs, journal->directory) == 0;
}

bool journal_trim(struct journal *journal, uint64_t lsn)
{
    CHECK(journal->class == JOURNAL_CLASS);
    struct journal_segment **list;
    struct journal_segment *taken;
    int error = 0;
    pthread_mutex_lock(&journal->trim_lock);
    journal_await_closed(journal, lsn);
    while (error == 0 && (taken = journal_segment_take_out(journal, lsn, &list))) {
        if (delete_file(journal, taken->header.start)) {
            journal_segment_free(journal, taken);
        } else {
            error = errno;
            put_back(journal, list, taken);
        }
    }
    pthread_mutex_unlock(&journal->trim_lock);
    errno = error;
    return error == 0;
}
