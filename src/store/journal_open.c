/* journal_open.c: taking over the directory that recovery has read, and leaving it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/thread.h"
#include "store/journal_chain.h"
#include "store/journal_private.h"

static void journal_open_say(char error[JOURNAL_ERROR_MAX], const char *directory, const char *name,
                             const char *doing)
{
    snprintf(error, JOURNAL_ERROR_MAX, "%s/%s: %s: %s", directory, name, doing, strerror(errno));
}

/* ---- what is there is made durable ---- */

/*
 * Writes the same bytes once more. After a failed sync in the process before, what is read may be
 * clean in the system's memory and not on the disk: no fdatasync would write it.
 */
static bool rewrite(struct vfs *vfs, int fd, uint64_t from, uint64_t until)
{
    char *bytes = memory_zalloc(JOURNAL_WRITE_BYTES);
    bool done = true;
    while (done && from < until) {
        uint64_t piece = until - from < JOURNAL_WRITE_BYTES ? until - from : JOURNAL_WRITE_BYTES;
        ssize_t got = vfs_read_all(vfs, fd, bytes, piece, from);
        if (got >= 0 && (uint64_t)got < piece) {
            errno = EIO; /* the scan has read it a moment ago */
            got = -1;
        }
        done = got >= 0 && vfs_write_all(vfs, fd, bytes, piece, from);
        from += piece;
    }
    free(bytes);
    return done;
}

static bool settle_segment(const struct journal_config *config, const struct journal_found *found,
                           uint64_t durable, uint64_t end)
{
    struct vfs *vfs = config->vfs;
    int fd = vfs_open_in(vfs, config->directory, found->name, O_RDWR);
    if (fd < 0) {
        return false;
    }
    uint64_t from = durable > found->header.start ? durable : found->header.start;
    bool settled = rewrite(vfs, fd, 0, JOURNAL_PAGE_BYTES) &&
                   rewrite(vfs, fd, journal_offset_of(&found->header, from),
                           journal_offset_of(&found->header, end)) &&
                   vfs->functions->fdatasync(vfs, fd) == 0;
    vfs_close(vfs, fd);
    return settled;
}

static uint64_t end_below(const struct journal_found *found, uint64_t lsn)
{
    return found->end < lsn ? found->end : lsn;
}

/* Makes all of the stream below start_lsn durable, and its names. */
static bool settle(const struct journal_config *config, const struct journal_chain *chain,
                   char error[JOURNAL_ERROR_MAX])
{
    for (size_t i = 0; i < chain->live_count; i++) {
        const struct journal_found *live = chain->live[i];
        uint64_t end = end_below(live, config->start_lsn);
        if (live->header.start < config->start_lsn && end > chain->durable &&
            !settle_segment(config, live, chain->durable, end)) {
            journal_open_say(error, config->directory, live->name, "cannot make durable");
            return false;
        }
    }
    if (config->vfs->functions->sync_dir(config->vfs, config->directory) != 0) {
        journal_open_say(error, config->directory, ".", "cannot make durable");
        return false;
    }
    return true;
}

/* ---- the list of segments and the new one ---- */

/* Segments below start_lsn, and what the new one follows. False: they do not reach it. */
static bool journal_open_take_over(struct journal *journal, const struct journal_config *config,
                                   const struct journal_chain *chain, struct journal_link *link,
                                   char error[JOURNAL_ERROR_MAX])
{
    struct journal_segment **tail = &journal->first;
    const struct journal_found *last = NULL;
    for (size_t i = 0; i < chain->live_count; i++) {
        const struct journal_found *live = chain->live[i];
        if (live->header.start == config->start_lsn) {
            *link = live->header.previous; /* it held nothing and is replaced */
            return true;
        }
        if (live->header.start > config->start_lsn) {
            break;
        }
        struct journal_segment *segment = memory_zalloc(sizeof(*segment));
        *segment = (struct journal_segment){
            .header = live->header, .end = end_below(live, config->start_lsn), .fd = -1};
        *tail = segment;
        tail = &segment->next;
        last = live;
        *link = (struct journal_link){
            .number = live->header.number, .start = live->header.start, .sum = config->sum};
    }
    if (last && last->end < config->start_lsn) {
        snprintf(error, JOURNAL_ERROR_MAX,
                 "%s/%s: ends below LSN %llu where the journal is to go on", config->directory,
                 last->name, (unsigned long long)config->start_lsn);
        return false;
    }
    return true;
}

/* Cuts the room after the end of the last segment, if it has some: nothing comes there any more. */
static void cut_previous(struct journal *journal, const struct journal_link *link)
{
    const struct journal_segment *last = journal->first;
    char name[JOURNAL_NAME_MAX];
    while (last && last->header.number != link->number) {
        last = last->next;
    }
    if (!last) {
        return;
    }
    journal_name(name, last->header.start);
    int fd = vfs_open_in(journal->vfs, journal->directory, name, O_RDWR);
    if (fd >= 0) {
        journal_segment_shorten(journal, fd, last->header.start, last->end);
        journal->vfs->functions->close(journal->vfs, fd);
    }
}

/* Of a first segment on a full disk. */
static uint64_t small_bytes(uint64_t segment_bytes, uint64_t buffer_bytes)
{
    uint64_t small =
        JOURNAL_SMALL_BYTES + journal_ring_margin(buffer_bytes, segment_bytes - JOURNAL_PAGE_BYTES);
    small += JOURNAL_PAGE_BYTES - small % JOURNAL_PAGE_BYTES;
    return small < segment_bytes ? small : segment_bytes;
}

uint64_t journal_start_bytes(uint64_t segment_bytes, uint64_t buffer_bytes)
{
    return small_bytes(segment_bytes, buffer_bytes) + JOURNAL_PAGE_BYTES; /* for its name */
}

/* Makes the first segment; on a full disk a small one, in the ballast's room. */
static int make_first(struct journal *journal, const struct journal_link *link,
                      struct journal_header *header)
{
    int fd = journal_segment_make(journal, JOURNAL_SPARE_NAME, header->bytes);
    uint64_t small = small_bytes(journal->segment_bytes, journal->ring.bytes);
    if (fd >= 0 || (errno != ENOSPC && errno != EDQUOT) || small >= header->bytes) {
        return fd;
    }
    journal_unlink(journal, JOURNAL_AGAIN_NAME); /* as large as a segment; it never counts */
    cut_previous(journal, link);
    journal_ballast_give(journal->vfs, journal->directory, small + JOURNAL_PAGE_BYTES);
    header->bytes = small;
    journal_ring_first(&journal->ring, small - JOURNAL_PAGE_BYTES);
    return journal_segment_make(journal, JOURNAL_SPARE_NAME, small);
}

/* Durable before anything is put into it. */
static bool begin_first(struct journal *journal, const struct journal_config *config,
                        const struct journal_link *link, char error[JOURNAL_ERROR_MAX])
{
    const struct vfs_functions *file = journal->vfs->functions;
    struct journal_header header = {
        .epoch = journal->epoch,
        .number = journal->number,
        .start = config->start_lsn,
        .bytes = journal->segment_bytes,
        .durable = config->start_lsn,
        .boot = journal->boot,
        .previous = *link,
    };
    int fd = make_first(journal, link, &header);
    journal->current =
        fd < 0 ? NULL : journal_segment_begin(journal, fd, JOURNAL_SPARE_NAME, &header, true);
    if (!journal->current || file->sync_dir(journal->vfs, journal->directory) != 0) {
        char name[JOURNAL_NAME_MAX];
        journal_name(name, header.start);
        journal_open_say(error, config->directory, name, "cannot make the first segment");
        return false;
    }
    journal->names_changed = false;
    journal->unsynced = journal->current;
    return true;
}

/* The segment before knows of its successor from now on. */
static void seal_previous(struct journal *journal)
{
    const struct journal_header *header = &journal->current->header;
    if (header->previous.number > 0) {
        char name[JOURNAL_NAME_MAX];
        journal_name(name, header->previous.start);
        journal_segment_seal(journal, name, header->start);
    }
}

/* Whether a segment that is there is no part of the stream, which ends at start_lsn. An unsound one
 * that no live one covers is left alone: it may be a damaged part. */
static bool is_dead(const struct journal_chain *chain, const struct journal_found *found,
                    uint64_t start_lsn)
{
    bool covered = found->name_start > start_lsn || found->state == JOURNAL_PAGE_SOUND;
    for (size_t i = 0; i < chain->live_count; i++) {
        const struct journal_found *live = chain->live[i];
        if (live == found) {
            return found->name_start > start_lsn;
        }
        covered |= live->header.start < found->name_start && found->name_start < live->end;
    }
    return covered && found->name_start != start_lsn;
}

/*
 * What was cut off, and what was dead already, goes, for good: when one day the segment that ended
 * them is deleted they would be taken for part of the stream.
 */
static bool delete_dead(struct journal *journal, const struct journal_chain *chain,
                        char error[JOURNAL_ERROR_MAX])
{
    uint64_t start_lsn = journal->current->header.start;
    for (size_t i = 0; i < chain->count; i++) {
        const struct journal_found *found = &chain->found[i];
        if (is_dead(chain, found, start_lsn) && !journal_unlink(journal, found->name)) {
            journal_open_say(error, journal->directory, found->name,
                             "cannot delete what was cut off");
            return false;
        }
    }
    journal_unlink(journal, JOURNAL_AGAIN_NAME);
    if (journal->vfs->functions->sync_dir(journal->vfs, journal->directory) != 0) {
        journal_open_say(error, journal->directory, ".", "cannot make durable");
        return false;
    }
    return true;
}

/* ---- open ---- */

static void check_config(const struct journal_config *config)
{
    CHECK(config->segment_bytes >= JOURNAL_SEGMENT_BYTES_MIN);
    CHECK(config->segment_bytes <= JOURNAL_SEGMENT_BYTES_MAX);
    CHECK(config->segment_bytes % JOURNAL_PAGE_BYTES == 0);
    CHECK(config->buffer_bytes >= JOURNAL_BUFFER_BYTES_MIN);
    CHECK(config->buffer_bytes <= JOURNAL_BUFFER_BYTES_MAX);
    CHECK(config->start_lsn % JOURNAL_UNIT == 0);
}

static void init_conditions(struct journal *journal)
{
    thread_cond_init(&journal->work);
    thread_cond_init(&journal->roomy);
    pthread_cond_init(&journal->done, NULL);
    kick_init(&journal->writer_kick);
}

static struct journal *journal_open_create(const struct journal_config *config)
{
    struct journal *journal = aligned_alloc(MEMORY_LINE_BYTES, sizeof(*journal));
    if (!journal) {
        return NULL;
    }
    memset(journal, 0, sizeof(*journal));
    journal->class = JOURNAL_CLASS;
    journal->vfs = config->vfs;
    journal->directory = memory_strdup(config->directory);
    journal->sync = config->sync;
    journal->follows = config->follows;
    journal->epoch = config->epoch;
    journal->boot = config->vfs->functions->boot(config->vfs);
    journal->segment_bytes = config->segment_bytes;
    journal->spare_fd = -1;
    journal->run.end = config->start_lsn;
    journal->cleared = config->start_lsn;
    journal->asked = config->start_lsn;
    journal->sent = config->start_lsn;
    atomic_init(&journal->written, config->start_lsn);
    atomic_init(&journal->durable, config->start_lsn);
    pthread_mutex_init(&journal->write_lock, NULL);
    pthread_mutex_init(&journal->state_lock, NULL);
    init_conditions(journal);
    pthread_mutex_init(&journal->trim_lock, NULL);
    return journal;
}

static void free_list(struct journal *journal, struct journal_segment *list)
{
    while (list) {
        struct journal_segment *next = list->next;
        journal_segment_free(journal, list);
        list = next;
    }
}

static void journal_open_destroy(struct journal *journal)
{
    free_list(journal, journal->first);
    free_list(journal, journal->dead);
    if (journal->spare_fd >= 0) {
        journal->vfs->functions->close(journal->vfs, journal->spare_fd);
        journal_unlink(journal, JOURNAL_SPARE_NAME);
    }
    journal_ring_fini(&journal->ring);
    pthread_mutex_destroy(&journal->trim_lock);
    pthread_mutex_destroy(&journal->state_lock);
    pthread_cond_destroy(&journal->work);
    pthread_cond_destroy(&journal->roomy);
    pthread_cond_destroy(&journal->done);
    pthread_mutex_destroy(&journal->write_lock);
    free(journal->directory);
    free(journal);
}

/* The new segment comes after those that are there. */
static void append_current(struct journal *journal)
{
    struct journal_segment **tail = &journal->first;
    while (*tail) {
        tail = &(*tail)->next;
    }
    *tail = journal->current;
}

static bool journal_open_begin(struct journal *journal, const struct journal_config *config,
                               const struct journal_chain *chain, char error[JOURNAL_ERROR_MAX])
{
    struct journal_link link = {0};
    journal->number = chain->number + 1;
    if (!journal_open_take_over(journal, config, chain, &link, error) ||
        !settle(config, chain, error)) {
        return false;
    }
    bool begun = begin_first(journal, config, &link, error);
    if (journal->current) {
        append_current(journal);
    }
    if (!begun) {
        return false;
    }
    seal_previous(journal);
    journal_count_segments(journal);
    journal_set_limit(journal);
    return delete_dead(journal, chain, error);
}

static bool start_threads(struct journal *journal)
{
    if (!journal_sync_start(journal)) {
        return false;
    }
    bool started = journal_writer_start(journal);
    if (!started) {
        int error = errno;
        journal_sync_stop(journal);
        errno = error;
    }
    return started;
}

struct journal *journal_open(const struct journal_config *config, char error[JOURNAL_ERROR_MAX])
{
    check_config(config);
    struct journal_chain chain;
    error[0] = '\0';
    struct journal *journal = journal_open_create(config);
    if (!journal || !journal_ring_init(&journal->ring, config->buffer_bytes, config->start_lsn,
                                       config->segment_bytes - JOURNAL_PAGE_BYTES)) {
        journal_open_say(error, config->directory, "journal", "no memory for its buffer");
        goto fail;
    }
    if (!journal_chain_init(&chain, config->vfs, config->directory, error) ||
        !journal_open_begin(journal, config, &chain, error)) {
        goto fail_chain;
    }
    if (!start_threads(journal)) {
        journal_open_say(error, config->directory, "journal", "no thread");
        goto fail_chain;
    }
    journal_chain_fini(&chain);
    return journal;

fail_chain:
    journal_chain_fini(&chain);
fail:
    if (journal) {
        journal_open_destroy(journal);
    }
    return NULL;
}

/* ---- close ---- */

/* The margin of the ring's limit has its room. False: the journal is in trouble. */
static bool write_clean_end(struct journal *journal)
{
    if (atomic_load(&journal->trouble) != JOURNAL_NO_TROUBLE) {
        return false;
    }
    uint64_t epoch = journal->epoch;
    if (!journal->follows) {
        journal_ring_put(&journal->ring, JOURNAL_CLOSED, 0, 0, &epoch, 1);
    }
    pthread_mutex_lock(&journal->write_lock);
    bool written = journal_write_through(journal, journal_ring_head(&journal->ring));
    pthread_mutex_unlock(&journal->write_lock);
    return written && journal_sync_now(journal);
}

/* Nothing comes into this segment any more: its room goes back, the last mark becomes durable. If
 * one of it fails nothing is lost but that. */
static void leave_segment(struct journal *journal)
{
    const struct journal_segment *current = journal->current;
    journal_segment_shorten(journal, current->fd, current->header.start, journal->run.end);
}

void journal_close(struct journal *journal)
{
    if (!journal) {
        return;
    }
    CHECK(journal->class == JOURNAL_CLASS);
    bool clean = write_clean_end(journal);
    journal_writer_stop(journal);
    journal_sync_stop(journal);
    if (clean) {
        leave_segment(journal);
    }
    journal->class = 0;
    journal_open_destroy(journal);
}
