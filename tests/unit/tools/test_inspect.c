/* test_inspect.c: `rollcall inspect` tells the files of a data directory apart, prints what is in
 * them, and says when they are damaged. */
#include "tools/rollcall/inspect.h"

#include "tests/unit/tools/data_directory.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter/table.h"
#include "engine/change_record.h"
#include "phantom/table.h"
#include "row/row_state.h"
#include "store/dir_lock.h"
#include "store/journal.h"
#include "store/journal_format.h"
#include "store/table_file_format.h"
#include "tests/support/counters.h"
#include "tools/rollcall/inspect_kind.h"
#include "tools/rollcall/inspect_private.h"

#define PAGE TABLE_FILE_PAGE_BYTES

static enum verb_exit inspect_by(struct vfs *vfs, struct said_run *run, const char *name,
                                 uint64_t limit, uint64_t page)
{
    const struct inspect_options options = {
        .path = data_path(run->data, name), .limit = limit, .page = page};
    said_free(&run->said);
    said_begin(&run->said);
    enum verb_exit status = inspect_file(vfs, &options, run->said.out, run->said.errors);
    said_end(&run->said);
    return status;
}

static enum verb_exit inspect_with(struct said_run *run, const char *name, uint64_t limit,
                                   uint64_t page)
{
    return inspect_by(data_only_read(), run, name, limit, page);
}

/* What it says of a sound file. */
static const char *inspect(struct said_run *run, const char *name, uint64_t limit)
{
    if (inspect_with(run, name, limit, INSPECT_NO_PAGE) != VERB_SOUND) {
        fail_msg("not sound: %s%s", run->said.out_text, run->said.errors_text);
    }
    assert_string_equal(run->said.errors_text, "");
    return run->said.out_text;
}

static unsigned lines_with(const char *text, const char *part)
{
    unsigned lines = 0;
    while ((text = strstr(text, part)) != NULL) {
        lines++;
        text += strcspn(text, "\n");
    }
    return lines;
}

/* ---- manifest ---- */

static void test_manifest(void **state)
{
    struct said_run *run = *state;
    char part[64];
    const char *text = inspect(run, MANIFEST_NAME, 100);
    said_has(text, "manifest     format 2\nepoch        4\nstop         no");
    snprintf(part, sizeof(part), "replay begins at LSN %" PRIu64 "\n", run->data->journal_lsn);
    said_has(text, part);
    said_has(text, "\nspace feed: number 5, kind counter, 1 file\n  data schema, 2 bytes: 0102\n");
    said_has(text, "\nspace liked: number 6, kind phantom, 1 file\n");
    said_has(text, "\n  feed-1.table  image        1     0          2             64 ");
    said_has_times(text, " image ", 1);
    said_has_times(text, " dump ", 1);
    data_flip(run->data, MANIFEST_NAME, 40);
    assert_int_equal(inspect_with(run, MANIFEST_NAME, 0, INSPECT_NO_PAGE), VERB_DAMAGED);
    said_has(run->said.errors_text, "rollcall: ");
    said_has(run->said.errors_text, "/" MANIFEST_NAME);
}

/* ---- journal ---- */

static void test_segment(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    char part[64];
    const char *text = inspect(run, data->segment[0], 0);
    said_has(text, "number       1\nstart        LSN 0\n");
    said_has(text, "sealed: a successor follows\npredecessor  none\n");
    said_has_times(text, "space 5 id 42: 3=4711 (new, inside)\n", 1);
    said_has(text, "space 5 id 42: 0=unset,1=0,2=0,3=4711,4=0,");
    said_has(text, ": full\n");
    uint64_t listed = lines_with(text, " slot ");
    for (unsigned i = 1; i < DATA_SEGMENTS; i++) {
        text = inspect(run, data->segment[i], 0);
        listed += lines_with(text, " slots ");
    }
    listed += lines_with(inspect(run, data->segment[0], 0), " slots ");
    assert_int_equal(listed, data->records);
    text = inspect(run, data->segment[DATA_SEGMENTS - 1], 0);
    said_has(text, "predecessor  number 2, from LSN ");
    said_has_times(text, " closed ", 1);
    snprintf(part, sizeof(part), ", LSN %" PRIu64 ": a clean end\n",
             data->end_lsn + DATA_CLOSED_BYTES);
    said_has(text, part);
}

static void test_segment_limit(void **state)
{
    struct said_run *run = *state;
    const char *text = inspect(run, run->data->segment[0], 5);
    assert_int_equal(lines_with(text, "space 5 id 42: "), 5);
    said_has(text, " more; --limit 0 shows all)\n");
}

static void test_segment_damage(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    const char *name = data->segment[0];
    char place[64];
    uint64_t at = JOURNAL_PAGE_BYTES + data->second_lsn;
    data_flip(data, name, at + 20);
    assert_int_equal(inspect_with(run, name, 5, INSPECT_NO_PAGE), VERB_DAMAGED);
    snprintf(place, sizeof(place), "/%s: offset %" PRIu64 ": ", name, at);
    said_has_times(run->said.errors_text, place, 1);
    snprintf(place, sizeof(place), "-- %" PRIu64 " bytes that are no record", data->record_bytes);
    said_has(run->said.out_text, place);
    data_flip(data, name, at + 20);
    data_rename(data, name, "copy");
    said_has(inspect(run, "copy", 1), ": full\n");
    data_rename(data, "copy", "journal-00000000deadbeef");
    assert_int_equal(inspect_with(run, "journal-00000000deadbeef", 1, INSPECT_NO_PAGE),
                     VERB_DAMAGED);
    said_has(run->said.errors_text, "another segment");
    data_write(data, "journal-00000000deadbeef", 0, (char[8]){0}, 8);
    assert_int_equal(inspect_with(run, "journal-00000000deadbeef", 1, INSPECT_NO_PAGE),
                     VERB_DAMAGED);
    said_has(run->said.errors_text, "offset 0: there is no header");
}

static ssize_t pread_first_page(struct vfs *vfs, int fd, void *to, size_t bytes, uint64_t offset)
{
    if (offset >= JOURNAL_PAGE_BYTES) {
        errno = EIO;
        return -1;
    }
    return data_only_read()->functions->pread(vfs, fd, to, bytes, offset);
}

/* The disk does not give its records: the header is shown, and what failed is said. */
static void test_segment_unreadable(void **state)
{
    struct said_run *run = *state;
    struct vfs_functions functions = *data_only_read()->functions;
    struct vfs vfs = {&functions};
    char part[128];
    functions.pread = pread_first_page;
    assert_int_equal(inspect_by(&vfs, run, run->data->segment[0], 0, INSPECT_NO_PAGE),
                     VERB_DAMAGED);
    said_has(run->said.out_text, "number       1\nstart        LSN 0\n");
    snprintf(part, sizeof(part), "/%s: offset %u: %s\n", run->data->segment[0], JOURNAL_PAGE_BYTES,
             strerror(EIO));
    said_has_times(run->said.errors_text, part, 1);
}

/* What lies above the mark is no damage, what is missing below it is. */
static void test_segment_end(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    const char *last = data->segment[DATA_SEGMENTS - 1];
    uint64_t size = data_size(data, last);
    char marks[2048 + JOURNAL_MARK_BYTES - 1024]; /* both, and zeroes */
    data_write(data, last, size, "\x01half a record", 14);
    said_has(inspect(run, last, 1), ": above its marks: a start cuts it off, unless ");
    data_read(data, last, 1024, marks, sizeof(marks));
    data_write(data, last, 1024, (char[sizeof(marks)]){0}, sizeof(marks));
    data_flip(data, last, size - DATA_CLOSED_BYTES - data->record_bytes + 8);
    assert_int_equal(inspect_with(run, last, 1, INSPECT_NO_PAGE), VERB_DAMAGED);
    said_has(run->said.out_text, ": damage\n"); /* the clean end follows */
    data_flip(data, last, size - DATA_CLOSED_BYTES - data->record_bytes + 8);
    inspect(run, last, 1);
    data_write(data, last, 1024, marks, sizeof(marks));
    data_truncate(data, last, size - DATA_CLOSED_BYTES - data->record_bytes);
    assert_int_equal(inspect_with(run, last, 1, INSPECT_NO_PAGE), VERB_DAMAGED);
    said_has(run->said.errors_text, "there is no record");
}

static uint64_t another_boot(struct vfs *vfs)
{
    return vfs_real()->functions->boot(vfs) + 1;
}

/* The last record, which a mark says was written, not that it is durable: so it must be there as
 * long as the system runs, and after that a start cuts it off. */
static void test_segment_written(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    const char *last = data->segment[DATA_SEGMENTS - 1];
    struct journal_header header;
    struct journal_mark mark;
    const char *why;
    unsigned char page[JOURNAL_PAGE_BYTES], bytes[JOURNAL_MARK_BYTES];
    uint64_t size = data_size(data, last) - DATA_CLOSED_BYTES;
    data_read(data, last, 0, page, sizeof(page));
    assert_int_equal(journal_page_decode(page, &header, &mark, &why), JOURNAL_PAGE_SOUND);
    mark = (struct journal_mark){.written = data->end_lsn, .serial = 2};
    uint64_t offset = journal_mark_encode(&header, &mark, bytes);
    data_write(data, last, 1024, (char[1100]){0}, 1100);
    data_write(data, last, offset, bytes, sizeof(bytes));
    data_truncate(data, last, size);
    inspect(run, last, 1);
    data_flip(data, last, size - 8);
    assert_int_equal(inspect_with(run, last, 1, INSPECT_NO_PAGE), VERB_DAMAGED);
    said_has(run->said.out_text, ": damage\n");
    said_has(run->said.errors_text, "a record's checksum does not fit");
    data_truncate(data, last, size - data->record_bytes);
    assert_int_equal(inspect_with(run, last, 1, INSPECT_NO_PAGE), VERB_DAMAGED);
    said_has(run->said.errors_text, ", written up to ");
    struct vfs_functions functions = *data_only_read()->functions;
    struct vfs other = {&functions};
    functions.boot = another_boot;
    assert_int_equal(inspect_by(&other, run, last, 1, INSPECT_NO_PAGE), VERB_SOUND);
}

/* ---- records ---- */

static void assert_record(const struct journal_record *record, const char *expected)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    inspect_record(out, record);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

static void assert_change(struct change change, const char *expected)
{
    struct change_record encoded;
    change_record_encode(&change, &encoded);
    const struct journal_record record = {.type = encoded.type,
                                          .a = encoded.a,
                                          .b = encoded.b,
                                          .payload = encoded.words,
                                          .bytes = encoded.bytes};
    assert_record(&record, expected);
}

static void test_records(void **state)
{
    (void)state;
    struct change change = {.space = 2, .id = 9, .named = 5, .set = 4, .values = {[2] = 77}};
    assert_change(change, "space 2 id 9: 0=unset,2=77");
    change.place = CHANGE_APART;
    assert_change(change, "space 2 id 9: 0=unset,2=77 (new, apart)");
    change = (struct change){.type = CHANGE_DELETE, .space = 2, .id = 9};
    assert_change(change, "space 2 id 9: deleted");
    change.place = CHANGE_INSIDE;
    change.layer = 2;
    assert_change(change, "space 2 id 9: deleted (of layer 2)");
    change = (struct change){
        .type = CHANGE_MEMBER_ADD, .place = CHANGE_INSIDE, .id = 9, .member = {0xab, 0xcd}};
    assert_change(change, "space 0 id 9: member 00000000000000ab 00000000000000cd (inside)");
    change.type = CHANGE_MEMBER_DELETE;
    assert_change(change,
                  "space 0 id 9: member 00000000000000ab 00000000000000cd (an exception more)");
    uint64_t words[CHANGE_EVENT_BYTES_MAX / 8 + 2];
    struct journal_record record = {
        .type = CHANGE_RECORD_EVENT, .a = 3, .b = CHANGE_EVENT_OPEN, .payload = words};
    record.bytes = change_record_encode_event(words, "\x01\x02\x03", 3);
    assert_record(&record, "space 3 open: 010203");
    words[0] = 0x1122;
    record = (struct journal_record){.type = 200, .payload = words, .bytes = 8};
    assert_record(&record, "2211000000000000");
}

/* ---- table files ---- */

static void test_table(void **state)
{
    struct said_run *run = *state;
    const char *text = inspect(run, run->data->table[0], 100);
    said_has(text, "kind         counter\nspace        feed\nserial       1\n");
    said_has(text, "|what it is|\n");
    said_has(text, "pages        3: 0 to 2, from offset 4096\n");
    said_has(text,
             "\nsection 0    400 entries, values of 8 bytes; pages 3 to 4, from offset 16384\n");
    said_has(text, "\n  id                  10  sub   0  41420f0000000000\n");
    said_has(text, "\n  ... (300 more; --limit 0 shows all)\n");
    said_has(text, "\nsection 1    1 entry, ");
    said_has(text, "\n  id                  77  sub   3  (no bytes)\n");
    assert_int_equal(lines_with(inspect(run, run->data->table[0], 0), "  id "), 401);
}

static void test_table_damage(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    const char *name = data->table[0];
    data_flip(data, name, 2 * PAGE + 100); /* none of what is printed */
    assert_int_equal(inspect_with(run, name, 0, INSPECT_NO_PAGE), VERB_DAMAGED);
    said_has_times(run->said.errors_text, ": page 1 at offset 8192 does not match its checksum", 1);
    assert_int_equal(lines_with(run->said.out_text, "  id "), DATA_ENTRIES + 1);
    data_flip(data, name, 2 * PAGE + 100);
    data_flip(data, name, (1 + DATA_TABLE_PAGES + 1) * PAGE); /* the second page of entries */
    assert_int_equal(inspect_with(run, name, 0, INSPECT_NO_PAGE), VERB_DAMAGED);
    said_has(run->said.errors_text, "page 4 at offset 20480");
    said_has(run->said.out_text, "section 1"); /* the rest is shown */
    data_flip(data, name, DATA_TABLE_BYTES - PAGE);
    assert_int_equal(inspect_with(run, name, 0, INSPECT_NO_PAGE), VERB_DAMAGED);
    said_has(run->said.errors_text, "footer");
    said_has(run->said.out_text, "only its header can be read\nkind         counter\n");
    data_write(data, name, 0, (char[PAGE]){0}, PAGE);
    assert_int_equal(inspect_with(run, name, 0, INSPECT_NO_PAGE), VERB_DAMAGED);
    said_has(run->said.errors_text, "there is no header");
    assert_string_equal(run->said.out_text, "");
}

static void test_page(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    const char *name = data->table[0];
    assert_int_equal(inspect_with(run, name, 0, 1), VERB_SOUND);
    said_has(run->said.out_text, "page 1, offset 8192, of the table: checksum sound\n");
    said_has(run->said.out_text, "  000000  62 62 62 62 ");
    said_has(run->said.out_text, "|bbbbbbbbbbbbbbbb|\n  *\n");
    data_flip(data, name, 2 * PAGE);
    assert_int_equal(inspect_with(run, name, 0, 1), VERB_DAMAGED);
    said_has(run->said.out_text, "checksum wrong\n  000000  72 62 62 62 ");
    for (uint64_t page = 2; page < DATA_TABLE_BYTES / PAGE - 1; page++) {
        assert_int_equal(inspect_with(run, name, 0, page), VERB_SOUND);
    }
    assert_int_equal(inspect_with(run, name, 0, DATA_TABLE_BYTES / PAGE - 1), VERB_USAGE);
    said_has(run->said.errors_text, "there is no page 9: the last one is 8");
    assert_int_equal(inspect_with(run, MANIFEST_NAME, 0, 0), VERB_USAGE);
}

static void test_kinds(void **state)
{
    (void)state;
    static const char *const names[] = {"counter", "phantom", "", "whatever"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const struct inspect_kind *kind = inspect_kind_find(names[i]);
        assert_string_equal(kind->name, i < 2 ? names[i] : "");
        assert_true(kind->description && kind->page && kind->entry);
    }
}

/* ---- none of these ---- */

static void test_newer(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    struct table_file_header header;
    uint64_t words[64];
    data_read(data, data->table[0], 0, &header, sizeof(header));
    header.version++;
    header.checksum = table_file_header_sum(&header);
    data_write(data, data->table[0], 0, &header, sizeof(header));
    assert_int_equal(inspect_with(run, data->table[0], 0, INSPECT_NO_PAGE), VERB_USAGE);
    said_has(run->said.errors_text, "format version 3");
    data_read(data, data->segment[1], 0, words, sizeof(words));
    words[1]++;
    words[63] = hash_bytes(words, 63 * sizeof(*words), JOURNAL_MAGIC);
    data_write(data, data->segment[1], 0, words, sizeof(words));
    assert_int_equal(inspect_with(run, data->segment[1], 0, INSPECT_NO_PAGE), VERB_USAGE);
    said_has(run->said.errors_text, "another version");
}

static int call(const char *one, const char *two, const char *three)
{
    char *words[] = {(char[]){"inspect"}, (char *)one, (char *)two, (char *)three, NULL};
    optind = 1;
    return inspect_main(1 + (one != NULL) + (two != NULL) + (three != NULL), words);
}

/* Files of a directory that are of no format. */
static void test_nothing(void **state)
{
    struct said_run *run = *state;
    char zeros[64] = {0};
    data_write(run->data, DIR_LOCK_NAME, 0, "", 0);
    assert_int_equal(inspect_with(run, DIR_LOCK_NAME, 0, INSPECT_NO_PAGE), VERB_SOUND);
    said_has(run->said.out_text, "/lock: the process id of the daemon");
    data_write(run->data, JOURNAL_BALLAST_NAME, 0, zeros, sizeof(zeros));
    assert_int_equal(inspect_with(run, JOURNAL_BALLAST_NAME, 0, INSPECT_NO_PAGE), VERB_SOUND);
    said_has(run->said.out_text, "/journal-ballast: room kept for a start on a full disk");
}

static void test_usage(void **state)
{
    struct said_run *run = *state;
    struct data *data = run->data;
    data_write(data, "notes", 0, "mine", 4);
    assert_int_equal(inspect_with(run, "notes", 0, INSPECT_NO_PAGE), VERB_USAGE);
    said_has(run->said.errors_text, "/notes: not a MANIFEST, a segment of a journal or a table");
    assert_int_equal(inspect_with(run, "nowhere", 0, INSPECT_NO_PAGE), VERB_USAGE);
    said_has(run->said.errors_text, "No such file");
    assert_int_equal(inspect_with(run, ".", 0, INSPECT_NO_PAGE), VERB_USAGE);
    const char *path = data_path(data, MANIFEST_NAME);
    assert_int_equal(call(NULL, NULL, NULL), 2);
    assert_int_equal(call(path, path, NULL), 2);
    assert_int_equal(call("--what", path, NULL), 2);
    assert_int_equal(call(path, "--limit", NULL), 2);
    assert_int_equal(call("--limit", "many", path), 2);
    assert_int_equal(call("--page", "0", path), 2);
    assert_int_equal(call("--help", NULL, NULL), 0);
    assert_int_equal(call("--limit", "1", path), 0);
}

#define UNIT(test) SAID_RUN_TEST(test)

/* ---- what the engines wrote ---- */

struct described {
    struct table_file_info info;
    unsigned char bytes[ROW_TABLE_BYTES_MAX];
};

/* As an image has it: the state of a row's table, and after it the engine's part, which is in its
 * place already. */
static void describe(struct described *described, size_t bytes)
{
    struct row_state state = {
        .version = ROW_STATE_VERSION, .serial = 31, .base = 4096, .description_bytes = bytes};
    memcpy(described->bytes, &state, sizeof(state));
    described->info.description = described->bytes;
    described->info.description_bytes = ROW_STATE_BYTES + bytes;
}

/* The text of a description, or of an entry (value not NULL); the caller's. */
static char *tell(const char *kind, const struct described *described, unsigned section,
                  uint8_t sub, const void *value)
{
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    if (value) {
        inspect_kind_find(kind)->entry(to, &described->info, section, 42, sub, value);
    } else {
        inspect_kind_find(kind)->description(to, &described->info);
    }
    fclose(to);
    return text;
}

static void expect_told(const char *kind, const struct described *described,
                        const char *const *parts)
{
    char *text = tell(kind, described, 0, 0, NULL);
    for (; *parts; parts++) {
        said_has_times(text, *parts, 1);
    }
    free(text);
}

static void expect_entry(const struct described *described, unsigned section, uint8_t sub,
                         const void *value, const char *expected)
{
    char *text = tell("counter", described, section, sub, value);
    assert_string_equal(text, expected);
    free(text);
}

static void test_counter_told(void **unused)
{
    static const char *const parts[] = {"  serial: 31\n",         "  base: 4096\n",
                                        "  table_bytes: 65536\n", "  slot like: 20\n",
                                        "  slot few: 4\n",        NULL};
    (void)unused;
    struct described described = {.info.section = {{.value_bytes = 3}, {.value_bytes = 8}}};
    struct counter_config config;
    struct counters_table opened;
    counters_config(&config, "like:20 few:4");
    config.row.table_bytes = 64u << 10;
    counters_table_open(&opened, &config, 1);
    size_t bytes = counter_table_describe(opened.table, described.bytes + ROW_STATE_BYTES, NULL);
    counters_table_close(&opened);
    describe(&described, bytes);
    expect_told("counter", &described, parts);
    uint64_t value = 8 | 0xfull << 20; /* like 7, the other one in aux */
    expect_entry(&described, COUNTER_TABLE_EXTEND, 0, &value, " like=7 few in aux=14");
    value = 100;
    expect_entry(&described, COUNTER_TABLE_AUX, 1, &value, " few=100");
    expect_entry(&described, COUNTER_TABLE_AUX, 2, &value, "6400000000000000"); /* no such slot */
    described.bytes[ROW_STATE_BYTES] ^= 1;
    char *text = tell("counter", &described, 0, 0, NULL);
    said_has(text, "  serial: 31\n");
    said_has(text, "  0001d0  "); /* the rest in hex */
    free(text);
    described.bytes[0] ^= 2;
    text = tell("counter", &described, 0, 0, NULL);
    said_lacks(text, "serial");
    said_has(text, "  000000  ");
    free(text);
}

static void test_phantom_told(void **unused)
{
    static const char *const parts[] = {"  serial: 31\n", "  filter_bytes: 65536\n",
                                        "  lines: 1024\n", "  members_for_one_wrong_answer: 1000\n",
                                        NULL};
    (void)unused;
    struct described described = {.info.sections = 0};
    struct phantom_config config = {
        .row.table_bytes = 64u << 10, .false_positives = 0.001, .row.tables = 1};
    struct phantom_shape shape;
    phantom_shape_init(&shape, &config);
    phantom_shape_describe(&shape, described.bytes + ROW_STATE_BYTES);
    describe(&described, PHANTOM_DESCRIPTION_BYTES);
    expect_told("phantom", &described, parts);
}

static void test_event_told(void **unused)
{
    (void)unused;
    struct described described;
    uint64_t dropped[] = {31, 4096};
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    describe(&described, 0);
    inspect_event(to, described.bytes, ROW_STATE_BYTES);
    fputc('\n', to);
    inspect_event(to, dropped, sizeof(dropped));
    fputc('\n', to);
    inspect_event(to, "abc", 3);
    fclose(to);
    said_has(text, " serial=31 base=4096 range_last=0 ");
    said_has(text, "\n serial=31 base=4096\n 616263");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_manifest),
        UNIT(test_segment),
        UNIT(test_segment_limit),
        UNIT(test_segment_damage),
        UNIT(test_segment_unreadable),
        UNIT(test_segment_end),
        UNIT(test_segment_written),
        cmocka_unit_test(test_records),
        UNIT(test_table),
        UNIT(test_table_damage),
        UNIT(test_page),
        cmocka_unit_test(test_kinds),
        UNIT(test_newer),
        UNIT(test_nothing),
        UNIT(test_usage),
        cmocka_unit_test(test_counter_told),
        cmocka_unit_test(test_phantom_told),
        cmocka_unit_test(test_event_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
