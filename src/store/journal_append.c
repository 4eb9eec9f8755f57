/*
 * journal_append.c: the stream of another node, taken as it is.
 *
 * The records are copied into the ring, checksums, pads and the other's own records included, so
 * the same bytes lie at the same LSNs. Only where segments end is this journal's affair: a record
 * that would cross the end begins the next segment, and the one before stays that much shorter.
 */
#include <stdio.h>

#include "base/check.h"
#include "store/journal_private.h"

#define APPEND_PIECE_BYTES (32u << 10) /* that find room together or not at all */

/* Records at `lsn`, in one piece of memory. */
struct piece {
    const uint64_t *records;
    uint64_t lsn, bytes;
};

static enum journal_appended append_bad(char error[JOURNAL_ERROR_MAX], uint64_t lsn,
                                        const char *why)
{
    snprintf(error, JOURNAL_ERROR_MAX, "the record at LSN %llu: %s", (unsigned long long)lsn, why);
    return JOURNAL_APPEND_BAD;
}

/* The record that begins where `left` bytes are left. */
static enum journal_appended journal_append_judge(const uint64_t *record, uint64_t left,
                                                  uint64_t lsn, char error[JOURNAL_ERROR_MAX])
{
    uint64_t bytes = journal_word_bytes(record[0]);
    if (bytes == 0 || bytes > left) {
        return append_bad(error, lsn, bytes == 0 ? "it has no length" : "it is not whole");
    }
    if ((uint32_t)record[0] != journal_record_checksum(record, lsn)) {
        return append_bad(error, lsn, "its checksum does not fit");
    }
    if (!journal_word_known(record[0])) {
        char why[64];
        snprintf(why, sizeof(why), "its type %u is unknown: a newer version has put it",
                 journal_word_type(record[0]));
        return append_bad(error, lsn, why);
    }
    return JOURNAL_APPENDED;
}

/* Takes as many sound records of what is given as make a piece and lie before `end`. */
static enum journal_appended cut_piece(struct piece *piece, uint64_t given, uint64_t end,
                                       char error[JOURNAL_ERROR_MAX])
{
    enum journal_appended judged = JOURNAL_APPENDED;
    while (piece->bytes < given && piece->bytes < APPEND_PIECE_BYTES) {
        const uint64_t *record = piece->records + piece->bytes / JOURNAL_UNIT;
        uint64_t lsn = piece->lsn + piece->bytes;
        judged = journal_append_judge(record, given - piece->bytes, lsn, error);
        uint64_t bytes = journal_word_bytes(record[0]);
        if (judged != JOURNAL_APPENDED || lsn + bytes > end) {
            break;
        }
        piece->bytes += bytes;
    }
    return piece->bytes > 0 ? JOURNAL_APPENDED : judged;
}

/* A record that crosses the segment's end comes next: the segment ends here. False: what is in
 * front of it cannot be written. */
static bool end_segment(struct journal *journal)
{
    uint64_t head = journal_ring_head(&journal->ring);
    pthread_mutex_lock(&journal->write_lock);
    bool written = journal_write_through(journal, head);
    if (written) {
        CHECK(journal->run.end == head && head > journal->current->header.start);
        journal->current->end = head;
        journal_ring_restart(&journal->ring);
        journal_set_limit(journal);
    }
    pthread_mutex_unlock(&journal->write_lock);
    journal_tell_moved(journal);
    return written;
}

static enum journal_appended append_piece(struct journal_writer *writer, struct piece *piece,
                                          uint64_t given, char error[JOURNAL_ERROR_MAX])
{
    struct journal *journal = writer->journal;
    uint64_t end = journal_ring_segment_end(&journal->ring, piece->lsn);
    enum journal_appended judged = cut_piece(piece, given, end, error);
    if (judged != JOURNAL_APPENDED) {
        return judged;
    }
    if (piece->bytes == 0) { /* a sound one that crosses the end */
        return end_segment(journal) ? JOURNAL_APPENDED : JOURNAL_APPEND_NO_ROOM;
    }
    if (!journal_reserve(writer, piece->bytes)) {
        return JOURNAL_APPEND_NO_ROOM;
    }
    writer->credit -= piece->bytes;
    journal_ring_append(&journal->ring, piece->records, piece->bytes / JOURNAL_UNIT);
    writer->end = piece->lsn + piece->bytes;
    writer->wrote = true;
    return JOURNAL_APPENDED;
}

enum journal_appended journal_append(struct journal_writer *writer, const void *bytes,
                                     size_t length, size_t *taken, char error[JOURNAL_ERROR_MAX])
{
    struct journal *journal = writer->journal;
    enum journal_appended result = JOURNAL_APPENDED;
    error[0] = '\0';
    *taken = 0;
    CHECK(length % JOURNAL_UNIT == 0 && (uintptr_t)bytes % JOURNAL_UNIT == 0);
    while (*taken < length && result == JOURNAL_APPENDED) {
        struct piece piece = {.records = (const uint64_t *)bytes + *taken / JOURNAL_UNIT,
                              .lsn = journal_ring_head(&journal->ring)};
        result = append_piece(writer, &piece, length - *taken, error);
        *taken += result == JOURNAL_APPENDED ? piece.bytes : 0;
    }
    (void)journal_submit(writer);
    return result;
}

/* A record that says who leads is where the history says: no pad comes before it. */
bool journal_stop_following(struct journal *journal)
{
    uint64_t head = journal_ring_head(&journal->ring);
    CHECK(journal->follows);
    if (journal_ring_segment_end(&journal->ring, head) - head < JOURNAL_REIGN_BYTES &&
        !end_segment(journal)) {
        return false;
    }
    journal->follows = false;
    return true;
}
