/* journal_salvage.c: reading a segment over bad places. */
#include "store/journal_salvage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

#define WINDOW_BYTES (1u << 20)  /* read at once */
#define ZEROES_BYTES (64u << 20) /* above the mark: nothing was written after so many */

bool salvage_init(struct salvage *salvage, struct vfs *vfs, const char *path)
{
    _Alignas(uint64_t) unsigned char page[JOURNAL_PAGE_BYTES] = {0};
    *salvage = (struct salvage){.vfs = vfs, .fd = vfs->functions->open(vfs, path, O_RDONLY)};
    if (salvage->fd < 0) {
        return false;
    }
    int64_t size = vfs->functions->size(vfs, salvage->fd);
    if (size < 0 || vfs_read_all(vfs, salvage->fd, page, sizeof(page), 0) < 0) {
        vfs_close(vfs, salvage->fd);
        return false;
    }
    salvage->size = (uint64_t)size;
    salvage->state = journal_page_decode(page, &salvage->header, &salvage->mark, &salvage->why);
    salvage->at = salvage->header.start;
    salvage->end =
        salvage->state == JOURNAL_PAGE_SOUND ? journal_end_of(&salvage->header) : salvage->at;
    salvage->window = memory_zalloc(WINDOW_BYTES);
    return true;
}

void salvage_trust(struct salvage *salvage, const struct journal_header *header)
{
    salvage->state = JOURNAL_PAGE_SOUND;
    salvage->header = *header;
    salvage->at = header->start;
    salvage->end = journal_end_of(header);
}

void salvage_fini(struct salvage *salvage)
{
    salvage->vfs->functions->close(salvage->vfs, salvage->fd);
    free(salvage->window);
    *salvage = (struct salvage){.fd = -1};
}

uint64_t salvage_durable(const struct salvage *salvage)
{
    uint64_t made = salvage->header.durable;
    return salvage->mark.durable > made ? salvage->mark.durable : made;
}

uint64_t salvage_reach(const struct salvage *salvage)
{
    uint64_t boot = salvage->vfs->functions->boot(salvage->vfs);
    uint64_t durable = salvage_durable(salvage);
    bool of_this_run = boot != 0 && salvage->header.boot == boot;
    return of_this_run && salvage->mark.written > durable ? salvage->mark.written : durable;
}

/* `bytes` bytes from lsn on, zeroes after the file's end; NULL with errno. */
static const unsigned char *journal_salvage_look(struct salvage *salvage, uint64_t lsn,
                                                 uint64_t bytes)
{
    bool there =
        lsn >= salvage->window_lsn && lsn + bytes <= salvage->window_lsn + salvage->window_bytes;
    if (!there) {
        ssize_t got = vfs_read_all(salvage->vfs, salvage->fd, salvage->window, WINDOW_BYTES,
                                   journal_offset_of(&salvage->header, lsn));
        if (got < 0) {
            return NULL;
        }
        memset(salvage->window + got, 0, WINDOW_BYTES - (size_t)got);
        salvage->window_lsn = lsn;
        salvage->window_bytes = WINDOW_BYTES;
    }
    return salvage->window + (lsn - salvage->window_lsn);
}

static uint64_t word_at(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    return word;
}

/* Looks for a sound record at item->lsn: RECORD, GAP (item->why) or FAILED. */
static enum salvage_step judge(struct salvage *salvage, struct salvage_item *item)
{
    const unsigned char *bytes = journal_salvage_look(salvage, item->lsn, JOURNAL_UNIT);
    if (!bytes) {
        return SALVAGE_FAILED;
    }
    uint64_t word = word_at(bytes);
    uint8_t type = journal_word_type(word);
    item->bytes = journal_word_bytes(word);
    item->why = word == 0 ? "nothing was written here" : "a record has no length";
    if (item->bytes == 0) {
        return SALVAGE_GAP;
    }
    item->why = "a record is longer than what is left";
    if (item->bytes > salvage->end - item->lsn) {
        return SALVAGE_GAP;
    }
    bytes = journal_salvage_look(salvage, item->lsn, item->bytes);
    if (!bytes) {
        return SALVAGE_FAILED;
    }
    item->why = "a record's checksum does not fit";
    if ((uint32_t)word != journal_record_checksum(bytes, item->lsn)) {
        return SALVAGE_GAP;
    }
    item->why = "a record's type is unknown";
    if (!journal_word_known(word)) {
        return SALVAGE_GAP;
    }
    item->why = NULL;
    item->word = word;
    item->record = (struct journal_record){
        .lsn = item->lsn,
        .type = type,
        .a = (uint8_t)(word >> 48),
        .b = (uint8_t)(word >> 56),
        .payload = bytes + JOURNAL_HEADER_BYTES,
        .bytes = item->bytes - JOURNAL_HEADER_BYTES,
    };
    return SALVAGE_RECORD;
}

/* How far what begins at item->lsn is no record. */
static enum salvage_step measure(struct salvage *salvage, struct salvage_item *item)
{
    struct salvage_item next = {.lsn = item->lsn};
    uint64_t written_end = item->lsn; /* after the last word that is not zero */
    enum salvage_step step = SALVAGE_GAP;
    for (; step == SALVAGE_GAP && next.lsn < salvage->end; next.lsn += JOURNAL_UNIT) {
        if (journal_offset_of(&salvage->header, next.lsn) >= salvage->size) {
            break;
        }
        const unsigned char *bytes = journal_salvage_look(salvage, next.lsn, JOURNAL_UNIT);
        if (!bytes) {
            return SALVAGE_FAILED;
        }
        if (word_at(bytes) != 0) {
            written_end = next.lsn + JOURNAL_UNIT;
            step = judge(salvage, &next);
        } else if (next.lsn >= written_end + ZEROES_BYTES && next.lsn >= salvage_durable(salvage)) {
            break;
        }
    }
    if (step == SALVAGE_FAILED) {
        return step;
    }
    item->resumes = step == SALVAGE_RECORD;
    item->bytes = (item->resumes ? next.lsn - JOURNAL_UNIT : written_end) - item->lsn;
    return item->bytes > 0 ? SALVAGE_GAP : SALVAGE_END;
}

enum salvage_step salvage_next(struct salvage *salvage, struct salvage_item *item)
{
    CHECK(salvage->state == JOURNAL_PAGE_SOUND);
    *item = (struct salvage_item){.lsn = salvage->at};
    if (salvage->at >= salvage->end) {
        return SALVAGE_END;
    }
    enum salvage_step step = judge(salvage, item);
    if (step == SALVAGE_GAP) {
        const char *why = item->why;
        step = measure(salvage, item);
        item->why = why;
    }
    if (step == SALVAGE_GAP && !item->resumes) {
        salvage->at = salvage->end; /* nothing follows */
    } else if (step != SALVAGE_FAILED) {
        salvage->at += item->bytes;
    }
    return step;
}

bool salvage_count(struct salvage *salvage, struct salvage_found *found)
{
    struct salvage_item item;
    enum salvage_step step = SALVAGE_GAP;
    while (step == SALVAGE_RECORD || step == SALVAGE_GAP) {
        step = salvage_next(salvage, &item);
        if (step == SALVAGE_RECORD) {
            bool lowest = found->records == 0 || item.lsn < found->first;
            found->first = lowest ? item.lsn : found->first;
            found->records++;
            found->bytes += item.bytes;
        }
    }
    return step == SALVAGE_END;
}
