/* test_repair.c: `rollcall repair` says what is lost, changes nothing without --yes, and leaves a
 * directory that verify finds sound, with all that was not lost. */
#include "tools/rollcall/repair.h"

#include "tests/unit/tools/repair_run.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "store/table_file_format.h"
#include "tests/support/random.h"

#define PAGE      TABLE_FILE_PAGE_BYTES
#define DAMAGES   120 /* random ones */
#define LAST      (DATA_SEGMENTS - 1)
#define NEW_TABLE "feed-1-0-4.table" /* of the first table: the next generation that is free */

/* ---- sound, in use, hopeless ---- */

static void test_sound(void **state)
{
    struct said_run *run = *state;
    assert_int_equal(repair_run_look(run), VERB_SOUND);
    repair_run_has(run, "sound: 6 files");
    assert_int_equal(repair_run_yes(run), VERB_SOUND);
    repair_run_assert_sound(run);
    struct stat status;
    assert_int_not_equal(stat(data_path(run->data, REPAIR_KEPT), &status), 0);
}

static void test_in_use(void **state)
{
    struct said_run *run = *state;
    FILE *held = fopen(run->data->directory, "r");
    assert_non_null(held);
    assert_int_equal(flock(fileno(held), LOCK_EX | LOCK_NB), 0);
    data_flip(run->data, run->data->table[0], PAGE);
    assert_int_equal(repair_run_look(run), VERB_USAGE);
    said_has(run->said.errors_text,
             " is in use by rollcalld, or by a verb such as rollcall verify: stop it first");
    fclose(held);
    assert_int_equal(repair_run_look(run), VERB_DAMAGED);
}

static void test_hopeless(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    repair_run_overwrite(data, MANIFEST_NAME, 100, 50, 1);
    assert_int_equal(repair_run_yes(run), VERB_DAMAGED);
    repair_run_has(run, "cannot be repaired: ");
    repair_run_has(run, "restore it, with all files it names, from a copy");
    data_remove(data, MANIFEST_NAME);
    assert_int_equal(repair_run_yes(run), VERB_DAMAGED);
    repair_run_has(run, "MANIFEST is missing");
    const struct repair_options nowhere = {.directory = "/nowhere",
                                           .drop_from = REPAIR_DROP_NOTHING};
    assert_int_equal(repair_run_with(run, vfs_real(), &nowhere), VERB_USAGE);
}

/* ---- MANIFEST ---- */

static void test_manifest_bit(void **state)
{
    struct said_run *run = *state;
    uint64_t size = data_size(run->data, MANIFEST_NAME);
    for (uint64_t at = 3; at < size; at += size / 7) {
        data_flip(run->data, MANIFEST_NAME, at);
        repair_run_whole(run);
        repair_run_has(run,
                       "/MANIFEST: one bit had turned over; it is turned back, nothing is lost");
    }
    /* what was there is kept, each under a name of its own */
    assert_int_equal(data_size(run->data, REPAIR_KEPT "/MANIFEST.0"), size);
    assert_int_equal(data_size(run->data, REPAIR_KEPT "/MANIFEST.0.1"), size);
}

/* ---- tables ---- */

static void test_table_page(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    unsigned char page[PAGE];
    repair_run_overwrite(data, data->table[0], 2 * PAGE, PAGE, 3);
    data_write(data, "feed-1-0-3.table", 0, "left over", 9); /* by a kill: not of MANIFEST */
    repair_run_whole(run);
    repair_run_has(run, "/feed-1.table: damaged; it is written anew (table 1 of space feed)\n");
    repair_run_has(
        run, "  pages 1 to 1 of the table's 3 are lost: about 0 of its 0, of ids 1 to 1000\n");
    for (unsigned i = 0; i < DATA_TABLE_PAGES; i++) {
        data_read(data, NEW_TABLE, (i + 1) * PAGE, page, PAGE);
        assert_int_equal(page[0], i == 1 ? 0 : 'a' + (int)i);
        assert_int_equal(page[PAGE - 1], page[0]);
    }
    assert_int_equal(data_size(data, REPAIR_KEPT "/feed-1.table"), DATA_TABLE_BYTES);
}

static void test_table_entries(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    repair_run_overwrite(data, data->table[1], (1 + DATA_TABLE_PAGES) * PAGE, 17, 3);
    repair_run_whole(run);
    repair_run_has(run, "/liked-2.table: damaged");
    repair_run_has(
        run, "  240 deletes, whose members are there again are lost (page 3), of ids 0 to 2400\n");
}

static void test_table_bit(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    for (unsigned page = 0; page < DATA_TABLE_BYTES / PAGE; page++) {
        data_flip(data, data->table[1], page * PAGE + 99);
        repair_run_whole(run);
        repair_run_lacks(run, "are lost");
        snprintf(data->table[1], sizeof(data->table[1]), "liked-2-1-%u.table", page + 3);
    }
}

/* A whole table, or what lay over one. */
static void test_table_missing(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    data_remove(data, data->table[0]);
    repair_run_whole(run);
    repair_run_has(run, "/feed-1.table is missing\n");
    repair_run_has(run, "  table 1 of space feed is left out: all its ids, 1 to 1000, are lost\n");
    data_truncate(data, data->table[1], 100); /* the other one is a layer */
    repair_run_whole(run);
    repair_run_has(run, "  a layer of table 2 of space liked is left out: ");
}

static void test_table_swapped(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    data_rename(data, data->table[0], "away");
    data_rename(data, data->table[1], data->table[0]);
    data_rename(data, "away", data->table[1]);
    assert_int_equal(repair_run_look(run), VERB_DAMAGED);
    repair_run_has(run, "/feed-1.table is another file than MANIFEST means");
}

/* ---- the journal ---- */

static void test_journal_bit(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    uint64_t at = repair_run_offset(0, data->second_lsn);
    for (unsigned i = 0; i < data->record_bytes; i += 7) {
        data_flip(data, data->segment[0], at + i);
        repair_run_whole(run);
        repair_run_has(run, "a bit of a record had turned over");
        assert_int_equal(repair_run_records(run).count, data->records);
    }
}

/* A bad stretch in the midst of a segment: what follows is kept. */
static void test_journal_gap(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    char text[160];
    uint64_t lsn = data->second_lsn + 5 * data->record_bytes;
    repair_run_overwrite(data, data->segment[0], repair_run_offset(0, lsn), 3 * data->record_bytes,
                         4);
    repair_run_whole(run);
    snprintf(text, sizeof(text), "bytes, LSN %llu to %llu, about 3 changes: lost\n",
             (unsigned long long)lsn, (unsigned long long)(lsn + 3 * data->record_bytes));
    repair_run_has(run, text);
    repair_run_has(run, "rollcall repair --drop-from N ");
    repair_run_has(run, "its header is written again"); /* the next segment's: the sum is another */
    assert_int_equal(repair_run_records(run).count, data->records - 3);
    /* one record that is not only a bit away */
    lsn += 100 * data->record_bytes;
    repair_run_overwrite(data, data->segment[0], repair_run_offset(0, lsn) + 40, 2, 5);
    repair_run_whole(run);
    repair_run_has(run, "  by what is left of it a change of id 42\n");
    assert_int_equal(repair_run_records(run).count, data->records - 4);
}

/* Above all marks, as after a kill. */
static void test_journal_gap_above_marks(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    uint64_t lsn = data->end_lsn - 10 * data->record_bytes;
    data_write(data, data->segment[LAST], 1024, (char[1100]){0}, 1100);
    repair_run_overwrite(data, data->segment[LAST], repair_run_offset(LAST, lsn),
                         data->record_bytes, 6);
    repair_run_whole(run);
    assert_int_equal(repair_run_records(run).count, data->records - 1);
}

static void test_journal_header(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    for (unsigned i = 0; i < DATA_SEGMENTS; i++) {
        repair_run_overwrite(data, data->segment[i], 0, 600, i + 1);
        repair_run_whole(run);
        repair_run_has(run, "its header is damaged; it is made again of its neighbours");
        assert_int_equal(repair_run_records(run).count, data->records);
    }
}

/* A last segment that no mark speaks of, after one that ended before it was full. */
static void test_journal_header_of_the_newest(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    char name[JOURNAL_NAME_MAX];
    data_write(data, data->segment[LAST], 1024, (char[1100]){0}, 1100);
    journal_name(name, data->end_lsn + DATA_CLOSED_BYTES);
    repair_run_overwrite(data, name, 0, 2 * JOURNAL_PAGE_BYTES, 7);
    repair_run_whole(run);
    repair_run_has(run, "its header is damaged; it is made again of its neighbours");
    assert_int_equal(repair_run_records(run).count, data->records);
    data_remove(data, name);
}

static void test_journal_missing(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    data_remove(data, data->segment[1]);
    repair_run_whole(run);
    repair_run_has(run, "the segment is missing; it is made again, empty");
    repair_run_has(run, ": nothing is there: 1044480 bytes");
    assert_true(repair_run_records(run).count > data->records / 4);
    /* the last: the tables need the stream to go on to their E */
    data_remove(data, data->segment[LAST]);
    repair_run_whole(run);
    repair_run_records(run);
    /* all of it */
    for (unsigned i = 0; i < LAST; i++) {
        data_remove(data, data->segment[i]);
    }
    char name[JOURNAL_NAME_MAX];
    journal_name(name, LAST * REPAIR_CAPACITY);
    data_remove(data, name);
    repair_run_whole(run);
    assert_int_equal(repair_run_records(run).count, 0);
}

static void test_journal_cut_short(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    uint64_t lsn = data->end_lsn - 20 * data->record_bytes;
    data_truncate(data, data->segment[LAST], repair_run_offset(LAST, lsn) + 8);
    repair_run_whole(run);
    assert_int_equal(repair_run_records(run).count, data->records - 20);
    data_truncate(data, data->segment[1], 10000);
    repair_run_whole(run);
    repair_run_records(run);
}

static void test_drop_from(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    uint64_t lsn = data->end_lsn - 7 * data->record_bytes;
    struct repair_options options = {.directory = data->directory, .drop_from = lsn};
    assert_int_equal(repair_run_with(run, data_only_read(), &options), VERB_DAMAGED);
    repair_run_has(run, ": given up: ");
    repair_run_has(run, ", about 7 changes: lost"); /* in one */
    options.yes = true;
    assert_int_equal(repair_run_with(run, vfs_real(), &options), VERB_SOUND);
    repair_run_assert_sound(run);
    assert_int_equal(repair_run_records(run).count, data->records - 7);
}

/* ---- anything, anywhere ---- */

/* A page of rubbish, or a bit, in some file; each time all of it is sound afterwards. */
static void test_random(void **state)
{
    struct said_run *run = *state;
    struct test_random random = {.state = test_seed()};
    for (uint64_t i = 0; i < test_scaled(DAMAGES); i++) {
        struct data *data = run->data;
        unsigned which = (unsigned)test_random_below(&random, DATA_TABLES + DATA_SEGMENTS);
        const char *name =
            which < DATA_TABLES ? data->table[which] : data->segment[which - DATA_TABLES];
        uint64_t pages = data_size(data, name) / PAGE;
        uint64_t at = PAGE * test_random_below(&random, pages);
        bool bit = test_random_once_in(&random, 3);
        bool used = which < DATA_TABLES || name != data->segment[LAST] ||
                    at < repair_run_offset(LAST, data->end_lsn);
        if (bit) {
            data_flip(data, name, at + test_random_below(&random, PAGE));
        } else {
            repair_run_overwrite(data, name, at, PAGE, i + 1);
        }
        enum verb_exit status = repair_run_yes(run);
        if (status != VERB_SOUND) {
            fail_msg("%s at %llu, %d: %s%s", name, (unsigned long long)at, bit, run->said.out_text,
                     run->said.errors_text);
        }
        repair_run_assert_sound(run);
        if (used && which >= DATA_TABLES) {
            assert_true(repair_run_records(run).count + 3 * PAGE / data->record_bytes >=
                        data->records);
        }
        repair_run_teardown(state);
        said_run_setup(state);
        run = *state;
    }
}

/* ---- the command ---- */

static int call(const char *one, const char *two, const char *three)
{
    char *words[] = {(char[]){"repair"}, (char *)one, (char *)two, (char *)three, NULL};
    optind = 1;
    return repair_main(1 + (one != NULL) + (two != NULL) + (three != NULL), words);
}

static void test_usage(void **state)
{
    struct said_run *run = *state;
    const char *directory = run->data->directory;
    assert_int_equal(call(NULL, NULL, NULL), 2);
    assert_int_equal(call("--wrong", directory, NULL), 2);
    assert_int_equal(call("--drop-from", "x", directory), 2);
    assert_int_equal(call(directory, "more", NULL), 2);
    assert_int_equal(call("--help", NULL, NULL), 0);
    assert_int_equal(call(directory, NULL, NULL), 0);
    data_flip(run->data, run->data->table[0], PAGE);
    assert_int_equal(call(directory, NULL, NULL), 1);
    assert_int_equal(call("--yes", directory, NULL), 0);
    assert_int_equal(call(directory, NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REPAIR_RUN_TEST(test_sound),           REPAIR_RUN_TEST(test_in_use),
        REPAIR_RUN_TEST(test_hopeless),        REPAIR_RUN_TEST(test_manifest_bit),
        REPAIR_RUN_TEST(test_table_page),      REPAIR_RUN_TEST(test_table_entries),
        REPAIR_RUN_TEST(test_table_bit),       REPAIR_RUN_TEST(test_table_missing),
        REPAIR_RUN_TEST(test_table_swapped),   REPAIR_RUN_TEST(test_journal_bit),
        REPAIR_RUN_TEST(test_journal_gap),     REPAIR_RUN_TEST(test_journal_gap_above_marks),
        REPAIR_RUN_TEST(test_journal_header),  REPAIR_RUN_TEST(test_journal_header_of_the_newest),
        REPAIR_RUN_TEST(test_journal_missing), REPAIR_RUN_TEST(test_journal_cut_short),
        REPAIR_RUN_TEST(test_drop_from),       REPAIR_RUN_TEST(test_random),
        REPAIR_RUN_TEST(test_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
