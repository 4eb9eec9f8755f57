/* test_table_file.c: what is written is read, at the cost that was promised. */
#include "store/table_file.h"

#include "tests/unit/store/files.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "tests/support/find_entry.h"
#include "tests/support/random.h"
#include "tests/unit/store/table_run.h"

#define THREADS  4
#define LOOK_UPS 2000

static int sim_setup(void **state)
{
    *state = table_sim_create(1);
    return 0;
}

static int sim_teardown(void **state)
{
    vfs_sim_destroy(*state);
    return 0;
}

static bool no_finding(void *context, const char *finding)
{
    (void)context;
    fail_msg("%s", finding);
    return true;
}

/* Entries that just fill pages, one more, values of nothing and of the most, nothing at all. */
static const struct table_shape shapes[] = {
    {.pages = 0, .sections = 0},
    {.pages = 1, .sections = 0},
    {.pages = 0, .sections = 1, .section = {{.value_bytes = 8, .entries = 1}}},
    {.pages = 0, .sections = 1, .section = {{.value_bytes = 0, .entries = 455}}},
    {.pages = 2, .sections = 1, .section = {{.value_bytes = 0, .entries = 456}}},
    {.pages = 255, .sections = 2, .section = {{.value_bytes = 7}, {.value_bytes = 7}}},
    {.pages = 256,
     .sections = 8,
     .section = {{.value_bytes = TABLE_FILE_VALUE_MAX, .entries = 1000},
                 {.value_bytes = 3, .entries = 1},
                 {.value_bytes = 3, .entries = 0},
                 {.value_bytes = 64, .entries = 56},
                 {.value_bytes = 64, .entries = 57},
                 {.value_bytes = 1, .entries = 0},
                 {.value_bytes = 23, .entries = 128},
                 {.value_bytes = 2, .entries = 2000}}},
    {.pages = 1021, .sections = 1, .section = {{.value_bytes = 8, .entries = 241}}},
    {.pages = 1300, .sections = 1, .section = {{.value_bytes = 1015, .entries = 3000}}},
};

static void test_round_trip(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        table_write_sound(vfs, TABLE_NAME, &shapes[i]);
        table_check(vfs, TABLE_PATH, false, &shapes[i]);
        table_check(vfs, TABLE_PATH, true, &shapes[i]);
        assert_int_equal(table_file_verify(vfs, TABLE_PATH, true, no_finding, NULL),
                         TABLE_FILE_DONE);
        assert_int_equal(vfs->functions->unlink(vfs, TABLE_PATH), 0);
    }
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_OPEN, TABLE_NAME),
                     vfs_sim_calls(sim, VFS_SIM_CLOSE, TABLE_NAME));
}

/* The longest texts and description; nothing of a description. */
static void test_limits(void **state)
{
    struct vfs *vfs = vfs_sim_vfs(*state);
    char description[TABLE_FILE_DESCRIPTION_MAX];
    char error[TABLE_FILE_ERROR_MAX];
    uint64_t bytes = 0;
    memset(description, 0xa5, sizeof(description));
    struct table_file_info info = {.start_lsn = UINT64_MAX,
                                   .serial = UINT64_MAX,
                                   .layer = UINT32_MAX,
                                   .description = description,
                                   .description_bytes = sizeof(description)};
    memset(info.kind, 'k', TABLE_FILE_KIND_MAX);
    memset(info.space, 's', TABLE_FILE_SPACE_MAX);
    for (int round = 0; round < 2; round++) {
        const char *name = round == 0 ? "full" : "empty";
        struct table_file_writer *writer =
            table_file_create(vfs, TABLE_DIRECTORY, name, &info, error);
        assert_non_null(writer);
        assert_string_equal(table_file_writer_error(writer), "");
        assert_true(table_file_commit(writer, UINT64_MAX, &bytes, error));
        struct table_file *file =
            table_open_sound(vfs, round == 0 ? "data/full" : "data/empty", true);
        const struct table_file_info *found = table_file_info(file);
        assert_string_equal(found->kind, info.kind);
        assert_string_equal(found->space, info.space);
        assert_int_equal(found->end_lsn, UINT64_MAX);
        assert_int_equal(found->layer, info.layer);
        assert_int_equal(found->file_bytes, bytes);
        assert_int_equal(found->description_bytes, info.description_bytes);
        assert_memory_equal(found->description, description, info.description_bytes);
        table_file_close(file);
        info = (struct table_file_info){.start_lsn = 0};
    }
}

/* Two files of the same contents do not have the same identity. */
static void test_identity(void **state)
{
    struct vfs *vfs = vfs_sim_vfs(*state);
    table_write_sound(vfs, "a", &table_small);
    table_write_sound(vfs, "b", &table_small);
    struct table_file *a = table_open_sound(vfs, "data/a", false);
    struct table_file *b = table_open_sound(vfs, "data/b", false);
    assert_true(table_file_info(a)->identity != table_file_info(b)->identity);
    table_file_close(a);
    table_file_close(b);
}

/* ---- cost ---- */

static uint64_t preads(struct vfs_sim *sim)
{
    uint64_t calls = vfs_sim_calls(sim, VFS_SIM_PREAD, NULL);
    assert_int_equal(vfs_sim_bytes(sim, VFS_SIM_PREAD, NULL), calls * TABLE_FILE_PAGE_BYTES);
    vfs_sim_counts_clear(sim);
    return calls;
}

static void test_reads_counted(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    const struct table_shape shape = {.pages = 700,
                                      .sections = 3,
                                      .section = {{.value_bytes = 8, .entries = 5000},
                                                  {.value_bytes = 8, .entries = 0},
                                                  {.value_bytes = 90, .entries = 999}}};
    char error[TABLE_FILE_ERROR_MAX];
    unsigned char value[TABLE_FILE_VALUE_MAX];
    uint64_t id, number;
    uint8_t sub;
    void *page = table_pages(1);
    table_write_sound(vfs, TABLE_NAME, &shape);
    vfs_sim_counts_clear(sim);
    struct table_file *file = table_open_sound(vfs, TABLE_PATH, true);
    assert_true(table_file_is_direct(file));
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_PREAD, NULL), 3); /* both ends; index and sums */
    assert_int_equal(vfs_sim_bytes(sim, VFS_SIM_PREAD, NULL), 4 * TABLE_FILE_PAGE_BYTES);
    assert_true(table_file_memory_bytes(file) <= 4 * TABLE_FILE_PAGE_BYTES);
    vfs_sim_counts_clear(sim);
    for (unsigned section = 0; section < 3; section += 2) {
        for (uint64_t i = 0; i < shape.section[section].entries; i++) {
            table_entry_of(&shape, section, i, &id, &sub, value);
            assert_int_equal(find_entry(file, section, id, sub, NULL, page, error),
                             TABLE_FILE_DONE);
            assert_int_equal(preads(sim), 1);
        }
        assert_int_equal(find_entry(file, section, id + 1, 0, value, page, error),
                         TABLE_FILE_ABSENT);
        assert_int_equal(preads(sim), 1); /* after the last key */
        assert_int_equal(find_entry(file, section, 5, 0, value, page, error), TABLE_FILE_ABSENT);
        assert_int_equal(preads(sim), 0); /* before the first */
    }
    assert_int_equal(find_entry(file, 1, 2000, 0, value, page, error), TABLE_FILE_ABSENT);
    assert_false(table_file_entry_page(file, 1, 2000, 0, &number));
    assert_int_equal(preads(sim), 0); /* an empty section */
    assert_int_equal(table_file_read_page(file, 699, page, error), TABLE_FILE_DONE);
    assert_int_equal(preads(sim), 1);
    assert_true(table_file_entry_page(file, 2, 3000, 0, &number));
    assert_int_equal(preads(sim), 0);
    assert_int_equal(table_file_read_page(file, number, page, error), TABLE_FILE_DONE);
    assert_true(table_file_search_page(file, 2, number, page, 3000, 0, value));
    assert_int_equal(preads(sim), 1);
    table_file_close(file);
    free(page);
}

/* Blocks of a MiB, in order and aligned, each given to the disk; two syncs, one of the directory.
 */
static void test_writes_counted(void **state)
{
    struct vfs_sim *sim = *state;
    const struct table_shape shape = {.pages = 1023};
    vfs_sim_counts_clear(sim);
    table_write_sound(vfs_sim_vfs(sim), TABLE_NAME, &shape);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_PWRITE, NULL), 4 + 1 + 2); /* sums, both ends */
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_WRITEBACK, NULL), 5);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_FDATASYNC, NULL), 2);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_SYNC_DIR, NULL), 1);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_PREAD, NULL), 0);
}

/* ---- O_DIRECT ---- */

static void test_not_direct(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    table_write_sound(vfs, TABLE_NAME, &table_small);
    /* It can be opened so, but not read. */
    unsigned number = vfs_sim_fault(
        sim, &(struct vfs_sim_fault){.op = VFS_SIM_PREAD, .times = 1, .error = EINVAL});
    struct table_file *file = table_open_sound(vfs, TABLE_PATH, true);
    assert_int_equal(vfs_sim_fault_hits(sim, number), 1);
    assert_false(table_file_is_direct(file));
    table_file_close(file);
    vfs_sim_set_direct(sim, false);
    file = table_open_sound(vfs, TABLE_PATH, true);
    assert_false(table_file_is_direct(file));
    table_file_close(file);
    table_check(vfs, TABLE_PATH, true, &table_small);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_OPEN, TABLE_NAME) - 2,
                     vfs_sim_calls(sim, VFS_SIM_CLOSE, TABLE_NAME));
}

/* ---- stopping, and what is there already ---- */

struct stopper {
    uint64_t calls, stop_at, last;
};

static bool stop_piece(void *context, uint64_t pages_done)
{
    struct stopper *stopper = context;
    assert_true(pages_done > stopper->last);
    stopper->last = pages_done;
    return ++stopper->calls != stopper->stop_at;
}

static bool stop_entry(void *context, uint64_t id, uint8_t sub, const void *value)
{
    (void)sub;
    (void)value;
    return stop_piece(context, id * 2 + (sub > 0));
}

static void test_stop(void **state)
{
    struct vfs *vfs = vfs_sim_vfs(*state);
    const struct table_shape shape = {
        .pages = 600, .sections = 1, .section = {{.value_bytes = 976, .entries = 20}}};
    char error[TABLE_FILE_ERROR_MAX];
    unsigned char right[TABLE_FILE_PAGE_BYTES];
    unsigned char *pages = table_pages(600);
    table_write_sound(vfs, TABLE_NAME, &shape);
    struct table_file *file = table_open_sound(vfs, TABLE_PATH, false);
    struct stopper stopper = {.stop_at = 2};
    assert_int_equal(table_file_load_pages(file, 0, 600, pages, stop_piece, &stopper, error),
                     TABLE_FILE_STOPPED);
    assert_int_equal(stopper.last, 512);
    stopper = (struct stopper){.stop_at = 0};
    memset(pages, 0, 301 * sizeof(right));
    assert_int_equal(table_file_load_pages(file, 299, 300, pages, stop_piece, &stopper, error),
                     TABLE_FILE_DONE); /* a part */
    assert_int_equal(stopper.last, 300);
    table_fill_page(&shape, 598, right);
    assert_memory_equal(pages + 299 * sizeof(right), right, sizeof(right));
    assert_int_equal(table_file_load_pages(file, 600, 0, pages, NULL, NULL, error),
                     TABLE_FILE_DONE);
    stopper = (struct stopper){.stop_at = 7};
    assert_int_equal(table_file_each_entry(file, 0, stop_entry, &stopper, error),
                     TABLE_FILE_STOPPED);
    assert_int_equal(stopper.calls, 7);
    table_file_close(file);
    free(pages);
}

static void test_never_overwrites(void **state)
{
    struct vfs *vfs = vfs_sim_vfs(*state);
    char error[TABLE_FILE_ERROR_MAX] = "";
    struct table_shape other = table_small;
    other.salt = 5;
    table_write_sound(vfs, TABLE_NAME, &table_small);
    assert_false(table_write(vfs, TABLE_DIRECTORY, TABLE_NAME, &other, error));
    assert_int_equal(errno, EEXIST);
    assert_non_null(strstr(error, TABLE_PATH));
    assert_non_null(strstr(error, "never overwritten"));
    table_check(vfs, TABLE_PATH, false, &table_small);
}

static void test_abandon(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    char error[TABLE_FILE_ERROR_MAX];
    struct table_file_info info = table_info_of(&table_small);
    static const unsigned char pages[300 * TABLE_FILE_PAGE_BYTES];
    struct table_file_writer *writer =
        table_file_create(vfs, TABLE_DIRECTORY, TABLE_NAME, &info, error);
    assert_true(table_file_append_pages(writer, pages, 300));
    unsigned char first[TABLE_FILE_PAGE_BYTES];
    int fd = files_open(vfs, TABLE_PATH, O_RDONLY);
    assert_int_equal(vfs_read_all(vfs, fd, first, sizeof(first), 0), sizeof(first));
    assert_memory_equal(first, pages, sizeof(first)); /* no header, nor whatever memory held */
    files_close(vfs, fd);
    table_file_abandon(writer);
    assert_false(files_exist(vfs, TABLE_PATH));
    assert_int_equal(vfs_sim_used(sim), 0);
    table_file_abandon(NULL);
    table_file_close(NULL);
    struct table_file *file = NULL;
    assert_int_equal(table_file_open(vfs, TABLE_PATH, true, &file, error), TABLE_FILE_ABSENT);
    assert_null(file);
}

/* ---- what the caller must not do ---- */

enum misuse { SAME_KEY, LOWER_KEY, LOWER_SUB, SECTION_BACK, NO_SECTION, PAGE_LATE, END_EARLY };

static void do_misuse(struct table_file_writer *writer, enum misuse misuse)
{
    char error[TABLE_FILE_ERROR_MAX];
    unsigned char page[TABLE_FILE_PAGE_BYTES] = {0};
    table_file_append_entry(writer, 0, 10, 3, page);
    switch (misuse) {
    case SAME_KEY:
        table_file_append_entry(writer, 0, 10, 3, page);
        break;
    case LOWER_KEY:
        table_file_append_entry(writer, 0, 9, 9, page);
        break;
    case LOWER_SUB:
        table_file_append_entry(writer, 0, 10, 2, page);
        break;
    case SECTION_BACK:
        table_file_append_entry(writer, 2, 1, 1, page);
        table_file_append_entry(writer, 1, 11, 1, page);
        break;
    case NO_SECTION:
        table_file_append_entry(writer, 3, 11, 1, page);
        break;
    case PAGE_LATE:
        table_file_append_pages(writer, page, 1);
        break;
    case END_EARLY:
        table_file_commit(writer, TABLE_START_LSN - 1, NULL, error);
        break;
    }
}

static void test_misuse(void **state)
{
    struct vfs *vfs = vfs_sim_vfs(*state);
    struct table_file_info info = table_info_of(&table_small);
    char error[TABLE_FILE_ERROR_MAX];
    for (enum misuse misuse = SAME_KEY; misuse <= END_EARLY; misuse++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
            signal(SIGABRT, SIG_DFL);
            close(STDERR_FILENO);
            do_misuse(table_file_create(vfs, TABLE_DIRECTORY, TABLE_NAME, &info, error), misuse);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) {
            fail_msg("misuse %d was not seen", misuse);
        }
    }
}

/* ---- many threads, and the system's files ---- */

struct reader {
    const struct table_file *file;
    pthread_t thread;
    uint64_t seed, wrong;
};

static const struct table_shape shared_shape = {
    .pages = 500, .sections = 1, .section = {{.value_bytes = 16, .entries = 4000}}};

static void *read_about(void *context)
{
    struct reader *reader = context;
    struct test_random random = {reader->seed};
    char error[TABLE_FILE_ERROR_MAX];
    unsigned char right[TABLE_FILE_PAGE_BYTES], value[TABLE_FILE_VALUE_MAX];
    uint64_t id;
    uint8_t sub;
    void *page = aligned_alloc(TABLE_FILE_PAGE_BYTES, TABLE_FILE_PAGE_BYTES);
    CHECK(page);
    for (uint64_t i = 0; i < test_scaled(LOOK_UPS); i++) {
        uint64_t entry = test_random_below(&random, 4000);
        table_entry_of(&shared_shape, 0, entry, &id, &sub, right);
        enum table_file_result result = find_entry(reader->file, 0, id, sub, value, page, error);
        reader->wrong += result != TABLE_FILE_DONE || memcmp(value, right, 16) != 0;
        uint64_t number = test_random_below(&random, 500);
        table_fill_page(&shared_shape, number, right);
        result = table_file_read_page(reader->file, number, page, error);
        reader->wrong += result != TABLE_FILE_DONE || memcmp(page, right, sizeof(right)) != 0;
    }
    free(page);
    return NULL;
}

static void read_by_threads(const struct table_file *file)
{
    struct reader readers[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){.file = file, .seed = i};
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_about, &readers[i]), 0);
    }
    for (uint64_t i = 0; i < THREADS; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(readers[i].wrong, 0);
    }
}

static void test_threads(void **state)
{
    struct vfs *vfs = vfs_sim_vfs(*state);
    table_write_sound(vfs, TABLE_NAME, &shared_shape);
    struct table_file *file = table_open_sound(vfs, TABLE_PATH, true);
    read_by_threads(file);
    table_file_close(file);
}

static void test_real(void **state)
{
    (void)state;
    char folder[128], path[160], error[TABLE_FILE_ERROR_MAX] = "";
    const char *top = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/rollcall-table-XXXXXX", top ? top : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/%s", folder, TABLE_NAME);
    bool written = table_write(vfs_real(), folder, TABLE_NAME, &shared_shape, error);
    if (written) {
        table_check(vfs_real(), path, false, &shared_shape);
        table_check(vfs_real(), path, true, &shared_shape);
        struct table_file *file = table_open_sound(vfs_real(), path, true);
        printf("O_DIRECT there: %s\n", table_file_is_direct(file) ? "yes" : "no");
        read_by_threads(file);
        table_file_close(file);
        assert_int_equal(table_file_verify(vfs_real(), path, true, no_finding, NULL),
                         TABLE_FILE_DONE);
    }
    unlink(path);
    rmdir(folder);
    if (!written) {
        fail_msg("%s", error);
    }
}

#define SIM(test) cmocka_unit_test_setup_teardown(test, sim_setup, sim_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM(test_round_trip),    SIM(test_limits),           SIM(test_identity),
        SIM(test_reads_counted), SIM(test_writes_counted),   SIM(test_not_direct),
        SIM(test_stop),          SIM(test_never_overwrites), SIM(test_abandon),
        SIM(test_misuse),        SIM(test_threads),          cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
