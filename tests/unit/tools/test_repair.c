/* test_repair.c: `rollcall repair` says what is lost, changes nothing without --yes, and leaves a
 * directory that verify finds sound, with all that was not lost. */
#include "tools/rollcall/repair.h"

#include "tests/unit/tools/data_directory.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "engine/change_record.h"
#include "store/journal_format.h"
#include "store/table_file_format.h"
#include "tests/support/random.h"
#include "tools/rollcall/verify.h"

#define PAGE      TABLE_FILE_PAGE_BYTES
#define KEPT      "lost"
#define DAMAGES   120 /* random ones */
#define CAPACITY  (DATA_SEGMENT_BYTES - JOURNAL_PAGE_BYTES)
#define LAST      (DATA_SEGMENTS - 1)
#define NEW_TABLE "feed-1-0-4.table" /* of the first table: the next generation that is free */

struct run {
    struct data *data;
    struct said said; /* of the last repair */
    char *all;        /* what it said, and verify */
};

static int setup(void **state)
{
    struct run *run = calloc(1, sizeof(*run));
    assert_non_null(run);
    run->data = data_directory_create();
    *state = run;
    return 0;
}

static void empty_kept(struct run *run)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s/" KEPT, run->data->directory);
    assert_int_equal(system(command), 0);
}

static int teardown(void **state)
{
    struct run *run = *state;
    said_free(&run->said);
    empty_kept(run);
    data_directory_destroy(run->data);
    free(run);
    return 0;
}

static enum verb_exit repair_with(struct run *run, struct vfs *vfs,
                                  const struct repair_options *options)
{
    said_free(&run->said);
    said_begin(&run->said);
    enum verb_exit status = repair_directory(vfs, options, run->said.out, run->said.errors);
    said_end(&run->said);
    return status;
}

static enum verb_exit look(struct run *run)
{
    const struct repair_options options = {.directory = run->data->directory,
                                           .drop_from = REPAIR_DROP_NOTHING};
    return repair_with(run, data_only_read(),
                       &options); /* which fails the test if a file is changed */
}

static enum verb_exit repair(struct run *run)
{
    const struct repair_options options = {
        .directory = run->data->directory, .yes = true, .drop_from = REPAIR_DROP_NOTHING};
    return repair_with(run, vfs_real(), &options);
}

static void has(const struct run *run, const char *part)
{
    said_has(run->said.out_text, part);
}

static void assert_sound(struct run *run)
{
    const struct verify_options options = {.directory = run->data->directory};
    struct said said;
    said_begin(&said);
    enum verb_exit status = verify_directory(data_only_read(), &options, said.out, said.errors);
    said_end(&said);
    if (status != VERB_SOUND) {
        fail_msg("not sound: %s%s\nrepaired: %s%s", said.out_text, said.errors_text,
                 run->said.out_text, run->said.errors_text);
    }
    said_free(&said);
}

/* Says it, changes nothing; then does it, and nothing is left to do. */
static void repairs(struct run *run)
{
    assert_int_equal(look(run), VERB_DAMAGED);
    has(run, "nothing was changed: `rollcall repair --yes ");
    if (repair(run) != VERB_SOUND) {
        fail_msg("not repaired: %s%s", run->said.out_text, run->said.errors_text);
    }
    assert_sound(run);
    char *said = strdup(run->said.out_text);
    assert_int_equal(look(run), VERB_SOUND);
    said_free(&run->said);
    said_begin(&run->said);
    fputs(said, run->said.out);
    said_end(&run->said);
    free(said);
}

/* ---- the journal's records ---- */

struct records {
    uint64_t count;
    uint64_t lsn_sum;
};

static bool count_record(void *context, const struct journal_record *record)
{
    struct records *records = context;
    struct change change;
    struct change_record_event event;
    assert_int_equal(change_record_decode(record->type, record->a, record->b, record->payload,
                                          record->bytes, &change, &event),
                     CHANGE_RECORD_IS_CHANGE);
    assert_int_equal(change.id, 42);
    records->count++;
    records->lsn_sum += record->lsn;
    return true;
}

static struct records records_of(struct run *run)
{
    struct records records = {0};
    struct journal_scan scan = {.from = JOURNAL_FROM_OLDEST};
    enum journal_scan_end end =
        journal_scan(vfs_real(), run->data->directory, &scan, count_record, &records);
    assert_true(end == JOURNAL_SCAN_CLEAN || end == JOURNAL_SCAN_TORN);
    assert_true(scan.end >= run->data->end_lsn);
    return records;
}

static uint64_t offset_in(unsigned segment, uint64_t lsn)
{
    return JOURNAL_PAGE_BYTES + lsn - segment * CAPACITY;
}

static void overwrite(struct data *data, const char *name, uint64_t offset, size_t length,
                      uint64_t salt)
{
    struct test_random random = {.state = salt};
    unsigned char *bytes = malloc(length);
    assert_non_null(bytes);
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (unsigned char)test_random_next(&random);
    }
    data_write(data, name, offset, bytes, length);
    free(bytes);
}

/* ---- sound, in use, hopeless ---- */

static void test_sound(void **state)
{
    struct run *run = *state;
    assert_int_equal(look(run), VERB_SOUND);
    has(run, "sound: 6 files");
    assert_int_equal(repair(run), VERB_SOUND);
    assert_sound(run);
    struct stat status;
    assert_int_not_equal(stat(data_path(run->data, KEPT), &status), 0);
}

static void test_in_use(void **state)
{
    struct run *run = *state;
    FILE *held = fopen(run->data->directory, "r");
    assert_non_null(held);
    assert_int_equal(flock(fileno(held), LOCK_EX | LOCK_NB), 0);
    data_flip(run->data, run->data->table[0], PAGE);
    assert_int_equal(look(run), VERB_USAGE);
    said_has(run->said.errors_text, "stop it first");
    fclose(held);
    assert_int_equal(look(run), VERB_DAMAGED);
}

static void test_hopeless(void **state)
{
    struct run *run = *state;
    struct data *data = run->data;
    overwrite(data, MANIFEST_NAME, 100, 50, 1);
    assert_int_equal(repair(run), VERB_DAMAGED);
    has(run, "cannot be repaired: ");
    has(run, "restore it, with all files it names, from a copy");
    data_remove(data, MANIFEST_NAME);
    assert_int_equal(repair(run), VERB_DAMAGED);
    has(run, "MANIFEST is missing");
    const struct repair_options nowhere = {.directory = "/nowhere",
                                           .drop_from = REPAIR_DROP_NOTHING};
    assert_int_equal(repair_with(run, vfs_real(), &nowhere), VERB_USAGE);
}

/* ---- MANIFEST ---- */

static void test_manifest_bit(void **state)
{
    struct run *run = *state;
    uint64_t size = data_size(run->data, MANIFEST_NAME);
    for (uint64_t at = 3; at < size; at += size / 7) {
        data_flip(run->data, MANIFEST_NAME, at);
        repairs(run);
        has(run, "/MANIFEST: one bit had turned over; it is turned back, nothing is lost");
    }
    /* what was there is kept, each under a name of its own */
    assert_int_equal(data_size(run->data, KEPT "/MANIFEST.0"), size);
    assert_int_equal(data_size(run->data, KEPT "/MANIFEST.0.1"), size);
}

/* ---- tables ---- */

static void test_table_page(void **state)
{
    struct run *run = *state;
    struct data *data = run->data;
    unsigned char page[PAGE];
    overwrite(data, data->table[0], 2 * PAGE, PAGE, 3);
    data_write(data, "feed-1-0-3.table", 0, "left over", 9); /* by a kill: not of MANIFEST */
    repairs(run);
    has(run, "/feed-1.table: damaged; it is written anew (table 1 of space feed)\n");
    has(run, "  pages 1 to 1 of the table's 3 are lost: about 0 of its 0, of ids 1 to 1000\n");
    for (unsigned i = 0; i < DATA_TABLE_PAGES; i++) {
        data_read(data, NEW_TABLE, (i + 1) * PAGE, page, PAGE);
        assert_int_equal(page[0], i == 1 ? 0 : 'a' + (int)i);
        assert_int_equal(page[PAGE - 1], page[0]);
    }
    assert_int_equal(data_size(data, KEPT "/feed-1.table"), DATA_TABLE_BYTES);
}

static void test_table_entries(void **state)
{
    struct run *run = *state;
    struct data *data = run->data;
    overwrite(data, data->table[1], (1 + DATA_TABLE_PAGES) * PAGE, 17, 3);
    repairs(run);
    has(run, "/liked-2.table: damaged");
    has(run, "  240 deletes, whose members are there again are lost (page 3), of ids 0 to 2400\n");
}

static void test_table_bit(void **state)
{
    struct run *run = *state;
    struct data *data = run->data;
    for (unsigned page = 0; page < DATA_TABLE_BYTES / PAGE; page++) {
        data_flip(data, data->table[1], page * PAGE + 99);
        repairs(run);
        said_lacks(run->said.out_text, "are lost");
        snprintf(data->table[1], sizeof(data->table[1]), "liked-2-1-%u.table", page + 3);
    }
}

/* A whole table, or what lay over one. */
static void test_table_missing(void **state)
{
    struct run *run = *state;
    struct data *data = run->data;
    data_remove(data, data->table[0]);
    repairs(run);
    has(run, "/feed-1.table is missing\n");
    has(run, "  table 1 of space feed is left out: all its ids, 1 to 1000, are lost\n");
    data_truncate(data, data->table[1], 100); /* the other one is a layer */
    repairs(run);
    has(run, "  a layer of table 2 of space liked is left out: ");
}

static void test_table_swapped(void **state)
{
    struct run *run = *state;
    struct data *data = run->data;
    data_rename(data, data->table[0], "away");
    data_rename(data, data->table[1], data->table[0]);
    data_rename(data, "away", data->table[1]);
    assert_int_equal(look(run), VERB_DAMAGED);
    has(run, "/feed-1.table is another file than MANIFEST means");
}

/* ---- the journal ---- */

static void test_journal_bit(void **state)
{
    struct run *run = *state;
    struct data *data = run->data;
    uint64_t at = offset_in(0, data->second_lsn);
    for (unsigned i = 0; i < data->record_bytes; i += 7) {
        data_flip(data, data->segment[0], at + i);
        repairs(run);
        has(run, "a bit of a record had turned over");
        assert_int_equal(records_of(run).count, data->records);
    }
}

/* A bad stretch in the midst of a segment: what follows is kept. */
static void test_journal_gap(void **state)
{
    struct run *run = *state;
    struct data *data = run->data;
    char text[160];
    uint64_t lsn = data->second_lsn + 5 * data->record_bytes;
    overwrite(data, data->segment[0], offset_in(0, lsn), 3 * data->record_bytes, 4);
    repairs(run);
    snprintf(text, sizeof(text), "bytes, LSN %llu to %llu, about 3 changes: lost\n",
             (unsigned long long)lsn, (unsigned long long)(lsn + 3 * data->record_bytes));
    has(run, text);
    has(run, "rollcall repair --drop-from N ");
    has(run, "its header is written again"); /* the next segment's: the sum is another */
    assert_int_equal(records_of(run).count, data->records - 3);
    /* one record that is not only a bit away */
    lsn += 100 * data->record_bytes;
    overwrite(data, data->segment[0], offset_in(0, lsn) + 40, 2, 5);
    repairs(run);
    has(run, "  by what is left of it a change of id 42\n");
    assert_int_equal(records_of(run).count, data->records - 4);
}

/* Above all marks, as after a kill. */
static void test_journal_gap_above_marks(void **state)
{
    struct run *run = *state;
    struct data *data = run->data;
    uint64_t lsn = data->end_lsn - 10 * data->record_bytes;
    data_write(data, data->segment[LAST], 1024, (char[1100]){0}, 1100);
    overwrite(data, data->segment[LAST], offset_in(LAST, lsn), data->record_bytes, 6);
    repairs(run);
    assert_int_equal(records_of(run).count, data->records - 1);
}

static void test_journal_header(void **state)
{
    struct run *run = *state;
    struct data *data = run->data;
    for (unsigned i = 0; i < DATA_SEGMENTS; i++) {
        overwrite(data, data->segment[i], 0, 600, i + 1);
        repairs(run);
        has(run, "its header is damaged; it is made again of its neighbours");
        assert_int_equal(records_of(run).count, data->records);
    }
}

/* A last segment that no mark speaks of, after one that ended before it was full. */
static void test_journal_header_of_the_newest(void **state)
{
    struct run *run = *state;
    struct data *data = run->data;
    char name[JOURNAL_NAME_MAX];
    data_write(data, data->segment[LAST], 1024, (char[1100]){0}, 1100);
    journal_name(name, data->end_lsn + DATA_CLOSED_BYTES);
    overwrite(data, name, 0, 2 * JOURNAL_PAGE_BYTES, 7);
    repairs(run);
    has(run, "its header is damaged; it is made again of its neighbours");
    assert_int_equal(records_of(run).count, data->records);
    data_remove(data, name);
}

static void test_journal_missing(void **state)
{
    struct run *run = *state;
    struct data *data = run->data;
    data_remove(data, data->segment[1]);
    repairs(run);
    has(run, "the segment is missing; it is made again, empty");
    has(run, ": nothing is there: 1044480 bytes");
    assert_true(records_of(run).count > data->records / 4);
    /* the last: the tables need the stream to go on to their E */
    data_remove(data, data->segment[LAST]);
    repairs(run);
    records_of(run);
    /* all of it */
    for (unsigned i = 0; i < LAST; i++) {
        data_remove(data, data->segment[i]);
    }
    char name[JOURNAL_NAME_MAX];
    journal_name(name, LAST * CAPACITY);
    data_remove(data, name);
    repairs(run);
    assert_int_equal(records_of(run).count, 0);
}

static void test_journal_cut_short(void **state)
{
    struct run *run = *state;
    struct data *data = run->data;
    uint64_t lsn = data->end_lsn - 20 * data->record_bytes;
    data_truncate(data, data->segment[LAST], offset_in(LAST, lsn) + 8);
    repairs(run);
    assert_int_equal(records_of(run).count, data->records - 20);
    data_truncate(data, data->segment[1], 10000);
    repairs(run);
    records_of(run);
}

static void test_drop_from(void **state)
{
    struct run *run = *state;
    struct data *data = run->data;
    uint64_t lsn = data->end_lsn - 7 * data->record_bytes;
    struct repair_options options = {.directory = data->directory, .drop_from = lsn};
    assert_int_equal(repair_with(run, data_only_read(), &options), VERB_DAMAGED);
    has(run, ": given up: ");
    has(run, ", about 7 changes: lost"); /* in one */
    options.yes = true;
    assert_int_equal(repair_with(run, vfs_real(), &options), VERB_SOUND);
    assert_sound(run);
    assert_int_equal(records_of(run).count, data->records - 7);
}

/* ---- anything, anywhere ---- */

/* A page of rubbish, or a bit, in some file; each time all of it is sound afterwards. */
static void test_random(void **state)
{
    struct run *run = *state;
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
                    at < offset_in(LAST, data->end_lsn);
        if (bit) {
            data_flip(data, name, at + test_random_below(&random, PAGE));
        } else {
            overwrite(data, name, at, PAGE, i + 1);
        }
        enum verb_exit status = repair(run);
        if (status != VERB_SOUND) {
            fail_msg("%s at %llu, %d: %s%s", name, (unsigned long long)at, bit, run->said.out_text,
                     run->said.errors_text);
        }
        assert_sound(run);
        if (used && which >= DATA_TABLES) {
            assert_true(records_of(run).count + 3 * PAGE / data->record_bytes >= data->records);
        }
        teardown(state);
        setup(state);
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
    struct run *run = *state;
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

#define UNIT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_sound),           UNIT(test_in_use),
        UNIT(test_hopeless),        UNIT(test_manifest_bit),
        UNIT(test_table_page),      UNIT(test_table_entries),
        UNIT(test_table_bit),       UNIT(test_table_missing),
        UNIT(test_table_swapped),   UNIT(test_journal_bit),
        UNIT(test_journal_gap),     UNIT(test_journal_gap_above_marks),
        UNIT(test_journal_header),  UNIT(test_journal_header_of_the_newest),
        UNIT(test_journal_missing), UNIT(test_journal_cut_short),
        UNIT(test_drop_from),       UNIT(test_random),
        UNIT(test_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
