/*
 * journal_format.h: the files of the journal, byte for byte. All numbers are little-endian.
 *
 * A segment is a file journal-<LSN where it begins, 16 hex digits>, made whole at once and zero
 * where nothing was written. What is not in place yet ends in VFS_TEMPORARY.
 *
 *     offset  size  meaning
 *          0   512  header, written once, before the segment gets its name
 *       1024    40  mark 0 \ how far the stream has come; written in turn. Each has its own sector,
 *       2048    40  mark 1 / so that a power cut leaves the other one whole
 *       4096     .  records, without a gap; the record with LSN x at 4096 + x - start
 *     All else below 4096 is zero. The file may be shorter than the header says: where the stream
 *     ends for good, with a clean end or below a mark's durable LSN. Else it has been cut.
 *
 *     header
 *          0     8  magic "RCjournl"
 *          8     4  format version
 *         12     4  feature bits: a reader that does not know one refuses the file
 *         16     8  epoch of the start that made it
 *         24     8  number: every segment of a directory has a higher one than all made before it
 *         32     8  LSN where it begins
 *         40     8  size of the file when full, a multiple of 8
 *         48     8  durable LSN when it was made
 *         56     8  its predecessor's number; 0: it is the first
 *         64     8  LSN where the predecessor begins
 *         72     8  running sum of the predecessor from there to where this one begins; 0: unknown
 *         80     8  run of the system that wrote it (vfs.h: boot); 0: unknown
 *         88   416  zero
 *        504     8  XXH3 of the 504 bytes before
 *
 *     mark: all zero until it is first written
 *          0     8  everything below this LSN is durable
 *          8     8  and below this one written: there until the system ends
 *         16     8  serial of the mark in this segment, from 1; the higher one holds
 *         24     8  1: sealed: a successor is there and durable, nothing more comes here
 *         32     8  XXH3 of the 32 bytes before, seeded from the segment's start and number
 *
 *     record: a multiple of 8 bytes; it never crosses the end of its segment
 *          0     4  checksum: of the XXH3 of the payload, seeded with the next 4 bytes, and the LSN
 *          4     1  type: 1 pad (fills a segment's end), 2 closed (a clean end), 3 a reign begins,
 *                   16.. the caller's
 *          5     1  length in units of 8 bytes, this header included
 *          6     1  a \ the caller's
 *          7     1  b /
 *          8     .  payload
 *     reign: 24 bytes of payload: epoch, the node that leads (0: it has no name), wall clock (s)
 *     Eight zero bytes where a record would begin: nothing was written here.
 *
 * A segment that was written again after a failed sync may take the place of several: then it is
 * longer, and pads stand where those ended.
 *
 * The running sum of a segment goes over the first 8 bytes of each of its records: they hold the
 * checksums of all the rest. The LSN in a record's checksum, and the seed of a mark's, make one
 * that stands elsewhere than it was written for a wrong one.
 *
 * Pure functions, any thread.
 */
#ifndef ROLLCALL_STORE_JOURNAL_FORMAT_H
#define ROLLCALL_STORE_JOURNAL_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "store/journal.h"
#include "store/vfs.h"

#define JOURNAL_MAGIC      0x6c6e72756f6a4352ull /* "RCjournl" */
#define JOURNAL_VERSION    4u /* 3: no reigns, and events did not name their spaces */
#define JOURNAL_FEATURES   0u /* known ones */
#define JOURNAL_PAGE_BYTES 4096u
#define JOURNAL_NAME_MAX   32
#define JOURNAL_SPARE_NAME "journal-next" VFS_TEMPORARY  /* the next segment, until its turn */
#define JOURNAL_AGAIN_NAME "journal-again" VFS_TEMPORARY /* one that is written again */
#define JOURNAL_MARKS      2
#define JOURNAL_UNIT       8u

enum journal_own_type { JOURNAL_PAD = 1, JOURNAL_CLOSED = 2, JOURNAL_REIGN = 3 };

#define JOURNAL_REIGN_BYTES 32u /* of its record */

/* A segment as its successor knows it. */
struct journal_link {
    uint64_t number; /* 0: there is none */
    uint64_t start;
    uint64_t sum; /* 0: unknown */
};

struct journal_header {
    uint64_t epoch;
    uint64_t number;
    uint64_t start;
    uint64_t bytes; /* of the file */
    uint64_t durable;
    uint64_t boot; /* 0: unknown */
    struct journal_link previous;
};

struct journal_mark {
    uint64_t durable, written;
    uint64_t serial; /* 0: there is none */
    bool sealed;
};

enum journal_page_state {
    JOURNAL_PAGE_SOUND,
    JOURNAL_PAGE_BAD,
    JOURNAL_PAGE_NEWER, /* whole, but of a version or with features this program does not know */
};

static inline uint64_t journal_end_of(const struct journal_header *header) /* LSN when full */
{
    return header->start + header->bytes - JOURNAL_PAGE_BYTES;
}

static inline uint64_t journal_offset_of(const struct journal_header *header, uint64_t lsn)
{
    return JOURNAL_PAGE_BYTES + lsn - header->start;
}

/* The whole page, without marks. */
void journal_page_encode(const struct journal_header *header, void *page);
/* BAD: *why says what is wrong (static). SOUND: the header and the newest mark. A damaged mark
 * counts as never written: it is only torn when it was being replaced. */
enum journal_page_state journal_page_decode(const void *page, struct journal_header *header,
                                            struct journal_mark *mark, const char **why);
/* Returns whether no byte of the header is there: a power cut may leave a segment its name alone.
 */
bool journal_page_is_blank(const void *page);

/* A mark and where it belongs in the file: that of the serial before stays. */
#define JOURNAL_MARK_BYTES 40u
uint64_t journal_mark_encode(const struct journal_header *header, const struct journal_mark *mark,
                             void *bytes);

void journal_name(char name[JOURNAL_NAME_MAX], uint64_t start);
bool journal_name_parse(const char *name, uint64_t *start); /* false: not a segment's name */
/* Returns whether it is one of the two. A start deletes them, or makes the first its own. */
bool journal_name_temporary(const char *name);

/* ---- records ---- */

static inline uint64_t journal_record_word(uint32_t checksum, uint8_t type, uint8_t units,
                                           uint8_t a, uint8_t b)
{
    return checksum | (uint64_t)type << 32 | (uint64_t)units << 40 | (uint64_t)a << 48 |
           (uint64_t)b << 56;
}

static inline uint8_t journal_word_type(uint64_t word)
{
    return (uint8_t)(word >> 32);
}

static inline uint64_t journal_word_bytes(uint64_t word) /* of the whole record */
{
    return (word >> 40 & 0xff) * JOURNAL_UNIT;
}

/* Returns whether there is a record of this type and length. Types of the caller are not looked at.
 */
static inline bool journal_word_known(uint64_t word)
{
    uint8_t type = journal_word_type(word);
    return type >= JOURNAL_TYPES_RESERVED || type == JOURNAL_PAD || type == JOURNAL_CLOSED ||
           (type == JOURNAL_REIGN && journal_word_bytes(word) == JOURNAL_REIGN_BYTES);
}

/* Odd, their bits without a pattern: 2^64 over the golden ratio, and over its like in three
 * dimensions, the root of x^4 = x + 1. */
#define JOURNAL_SPREAD 0x9e3779b97f4a7c15u
#define JOURNAL_GATHER 0xd1b54a32d192ed03u

/* What of a record's checksum does not depend on where it will stand. `word` is its first, with or
 * without the checksum in it. */
static inline uint64_t journal_hash(uint64_t word, const uint64_t *payload, size_t words)
{
    uint64_t seed = (word >> 32) * JOURNAL_SPREAD; /* XXH3 adds it as it is to a word */
    if (words == 2) {                              /* one slot of an id: nearly all records */
        return hash_words2(payload[0], payload[1], seed);
    }
    return hash_bytes(payload, words * sizeof(*payload), seed);
}

/* The first product spreads what LSNs differ by, the second brings all into the upper half. */
static inline uint32_t journal_checksum(uint64_t hash, uint64_t lsn)
{
    return (uint32_t)((hash ^ lsn * JOURNAL_SPREAD) * JOURNAL_GATHER >> 32);
}

/* Returns the checksum of a record that lies in one piece, aligned to 8, with a length. */
static inline uint32_t journal_record_checksum(const void *record, uint64_t lsn)
{
    const uint64_t *words = record;
    size_t count = journal_word_bytes(words[0]) / JOURNAL_UNIT - 1;
    return journal_checksum(journal_hash(words[0], words + 1, count), lsn);
}

/* Begins with 0 at a segment's start. */
static inline uint64_t journal_sum(uint64_t sum, uint64_t word)
{
    sum ^= word;
    return (sum << 29 | sum >> 35) * 0xbf58476d1ce4e5b9u;
}

#endif
