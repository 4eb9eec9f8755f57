/* test_repair_lost.c: `rollcall repair` of a space whose table files have states as daemons write
 * them: which may go, what takes their ranges over, what is said of damaged pages. */
#include "tests/unit/tools/repair_run.h"

#include <stdlib.h>
#include <string.h>

#include "row/row_data.h"
#include "row/row_state.h"

#define PAGE        TABLE_FILE_PAGE_BYTES
#define RANGE       1000u /* ids of a table */
#define TABLE_COUNT 100u  /* ids in it, as it says */
#define TABLE_PAGES 6u
#define FILES_MAX   16
#define OVERLAY     row_file_number(0, true)
#define LAYER       row_file_number(1, false)
#define OVER_LAYER  row_file_number(1, true)

/* The files of a space feed, as they are made. */
static struct manifest_file files[FILES_MAX];
static size_t files_count;

static int setup(void **state)
{
    files_count = 0;
    int result = said_run_setup(state);
    struct said_run *run = *state;
    for (unsigned i = 0; i < DATA_TABLES; i++) {
        data_remove(run->data, run->data->table[i]);
    }
    return result;
}

/* Table 1 has ids 0 to 999, table 2 those from 1000, and so on. */
static const char *put(struct said_run *run, uint64_t serial, uint32_t number, uint64_t flags)
{
    char error[TABLE_FILE_ERROR_MAX];
    unsigned char page[PAGE];
    bool apart = (flags & ROW_STATE_APART) != 0;
    uint64_t base = apart ? 0 : (serial - 1) * RANGE;
    uint64_t last = apart ? ROW_ID_MAX : base + RANGE - 1;
    const struct row_state row_state = {.version = ROW_STATE_VERSION,
                                        .flags = ROW_STATE_SETTLED | flags,
                                        .serial = serial,
                                        .base = base,
                                        .last = last,
                                        .frontier = last,
                                        .count = TABLE_COUNT,
                                        .capacity = RANGE,
                                        .fill = RANGE};
    struct table_file_info info = {.kind = "counter",
                                   .space = "feed",
                                   .serial = serial,
                                   .generation = 1,
                                   .layer = number,
                                   .start_lsn = 64,
                                   .sections = 1,
                                   .section = {{.value_bytes = 8}},
                                   .description = &row_state,
                                   .description_bytes = sizeof(row_state)};
    struct manifest_file *file = &files[files_count++];
    *file = (struct manifest_file){.role = MANIFEST_IMAGE,
                                   .serial = serial,
                                   .layer = number,
                                   .generation = 1,
                                   .start_lsn = 64,
                                   .end_lsn = run->data->end_lsn,
                                   .first_id = base,
                                   .last_id = last};
    manifest_table_name(file->name, "feed", serial, number, 1);
    struct table_file_writer *writer =
        table_file_create(vfs_real(), run->data->directory, file->name, &info, error);
    assert_non_null(writer);
    for (unsigned i = 0; i < TABLE_PAGES; i++) {
        memset(page, (int)('a' + i), sizeof(page));
        assert_true(table_file_append_pages(writer, page, 1));
    }
    assert_true(table_file_commit(writer, file->end_lsn, &file->bytes, error));
    return file->name;
}

static void store_manifest(struct said_run *run)
{
    char error[MANIFEST_ERROR_MAX];
    struct manifest *manifest = manifest_create();
    manifest->epoch = 4;
    manifest->stream[0] = 4;
    manifest->table_event_lsn = run->data->second_lsn;
    manifest->journal_lsn = run->data->journal_lsn;
    struct manifest_space *space = manifest_add_space(manifest, "feed", 5, "counter");
    assert_non_null(space);
    for (size_t i = 0; i < files_count; i++) {
        assert_true(manifest_add_file(manifest, space, &files[i]));
    }
    assert_true(manifest_store(vfs_real(), run->data->directory, manifest, error));
    manifest_destroy(manifest);
}

/* All that was put, and it is sound. */
static void store(struct said_run *run)
{
    store_manifest(run);
    repair_run_assert_sound(run);
}

/* ---- what is there afterwards ---- */

struct state_read {
    uint64_t last, flags, ranges, first, until;
};

static void see(void *context, const char *name, uint64_t value)
{
    struct state_read *read = context;
    read->last = strcmp(name, "range_last") == 0 ? value : read->last;
    read->flags = strcmp(name, "flags") == 0 ? value : read->flags;
    read->ranges = strcmp(name, "dropped_ranges") == 0 ? value : read->ranges;
    read->first = strcmp(name, "dropped_first") == 0 ? value : read->first;
    read->until = strcmp(name, "dropped_last") == 0 ? value : read->until;
}

/* The file of MANIFEST with this number, of that table. False: it has none. */
static bool find(struct said_run *run, uint64_t serial, uint32_t number,
                 struct manifest_file *found, struct state_read *read)
{
    char error[MANIFEST_ERROR_MAX];
    char why[TABLE_FILE_ERROR_MAX];
    struct manifest *manifest = NULL;
    struct manifest_at at = {0};
    const struct manifest_file *file;
    bool is_there = false;
    assert_int_equal(manifest_load(vfs_real(), run->data->directory, &manifest, error),
                     MANIFEST_SOUND);
    while ((file = manifest_next_file(manifest, &at)) != NULL) {
        if (file->serial == serial && file->layer == number) {
            *found = *file;
            is_there = true;
        }
    }
    manifest_destroy(manifest);
    if (is_there) {
        struct table_file *opened;
        size_t description;
        assert_int_equal(
            table_file_open(vfs_real(), data_path(run->data, found->name), false, &opened, why),
            TABLE_FILE_DONE);
        const struct table_file_info *info = table_file_info(opened);
        *read = (struct state_read){0};
        assert_true(
            row_state_read(info->description, info->description_bytes, see, read, &description));
        table_file_close(opened);
    }
    return is_there;
}

/* Nothing has written it anew. */
static void is_as_it_was(struct said_run *run, uint64_t serial, uint32_t number)
{
    struct manifest_file found;
    struct state_read read;
    assert_true(find(run, serial, number, &found, &read));
    assert_int_equal(found.generation, 1);
}

static void is_gone(struct said_run *run, uint64_t serial, uint32_t number)
{
    struct manifest_file found;
    struct state_read read;
    assert_false(find(run, serial, number, &found, &read));
}

/* Its range has grown up to `last`, and the ids of `first` on are refused. */
static void has_taken_over(struct said_run *run, uint64_t serial, uint32_t number, uint64_t first,
                           uint64_t last)
{
    struct manifest_file found;
    struct state_read read;
    assert_true(find(run, serial, number, &found, &read));
    assert_true(found.generation > 1);
    assert_int_equal(found.last_id, last);
    assert_int_equal(read.last, last);
    assert_int_equal(read.ranges, 1);
    assert_int_equal(read.first, first);
    assert_int_equal(read.until, last);
}

static void kept(struct said_run *run, uint64_t serial, uint32_t number)
{
    char name[MANIFEST_FILE_NAME_MAX + 1];
    char path[VFS_PATH_MAX];
    manifest_table_name(name, "feed", serial, number, 1);
    snprintf(path, sizeof(path), REPAIR_KEPT "/%s", name);
    assert_true(data_size(run->data, path) > 0);
}

/* ---- files that are lost whole ---- */

/* The table below takes the range over, with its layer and its overlay; those of the lost one go
 * with it. */
static void test_table_in_the_middle(void **state)
{
    struct said_run *run = *state;
    put(run, 1, 0, 0);
    put(run, 2, 0, ROW_STATE_LAYERED);
    put(run, 2, OVERLAY, ROW_STATE_LAYERED);
    put(run, 2, LAYER, ROW_STATE_LAYER | ROW_STATE_CLOSED);
    put(run, 3, LAYER, ROW_STATE_LAYER | ROW_STATE_CLOSED);
    put(run, 3, OVER_LAYER, ROW_STATE_LAYER | ROW_STATE_CLOSED);
    put(run, 4, 0, 0);
    const char *lost = put(run, 3, 0, ROW_STATE_LAYERED);
    store(run);
    data_remove(run->data, lost);
    repair_run_whole(run);
    repair_run_has(run, "table 3 of space feed is left out: all its ids, 2000 to 2999, are lost\n");
    said_has_times(run->said.out_text, "written anew, as ids up to 2999 are its table's now\n", 3);
    is_as_it_was(run, 1, 0);
    has_taken_over(run, 2, 0, 2000, 2999);
    has_taken_over(run, 2, OVERLAY, 2000, 2999);
    has_taken_over(run, 2, LAYER, 2000, 2999);
    is_gone(run, 3, 0);
    is_gone(run, 3, LAYER);
    is_gone(run, 3, OVER_LAYER);
    is_as_it_was(run, 4, 0);
    kept(run, 2, 0);
    kept(run, 3, LAYER);
}

/* Two neighbours: what is below both takes over both. */
static void test_two_tables(void **state)
{
    struct said_run *run = *state;
    const char *lost[2];
    put(run, 1, 0, 0);
    lost[0] = put(run, 2, 0, 0);
    lost[1] = put(run, 3, 0, 0);
    put(run, 4, 0, 0);
    store(run);
    data_remove(run->data, lost[1]);
    data_remove(run->data, lost[0]);
    repair_run_whole(run);
    has_taken_over(run, 1, 0, 1000, 2999);
    is_as_it_was(run, 4, 0);
}

/* The lowest goes as the oldest does: nobody takes its range over. */
static void test_lowest_tables(void **state)
{
    struct said_run *run = *state;
    const char *lost[2];
    lost[0] = put(run, 1, 0, 0);
    lost[1] = put(run, 2, 0, 0);
    put(run, 3, 0, 0);
    put(run, ROW_APART_SERIALS, 0, ROW_STATE_APART);
    store(run);
    data_remove(run->data, lost[0]);
    data_remove(run->data, lost[1]);
    repair_run_whole(run);
    is_gone(run, 1, 0);
    is_gone(run, 2, 0);
    is_as_it_was(run, 3, 0);
    is_as_it_was(run, ROW_APART_SERIALS, 0);
}

static void stays_damaged(struct said_run *run, const char *says)
{
    assert_int_equal(repair_run_yes(run), VERB_DAMAGED);
    repair_run_has(run, says);
    repair_run_has(run, ": restore the file from a copy\n");
    repair_run_lacks(run, "left out");
}

/* New ids are the newest table's: the ids apart above it are no table of the row. */
static void test_newest_table(void **state)
{
    struct said_run *run = *state;
    put(run, 1, 0, 0);
    const char *lost = put(run, 2, 0, 0);
    put(run, ROW_APART_SERIALS, 0, ROW_STATE_APART);
    store(run);
    data_remove(run->data, lost);
    stays_damaged(run, "/feed-2-0-1.table is missing; space feed cannot go on without its table of "
                       "ids 1000 to 1999");
    is_as_it_was(run, 1, 0);
}

/* Parts of `ids: any` are all needed, the lowest, too. */
static void test_part(void **state)
{
    struct said_run *run = *state;
    const char *lost = put(run, 1, 0, ROW_STATE_ANY_IDS);
    put(run, 2, 0, ROW_STATE_ANY_IDS);
    put(run, 3, 0, ROW_STATE_ANY_IDS);
    store(run);
    data_remove(run->data, lost);
    stays_damaged(run, "cannot go on without its table of ids 0 to 999");
}

/* Its table has no further layer then. Above it nothing changes. */
static void test_layer(void **state)
{
    struct said_run *run = *state;
    struct manifest_file found;
    struct state_read read;
    put(run, 1, 0, ROW_STATE_LAYERED);
    put(run, 1, OVERLAY, ROW_STATE_LAYERED);
    const char *lost = put(run, 1, LAYER, ROW_STATE_LAYER | ROW_STATE_CLOSED);
    put(run, 1, OVER_LAYER, ROW_STATE_LAYER | ROW_STATE_CLOSED);
    put(run, 2, 0, ROW_STATE_LAYERED);
    put(run, 2, LAYER, ROW_STATE_LAYER | ROW_STATE_CLOSED);
    store(run);
    data_remove(run->data, lost);
    repair_run_whole(run);
    repair_run_has(run, "a layer of table 1 of space feed is left out: the ids of 0 to 999 that it "
                        "held are lost\n");
    said_has_times(run->said.out_text,
                   "as ids up to 999 are its table's now, and it has no further layer\n", 2);
    is_gone(run, 1, LAYER);
    is_gone(run, 1, OVER_LAYER);
    assert_true(find(run, 1, 0, &found, &read));
    assert_int_equal(read.flags, ROW_STATE_SETTLED);
    assert_int_equal(read.ranges, 0);
    assert_true(find(run, 1, OVERLAY, &found, &read));
    assert_int_equal(read.flags, ROW_STATE_SETTLED);
    is_as_it_was(run, 2, 0);
    is_as_it_was(run, 2, LAYER);
}

/* The newest table is there without its layer. */
static void test_layer_of_the_newest(void **state)
{
    struct said_run *run = *state;
    put(run, 1, 0, 0);
    put(run, 2, 0, ROW_STATE_LAYERED);
    const char *lost = put(run, 2, LAYER, ROW_STATE_LAYER | ROW_STATE_CLOSED);
    store(run);
    data_remove(run->data, lost);
    repair_run_whole(run);
    is_as_it_was(run, 1, 0);
    is_gone(run, 2, LAYER);
}

/* What lay over a file goes alone. */
static void test_overlays(void **state)
{
    struct said_run *run = *state;
    const char *lost[2];
    put(run, 1, 0, ROW_STATE_LAYERED);
    lost[0] = put(run, 1, OVERLAY, ROW_STATE_LAYERED);
    put(run, 1, LAYER, ROW_STATE_LAYER | ROW_STATE_CLOSED);
    lost[1] = put(run, 1, OVER_LAYER, ROW_STATE_LAYER | ROW_STATE_CLOSED);
    put(run, 2, 0, 0);
    store(run);
    data_remove(run->data, lost[0]);
    data_remove(run->data, lost[1]);
    repair_run_whole(run);
    said_has_times(run->said.out_text,
                   "it is left out: changes of ids 0 to 999 since table 1 of space feed was "
                   "written are lost\n",
                   2);
    is_as_it_was(run, 1, 0);
    is_as_it_was(run, 1, LAYER);
}

static void test_ids_apart(void **state)
{
    struct said_run *run = *state;
    put(run, 1, 0, 0);
    put(run, 2, 0, 0);
    const char *lost = put(run, ROW_APART_SERIALS, 0, ROW_STATE_APART);
    store(run);
    data_remove(run->data, lost);
    repair_run_whole(run);
    repair_run_has(run,
                   "it is left out: ids of space feed that were apart, far ahead of all others");
    is_as_it_was(run, 1, 0);
    is_as_it_was(run, 2, 0);
}

/* A table that is lost and one that is damaged: the damaged one has both done to it. */
static void test_damaged_takes_over(void **state)
{
    struct said_run *run = *state;
    const char *damaged = put(run, 1, 0, 0);
    const char *lost = put(run, 2, 0, 0);
    put(run, 3, 0, 0);
    store(run);
    repair_run_overwrite(run->data, damaged, 2 * PAGE, PAGE, 3);
    data_remove(run->data, lost);
    repair_run_whole(run);
    repair_run_has(run, "/feed-1-0-1.table: damaged; it is written anew (table 1 of space feed)\n");
    has_taken_over(run, 1, 0, 1000, 1999);
}

/* ---- pages ---- */

/* Neighbours are told together, others each alone; each time rounded up. */
static void test_lost_pages(void **state)
{
    struct said_run *run = *state;
    const char *damaged = put(run, 1, 0, 0);
    store(run);
    repair_run_overwrite(run->data, damaged, 1 * PAGE, 2 * PAGE, 3); /* after the header's */
    repair_run_overwrite(run->data, damaged, 5 * PAGE, PAGE, 4);
    repair_run_whole(run);
    said_has_times(run->said.out_text, " are lost: about ", 2);
    repair_run_has(run, "  pages 0 to 1 of the table's 6 are lost: about 34 of its 100, of ids 0 "
                        "to 999\n");
    repair_run_has(run, "  pages 4 to 4 of the table's 6 are lost: about 17 of its 100, of ids 0 "
                        "to 999\n");
    unsigned char page[PAGE];
    struct manifest_file found;
    struct state_read read;
    assert_true(find(run, 1, 0, &found, &read));
    for (unsigned i = 0; i < TABLE_PAGES; i++) {
        data_read(run->data, found.name, (i + 1) * PAGE, page, PAGE);
        assert_int_equal(page[0], i < 2 || i == 4 ? 0 : 'a' + (int)i);
    }
}

/* Files that are whole and not the ones that MANIFEST means. */
static void test_other_files(void **state)
{
    struct said_run *run = *state;
    put(run, 1, 0, 0);
    put(run, 1, OVERLAY, 0);
    put(run, 2, 0, 0);
    const struct manifest_file sound = files[1];
    for (unsigned i = 0; i < 5; i++) {
        files[1] = sound;
        files[1].serial += i == 0 ? 1 : 0;
        files[1].layer = i == 1 ? LAYER : files[1].layer;
        files[1].generation += i == 2 ? 1 : 0;
        files[1].start_lsn += i == 3 ? 8 : 0;
        files[1].bytes += i == 4 ? PAGE : 0;
        store_manifest(run);
        assert_int_equal(repair_run_look(run), VERB_DAMAGED);
        repair_run_has(run, "/feed-1-2-1.table is another file than MANIFEST means\n");
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, repair_run_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_table_in_the_middle), TEST(test_two_tables), TEST(test_lowest_tables),
        TEST(test_newest_table),        TEST(test_part),       TEST(test_layer),
        TEST(test_layer_of_the_newest), TEST(test_overlays),   TEST(test_ids_apart),
        TEST(test_damaged_takes_over),  TEST(test_lost_pages), TEST(test_other_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
