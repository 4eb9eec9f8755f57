#include "tools/rollcall/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

#define WINDOW_BYTES (1u << 20) /* read at once */
#define ZEROES_BYTES                                                                               \
    (1u << 20) /* so many in a row above the mark: nothing was written any more                    \
                */

bool segment_init(struct segment *segment, struct vfs *vfs, const char *path)
{
    _Alignas(uint64_t) unsigned char page[JOURNAL_PAGE_BYTES] = {0};
    *segment = (struct segment){.vfs = vfs, .fd = vfs->functions->open(vfs, path, O_RDONLY)};
    if (segment->fd < 0) {
        return false;
    }
    int64_t size = vfs->functions->size(vfs, segment->fd);
    if (size < 0 || vfs_read_all(vfs, segment->fd, page, sizeof page, 0) < 0) {
        int reason = errno;
        vfs->functions->close(vfs, segment->fd);
        errno = reason;
        return false;
    }
    segment->size = (uint64_t)size;
    segment->state = journal_page_decode(page, &segment->header, &segment->mark, &segment->why);
    segment->at = segment->header.start;
    segment->end =
        segment->state == JOURNAL_PAGE_SOUND ? journal_end_of(&segment->header) : segment->at;
    segment->window = memory_zalloc(WINDOW_BYTES);
    return true;
}

void segment_fini(struct segment *segment)
{
    segment->vfs->functions->close(segment->vfs, segment->fd);
    free(segment->window);
    *segment = (struct segment){.fd = -1};
}

uint64_t segment_durable(const struct segment *segment)
{
    uint64_t made = segment->header.durable;
    return segment->mark.durable > made ? segment->mark.durable : made;
}

/* `bytes` bytes from lsn on, zeroes behind the file's end; NULL with errno. */
static const unsigned char *look(struct segment *segment, uint64_t lsn, uint64_t bytes)
{
    bool there =
        lsn >= segment->window_lsn && lsn + bytes <= segment->window_lsn + segment->window_bytes;
    if (!there) {
        ssize_t got = vfs_read_all(segment->vfs, segment->fd, segment->window, WINDOW_BYTES,
                                   journal_offset_of(&segment->header, lsn));
        if (got < 0) {
            return NULL;
        }
        memset(segment->window + got, 0, WINDOW_BYTES - (size_t)got);
        segment->window_lsn = lsn;
        segment->window_bytes = WINDOW_BYTES;
    }
    return segment->window + (lsn - segment->window_lsn);
}

static uint64_t word_at(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* RECORD, GAP (item->why) or FAILED: is there a sound record at item->lsn? */
static enum segment_step judge(struct segment *segment, struct segment_item *item)
{
    const unsigned char *bytes = look(segment, item->lsn, JOURNAL_UNIT);
    if (!bytes) {
        return SEGMENT_FAILED;
    }
    uint64_t word = word_at(bytes);
    uint8_t type = journal_word_type(word);
    item->bytes = journal_word_bytes(word);
    item->why = word == 0 ? "nothing was written here" : "a record has no length";
    if (item->bytes == 0) {
        return SEGMENT_GAP;
    }
    item->why = "a record is longer than what is left";
    if (item->bytes > segment->end - item->lsn) {
        return SEGMENT_GAP;
    }
    bytes = look(segment, item->lsn, item->bytes);
    if (!bytes) {
        return SEGMENT_FAILED;
    }
    item->why = "a record's checksum does not fit";
    if ((uint32_t)word != journal_record_checksum(bytes, item->lsn)) {
        return SEGMENT_GAP;
    }
    item->why = "a record's type is unknown";
    if (type < JOURNAL_TYPES_RESERVED && type != JOURNAL_PAD && type != JOURNAL_CLOSED) {
        return SEGMENT_GAP;
    }
    item->why = NULL;
    item->record = (struct journal_record){
        .lsn = item->lsn,
        .type = type,
        .a = (uint8_t)(word >> 48),
        .b = (uint8_t)(word >> 56),
        .payload = bytes + JOURNAL_HEADER_BYTES,
        .bytes = item->bytes - JOURNAL_HEADER_BYTES,
    };
    return SEGMENT_RECORD;
}

/* How far what begins at item->lsn is no record. */
static enum segment_step measure(struct segment *segment, struct segment_item *item)
{
    struct segment_item next = {.lsn = item->lsn};
    uint64_t written_end = item->lsn; /* behind the last word that is not zero */
    enum segment_step step = SEGMENT_GAP;
    for (; step == SEGMENT_GAP && next.lsn < segment->end; next.lsn += JOURNAL_UNIT) {
        const unsigned char *bytes = look(segment, next.lsn, JOURNAL_UNIT);
        if (!bytes) {
            return SEGMENT_FAILED;
        }
        if (word_at(bytes) != 0) {
            written_end = next.lsn + JOURNAL_UNIT;
            step = judge(segment, &next);
        } else if (next.lsn >= written_end + ZEROES_BYTES && next.lsn >= segment_durable(segment)) {
            break;
        }
    }
    if (step == SEGMENT_FAILED) {
        return step;
    }
    item->resumes = step == SEGMENT_RECORD;
    item->bytes = (item->resumes ? next.lsn - JOURNAL_UNIT : written_end) - item->lsn;
    return item->bytes > 0 ? SEGMENT_GAP : SEGMENT_END;
}

enum segment_step segment_next(struct segment *segment, struct segment_item *item)
{
    CHECK(segment->state == JOURNAL_PAGE_SOUND);
    *item = (struct segment_item){.lsn = segment->at};
    if (segment->at >= segment->end) {
        return SEGMENT_END;
    }
    enum segment_step step = judge(segment, item);
    if (step == SEGMENT_GAP) {
        const char *why = item->why;
        step = measure(segment, item);
        item->why = why;
    }
    if (step == SEGMENT_GAP && !item->resumes) {
        segment->at = segment->end; /* nothing follows */
    } else if (step != SEGMENT_FAILED) {
        segment->at += item->bytes;
    }
    return step;
}
