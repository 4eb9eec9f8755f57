#include "tests/unit/tools/data_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "engine/change_record.h"
#include "store/journal_format.h"

#define WAIT_US    1000
#define WAITS_MAX  60000
#define START_LSN  64u
#define VALUE_BASE 1000000u

/* ---- making ---- */

static void put_table(struct data *data, unsigned table)
{
    static const char *const kinds[] = {"counter", "phantom"};
    static const char *const spaces[] = {"feed", "liked"};
    char error[TABLE_FILE_ERROR_MAX];
    unsigned char page[TABLE_FILE_PAGE_BYTES];
    struct manifest_file *file = &data->file[table];
    struct table_file_info info = {
        .serial = table + 1,
        .generation = 2,
        .layer = table,
        .start_lsn = START_LSN,
        .sections = 2,
        .section = {{.value_bytes = 8}, {.value_bytes = 0}},
        .description = "what it is",
        .description_bytes = 10,
    };
    snprintf(info.kind, sizeof(info.kind), "%s", kinds[table]);
    snprintf(info.space, sizeof(info.space), "%s", spaces[table]);
    snprintf(data->table[table], sizeof(data->table[table]), "%s-%u.table", spaces[table],
             table + 1);
    struct table_file_writer *writer =
        table_file_create(vfs_real(), data->directory, data->table[table], &info, error);
    assert_non_null(writer);
    for (unsigned i = 0; i < DATA_TABLE_PAGES; i++) {
        memset(page, (int)('a' + i), sizeof(page));
        assert_true(table_file_append_pages(writer, page, 1));
    }
    for (uint64_t i = 0; i < DATA_ENTRIES; i++) {
        uint64_t value = VALUE_BASE + i;
        assert_true(table_file_append_entry(writer, 0, 10 * i, (uint8_t)table, &value));
    }
    assert_true(table_file_append_entry(writer, 1, 77, 3, ""));
    memcpy(file->name, data->table[table], sizeof(data->table[table]));
    file->role = table == 0 ? MANIFEST_IMAGE : MANIFEST_DUMP;
    file->serial = info.serial;
    file->layer = info.layer;
    file->generation = info.generation;
    file->start_lsn = info.start_lsn;
    file->end_lsn = data->end_lsn;
    file->first_id = 1;
    file->last_id = 1000;
    assert_true(table_file_commit(writer, data->end_lsn, &file->bytes, error));
    assert_int_equal(file->bytes, DATA_TABLE_BYTES);
}

static void reserve(struct journal_writer *writer, size_t bytes)
{
    unsigned waits = 0;
    while (!journal_reserve(writer, bytes)) {
        assert_true(waits++ < WAITS_MAX); /* the sync thread is making the next segment */
        assert_true(journal_sync_now(writer->journal));
        usleep(WAIT_US);
    }
}

static uint64_t put(struct journal_writer *writer, const struct change *change)
{
    struct change_record record;
    change_record_encode(change, &record);
    reserve(writer, record.bytes + JOURNAL_HEADER_BYTES);
    uint64_t lsn = journal_put(writer, record.type, record.a, record.b, record.words, record.bytes);
    assert_true(journal_commit(writer));
    return lsn;
}

/* Records of one slot, then so many of all slots that the last segment is begun. */
static void put_journal(struct data *data)
{
    char error[JOURNAL_ERROR_MAX];
    const struct journal_config config = {.vfs = vfs_real(),
                                          .directory = data->directory,
                                          .segment_bytes = DATA_SEGMENT_BYTES,
                                          .buffer_bytes = JOURNAL_BUFFER_BYTES_MIN,
                                          .sync = JOURNAL_SYNC_EVERYSEC,
                                          .epoch = 4};
    struct change change = {.space = 5,
                            .id = 42,
                            .named = 1u << 3,
                            .set = 1u << 3,
                            .place = CHANGE_INSIDE,
                            .values = {[3] = 4711}};
    struct journal_writer writer;
    struct journal *journal = journal_open(&config, error);
    assert_non_null(journal);
    journal_writer_init(&writer, journal);
    put(&writer, &change);
    change.named = (1u << CHANGE_SLOTS_MAX) - 1;
    change.set = change.named & ~1u;
    change.place = CHANGE_THERE;
    uint64_t full = DATA_SEGMENT_BYTES - JOURNAL_PAGE_BYTES;
    uint64_t lsn = 0;
    for (data->records = 1; lsn < (DATA_SEGMENTS - 1) * full + full / 4; data->records++) {
        lsn = put(&writer, &change);
        data->second_lsn = data->records == 1 ? lsn : data->second_lsn;
        data->record_bytes = data->records == 2 ? lsn - data->second_lsn : data->record_bytes;
    }
    data->end_lsn = journal_head(journal);
    data->journal_lsn = full + full / 2;
    journal_writer_fini(&writer);
    journal_close(journal);
    for (unsigned i = 0; i < DATA_SEGMENTS; i++) {
        journal_name(data->segment[i], i * full);
        bool last = i + 1 == DATA_SEGMENTS; /* cut to what is used */
        assert_true(last == (data_size(data, data->segment[i]) < DATA_SEGMENT_BYTES));
    }
}

void data_store_manifest(struct data *data)
{
    static const char *const kinds[] = {"counter", "phantom"};
    static const char *const spaces[] = {"feed", "liked"};
    char error[MANIFEST_ERROR_MAX];
    struct manifest *manifest = manifest_create();
    manifest->epoch = 4;
    manifest->stream[0] = 4;
    manifest->table_event_lsn = data->second_lsn;
    manifest->journal_lsn = data->journal_lsn;
    for (unsigned i = 0; i < DATA_TABLES; i++) {
        struct manifest_space *space = manifest_add_space(manifest, spaces[i], i + 5, kinds[i]);
        assert_non_null(space);
        assert_true(manifest_set_data(space, "schema", "\x01\x02", 2));
        assert_true(manifest_add_file(manifest, space, &data->file[i]));
    }
    assert_true(manifest_store(vfs_real(), data->directory, manifest, error));
    manifest_destroy(manifest);
}

struct data *data_directory_create(void)
{
    struct data *data = memory_zalloc(sizeof(*data));
    snprintf(data->directory, sizeof(data->directory), "/tmp/rollcall-test-XXXXXX");
    assert_non_null(mkdtemp(data->directory));
    put_journal(data);
    for (unsigned i = 0; i < DATA_TABLES; i++) {
        put_table(data, i);
    }
    data_store_manifest(data);
    data_write(data, "lock", 0, "", 0);
    return data;
}

static void remove_entry(void *context, const char *name)
{
    data_remove(context, name);
}

void data_directory_destroy(struct data *data)
{
    struct vfs *vfs = vfs_real();
    assert_int_equal(vfs->functions->list(vfs, data->directory, remove_entry, data), 0);
    assert_int_equal(rmdir(data->directory), 0);
    free(data);
}

/* ---- damaging ---- */

const char *data_path(struct data *data, const char *name)
{
    assert_true(vfs_path(data->path, data->directory, name));
    return data->path;
}

static int open_file(struct data *data, const char *name, int flags)
{
    int fd = open(data_path(data, name), flags, 0600);
    assert_true(fd >= 0);
    return fd;
}

void data_write(struct data *data, const char *name, uint64_t offset, const void *bytes,
                size_t length)
{
    int fd = open_file(data, name, O_RDWR | O_CREAT);
    assert_int_equal(pwrite(fd, bytes, length, (off_t)offset), length);
    close(fd);
}

void data_read(struct data *data, const char *name, uint64_t offset, void *bytes, size_t length)
{
    int fd = open_file(data, name, O_RDONLY);
    assert_int_equal(pread(fd, bytes, length, (off_t)offset), length);
    close(fd);
}

void data_flip(struct data *data, const char *name, uint64_t offset)
{
    unsigned char byte;
    data_read(data, name, offset, &byte, 1);
    byte ^= 0x10;
    data_write(data, name, offset, &byte, 1);
}

uint64_t data_size(struct data *data, const char *name)
{
    int fd = open_file(data, name, O_RDONLY);
    off_t size = lseek(fd, 0, SEEK_END);
    close(fd);
    return (uint64_t)size;
}

void data_truncate(struct data *data, const char *name, uint64_t bytes)
{
    assert_int_equal(truncate(data_path(data, name), (off_t)bytes), 0);
}

void data_remove(struct data *data, const char *name)
{
    assert_int_equal(unlink(data_path(data, name)), 0);
}

void data_rename(struct data *data, const char *from, const char *to)
{
    char path[VFS_PATH_MAX];
    assert_true(vfs_path(path, data->directory, from));
    assert_int_equal(rename(path, data_path(data, to)), 0);
}

/* ---- files that nobody changes ---- */

static int open_to_read(struct vfs *vfs, const char *path, int flags)
{
    (void)vfs;
    assert_int_equal(flags & (O_ACCMODE | O_CREAT | O_TRUNC), O_RDONLY);
    return vfs_real()->functions->open(vfs_real(), path, flags);
}

static ssize_t no_pwrite(struct vfs *vfs, int fd, const void *from, size_t bytes, uint64_t offset)
{
    (void)vfs, (void)fd, (void)from, (void)bytes, (void)offset;
    fail_msg("it writes");
    return -1;
}

static int no_sync(struct vfs *vfs, int fd)
{
    (void)vfs, (void)fd;
    fail_msg("it syncs");
    return -1;
}

static int no_range(struct vfs *vfs, int fd, uint64_t offset, uint64_t bytes)
{
    (void)vfs, (void)fd, (void)offset, (void)bytes;
    fail_msg("it writes back");
    return -1;
}

static int no_length(struct vfs *vfs, int fd, uint64_t bytes)
{
    (void)vfs, (void)fd, (void)bytes;
    fail_msg("it changes a length");
    return -1;
}

static int no_rename(struct vfs *vfs, const char *from, const char *to)
{
    (void)vfs, (void)from, (void)to;
    fail_msg("it renames");
    return -1;
}

static int no_name(struct vfs *vfs, const char *path)
{
    (void)vfs, (void)path;
    fail_msg("it changes a directory");
    return -1;
}

struct vfs *data_only_read(void)
{
    static struct vfs_functions functions;
    static const struct vfs vfs = {&functions};
    functions = *vfs_real()->functions;
    functions.open = open_to_read;
    functions.pwrite = no_pwrite;
    functions.fdatasync = no_sync;
    functions.writeback = no_range;
    functions.allocate = functions.truncate = no_length;
    functions.rename = no_rename;
    functions.unlink = functions.mkdir = functions.sync_dir = no_name;
    return (struct vfs *)&vfs; /* it has no state: nobody writes to it */
}

/* ---- what was said ---- */

void said_begin(struct said *said)
{
    *said = (struct said){0};
    said->out = open_memstream(&said->out_text, &said->out_length);
    said->errors = open_memstream(&said->errors_text, &said->errors_length);
    assert_true(said->out && said->errors);
}

void said_end(struct said *said)
{
    fclose(said->out);
    fclose(said->errors);
}

void said_free(struct said *said)
{
    free(said->out_text);
    free(said->errors_text);
    *said = (struct said){0};
}

static unsigned count(const char *text, const char *part)
{
    unsigned times = 0;
    while ((text = strstr(text, part)) != NULL) {
        times++;
        text++;
    }
    return times;
}

void said_has(const char *text, const char *part)
{
    if (count(text, part) == 0) {
        fail_msg("`%s` is not in: %s", part, text);
    }
}

void said_has_times(const char *text, const char *part, unsigned times)
{
    if (count(text, part) != times) {
        fail_msg("`%s` is not %u times in: %s", part, times, text);
    }
}

void said_lacks(const char *text, const char *part)
{
    if (count(text, part) != 0) {
        fail_msg("`%s` is in: %s", part, text);
    }
}

int said_run_setup(void **state)
{
    struct said_run *run = calloc(1, sizeof(*run));
    assert_non_null(run);
    run->data = data_directory_create();
    *state = run;
    return 0;
}

int said_run_teardown(void **state)
{
    struct said_run *run = *state;
    said_free(&run->said);
    data_directory_destroy(run->data);
    free(run);
    return 0;
}
