/* journal_scan.c: reading the stream back, and telling a torn end from damage. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "store/journal_chain.h"
#include "store/journal_salvage.h"

#define WINDOW_BYTES   (1u << 20) /* read at once */
#define REACH_TEXT_MAX 48
#define WHY_TEXT_MAX   160

/* What is known of one place in the stream. */
enum step {
    STEP_GO_ON,
    STEP_NOTHING, /* zeroes: nothing was written here */
    STEP_BAD,     /* reader.why */
    STEP_STOPPED,
    STEP_FAILED, /* errno */
};

struct reader {
    struct vfs *vfs;
    const char *directory;
    struct journal_scan *scan;
    journal_record_fn *record;
    void *context;
    struct journal_chain chain;
    unsigned char *window; /* of the present segment's file, zeroes after its end */
    uint64_t window_lsn, window_bytes;
    const struct journal_found *segment;
    int fd;
    uint64_t at;  /* LSN after the last sound record */
    uint64_t sum; /* of the present segment up to there */
    bool closed;  /* the last record was a clean end */
    bool ran_out; /* the file ends where the next record does not yet */
    const char *why;
};

/* ---- one segment ---- */

static bool open_segment(struct reader *reader, const struct journal_found *segment)
{
    vfs_close(reader->vfs, reader->fd);
    reader->segment = segment;
    reader->at = segment->header.start;
    reader->sum = 0;
    reader->closed = reader->ran_out = false;
    reader->window_bytes = 0;
    reader->fd = vfs_open_in(reader->vfs, reader->directory, segment->name, O_RDONLY);
    return reader->fd >= 0;
}

/* Brings `bytes` bytes from lsn on into the window. */
static bool fill_window(struct reader *reader, uint64_t lsn, uint64_t bytes)
{
    if (lsn >= reader->window_lsn && lsn + bytes <= reader->window_lsn + reader->window_bytes) {
        return true;
    }
    ssize_t got = vfs_read_all(reader->vfs, reader->fd, reader->window, WINDOW_BYTES,
                               journal_offset_of(&reader->segment->header, lsn));
    if (got < 0) {
        return false;
    }
    memset(reader->window + got, 0, WINDOW_BYTES - (size_t)got);
    reader->window_lsn = lsn;
    reader->window_bytes = WINDOW_BYTES;
    return true;
}

static enum step bad(struct reader *reader, const char *why)
{
    reader->why = why;
    return STEP_BAD;
}

/* Notes whether the file has less than so many bytes more. */
static void note_file_end(struct reader *reader, uint64_t bytes)
{
    uint64_t end = journal_offset_of(&reader->segment->header, reader->at + bytes);
    reader->ran_out = end > reader->segment->size;
}

/* Looks at a record that is whole in the window. */
static enum step judge_record(struct reader *reader, const unsigned char *bytes, uint64_t word)
{
    uint64_t whole = journal_word_bytes(word);
    uint64_t left = journal_end_of(&reader->segment->header) - reader->at;
    if (whole > left || reader->at + whole > reader->segment->end || reader->ran_out) {
        return bad(reader, "a record is longer than what is left");
    }
    if ((uint32_t)word != journal_record_checksum(bytes, reader->at)) {
        return bad(reader, "a record's checksum does not fit");
    }
    if (!journal_word_known(word)) {
        return bad(reader, "a record's type is unknown");
    }
    return STEP_GO_ON;
}

static bool give_reign(struct reader *reader, const unsigned char *bytes)
{
    uint64_t words[JOURNAL_REIGN_BYTES / JOURNAL_UNIT];
    memcpy(words, bytes, sizeof(words));
    const struct journal_reign reign = {
        .lsn = reader->at, .epoch = words[1], .node = words[2], .unix_s = words[3]};
    return reader->scan->reign(reader->context, &reign);
}

static bool journal_scan_give(struct reader *reader, const unsigned char *bytes, uint64_t word)
{
    if (journal_word_type(word) == JOURNAL_REIGN && reader->scan->reign != NULL &&
        reader->at >= reader->scan->from) {
        return give_reign(reader, bytes);
    }
    if (journal_word_type(word) < JOURNAL_TYPES_RESERVED || reader->at < reader->scan->from ||
        reader->record == NULL) {
        return true;
    }
    struct journal_record record = {
        .lsn = reader->at,
        .type = journal_word_type(word),
        .a = (uint8_t)(word >> 48),
        .b = (uint8_t)(word >> 56),
        .payload = bytes + JOURNAL_HEADER_BYTES,
        .bytes = journal_word_bytes(word) - JOURNAL_HEADER_BYTES,
    };
    return reader->record(reader->context, &record);
}

static enum step read_record(struct reader *reader)
{
    uint64_t word;
    if (!fill_window(reader, reader->at, JOURNAL_UNIT)) {
        return STEP_FAILED;
    }
    memcpy(&word, reader->window + (reader->at - reader->window_lsn), sizeof(word));
    note_file_end(reader, JOURNAL_UNIT);
    if (word == 0) {
        return STEP_NOTHING;
    }
    uint64_t whole = journal_word_bytes(word);
    if (whole == 0) {
        return bad(reader, "a record has no length");
    }
    if (!fill_window(reader, reader->at, whole)) {
        return STEP_FAILED;
    }
    note_file_end(reader, whole);
    const unsigned char *bytes = reader->window + (reader->at - reader->window_lsn);
    enum step step = judge_record(reader, bytes, word);
    if (step != STEP_GO_ON) {
        return step;
    }
    if (!journal_scan_give(reader, bytes, word)) {
        return STEP_STOPPED;
    }
    reader->at += whole;
    reader->sum = journal_sum(reader->sum, word);
    reader->closed = journal_word_type(word) == JOURNAL_CLOSED;
    return STEP_GO_ON;
}

static enum step read_segment(struct reader *reader)
{
    enum step step = STEP_GO_ON;
    while (step == STEP_GO_ON && reader->at < reader->segment->end) {
        step = read_record(reader);
    }
    return step;
}

/* ---- what is cut off ---- */

/* Bytes up to the last that is not 0: whole windows of zeros, as a rule. */
static uint64_t used_of(const unsigned char *window, uint64_t bytes)
{
    if (window[0] == 0 && memcmp(window, window + 1, bytes - 1) == 0) {
        return 0;
    }
    while (window[bytes - 1] == 0) {
        bytes--;
    }
    return bytes;
}

static void count_torn(struct reader *reader, uint64_t from)
{
    uint64_t end = journal_end_of(&reader->segment->header);
    uint64_t last = from;
    reader->window_bytes = 0;
    for (uint64_t lsn = from; lsn < end && lsn - last < WINDOW_BYTES; lsn += WINDOW_BYTES) {
        if (!fill_window(reader, lsn, WINDOW_BYTES)) {
            break; /* a figure only */
        }
        uint64_t used = used_of(reader->window, WINDOW_BYTES);
        last = used > 0 ? lsn + used : last;
    }
    reader->scan->torn_bytes += last - from;
}

/* Returns whether an unsound segment is a part of the stream after the break, as a power cut may
 * leave it. In the run of the system that wrote the stream it is damage (unsound_next), or a start
 * has cut it off already. */
static bool is_left_behind(const struct reader *reader, size_t index,
                           const struct journal_found *found)
{
    return found->name_start >= reader->scan->end &&
           !journal_chain_is_of_this_run(&reader->chain, reader->chain.live[index]);
}

static void count_torn_in(struct reader *reader, const struct journal_found *segment)
{
    if (open_segment(reader, segment)) {
        count_torn(reader, segment->header.start);
    }
}

static void count_torn_behind(struct reader *reader, size_t index)
{
    count_torn(reader, reader->at);
    for (size_t i = index + 1; i < reader->chain.live_count; i++) {
        count_torn_in(reader, reader->chain.live[i]);
    }
    for (size_t i = reader->chain.sound; i < reader->chain.count; i++) {
        if (is_left_behind(reader, index, &reader->chain.found[i])) {
            count_torn_in(reader, &reader->chain.found[i]);
        }
    }
}

/* ---- the verdict ---- */

static enum journal_scan_end damaged(struct reader *reader, const char *name, uint64_t offset,
                                     const char *why)
{
    char reach[REACH_TEXT_MAX] = ""; /* a segment that follows a full one may say it itself */
    if (reader->scan->durable > reader->at) {
        snprintf(reach, sizeof(reach), ", durable up to %" PRIu64, reader->scan->durable);
    } else if (reader->chain.written > reader->at) {
        snprintf(reach, sizeof(reach), ", written up to %" PRIu64, reader->chain.written);
    }
    snprintf(reader->scan->error, JOURNAL_ERROR_MAX,
             "%s/%s: offset %" PRIu64 ": %s (LSN %" PRIu64 "%s); see: rollcall repair %s",
             reader->directory, name, offset, why, reader->at, reach, reader->directory);
    return JOURNAL_SCAN_DAMAGED;
}

static enum journal_scan_end damaged_here(struct reader *reader, const char *why)
{
    return damaged(reader, reader->segment->name,
                   journal_offset_of(&reader->segment->header, reader->at), why);
}

static enum journal_scan_end missing(struct reader *reader, uint64_t start)
{
    const struct journal_found *unsound = journal_chain_unsound(&reader->chain, start, start);
    char name[JOURNAL_NAME_MAX];
    journal_name(name, start);
    return damaged(reader, name, 0, unsound ? unsound->why : "the segment is missing");
}

static enum journal_scan_end failed(struct reader *reader)
{
    snprintf(reader->scan->error, JOURNAL_ERROR_MAX, "%s/%s: offset %" PRIu64 ": %s",
             reader->directory, reader->segment->name,
             journal_offset_of(&reader->segment->header, reader->at), strerror(errno));
    return JOURNAL_SCAN_FAILED;
}

static bool is_cut(const struct reader *reader)
{
    return journal_chain_is_cut(reader->segment, reader->closed ? reader->at : 0);
}

static enum journal_scan_end cut_short(struct reader *reader)
{
    char why[WHY_TEXT_MAX];
    snprintf(why, sizeof(why), JOURNAL_CUT_WORDS, reader->segment->size,
             reader->segment->header.bytes);
    return damaged_here(reader, why);
}

/* Counts the sound records of a segment from an LSN on. False: its file cannot be read. */
static bool count_sound_in(struct reader *reader, const struct journal_found *segment,
                           uint64_t from, struct salvage_found *behind)
{
    char path[VFS_PATH_MAX];
    struct salvage salvage;
    if (!vfs_path(path, reader->directory, segment->name) ||
        !salvage_init(&salvage, reader->vfs, path)) {
        return false;
    }
    salvage_trust(&salvage, &segment->header);
    salvage.mark = segment->mark;
    salvage.end = segment->state == JOURNAL_PAGE_SOUND ? segment->end : salvage.end;
    salvage_seek(&salvage, from);
    bool read = salvage_count(&salvage, behind);
    salvage_fini(&salvage);
    return read;
}

/* Looks for sound records after the break. False: a file cannot be read. */
static bool look_behind(struct reader *reader, size_t index, struct salvage_found *behind)
{
    const struct journal_chain *chain = &reader->chain;
    bool read = count_sound_in(reader, chain->live[index], reader->at, behind);
    for (size_t i = index + 1; i < chain->live_count && read; i++) {
        read = count_sound_in(reader, chain->live[i], chain->live[i]->header.start, behind);
    }
    return read;
}

/* The same in segments that a power cut left without their headers. */
static bool look_left_behind(struct reader *reader, size_t index, struct salvage_found *behind)
{
    const struct journal_chain *chain = &reader->chain;
    bool read = true;
    for (size_t i = chain->sound; i < chain->count && read; i++) {
        if (is_left_behind(reader, index, &chain->found[i])) {
            read = count_sound_in(reader, &chain->found[i], chain->found[i].header.start, behind);
        }
    }
    return read;
}

/*
 * The break is above all marks. A kill leaves an end: what was written before is there, what would
 * have come later is not. So sound records after the break are proof of damage, except after a
 * power cut, which writes in any order what was not synced.
 */
static enum journal_scan_end torn(struct reader *reader, enum step step, size_t index)
{
    struct journal_scan *scan = reader->scan;
    const struct journal_found *segment = reader->chain.live[index];
    struct salvage_found behind = {0};
    if (!look_behind(reader, index, &behind)) {
        return failed(reader);
    }
    if (behind.records == 0 && is_cut(reader)) {
        return cut_short(reader);
    }
    if (behind.records > 0 && behind.first == reader->at) {
        behind = (struct salvage_found){0}; /* it was being written: a daemon is at work */
    }
    if (!look_left_behind(reader, index, &behind)) {
        return failed(reader);
    }
    if (behind.records > 0 && journal_chain_is_of_this_run(&reader->chain, segment)) {
        char why[WHY_TEXT_MAX];
        snprintf(why, sizeof(why),
                 "%s, and %" PRIu64 " sound records (%" PRIu64
                 " bytes) of the same stream follow: damage, not a torn end",
                 step == STEP_BAD ? reader->why : "there is no record", behind.records,
                 behind.bytes);
        return damaged_here(reader, why);
    }
    scan->lost_records = behind.records;
    scan->lost_bytes = behind.bytes;
    scan->lost_first = behind.first;
    count_torn_behind(reader, index);
    return JOURNAL_SCAN_TORN;
}

/*
 * A segment has its header before it has its name. So in the run of the system that wrote the
 * stream, one whose header is not sound is damage; a power cut may leave the name and no byte of
 * the header, but never another part. NULL: there is no such damage after the break. While the
 * segment that ends the stream is empty, a start may not have deleted yet what it cut off.
 */
static const struct journal_found *unsound_next(const struct reader *reader)
{
    const struct journal_chain *chain = &reader->chain;
    const struct journal_header *header = &reader->segment->header;
    const struct journal_found *next =
        journal_chain_unsound(chain, reader->at, journal_end_of(header));
    if (!next || reader->at == header->start) {
        return NULL;
    }
    bool follows = next->name_start == reader->at && !next->blank;
    return follows || journal_chain_is_of_this_run(chain, reader->segment) ? next : NULL;
}

/*
 * The stream breaks off at reader->at, in or after the segment with this index. All that was ever
 * marked durable was on the disk before the mark was, so a break below a mark is damage, whatever
 * made it; so it is with what was marked written, as long as the system runs.
 */
static enum journal_scan_end break_off(struct reader *reader, enum step step, size_t index)
{
    struct journal_scan *scan = reader->scan;
    bool last = index + 1 == reader->chain.live_count;
    bool full = reader->at == journal_end_of(&reader->segment->header);
    bool marked = reader->at < scan->durable || reader->at < reader->chain.written;
    if (reader->ran_out && is_cut(reader)) {
        return cut_short(reader);
    }
    if (full && (marked || (last && reader->segment->mark.sealed))) {
        return missing(reader, reader->at);
    }
    if (marked) {
        return damaged_here(reader, step == STEP_BAD ? reader->why : "there is no record");
    }
    if (last && reader->segment->mark.sealed) {
        return damaged_here(reader, "the segment that went on from here is missing");
    }
    const struct journal_found *unsound = unsound_next(reader);
    if (unsound) {
        return damaged(reader, unsound->name, 0, unsound->why);
    }
    if (reader->at < scan->from) {
        return damaged_here(reader, "the stream ends below where it is to be read from");
    }
    if (reader->closed && last && step == STEP_NOTHING && !is_cut(reader)) {
        return JOURNAL_SCAN_CLEAN;
    }
    return torn(reader, step, index);
}

/* Whether this segment, read to its end, is the one its successor followed. */
static bool is_followed_by(const struct reader *reader, const struct journal_found *next)
{
    const struct journal_link *link = &next->header.previous;
    const struct journal_header *header = &reader->segment->header;
    return link->number == header->number && link->start == header->start &&
           (link->sum == 0 || link->sum == reader->sum);
}

/* ---- the chain ---- */

/* The index of the segment that holds `from`, or the oldest; live_count: there is none. */
static size_t first_index(const struct reader *reader)
{
    const struct journal_chain *chain = &reader->chain;
    if (reader->scan->from == JOURNAL_FROM_OLDEST) {
        return 0;
    }
    size_t index = chain->live_count;
    for (size_t i = 0; i < chain->live_count; i++) {
        if (chain->live[i]->header.start <= reader->scan->from) {
            index = i;
        }
    }
    return index;
}

static enum journal_scan_end read_from(struct reader *reader, size_t index)
{
    for (;; index++) {
        const struct journal_found *segment = reader->chain.live[index];
        if (!open_segment(reader, segment)) {
            return failed(reader);
        }
        enum step step = read_segment(reader);
        reader->scan->end = reader->at;
        reader->scan->sum = reader->sum;
        if (step == STEP_FAILED) {
            return failed(reader);
        }
        if (step == STEP_STOPPED) {
            return JOURNAL_SCAN_STOPPED;
        }
        const struct journal_found *next =
            index + 1 < reader->chain.live_count ? reader->chain.live[index + 1] : NULL;
        if (step != STEP_GO_ON || !next || next->header.start != reader->at) {
            return break_off(reader, step == STEP_GO_ON ? STEP_NOTHING : step, index);
        }
        if (!is_followed_by(reader, next)) {
            return damaged(reader, next->name, 0, "does not follow the segment before it");
        }
    }
}

/* No segment holds `from`. */
static enum journal_scan_end none_holds(struct reader *reader)
{
    struct journal_scan *scan = reader->scan;
    bool all = scan->from == JOURNAL_FROM_OLDEST;
    reader->at = all ? 0 : scan->from;
    scan->end = reader->at;
    const struct journal_found *unsound = journal_chain_unsound(&reader->chain, 0, reader->at);
    if (!unsound && reader->chain.live_count == 0) {
        unsound = journal_chain_unsound(&reader->chain, 0, UINT64_MAX);
    }
    if (unsound) {
        return damaged(reader, unsound->name, 0, unsound->why);
    }
    scan->empty = reader->chain.count == 0;
    if (scan->empty && reader->at == 0) {
        return JOURNAL_SCAN_CLEAN;
    }
    return missing(reader, reader->at);
}

static enum journal_scan_end read_chain(struct reader *reader)
{
    struct journal_scan *scan = reader->scan;
    const struct journal_chain *chain = &reader->chain;
    scan->durable = chain->durable;
    scan->epoch = chain->epoch;
    size_t index = first_index(reader);
    if (index == chain->live_count) {
        return none_holds(reader);
    }
    scan->first = chain->live[0]->header.start;
    if (scan->from == JOURNAL_FROM_OLDEST) {
        scan->from = scan->first;
        const struct journal_found *older = journal_chain_unsound(chain, 0, scan->first);
        if (older) {
            reader->at = older->name_start;
            return damaged(reader, older->name, 0, older->why);
        }
    }
    return read_from(reader, index);
}

enum journal_scan_end journal_scan(struct vfs *vfs, const char *directory,
                                   struct journal_scan *scan, journal_record_fn *record,
                                   void *context)
{
    struct reader reader = {.vfs = vfs,
                            .directory = directory,
                            .scan = scan,
                            .record = record,
                            .context = context,
                            .fd = -1};
    *scan = (struct journal_scan){.from = scan->from, .reign = scan->reign};
    enum journal_scan_end end = JOURNAL_SCAN_FAILED;
    if (journal_chain_init(&reader.chain, vfs, directory, scan->error)) {
        reader.window = memory_zalloc(WINDOW_BYTES);
        end = read_chain(&reader);
        free(reader.window);
    }
    vfs_close(vfs, reader.fd);
    journal_chain_fini(&reader.chain);
    return end;
}
