/* test_journal_format.c: header page, marks, names, checksums. */
#include "store/journal_format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "store/journal.h"
#include "tests/support/random.h"

static const struct journal_header sample = {
    .epoch = 3,
    .number = 17,
    .start = 0x123456789abcd8,
    .bytes = 1 << 20,
    .durable = 0x123456789a0000,
    .boot = 0xb007b007b007b007,
    .previous = {.number = 16, .start = 0x123456789000, .sum = 0xfedcba9876543210},
};

static _Alignas(uint64_t) unsigned char page[JOURNAL_PAGE_BYTES];

static enum journal_page_state decode(struct journal_header *header, struct journal_mark *mark)
{
    const char *why = NULL;
    enum journal_page_state state = journal_page_decode(page, header, mark, &why);
    assert_true((why != NULL) == (state != JOURNAL_PAGE_SOUND));
    return state;
}

static void put_mark(uint64_t serial, uint64_t durable, bool sealed)
{
    struct journal_mark mark = {
        .serial = serial, .durable = durable, .written = durable + 8, .sealed = sealed};
    unsigned char bytes[JOURNAL_MARK_BYTES];
    memcpy(page + journal_mark_encode(&sample, &mark, bytes), bytes, sizeof(bytes));
}

static void test_page(void **state)
{
    (void)state;
    struct journal_header header;
    struct journal_mark mark;
    journal_page_encode(&sample, page);
    assert_memory_equal(page, "RCjournl", 8);
    assert_int_equal(decode(&header, &mark), JOURNAL_PAGE_SOUND);
    assert_memory_equal(&header, &sample, sizeof(sample));
    assert_int_equal(mark.serial, 0);
    assert_int_equal(journal_end_of(&header), sample.start + (1 << 20) - 4096);
    assert_int_equal(journal_offset_of(&header, sample.start + 8), 4104);
    for (unsigned offset = 0; offset < JOURNAL_PAGE_BYTES; offset++) {
        page[offset] ^= 4;
        bool in_mark = (offset >= 1024 && offset < 1064) || (offset >= 2048 && offset < 2088);
        assert_int_equal(decode(&header, &mark), in_mark ? JOURNAL_PAGE_SOUND : JOURNAL_PAGE_BAD);
        assert_int_equal(mark.serial, 0);
        page[offset] ^= 4;
    }
    memset(page, 0, sizeof(page));
    assert_int_equal(decode(&header, &mark), JOURNAL_PAGE_BAD);
}

/* The newer one holds; damaged, the other. */
static void test_marks(void **state)
{
    (void)state;
    struct journal_header header;
    struct journal_mark mark;
    journal_page_encode(&sample, page);
    for (uint64_t serial = 1; serial < 10; serial++) {
        put_mark(serial, serial * 8, serial % 3 == 0);
        assert_int_equal(decode(&header, &mark), JOURNAL_PAGE_SOUND);
        assert_int_equal(mark.serial, serial);
        assert_int_equal(mark.durable, serial * 8);
        assert_int_equal(mark.written, serial * 8 + 8);
        assert_int_equal(mark.sealed, serial % 3 == 0);
    }
    unsigned newest = 9 % JOURNAL_MARKS == 0 ? 1024 : 2048;
    for (unsigned offset = newest; offset < newest + JOURNAL_MARK_BYTES; offset++) {
        page[offset] ^= 1;
        assert_int_equal(decode(&header, &mark), JOURNAL_PAGE_SOUND);
        assert_int_equal(mark.serial, 8);
        page[offset] ^= 1;
    }
}

/* A mark of another segment is none. */
static void test_foreign_mark(void **state)
{
    (void)state;
    struct journal_header header;
    struct journal_mark mark;
    struct journal_header other = sample;
    other.number++;
    journal_page_encode(&other, page);
    put_mark(5, 8000, true);
    assert_int_equal(decode(&header, &mark), JOURNAL_PAGE_SOUND);
    assert_int_equal(mark.serial, 0);
}

static void test_names(void **state)
{
    (void)state;
    static const uint64_t starts[] = {0, 8, 0x123456789abcdef0, UINT64_MAX - 7};
    static const char *const others[] = {
        "journal-",
        "journal-000000000000000",
        "journal-00000000000000000",
        "journal-000000000000000g",
        "journal-0000000000000A00",
        "journal--000000000000001",
        "journal-next.tmp",
        "journal-0000000000000000.tmp",
        "xjournal-0000000000000000",
        "manifest",
        "",
    };
    char name[JOURNAL_NAME_MAX];
    uint64_t start;
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
        journal_name(name, starts[i]);
        assert_true(journal_name_parse(name, &start));
        assert_int_equal(start, starts[i]);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        assert_false(journal_name_parse(others[i], &start));
    }
}

#define RECORD_WORDS  (JOURNAL_RECORD_MAX / JOURNAL_UNIT)
#define KNOWN_AT_4096 0x6fa992cau
#define KNOWN_AT_4104 0xb6ff0a7cu

/* Every bit of a record counts, and so does its place. */
static void check_record(size_t words)
{
    uint64_t record[RECORD_WORDS] = {journal_record_word(0, 77, (uint8_t)words, 5, 6)};
    for (size_t i = 1; i < words; i++) {
        record[i] = hash_u64(i);
    }
    uint32_t checksum = journal_record_checksum(record, 4096);
    record[0] |= checksum;
    assert_int_equal(journal_word_type(record[0]), 77);
    assert_int_equal(journal_word_bytes(record[0]), 8 * words);
    assert_int_equal((uint32_t)record[0], checksum);
    assert_int_equal(record[0] >> 48, 6 << 8 | 5);
    for (unsigned bit = 32; bit < 64 * words; bit++) {
        record[bit / 64] ^= 1ull << bit % 64;
        uint64_t hash = journal_hash(record[0], record + 1, words - 1);
        assert_int_not_equal(journal_checksum(hash, 4096), checksum);
        record[bit / 64] ^= 1ull << bit % 64;
    }
    assert_int_equal(journal_record_checksum(record, 4096), checksum);
    assert_int_not_equal(journal_record_checksum(record, 4104), checksum);
}

static void test_record(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 3, 4, 5, 100, RECORD_WORDS};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        check_record(lengths[i]);
    }
    assert_true(journal_sum(journal_sum(0, 1), 2) != journal_sum(journal_sum(0, 2), 1));
}

/* XXH3 of two words adds the seed to one and takes it from the other: the same bit in the header
 * and in both must not be nothing. */
static void test_record_bits_together(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        uint64_t word = journal_record_word(0, 16, 3, 1, 0x40);
        uint64_t payload[2] = {hash_u64(seed), seed};
        uint64_t hash = journal_hash(word, payload, 2);
        for (unsigned bit = 0; bit < 32; bit++) {
            uint64_t other[2] = {payload[0] ^ 1ull << bit, payload[1] ^ 1ull << bit};
            assert_true(journal_hash(word ^ 1ull << (bit + 32), other, 2) != hash);
        }
    }
}

/* What is on disks now: a change of it is another version. */
static void test_record_known(void **state)
{
    (void)state;
    const uint64_t record[3] = {journal_record_word(0, 16, 3, 1, 0x40), 42, 4711};
    assert_int_equal(journal_record_checksum(record, 4096), KNOWN_AT_4096);
    assert_int_equal(journal_record_checksum(record, 4104), KNOWN_AT_4104);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),         cmocka_unit_test(test_marks),
        cmocka_unit_test(test_foreign_mark), cmocka_unit_test(test_names),
        cmocka_unit_test(test_record),       cmocka_unit_test(test_record_bits_together),
        cmocka_unit_test(test_record_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
