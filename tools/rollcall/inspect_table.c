/* inspect_table.c: a table file: header, description, entries; or one page of it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "store/table_file_format.h"
#include "tools/rollcall/inspect_kind.h"
#include "tools/rollcall/inspect_private.h"

struct listing {
    const struct inspect *inspect;
    const struct table_file_info *info;
    const struct inspect_kind *kind;
    unsigned section;
    uint64_t lines;
};

/* Page k of the file, as it is; a part of it if the file ends there. Bytes read, -1 with errno. */
static ssize_t read_raw(const struct inspect *inspect, uint64_t offset, void *page)
{
    int fd = inspect->vfs->functions->open(inspect->vfs, inspect->options->path, O_RDONLY);
    if (fd < 0) {
        return -1;
    }
    ssize_t got = vfs_read_all(inspect->vfs, fd, page, TABLE_FILE_PAGE_BYTES, offset);
    vfs_close(inspect->vfs, fd);
    return got;
}

/* ---- the whole ---- */

static void inspect_table_print_header(const struct inspect *inspect,
                                       const struct table_file_info *info)
{
    char size[SIZE_TEXT_MAX];
    inspect_field(inspect, "table file", "format %u", TABLE_FILE_VERSION);
    inspect_field(inspect, "kind", "%s", info->kind);
    inspect_field(inspect, "space", "%s", info->space);
    inspect_field(inspect, "serial", "%" PRIu64, info->serial);
    inspect_field(inspect, "layer", "%" PRIu32, info->layer);
    inspect_field(inspect, "generation", "%" PRIu64, info->generation);
    inspect_field(inspect, "S", "LSN %" PRIu64 ": every change below it is in the image",
                  info->start_lsn);
    inspect_field(inspect, "E", "LSN %" PRIu64 ": none at or above it is", info->end_lsn);
    inspect_field(inspect, "identity", "%016" PRIx64, info->identity);
    inspect_field(inspect, "bytes", "%" PRIu64 " (%s)", info->file_bytes,
                  size_text(size, info->file_bytes));
    if (info->pages > 0) {
        inspect_field(inspect, "pages", "%" PRIu64 ": 0 to %" PRIu64 ", from offset %u",
                      info->pages, info->pages - 1, TABLE_FILE_PAGE_BYTES);
    } else {
        inspect_field(inspect, "pages", "none");
    }
    inspect_field(inspect, "description", "%zu bytes", info->description_bytes);
    inspect_kind_find(info->kind)->description(inspect->out, info);
}

static bool print_entry(void *context, uint64_t id, uint8_t sub, const void *value)
{
    struct listing *listing = context;
    FILE *out = listing->inspect->out;
    if (!inspect_wants(listing->inspect, listing->lines)) {
        return false;
    }
    listing->lines++;
    fprintf(out, "  id %19" PRIu64 "  sub %3u  ", id, sub);
    listing->kind->entry(out, listing->info, listing->section, id, sub, value);
    fputc('\n', out);
    return true;
}

static enum verb_exit print_section(struct listing *listing, const struct table_file *file,
                                    uint64_t first_page)
{
    char error[TABLE_FILE_ERROR_MAX];
    const struct inspect *inspect = listing->inspect;
    const struct table_file_section *section = &listing->info->section[listing->section];
    uint64_t pages =
        table_file_pages_for(section->entries, table_file_entries_a_page(section->value_bytes));
    fprintf(inspect->out, "\nsection %u    %" PRIu64 " entr%s, values of %" PRIu32 " bytes",
            listing->section, section->entries, section->entries == 1 ? "y" : "ies",
            section->value_bytes);
    if (pages > 0) {
        fprintf(inspect->out, "; pages %" PRIu64 " to %" PRIu64 ", from offset %" PRIu64,
                first_page, first_page + pages - 1, table_file_offset(first_page));
    }
    fputc('\n', inspect->out);
    listing->lines = 0;
    enum table_file_result result =
        table_file_each_entry(file, listing->section, print_entry, listing, error);
    if (result == TABLE_FILE_DAMAGED || result == TABLE_FILE_FAILED) {
        fprintf(inspect->out, "  ... (the rest cannot be read)\n");
        return VERB_DAMAGED;
    }
    if (listing->lines < section->entries) {
        fprintf(inspect->out, "  ... (%" PRIu64 " more; --limit 0 shows all)\n",
                section->entries - listing->lines);
    }
    return VERB_SOUND;
}

static bool inspect_table_complain(void *context, const char *finding)
{
    const struct inspect *inspect = context;
    verb_complain(inspect->errors, "%s", finding);
    return true;
}

/* What was printed is a part of the file; all of it is looked at. */
static enum verb_exit check_all(const struct inspect *inspect)
{
    enum table_file_result result =
        table_file_verify(inspect->vfs, inspect->options->path, true, inspect_table_complain,
                          (struct inspect *)inspect);
    return result == TABLE_FILE_DONE ? VERB_SOUND : VERB_DAMAGED;
}

static enum verb_exit print_all(const struct inspect *inspect, const struct table_file *file)
{
    struct listing listing = {.inspect = inspect, .info = table_file_info(file)};
    enum verb_exit status = VERB_SOUND;
    uint64_t page = listing.info->pages;
    listing.kind = inspect_kind_find(listing.info->kind);
    inspect_table_print_header(inspect, listing.info);
    for (; listing.section < listing.info->sections; listing.section++) {
        const struct table_file_section *section = &listing.info->section[listing.section];
        if (print_section(&listing, file, page) != VERB_SOUND) {
            status = VERB_DAMAGED;
        }
        page +=
            table_file_pages_for(section->entries, table_file_entries_a_page(section->value_bytes));
    }
    return check_all(inspect) == VERB_SOUND ? status : VERB_DAMAGED;
}

/* ---- one page ---- */

/* Pages of the table and of entries are looked up; what follows them was, when the file was
 * opened. */
static enum verb_exit page_state(const struct inspect *inspect, const struct table_file *file,
                                 uint64_t number, void *page)
{
    char error[TABLE_FILE_ERROR_MAX];
    const struct table_file_info *info = table_file_info(file);
    uint64_t end = info->pages;
    const char *what = number < end ? "of the table" : "index, checksums or footer";
    for (unsigned i = 0; i < info->sections; i++) {
        uint64_t begin = end;
        end += table_file_pages_for(info->section[i].entries,
                                    table_file_entries_a_page(info->section[i].value_bytes));
        what = number >= begin && number < end ? "of entries" : what;
    }
    enum table_file_result result =
        number < end ? table_file_read_page(file, number, page, error) : TABLE_FILE_DONE;
    fprintf(inspect->out, "page %" PRIu64 ", offset %" PRIu64 ", %s: checksum %s\n", number,
            table_file_offset(number), what, result == TABLE_FILE_DONE ? "sound" : "wrong");
    if (result != TABLE_FILE_DONE) {
        verb_complain(inspect->errors, "%s", error);
    }
    return result == TABLE_FILE_DONE ? VERB_SOUND : VERB_DAMAGED;
}

static enum verb_exit print_page(const struct inspect *inspect, const struct table_file *file)
{
    uint64_t number = inspect->options->page;
    const struct table_file_info *info = table_file_info(file);
    uint64_t pages = info->file_bytes / TABLE_FILE_PAGE_BYTES - 1;
    if (number >= pages) {
        return verb_complain(inspect->errors,
                             "%s: there is no page %" PRIu64 ": the last one is %" PRIu64,
                             inspect->options->path, number, pages - 1);
    }
    unsigned char *page = aligned_alloc(TABLE_FILE_PAGE_BYTES, TABLE_FILE_PAGE_BYTES);
    if (!page) {
        return verb_complain(inspect->errors, "no memory");
    }
    enum verb_exit status = page_state(inspect, file, number, page);
    ssize_t got = read_raw(inspect, table_file_offset(number), page);
    if (got == TABLE_FILE_PAGE_BYTES && number < info->pages) {
        inspect_kind_find(info->kind)->page(inspect->out, info, number, page);
    } else if (got >= 0) {
        inspect_dump(inspect->out, page, (size_t)got, 0);
    } else {
        verb_complain(inspect->errors, "%s: %s", inspect->options->path, strerror(errno));
        status = VERB_DAMAGED;
    }
    free(page);
    return status;
}

/* ---- a file that does not open ---- */

/* What its header says, if that can be trusted: the rest cannot be found without it. */
static void print_header_alone(const struct inspect *inspect)
{
    struct table_file_header header;
    ssize_t got = read_raw(inspect, 0, &header);
    if (got != sizeof(header) || header.magic != TABLE_FILE_MAGIC ||
        header.version != TABLE_FILE_VERSION || header.checksum != table_file_header_sum(&header)) {
        return;
    }
    inspect_field(inspect, "table file", "format %u; only its header can be read",
                  TABLE_FILE_VERSION);
    inspect_field(inspect, "kind", "%.*s", (int)sizeof(header.kind), header.kind);
    inspect_field(inspect, "space", "%.*s", (int)sizeof(header.space), header.space);
    inspect_field(inspect, "serial", "%" PRIu64, header.serial);
    inspect_field(inspect, "layer", "%" PRIu32, header.layer);
    inspect_field(inspect, "generation", "%" PRIu64, header.generation);
    inspect_field(inspect, "S", "LSN %" PRIu64, header.start_lsn);
    inspect_field(inspect, "identity", "%016" PRIx64, header.identity);
    inspect_field(inspect, "bytes", "%" PRIu64 " when whole", header.file_bytes);
    inspect_field(inspect, "pages", "%" PRIu64, header.pages);
}

enum verb_exit inspect_table(const struct inspect *inspect)
{
    char error[TABLE_FILE_ERROR_MAX];
    struct table_file *file = NULL;
    enum table_file_result result =
        table_file_open(inspect->vfs, inspect->options->path, false, &file, error);
    switch (result) {
    case TABLE_FILE_DONE:
        break;
    case TABLE_FILE_ABSENT:
        return verb_complain(inspect->errors, "%s: %s", inspect->options->path, strerror(ENOENT));
    case TABLE_FILE_NEWER:
        return verb_complain(inspect->errors, "%s", error);
    case TABLE_FILE_STOPPED:
    case TABLE_FILE_DAMAGED:
    case TABLE_FILE_FAILED:
        print_header_alone(inspect);
        verb_complain(inspect->errors, "%s", error);
        return VERB_DAMAGED;
    }
    bool one_page = inspect->options->page != INSPECT_NO_PAGE;
    enum verb_exit status = one_page ? print_page(inspect, file) : print_all(inspect, file);
    table_file_close(file);
    return status;
}
