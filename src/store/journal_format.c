/* journal_format.c: the header page of a segment and its name. */
#include "store/journal_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

#define HEADER_BYTES 512u
#define HEADER_WORDS (HEADER_BYTES / 8)
#define MARK_WORDS   (JOURNAL_MARK_BYTES / 8)
#define PAGE_WORDS   (JOURNAL_PAGE_BYTES / 8)
#define NAME_PREFIX  "journal-"
#define NAME_DIGITS  16

/* The words of a header and of a mark, in the order of the table in journal_format.h. */
enum header_word {
    WORD_MAGIC,
    WORD_VERSION, /* and the features above it */
    WORD_EPOCH,
    WORD_NUMBER,
    WORD_START,
    WORD_BYTES,
    WORD_DURABLE,
    WORD_PREVIOUS_NUMBER,
    WORD_PREVIOUS_START,
    WORD_PREVIOUS_SUM,
    WORD_BOOT,
    WORD_CHECKSUM = HEADER_WORDS - 1,
};

enum mark_word { MARK_DURABLE, MARK_WRITTEN, MARK_SERIAL, MARK_SEALED, MARK_CHECKSUM };

static const uint32_t mark_offset[JOURNAL_MARKS] = {1024, 2048};

static uint64_t header_checksum(const uint64_t *words)
{
    return hash_bytes(words, WORD_CHECKSUM * sizeof(*words), JOURNAL_MAGIC);
}

static uint64_t mark_checksum(const uint64_t *words, const struct journal_header *header)
{
    uint64_t seed = hash_u64(header->start) ^ header->number;
    return hash_bytes(words, MARK_CHECKSUM * sizeof(*words), seed);
}

void journal_page_encode(const struct journal_header *header, void *page)
{
    uint64_t words[HEADER_WORDS] = {
        [WORD_MAGIC] = JOURNAL_MAGIC,
        [WORD_VERSION] = JOURNAL_VERSION | (uint64_t)JOURNAL_FEATURES << 32,
        [WORD_EPOCH] = header->epoch,
        [WORD_NUMBER] = header->number,
        [WORD_START] = header->start,
        [WORD_BYTES] = header->bytes,
        [WORD_DURABLE] = header->durable,
        [WORD_PREVIOUS_NUMBER] = header->previous.number,
        [WORD_PREVIOUS_START] = header->previous.start,
        [WORD_PREVIOUS_SUM] = header->previous.sum,
        [WORD_BOOT] = header->boot,
    };
    CHECK(header->number > header->previous.number);
    words[WORD_CHECKSUM] = header_checksum(words);
    memset(page, 0, JOURNAL_PAGE_BYTES);
    memcpy(page, words, sizeof(words));
}

uint64_t journal_mark_encode(const struct journal_header *header, const struct journal_mark *mark,
                             void *bytes)
{
    uint64_t words[MARK_WORDS] = {
        [MARK_DURABLE] = mark->durable,
        [MARK_WRITTEN] = mark->written,
        [MARK_SERIAL] = mark->serial,
        [MARK_SEALED] = mark->sealed,
    };
    CHECK(mark->serial > 0);
    words[MARK_CHECKSUM] = mark_checksum(words, header);
    memcpy(bytes, words, sizeof(words));
    return mark_offset[mark->serial % JOURNAL_MARKS];
}

/* The mark at an offset, if it is sound and newer than *mark. */
static void mark_decode(const void *page, uint32_t offset, const struct journal_header *header,
                        struct journal_mark *mark)
{
    uint64_t words[MARK_WORDS];
    memcpy(words, (const char *)page + offset, sizeof(words));
    if (words[MARK_SERIAL] > mark->serial && words[MARK_CHECKSUM] == mark_checksum(words, header)) {
        *mark = (struct journal_mark){.durable = words[MARK_DURABLE],
                                      .written = words[MARK_WRITTEN],
                                      .serial = words[MARK_SERIAL],
                                      .sealed = words[MARK_SEALED] != 0};
    }
}

static bool in_mark(size_t offset)
{
    for (unsigned i = 0; i < JOURNAL_MARKS; i++) {
        if (offset - mark_offset[i] < JOURNAL_MARK_BYTES) {
            return true;
        }
    }
    return false;
}

static bool unused_is_zero(const void *page)
{
    uint64_t words[PAGE_WORDS];
    memcpy(words, page, sizeof(words));
    for (size_t i = HEADER_WORDS; i < PAGE_WORDS; i++) {
        if (words[i] != 0 && !in_mark(i * sizeof(*words))) {
            return false;
        }
    }
    return true;
}

static void header_decode(const uint64_t *words, struct journal_header *header)
{
    *header = (struct journal_header){
        .epoch = words[WORD_EPOCH],
        .number = words[WORD_NUMBER],
        .start = words[WORD_START],
        .bytes = words[WORD_BYTES],
        .durable = words[WORD_DURABLE],
        .boot = words[WORD_BOOT],
        .previous = {.number = words[WORD_PREVIOUS_NUMBER],
                     .start = words[WORD_PREVIOUS_START],
                     .sum = words[WORD_PREVIOUS_SUM]},
    };
}

static bool header_makes_sense(const struct journal_header *header)
{
    return header->number > header->previous.number && header->start % JOURNAL_UNIT == 0 &&
           header->bytes % JOURNAL_UNIT == 0 && header->bytes >= JOURNAL_PAGE_BYTES &&
           header->bytes < UINT64_MAX - header->start;
}

enum journal_page_state journal_page_decode(const void *page, struct journal_header *header,
                                            struct journal_mark *mark, const char **why)
{
    uint64_t words[HEADER_WORDS];
    memcpy(words, page, sizeof(words));
    *mark = (struct journal_mark){0};
    if (words[WORD_MAGIC] != JOURNAL_MAGIC) {
        *why = words[WORD_MAGIC] == 0 ? "there is no header" : "not a segment of a journal";
        return JOURNAL_PAGE_BAD;
    }
    if (words[WORD_CHECKSUM] != header_checksum(words)) {
        *why = "the header's checksum does not fit";
        return JOURNAL_PAGE_BAD;
    }
    if (words[WORD_VERSION] != (JOURNAL_VERSION | (uint64_t)JOURNAL_FEATURES << 32)) {
        *why = "of another version or with features this program does not know";
        return JOURNAL_PAGE_NEWER;
    }
    header_decode(words, header);
    if (!header_makes_sense(header) || !unused_is_zero(page)) {
        *why = "the header's page is damaged";
        return JOURNAL_PAGE_BAD;
    }
    for (unsigned i = 0; i < JOURNAL_MARKS; i++) {
        mark_decode(page, mark_offset[i], header, mark);
    }
    return JOURNAL_PAGE_SOUND;
}

bool journal_page_is_blank(const void *page)
{
    static const unsigned char nothing[HEADER_BYTES] = {0};
    return memcmp(page, nothing, sizeof(nothing)) == 0;
}

void journal_name(char name[JOURNAL_NAME_MAX], uint64_t start)
{
    snprintf(name, JOURNAL_NAME_MAX, NAME_PREFIX "%0*" PRIx64, NAME_DIGITS, start);
}

bool journal_name_temporary(const char *name)
{
    return strcmp(name, JOURNAL_SPARE_NAME) == 0 || strcmp(name, JOURNAL_AGAIN_NAME) == 0;
}

bool journal_name_parse(const char *name, uint64_t *start)
{
    const size_t prefix = sizeof(NAME_PREFIX) - 1;
    if (strncmp(name, NAME_PREFIX, prefix) != 0 || strlen(name) != prefix + NAME_DIGITS ||
        strspn(name + prefix, "0123456789abcdef") != NAME_DIGITS) {
        return false;
    }
    return sscanf(name + prefix, "%16" SCNx64, start) == 1;
}
