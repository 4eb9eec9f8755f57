/*
 * fuzz_store.c: what a start reads from the disk. The first byte of the input chooses:
 *     m  the rest is a manifest's text, its checksum's line put after it
 *     j  the rest is a segment of the journal, sealed: its header and its records get checksums
 *     t  changes of a sound table file: two bytes of offset, one to xor there; sealed anew
 *     f  the same, not sealed
 *     r  the rest is a segment as it is, and a manifest, and a table file
 * Nothing may crash a loader, whatever checksums say; and of what is sound no bit can be turned
 * over unseen.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "store/journal.h"
#include "store/journal_format.h"
#include "store/manifest.h"
#include "store/table_file.h"
#include "store/table_file_format.h"
#include "tests/fuzz/frozen_clock.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/find_entry.h"

#define DIRECTORY     MEMORY_FILE_DIRECTORY
#define TABLE_NAME    "feed-7-0-1" MANIFEST_TABLE_SUFFIX
#define TABLE_PATH    DIRECTORY "/" TABLE_NAME
#define PAGE          TABLE_FILE_PAGE_BYTES
#define CHECKSUM_LINE "checksum %016" PRIx64 "\n"
#define MANIFEST_SEED 0x54534546494e414dull /* of its checksum, as in manifest_text.c */
#define CHANGE_BYTES  3
#define RECORDS_BYTES (32u << 10) /* of a fuzzed segment */
#define FLIPS         4
#define TEXT_FLIPS    16

static struct memory_file file;

/* ---- manifest ---- */

static enum manifest_state parse(const char *text, size_t length, struct manifest **manifest)
{
    char error[MANIFEST_ERROR_MAX] = "";
    char *copy = fuzz_copy(text, length);
    enum manifest_state state = manifest_parse(copy, length, MANIFEST_NAME, manifest, error);

    CHECK(state == MANIFEST_SOUND || state == MANIFEST_DAMAGED || state == MANIFEST_NEWER);
    CHECK((state == MANIFEST_SOUND) == (error[0] == '\0'));
    CHECK(memchr(error, '\0', sizeof(error)) != NULL);
    free(copy);
    return state;
}

static void check_flips(struct buf *text, struct test_random *random)
{
    for (unsigned i = 0; i < TEXT_FLIPS; i++) {
        struct manifest *manifest;
        size_t at = test_random_below(random, text->length);
        char bit = (char)(1 << test_random_below(random, 8));

        text->data[at] ^= bit;
        CHECK(parse(text->data, text->length, &manifest) == MANIFEST_DAMAGED);
        text->data[at] ^= bit;
    }
}

/* A sound one says of itself what parses to the same. */
static void check_manifest(struct manifest *manifest, struct test_random *random)
{
    struct manifest *again;
    struct buf first;
    struct buf second;

    buf_init(&first, MANIFEST_BYTES_MAX, NULL);
    buf_init(&second, MANIFEST_BYTES_MAX, NULL);
    CHECK(manifest_compose(manifest, &first));
    CHECK(parse(first.data, first.length, &again) == MANIFEST_SOUND);
    CHECK(manifest_compose(again, &second));
    CHECK(first.length == second.length && memcmp(first.data, second.data, first.length) == 0);
    check_flips(&first, random);
    manifest_destroy(again);
    buf_fini(&first);
    buf_fini(&second);
}

static void run_manifest(const char *bytes, size_t length, struct test_random *random)
{
    struct manifest *manifest;
    struct buf text;
    char line[64];
    int line_length =
        snprintf(line, sizeof(line), CHECKSUM_LINE, hash_bytes(bytes, length, MANIFEST_SEED));

    buf_init(&text, MANIFEST_BYTES_MAX, NULL);
    CHECK(buf_append(&text, bytes, length) && buf_append(&text, line, (size_t)line_length));
    if (parse(text.data, text.length, &manifest) == MANIFEST_SOUND) {
        check_manifest(manifest, random);
        manifest_destroy(manifest);
    }
    buf_fini(&text);
}

/* ---- journal ---- */

struct records {
    uint64_t at; /* LSN after the last */
    uint64_t count;
};

static bool take_record(void *context, const struct journal_record *record)
{
    struct records *records = context;

    CHECK(record->lsn >= records->at && record->lsn % JOURNAL_UNIT == 0);
    CHECK(record->type >= JOURNAL_TYPES_RESERVED && record->bytes <= JOURNAL_PAYLOAD_MAX);
    CHECK((uintptr_t)record->payload % JOURNAL_UNIT == 0);
    records->at = record->lsn + JOURNAL_HEADER_BYTES + record->bytes;
    records->count++;
    return true;
}

static enum journal_scan_end scan_all(struct journal_scan *scan, struct records *records)
{
    *scan = (struct journal_scan){.from = JOURNAL_FROM_OLDEST};
    *records = (struct records){.at = 0};
    enum journal_scan_end end = journal_scan(&file.vfs, DIRECTORY, scan, take_record, records);

    CHECK(end != JOURNAL_SCAN_STOPPED && memchr(scan->error, '\0', JOURNAL_ERROR_MAX) != NULL);
    CHECK((end == JOURNAL_SCAN_DAMAGED || end == JOURNAL_SCAN_FAILED) == (scan->error[0] != '\0'));
    CHECK(records->at <= scan->end);
    return end;
}

/* Gives the records from `at` on their checksums, as far as they go. Returns where they end. */
static size_t seal_records(unsigned char *bytes, size_t length, uint64_t start)
{
    size_t at = 0;

    while (length - at >= JOURNAL_UNIT) {
        uint64_t word;

        memcpy(&word, bytes + at, sizeof(word));
        size_t whole = journal_word_bytes(word);

        if (word == 0 || whole == 0 || whole > length - at) {
            break;
        }
        uint32_t sum = journal_record_checksum(bytes + at, start + at);

        memcpy(bytes + at, &sum, sizeof(sum));
        at += whole;
    }
    return at;
}

static void check_journal_flips(uint64_t bytes_durable, struct test_random *random)
{
    struct journal_scan scan;
    struct records records;

    for (unsigned i = 0; i < FLIPS && bytes_durable > 0; i++) {
        size_t at = JOURNAL_PAGE_BYTES + test_random_below(random, bytes_durable);
        unsigned char bit = (unsigned char)(1 << test_random_below(random, 8));

        file.bytes[at] ^= bit;
        CHECK(scan_all(&scan, &records) == JOURNAL_SCAN_DAMAGED);
        file.bytes[at] ^= bit;
    }
}

static void run_journal(const unsigned char *bytes, size_t length, struct test_random *random)
{
    struct journal_header header = {.epoch = 1, .number = 1, .bytes = 64u << 10};
    uint64_t words[RECORDS_BYTES / sizeof(uint64_t)] = {0};
    unsigned char *records = (unsigned char *)words;
    unsigned char mark_bytes[JOURNAL_MARK_BYTES];
    struct journal_scan scan;
    struct records seen;
    char name[JOURNAL_NAME_MAX];
    size_t used = length < RECORDS_BYTES ? length : RECORDS_BYTES;

    header.start = test_random_below(random, 4) * JOURNAL_UNIT;
    memcpy(records, bytes, used);
    size_t sealed = seal_records(records, used, header.start);
    struct journal_mark mark = {.durable = header.start + sealed, .serial = 1};
    uint64_t mark_at = journal_mark_encode(&header, &mark, mark_bytes);

    journal_name(name, header.start);
    memory_file_set(&file, name, "", 0);
    journal_page_encode(&header, file.bytes);
    memcpy(file.bytes + mark_at, mark_bytes, sizeof(mark_bytes));
    memcpy(file.bytes + JOURNAL_PAGE_BYTES, records, used);
    file.length = JOURNAL_PAGE_BYTES + used;
    if (scan_all(&scan, &seen) != JOURNAL_SCAN_DAMAGED) {
        CHECK(scan.end >= mark.durable);
        check_journal_flips(sealed, random);
    }
}

/* ---- table file ---- */

static bool note(void *context, const char *finding)
{
    unsigned *count = context;

    CHECK(finding[0] != '\0');
    ++*count;
    return true;
}

static bool take_entry(void *context, uint64_t id, uint8_t sub, const void *value)
{
    uint64_t *sum = context;

    (void)value;
    *sum += hash_u64(id) ^ sub;
    return true;
}

static bool read_entries(const struct table_file *table, char error[TABLE_FILE_ERROR_MAX])
{
    const struct table_file_info *info = table_file_info(table);
    unsigned char *page = aligned_alloc(PAGE, PAGE);
    unsigned char value[TABLE_FILE_VALUE_MAX];
    uint64_t sum = 0;
    bool sound = true;

    for (unsigned i = 0; i < info->sections; i++) {
        enum table_file_result found = find_entry(table, i, 1000, 9, value, page, error);

        CHECK(found == TABLE_FILE_DONE || found == TABLE_FILE_ABSENT ||
              found == TABLE_FILE_DAMAGED);
        sound &= found != TABLE_FILE_DAMAGED;
        sound &= table_file_each_entry(table, i, take_entry, &sum, error) == TABLE_FILE_DONE;
    }
    free(page);
    return sound;
}

/* True: all of it could be read. */
static bool read_table(void)
{
    char error[TABLE_FILE_ERROR_MAX] = "";
    struct table_file *table;

    if (table_file_open(&file.vfs, TABLE_PATH, false, &table, error) != TABLE_FILE_DONE) {
        CHECK(error[0] != '\0' && memchr(error, '\0', sizeof(error)) != NULL);
        return false;
    }
    uint64_t pages = table_file_info(table)->pages;

    CHECK(pages * PAGE <= file.length);
    void *memory = aligned_alloc(PAGE, (pages + 1) * PAGE);
    bool sound =
        table_file_load_pages(table, 0, pages, memory, NULL, NULL, error) == TABLE_FILE_DONE;

    sound &= read_entries(table, error);
    free(memory);
    table_file_close(table);
    return sound;
}

/* True: sound. */
static bool look_at_table(void)
{
    unsigned findings = 0;
    enum table_file_result verified =
        table_file_verify(&file.vfs, TABLE_PATH, true, note, &findings);
    bool sound = read_table();

    CHECK((verified == TABLE_FILE_DONE) == (findings == 0));
    CHECK(sound || verified != TABLE_FILE_DONE);
    return verified == TABLE_FILE_DONE;
}

/* Three pages, and two sections of entries. */
static void write_table(void)
{
    static unsigned char pages[3 * PAGE];
    const struct table_file_info info = {.kind = "counter",
                                         .space = "feed",
                                         .serial = 7,
                                         .start_lsn = 64,
                                         .sections = 2,
                                         .section = {{.value_bytes = 8}, {.value_bytes = 1}},
                                         .description = "words",
                                         .description_bytes = 5};
    char error[TABLE_FILE_ERROR_MAX];
    struct table_file_writer *writer =
        table_file_create(&file.vfs, DIRECTORY, TABLE_NAME, &info, error);

    CHECK(writer != NULL && table_file_append_pages(writer, pages, 3));
    for (unsigned section = 0; section < info.sections; section++) {
        for (uint64_t id = 1000; id < 1500; id++) {
            CHECK(table_file_append_entry(writer, section, id, 9, &id));
        }
    }
    CHECK(table_file_commit(writer, 128, NULL, error));
}

/* The checksums of pages, of their section, of header and footer, as the file's size has them. */
static void seal_table(void)
{
    struct table_file_header *header = (struct table_file_header *)file.bytes;
    size_t pages = file.length / PAGE;
    struct table_file_footer *footer =
        (struct table_file_footer *)(file.bytes + (pages - 1) * PAGE);
    uint32_t *sums = (uint32_t *)(file.bytes + (pages - 2) * PAGE);

    for (uint64_t i = 0; i < pages - 3; i++) {
        sums[i] = table_file_page_sum(file.bytes + table_file_offset(i), header->identity, i);
    }
    header->checksum = table_file_header_sum(header);
    footer->identity = header->identity;
    footer->checksums_sum = hash_bytes(sums, PAGE, header->identity);
    footer->header_checksum = header->checksum;
    footer->checksum = table_file_footer_sum(footer, header->identity);
}

static void run_table(const unsigned char *bytes, size_t length, bool seal)
{
    static unsigned char *table;
    static size_t table_length;

    if (table == NULL) {
        frozen_clock_reset();
        write_table();
        table_length = file.length;
        table = (unsigned char *)fuzz_copy((const char *)file.bytes, table_length);
        seal_table();
        CHECK(memcmp(table, file.bytes, table_length) == 0 && look_at_table());
    }
    memory_file_set(&file, TABLE_NAME, table, table_length);
    for (size_t at = 0; length - at >= CHANGE_BYTES; at += CHANGE_BYTES) {
        size_t offset = bytes[at] | (size_t)bytes[at + 1] << 8;

        file.bytes[offset % table_length] ^= bytes[at + 2];
    }
    bool same = memcmp(table, file.bytes, table_length) == 0;

    if (seal) {
        seal_table();
    }
    bool sound = look_at_table();

    CHECK(seal || sound == same);
}

/* ---- as they are ---- */

static void run_raw(const char *bytes, size_t length)
{
    struct manifest *manifest;
    struct journal_scan scan;
    struct records records;
    char name[JOURNAL_NAME_MAX];
    size_t most = length < sizeof(file.bytes) ? length : sizeof(file.bytes);

    if (parse(bytes, length, &manifest) == MANIFEST_SOUND) {
        manifest_destroy(manifest);
    }
    journal_name(name, 0);
    memory_file_set(&file, name, bytes, most);
    scan_all(&scan, &records);
    memory_file_set(&file, TABLE_NAME, bytes, most);
    CHECK(!look_at_table());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct test_random random = fuzz_random(data, size);

    memory_file_init(&file);
    switch (data[0]) {
    case 'm':
        run_manifest((const char *)data + 1, size - 1, &random);
        break;
    case 'j':
        run_journal(data + 1, size - 1, &random);
        break;
    case 't':
    case 'f':
        run_table(data + 1, size - 1, data[0] == 't');
        break;
    default:
        run_raw((const char *)data + 1, size - 1);
        break;
    }
    return 0;
}
