/* test_verify.c: `rollcall verify` finds what is damaged, names the place, and nothing else. */
#include "tools/rollcall/verify.h"

#include "tests/unit/tools/data_directory.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/dir_lock.h"
#include "store/journal_format.h"
#include "store/table_file_format.h"

#define PAGE TABLE_FILE_PAGE_BYTES

static enum verb_exit verify_at(struct said_run *run, struct vfs *vfs, const char *directory,
                                bool quiet)
{
    const struct verify_options options = {.directory = directory, .quiet = quiet};
    said_free(&run->said);
    said_begin(&run->said);
    enum verb_exit status = verify_directory(vfs, &options, run->said.out, run->said.errors);
    said_end(&run->said);
    return status;
}

static enum verb_exit verify(struct said_run *run)
{
    return verify_at(run, data_only_read(), run->data->directory, false);
}

static void has(const struct said_run *run, const char *part)
{
    said_has(run->said.out_text, part);
}

/* DIR/name: offset N: */
static void has_place(const struct said_run *run, const char *name, uint64_t offset)
{
    char place[VFS_PATH_MAX];
    snprintf(place, sizeof(place), "%s/%s: offset %llu: ", run->data->directory, name,
             (unsigned long long)offset);
    has(run, place);
}

/* It must say that it is damaged, so many findings, and no word of a sound directory. */
static void assert_damaged(struct said_run *run, unsigned findings)
{
    char summary[64];
    assert_int_equal(verify(run), VERB_DAMAGED);
    snprintf(summary, sizeof(summary), "damaged: %u finding%s in ", findings,
             findings == 1 ? "" : "s");
    has(run, summary);
    said_lacks(run->said.out_text, "sound: ");
    assert_string_equal(run->said.errors_text, "");
}

static void assert_sound(struct said_run *run)
{
    if (verify(run) != VERB_SOUND) {
        fail_msg("not sound: %s%s", run->said.out_text, run->said.errors_text);
    }
    has(run, "sound: ");
    assert_string_equal(run->said.errors_text, "");
}

/* The segments before it are full. */
static uint64_t offset_in(unsigned segment, uint64_t lsn)
{
    return JOURNAL_PAGE_BYTES + lsn - segment * (DATA_SEGMENT_BYTES - JOURNAL_PAGE_BYTES);
}

/* ---- sound ---- */

static void test_sound(void **state)
{
    struct said_run *run = *state;
    char expected[128];
    assert_sound(run);
    snprintf(expected, sizeof(expected), "sound: 6 files, 2.3 MiB, journal %llu records\n",
             (unsigned long long)run->data->records);
    assert_string_equal(run->said.out_text, expected);
    assert_int_equal(verify_at(run, data_only_read(), run->data->directory, true), VERB_SOUND);
    assert_string_equal(run->said.out_text, "");
}

static void has_cut(struct said_run *run, uint64_t bytes)
{
    char text[100];
    snprintf(text, sizeof(text),
             ": the file is cut short: it has %llu bytes, its header says %llu ",
             (unsigned long long)bytes, (unsigned long long)DATA_SEGMENT_BYTES);
    has(run, text);
}

static void test_torn_tail(void **state)
{
    struct said_run *run = *state;
    const char *last = run->data->segment[DATA_SEGMENTS - 1];
    uint64_t end = offset_in(DATA_SEGMENTS - 1, run->data->end_lsn);
    uint64_t behind = end + DATA_CLOSED_BYTES;
    data_truncate(run->data, last, DATA_SEGMENT_BYTES);
    data_write(run->data, last, behind, "\x01half a record", 14);
    assert_sound(run);
    has_place(run, last, behind);
    has(run, "torn tail of 14 bytes");
    data_truncate(run->data, last, end);
    /* the mark says the clean end was there */
    assert_damaged(run, 1);
    has_place(run, last, end);
    has_cut(run, end);
}

/* As a kill leaves it: nothing says how far the last segment goes. */
static void forget_marks(struct data *data, const char *name)
{
    data_write(data, name, 1024, (char[JOURNAL_MARK_BYTES]){0}, JOURNAL_MARK_BYTES);
    data_write(data, name, 2048, (char[JOURNAL_MARK_BYTES]){0}, JOURNAL_MARK_BYTES);
}

/* Without its last mark a segment does not know of its end: as after a kill. */
static void test_killed(void **state)
{
    struct said_run *run = *state;
    const char *last = run->data->segment[DATA_SEGMENTS - 1];
    uint64_t end = offset_in(DATA_SEGMENTS - 1, run->data->end_lsn);
    forget_marks(run->data, last);
    data_truncate(run->data, last, end);
    data_truncate(run->data, last, DATA_SEGMENT_BYTES);
    assert_sound(run);
    has(run, "without a clean end");
    for (uint64_t bytes = end + 40; bytes >= end - 40; bytes--) { /* it is as long as it was made */
        data_truncate(run->data, last, bytes);
        assert_damaged(run, 1);
        has_cut(run, bytes);
    }
}

static void test_leftovers(void **state)
{
    struct said_run *run = *state;
    unsigned char page[PAGE];
    data_write(run->data, "MANIFEST.tmp", 0, "half", 4);
    data_write(run->data, "notes.txt", 0, "mine", 4);
    data_read(run->data, run->data->table[0], 0, page, PAGE);
    data_write(run->data, "old-image", 0, page, PAGE);
    data_write(run->data, "feed-1-0-1.table", 0, page, PAGE);
    data_write(run->data, "journal-again.tmp", 0, "", 0);
    data_write(run->data, JOURNAL_BALLAST_NAME, 0, "", 0);
    data_write(run->data, "mine.tmp", 0, "", 0);
    data_write(run->data, "dining.table", 0, page, PAGE);
    assert_sound(run);
    has(run, "/MANIFEST.tmp: left over: the next start deletes it\n");
    has(run, "/feed-1-0-1.table: left over: the next start deletes it\n");
    has(run, "/journal-again.tmp: left over: the next start deletes it\n");
    has(run, "/mine.tmp: not a file of a data directory: not looked at\n");
    has(run, "/dining.table: a table file MANIFEST does not name: not looked at\n");
    has(run, "/old-image: a table file MANIFEST does not name: not looked at\n");
    has(run, "/notes.txt: not a file of a data directory");
    said_lacks(run->said.out_text, "/lock");
    said_lacks(run->said.out_text, "/" JOURNAL_BALLAST_NAME ":");
    has(run, "sound: 6 files");
    assert_int_equal(verify_at(run, data_only_read(), run->data->directory, true), VERB_SOUND);
    assert_string_equal(run->said.out_text, "");
}

static void test_daemon(void **state)
{
    struct said_run *run = *state;
    FILE *held = fopen(run->data->directory, "r");
    assert_non_null(held);
    assert_int_equal(flock(fileno(held), LOCK_EX | LOCK_NB), 0);
    data_write(run->data, "journal-next.tmp", 0, "", 0);
    assert_int_equal(verify(run), VERB_SOUND);
    said_has(run->said.errors_text,
             " is in use by rollcalld, or by a verb such as rollcall verify: this is a look");
    has(run, "/journal-next.tmp: left over, or in use by the daemon\n");
    data_flip(run->data, run->data->table[0], PAGE);
    assert_int_equal(verify(run), VERB_DAMAGED);
    said_has_times(run->said.out_text, "page 0 at offset 4096", 1);
    said_has_times(run->said.out_text, "damaged: 1 finding in 6 files", 1);
    fclose(held);
    verify(run);
    assert_string_equal(run->said.errors_text, "");
}

static struct said_run *being_read;
static unsigned tried;

/* Reads a directory's names as the system does, once a daemon has tried to begin on it. */
static int list_tried(struct vfs *vfs, const char *path, vfs_entry_fn *entry, void *context)
{
    struct dir_lock lock;
    (void)vfs;
    tried++;
    assert_int_equal(dir_lock_take(vfs_real(), being_read->data->directory, &lock), DIR_LOCK_HELD);
    assert_int_equal(lock.holder, 0); /* DIR/lock names nobody that lives */
    return vfs_real()->functions->list(vfs_real(), path, entry, context);
}

/* What is looked at stays as it is: no daemon begins meanwhile, and one may afterwards. */
static void test_locked(void **state)
{
    struct vfs_functions functions = *data_only_read()->functions;
    struct vfs vfs = {&functions};
    struct dir_lock lock;
    being_read = *state;
    tried = 0;
    functions.list = list_tried;
    assert_int_equal(verify_at(*state, &vfs, being_read->data->directory, false), VERB_SOUND);
    assert_true(tried > 0);
    assert_string_equal(being_read->said.errors_text, "");
    assert_int_equal(dir_lock_take(vfs_real(), being_read->data->directory, &lock), DIR_LOCK_TAKEN);
    dir_lock_give(&lock);
}

/* ---- flipped bits ---- */

static void test_flip_manifest(void **state)
{
    struct said_run *run = *state;
    data_flip(run->data, MANIFEST_NAME, data_size(run->data, MANIFEST_NAME) / 2);
    assert_damaged(run, 1);
    has(run, "/" MANIFEST_NAME);
    has(run, "restore");
    /* the rest is looked at all the same */
    data_flip(run->data, run->data->table[1], PAGE * 2);
    assert_damaged(run, 2);
    has(run, "page 1 at offset 8192");
}

static void test_flip_table(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    for (unsigned page = 0; page < DATA_TABLE_BYTES / PAGE; page++) {
        char place[64];
        data_flip(data, data->table[0], page * PAGE + 8 * page);
        assert_damaged(run, 1);
        has(run, data->table[0]);
        if (page > 0 && page < DATA_TABLE_BYTES / PAGE - 2) {
            snprintf(place, sizeof(place), ": page %u at offset %u ", page - 1, page * PAGE);
            has(run, place);
        }
        data_flip(data, data->table[0], page * PAGE + 8 * page);
    }
    assert_sound(run);
}

static void test_flip_journal(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    char goes_on[64], records[64];
    uint64_t at = offset_in(0, data->second_lsn);
    data_flip(data, data->segment[0], at + 50);
    assert_damaged(run, 1);
    has_place(run, data->segment[0], at);
    snprintf(goes_on, sizeof(goes_on), "sound records go on at offset %llu",
             (unsigned long long)(at + data->record_bytes));
    has(run, goes_on);
    snprintf(records, sizeof(records), "journal %llu records\n",
             (unsigned long long)(data->records - 1));
    has(run, records);
    has(run, "a start does not read it");
    said_lacks(run->said.out_text, "tells more");
    /* a second one, in another segment: where replay reads */
    uint64_t last = offset_in(DATA_SEGMENTS - 1, data->end_lsn - data->record_bytes);
    data_flip(data, data->segment[DATA_SEGMENTS - 1], last + 8);
    assert_damaged(run, 2);
    has_place(run, data->segment[0], at);
    has_place(run, data->segment[DATA_SEGMENTS - 1], last);
    said_lacks(run->said.out_text, "a start does not read it");
}

static void rewrite_header(struct data *data, const char *name, unsigned word)
{
    uint64_t words[64];
    data_read(data, name, 0, words, sizeof(words));
    words[word]++;
    words[63] = hash_bytes(words, 63 * sizeof(*words), JOURNAL_MAGIC);
    data_write(data, name, 0, words, sizeof(words));
}

static void test_flip_journal_header(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    for (unsigned i = 0; i < DATA_SEGMENTS; i++) {
        data_flip(data, data->segment[i], 33);
        assert_int_equal(verify(run), VERB_DAMAGED);
        has_place(run, data->segment[i], 0);
        has(run, "checksum");
        data_flip(data, data->segment[i], 33);
    }
    assert_sound(run);
    /* a last one that no mark speaks of: a power cut may leave none of it, and a kill all */
    char name[JOURNAL_NAME_MAX];
    forget_marks(data, data->segment[DATA_SEGMENTS - 1]);
    journal_name(name, data->end_lsn + DATA_CLOSED_BYTES);
    data_write(data, name, 0, "rubbish", 7);
    for (unsigned i = 0; i < 2; i++) {
        assert_damaged(run, 1);
        has_place(run, name, 0);
        rewrite_header(data, data->segment[DATA_SEGMENTS - 1], 10); /* the run of the system */
    }
    data_truncate(data, name, 0);
    assert_sound(run);
    data_remove(data, name);
}

/* A start stops at the first; what comes after it is found all the same. */
static void test_behind_damage(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    const char *last = data->segment[DATA_SEGMENTS - 1];
    uint64_t end = data->end_lsn - data->record_bytes;
    data_flip(data, data->segment[0], offset_in(0, data->second_lsn) + 8);
    data_truncate(data, last, offset_in(DATA_SEGMENTS - 1, end));
    assert_damaged(run, 2);
    has_place(run, last, offset_in(DATA_SEGMENTS - 1, end));
    has_cut(run, offset_in(DATA_SEGMENTS - 1, end));
    data_flip(data, data->segment[1], 40);
    assert_damaged(run, 3);
    has_place(run, data->segment[1], 0);
    has(run, "the header's checksum does not fit");
    data_remove(data, data->segment[1]);
    assert_damaged(run, 3);
    has_place(run, data->segment[1], 0);
    has(run, "the segment is missing");
}

/* One that is sound for itself, after another than the one that is there. */
static void test_strange_segment(void **state)
{
    struct said_run *run = *state;
    rewrite_header(run->data, run->data->segment[1], 9); /* the sum of its predecessor */
    assert_damaged(run, 1);
    has_place(run, run->data->segment[1], 0);
    has(run, "does not follow the segment before it");
    said_lacks(run->said.out_text, "tells more");
}

/* Above all marks: nothing comes after a torn end. */
static void test_flip_above_marks(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    const char *last = data->segment[DATA_SEGMENTS - 1];
    uint64_t lsn = data->end_lsn - 3 * data->record_bytes;
    uint64_t at = offset_in(DATA_SEGMENTS - 1, lsn);
    char text[160];
    forget_marks(data, last);
    data_flip(data, last, at + 8);
    assert_damaged(run, 1);
    has_place(run, last, at);
    snprintf(text, sizeof(text), "sound records go on at offset %llu",
             (unsigned long long)(at + data->record_bytes));
    has(run, text);
    rewrite_header(data, last, 10); /* the run of the system */
    assert_int_equal(verify(run), VERB_DAMAGED);
    snprintf(text, sizeof(text),
             "/%s: offset %llu: the journal breaks off here, at LSN %llu, but 3 sound records "
             "(%llu bytes) follow",
             last, (unsigned long long)at, (unsigned long long)lsn,
             (unsigned long long)(2 * data->record_bytes + DATA_CLOSED_BYTES));
    has(run, text);
    data_truncate(data, last, at + data->record_bytes);
    data_truncate(data, last, DATA_SEGMENT_BYTES);
    verify(run);
    has(run, "torn tail of");
    said_lacks(run->said.out_text, "breaks off");
}

/* ---- cut short, missing ---- */

static void test_truncated(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    data_truncate(data, data->table[1], DATA_TABLE_BYTES - 1);
    assert_damaged(run, 1);
    has(run, data->table[1]);
    data_truncate(data, data->table[0], 0);
    assert_damaged(run, 2);
    has(run, data->table[0]);
    data_truncate(data, data->segment[1], DATA_SEGMENT_BYTES / 2);
    assert_damaged(run, 3);
    has(run, data->segment[1]);
    data_truncate(data, MANIFEST_NAME, data_size(data, MANIFEST_NAME) - 10);
    assert_int_equal(verify(run), VERB_DAMAGED);
    has(run, "/" MANIFEST_NAME ": does not end with the line of its checksum");
}

static void test_missing_segment(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    for (unsigned i = 0; i < DATA_SEGMENTS; i++) {
        data_rename(data, data->segment[i], "away.tmp");
        /* one that was trimmed before all that is needed */
        assert_int_equal(verify(run), i == 0 ? VERB_SOUND : VERB_DAMAGED);
        if (i > 0) {
            has_place(run, data->segment[i], 0);
            has(run, "the segment is missing");
        }
        data_rename(data, "away.tmp", data->segment[i]);
    }
    data_remove(data, data->segment[0]);
    data_remove(data, data->segment[1]);
    assert_damaged(run, 1);
    has_place(run, data->segment[2], 0);
    has(run, "a segment is missing");
    data_remove(data, data->segment[2]);
    assert_int_equal(verify(run), VERB_DAMAGED);
    has(run, "segments are missing");
}

static void test_missing_table(void **state)
{
    struct said_run *run = *state;
    data_remove(run->data, run->data->table[0]);
    assert_damaged(run, 1);
    has(run, run->data->table[0]);
    has(run, "no such file");
}

static void test_missing_manifest(void **state)
{
    struct said_run *run = *state;
    data_remove(run->data, MANIFEST_NAME);
    assert_damaged(run, 1);
    has(run, "/" MANIFEST_NAME ": is missing");
    data_flip(run->data, run->data->table[0], PAGE);
    assert_damaged(run, 2);
}

/* ---- not what the manifest means ---- */

static void test_other_file(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    struct manifest_file right = data->file[0];
    struct manifest_file *file = &data->file[0];
    file->serial++;
    file->layer++;
    file->generation++;
    file->start_lsn--;
    file->end_lsn++;
    file->bytes++;
    data_store_manifest(data);
    assert_damaged(run, 6);
    has_place(run, right.name, offsetof(struct table_file_header, serial));
    has(run, "the serial is 1, MANIFEST says 2");
    has(run, "the generation is 2, MANIFEST says 3");
    has_place(run, right.name, DATA_TABLE_BYTES - PAGE + 16);
    /* the other table under its name: another kind, space, serial and layer */
    data->file[0] = right;
    data_store_manifest(data);
    unsigned char bytes[DATA_TABLE_BYTES];
    data_read(data, data->table[1], 0, bytes, sizeof(bytes));
    data_write(data, data->table[0], 0, bytes, sizeof(bytes));
    assert_damaged(run, 4);
    has(run, "the kind is phantom, MANIFEST says counter");
    has(run, "the space is liked, MANIFEST says feed");
}

static void test_journal_too_short(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    data->journal_lsn = data->end_lsn + DATA_CLOSED_BYTES;
    data_store_manifest(data);
    assert_sound(run); /* after the clean end */
    data->journal_lsn = data->end_lsn + DATA_CLOSED_BYTES + 8;
    data_store_manifest(data);
    assert_damaged(run, 1);
    has(run, "segments are missing");
}

/* An image with changes the journal does not have. */
static void test_image_ahead(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    const uint64_t end = data->end_lsn + 4096;
    struct table_file_footer footer;
    uint64_t offset = DATA_TABLE_BYTES - PAGE;
    data_read(data, data->table[0], offset, &footer, sizeof(footer));
    footer.end_lsn = end;
    footer.checksum = table_file_footer_sum(&footer, footer.identity);
    data_write(data, data->table[0], offset, &footer, sizeof(footer));
    data->file[0].end_lsn = end;
    data_store_manifest(data);
    assert_damaged(run, 1);
    has_place(run, data->table[0], offset + 16);
    has(run, "the journal ends at LSN");
}

/* ---- newer ---- */

static void assert_newer(struct said_run *run, const char *name)
{
    assert_int_equal(verify(run), VERB_USAGE);
    has(run, name);
    has(run, "use the ");
    has(run, "not all can be judged: ");
    said_lacks(run->said.out_text, "damaged");
}

static void test_newer(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    struct table_file_header header;
    data_read(data, data->table[0], 0, &header, sizeof(header));
    header.version++;
    header.checksum = table_file_header_sum(&header);
    data_write(data, data->table[0], 0, &header, sizeof(header));
    assert_newer(run, data->table[0]);
    header.version--;
    header.checksum = table_file_header_sum(&header);
    data_write(data, data->table[0], 0, &header, sizeof(header));
    assert_sound(run);
    rewrite_header(data, data->segment[1], 1); /* its version */
    assert_newer(run, data->segment[1]);
    /* a damage beside it counts for more */
    data_flip(data, data->table[1], PAGE);
    assert_damaged(run, 1);
}

/* ---- nothing to look at ---- */

static int refuse_list(struct vfs *vfs, const char *path, vfs_entry_fn *entry, void *context)
{
    (void)vfs, (void)path, (void)entry, (void)context;
    errno = EACCES;
    return -1;
}

static void test_no_directory(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    struct vfs_functions functions = *data_only_read()->functions;
    struct vfs refusing = {&functions};
    functions.list = refuse_list;
    assert_int_equal(verify_at(run, &refusing, data->directory, false), VERB_USAGE);
    said_has_times(run->said.errors_text, "rollcall: ", 1);
    said_has(run->said.errors_text, "ermission denied");
    assert_int_equal(verify_at(run, data_only_read(), data_path(data, "nowhere"), false),
                     VERB_USAGE);
    said_has(run->said.errors_text, "No such file or directory");
    assert_int_equal(verify_at(run, data_only_read(), data_path(data, MANIFEST_NAME), false),
                     VERB_USAGE);
    said_has(run->said.errors_text, "Not a directory");
    assert_int_equal(verify_at(run, data_only_read(), "/proc/self/fd", true), VERB_USAGE);
    said_has(run->said.errors_text, "not a data directory");
    assert_string_equal(run->said.out_text, "");
}

/* A bad place in each page: not every one is printed, all are counted. */
static void test_many(void **state)
{
    struct said_run *run = *state;
    const unsigned pages = 150;
    char error[TABLE_FILE_ERROR_MAX];
    struct data *data = run->data;
    struct table_file_info info = {.kind = "counter", .space = "feed", .serial = 9};
    struct table_file_writer *writer =
        table_file_create(vfs_real(), data->directory, "many.table", &info, error);
    assert_non_null(writer);
    for (unsigned i = 0; i < pages; i++) {
        assert_true(table_file_append_pages(writer, (char[PAGE]){0}, 1));
    }
    struct manifest_file *file = &data->file[0];
    *file = (struct manifest_file){.name = "many.table", .serial = 9, .last_id = 1};
    assert_true(table_file_commit(writer, 0, &file->bytes, error));
    data_store_manifest(data);
    assert_sound(run);
    for (unsigned i = 0; i < pages; i++) {
        data_flip(data, "many.table", (i + 1) * PAGE);
    }
    assert_damaged(run, pages);
    said_has_times(run->said.out_text, "/many.table: page ", 100);
    has(run, "50 more findings in the same file\n");
}

static int call(const char *one, const char *two)
{
    char *words[] = {(char[]){"verify"}, (char *)one, (char *)two, NULL};
    optind = 1;
    return verify_main(1 + (one != NULL) + (two != NULL), words);
}

static void test_usage(void **state)
{
    struct said_run *run = *state;
    assert_int_equal(call(NULL, NULL), 2);
    assert_int_equal(call("--wrong", run->data->directory), 2);
    assert_int_equal(call(run->data->directory, "more"), 2);
    assert_int_equal(call("--help", NULL), 0);
    assert_int_equal(call("-q", run->data->directory), 0);
    data_flip(run->data, run->data->table[0], PAGE);
    assert_int_equal(call("-q", run->data->directory), 1);
}

#define UNIT(test) SAID_RUN_TEST(test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_sound),
        UNIT(test_torn_tail),
        UNIT(test_killed),
        UNIT(test_leftovers),
        UNIT(test_daemon),
        UNIT(test_locked),
        UNIT(test_flip_manifest),
        UNIT(test_flip_table),
        UNIT(test_flip_journal),
        UNIT(test_flip_journal_header),
        UNIT(test_behind_damage),
        UNIT(test_strange_segment),
        UNIT(test_flip_above_marks),
        UNIT(test_truncated),
        UNIT(test_missing_segment),
        UNIT(test_missing_table),
        UNIT(test_missing_manifest),
        UNIT(test_other_file),
        UNIT(test_journal_too_short),
        UNIT(test_image_ahead),
        UNIT(test_newer),
        UNIT(test_no_directory),
        UNIT(test_many),
        UNIT(test_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
