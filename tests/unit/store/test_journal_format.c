/* test_journal_format.c: header page, marks, names, checksums. */
#include "store/journal_format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random.h"

static const struct journal_header sample = {
    .epoch = 3,
    .number = 17,
    .start = 0x123456789abcd8,
    .bytes = 1 << 20,
    .durable = 0x123456789a0000,
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
    struct journal_mark mark = {.serial = serial, .durable = durable, .sealed = sealed};
    unsigned char bytes[JOURNAL_MARK_BYTES];
    memcpy(page + journal_mark_encode(&sample, &mark, bytes), bytes, sizeof bytes);
}

static void test_page(void **state)
{
    (void)state;
    struct journal_header header;
    struct journal_mark mark;
    journal_page_encode(&sample, page);
    assert_memory_equal(page, "RCjournl", 8);
    assert_int_equal(decode(&header, &mark), JOURNAL_PAGE_SOUND);
    assert_memory_equal(&header, &sample, sizeof sample);
    assert_int_equal(mark.serial, 0);
    assert_int_equal(journal_end_of(&header), sample.start + (1 << 20) - 4096);
    assert_int_equal(journal_offset_of(&header, sample.start + 8), 4104);
    for (unsigned offset = 0; offset < JOURNAL_PAGE_BYTES; offset++) {
        page[offset] ^= 4;
        bool in_mark = (offset >= 1024 && offset < 1056) || (offset >= 2048 && offset < 2080);
        assert_int_equal(decode(&header, &mark), in_mark ? JOURNAL_PAGE_SOUND : JOURNAL_PAGE_BAD);
        assert_int_equal(mark.serial, 0);
        page[offset] ^= 4;
    }
    memset(page, 0, sizeof page);
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
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        journal_name(name, starts[i]);
        assert_true(journal_name_parse(name, &start));
        assert_int_equal(start, starts[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(journal_name_parse(others[i], &start));
    }
}

/* Every bit of a record counts, and so does its place. */
static void test_record(void **state)
{
    (void)state;
    uint64_t record[4] = {journal_record_word(0, 77, 4, 5, 6), 1, 2, 3};
    uint32_t checksum = journal_record_checksum(record, 4096);
    record[0] |= checksum;
    assert_int_equal(journal_word_type(record[0]), 77);
    assert_int_equal(journal_word_bytes(record[0]), 32);
    assert_int_equal((uint32_t)record[0], checksum);
    assert_int_equal(record[0] >> 48, 6 << 8 | 5);
    unsigned char *bytes = (unsigned char *)record;
    for (unsigned bit = 32; bit < 8 * sizeof record; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_not_equal(journal_checksum(journal_hash(record[0], record + 1, 3), 4096),
                             checksum);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_int_equal(journal_checksum(journal_hash(record[0], record + 1, 3), 4096), checksum);
    assert_int_not_equal(journal_checksum(journal_hash(record[0], record + 1, 3), 4104), checksum);
    assert_true(journal_sum(journal_sum(0, 1), 2) != journal_sum(journal_sum(0, 2), 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),         cmocka_unit_test(test_marks),
        cmocka_unit_test(test_foreign_mark), cmocka_unit_test(test_names),
        cmocka_unit_test(test_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
