/* table_file.c: an open table file: pages and entries out of it, each checked. */
#include "store/table_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/fail.h"
#include "store/table_file_private.h"

#define PAGE_AT "page %" PRIu64 " at offset %" PRIu64

static void check_file(const struct table_file *file)
{
    CHECK(file->class == TABLE_FILE_CLASS);
}

static void check_aligned(const void *buffer)
{
    CHECK((uintptr_t)buffer % TABLE_FILE_PAGE_BYTES == 0);
}

const struct table_file_info *table_file_info(const struct table_file *file)
{
    check_file(file);
    return &file->info;
}

struct vfs *table_file_vfs(const struct table_file *file)
{
    return file->vfs;
}

const char *table_file_path(const struct table_file *file)
{
    check_file(file);
    return file->path;
}

bool table_file_is_direct(const struct table_file *file)
{
    check_file(file);
    return file->direct;
}

uint64_t table_file_pages(const struct table_file *file)
{
    check_file(file);
    return file->section_begin[file->info.sections];
}

uint64_t table_file_memory_bytes(const struct table_file *file)
{
    check_file(file);
    return sizeof(*file) + sizeof(*file->open_file) + file->kept_bytes + strlen(file->path) + 1;
}

/* ---- pages ---- */

enum table_file_result table_file_read_run(const struct table_file *file, uint64_t first,
                                           uint64_t count, void *to, char *error)
{
    char what[48];
    if (count == 1) {
        snprintf(what, sizeof(what), "page %" PRIu64, first);
    } else {
        snprintf(what, sizeof(what), "pages %" PRIu64 " to %" PRIu64, first, first + count - 1);
    }
    return table_file_read_at(file, to, (size_t)count * TABLE_FILE_PAGE_BYTES,
                              table_file_offset(first), what, error);
}

bool table_file_page_sound(const struct table_file *file, uint64_t number, const void *page,
                           char *error)
{
    if (table_file_page_sum(page, file->info.identity, number) == file->checksums[number]) {
        return true;
    }
    fail_with(error, TABLE_FILE_ERROR_MAX,
              "%s: " PAGE_AT " does not match its checksum: it was damaged, or is not "
              "the one that was written there; " TABLE_FILE_RESTORE,
              file->path, number, table_file_offset(number));
    return false;
}

static enum table_file_result read_sound(const struct table_file *file, uint64_t first,
                                         uint64_t count, unsigned char *to, char *error)
{
    enum table_file_result result = table_file_read_run(file, first, count, to, error);
    for (uint64_t i = 0; i < count && result == TABLE_FILE_DONE; i++) {
        if (!table_file_page_sound(file, first + i, to + i * TABLE_FILE_PAGE_BYTES, error)) {
            result = TABLE_FILE_DAMAGED;
        }
    }
    return result;
}

enum table_file_result table_file_load_pages(const struct table_file *file, uint64_t first,
                                             uint64_t count, void *to, table_file_piece_fn *piece,
                                             void *context, char error[TABLE_FILE_ERROR_MAX])
{
    check_file(file);
    check_aligned(to);
    CHECK(first <= file->info.pages && count <= file->info.pages - first);
    enum table_file_result result = TABLE_FILE_DONE;
    for (uint64_t done = 0; done < count && result == TABLE_FILE_DONE;) {
        uint64_t pages =
            count - done < TABLE_FILE_BLOCK_PAGES ? count - done : TABLE_FILE_BLOCK_PAGES;
        result = read_sound(file, first + done, pages,
                            (unsigned char *)to + done * TABLE_FILE_PAGE_BYTES, error);
        done += pages;
        if (result == TABLE_FILE_DONE && piece && !piece(context, done)) {
            result = TABLE_FILE_STOPPED;
        }
    }
    return result;
}

enum table_file_result table_file_read_page(const struct table_file *file, uint64_t number,
                                            void *page, char error[TABLE_FILE_ERROR_MAX])
{
    check_file(file);
    check_aligned(page);
    CHECK(number < file->section_begin[file->info.sections]);
    return read_sound(file, number, 1, page, error);
}

/* ---- entries ---- */

size_t table_file_entries_in(const struct table_file *file, unsigned section, uint64_t number)
{
    const struct table_file_section *about = &file->info.section[section];
    uint64_t a_page = table_file_entries_a_page(about->value_bytes);
    CHECK(number >= file->section_begin[section] && number < file->section_begin[section + 1]);
    uint64_t left = about->entries - (number - file->section_begin[section]) * a_page;
    return (size_t)(left < a_page ? left : a_page);
}

bool table_file_order_sound(const struct table_file *file, unsigned section, uint64_t number,
                            const unsigned char *page, const struct table_file_key *last,
                            char *error)
{
    size_t entry_bytes = table_file_entry_bytes(file->info.section[section].value_bytes);
    size_t count = table_file_entries_in(file, section, number);
    struct table_file_key before = last ? *last : (struct table_file_key){0};
    for (size_t i = 0; i < count; i++) {
        struct table_file_key key = table_file_entry_key(page + i * entry_bytes);
        if ((i > 0 || last) && !table_file_below(&before, &key)) {
            fail_with(error, TABLE_FILE_ERROR_MAX,
                      "%s: " PAGE_AT " holds entry %zu of section %u, id %" PRIu64
                      ", which does not follow the one before it; " TABLE_FILE_RESTORE,
                      file->path, number, table_file_offset(number), i, section, key.id);
            return false;
        }
        before = key;
    }
    return true;
}

static bool each_in_page(const struct table_file *file, unsigned section, uint64_t number,
                         const unsigned char *page, table_file_entry_fn *entry, void *context)
{
    size_t entry_bytes = table_file_entry_bytes(file->info.section[section].value_bytes);
    size_t count = table_file_entries_in(file, section, number);
    for (size_t i = 0; i < count; i++, page += entry_bytes) {
        struct table_file_key key = table_file_entry_key(page);
        if (!entry(context, key.id, key.sub, page + TABLE_FILE_KEY_BYTES)) {
            return false;
        }
    }
    return true;
}

/* Entries of the pages in a block; *last: the key before, then the last of these. */
static enum table_file_result each_in_block(const struct table_file *file, unsigned section,
                                            uint64_t first, uint64_t count,
                                            const unsigned char *block, struct table_file_key *last,
                                            table_file_entry_fn *entry, void *context, char *error)
{
    size_t entry_bytes = table_file_entry_bytes(file->info.section[section].value_bytes);
    for (uint64_t i = 0; i < count; i++) {
        const unsigned char *page = block + i * TABLE_FILE_PAGE_BYTES;
        uint64_t number = first + i;
        const struct table_file_key *before = number == file->section_begin[section] ? NULL : last;
        if (!table_file_order_sound(file, section, number, page, before, error)) {
            return TABLE_FILE_DAMAGED;
        }
        size_t entries = table_file_entries_in(file, section, number);
        *last = table_file_entry_key(page + (entries - 1) * entry_bytes);
        if (!each_in_page(file, section, number, page, entry, context)) {
            return TABLE_FILE_STOPPED;
        }
    }
    return TABLE_FILE_DONE;
}

enum table_file_result table_file_each_entry(const struct table_file *file, unsigned section,
                                             table_file_entry_fn *entry, void *context,
                                             char error[TABLE_FILE_ERROR_MAX])
{
    check_file(file);
    CHECK(section < file->info.sections);
    uint64_t at = file->section_begin[section];
    uint64_t end = file->section_begin[section + 1];
    uint64_t block_pages = end - at < TABLE_FILE_BLOCK_PAGES ? end - at : TABLE_FILE_BLOCK_PAGES;
    struct table_file_key last = {0};
    enum table_file_result result = TABLE_FILE_DONE;
    if (block_pages == 0) {
        return TABLE_FILE_DONE;
    }
    unsigned char *block = table_file_pages_alloc(block_pages);
    if (!block) {
        fail_with(error, TABLE_FILE_ERROR_MAX, "%s: no memory to read it", file->path);
        return TABLE_FILE_FAILED;
    }
    while (at < end && result == TABLE_FILE_DONE) {
        uint64_t count = end - at < block_pages ? end - at : block_pages;
        result = read_sound(file, at, count, block, error);
        if (result == TABLE_FILE_DONE) {
            result = each_in_block(file, section, at, count, block, &last, entry, context, error);
        }
        at += count;
    }
    free(block);
    return result;
}

bool table_file_entry_page(const struct table_file *file, unsigned section, uint64_t id,
                           uint8_t sub, uint64_t *number)
{
    check_file(file);
    CHECK(section < file->info.sections);
    struct table_file_key key = {.id = id, .sub = sub};
    uint64_t begin = file->section_begin[section];
    const struct table_file_key *keys = file->first_keys + (begin - file->info.pages);
    /* The pages below `low` begin at or below the key, those from `high` above it. */
    uint64_t low = 0;
    uint64_t high = file->section_begin[section + 1] - begin;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (table_file_below(&key, &keys[middle])) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (low == 0) {
        return false;
    }
    *number = begin + low - 1;
    return true;
}

bool table_file_search_page(const struct table_file *file, unsigned section, uint64_t number,
                            const void *page, uint64_t id, uint8_t sub, void *value)
{
    check_file(file);
    CHECK(section < file->info.sections);
    uint32_t value_bytes = file->info.section[section].value_bytes;
    size_t entry_bytes = table_file_entry_bytes(value_bytes);
    struct table_file_key key = {.id = id, .sub = sub};
    size_t low = 0;
    size_t high = table_file_entries_in(file, section, number);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const unsigned char *entry = (const unsigned char *)page + middle * entry_bytes;
        struct table_file_key found = table_file_entry_key(entry);
        if (table_file_below(&found, &key)) {
            low = middle + 1;
        } else if (table_file_below(&key, &found)) {
            high = middle;
        } else {
            if (value && value_bytes > 0) {
                memcpy(value, entry + TABLE_FILE_KEY_BYTES, value_bytes);
            }
            return true;
        }
    }
    return false;
}
