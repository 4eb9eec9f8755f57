/* journal_reader.c: finds the segment that holds an LSN, and reads whole records of it. */
#include "store/journal_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/memory.h"
#include "store/journal_chain.h"

#define LOOKS_MAX 5 /* at a directory that changes meanwhile */
/*
 * Wherever these bytes begin, a record begins in their first half. A payload may look like a record
 * before that one, and then it ends in the second half at the latest: the records that count begin
 * after both.
 */
#define LEAD_BYTES (2 * JOURNAL_RECORD_MAX)

void journal_reader_init(struct journal_reader *reader, struct vfs *vfs, const char *directory,
                         uint64_t lsn)
{
    *reader = (struct journal_reader){.vfs = vfs, .directory = directory, .at = lsn, .fd = -1};
    reader->front = memory_zalloc(JOURNAL_READER_FRONT + JOURNAL_READER_BYTES);
    reader->records = (uint64_t *)(void *)(reader->front + JOURNAL_READER_FRONT);
    CHECK((uintptr_t)reader->records % sizeof(uint64_t) == 0);
}

static void reader_close(struct journal_reader *reader)
{
    vfs_close(reader->vfs, reader->fd);
    reader->fd = -1;
}

void journal_reader_fini(struct journal_reader *reader)
{
    reader_close(reader);
    free(reader->front);
}

bool journal_reader_is_last(const struct journal_reader *reader)
{
    struct stat status;

    return reader->fd >= 0 && fstat(reader->fd, &status) == 0 && status.st_nlink == 0;
}

/* ---- the segment ---- */

/* JOURNAL_READ_NOTHING: it was deleted, or is not there yet: look again. */
static enum journal_read reader_take(struct journal_reader *reader,
                                     const struct journal_found *found)
{
    reader_close(reader);
    reader->fd = vfs_open_in(reader->vfs, reader->directory, found->name, O_RDONLY);
    if (reader->fd < 0) {
        snprintf(reader->error, sizeof(reader->error), "%s: %s", found->name, strerror(errno));
        return JOURNAL_READ_NOTHING;
    }
    reader->header = found->header;
    reader->end = found->end;
    reader->began = found->header.start == reader->at && found->header.previous.number != 0 &&
                    found->header.previous.sum != 0;
    return JOURNAL_READ_RECORDS;
}

static enum journal_read reader_choose(struct journal_reader *reader,
                                       const struct journal_chain *chain)
{
    for (size_t i = chain->live_count; i > 0; i--) {
        const struct journal_found *found = chain->live[i - 1];

        if (found->header.start <= reader->at && reader->at < found->end) {
            return reader_take(reader, found);
        }
    }
    if (chain->live_count > 0 && reader->at < chain->live[0]->header.start) {
        return JOURNAL_READ_GONE;
    }
    snprintf(reader->error, sizeof(reader->error), "no segment of the journal holds LSN %llu",
             (unsigned long long)reader->at);
    return JOURNAL_READ_NOTHING;
}

/* RECORDS: it is open. */
static enum journal_read reader_find(struct journal_reader *reader)
{
    enum journal_read found = JOURNAL_READ_NOTHING;

    for (unsigned i = 0; i < LOOKS_MAX && found == JOURNAL_READ_NOTHING; i++) {
        struct journal_chain chain;

        if (journal_chain_init(&chain, reader->vfs, reader->directory, reader->error)) {
            found = reader_choose(reader, &chain);
        }
        journal_chain_fini(&chain);
    }
    return found == JOURNAL_READ_NOTHING ? JOURNAL_READ_BAD : found;
}

/* ---- records ---- */

static bool reader_is_sound(const struct journal_reader *reader, size_t at)
{
    const uint64_t *record = reader->records + at / sizeof(uint64_t);

    return (uint32_t)*record == journal_record_checksum(record, reader->at + at);
}

/* Bytes of whole, sound records at the front of those. *cut: one more has begun that the bytes
 * only end. */
static size_t reader_sound(const struct journal_reader *reader, size_t length, bool *cut)
{
    size_t at = 0;

    *cut = false;
    while (at < length) {
        size_t bytes = journal_word_bytes(reader->records[at / sizeof(uint64_t)]);

        if (bytes == 0) {
            return at;
        }
        if (at + bytes > length) {
            *cut = true;
            return at;
        }
        if (!reader_is_sound(reader, at)) {
            return at;
        }
        at += bytes;
    }
    return at;
}

/* NOTHING: none is whole. BAD: none is sound, as far as this file is concerned. */
static enum journal_read reader_read(struct journal_reader *reader, uint64_t limit)
{
    uint64_t until = reader->end < limit ? reader->end : limit;
    uint64_t left = until - reader->at;
    size_t length = left < JOURNAL_READER_BYTES ? (size_t)left : JOURNAL_READER_BYTES;
    bool cut;
    ssize_t got = vfs_read_all(reader->vfs, reader->fd, reader->records, length,
                               journal_offset_of(&reader->header, reader->at));

    if (got < 0) {
        snprintf(reader->error, sizeof(reader->error), "journal at LSN %llu: %s",
                 (unsigned long long)reader->at, strerror(errno));
        return JOURNAL_READ_BAD;
    }
    reader->length = reader_sound(reader, (size_t)got & ~(size_t)7, &cut);
    if (reader->length > 0) {
        reader->at += reader->length;
        return JOURNAL_READ_RECORDS;
    }
    snprintf(reader->error, sizeof(reader->error), "no sound record begins at LSN %llu",
             (unsigned long long)reader->at);
    return cut && reader->at + JOURNAL_RECORD_MAX > limit ? JOURNAL_READ_NOTHING : JOURNAL_READ_BAD;
}

/* A file that was replaced holds nothing beyond that: another look finds the one that does. */
enum journal_read journal_reader_next(struct journal_reader *reader, uint64_t limit)
{
    enum journal_read found = JOURNAL_READ_BAD;

    reader->length = 0;
    if (reader->at >= limit) {
        return JOURNAL_READ_NOTHING;
    }
    if (reader->fd >= 0 && reader->at < reader->end) {
        reader->began = false;
        found = reader_read(reader, limit);
    }
    for (unsigned i = 0; i < LOOKS_MAX && found == JOURNAL_READ_BAD; i++) {
        found = reader_find(reader);
        if (found != JOURNAL_READ_RECORDS) {
            return found;
        }
        found = reader_read(reader, limit);
    }
    return found;
}

/* ---- what stands before ---- */

/* Those of the records that were read last that begin below the LSN. */
static void before_add(const struct journal_reader *reader, uint64_t lsn,
                       struct journal_before *before)
{
    uint64_t at = reader->at - reader->length;

    for (size_t i = 0; i < reader->length && at + i < lsn;) {
        uint64_t word = reader->records[i / sizeof(uint64_t)];

        if (lsn - (at + i) <= JOURNAL_BEFORE_BYTES) {
            before->from = before->sum == 0 ? at + i : before->from;
            before->sum = journal_sum(before->sum, word);
        }
        before->last = at + i;
        before->last_sum = journal_sum(0, word);
        i += journal_word_bytes(word);
        before->crosses = at + i > lsn;
    }
}

/*
 * Moves to a record far enough before the LSN: a segment may have GiB, of which each 256 MiB would
 * take 150 ms, and longer from a disk. If none is found the whole is read.
 */
static void before_begin(struct journal_reader *reader, uint64_t lsn)
{
    uint64_t start = reader->header.start;
    ssize_t got = 0;

    reader->at = start;
    if (lsn - start > JOURNAL_BEFORE_BYTES + LEAD_BYTES) {
        reader->at = (lsn - JOURNAL_BEFORE_BYTES - LEAD_BYTES) & ~(uint64_t)(JOURNAL_UNIT - 1);
        got =
            vfs_read_all(reader->vfs, reader->fd, reader->records, LEAD_BYTES + JOURNAL_RECORD_MAX,
                         journal_offset_of(&reader->header, reader->at));
    }
    for (size_t at = 0; got == LEAD_BYTES + JOURNAL_RECORD_MAX && at < LEAD_BYTES;
         at += JOURNAL_UNIT) {
        if (journal_word_bytes(reader->records[at / sizeof(uint64_t)]) > 0 &&
            reader_is_sound(reader, at)) {
            reader->at += at;
            return;
        }
    }
    reader->at = start;
}

/* Reads on from a record, as far as the LSN. */
static enum journal_read before_read(struct journal_reader *reader, uint64_t lsn, uint64_t limit,
                                     struct journal_before *before)
{
    enum journal_read found = JOURNAL_READ_RECORDS;

    *before = (struct journal_before){.sum = 0};
    while (found == JOURNAL_READ_RECORDS && reader->at < lsn) {
        found = journal_reader_next(reader, limit);
        before_add(reader, lsn, before);
    }
    return found;
}

enum journal_read journal_reader_before(struct vfs *vfs, const char *directory, uint64_t lsn,
                                        uint64_t limit, struct journal_before *before)
{
    struct journal_reader reader;

    *before = (struct journal_before){.sum = 0};
    if (lsn == 0) {
        return JOURNAL_READ_NOTHING;
    }
    journal_reader_init(&reader, vfs, directory, lsn - JOURNAL_UNIT);
    enum journal_read found = reader_find(&reader);

    if (found == JOURNAL_READ_RECORDS) {
        before_begin(&reader, lsn);
        bool whole = reader.at == reader.header.start;

        found = before_read(&reader, lsn, limit, before);
        if (found == JOURNAL_READ_BAD && !whole) { /* it may have been no record that began there */
            reader.at = reader.header.start;
            found = before_read(&reader, lsn, limit, before);
        }
    }
    journal_reader_fini(&reader);
    return found == JOURNAL_READ_GONE      ? JOURNAL_READ_NOTHING
           : found == JOURNAL_READ_NOTHING ? JOURNAL_READ_BAD
                                           : found;
}
