/* test_repair_journal.c: what `rollcall repair` writes into a journal: headers with their marks and
 * numbers, where the stream ends, what is kept of what it replaces; and that no failure of a write
 * is taken for a repair. */
#include "tests/unit/tools/repair_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/journal_chain.h"

#define LAST       (DATA_SEGMENTS - 1)
#define LAST_START (LAST * REPAIR_CAPACITY)
#define MENDS      1000u /* MENDS_MAX of repair_journal.c */

/* ---- looking ---- */

static struct journal_found page_of(struct data *data, const char *name)
{
    struct journal_found found = {.name_start = 0};
    int fd = vfs_open_in(vfs_real(), data->directory, name, O_RDONLY);
    assert_true(fd >= 0);
    assert_true(journal_name_parse(name, &found.name_start));
    assert_int_equal(journal_page_read(vfs_real(), fd, &found), 0);
    vfs_close(vfs_real(), fd);
    assert_int_equal(found.state, JOURNAL_PAGE_SOUND);
    return found;
}

static void assert_same_mark(const struct journal_mark *now, const struct journal_mark *before)
{
    assert_int_equal(now->durable, before->durable);
    assert_int_equal(now->written, before->written);
    assert_int_equal(now->serial, before->serial);
    assert_int_equal(now->sealed, before->sealed);
}

/* Of a header what neighbours, name and size tell. */
static void assert_same_header(const struct journal_header *now,
                               const struct journal_header *before)
{
    assert_int_equal(now->epoch, before->epoch);
    assert_int_equal(now->number, before->number);
    assert_int_equal(now->start, before->start);
    assert_int_equal(now->previous.number, before->previous.number);
    assert_int_equal(now->previous.start, before->previous.start);
}

/* A file of DIR/lost has these bytes, without the zeroes at their end. */
static void assert_kept(struct data *data, const char *segment, uint64_t offset,
                        const unsigned char *bytes, size_t length)
{
    char name[VFS_PATH_MAX];
    unsigned char *kept = calloc(1, length);
    assert_non_null(kept);
    while (length > 0 && bytes[length - 1] == 0) {
        length--;
    }
    snprintf(name, sizeof(name), REPAIR_KEPT "/%s.%llu", segment, (unsigned long long)offset);
    assert_int_equal(data_size(data, name), length);
    data_read(data, name, 0, kept, length);
    assert_memory_equal(kept, bytes, length);
    free(kept);
}

/* MANIFEST without files: the journal need not go on to where their images end. */
static void forget_files(struct data *data, uint64_t journal_lsn)
{
    char error[MANIFEST_ERROR_MAX];
    struct manifest *manifest = manifest_create();
    manifest->epoch = 4;
    manifest->stream[0] = 4;
    manifest->journal_lsn = journal_lsn;
    assert_true(manifest_store(vfs_real(), data->directory, manifest, error));
    manifest_destroy(manifest);
}

/* The marks of a segment say no more than that the stream came to this LSN. */
static void lower_mark(struct data *data, const char *name, uint64_t lsn)
{
    unsigned char bytes[JOURNAL_MARK_BYTES];
    struct journal_found found = page_of(data, name);
    found.mark.durable = found.mark.durable < lsn ? found.mark.durable : lsn;
    found.mark.written = found.mark.written < lsn ? found.mark.written : lsn;
    found.mark.serial++;
    uint64_t offset = journal_mark_encode(&found.header, &found.mark, bytes);
    data_write(data, name, offset, bytes, sizeof(bytes));
}

static void lower_marks(struct data *data, unsigned segments, uint64_t lsn)
{
    for (unsigned i = 0; i < segments; i++) {
        lower_mark(data, data->segment[i], lsn);
    }
}

static void damage_record(struct said_run *run, unsigned segment, uint64_t lsn)
{
    repair_run_overwrite(run->data, run->data->segment[segment], repair_run_offset(segment, lsn),
                         run->data->record_bytes, lsn);
}

static void says_lost(const struct said_run *run, const char *why, uint64_t from, uint64_t to)
{
    char text[160];
    snprintf(text, sizeof(text), ": %s: %llu bytes, LSN %llu to %llu, ", why,
             (unsigned long long)(to - from), (unsigned long long)from, (unsigned long long)to);
    repair_run_has(run, text);
}

/* ---- headers ---- */

/* The segment after one that was mended has another sum before it, and all else as it was. */
static void test_next_header(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    unsigned char page[JOURNAL_PAGE_BYTES], bad[1024];
    uint64_t lsn = data->second_lsn + 5 * data->record_bytes;
    uint64_t offset = repair_run_offset(0, lsn);
    const struct journal_found before = page_of(data, data->segment[1]);
    assert_true(before.mark.serial > 0 && before.header.previous.sum != 0);
    damage_record(run, 0, lsn);
    data_read(data, data->segment[0], offset, bad, data->record_bytes);
    data_read(data, data->segment[1], 0, page, sizeof(page));
    repair_run_whole(run);
    repair_run_has(run, "its header is written again: the segment before it has changed");
    struct journal_found now = page_of(data, data->segment[1]);
    assert_same_header(&now.header, &before.header);
    assert_same_mark(&now.mark, &before.mark);
    assert_int_equal(now.header.bytes, before.header.bytes);
    assert_int_equal(now.header.durable, before.header.durable);
    assert_int_equal(now.header.boot, before.header.boot);
    assert_int_equal(now.header.previous.sum, 0);
    assert_kept(data, data->segment[0], offset, bad, data->record_bytes);
    assert_kept(data, data->segment[1], 0, page, sizeof(page));
    /* once: no sum is left that could be wrong */
    damage_record(run, 0, lsn + 100 * data->record_bytes);
    repair_run_whole(run);
    repair_run_lacks(run, "its header is written again");
    assert_int_equal(repair_run_records(run).count, data->records - 2);
}

/* A record that is had again leaves the sum what it was. */
static void test_next_header_after_a_bit(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    const struct journal_found before = page_of(data, data->segment[1]);
    data_flip(data, data->segment[0], repair_run_offset(0, data->second_lsn) + 20);
    repair_run_whole(run);
    repair_run_has(run, "a bit of a record had turned over");
    repair_run_lacks(run, "its header is written again");
    assert_int_equal(page_of(data, data->segment[1]).header.previous.sum,
                     before.header.previous.sum);
}

/* What is made again says what it said, but for what no neighbour knows: sum and marks. */
static void test_headers_made_again(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    for (unsigned i = 0; i < DATA_SEGMENTS; i++) {
        unsigned char page[JOURNAL_PAGE_BYTES];
        const struct journal_found before = page_of(data, data->segment[i]);
        repair_run_overwrite(data, data->segment[i], 0, 600, i + 1);
        data_read(data, data->segment[i], 0, page, sizeof(page));
        repair_run_whole(run);
        repair_run_has(run, "its header is damaged; it is made again of its neighbours");
        struct journal_found now = page_of(data, data->segment[i]);
        assert_same_header(&now.header, &before.header);
        assert_int_equal(now.header.bytes, data_size(data, data->segment[i]));
        assert_kept(data, data->segment[i], 0, page, sizeof(page));
        assert_int_equal(repair_run_records(run).count, data->records);
    }
}

/* Neighbours tell nothing of each other: their numbers rise all the same. */
static void test_headers_in_a_row(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    for (unsigned first = 0; first < LAST; first++) {
        for (unsigned i = first; i < DATA_SEGMENTS; i++) {
            repair_run_overwrite(data, data->segment[i], 0, 600, i + 1);
        }
        repair_run_whole(run);
        assert_int_equal(repair_run_records(run).count, data->records);
        for (unsigned i = 1; i < DATA_SEGMENTS; i++) {
            const struct journal_found left = page_of(data, data->segment[i - 1]);
            const struct journal_found right = page_of(data, data->segment[i]);
            assert_true(right.header.number > left.header.number);
            assert_int_equal(right.header.previous.number, left.header.number);
            assert_int_equal(right.header.previous.start, left.header.start);
        }
    }
}

/* ---- where the stream ends ---- */

/* The last segment is gone, and nothing says that anything was in it: the one before is the last,
 * and open again. */
static void test_last_is_gone(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    lower_marks(data, LAST, LAST_START);
    const struct journal_found before = page_of(data, data->segment[LAST - 1]);
    assert_true(before.mark.sealed);
    assert_int_equal(before.mark.durable, LAST_START);
    forget_files(data, REPAIR_CAPACITY);
    data_remove(data, data->segment[LAST]);
    repair_run_whole(run);
    repair_run_lacks(run, "the segment is missing");
    repair_run_lacks(run, ": lost");
    const struct journal_found now = page_of(data, data->segment[LAST - 1]);
    assert_false(now.mark.sealed);
    assert_int_equal(now.mark.durable, before.mark.durable);
    assert_int_equal(now.mark.written, before.mark.written);
}

/* MANIFEST says that there was a stream as far as the end of the last segment, and no further. */
static void test_reach_is_the_end(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    data->journal_lsn = LAST_START + REPAIR_CAPACITY;
    data_store_manifest(data);
    repair_run_whole(run);
    repair_run_lacks(run, "the segment is missing");
    says_lost(run, "nothing was written here", data->end_lsn + DATA_CLOSED_BYTES,
              data->journal_lsn);
}

/* The last segment is cut: it goes on to where tables say that there was a stream, no further. */
static void test_cut_short(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    uint64_t lsn = data->end_lsn - 20 * data->record_bytes;
    data_truncate(data, data->segment[LAST], repair_run_offset(LAST, lsn));
    uint64_t durable = page_of(data, data->segment[LAST]).mark.durable;
    repair_run_whole(run);
    says_lost(run, "nothing was written here", lsn,
              durable > data->end_lsn ? durable : data->end_lsn);
    assert_int_equal(repair_run_records(run).count, data->records - 20);
}

/* Nothing says how far it went: its end is empty, even where zeroes of a record were cut off. */
static void test_made_whole(void **state)
{
    static const unsigned bytes_left[] = {8, 0, 5};
    struct said_run *run = *state;
    struct data *data = run->data;
    char text[200];
    forget_files(data, REPAIR_CAPACITY);
    lower_marks(data, DATA_SEGMENTS, LAST_START);
    uint64_t end = data->end_lsn;
    for (unsigned i = 0; i < 3; i++) {
        uint64_t lsn = data->end_lsn = end - (20 + i) * data->record_bytes;
        uint64_t left = repair_run_offset(LAST, lsn) + bytes_left[i];
        left -= i == 2 ? JOURNAL_UNIT : 0; /* within the zeroes that the record ends with */
        data_truncate(data, data->segment[LAST], left);
        repair_run_whole(run);
        snprintf(text, sizeof(text),
                 "/%s: the file is cut short: it has %llu bytes, its header says %llu; its end is "
                 "made again, empty: from LSN %llu on changes may be missing\n",
                 data->segment[LAST], (unsigned long long)left,
                 (unsigned long long)DATA_SEGMENT_BYTES, (unsigned long long)lsn);
        repair_run_has(run, text);
        repair_run_lacks(run, ": lost");
        assert_int_equal(data_size(data, data->segment[LAST]), DATA_SEGMENT_BYTES);
        assert_int_equal(repair_run_records(run).count, data->records - 20 - i);
    }
}

/* A clean end says that nothing followed, even if marks do not. */
static void test_clean_end_is_whole(void **state)
{
    struct said_run *run = *state;
    lower_marks(run->data, DATA_SEGMENTS, LAST_START);
    damage_record(run, 0, run->data->second_lsn);
    repair_run_whole(run);
    repair_run_lacks(run, "cut short");
}

/* A record that a kill has torn is no loss: all that is known to have been ends before it, and so
 * do records above that. */
static void test_torn_end(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    uint64_t end = data->end_lsn + DATA_CLOSED_BYTES;
    forget_files(data, REPAIR_CAPACITY);
    lower_marks(data, DATA_SEGMENTS, LAST_START);
    damage_record(run, 0, data->second_lsn);
    repair_run_overwrite(data, data->segment[LAST], repair_run_offset(LAST, end), 16, 9);
    repair_run_whole(run);
    said_has_times(run->said.out_text, ": lost", 1);
    assert_int_equal(repair_run_records(run).count, data->records - 1);
}

/* The very first record: its gap begins where none did before. */
static void test_first_record(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    repair_run_overwrite(data, data->segment[0], repair_run_offset(0, 0), data->second_lsn, 3);
    repair_run_whole(run);
    repair_run_has(run, "bytes, LSN 0 to ");
    repair_run_lacks(run, "(null)");
    assert_int_equal(repair_run_records(run).count, data->records - 1);
}

/* Two gaps, one that ends a segment and one that begins the next: each in its own file. */
static void test_gaps_that_meet(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    uint64_t tail = 4 * data->record_bytes;
    repair_run_overwrite(data, data->segment[0], repair_run_offset(0, REPAIR_CAPACITY - tail), tail,
                         4);
    repair_run_overwrite(data, data->segment[1], repair_run_offset(1, REPAIR_CAPACITY), tail, 5);
    repair_run_whole(run);
    said_has_times(run->said.out_text, ": lost", 2);
    assert_true(repair_run_records(run).count + 12 > data->records);
}

/* What is given up is not mended, and it is one gap with what is damaged in it. */
static void test_damage_that_is_given_up(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    uint64_t lsn = data->end_lsn - 7 * data->record_bytes;
    const struct repair_options options = {
        .directory = data->directory, .yes = true, .drop_from = lsn};
    data_flip(data, data->segment[LAST], repair_run_offset(LAST, lsn) + 20);
    data_flip(data, data->segment[LAST],
              repair_run_offset(LAST, lsn + 3 * data->record_bytes) + 20);
    assert_int_equal(repair_run_with(run, vfs_real(), &options), VERB_SOUND);
    repair_run_assert_sound(run);
    repair_run_lacks(run, "turned");
    says_lost(run, "a record's checksum does not fit", lsn, data->end_lsn + DATA_CLOSED_BYTES);
    assert_int_equal(repair_run_records(run).count, data->records - 7);
}

/* A file whose name lies within a segment that goes on without it was replaced by that: rubbish in
 * it is no damage, and costs no record. */
static void test_replaced_segment(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    struct journal_found last = page_of(data, data->segment[LAST]);
    unsigned char mark[JOURNAL_MARK_BYTES];
    char name[JOURNAL_NAME_MAX];
    last.mark.sealed = false; /* the fixture's journal was closed */
    uint64_t offset = journal_mark_encode(&last.header, &last.mark, mark);
    data_write(data, data->segment[LAST], offset, mark, sizeof(mark));
    journal_name(name, LAST_START + 10 * data->record_bytes);
    repair_run_overwrite(data, name, 0, 2 * JOURNAL_PAGE_BYTES, 7);
    damage_record(run, LAST, data->end_lsn - 5 * data->record_bytes);
    assert_int_equal(repair_run_look(run), VERB_DAMAGED);
    repair_run_lacks(run, name);
    (void)repair_run_yes(run);
    data_remove(data, name);
    assert_int_equal(repair_run_records(run).count, data->records - 1);
}

/* ---- files that fail ---- */

/* The system's, but that one of the calls that change something fails. */
struct failing {
    struct vfs vfs;
    struct vfs_functions functions;
    unsigned calls; /* of those so far; writes that go on from one another are one */
    uint64_t next;  /* where the last write ended */
    unsigned fails; /* the one that does, from 1; 0: none */
};

static struct failing failing;

static bool is_failing(void)
{
    failing.calls++;
    if (failing.calls == failing.fails) {
        errno = EIO;
        return true;
    }
    return false;
}

static ssize_t failing_pwrite(struct vfs *vfs, int fd, const void *from, size_t bytes,
                              uint64_t offset)
{
    (void)vfs;
    bool goes_on = offset > 0 && offset == failing.next;
    failing.next = offset + bytes;
    return !goes_on && is_failing()
               ? -1
               : vfs_real()->functions->pwrite(vfs_real(), fd, from, bytes, offset);
}

static int failing_fdatasync(struct vfs *vfs, int fd)
{
    (void)vfs;
    return is_failing() ? -1 : vfs_real()->functions->fdatasync(vfs_real(), fd);
}

static int failing_rename(struct vfs *vfs, const char *from, const char *to)
{
    (void)vfs;
    return is_failing() ? -1 : vfs_real()->functions->rename(vfs_real(), from, to);
}

static int failing_sync_dir(struct vfs *vfs, const char *path)
{
    (void)vfs;
    return is_failing() ? -1 : vfs_real()->functions->sync_dir(vfs_real(), path);
}

static int failing_open(struct vfs *vfs, const char *path, int flags)
{
    (void)vfs;
    bool writes = (flags & O_ACCMODE) != O_RDONLY && strstr(path, "/lock") == NULL;
    return writes && is_failing() ? -1 : vfs_real()->functions->open(vfs_real(), path, flags);
}

static struct vfs *fail_call(unsigned number)
{
    failing = (struct failing){.functions = *vfs_real()->functions, .fails = number};
    failing.functions.pwrite = failing_pwrite;
    failing.functions.fdatasync = failing_fdatasync;
    failing.functions.rename = failing_rename;
    failing.functions.sync_dir = failing_sync_dir;
    failing.functions.open = failing_open;
    failing.vfs.functions = &failing.functions;
    return &failing.vfs;
}

/* One thing of each kind that is mended or made again. */
static void damage_all(struct said_run *run)
{
    struct data *data = run->data;
    uint64_t lsn = data->second_lsn + 5 * data->record_bytes;
    data_flip(data, data->segment[0], repair_run_offset(0, lsn) + 20);
    damage_record(run, 0, lsn + 9 * data->record_bytes);
    data_remove(data, data->segment[1]);
    data_remove(data, data->table[0]);
    data_flip(data, data->table[1], TABLE_FILE_PAGE_BYTES);
    data_flip(data, MANIFEST_NAME, 20);
}

/* Whichever call fails: it is said, nobody is told that all is well, and the next repair does the
 * rest. */
static void test_each_failure(void **state)
{
    unsigned number = 1;
    bool ended = false;
    for (; !ended; number++) {
        struct said_run *run = *state;
        const struct repair_options options = {
            .directory = run->data->directory, .yes = true, .drop_from = REPAIR_DROP_NOTHING};
        damage_all(run);
        enum verb_exit status = repair_run_with(run, fail_call(number), &options);
        ended = failing.calls < number;
        assert_true((status == VERB_SOUND) == ended);
        if (!ended && run->said.errors_length == 0) {
            fail_msg("call %u fails, and nothing is said: %s", number, run->said.out_text);
        }
        if (repair_run_yes(run) != VERB_SOUND) {
            fail_msg("after call %u failed: %s%s", number, run->said.out_text,
                     run->said.errors_text);
        }
        repair_run_assert_sound(run);
        repair_run_teardown(state);
        said_run_setup(state);
    }
    assert_true(number > 20);
}

/* One bit is looked for in so many gaps, and of the next it is said that it was not. */
static void test_too_many_bits(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    for (unsigned i = 0; i <= MENDS; i++) {
        uint64_t lsn = data->second_lsn + 2 * i * data->record_bytes;
        data_flip(data, data->segment[0], repair_run_offset(0, lsn));
    }
    repair_run_whole(run);
    assert_int_equal(repair_run_records(run).count, data->records - 1);
    repair_run_has(run, "1 of the gaps may be of one bit turned over");
    for (unsigned i = 0; i < MENDS; i++) {
        uint64_t lsn = data->second_lsn + 2 * i * data->record_bytes;
        data_flip(data, data->segment[0], repair_run_offset(0, lsn));
    }
    repair_run_whole(run);
    repair_run_lacks(run, "may be of one bit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REPAIR_RUN_TEST(test_next_header),
        REPAIR_RUN_TEST(test_next_header_after_a_bit),
        REPAIR_RUN_TEST(test_headers_made_again),
        REPAIR_RUN_TEST(test_headers_in_a_row),
        REPAIR_RUN_TEST(test_last_is_gone),
        REPAIR_RUN_TEST(test_reach_is_the_end),
        REPAIR_RUN_TEST(test_cut_short),
        REPAIR_RUN_TEST(test_made_whole),
        REPAIR_RUN_TEST(test_clean_end_is_whole),
        REPAIR_RUN_TEST(test_torn_end),
        REPAIR_RUN_TEST(test_first_record),
        REPAIR_RUN_TEST(test_gaps_that_meet),
        REPAIR_RUN_TEST(test_damage_that_is_given_up),
        REPAIR_RUN_TEST(test_too_many_bits),
        REPAIR_RUN_TEST(test_replaced_segment),
        REPAIR_RUN_TEST(test_each_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
