/* table_file_open.c: opening a table file: what is checked before a page of it is read. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/memory.h"
#include "store/table_file_private.h"

void *table_file_pages_alloc(uint64_t pages)
{
    if (pages > SIZE_MAX / TABLE_FILE_PAGE_BYTES) {
        errno = ENOMEM;
        return NULL;
    }
    return aligned_alloc(TABLE_FILE_PAGE_BYTES, (size_t)pages * TABLE_FILE_PAGE_BYTES);
}

static enum table_file_result read_fd(const struct table_file *file, int fd, void *to, size_t bytes,
                                      uint64_t offset, const char *what, char *error)
{
    ssize_t got = vfs_read_all(file->vfs, fd, to, bytes, offset);
    if (got < 0) {
        fail_with(error, TABLE_FILE_ERROR_MAX,
                  "%s: cannot read %s at offset %" PRIu64 ": %s; check the disk", file->path, what,
                  offset, strerror(errno));
        return TABLE_FILE_FAILED;
    }
    if ((size_t)got < bytes) {
        fail_with(error, TABLE_FILE_ERROR_MAX,
                  "%s: ends at offset %" PRIu64 ", in %s: it was cut short; " TABLE_FILE_RESTORE,
                  file->path, offset + (uint64_t)got, what);
        return TABLE_FILE_DAMAGED;
    }
    return TABLE_FILE_DONE;
}

/* ---- a descriptor that is shared ---- */

struct reopening {
    const struct table_file *file;
    char *error;
    enum table_file_result result;
};

/* Returns whether it is still the file whose checksums are in memory. */
static enum table_file_result check_again(const struct table_file *file, int fd, char *error)
{
    _Alignas(TABLE_FILE_PAGE_BYTES) struct table_file_header header;
    enum table_file_result result =
        read_fd(file, fd, &header, sizeof(header), 0, "the header", error);
    if (result != TABLE_FILE_DONE) {
        return result;
    }
    if (header.checksum != file->header_sum || table_file_header_sum(&header) != file->header_sum) {
        fail_with(error, TABLE_FILE_ERROR_MAX,
                  "%s: is not the file that was opened before: its header has changed "
                  "since; " TABLE_FILE_RESTORE,
                  file->path);
        return TABLE_FILE_DAMAGED;
    }
    return TABLE_FILE_DONE;
}

static int reopen(void *context)
{
    struct reopening *reopening = context;
    const struct table_file *file = reopening->file;
    const struct vfs_functions *functions = file->vfs->functions;
    int fd = functions->open(file->vfs, file->path, O_RDONLY | (file->direct ? O_DIRECT : 0));
    if (fd < 0) {
        fail_with(reopening->error, TABLE_FILE_ERROR_MAX, "%s: cannot open: %s; %s", file->path,
                  strerror(errno), errno == ENOENT ? TABLE_FILE_RESTORE : "check the disk");
        reopening->result = TABLE_FILE_FAILED;
        return -1;
    }
    reopening->result = check_again(file, fd, reopening->error);
    if (reopening->result != TABLE_FILE_DONE) {
        functions->close(file->vfs, fd);
        return -1;
    }
    return fd;
}

static enum table_file_result read_shared(const struct table_file *file, void *to, size_t bytes,
                                          uint64_t offset, const char *what, char *error)
{
    struct reopening reopening = {.file = file, .error = error, .result = TABLE_FILE_FAILED};
    int fd = open_files_hold(file->shared, file->open_file, reopen, &reopening);
    if (fd < 0) {
        return reopening.result;
    }
    enum table_file_result result = read_fd(file, fd, to, bytes, offset, what, error);
    open_files_let_go(file->shared, file->open_file, fd);
    return result;
}

void table_file_share(struct table_file *file, struct open_files *files)
{
    CHECK(file->class == TABLE_FILE_CLASS && !file->shared && file->fd >= 0);
    file->open_file = memory_zalloc(sizeof(*file->open_file));
    open_files_add(files, file->open_file, file->fd);
    file->shared = files;
    file->fd = -1;
}

enum table_file_result table_file_read_at(const struct table_file *file, void *to, size_t bytes,
                                          uint64_t offset, const char *what, char *error)
{
    return file->shared ? read_shared(file, to, bytes, offset, what, error)
                        : read_fd(file, file->fd, to, bytes, offset, what, error);
}

/* ---- opening ---- */

static enum table_file_result table_file_open_damaged(const struct table_file *file,
                                                      const char *what, uint64_t offset,
                                                      char *error)
{
    fail_with(error, TABLE_FILE_ERROR_MAX,
              "%s: %s at offset %" PRIu64 "; delete it if it was never completed, "
              "else " TABLE_FILE_RESTORE,
              file->path, what, offset);
    return TABLE_FILE_DAMAGED;
}

static int open_fd(struct table_file *file, bool direct)
{
    file->direct = direct;
    return file->vfs->functions->open(file->vfs, file->path, O_RDONLY | (direct ? O_DIRECT : 0));
}

/* Some file systems take O_DIRECT and refuse its reads: the header is the trial. */
static enum table_file_result open_and_read(struct table_file *file, bool direct, char *error)
{
    const char *what = "the header";
    enum table_file_result result = TABLE_FILE_FAILED;
    file->fd = open_fd(file, direct);
    if (file->fd >= 0) {
        result = table_file_read_at(file, file->header, sizeof(*file->header), 0, what, error);
    } else if (errno == ENOENT) {
        return TABLE_FILE_ABSENT;
    } else {
        fail_with(error, TABLE_FILE_ERROR_MAX, "%s: cannot open: %s", file->path, strerror(errno));
    }
    if (result != TABLE_FILE_FAILED || errno != EINVAL || !direct) {
        return result;
    }
    vfs_close(file->vfs, file->fd);
    return open_and_read(file, false, error);
}

enum table_file_result table_file_check_header(const struct table_file *file, char *error)
{
    const struct table_file_header *header = file->header;
    if (header->magic != TABLE_FILE_MAGIC) {
        return table_file_open_damaged(file, "no table file: there is no header", 0, error);
    }
    if (table_file_header_sum(header) != header->checksum) {
        return table_file_open_damaged(file, "the header does not match its checksum", 0, error);
    }
    if (header->version != TABLE_FILE_VERSION || (header->features & ~TABLE_FILE_FEATURES) != 0) {
        fail_with(error, TABLE_FILE_ERROR_MAX,
                  "%s: format version %" PRIu32 ", features %" PRIx32 ": this program "
                  "knows version %u; use the one that wrote it",
                  file->path, header->version, header->features, TABLE_FILE_VERSION);
        return TABLE_FILE_NEWER;
    }
    bool sane = header->identity != 0 && header->sections <= TABLE_FILE_SECTIONS_MAX &&
                header->pages <= TABLE_FILE_PAGES_MAX &&
                header->description_bytes <= TABLE_FILE_DESCRIPTION_MAX &&
                memchr(header->kind, 0, sizeof(file->info.kind)) &&
                memchr(header->space, 0, sizeof(file->info.space));
    for (unsigned i = 0; sane && i < header->sections; i++) {
        sane = header->section[i].value_bytes <= TABLE_FILE_VALUE_MAX &&
               header->section[i].entries <= TABLE_FILE_ENTRIES_MAX;
    }
    return sane ? TABLE_FILE_DONE
                : table_file_open_damaged(file, "the header holds impossible numbers", 0, error);
}

void table_file_take_info(struct table_file *file)
{
    const struct table_file_header *header = file->header;
    struct table_file_info *info = &file->info;
    memcpy(info->kind, header->kind, sizeof(info->kind));
    memcpy(info->space, header->space, sizeof(info->space));
    info->serial = header->serial;
    info->generation = header->generation;
    info->layer = header->layer;
    info->start_lsn = header->start_lsn;
    info->sections = header->sections;
    for (unsigned i = 0; i < header->sections; i++) {
        info->section[i].value_bytes = header->section[i].value_bytes;
        info->section[i].entries = header->section[i].entries;
    }
    info->description = header->description;
    info->description_bytes = header->description_bytes;
    info->identity = header->identity;
    info->pages = header->pages;
    info->file_bytes = header->file_bytes;
    file->header_sum = header->checksum;
}

uint64_t table_file_lay_out(struct table_file *file)
{
    const struct table_file_info *info = &file->info;
    uint64_t at = info->pages;
    for (unsigned i = 0; i < info->sections; i++) {
        const struct table_file_section *section = &info->section[i];
        file->section_begin[i] = at;
        at +=
            table_file_pages_for(section->entries, table_file_entries_a_page(section->value_bytes));
    }
    file->section_begin[info->sections] = at;
    file->index_pages = table_file_pages_for(at - info->pages, TABLE_FILE_KEYS_A_PAGE);
    at += file->index_pages;
    file->sum_pages = table_file_pages_for(at ? at : 1, TABLE_FILE_CHECKSUMS_A_PAGE);
    return table_file_offset(at + file->sum_pages) + TABLE_FILE_PAGE_BYTES;
}

/* Works out from the header where everything is; the file must be just as long. */
static enum table_file_result table_file_open_lay_out(struct table_file *file, char *error)
{
    const struct table_file_info *info = &file->info;
    uint64_t bytes = table_file_lay_out(file);
    int64_t size = file->vfs->functions->size(file->vfs, file->fd);
    if (size < 0) {
        fail_with(error, TABLE_FILE_ERROR_MAX, "%s: cannot see its size: %s; check the disk",
                  file->path, strerror(errno));
        return TABLE_FILE_FAILED;
    }
    if (bytes != info->file_bytes || bytes != (uint64_t)size) {
        fail_with(error, TABLE_FILE_ERROR_MAX,
                  "%s: has %" PRId64 " bytes, its header says %" PRIu64
                  ", its sections make %" PRIu64 "; " TABLE_FILE_RESTORE,
                  file->path, size, info->file_bytes, bytes);
        return TABLE_FILE_DAMAGED;
    }
    return TABLE_FILE_DONE;
}

static enum table_file_result read_footer(struct table_file *file, uint64_t *sum, char *error)
{
    uint64_t offset = file->info.file_bytes - TABLE_FILE_PAGE_BYTES;
    struct table_file_footer *footer = table_file_pages_alloc(1);
    if (!footer) {
        fail_with(error, TABLE_FILE_ERROR_MAX, "%s: no memory", file->path);
        return TABLE_FILE_FAILED;
    }
    enum table_file_result result =
        table_file_read_at(file, footer, sizeof(*footer), offset, "the footer", error);
    bool sound = result == TABLE_FILE_DONE && footer->magic == TABLE_FILE_FOOTER_MAGIC &&
                 footer->identity == file->info.identity &&
                 footer->header_checksum == file->header_sum &&
                 footer->checksum == table_file_footer_sum(footer, file->info.identity) &&
                 footer->end_lsn >= file->info.start_lsn;
    if (sound) {
        *sum = footer->checksums_sum;
        file->info.end_lsn = footer->end_lsn;
    } else if (result == TABLE_FILE_DONE) {
        result =
            table_file_open_damaged(file, "there is no sound footer of this file", offset, error);
    }
    free(footer);
    return result;
}

/* Index and checksums stand side by side in the file: one piece of memory, one read. */
static enum table_file_result table_file_open_read_tail(struct table_file *file, uint64_t sum,
                                                        char *error)
{
    uint64_t first = file->section_begin[file->info.sections];
    uint64_t pages = file->index_pages + file->sum_pages;
    uint64_t sums_offset = table_file_offset(first + file->index_pages);
    unsigned char *tail = table_file_pages_alloc(pages);
    if (!tail) {
        fail_with(error, TABLE_FILE_ERROR_MAX, "%s: no memory for its checksums", file->path);
        return TABLE_FILE_FAILED;
    }
    file->kept_bytes = (size_t)pages * TABLE_FILE_PAGE_BYTES;
    file->first_keys = (void *)tail;
    file->checksums = (void *)(tail + file->index_pages * TABLE_FILE_PAGE_BYTES);
    enum table_file_result result =
        table_file_read_at(file, tail, (size_t)pages * TABLE_FILE_PAGE_BYTES,
                           table_file_offset(first), "index and checksums", error);
    if (result != TABLE_FILE_DONE) {
        return result;
    }
    size_t bytes = (size_t)file->sum_pages * TABLE_FILE_PAGE_BYTES;
    return hash_bytes(file->checksums, bytes, file->info.identity) == sum
               ? TABLE_FILE_DONE
               : table_file_open_damaged(file, "the section of checksums was damaged", sums_offset,
                                         error);
}

static enum table_file_result table_file_open_parts(struct table_file *file, bool direct,
                                                    char *error)
{
    uint64_t sum = 0;
    enum table_file_result result = open_and_read(file, direct, error);
    if (result == TABLE_FILE_DONE) {
        result = table_file_check_header(file, error);
    }
    if (result == TABLE_FILE_DONE) {
        table_file_take_info(file);
        result = table_file_open_lay_out(file, error);
    }
    if (result == TABLE_FILE_DONE) {
        result = read_footer(file, &sum, error);
    }
    return result == TABLE_FILE_DONE ? table_file_open_read_tail(file, sum, error) : result;
}

enum table_file_result table_file_open_core(struct vfs *vfs, const char *path, bool direct,
                                            struct table_file **file, char *error)
{
    struct table_file *opened = memory_zalloc(sizeof(*opened));
    enum table_file_result result = TABLE_FILE_FAILED;
    opened->class = TABLE_FILE_CLASS;
    opened->vfs = vfs;
    opened->fd = -1;
    opened->path = memory_strdup(path);
    opened->header = table_file_pages_alloc(1);
    if (opened->header) {
        result = table_file_open_parts(opened, direct, error);
    } else {
        fail_with(error, TABLE_FILE_ERROR_MAX, "%s: no memory", path);
    }
    if (result == TABLE_FILE_DONE) {
        *file = opened;
    } else {
        table_file_close(opened);
    }
    return result;
}

/* F3, and that the index is what was written. */
static bool index_sound(const struct table_file *file, char *error)
{
    const struct table_file_info *info = &file->info;
    uint64_t index_begin = file->section_begin[info->sections];
    const unsigned char *pages = (const void *)file->first_keys;
    for (uint64_t i = 0; i < file->index_pages; i++) {
        if (!table_file_page_sound(file, index_begin + i, pages + i * TABLE_FILE_PAGE_BYTES,
                                   error)) {
            return false;
        }
    }
    for (unsigned section = 0; section < info->sections; section++) {
        const struct table_file_key *keys =
            file->first_keys + (file->section_begin[section] - info->pages);
        uint64_t count = file->section_begin[section + 1] - file->section_begin[section];
        for (uint64_t i = 1; i < count; i++) {
            if (!table_file_below(&keys[i - 1], &keys[i])) {
                fail_with(error, TABLE_FILE_ERROR_MAX,
                          "%s: the index of section %u does not rise; " TABLE_FILE_RESTORE,
                          file->path, section);
                return false;
            }
        }
    }
    return true;
}

/* There may be very many, and most are small: the header and the rest of pages take more than what
 * is read of them later. */
static void keep_what_is_needed(struct table_file *file)
{
    size_t keys = (size_t)(file->section_begin[file->info.sections] - file->info.pages) *
                  sizeof(*file->first_keys);
    size_t sums = (size_t)table_file_summed_pages(file) * sizeof(*file->checksums);
    size_t about = file->info.description_bytes;
    unsigned char *kept = memory_zalloc(keys + sums + about + 1); /* never of nothing */
    memcpy(kept, file->first_keys, keys);
    memcpy(kept + keys, file->checksums, sums);
    memcpy(kept + keys + sums, file->info.description, about);
    free(file->first_keys);
    free(file->header);
    file->header = NULL;
    file->kept_bytes = keys + sums + about;
    file->first_keys = (void *)kept;
    file->checksums = (void *)(kept + keys);
    file->info.description = kept + keys + sums;
}

enum table_file_result table_file_open(struct vfs *vfs, const char *path, bool direct,
                                       struct table_file **file, char error[TABLE_FILE_ERROR_MAX])
{
    struct table_file *opened = NULL;
    enum table_file_result result = table_file_open_core(vfs, path, direct, &opened, error);
    if (result == TABLE_FILE_DONE && !index_sound(opened, error)) {
        table_file_close(opened);
        return TABLE_FILE_DAMAGED;
    }
    if (result == TABLE_FILE_DONE) {
        keep_what_is_needed(opened);
    }
    *file = result == TABLE_FILE_DONE ? opened : NULL;
    return result;
}

void table_file_close(struct table_file *file)
{
    if (!file) {
        return;
    }
    CHECK(file->class == TABLE_FILE_CLASS);
    int error = errno;
    vfs_close(file->vfs, file->fd);
    if (file->shared) {
        open_files_remove(file->shared, file->open_file);
    }
    free(file->open_file);
    free(file->first_keys); /* the checksums lie in the same piece */
    free(file->header);
    free(file->path);
    free(file);
    errno = error;
}
