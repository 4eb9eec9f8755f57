/* test_table_rescue.c: of a damaged table file all is had again but what lay in damaged pages. */
#include "store/table_rescue.h"

#include "tests/unit/store/files.h"

#include <stdio.h>

#include "store/one_bit.h"
#include "store/table_file_format.h"
#include "tests/support/find_entry.h"
#include "tests/support/random.h"
#include "tests/unit/store/table_run.h"

#define PAGE      TABLE_FILE_PAGE_BYTES
#define NEW_NAME  "feed-8.table"
#define NEW_PATH  TABLE_DIRECTORY "/" NEW_NAME
#define BLANK     0x5a
#define LOST_MAX  16
#define FIRST_IDS 1000u /* of section 0 */
#define A_PAGE_0  56u   /* entries */
#define A_PAGE_2  409u

/* table_small: pages of the file, counted from the header's. */
enum { HEADER, TABLE, ENTRIES_0 = 4, ENTRIES_2 = 6, INDEX = 9, SUMS, FOOTER, FILE_PAGES };

struct run {
    struct vfs_sim *sim;
    struct vfs *vfs;
    unsigned lost_count;
    struct table_rescue_lost lost[LOST_MAX];
    struct table_rescue_mended mended;
    unsigned present; /* entries looked at */
};

static int setup(void **state)
{
    struct run *run = calloc(1, sizeof(*run));
    assert_non_null(run);
    run->sim = table_sim_create(1);
    run->vfs = vfs_sim_vfs(run->sim);
    table_write_sound(run->vfs, TABLE_NAME, &table_small);
    *state = run;
    return 0;
}

static int teardown(void **state)
{
    struct run *run = *state;
    vfs_sim_destroy(run->sim);
    free(run);
    return 0;
}

/* ---- damaging ---- */

static void overwrite(struct run *run, unsigned page)
{
    unsigned char bytes[PAGE];
    struct test_random random = {.state = page + 1};
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)test_random_next(&random);
    }
    int fd = files_open(run->vfs, TABLE_PATH, O_RDWR);
    assert_true(vfs_write_all(run->vfs, fd, bytes, sizeof(bytes), (uint64_t)page * PAGE));
    files_close(run->vfs, fd);
}

static void cut(struct run *run, uint64_t bytes)
{
    int fd = files_open(run->vfs, TABLE_PATH, O_RDWR);
    assert_int_equal(run->vfs->functions->truncate(run->vfs, fd, bytes), 0);
    files_close(run->vfs, fd);
}

/* ---- rescuing ---- */

static void blank(void *context, const struct table_file_info *info, void *page)
{
    (void)context;
    assert_int_equal(info->serial, 7);
    for (unsigned i = 0; i < PAGE; i++) {
        assert_int_equal(((unsigned char *)page)[i], 0);
    }
    memset(page, BLANK, PAGE);
}

static void note_lost(void *context, const struct table_rescue_lost *lost)
{
    struct run *run = context;
    assert_true(run->lost_count < LOST_MAX);
    run->lost[run->lost_count++] = *lost;
}

static void rescue(struct run *run)
{
    char error[TABLE_FILE_ERROR_MAX];
    const struct table_rescue_told told = {.blank = blank, .lost = note_lost, .context = run};
    struct table_rescue *rescue;
    if (table_rescue_open(run->vfs, TABLE_PATH, TABLE_END_LSN, &rescue, error) != TABLE_FILE_DONE) {
        fail_msg("%s", error);
    }
    struct table_file_info info = *table_rescue_info(rescue);
    assert_int_equal(info.end_lsn, TABLE_END_LSN);
    run->lost_count = 0;
    assert_true(table_rescue_run(rescue, NULL, &told)); /* a look */
    unsigned count = run->lost_count;
    run->lost_count = 0;
    run->vfs->functions->unlink(run->vfs, NEW_PATH);
    struct table_file_writer *writer =
        table_file_create(run->vfs, TABLE_DIRECTORY, NEW_NAME, &info, error);
    assert_non_null(writer);
    assert_true(table_rescue_run(rescue, writer, &told));
    assert_int_equal(run->lost_count, count);
    assert_true(table_file_commit(writer, info.end_lsn, NULL, error));
    run->mended = *table_rescue_mended(rescue);
    table_rescue_close(rescue);
}

static bool is_lost(const struct run *run, uint64_t page)
{
    for (unsigned i = 0; i < run->lost_count; i++) {
        if (run->lost[i].page == page) {
            return true;
        }
    }
    return false;
}

static bool no_finding(void *context, const char *finding)
{
    (void)context;
    fail_msg("%s", finding);
    return false;
}

static void check_section(struct run *run, const struct table_file *file, unsigned section,
                          uint64_t first_page, unsigned a_page)
{
    char error[TABLE_FILE_ERROR_MAX];
    unsigned char wanted[TABLE_FILE_VALUE_MAX], found[TABLE_FILE_VALUE_MAX];
    void *page = table_pages(1);
    for (uint64_t i = 0; i < table_small.section[section].entries; i++) {
        uint64_t id;
        uint8_t sub;
        table_entry_of(&table_small, section, i, &id, &sub, wanted);
        bool lost = is_lost(run, first_page + i / a_page);
        enum table_file_result result = find_entry(file, section, id, sub, found, page, error);
        assert_int_equal(result, lost ? TABLE_FILE_ABSENT : TABLE_FILE_DONE);
        assert_true(lost || memcmp(wanted, found, table_small.section[section].value_bytes) == 0);
    }
    free(page);
}

/* The new file is sound, and has all of the old one that was not said to be lost. */
static void check(struct run *run)
{
    unsigned char wanted[PAGE];
    char error[TABLE_FILE_ERROR_MAX];
    assert_int_equal(table_file_verify(run->vfs, NEW_PATH, true, no_finding, NULL),
                     TABLE_FILE_DONE);
    struct table_file *file = table_open_sound(run->vfs, NEW_PATH, false);
    const struct table_file_info *info = table_file_info(file);
    assert_int_equal(info->description_bytes, 26);
    assert_memory_equal(info->description, "what only the engine knows", 26);
    assert_int_equal(info->start_lsn, TABLE_START_LSN);
    unsigned char *page = table_pages(1);
    for (uint64_t i = 0; i < table_small.pages; i++) {
        table_fill_page(&table_small, i, wanted);
        if (is_lost(run, i)) {
            memset(wanted, BLANK, sizeof(wanted));
        }
        assert_int_equal(table_file_read_page(file, i, page, error), TABLE_FILE_DONE);
        assert_memory_equal(page, wanted, PAGE);
    }
    free(page);
    check_section(run, file, 0, ENTRIES_0 - 1, A_PAGE_0);
    check_section(run, file, 2, ENTRIES_2 - 1, A_PAGE_2);
    table_file_close(file);
}

/* ---- the tests ---- */

/* Each page by itself: only those of the table and of entries cost something. */
static void test_each_page(void **state)
{
    struct run *run = *state;
    for (unsigned page = HEADER; page < FILE_PAGES; page++) {
        overwrite(run, page);
        rescue(run);
        check(run);
        bool costs = page >= TABLE && page < INDEX;
        assert_int_equal(run->lost_count, costs);
        if (costs) {
            assert_int_equal(run->lost[0].page, page - 1);
            assert_int_equal(run->lost[0].of_entries, page >= ENTRIES_0);
        }
        assert_int_equal(run->mended.header, page == HEADER);
        assert_int_equal(run->mended.footer, page == FOOTER);
        assert_int_equal(run->mended.checksums, page == SUMS);
        assert_int_equal(run->mended.index, page == INDEX);
        run->vfs->functions->unlink(run->vfs, TABLE_PATH);
        table_write_sound(run->vfs, TABLE_NAME, &table_small);
    }
}

/* Which entries are gone is told. */
static void test_told_entries(void **state)
{
    struct run *run = *state;
    overwrite(run, ENTRIES_0);
    overwrite(run, ENTRIES_2 + 2);
    rescue(run);
    check(run);
    assert_int_equal(run->lost_count, 2);
    assert_int_equal(run->lost[0].section, 0);
    assert_int_equal(run->lost[0].entries, A_PAGE_0);
    assert_true(run->lost[0].has_first && run->lost[0].has_last);
    assert_int_equal(run->lost[0].first_id, FIRST_IDS);
    assert_int_equal(run->lost[0].last_id, FIRST_IDS + A_PAGE_0 / 2 * 3);
    assert_int_equal(run->lost[1].section, 2);
    assert_int_equal(run->lost[1].entries, 900 - 2 * A_PAGE_2);
    assert_true(run->lost[1].has_first && !run->lost[1].has_last);
}

/* One bit, anywhere: nothing is lost. */
static void test_each_bit(void **state)
{
    struct run *run = *state;
    struct test_random random = {.state = test_seed()};
    for (uint64_t i = 0; i < test_scaled(60); i++) {
        uint64_t offset = test_random_below(&random, (uint64_t)FILE_PAGES * PAGE);
        unsigned bit = (unsigned)test_random_below(&random, 8);
        assert_true(vfs_sim_flip(run->sim, TABLE_PATH, offset, bit));
        rescue(run);
        check(run);
        assert_int_equal(run->lost_count, 0);
        assert_int_equal(run->mended.pages, offset >= PAGE && offset < INDEX * PAGE);
        assert_true(vfs_sim_flip(run->sim, TABLE_PATH, offset, bit));
    }
}

/* Several pages at once, but never both ends. */
static void test_many_pages(void **state)
{
    struct run *run = *state;
    struct test_random random = {.state = test_seed()};
    for (uint64_t i = 0; i < test_scaled(100); i++) {
        for (unsigned page = HEADER; page < FOOTER; page++) {
            if (page != SUMS && test_random_once_in(&random, 3)) {
                overwrite(run, page);
            }
        }
        rescue(run);
        check(run);
        run->vfs->functions->unlink(run->vfs, TABLE_PATH);
        table_write_sound(run->vfs, TABLE_NAME, &table_small);
    }
}

/* Without checksums nothing can be told from rubbish; a page that cannot be read is lost as one
 * that was damaged. */
static void test_cut_and_unreadable(void **state)
{
    struct run *run = *state;
    /* header, footer, tail, page 0; the second page of both runs: a call that hits one rule is not
     * counted by the next */
    for (unsigned first = 5; first <= 12; first += 7) {
        vfs_sim_fault(run->sim,
                      &(struct vfs_sim_fault){
                          .op = VFS_SIM_PREAD, .path = TABLE_NAME, .first = first, .times = 1});
    }
    rescue(run);
    vfs_sim_faults_end(run->sim);
    check(run);
    assert_int_equal(run->lost_count, 1);
    assert_int_equal(run->lost[0].page, 1);
    cut(run, SUMS * PAGE);
    rescue(run);
    check(run);
    assert_int_equal(run->lost_count, INDEX - TABLE);
    assert_true(run->mended.footer);
}

/* Both ends: then nothing says what it was. */
static void test_both_ends(void **state)
{
    struct run *run = *state;
    char error[TABLE_FILE_ERROR_MAX];
    struct table_rescue *rescue = NULL;
    overwrite(run, HEADER);
    overwrite(run, FOOTER);
    assert_int_equal(table_rescue_open(run->vfs, TABLE_PATH, TABLE_END_LSN, &rescue, error),
                     TABLE_FILE_DAMAGED);
    assert_non_null(strstr(error, TABLE_PATH));
    cut(run, 100);
    assert_int_equal(table_rescue_open(run->vfs, TABLE_PATH, TABLE_END_LSN, &rescue, error),
                     TABLE_FILE_DAMAGED);
    cut(run, 0);
    assert_int_equal(table_rescue_open(run->vfs, TABLE_PATH, TABLE_END_LSN, &rescue, error),
                     TABLE_FILE_DAMAGED);
    run->vfs->functions->unlink(run->vfs, TABLE_PATH);
    assert_int_equal(table_rescue_open(run->vfs, TABLE_PATH, TABLE_END_LSN, &rescue, error),
                     TABLE_FILE_ABSENT);
}

/* The end that the rescue tells of a file that ought to end at `end_lsn`. */
static uint64_t end_told(struct run *run, uint64_t end_lsn, bool *mended)
{
    char error[TABLE_FILE_ERROR_MAX];
    struct table_rescue *rescue = NULL;
    assert_int_equal(table_rescue_open(run->vfs, TABLE_PATH, end_lsn, &rescue, error),
                     TABLE_FILE_DONE);
    uint64_t told = table_rescue_info(rescue)->end_lsn;
    *mended = table_rescue_mended(rescue)->footer;
    table_rescue_close(rescue);
    return told;
}

/* A footer knows better, while it is sound; a file ends not before it begins. */
static void test_where_it_ends(void **state)
{
    struct run *run = *state;
    bool mended;
    uint64_t at = FOOTER * PAGE + offsetof(struct table_file_footer, end_lsn);
    assert_int_equal(end_told(run, TABLE_END_LSN + 8, &mended), TABLE_END_LSN);
    assert_false(mended);
    assert_true(vfs_sim_flip(run->sim, TABLE_PATH, at, 5));
    assert_int_equal(end_told(run, TABLE_END_LSN + 8, &mended), TABLE_END_LSN + 8);
    assert_true(mended);
    assert_int_equal(end_told(run, 0, &mended), TABLE_START_LSN);
}

/* Checksums are not made of pages that may be damaged themselves. */
static void test_sums_and_a_page(void **state)
{
    struct run *run = *state;
    overwrite(run, SUMS);
    overwrite(run, TABLE + 1);
    rescue(run);
    assert_false(run->mended.checksums);
    assert_int_equal(run->lost_count, INDEX - TABLE);
    check(run);
}

/* A sound footer, of another file: it says nothing of this one. */
static void test_another_footer(void **state)
{
    struct run *run = *state;
    unsigned char footer[PAGE];
    bool mended;
    table_write_sound(run->vfs, NEW_NAME, &table_small);
    int from = files_open(run->vfs, NEW_PATH, O_RDONLY);
    int to = files_open(run->vfs, TABLE_PATH, O_RDWR);
    assert_int_equal(vfs_read_all(run->vfs, from, footer, PAGE, FOOTER * PAGE), PAGE);
    assert_true(vfs_write_all(run->vfs, to, footer, PAGE, FOOTER * PAGE));
    files_close(run->vfs, from);
    files_close(run->vfs, to);
    assert_int_equal(end_told(run, TABLE_END_LSN + 8, &mended), TABLE_END_LSN + 8);
    assert_true(mended);
    rescue(run);
    check(run);
    assert_int_equal(run->lost_count, 0);
}

/* A header whose checksum fits, but whose sections do not make the file it tells of. */
static void test_impossible_numbers(void **state)
{
    struct run *run = *state;
    _Alignas(uint64_t) struct table_file_header header;
    char error[TABLE_FILE_ERROR_MAX];
    struct table_rescue *rescue = NULL;
    int fd = files_open(run->vfs, TABLE_PATH, O_RDWR);
    assert_int_equal(vfs_read_all(run->vfs, fd, &header, PAGE, 0), PAGE);
    header.file_bytes += PAGE;
    header.checksum = table_file_header_sum(&header);
    assert_true(vfs_write_all(run->vfs, fd, &header, PAGE, 0));
    files_close(run->vfs, fd);
    assert_int_equal(table_rescue_open(run->vfs, TABLE_PATH, TABLE_END_LSN, &rescue, error),
                     TABLE_FILE_DAMAGED);
    assert_non_null(strstr(error, TABLE_PATH ": the header holds impossible numbers"));
}

/* ---- a large one ---- */

#define KEYS_A_PAGE 256u /* of the index */
#define LARGE_PAGES 300u /* of entries: two of the index */

static const struct table_shape table_large = {
    .pages = LARGE_PAGES,
    .sections = 1,
    .section = {{.value_bytes = 64, .entries = (uint64_t)LARGE_PAGES * A_PAGE_0}},
};

static const struct table_shape table_pages_alone = {.pages = LARGE_PAGES};

static void write_large(struct run *run, const struct table_shape *shape)
{
    run->vfs->functions->unlink(run->vfs, TABLE_PATH);
    table_write_sound(run->vfs, TABLE_NAME, shape);
}

/* Whether the first key of a page of entries, counted from 0, can be had of the index. */
static void expect_told(const struct table_rescue_lost *lost, unsigned page, unsigned bad_index)
{
    assert_int_equal(lost->page, LARGE_PAGES + page);
    assert_int_equal(lost->entries, A_PAGE_0);
    assert_int_equal(lost->has_first, page / KEYS_A_PAGE != bad_index);
    assert_int_equal(lost->first_id, lost->has_first ? FIRST_IDS + page * A_PAGE_0 / 2 * 3 : 0);
    assert_int_equal(lost->has_last, (page + 1) / KEYS_A_PAGE != bad_index);
    assert_int_equal(lost->last_id, lost->has_last ? FIRST_IDS + (page + 1) * A_PAGE_0 / 2 * 3 : 0);
}

/* A damaged page of the index costs what that one tells. */
static void test_pages_of_index(void **state)
{
    struct run *run = *state;
    static const unsigned pages[] = {10, KEYS_A_PAGE - 1, KEYS_A_PAGE, LARGE_PAGES - 2};
    const unsigned count = sizeof(pages) / sizeof(pages[0]);
    for (unsigned bad = 0; bad <= 2; bad++) { /* 2: neither */
        write_large(run, &table_large);
        for (unsigned i = 0; i < count; i++) {
            overwrite(run, 1 + LARGE_PAGES + pages[i]);
        }
        if (bad < 2) {
            overwrite(run, 1 + 2 * LARGE_PAGES + bad);
        }
        rescue(run);
        assert_int_equal(run->mended.index, bad < 2);
        assert_int_equal(run->lost_count, count);
        for (unsigned i = 0; i < count; i++) {
            expect_told(&run->lost[i], pages[i], bad);
        }
    }
}

/* Of pages with a turned bit so many are mended, in each run, and the next one is lost as if more
 * of it were damaged. The first bit is tried first, so the test takes no time. */
static void test_too_many_bits(void **state)
{
    struct run *run = *state;
    static const struct table_shape many = {.pages = TABLE_RESCUE_MENDS_MAX + 2};
    write_large(run, &many);
    for (uint64_t page = 1; page <= TABLE_RESCUE_MENDS_MAX; page++) { /* all but the ends */
        assert_true(vfs_sim_flip(run->sim, TABLE_PATH, (TABLE + page) * PAGE, 0));
    }
    rescue(run);
    assert_int_equal(run->mended.pages, TABLE_RESCUE_MENDS_MAX);
    assert_int_equal(run->mended.untried, 0);
    assert_int_equal(run->lost_count, 0);
    assert_true(vfs_sim_flip(run->sim, TABLE_PATH, TABLE * PAGE, 0)); /* and one more */
    rescue(run);
    assert_int_equal(run->mended.pages, TABLE_RESCUE_MENDS_MAX);
    assert_int_equal(run->mended.untried, 1);
    assert_int_equal(run->lost_count, 1);
    assert_int_equal(run->lost[0].page, TABLE_RESCUE_MENDS_MAX);
    assert_false(run->lost[0].of_entries);
}

/* What cannot be written ends the rescue, be it a page or an entry. */
static void test_cannot_write(void **state)
{
    struct run *run = *state;
    const struct table_rescue_told told = {.blank = blank, .lost = note_lost, .context = run};
    for (unsigned entries = 0; entries < 2; entries++) {
        char error[TABLE_FILE_ERROR_MAX];
        struct table_rescue *rescue = NULL;
        write_large(run, entries ? &table_large : &table_pages_alone);
        assert_int_equal(table_rescue_open(run->vfs, TABLE_PATH, TABLE_END_LSN, &rescue, error),
                         TABLE_FILE_DONE);
        struct table_file_info info = *table_rescue_info(rescue);
        struct table_file_writer *writer =
            table_file_create(run->vfs, TABLE_DIRECTORY, NEW_NAME, &info, error);
        assert_non_null(writer);
        vfs_sim_counts_clear(run->sim);
        vfs_sim_fault(run->sim,
                      &(struct vfs_sim_fault){.op = VFS_SIM_PWRITE, .first = entries ? 2 : 1});
        assert_false(table_rescue_run(rescue, writer, &told));
        uint64_t written = vfs_sim_bytes(run->sim, VFS_SIM_PWRITE, NULL);
        assert_true(entries ? written == TABLE_FILE_BLOCK_BYTES : written == 0);
        vfs_sim_faults_end(run->sim);
        table_file_abandon(writer);
        table_rescue_close(rescue);
    }
}

/* ---- one bit ---- */

static bool is_alphabet(void *context, const void *block)
{
    (void)context;
    return memcmp(block, "abcdefgh", 8) == 0;
}

static void test_one_bit(void **state)
{
    (void)state;
    char block[] = "abcdefgh";
    for (unsigned i = 0; i < 64; i++) {
        block[i / 8] = (char)(block[i / 8] ^ 1 << i % 8);
        assert_true(one_bit_mend(block, 8, is_alphabet, NULL));
        assert_string_equal(block, "abcdefgh");
    }
    block[0] = 'b'; /* two bits */
    assert_false(one_bit_mend(block, 8, is_alphabet, NULL));
    assert_string_equal(block, "bbcdefgh");
}

#define UNIT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_each_page),          UNIT(test_told_entries),        UNIT(test_each_bit),
        UNIT(test_many_pages),         UNIT(test_cut_and_unreadable),  UNIT(test_both_ends),
        UNIT(test_where_it_ends),      UNIT(test_sums_and_a_page),     UNIT(test_another_footer),
        UNIT(test_impossible_numbers), UNIT(test_pages_of_index),      UNIT(test_cannot_write),
        UNIT(test_too_many_bits),      cmocka_unit_test(test_one_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
