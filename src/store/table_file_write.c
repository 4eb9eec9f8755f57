/* table_file_write.c: writing a table file from front to back. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/point.h"
#include "store/table_file_private.h"

#define WRITER_CLASS 0x77746162u

struct table_file_writer {
    uint32_t class;
    int fd; /* -1: it has failed, the file is gone */
    struct vfs *vfs;
    char *directory;
    char *path;
    struct table_file_header *header;
    unsigned char *block; /* what is not written yet, from block_offset */
    size_t block_used;
    uint64_t block_offset;
    uint64_t number; /* of the next page */
    /* The page of entries that is being filled. */
    bool entries_begun;
    unsigned section;
    size_t entries_in_page;
    struct table_file_key last_key;
    unsigned char *page;
    struct buf checksums;
    struct buf first_keys;
    char error[TABLE_FILE_ERROR_MAX];
};

static void writer_destroy(struct table_file_writer *writer)
{
    buf_fini(&writer->checksums);
    buf_fini(&writer->first_keys);
    free(writer->page);
    free(writer->block);
    free(writer->header);
    free(writer->path);
    free(writer->directory);
    free(writer);
}

static void table_file_write_drop(struct table_file_writer *writer)
{
    int error = errno;
    if (writer->fd >= 0) {
        writer->vfs->functions->close(writer->vfs, writer->fd);
        writer->vfs->functions->unlink(writer->vfs, writer->path);
        writer->fd = -1;
    }
    errno = error;
}

/* The file goes at once, so that its room is free while the caller makes up its mind. */
static bool table_file_write_fail(struct table_file_writer *writer, const char *doing,
                                  uint64_t offset)
{
    int error = errno;
    bool full = error == ENOSPC || error == EDQUOT;
    fail_with(writer->error, TABLE_FILE_ERROR_MAX,
              "%s: %s at offset %" PRIu64 ": %s; %s, then try again", writer->path, doing, offset,
              strerror(error), full ? "make room" : "check the disk");
    table_file_write_drop(writer);
    return false;
}

/* ---- blocks ---- */

static bool table_file_write_flush(struct table_file_writer *writer)
{
    struct vfs *vfs = writer->vfs;
    if (writer->block_used == 0) {
        return true;
    }
    if (!vfs_write_all(vfs, writer->fd, writer->block, writer->block_used, writer->block_offset)) {
        return table_file_write_fail(writer, "cannot write", writer->block_offset);
    }
    vfs->functions->writeback(vfs, writer->fd, writer->block_offset, writer->block_used);
    writer->block_offset += writer->block_used;
    writer->block_used = 0;
    return true;
}

static bool put_raw(struct table_file_writer *writer, const void *page)
{
    memcpy(writer->block + writer->block_used, page, TABLE_FILE_PAGE_BYTES);
    writer->block_used += TABLE_FILE_PAGE_BYTES;
    return writer->block_used < TABLE_FILE_BLOCK_BYTES || table_file_write_flush(writer);
}

static bool table_file_write_append(struct table_file_writer *writer, struct buf *in,
                                    const void *bytes, size_t length)
{
    if (!buf_append(in, bytes, length)) {
        errno = ENOMEM;
        return table_file_write_fail(writer, "no memory for checksums",
                                     table_file_offset(writer->number));
    }
    return true;
}

static bool put_page(struct table_file_writer *writer, const void *page)
{
    uint32_t sum = table_file_page_sum(page, writer->header->identity, writer->number);
    if (!table_file_write_append(writer, &writer->checksums, &sum, sizeof(sum))) {
        return false;
    }
    writer->number++;
    return put_raw(writer, page);
}

/* ---- beginning ---- */

static void set_text(char *to, size_t room, const char *from)
{
    size_t length = strnlen(from, room);
    CHECK(length < room);
    memcpy(to, from, length);
}

static void header_fill(struct table_file_header *header, const struct table_file_info *info)
{
    CHECK(info->sections <= TABLE_FILE_SECTIONS_MAX);
    CHECK(info->description_bytes <= TABLE_FILE_DESCRIPTION_MAX);
    header->magic = TABLE_FILE_MAGIC;
    header->version = TABLE_FILE_VERSION;
    header->features = TABLE_FILE_FEATURES;
    do {
        header->identity = clock_random();
    } while (header->identity == 0);
    header->serial = info->serial;
    header->generation = info->generation;
    header->start_lsn = info->start_lsn;
    header->layer = info->layer;
    header->sections = info->sections;
    set_text(header->kind, sizeof(info->kind), info->kind);
    set_text(header->space, sizeof(info->space), info->space);
    for (unsigned i = 0; i < info->sections; i++) {
        CHECK(info->section[i].value_bytes <= TABLE_FILE_VALUE_MAX);
        header->section[i].value_bytes = info->section[i].value_bytes;
    }
    if (info->description_bytes > 0) {
        memcpy(header->description, info->description, info->description_bytes);
    }
    header->description_bytes = (uint32_t)info->description_bytes;
}

struct table_file_writer *table_file_create(struct vfs *vfs, const char *directory,
                                            const char *name, const struct table_file_info *info,
                                            char error[TABLE_FILE_ERROR_MAX])
{
    char path[VFS_PATH_MAX];
    if (!vfs_path(path, directory, name)) {
        fail_with(error, TABLE_FILE_ERROR_MAX, "%s/%s: %s", directory, name, strerror(errno));
        return NULL;
    }
    struct table_file_writer *writer = memory_zalloc(sizeof(*writer));
    writer->class = WRITER_CLASS;
    writer->vfs = vfs;
    writer->directory = memory_strdup(directory);
    writer->path = memory_strdup(path);
    writer->header = memory_zalloc(sizeof(*writer->header));
    writer->page = memory_zalloc(TABLE_FILE_PAGE_BYTES);
    writer->block_used = TABLE_FILE_PAGE_BYTES; /* the header's place: zeroes until the end */
    buf_init(&writer->checksums, SIZE_MAX / 4, NULL);
    buf_init(&writer->first_keys, SIZE_MAX / 4, NULL);
    header_fill(writer->header, info);
    writer->block = table_file_pages_alloc(TABLE_FILE_BLOCK_PAGES);
    writer->fd = writer->block ? vfs->functions->open(vfs, path, O_RDWR | O_CREAT | O_EXCL) : -1;
    if (writer->fd < 0) {
        int reason = errno;
        fail_with(error, TABLE_FILE_ERROR_MAX, "%s: cannot create: %s; %s", path, strerror(reason),
                  reason == EEXIST ? "a table file is never overwritten"
                                   : "check the directory and the disk");
        writer_destroy(writer);
        errno = reason;
        return NULL;
    }
    memset(writer->block, 0, TABLE_FILE_PAGE_BYTES);
    return writer;
}

/* ---- the contents ---- */

bool table_file_append_pages(struct table_file_writer *writer, const void *pages, size_t count)
{
    CHECK(writer->class == WRITER_CLASS);
    CHECK(!writer->entries_begun);
    for (size_t i = 0; i < count && writer->fd >= 0; i++) {
        put_page(writer, (const char *)pages + i * TABLE_FILE_PAGE_BYTES);
    }
    return writer->fd >= 0;
}

/* The page of entries goes out, full or the last of its section. */
static bool finish_page(struct table_file_writer *writer)
{
    if (writer->entries_in_page == 0) {
        return true;
    }
    writer->entries_in_page = 0;
    bool done = put_page(writer, writer->page);
    memset(writer->page, 0, TABLE_FILE_PAGE_BYTES);
    return done;
}

/* Pages end where entries begin; a section where the next one begins. */
static bool enter_section(struct table_file_writer *writer, unsigned section)
{
    CHECK(section < writer->header->sections);
    CHECK(!writer->entries_begun || section >= writer->section);
    if (!writer->entries_begun) {
        POINT("between pages and entries");
        writer->header->pages = writer->number;
        writer->entries_begun = true;
    } else if (section > writer->section && !finish_page(writer)) {
        return false;
    }
    writer->section = section;
    return true;
}

bool table_file_append_entry(struct table_file_writer *writer, unsigned section, uint64_t id,
                             uint8_t sub, const void *value)
{
    CHECK(writer->class == WRITER_CLASS);
    struct table_file_key key = {.id = id, .sub = sub};
    if (writer->fd < 0 || !enter_section(writer, section)) {
        return false;
    }
    uint32_t value_bytes = writer->header->section[section].value_bytes;
    CHECK(writer->header->section[section].entries == 0 ||
          table_file_below(&writer->last_key, &key));
    if (writer->entries_in_page == 0 &&
        !table_file_write_append(writer, &writer->first_keys, &key, sizeof(key))) {
        return false;
    }
    unsigned char *to =
        writer->page + writer->entries_in_page * table_file_entry_bytes(value_bytes);
    memcpy(to, &id, sizeof(id));
    to[sizeof(id)] = sub;
    if (value_bytes > 0) {
        memcpy(to + TABLE_FILE_KEY_BYTES, value, value_bytes);
    }
    writer->last_key = key;
    writer->header->section[section].entries++;
    writer->entries_in_page++;
    return writer->entries_in_page < table_file_entries_a_page(value_bytes) || finish_page(writer);
}

const char *table_file_writer_error(const struct table_file_writer *writer)
{
    CHECK(writer->class == WRITER_CLASS);
    return writer->error;
}

/* ---- the end ---- */

/* Whole pages, zeroes after the last. */
static bool fill_up(struct table_file_writer *writer, struct buf *bytes)
{
    static const unsigned char zeroes[TABLE_FILE_PAGE_BYTES];
    size_t beyond = bytes->length % TABLE_FILE_PAGE_BYTES;
    return beyond == 0 ||
           table_file_write_append(writer, bytes, zeroes, TABLE_FILE_PAGE_BYTES - beyond);
}

static bool put_index(struct table_file_writer *writer)
{
    bool done = fill_up(writer, &writer->first_keys);
    for (size_t at = 0; done && at < writer->first_keys.length; at += TABLE_FILE_PAGE_BYTES) {
        done = put_page(writer, writer->first_keys.data + at);
    }
    return done;
}

/* The footer's sum goes over whole pages: the zeroes after the checksums are covered too. */
static bool put_checksums(struct table_file_writer *writer)
{
    static const uint32_t none;
    bool done = (writer->number > 0 ||
                 table_file_write_append(writer, &writer->checksums, &none, sizeof(none))) &&
                fill_up(writer, &writer->checksums);
    for (size_t at = 0; done && at < writer->checksums.length; at += TABLE_FILE_PAGE_BYTES) {
        done = put_raw(writer, writer->checksums.data + at);
    }
    return done;
}

static bool sync_file(struct table_file_writer *writer)
{
    return writer->vfs->functions->fdatasync(writer->vfs, writer->fd) == 0 ||
           table_file_write_fail(writer, "cannot sync", writer->block_offset);
}

static bool write_contents(struct table_file_writer *writer)
{
    if (!writer->entries_begun) {
        writer->header->pages = writer->number;
    }
    return finish_page(writer) && put_index(writer) && put_checksums(writer) &&
           table_file_write_flush(writer) && sync_file(writer);
}

/* Writes header and footer last: a reader that finds both has all that is between them. */
static bool write_ends(struct table_file_writer *writer, uint64_t end_lsn)
{
    struct table_file_header *header = writer->header;
    struct table_file_footer *footer = (void *)writer->block;
    uint64_t footer_offset = writer->block_offset;
    header->file_bytes = footer_offset + sizeof(*footer);
    header->checksum = table_file_header_sum(header);
    memset(footer, 0, sizeof(*footer));
    footer->magic = TABLE_FILE_FOOTER_MAGIC;
    footer->identity = header->identity;
    footer->end_lsn = end_lsn;
    footer->checksums_sum =
        hash_bytes(writer->checksums.data, writer->checksums.length, header->identity);
    footer->header_checksum = header->checksum;
    memcpy(footer->header, header, sizeof(footer->header));
    memcpy(footer->description, header->description, sizeof(footer->description));
    footer->checksum = table_file_footer_sum(footer, header->identity);
    if (!vfs_write_all(writer->vfs, writer->fd, footer, sizeof(*footer), footer_offset)) {
        return table_file_write_fail(writer, "cannot write", footer_offset);
    }
    if (!vfs_write_all(writer->vfs, writer->fd, header, sizeof(*header), 0)) {
        return table_file_write_fail(writer, "cannot write", 0);
    }
    POINT("file written, not synced");
    return sync_file(writer);
}

bool table_file_commit(struct table_file_writer *writer, uint64_t end_lsn, uint64_t *file_bytes,
                       char error[TABLE_FILE_ERROR_MAX])
{
    CHECK(writer->class == WRITER_CLASS);
    CHECK(end_lsn >= writer->header->start_lsn);
    bool done = writer->fd >= 0 && write_contents(writer) && write_ends(writer, end_lsn);
    if (done && writer->vfs->functions->sync_dir(writer->vfs, writer->directory) != 0) {
        done = table_file_write_fail(writer, "cannot sync its directory", 0);
    }
    int reason = errno;
    if (done) {
        writer->vfs->functions->close(writer->vfs, writer->fd);
        if (file_bytes) {
            *file_bytes = writer->header->file_bytes;
        }
    } else {
        fail_with(error, TABLE_FILE_ERROR_MAX, "%s", writer->error);
    }
    writer_destroy(writer);
    errno = reason;
    return done;
}

void table_file_abandon(struct table_file_writer *writer)
{
    if (writer) {
        CHECK(writer->class == WRITER_CLASS);
        table_file_write_drop(writer);
        writer_destroy(writer);
    }
}
