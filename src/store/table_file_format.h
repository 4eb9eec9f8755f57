/*
 * table_file_format.h: a table file, byte for byte. All numbers are little-endian.
 *
 * The file is made of pages of 4096 bytes. Those after the header are counted from 0: page k begins
 * at 4096 * (k + 1).
 *
 *     section    pages   meaning
 *     header     1       what the file is, and the length of every section
 *     pages      N       the table's pages as in memory; any number, also none
 *     entries 0  .       records of a fixed size, rising; a section without records has no page
 *     ...                (8 sections at most)
 *     index      .       the first key of every page of entries, 256 a page, in the order of the
 *                        pages, zeroes after the last
 *     checksums  .       of every page from the first of `pages` to the last of the index: 4 bytes
 *                        each, 1024 a page, at least one page, zeroes after the last
 *     footer     1       what is known at the end
 *
 *     header
 *          0     8  magic "RCtablef"
 *          8     4  format version
 *         12     4  feature bits: a reader that does not know one refuses the file
 *         16     8  identity of the file: random, never 0
 *         24     8  size of the file in bytes
 *         32     8  serial of the table in its space
 *         40     8  generation
 *         48     8  S: LSN at the start of the image
 *         56     4  layer
 *         60     4  sections of entries
 *         64     8  N
 *         72     4  bytes of the description
 *         76     4  zero
 *         80    16  kind, zeroes up to its end
 *         96    40  space, zeroes up to its end
 *        136   128  8 times: records of the section (8), bytes of a value (4), zero (4)
 *        264   760  zero
 *       1024  2048  description: the engine's own, zeroes after it
 *       3072  1016  zero
 *       4088     8  XXH3 of the 4088 bytes before, seeded with the magic
 *
 *     entry
 *          0     8  id       \ the key: records rise by id, then by sub-key; none stands twice
 *          8     1  sub-key  /
 *          9     .  value
 *     A page holds as many as fit whole, every page of a section but its last is full, zeroes
 *     follow the last record of a page.
 *
 *     index entry
 *          0     8  id
 *          8     1  sub-key
 *          9     7  zero
 *
 *     checksum of page k: low half of its XXH3, seeded from the identity and k: so a page in
 *     another place, or of another file, is a wrong one
 *
 *     footer
 *          0     8  magic "RCtableE"
 *          8     8  identity of the file
 *         16     8  E: LSN at the end of the image
 *         24     8  XXH3 of the section of checksums, seeded with the identity
 *         32     8  XXH3 that ends the header
 *         40   216  zero
 *        256   264  the first 264 bytes of the header once more
 *        520   504  zero
 *       1024  2048  and its description
 *       3072  1016  zero
 *       4088     8  XXH3 of the 4088 bytes before, seeded with the identity
 *     So either of the two pages may be lost: the one tells what the other did (table_rescue.h).
 *
 * Every byte of the file is covered by one checksum or another. Header and footer are written last,
 * when all between them is durable: a file that has both is whole. Whatever the version, the magic,
 * the version and the header's checksum stay where they are.
 */
#ifndef ROLLCALL_STORE_TABLE_FILE_FORMAT_H
#define ROLLCALL_STORE_TABLE_FILE_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "store/table_file.h"

#define TABLE_FILE_MAGIC        0x66656c6261744352ull /* "RCtablef" */
#define TABLE_FILE_FOOTER_MAGIC 0x45656c6261744352ull /* "RCtableE" */
#define TABLE_FILE_VERSION      2u                    /* 1: the footer did not repeat the header */
#define TABLE_FILE_FEATURES     0u                    /* known ones */
#define TABLE_FILE_ENTRIES_MAX  (1ull << 48)
#define TABLE_FILE_PAGES_MAX    (1ull << 48)
#define TABLE_FILE_HEADER_BYTES 264u /* of the header, before its first zeroes */

struct table_file_header {
    uint64_t magic;
    uint32_t version;
    uint32_t features;
    uint64_t identity;
    uint64_t file_bytes;
    uint64_t serial;
    uint64_t generation;
    uint64_t start_lsn;
    uint32_t layer;
    uint32_t sections;
    uint64_t pages;
    uint32_t description_bytes;
    uint32_t zero;
    char kind[16];
    char space[40];
    struct {
        uint64_t entries;
        uint32_t value_bytes;
        uint32_t zero;
    } section[TABLE_FILE_SECTIONS_MAX];
    unsigned char zeroes[760];
    unsigned char description[TABLE_FILE_DESCRIPTION_MAX];
    unsigned char more_zeroes[1016];
    uint64_t checksum;
};

struct table_file_footer {
    uint64_t magic;
    uint64_t identity;
    uint64_t end_lsn;
    uint64_t checksums_sum;
    uint64_t header_checksum;
    unsigned char zeroes[216];
    unsigned char header[TABLE_FILE_HEADER_BYTES];
    unsigned char more_zeroes[504];
    unsigned char description[TABLE_FILE_DESCRIPTION_MAX];
    unsigned char last_zeroes[1016];
    uint64_t checksum;
};

struct table_file_key {
    uint64_t id;
    uint8_t sub;
    uint8_t zero[7];
};

_Static_assert(sizeof(struct table_file_header) == TABLE_FILE_PAGE_BYTES, "a page");
_Static_assert(offsetof(struct table_file_header, section) == 136, "as in the table above");
_Static_assert(offsetof(struct table_file_header, description) == 1024, "as in the table above");
_Static_assert(sizeof(struct table_file_footer) == TABLE_FILE_PAGE_BYTES, "a page");
_Static_assert(offsetof(struct table_file_header, zeroes) == TABLE_FILE_HEADER_BYTES, "all of it");
_Static_assert(offsetof(struct table_file_footer, description) == 1024, "as in the table above");
_Static_assert(sizeof(struct table_file_key) == 16, "as in the table above");

#define TABLE_FILE_KEYS_A_PAGE      (TABLE_FILE_PAGE_BYTES / sizeof(struct table_file_key))
#define TABLE_FILE_CHECKSUMS_A_PAGE (TABLE_FILE_PAGE_BYTES / sizeof(uint32_t))

static inline uint64_t table_file_header_sum(const struct table_file_header *header)
{
    return hash_bytes(header, offsetof(struct table_file_header, checksum), TABLE_FILE_MAGIC);
}

static inline uint64_t table_file_footer_sum(const struct table_file_footer *footer,
                                             uint64_t identity)
{
    return hash_bytes(footer, offsetof(struct table_file_footer, checksum), identity);
}

static inline uint32_t table_file_page_sum(const void *page, uint64_t identity, uint64_t number)
{
    return (uint32_t)hash_bytes(page, TABLE_FILE_PAGE_BYTES, hash_u64(identity ^ hash_u64(number)));
}

static inline uint64_t table_file_offset(uint64_t number)
{
    return (number + 1) * TABLE_FILE_PAGE_BYTES;
}

static inline size_t table_file_entry_bytes(uint32_t value_bytes)
{
    return TABLE_FILE_KEY_BYTES + value_bytes;
}

static inline size_t table_file_entries_a_page(uint32_t value_bytes)
{
    return TABLE_FILE_PAGE_BYTES / table_file_entry_bytes(value_bytes);
}

/* Returns the pages that `count` things take, at this many a page. */
static inline uint64_t table_file_pages_for(uint64_t count, uint64_t a_page)
{
    return count / a_page + (count % a_page != 0);
}

static inline struct table_file_key table_file_entry_key(const unsigned char *entry)
{
    struct table_file_key key = {.sub = entry[sizeof(uint64_t)]};
    memcpy(&key.id, entry, sizeof(key.id));
    return key;
}

static inline bool table_file_below(const struct table_file_key *a, const struct table_file_key *b)
{
    return a->id < b->id || (a->id == b->id && a->sub < b->sub);
}

#endif
