/* table_rescue.c: reading a table file over its damages. */
#include "store/table_rescue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/memory.h"
#include "store/one_bit.h"
#include "store/table_file_private.h"

struct table_rescue {
    struct table_file *file; /* what open would have made of it, index and sums as far as read */
    struct table_file_footer *footer;
    bool footer_sound;
    unsigned char *page;
    uint64_t mends; /* pages that were tried */
    struct table_rescue_mended mended;
    /* while it runs */
    struct table_file_writer *writer;
    const struct table_rescue_told *told;
};

/* ---- opening ---- */

/* As much as there is, zeroes for the rest. */
static void read_some(const struct table_file *file, void *to, uint64_t bytes, uint64_t offset)
{
    memset(to, 0, bytes);
    if (vfs_read_all(file->vfs, file->fd, to, bytes, offset) < 0) {
        memset(to, 0, bytes); /* page by page it may do better; these are few */
    }
}

static bool footer_sound(const struct table_file_footer *footer)
{
    return footer->magic == TABLE_FILE_FOOTER_MAGIC && footer->identity != 0 &&
           footer->checksum == table_file_footer_sum(footer, footer->identity);
}

static bool header_sound(const struct table_file_header *header)
{
    return header->magic == TABLE_FILE_MAGIC && header->checksum == table_file_header_sum(header);
}

/* The header as the footer tells it. */
static bool rebuild_header(struct table_file_header *header, const struct table_file_footer *footer)
{
    memset(header, 0, sizeof(*header));
    memcpy(header, footer->header, sizeof(footer->header));
    memcpy(header->description, footer->description, sizeof(header->description));
    header->checksum = footer->header_checksum;
    return header_sound(header);
}

static void read_ends(struct table_rescue *rescue)
{
    struct table_file *file = rescue->file;
    int64_t size = file->vfs->functions->size(file->vfs, file->fd);
    uint64_t pages = size > 0 ? (uint64_t)size / TABLE_FILE_PAGE_BYTES : 0;
    read_some(file, file->header, sizeof(*file->header), 0);
    if (pages > 1) {
        read_some(file, rescue->footer, sizeof(*rescue->footer),
                  (pages - 1) * TABLE_FILE_PAGE_BYTES);
    }
    rescue->footer_sound = footer_sound(rescue->footer);
    if (!header_sound(file->header) && rescue->footer_sound) {
        rescue->mended.header = rebuild_header(file->header, rescue->footer);
    }
}

static bool sums_fit(const struct table_rescue *rescue, const uint32_t *sums)
{
    const struct table_file *file = rescue->file;
    size_t bytes = (size_t)file->sum_pages * TABLE_FILE_PAGE_BYTES;
    return hash_bytes(sums, bytes, file->info.identity) == rescue->footer->checksums_sum;
}

/* The section of checksums as it follows from the pages, if these are all sound. */
static void rebuild_sums(struct table_rescue *rescue)
{
    struct table_file *file = rescue->file;
    char error[TABLE_FILE_ERROR_MAX];
    uint64_t pages = table_file_summed_pages(file);
    uint32_t *sums = memory_zalloc((size_t)file->sum_pages * TABLE_FILE_PAGE_BYTES);
    bool read = true;
    for (uint64_t i = 0; i < pages && read; i++) {
        read = table_file_read_run(file, i, 1, rescue->page, error) == TABLE_FILE_DONE;
        sums[i] = table_file_page_sum(rescue->page, file->info.identity, i);
    }
    if (read && sums_fit(rescue, sums)) {
        memcpy(file->checksums, sums, (size_t)file->sum_pages * TABLE_FILE_PAGE_BYTES);
        rescue->mended.checksums = true;
    }
    free(sums);
}

static bool table_rescue_read_tail(struct table_rescue *rescue)
{
    struct table_file *file = rescue->file;
    uint64_t first = file->section_begin[file->info.sections];
    size_t bytes = (size_t)(file->index_pages + file->sum_pages) * TABLE_FILE_PAGE_BYTES;
    unsigned char *tail = table_file_pages_alloc(file->index_pages + file->sum_pages);
    if (!tail) {
        return false;
    }
    file->first_keys = (void *)tail;
    file->checksums = (void *)(tail + file->index_pages * TABLE_FILE_PAGE_BYTES);
    read_some(file, tail, bytes, table_file_offset(first));
    if (rescue->footer_sound && !sums_fit(rescue, file->checksums)) {
        rebuild_sums(rescue);
    }
    return true;
}

static enum table_file_result table_rescue_open_parts(struct table_rescue *rescue, uint64_t end_lsn,
                                                      char *error)
{
    struct table_file *file = rescue->file;
    const struct table_file_footer *footer = rescue->footer;
    read_ends(rescue);
    enum table_file_result result = table_file_check_header(file, error);
    if (result != TABLE_FILE_DONE) {
        return result;
    }
    table_file_take_info(file);
    uint64_t bytes = table_file_lay_out(file);
    if (bytes != file->info.file_bytes) {
        fail_with(error, TABLE_FILE_ERROR_MAX, "%s: the header holds impossible numbers",
                  file->path);
        return TABLE_FILE_DAMAGED;
    }
    rescue->footer_sound = rescue->footer_sound && footer->identity == file->info.identity &&
                           footer->header_checksum == file->header->checksum;
    rescue->mended.footer = !rescue->footer_sound;
    file->info.end_lsn = rescue->footer_sound ? footer->end_lsn : end_lsn;
    if (file->info.end_lsn < file->info.start_lsn) {
        file->info.end_lsn = file->info.start_lsn;
    }
    if (!table_rescue_read_tail(rescue)) {
        fail_with(error, TABLE_FILE_ERROR_MAX, "%s: no memory for its checksums", file->path);
        return TABLE_FILE_FAILED;
    }
    return TABLE_FILE_DONE;
}

enum table_file_result table_rescue_open(struct vfs *vfs, const char *path, uint64_t end_lsn,
                                         struct table_rescue **rescue,
                                         char error[TABLE_FILE_ERROR_MAX])
{
    int fd = vfs->functions->open(vfs, path, O_RDONLY);
    if (fd < 0) {
        fail_with(error, TABLE_FILE_ERROR_MAX, "%s: cannot open: %s", path, strerror(errno));
        return errno == ENOENT ? TABLE_FILE_ABSENT : TABLE_FILE_FAILED;
    }
    struct table_rescue *opened = memory_zalloc(sizeof(*opened));
    struct table_file *file = opened->file = memory_zalloc(sizeof(*file));
    file->class = TABLE_FILE_CLASS;
    file->vfs = vfs;
    file->fd = fd;
    file->path = memory_strdup(path);
    file->header = table_file_pages_alloc(1);
    opened->footer = table_file_pages_alloc(1);
    opened->page = table_file_pages_alloc(1);
    enum table_file_result result = TABLE_FILE_FAILED;
    if (file->header && opened->footer && opened->page) {
        memset(opened->footer, 0, sizeof(*opened->footer));
        result = table_rescue_open_parts(opened, end_lsn, error);
    } else {
        fail_with(error, TABLE_FILE_ERROR_MAX, "%s: no memory", path);
    }
    if (result == TABLE_FILE_DONE) {
        *rescue = opened;
    } else {
        table_rescue_close(opened);
    }
    return result;
}

void table_rescue_close(struct table_rescue *rescue)
{
    if (rescue) {
        table_file_close(rescue->file);
        free(rescue->footer);
        free(rescue->page);
        free(rescue);
    }
}

const struct table_file_info *table_rescue_info(const struct table_rescue *rescue)
{
    return &rescue->file->info;
}

const struct table_rescue_mended *table_rescue_mended(const struct table_rescue *rescue)
{
    return &rescue->mended;
}

/* ---- pages ---- */

struct place {
    const struct table_file *file;
    uint64_t number;
};

static bool page_fits(void *context, const void *page)
{
    const struct place *place = context;
    return table_file_page_sum(page, place->file->info.identity, place->number) ==
           place->file->checksums[place->number];
}

/* Reads a page into rescue->page. False: it cannot be had. */
static bool table_rescue_get_page(struct table_rescue *rescue, uint64_t number)
{
    char error[TABLE_FILE_ERROR_MAX];
    struct place place = {rescue->file, number};
    if (table_file_read_run(rescue->file, number, 1, rescue->page, error) != TABLE_FILE_DONE) {
        return false;
    }
    if (page_fits(&place, rescue->page)) {
        return true;
    }
    bool tries = rescue->mends++ < TABLE_RESCUE_MENDS_MAX;
    rescue->mended.untried += !tries;
    if (!tries || !one_bit_mend(rescue->page, TABLE_FILE_PAGE_BYTES, page_fits, &place)) {
        return false;
    }
    rescue->mended.pages++;
    return true;
}

static bool run_pages(struct table_rescue *rescue)
{
    const struct table_file_info *info = &rescue->file->info;
    bool written = true;
    for (uint64_t i = 0; i < info->pages && written; i++) {
        if (!table_rescue_get_page(rescue, i)) {
            struct table_rescue_lost lost = {.page = i};
            memset(rescue->page, 0, TABLE_FILE_PAGE_BYTES);
            rescue->told->blank(rescue->told->context, info, rescue->page);
            rescue->told->lost(rescue->told->context, &lost);
        }
        written = !rescue->writer || table_file_append_pages(rescue->writer, rescue->page, 1);
    }
    return written;
}

/* ---- entries ---- */

/* The key a page of entries begins with, by the index. False: that page of it is damaged. */
static bool indexed(const struct table_rescue *rescue, uint64_t number, struct table_file_key *key)
{
    const struct table_file *file = rescue->file;
    char error[TABLE_FILE_ERROR_MAX];
    uint64_t place = number - file->info.pages;
    uint64_t index_page = place / TABLE_FILE_KEYS_A_PAGE;
    *key = file->first_keys[place];
    return table_file_page_sound(file, file->section_begin[file->info.sections] + index_page,
                                 file->first_keys + index_page * TABLE_FILE_KEYS_A_PAGE, error);
}

static void tell_entries(struct table_rescue *rescue, unsigned section, uint64_t number)
{
    const struct table_file *file = rescue->file;
    struct table_file_key first, next;
    struct table_rescue_lost lost = {.page = number,
                                     .of_entries = true,
                                     .section = section,
                                     .entries = table_file_entries_in(file, section, number)};
    lost.has_first = indexed(rescue, number, &first);
    lost.has_last =
        number + 1 < file->section_begin[section + 1] && indexed(rescue, number + 1, &next);
    lost.first_id = lost.has_first ? first.id : 0;
    lost.last_id = lost.has_last ? next.id : 0;
    rescue->told->lost(rescue->told->context, &lost);
}

static bool write_entries(struct table_rescue *rescue, unsigned section, uint64_t number)
{
    const struct table_file *file = rescue->file;
    size_t entry_bytes = table_file_entry_bytes(file->info.section[section].value_bytes);
    size_t count = table_file_entries_in(file, section, number);
    const unsigned char *entry = rescue->page;
    bool written = true;
    for (size_t i = 0; i < count && written && rescue->writer; i++, entry += entry_bytes) {
        struct table_file_key key = table_file_entry_key(entry);
        written = table_file_append_entry(rescue->writer, section, key.id, key.sub,
                                          entry + TABLE_FILE_KEY_BYTES);
    }
    return written;
}

static bool run_section(struct table_rescue *rescue, unsigned section)
{
    const struct table_file *file = rescue->file;
    size_t entry_bytes = table_file_entry_bytes(file->info.section[section].value_bytes);
    char error[TABLE_FILE_ERROR_MAX];
    struct table_file_key last;
    bool has_last = false;
    bool written = true;
    for (uint64_t i = file->section_begin[section]; i < file->section_begin[section + 1] && written;
         i++) {
        if (!table_rescue_get_page(rescue, i) ||
            !table_file_order_sound(file, section, i, rescue->page, has_last ? &last : NULL,
                                    error)) {
            tell_entries(rescue, section, i);
            continue;
        }
        size_t count = table_file_entries_in(file, section, i);
        last = table_file_entry_key(rescue->page + (count - 1) * entry_bytes);
        has_last = true;
        written = write_entries(rescue, section, i);
    }
    return written;
}

static void look_at_index(struct table_rescue *rescue)
{
    const struct table_file *file = rescue->file;
    struct table_file_key key;
    for (uint64_t i = 0; i < file->index_pages; i++) {
        uint64_t number = file->info.pages + i * TABLE_FILE_KEYS_A_PAGE;
        rescue->mended.index |= !indexed(rescue, number, &key);
    }
}

bool table_rescue_run(struct table_rescue *rescue, struct table_file_writer *writer,
                      const struct table_rescue_told *told)
{
    rescue->writer = writer;
    rescue->told = told;
    rescue->mends = 0;
    rescue->mended.pages = rescue->mended.untried = 0;
    look_at_index(rescue);
    bool written = run_pages(rescue);
    for (unsigned i = 0; i < rescue->file->info.sections && written; i++) {
        written = run_section(rescue, i);
    }
    return written;
}
