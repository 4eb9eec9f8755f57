/* test_table_file_damage.c: no wrong byte, wherever it stands, is taken for what was written. */
#include "store/table_file.h"

#include "tests/unit/store/files.h"

#include <stdio.h>

#include "store/table_file_format.h"
#include "tests/support/find_entry.h"
#include "tests/support/random.h"
#include "tests/unit/store/table_run.h"

#define PAGE         TABLE_FILE_PAGE_BYTES
#define FUZZ_ROUNDS  3000
#define FINDINGS_MAX 40

/* table_small: the file's pages are header, 3 of the table, 2 and 3 of entries, index, checksums,
 * footer. Numbers count from after the header. */
enum { TABLE_PAGES = 3, FIRST_ENTRIES = 3, LAST_SECTION = 5, INDEX = 8, SUMS = 9, FOOTER = 10 };

static int sim_setup(void **state)
{
    struct vfs_sim *sim = table_sim_create(1);
    table_write_sound(vfs_sim_vfs(sim), TABLE_NAME, &table_small);
    *state = sim;
    return 0;
}

static int sim_teardown(void **state)
{
    vfs_sim_destroy(*state);
    return 0;
}

/* ---- what verify says ---- */

struct findings {
    unsigned count, stop_at;
    char text[FINDINGS_MAX][TABLE_FILE_ERROR_MAX];
};

static bool note(void *context, const char *finding)
{
    struct findings *findings = context;
    assert_true(findings->count < FINDINGS_MAX);
    snprintf(findings->text[findings->count++], TABLE_FILE_ERROR_MAX, "%s", finding);
    return findings->count != findings->stop_at;
}

static enum table_file_result verify(struct vfs_sim *sim, struct findings *findings)
{
    unsigned stop_at = findings->stop_at;
    memset(findings, 0, sizeof(*findings));
    findings->stop_at = stop_at;
    return table_file_verify(vfs_sim_vfs(sim), TABLE_PATH, true, note, findings);
}

static void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part)) {
        fail_msg("`%s` is not in: %s", part, text);
    }
}

/* Names the file and the page, and says what to do. */
static void assert_names_page(const char *text, unsigned page)
{
    char part[64];
    snprintf(part, sizeof(part), ": page %u at offset %u ", page, (page + 1) * PAGE);
    assert_says(text, TABLE_PATH);
    assert_says(text, part);
    assert_says(text, "restore");
}

static enum table_file_result read_it(struct vfs_sim *sim, char *error)
{
    return table_read_all(vfs_sim_vfs(sim), TABLE_PATH, &table_small, error);
}

/* ---- single bits ---- */

static void test_every_byte(void **state)
{
    struct vfs_sim *sim = *state;
    struct findings findings = {0};
    char error[TABLE_FILE_ERROR_MAX];
    struct test_random random = {test_seed()};
    uint64_t step = test_scaled(100) >= 100 ? 1 : 13; /* the sanitizers take every 13th byte */
    for (uint64_t offset = 0; offset < (FOOTER + 2) * PAGE; offset += step) {
        unsigned bit = (unsigned)test_random_below(&random, 8);
        unsigned page = (unsigned)(offset / PAGE) - 1;
        assert_true(vfs_sim_flip(sim, TABLE_PATH, offset, bit));
        assert_int_equal(verify(sim, &findings), TABLE_FILE_DAMAGED);
        assert_int_equal(read_it(sim, error), TABLE_FILE_DAMAGED);
        if (offset >= PAGE && page < SUMS) {
            assert_names_page(findings.text[0], page);
            assert_names_page(error, page);
        }
        assert_true(vfs_sim_flip(sim, TABLE_PATH, offset, bit));
    }
    assert_int_equal(read_it(sim, error), TABLE_FILE_DONE);
    assert_int_equal(verify(sim, &findings), TABLE_FILE_DONE);
}

/* A bad page is an error for what lies in it; all else is read. */
static void test_one_page(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    char error[TABLE_FILE_ERROR_MAX];
    unsigned char value[TABLE_FILE_VALUE_MAX], right[PAGE];
    uint64_t id, number;
    uint8_t sub;
    void *page = table_pages(1);
    assert_true(vfs_sim_flip(sim, TABLE_PATH, table_file_offset(1) + 77, 3));
    assert_true(vfs_sim_flip(sim, TABLE_PATH, table_file_offset(LAST_SECTION + 1) + 4000, 3));
    struct table_file *file = table_open_sound(vfs, TABLE_PATH, true);
    for (unsigned i = 0; i < TABLE_PAGES; i++) {
        enum table_file_result result = table_file_read_page(file, i, page, error);
        assert_int_equal(result, i == 1 ? TABLE_FILE_DAMAGED : TABLE_FILE_DONE);
        table_fill_page(&table_small, i, right);
        assert_true(i == 1 || memcmp(page, right, PAGE) == 0);
    }
    assert_names_page(error, 1);
    for (uint64_t i = 0; i < table_small.section[2].entries; i++) {
        table_entry_of(&table_small, 2, i, &id, &sub, right);
        assert_true(table_file_entry_page(file, 2, id, sub, &number));
        enum table_file_result result = find_entry(file, 2, id, sub, value, page, error);
        bool is_bad = number == LAST_SECTION + 1;
        assert_int_equal(result, is_bad ? TABLE_FILE_DAMAGED : TABLE_FILE_DONE);
        assert_true(is_bad || value[0] == right[0]);
    }
    assert_names_page(error, LAST_SECTION + 1);
    table_file_close(file);
    free(page);
}

static void test_several(void **state)
{
    struct vfs_sim *sim = *state;
    struct findings findings = {0};
    const unsigned bad[] = {0, 2, 4, 7};
    for (unsigned i = 0; i < 4; i++) {
        assert_true(vfs_sim_flip(sim, TABLE_PATH, table_file_offset(bad[i]) + i, 1));
    }
    assert_int_equal(verify(sim, &findings), TABLE_FILE_DAMAGED);
    assert_int_equal(findings.count, 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_names_page(findings.text[i], bad[i]);
    }
    findings.stop_at = 2;
    assert_int_equal(verify(sim, &findings), TABLE_FILE_STOPPED);
    assert_int_equal(findings.count, 2);
}

/* ---- whole pages, whole files ---- */

static void read_page_of(struct vfs *vfs, const char *path, uint64_t number, void *page)
{
    int fd = files_open(vfs, path, O_RDONLY);
    assert_int_equal(vfs_read_all(vfs, fd, page, PAGE, table_file_offset(number)), PAGE);
    files_close(vfs, fd);
}

static void write_page_of(struct vfs *vfs, const char *path, uint64_t number, const void *page)
{
    int fd = files_open(vfs, path, O_RDWR);
    assert_true(vfs_write_all(vfs, fd, page, PAGE, table_file_offset(number)));
    files_close(vfs, fd);
}

static void test_swapped(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    struct findings findings = {0};
    char error[TABLE_FILE_ERROR_MAX];
    unsigned char first[PAGE] = {0}, second[PAGE];
    assert_true(table_file_page_sum(first, 1, 0) != table_file_page_sum(first, 1, 1));
    assert_true(table_file_page_sum(first, 1, 0) != table_file_page_sum(first, 2, 0));
    for (unsigned a = 0; a < INDEX; a++) {
        unsigned b = (a + 1) % INDEX;
        read_page_of(vfs, TABLE_PATH, a, first);
        read_page_of(vfs, TABLE_PATH, b, second);
        write_page_of(vfs, TABLE_PATH, a, second);
        write_page_of(vfs, TABLE_PATH, b, first);
        assert_int_equal(read_it(sim, error), TABLE_FILE_DAMAGED);
        assert_names_page(error, a < b ? a : b);
        assert_int_equal(verify(sim, &findings), TABLE_FILE_DAMAGED);
        assert_int_equal(findings.count, 2);
        write_page_of(vfs, TABLE_PATH, a, first);
        write_page_of(vfs, TABLE_PATH, b, second);
    }
    assert_int_equal(read_it(sim, error), TABLE_FILE_DONE);
}

/* The same page of a file with the same contents, also header and footer, both or one. */
static void test_other_file(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    struct findings findings = {0};
    char error[TABLE_FILE_ERROR_MAX];
    unsigned char own[PAGE], other[PAGE];
    table_write_sound(vfs, "other", &table_small);
    for (uint64_t i = 0; i <= FOOTER + 1; i++) {
        uint64_t number = i - 1;
        read_page_of(vfs, TABLE_PATH, number, own);
        read_page_of(vfs, "data/other", number, other);
        write_page_of(vfs, TABLE_PATH, number, other);
        bool same = memcmp(own, other, PAGE) == 0; /* pages of the same contents are no harm */
        enum table_file_result expected =
            same && number < SUMS ? TABLE_FILE_DONE : TABLE_FILE_DAMAGED;
        assert_int_equal(read_it(sim, error), expected);
        assert_int_equal(verify(sim, &findings), expected);
        write_page_of(vfs, TABLE_PATH, number, own);
    }
    struct table_shape shape = table_small;
    shape.salt = 9;
    table_write_sound(vfs, "third", &shape);
    for (unsigned number = 0; number < INDEX; number++) {
        read_page_of(vfs, TABLE_PATH, number, own);
        read_page_of(vfs, "data/third", number, other);
        write_page_of(vfs, TABLE_PATH, number, other);
        assert_int_equal(read_it(sim, error), TABLE_FILE_DAMAGED);
        assert_names_page(error, number);
        write_page_of(vfs, TABLE_PATH, number, own);
    }
}

static void test_length(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    struct findings findings = {0};
    char error[TABLE_FILE_ERROR_MAX];
    int fd = files_open(vfs, TABLE_PATH, O_RDWR);
    assert_int_equal(vfs->functions->truncate(vfs, fd, (FOOTER + 2) * PAGE + 1), 0);
    assert_int_equal(read_it(sim, error), TABLE_FILE_DAMAGED);
    for (uint64_t bytes = (FOOTER + 2) * PAGE; bytes-- > 0; bytes -= bytes > 511 ? 511 : bytes) {
        assert_int_equal(vfs->functions->truncate(vfs, fd, bytes), 0);
        assert_int_equal(read_it(sim, error), TABLE_FILE_DAMAGED);
        assert_says(error, TABLE_PATH);
        assert_int_equal(verify(sim, &findings), TABLE_FILE_DAMAGED);
        assert_int_equal(findings.count, 1);
    }
    files_close(vfs, fd);
    assert_int_equal(vfs->functions->unlink(vfs, TABLE_PATH), 0);
    assert_int_equal(verify(sim, &findings), TABLE_FILE_ABSENT);
    assert_says(findings.text[0], "no such file");
}

/* ---- files with right checksums and wrong contents ---- */

struct forged {
    struct table_file_header *header;
    unsigned char *bytes;
    size_t length;
};

static struct forged forge(struct vfs_sim *sim)
{
    size_t length;
    void *bytes = vfs_read_file(vfs_sim_vfs(sim), TABLE_PATH, FILES_BYTES_MAX, &length);
    assert_non_null(bytes);
    assert_int_equal(length, (FOOTER + 2) * PAGE);
    return (struct forged){bytes, bytes, length};
}

static unsigned char *forged_page(const struct forged *forged, unsigned number)
{
    return forged->bytes + table_file_offset(number);
}

/* Puts it in place, with all checksums right. */
static void seal(struct vfs_sim *sim, const struct forged *forged)
{
    struct vfs *vfs = vfs_sim_vfs(sim);
    struct table_file_header *header = forged->header;
    struct table_file_footer *footer = (void *)forged_page(forged, FOOTER);
    uint32_t *sums = (void *)forged_page(forged, SUMS);
    for (unsigned i = 0; i < SUMS; i++) {
        sums[i] = table_file_page_sum(forged_page(forged, i), header->identity, i);
    }
    header->checksum = table_file_header_sum(header);
    footer->identity = header->identity;
    footer->header_checksum = header->checksum;
    footer->checksums_sum = hash_bytes(sums, PAGE, header->identity);
    footer->checksum = table_file_footer_sum(footer, header->identity);
    int fd = files_open(vfs, TABLE_PATH, O_RDWR);
    assert_true(vfs_write_all(vfs, fd, forged->bytes, forged->length, 0));
    files_close(vfs, fd);
}

static void test_newer(void **state)
{
    struct vfs_sim *sim = *state;
    struct forged forged = forge(sim);
    struct findings findings = {0};
    char error[TABLE_FILE_ERROR_MAX];
    seal(sim, &forged);
    assert_int_equal(read_it(sim, error), TABLE_FILE_DONE);
    forged.header->version++;
    seal(sim, &forged);
    assert_int_equal(read_it(sim, error), TABLE_FILE_NEWER);
    assert_says(error, "version 2");
    forged.header->version--;
    forged.header->features = 0x10;
    seal(sim, &forged);
    assert_int_equal(read_it(sim, error), TABLE_FILE_NEWER);
    assert_int_equal(verify(sim, &findings), TABLE_FILE_NEWER);
    assert_says(findings.text[0], "features 10");
    free(forged.bytes);
}

/* Entries that do not rise, within a page and from page to page; key and sub-key. */
static void test_order(void **state)
{
    struct vfs_sim *sim = *state;
    struct findings findings = {0};
    char error[TABLE_FILE_ERROR_MAX];
    const size_t entry = TABLE_FILE_KEY_BYTES + 1;
    static const struct {
        unsigned page;
        size_t entry;
        unsigned findings; /* the first entry of a page is in the index too */
    } places[] = {{LAST_SECTION, 1, 1},
                  {LAST_SECTION, 300, 1},
                  {LAST_SECTION + 1, 0, 2},
                  {LAST_SECTION + 2, 0, 2},
                  {LAST_SECTION + 2, 81, 1}};
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        struct forged forged = forge(sim);
        unsigned char *place = forged_page(&forged, places[i].page) + places[i].entry * entry;
        unsigned char kept[TABLE_FILE_KEY_BYTES];
        memcpy(kept, place, sizeof(kept));
        memset(place, 0, TABLE_FILE_KEY_BYTES);
        seal(sim, &forged);
        assert_int_equal(read_it(sim, error), TABLE_FILE_DAMAGED);
        assert_names_page(error, places[i].page);
        assert_says(error, "does not follow");
        assert_int_equal(verify(sim, &findings), TABLE_FILE_DAMAGED);
        assert_int_equal(findings.count, places[i].findings);
        assert_names_page(findings.text[0], places[i].page);
        memcpy(place, kept, sizeof(kept));
        seal(sim, &forged);
        free(forged.bytes);
    }
}

static void test_index_and_rest(void **state)
{
    struct vfs_sim *sim = *state;
    struct findings findings = {0};
    char error[TABLE_FILE_ERROR_MAX];
    struct forged forged = forge(sim);
    struct table_file_key *keys = (void *)forged_page(&forged, INDEX);
    keys[3].sub ^= 1; /* still rising: open cannot see it, verify does */
    seal(sim, &forged);
    assert_int_equal(read_it(sim, error), TABLE_FILE_DONE);
    assert_int_equal(verify(sim, &findings), TABLE_FILE_DAMAGED);
    assert_int_equal(findings.count, 1);
    assert_says(findings.text[0], "the index says");
    keys[3].id = 0;
    seal(sim, &forged);
    assert_int_equal(read_it(sim, error), TABLE_FILE_DAMAGED);
    assert_says(error, "index of section 2");
    free(forged.bytes);

    vfs_sim_destroy(sim);
    sim_setup(state);
    sim = *state;
    forged = forge(sim);
    forged_page(&forged, LAST_SECTION + 2)[PAGE - 1] = 1;
    seal(sim, &forged);
    assert_int_equal(read_it(sim, error), TABLE_FILE_DONE);
    assert_int_equal(verify(sim, &findings), TABLE_FILE_DAMAGED);
    assert_names_page(findings.text[0], LAST_SECTION + 2);
    assert_says(findings.text[0], "after its last entry");
    free(forged.bytes);
}

/* Numbers of the header that cannot be, checksums right: refused, and nothing is asked for. */
static void test_header_fuzz(void **state)
{
    struct vfs_sim *sim = *state;
    struct test_random random = {test_seed()};
    struct findings findings = {0};
    char error[TABLE_FILE_ERROR_MAX];
    struct forged forged = forge(sim);
    struct table_file_header sound = *forged.header;
    for (uint64_t round = 0; round < test_scaled(FUZZ_ROUNDS); round++) {
        size_t lengths_begin = offsetof(struct table_file_header, file_bytes);
        size_t range = offsetof(struct table_file_header, zeroes) - lengths_begin;
        unsigned changes = 1 + (unsigned)test_random_below(&random, 3);
        for (unsigned i = 0; i < changes; i++) {
            size_t at = lengths_begin + test_random_below(&random, range);
            ((unsigned char *)forged.header)[at] = (unsigned char)test_random_next(&random);
        }
        seal(sim, &forged);
        struct table_file *file = NULL;
        enum table_file_result result =
            table_file_open(vfs_sim_vfs(sim), TABLE_PATH, false, &file, error);
        assert_true(result == TABLE_FILE_DONE || result == TABLE_FILE_DAMAGED);
        table_file_close(file);
        findings.stop_at = FINDINGS_MAX - 1;
        verify(sim, &findings);
        *forged.header = sound;
    }
    free(forged.bytes);
}

static void test_impossible(void **state)
{
    struct vfs_sim *sim = *state;
    char error[TABLE_FILE_ERROR_MAX];
    struct forged forged = forge(sim);
    struct table_file_header *header = forged.header;
    struct table_file_header sound = *header;
    for (unsigned i = 0; i < 9; i++) {
        *header = sound;
        header->identity = i == 0 ? 0 : header->identity;
        header->sections = i == 1 ? TABLE_FILE_SECTIONS_MAX + 1 : header->sections;
        header->pages = i == 2 ? UINT64_MAX : header->pages;
        header->description_bytes = i == 3 ? TABLE_FILE_DESCRIPTION_MAX + 1 : 0;
        header->section[1].entries = i == 4 ? UINT64_MAX : 0;
        header->section[0].value_bytes = i == 5 ? UINT32_MAX : 64;
        header->kind[TABLE_FILE_KIND_MAX] = i == 6 ? 'x' : 0;
        memset(header->kind, 'k', i == 6 ? TABLE_FILE_KIND_MAX : 1);
        memset(header->space, 's', i == 7 ? TABLE_FILE_SPACE_MAX + 1 : 1);
        header->start_lsn = i == 8 ? TABLE_END_LSN + 1 : 0; /* S above E: the footer is wrong */
        seal(sim, &forged);
        assert_int_equal(read_it(sim, error), TABLE_FILE_DAMAGED);
        assert_says(error, i == 8 ? "footer" : "impossible");
    }
    *header = sound;
    ((struct table_file_footer *)forged_page(&forged, FOOTER))->magic++;
    seal(sim, &forged);
    assert_int_equal(read_it(sim, error), TABLE_FILE_DAMAGED);
    assert_says(error, "footer");
    free(forged.bytes);
}

/* A header that is sound by itself, and of the same file, but not the one it ended with. */
static void test_other_header(void **state)
{
    struct vfs_sim *sim = *state;
    char error[TABLE_FILE_ERROR_MAX];
    struct forged forged = forge(sim);
    forged.header->generation++;
    forged.header->checksum = table_file_header_sum(forged.header);
    write_page_of(vfs_sim_vfs(sim), TABLE_PATH, UINT64_MAX, forged.header); /* -1: the header */
    assert_int_equal(read_it(sim, error), TABLE_FILE_DAMAGED);
    assert_says(error, "footer");
    free(forged.bytes);
}

static void test_no_table(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    struct table_file *file = NULL;
    char error[TABLE_FILE_ERROR_MAX];
    static const unsigned char zeroes[3 * PAGE];
    files_write(vfs, "data/text", "something else", true);
    assert_int_equal(table_file_open(vfs, "data/text", true, &file, error), TABLE_FILE_DAMAGED);
    int fd = files_open(vfs, "data/zeroes", O_RDWR | O_CREAT);
    assert_true(vfs_write_all(vfs, fd, zeroes, sizeof(zeroes), 0));
    files_close(vfs, fd);
    assert_int_equal(table_file_open(vfs, "data/zeroes", true, &file, error), TABLE_FILE_DAMAGED);
    assert_says(error, "data/zeroes: no table file");
    assert_null(file);
}

#define SIM(test) cmocka_unit_test_setup_teardown(test, sim_setup, sim_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM(test_every_byte),   SIM(test_one_page),       SIM(test_several),     SIM(test_swapped),
        SIM(test_other_file),   SIM(test_length),         SIM(test_newer),       SIM(test_order),
        SIM(test_impossible),   SIM(test_index_and_rest), SIM(test_header_fuzz), SIM(test_no_table),
        SIM(test_other_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
