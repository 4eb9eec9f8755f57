/*
 * repair_journal.c: a damaged journal: what is lost becomes empty records (pads), so that all that
 * is sound keeps its place and the stream goes as far as marks and tables say.
 *
 * Records tell results, so those after a gap hold without it; only what was in the gap is lost. An
 * event of a table that was lost may make a start refuse a later one: --drop-from gives up what
 * follows.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "engine/change_record.h"
#include "store/journal_salvage.h"
#include "store/one_bit.h"
#include "tools/rollcall/repair_private.h"

#define MENDS_MAX 1000u /* gaps in which one bit is looked for */

struct gap {
    uint64_t from, to; /* LSN; equal: none */
    uint64_t records;  /* sound ones that are given up */
    const char *why;
};

struct mending {
    struct repair *repair;
    struct repair_plan *plan;
    struct repair_segment *segment; /* the present one */
    bool last;
    int fd; /* to write to it; -1: nothing is written */
    struct gap gap;
    uint64_t mends; /* gaps, and records beyond MENDS_MAX are lost without a try */
    uint64_t sound_records, sound_bytes;
    bool lost;         /* some record is */
    uint64_t sound_to; /* after the last sound record of the segment */
    bool closed;       /* that is a clean end */
};

/* ---- writing ---- */

static bool write_at(struct mending *m, const void *bytes, size_t length, uint64_t offset)
{
    return vfs_write_all(m->repair->vfs, m->fd, bytes, length, offset) ||
           repair_fail(m->repair, m->segment->name, "written");
}

/* Empty records from one place to another, both multiples of 8. */
static bool write_pads(struct mending *m, uint64_t from, uint64_t until)
{
    _Alignas(uint64_t) uint64_t pad[JOURNAL_RECORD_MAX / sizeof(uint64_t)] = {0};
    while (from < until) {
        uint64_t bytes = until - from < JOURNAL_RECORD_MAX ? until - from : JOURNAL_RECORD_MAX;
        uint8_t units = (uint8_t)(bytes / JOURNAL_UNIT);
        pad[0] = journal_record_word(0, JOURNAL_PAD, units, 0, 0);
        pad[0] = journal_record_word(journal_record_checksum(pad, from), JOURNAL_PAD, units, 0, 0);
        if (!write_at(m, pad, bytes, journal_offset_of(&m->segment->header, from))) {
            return false;
        }
        from += bytes;
    }
    return true;
}

/* What stands there now, without the zeroes at its end. */
static bool keep_range(struct mending *m, uint64_t offset, uint64_t bytes)
{
    char *copy = memory_zalloc(bytes + 1);
    ssize_t got = vfs_read_all(m->repair->vfs, m->fd, copy, bytes, offset);
    size_t length = got > 0 ? (size_t)got : 0;
    while (length > 0 && copy[length - 1] == 0) {
        length--;
    }
    bool kept = length == 0 || repair_keep_bytes(m->repair, m->segment->name, offset, copy, length);
    free(copy);
    return kept;
}

/* ---- one gap ---- */

/* Prints whose change a damaged record says it was, if that can be read. */
static void say_probable(struct mending *m, const unsigned char *bytes, uint64_t length)
{
    struct change change;
    struct change_record_event event;
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    if (journal_word_bytes(word) != length || length <= JOURNAL_HEADER_BYTES) {
        return;
    }
    switch (change_record_decode(journal_word_type(word), (uint8_t)(word >> 48),
                                 (uint8_t)(word >> 56), bytes + JOURNAL_HEADER_BYTES,
                                 length - JOURNAL_HEADER_BYTES, &change, &event)) {
    case CHANGE_RECORD_IS_CHANGE:
        repair_say(m->repair, "  by what is left of it a change of id %" PRIu64, change.id);
        break;
    case CHANGE_RECORD_IS_EVENT:
        repair_say(m->repair, "  by what is left of it an event of space %" PRIu32, event.space);
        break;
    case CHANGE_RECORD_IS_BAD:
        break;
    }
}

static void repair_journal_say_gap(struct mending *m, const struct gap *gap)
{
    const struct repair_segment *segment = m->segment;
    uint64_t bytes = gap->to - gap->from;
    uint64_t mean = m->sound_records > 0 ? m->sound_bytes / m->sound_records : bytes;
    uint64_t records = bytes > mean ? (bytes + mean / 2) / mean : 1;
    repair_say(m->repair,
               "%s/%s: offset %" PRIu64 ": %s: %" PRIu64 " bytes, LSN %" PRIu64 " to %" PRIu64
               ", about %" PRIu64 " change%s: lost",
               m->repair->options->directory, segment->name,
               journal_offset_of(&segment->header, gap->from), gap->why, bytes, gap->from, gap->to,
               records, records == 1 ? "" : "s");
}

/* Ends the gap that is noted: says it, fills it. */
static bool end_gap(struct mending *m)
{
    struct gap gap = m->gap;
    m->gap = (struct gap){0};
    if (gap.from == gap.to) {
        return true;
    }
    repair_journal_say_gap(m, &gap);
    m->repair->repairs++;
    m->lost = true;
    if (m->fd < 0) {
        return true;
    }
    uint64_t offset = journal_offset_of(&m->segment->header, gap.from);
    return (!m->segment->there || keep_range(m, offset, gap.to - gap.from)) &&
           write_pads(m, gap.from, gap.to);
}

static bool note_gap(struct mending *m, uint64_t from, uint64_t to, const char *why)
{
    if (m->gap.from < m->gap.to && m->gap.to == from) {
        m->gap.to = to;
        return true;
    }
    bool ended = end_gap(m);
    m->gap = (struct gap){.from = from, .to = to, .why = why};
    return ended;
}

struct record_at {
    uint64_t lsn, room;
};

static bool record_fits(void *context, const void *block)
{
    const struct record_at *at = context;
    uint64_t word;
    memcpy(&word, block, sizeof(word));
    uint64_t bytes = journal_word_bytes(word);
    return bytes > 0 && bytes <= at->room && journal_word_known(word) &&
           (uint32_t)word == journal_record_checksum(block, at->lsn);
}

/* The first record of a gap, if only one bit of it has turned over. Returns its bytes, 0: no. */
static uint64_t mend_record(struct mending *m, struct salvage *salvage,
                            const struct salvage_item *gap)
{
    _Alignas(uint64_t) unsigned char block[JOURNAL_RECORD_MAX] = {0};
    struct record_at at = {gap->lsn, gap->bytes < sizeof(block) ? gap->bytes : sizeof(block)};
    uint64_t offset = journal_offset_of(&m->segment->header, gap->lsn);
    if (vfs_read_all(salvage->vfs, salvage->fd, block, at.room, offset) <= 0) {
        return 0;
    }
    unsigned char was[JOURNAL_RECORD_MAX];
    memcpy(was, block, sizeof(was));
    if (m->mends++ >= MENDS_MAX || !one_bit_mend(block, at.room, record_fits, &at)) {
        if (gap->bytes <= sizeof(was)) {
            say_probable(m, was, gap->bytes);
        }
        return 0;
    }
    uint64_t word;
    memcpy(&word, block, sizeof(word));
    m->repair->repairs++;
    m->segment->sum = journal_sum(m->segment->sum, word);
    repair_say(m->repair,
               "%s/%s: offset %" PRIu64
               ": a bit of a record had turned over; it is turned back, nothing is lost",
               m->repair->options->directory, m->segment->name, offset);
    if (m->fd >= 0 && keep_range(m, offset, journal_word_bytes(word))) {
        write_at(m, block, journal_word_bytes(word), offset);
    }
    return journal_word_bytes(word);
}

/* ---- one segment ---- */

static void note_sound(struct mending *m, uint64_t sound_to, uint8_t type)
{
    m->sound_to = sound_to;
    m->closed = type == JOURNAL_CLOSED;
}

/* Returns how far the stream must go in this segment, if nothing sound follows. */
static uint64_t end_wanted(const struct mending *m, uint64_t from)
{
    uint64_t end = m->segment->end;
    if (m->last) {
        end = m->plan->reach < end ? m->plan->reach : end;
    }
    return end > from ? end : from;
}

static bool take_item(struct mending *m, struct salvage *salvage, enum salvage_step step,
                      const struct salvage_item *item)
{
    uint64_t drop_from = m->repair->options->drop_from;
    if (step == SALVAGE_RECORD) {
        note_sound(m, item->lsn + item->bytes, item->record.type);
        m->sound_records++;
        m->sound_bytes += item->bytes;
        if (item->lsn >= drop_from) {
            return note_gap(m, item->lsn, item->lsn + item->bytes, "given up");
        }
        m->segment->sum = journal_sum(m->segment->sum, item->word);
        return end_gap(m);
    }
    bool goes_on = step == SALVAGE_GAP && item->resumes;
    uint64_t to = goes_on ? item->lsn + item->bytes : end_wanted(m, item->lsn);
    bool torn = !goes_on && to == item->lsn; /* no gap: it ends here */
    if (step == SALVAGE_GAP && !torn && item->lsn < drop_from && m->gap.from == m->gap.to) {
        uint64_t mended = mend_record(m, salvage, item);
        if (mended > 0) {
            note_sound(m, item->lsn + mended, JOURNAL_PAD);
            salvage_seek(salvage, item->lsn + mended);
            return !m->repair->failed;
        }
    }
    return note_gap(m, item->lsn, to, item->why ? item->why : "there is no record");
}

static bool make_whole(struct mending *m, uint64_t size)
{
    const struct vfs_functions *file = m->repair->vfs->functions;
    const struct repair_segment *segment = m->segment;
    m->repair->repairs++;
    repair_say(m->repair,
               "%s/%s: " JOURNAL_CUT_WORDS "; its end is made again, empty: from LSN %" PRIu64
               " on changes may be missing",
               m->repair->options->directory, segment->name, size, segment->header.bytes,
               m->sound_to);
    return m->fd < 0 ||
           file->truncate(m->repair->vfs, m->fd,
                          journal_offset_of(&segment->header, segment->end)) == 0 ||
           repair_fail(m->repair, segment->name, "made longer");
}

/* After its last record. */
static bool mend_end(struct mending *m, uint64_t size)
{
    const struct journal_found found = {.header = m->segment->header,
                                        .mark = m->segment->mark,
                                        .end = m->segment->end,
                                        .size = size};
    bool cut = journal_chain_is_cut(&found, m->closed ? m->sound_to : 0);
    return (!cut || make_whole(m, size)) && end_gap(m);
}

static bool mend_there(struct mending *m)
{
    char path[VFS_PATH_MAX];
    struct salvage salvage;
    struct salvage_item item;
    enum salvage_step step = SALVAGE_GAP;
    bool mended = true;
    if (!vfs_path(path, m->repair->options->directory, m->segment->name) ||
        !salvage_init(&salvage, m->repair->vfs, path)) {
        return repair_fail(m->repair, m->segment->name, "read");
    }
    salvage_trust(&salvage, &m->segment->header);
    salvage.mark = m->segment->mark;
    salvage.end = m->segment->end;
    note_sound(m, m->segment->header.start, JOURNAL_PAD);
    while (mended && (step == SALVAGE_RECORD || step == SALVAGE_GAP)) {
        step = salvage_next(&salvage, &item);
        if (step == SALVAGE_FAILED) {
            mended = repair_fail(m->repair, m->segment->name, "read");
        } else if (step != SALVAGE_END || item.lsn < m->segment->end) {
            mended = take_item(m, &salvage, step, &item);
        }
    }
    uint64_t size = salvage.size;
    salvage_fini(&salvage);
    return mended && mend_end(m, size);
}

/* The header's page, with the mark it had. */
static bool repair_journal_write_header(struct mending *m)
{
    _Alignas(uint64_t) unsigned char page[JOURNAL_PAGE_BYTES];
    unsigned char bytes[JOURNAL_MARK_BYTES];
    const struct repair_segment *segment = m->segment;
    journal_page_encode(&segment->header, page);
    if (segment->mark.serial > 0) {
        uint64_t offset = journal_mark_encode(&segment->header, &segment->mark, bytes);
        memcpy(page + offset, bytes, sizeof(bytes));
    }
    return (!segment->there || keep_range(m, 0, sizeof(page))) &&
           write_at(m, page, sizeof(page), 0);
}

static void say_header(struct mending *m)
{
    const struct repair_segment *segment = m->segment;
    if (!segment->changed) {
        return;
    }
    m->repair->repairs++;
    repair_say(m->repair, "%s/%s: %s", m->repair->options->directory, segment->name,
               !segment->there ? "the segment is missing; it is made again, empty"
               : !segment->sound
                   ? "its header is damaged; it is made again of its neighbours"
                   : "its header is written again: the segment before it has changed");
}

/* Opened to be written, under a name that does not count if it is new. */
static bool repair_journal_open_segment(struct mending *m, char path[VFS_PATH_MAX])
{
    const struct vfs_functions *file = m->repair->vfs->functions;
    const char *name = m->segment->there ? m->segment->name : JOURNAL_AGAIN_NAME;
    if (!m->repair->options->yes) {
        return true;
    }
    if (vfs_path(path, m->repair->options->directory, name)) {
        if (!m->segment->there) {
            file->unlink(m->repair->vfs, path);
        }
        m->fd = file->open(m->repair->vfs, path, m->segment->there ? O_RDWR : O_RDWR | O_CREAT);
    }
    return m->fd >= 0 || repair_fail(m->repair, m->segment->name, "opened");
}

/* `whole`: all of it was written, so that a new one gets its name. */
static bool close_segment(struct mending *m, const char *path, bool whole)
{
    const struct vfs_functions *file = m->repair->vfs->functions;
    char to[VFS_PATH_MAX];
    if (m->fd < 0) {
        return whole;
    }
    bool done = file->fdatasync(m->repair->vfs, m->fd) == 0;
    file->close(m->repair->vfs, m->fd);
    m->fd = -1;
    if (!whole) {
        return false; /* said where it failed */
    }
    if (!m->segment->there) {
        done = done && vfs_path(to, m->repair->options->directory, m->segment->name) &&
               file->rename(m->repair->vfs, path, to) == 0 &&
               file->sync_dir(m->repair->vfs, m->repair->options->directory) == 0;
    }
    return done || repair_fail(m->repair, m->segment->name, "written");
}

/* Records come first: the header that links to a changed segment stands in a later one. */
static bool mend_segment(struct mending *m, size_t index)
{
    char path[VFS_PATH_MAX] = "";
    m->segment = &m->plan->segments[index];
    m->last = index + 1 == m->plan->count;
    repair_plan_link(m->plan, index);
    say_header(m);
    bool done = repair_journal_open_segment(m, path);
    if (done && m->segment->there) {
        done = mend_there(m);
    } else if (done) {
        done = note_gap(m, m->segment->header.start, m->segment->end, "nothing is there") &&
               end_gap(m);
    }
    done = done && (m->fd < 0 || !m->segment->changed || repair_journal_write_header(m));
    return close_segment(m, path, done);
}

/* ---- the whole ---- */

/* Returns whether a start would take the journal as it is, and verify find nothing. */
static bool repair_journal_is_sound(struct repair *repair, const struct repair_plan *plan,
                                    bool *readable)
{
    struct journal_scan scan = {.from = JOURNAL_FROM_OLDEST};
    enum journal_scan_end end =
        journal_scan(repair->vfs, repair->options->directory, &scan, NULL, NULL);
    *readable = end != JOURNAL_SCAN_FAILED;
    if (!*readable) {
        repair_cannot(repair, "%s", scan.error);
    }
    return (end == JOURNAL_SCAN_CLEAN || end == JOURNAL_SCAN_TORN) && scan.lost_records == 0 &&
           scan.end >= plan->reach && scan.first <= repair->manifest->journal_lsn &&
           repair->options->drop_from >= scan.end;
}

static void mend_all(struct repair *repair, struct repair_plan *plan)
{
    struct mending m = {.repair = repair, .plan = plan, .fd = -1};
    bool done = true;
    for (size_t i = 0; i < plan->count && done; i++) {
        done = mend_segment(&m, i);
    }
    if (m.mends > MENDS_MAX) {
        repair_say(repair,
                   "  %" PRIu64 " of the gaps may be of one bit turned over: that is looked for in "
                   "the first %u",
                   m.mends - MENDS_MAX, MENDS_MAX);
    }
    if (m.lost) {
        repair_say(repair,
                   "  what follows is kept. If a start refuses a record of it, at LSN N: rollcall "
                   "repair --drop-from N %s",
                   repair->options->directory);
    }
}

void repair_journal(struct repair *repair)
{
    struct journal_chain chain;
    struct repair_plan plan = {0};
    char error[JOURNAL_ERROR_MAX];
    bool readable = true;
    if (!journal_chain_init(&chain, repair->vfs, repair->options->directory, error)) {
        repair_cannot(repair, "%s", error);
    } else if (repair_plan_make(repair, &chain, &plan) &&
               !repair_journal_is_sound(repair, &plan, &readable) && readable) {
        mend_all(repair, &plan);
    }
    repair_plan_free(&plan);
    journal_chain_fini(&chain);
}
