/* journal_room.c: room on the disk for what comes next: a segment, and the ballast. */
#include <errno.h>
#include <fcntl.h>

#include "base/check.h"
#include "store/journal_private.h"

#define BALLAST_AGAIN_US 10000000u

/* ---- the ballast ---- */

bool journal_ballast_give(struct vfs *vfs, const char *directory, uint64_t bytes)
{
    const struct vfs_functions *file = vfs->functions;
    int fd = vfs_open_in(vfs, directory, JOURNAL_BALLAST_NAME, O_RDWR);
    if (fd < 0) {
        return false;
    }
    int64_t size = file->size(vfs, fd);
    uint64_t left = size > 0 && (uint64_t)size > bytes ? (uint64_t)size - bytes : 0;
    bool given = size > 0 && file->truncate(vfs, fd, left) == 0;
    file->close(vfs, fd);
    return given;
}

uint64_t journal_ballast_bytes(struct vfs *vfs, const char *directory)
{
    int64_t size = vfs_size_in(vfs, directory, JOURNAL_BALLAST_NAME);
    return size > 0 ? (uint64_t)size : 0;
}

/* What is there is kept, and made whole. */
static bool fill_ballast(struct journal *journal)
{
    const struct vfs_functions *file = journal->vfs->functions;
    int fd = vfs_open_in(journal->vfs, journal->directory, JOURNAL_BALLAST_NAME, O_RDWR | O_CREAT);
    if (fd < 0) {
        return false;
    }
    uint64_t bytes = journal->segment_bytes < JOURNAL_BALLAST_BYTES ? journal->segment_bytes
                                                                    : JOURNAL_BALLAST_BYTES;
    bool whole =
        file->allocate(journal->vfs, fd, bytes) == 0 && file->fdatasync(journal->vfs, fd) == 0;
    file->close(journal->vfs, fd);
    return whole;
}

static bool wants_ballast(struct journal *journal, uint64_t now_us)
{
    return atomic_load(&journal->keeps) && !journal->ballast && now_us >= journal->ballast_again_us;
}

/* ---- a segment ---- */

static bool make_spare(struct journal *journal)
{
    int fd = journal_segment_make(journal, JOURNAL_SPARE_NAME, journal->segment_bytes);
    if (fd < 0) {
        return false;
    }
    pthread_mutex_lock(&journal->write_lock);
    journal->spare_fd = fd;
    journal_count_segments(journal);
    journal_set_limit(journal);
    pthread_mutex_unlock(&journal->write_lock);
    return true;
}

/* Returns whether there is room for a segment. The room is given back: a checkpoint has it first.
 */
static bool probe_spare(struct journal *journal)
{
    int fd = journal_segment_make(journal, JOURNAL_SPARE_NAME, journal->segment_bytes);
    if (fd < 0) {
        return false;
    }
    journal->vfs->functions->close(journal->vfs, fd);
    journal_unlink(journal, JOURNAL_SPARE_NAME);
    return true;
}

static bool has_spare(struct journal *journal)
{
    pthread_mutex_lock(&journal->write_lock);
    bool has = journal->spare_fd >= 0;
    pthread_mutex_unlock(&journal->write_lock);
    return has;
}

/* What stays though nobody needs it goes for a segment. */
static bool drop_some(struct journal *journal)
{
    uint64_t lsn = atomic_load(&journal->droppable);
    uint64_t before = atomic_load(&journal->segments);

    return atomic_load(&journal->oldest) < lsn && journal_trim(journal, lsn) &&
           atomic_load(&journal->segments) < before;
}

void journal_may_drop(struct journal *journal, uint64_t lsn)
{
    CHECK(journal->class == JOURNAL_CLASS);
    if (lsn > atomic_load(&journal->droppable)) { /* one caller */
        atomic_store(&journal->droppable, lsn);
    }
}

/* The present one is half used, or a writer found no room. */
static bool wants_spare(struct journal *journal)
{
    bool wanted = atomic_exchange(&journal->spare_wanted, false);
    pthread_mutex_lock(&journal->write_lock);
    uint64_t left = journal->current->end - journal->run.end;
    bool due = journal->spare_fd < 0 && (wanted || left <= journal->segment_bytes / 2);
    pthread_mutex_unlock(&journal->write_lock);
    return due;
}

/* ---- all that is wanted ---- */

static void note_full(struct journal *journal)
{
    atomic_store(&journal->back, false);
    atomic_store(&journal->held, atomic_load(&journal->keeps));
    atomic_store(&journal->full, true);
    journal_set_trouble(journal, JOURNAL_NO_TROUBLE, JOURNAL_SPARE_NAME, 0,
                        "cannot allocate the next segment");
    journal_tell_room(journal);
}

static void note_room(struct journal *journal)
{
    journal->spare_again_us = 0;
    if (atomic_exchange(&journal->full, false) &&
        atomic_load(&journal->trouble) == JOURNAL_NO_TROUBLE) {
        journal_end_trouble(journal);
    }
}

/* A segment first: without a ballast all goes on, but for a start on a full disk. */
void journal_room_make(struct journal *journal, uint64_t now_us)
{
    bool held = atomic_load(&journal->held);
    if (!has_spare(journal) && !(held ? probe_spare(journal) : make_spare(journal)) &&
        (held || !drop_some(journal) || !make_spare(journal))) {
        journal->ballast_again_us = now_us + BALLAST_AGAIN_US;
        if (journal->spare_due) {
            journal->spare_again_us = now_us + JOURNAL_SECOND_US;
            note_full(journal);
        }
        return;
    }
    if (held) {
        atomic_store(&journal->back, true);
        return;
    }
    note_room(journal);
    if (wants_ballast(journal, now_us)) {
        journal->ballast = fill_ballast(journal);
        journal->ballast_again_us = now_us + BALLAST_AGAIN_US;
    }
}

/* Room that is held is not looked at again: that would take it from a checkpoint for a moment. */
bool journal_room_is_due(struct journal *journal, uint64_t now_us)
{
    if (!atomic_exchange(&journal->spare_now, false) && now_us < journal->spare_again_us) {
        return false;
    }
    if (atomic_load(&journal->full)) {
        journal->spare_due = true;
        return journal_room(journal) != JOURNAL_ROOM_HELD;
    }
    journal->spare_due = wants_spare(journal);
    return journal->spare_due || wants_ballast(journal, now_us);
}

/* ---- for checkpoints ---- */

static void look_now(struct journal *journal)
{
    atomic_store(&journal->spare_now, true);
    journal_kick(journal);
}

void journal_keep_room(struct journal *journal)
{
    CHECK(journal->class == JOURNAL_CLASS);
    atomic_store(&journal->keeps, true);
    look_now(journal);
}

enum journal_room journal_room(const struct journal *journal)
{
    if (!atomic_load(&journal->held)) {
        return JOURNAL_ROOM;
    }
    return atomic_load(&journal->back) ? JOURNAL_ROOM_HELD : JOURNAL_ROOM_NONE;
}

void journal_go_on(struct journal *journal)
{
    if (atomic_exchange(&journal->held, false)) {
        look_now(journal);
    }
}
