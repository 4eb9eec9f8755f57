/* table_run.c: table files whose contents tell where they belong. */
#include "tests/unit/store/table_run.h"

#include "tests/unit/store/files.h"

#include <stdio.h>

#include "base/hash.h"
#include "tests/support/find_entry.h"

const struct table_shape table_small = {
    .pages = 3,
    .sections = 3,
    .section = {{.value_bytes = 64, .entries = 80},
                {.value_bytes = 8, .entries = 0},
                {.value_bytes = 1, .entries = 900}},
};

struct vfs_sim *table_sim_create(uint64_t seed)
{
    struct vfs_sim *sim = vfs_sim_create(seed);
    struct vfs *vfs = vfs_sim_vfs(sim);
    assert_int_equal(vfs->functions->mkdir(vfs, TABLE_DIRECTORY), 0);
    files_sync_dir(vfs, "/");
    return sim;
}

void *table_pages(uint64_t pages)
{
    void *memory = aligned_alloc(TABLE_FILE_PAGE_BYTES, pages * TABLE_FILE_PAGE_BYTES);
    assert_non_null(memory);
    return memory;
}

void table_fill_page(const struct table_shape *shape, uint64_t number, void *page)
{
    uint64_t *words = page;
    for (uint64_t i = 0; i < TABLE_FILE_PAGE_BYTES / sizeof(*words); i++) {
        words[i] = hash_u64(shape->salt << 40 ^ number << 10 ^ i);
    }
}

void table_entry_of(const struct table_shape *shape, unsigned section, uint64_t i, uint64_t *id,
                    uint8_t *sub, unsigned char *value)
{
    *id = 1000 * (section + 1) + i / 2 * 3;
    *sub = i % 2 ? 9 : 0;
    for (uint32_t k = 0; k < shape->section[section].value_bytes; k++) {
        value[k] = (unsigned char)hash_u64(shape->salt << 40 ^ i << 10 ^ k);
    }
}

struct table_file_info table_info_of(const struct table_shape *shape)
{
    struct table_file_info info = {
        .kind = "counter",
        .space = "feed",
        .serial = 7,
        .generation = 2,
        .layer = 1,
        .start_lsn = TABLE_START_LSN,
        .sections = shape->sections,
        .description = "what only the engine knows",
        .description_bytes = 26,
    };
    memcpy(info.section, shape->section, sizeof(info.section));
    return info;
}

static bool write_contents(struct table_file_writer *writer, const struct table_shape *shape)
{
    unsigned char page[TABLE_FILE_PAGE_BYTES];
    _Alignas(uint64_t) unsigned char value[TABLE_FILE_VALUE_MAX];
    uint64_t id;
    uint8_t sub;
    for (uint64_t i = 0; i < shape->pages; i++) {
        table_fill_page(shape, i, page);
        if (!table_file_append_pages(writer, page, 1)) {
            return false;
        }
    }
    for (unsigned section = 0; section < shape->sections; section++) {
        for (uint64_t i = 0; i < shape->section[section].entries; i++) {
            table_entry_of(shape, section, i, &id, &sub, value);
            if (!table_file_append_entry(writer, section, id, sub, value)) {
                return false;
            }
        }
    }
    return true;
}

bool table_write(struct vfs *vfs, const char *directory, const char *name,
                 const struct table_shape *shape, char *error)
{
    struct table_file_info info = table_info_of(shape);
    struct table_file_writer *writer = table_file_create(vfs, directory, name, &info, error);
    if (!writer) {
        return false;
    }
    if (!write_contents(writer, shape)) {
        int reason = errno;
        snprintf(error, TABLE_FILE_ERROR_MAX, "%s", table_file_writer_error(writer));
        table_file_abandon(writer);
        errno = reason;
        return false;
    }
    return table_file_commit(writer, TABLE_END_LSN, NULL, error);
}

void table_write_sound(struct vfs *vfs, const char *name, const struct table_shape *shape)
{
    char error[TABLE_FILE_ERROR_MAX] = "";
    if (!table_write(vfs, TABLE_DIRECTORY, name, shape, error)) {
        fail_msg("%s", error);
    }
}

struct table_file *table_open_sound(struct vfs *vfs, const char *path, bool direct)
{
    char error[TABLE_FILE_ERROR_MAX] = "";
    struct table_file *file = NULL;
    enum table_file_result result = table_file_open(vfs, path, direct, &file, error);
    if (result != TABLE_FILE_DONE) {
        fail_msg("%d: %s", result, error);
    }
    return file;
}

struct expect {
    const struct table_shape *shape;
    unsigned section;
    uint64_t next;
};

static bool expect_entry(void *context, uint64_t id, uint8_t sub, const void *value)
{
    struct expect *expect = context;
    unsigned char right[TABLE_FILE_VALUE_MAX];
    uint64_t right_id;
    uint8_t right_sub;
    assert_true(expect->next < expect->shape->section[expect->section].entries);
    table_entry_of(expect->shape, expect->section, expect->next++, &right_id, &right_sub, right);
    assert_int_equal(id, right_id);
    assert_int_equal(sub, right_sub);
    assert_memory_equal(value, right, expect->shape->section[expect->section].value_bytes);
    return true;
}

static enum table_file_result read_entries(const struct table_file *file,
                                           const struct table_shape *shape, char *error)
{
    enum table_file_result result = TABLE_FILE_DONE;
    for (unsigned section = 0; section < shape->sections && result == TABLE_FILE_DONE; section++) {
        struct expect expect = {shape, section, 0};
        result = table_file_each_entry(file, section, expect_entry, &expect, error);
        assert_true(result != TABLE_FILE_DONE || expect.next == shape->section[section].entries);
    }
    return result;
}

static enum table_file_result read_pages(const struct table_file *file,
                                         const struct table_shape *shape, char *error)
{
    unsigned char right[TABLE_FILE_PAGE_BYTES];
    unsigned char *pages = table_pages(shape->pages + 1);
    enum table_file_result result =
        table_file_load_pages(file, 0, shape->pages, pages, NULL, NULL, error);
    for (uint64_t i = 0; result == TABLE_FILE_DONE && i < shape->pages; i++) {
        table_fill_page(shape, i, right);
        assert_memory_equal(pages + i * TABLE_FILE_PAGE_BYTES, right, sizeof(right));
    }
    free(pages);
    return result;
}

enum table_file_result table_read_all(struct vfs *vfs, const char *path,
                                      const struct table_shape *shape, char *error)
{
    struct table_file *file = NULL;
    enum table_file_result result = table_file_open(vfs, path, false, &file, error);
    if (result == TABLE_FILE_DONE) {
        result = read_pages(file, shape, error);
    }
    if (result == TABLE_FILE_DONE) {
        result = read_entries(file, shape, error);
    }
    table_file_close(file);
    return result;
}

/* Every key is found, its neighbours are not. */
static void check_finding(const struct table_file *file, const struct table_shape *shape)
{
    char error[TABLE_FILE_ERROR_MAX];
    unsigned char right[TABLE_FILE_VALUE_MAX], value[TABLE_FILE_VALUE_MAX];
    uint64_t id;
    uint8_t sub;
    void *page = table_pages(1);
    for (unsigned section = 0; section < shape->sections; section++) {
        uint32_t value_bytes = shape->section[section].value_bytes;
        for (uint64_t i = 0; i < shape->section[section].entries; i++) {
            table_entry_of(shape, section, i, &id, &sub, right);
            memset(value, 0, sizeof(value));
            assert_int_equal(find_entry(file, section, id, sub, value, page, error),
                             TABLE_FILE_DONE);
            assert_memory_equal(value, right, value_bytes);
            assert_int_equal(find_entry(file, section, id, (uint8_t)(sub + 1), value, page, error),
                             TABLE_FILE_ABSENT);
            assert_int_equal(find_entry(file, section, id - 1, sub, value, page, error),
                             TABLE_FILE_ABSENT);
        }
        assert_int_equal(find_entry(file, section, 0, 0, value, page, error), TABLE_FILE_ABSENT);
        assert_int_equal(find_entry(file, section, UINT64_MAX, UINT8_MAX, value, page, error),
                         TABLE_FILE_ABSENT);
    }
    free(page);
}

static void check_info(const struct table_file *file, const struct table_shape *shape)
{
    const struct table_file_info *info = table_file_info(file);
    struct table_file_info right = table_info_of(shape);
    assert_string_equal(info->kind, right.kind);
    assert_string_equal(info->space, right.space);
    assert_int_equal(info->serial, right.serial);
    assert_int_equal(info->generation, right.generation);
    assert_int_equal(info->layer, right.layer);
    assert_int_equal(info->start_lsn, TABLE_START_LSN);
    assert_int_equal(info->end_lsn, TABLE_END_LSN);
    assert_int_equal(info->pages, shape->pages);
    assert_int_equal(info->sections, shape->sections);
    for (unsigned i = 0; i < shape->sections; i++) {
        assert_int_equal(info->section[i].value_bytes, shape->section[i].value_bytes);
        assert_int_equal(info->section[i].entries, shape->section[i].entries);
    }
    assert_int_equal(info->description_bytes, right.description_bytes);
    assert_memory_equal(info->description, right.description, right.description_bytes);
    assert_true(info->identity != 0);
}

void table_check(struct vfs *vfs, const char *path, bool direct, const struct table_shape *shape)
{
    char error[TABLE_FILE_ERROR_MAX] = "";
    struct table_file *file = table_open_sound(vfs, path, direct);
    check_info(file, shape);
    assert_string_equal(table_file_path(file), path);
    assert_int_equal(read_pages(file, shape, error), TABLE_FILE_DONE);
    assert_int_equal(read_entries(file, shape, error), TABLE_FILE_DONE);
    check_finding(file, shape);
    table_file_close(file);
}
