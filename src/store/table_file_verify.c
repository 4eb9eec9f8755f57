/* table_file_verify.c: a look at every byte of a table file. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/fail.h"
#include "store/table_file_private.h"

struct verify {
    const struct table_file *file;
    table_file_report_fn *report;
    void *context;
    unsigned char *block;
    unsigned section; /* that the next page of entries belongs to */
    bool has_last;
    uint64_t index_page; /* of the index: it lists the present page of entries */
    bool index_sound;
    struct table_file_key last; /* of the page before, if that was sound and of this section */
    enum table_file_result result;
};

/* The gravest finding decides; a wish to stop ends all. */
static void found(struct verify *verify, enum table_file_result result, const char *error)
{
    if (verify->result != TABLE_FILE_DAMAGED) {
        verify->result = result;
    }
    if (!verify->report(verify->context, error)) {
        verify->result = TABLE_FILE_STOPPED;
    }
}

static bool table_file_verify_stopped(const struct verify *verify)
{
    return verify->result == TABLE_FILE_STOPPED;
}

static bool all_zero(const unsigned char *bytes, const unsigned char *end)
{
    while (bytes < end && *bytes == 0) {
        bytes++;
    }
    return bytes == end;
}

/* A bad page of the index is a finding when its turn comes; until then nothing is compared with it.
 */
static bool listed_otherwise(struct verify *verify, uint64_t number, struct table_file_key first)
{
    const struct table_file *file = verify->file;
    char error[TABLE_FILE_ERROR_MAX];
    uint64_t entry_page = number - file->info.pages;
    const struct table_file_key *listed = &file->first_keys[entry_page];
    uint64_t index_page = entry_page / TABLE_FILE_KEYS_A_PAGE;
    if (index_page != verify->index_page) {
        verify->index_page = index_page;
        verify->index_sound =
            table_file_page_sound(file, file->section_begin[file->info.sections] + index_page,
                                  file->first_keys + index_page * TABLE_FILE_KEYS_A_PAGE, error);
    }
    return verify->index_sound && (listed->id != first.id || listed->sub != first.sub);
}

static void verify_entries(struct verify *verify, uint64_t number, const unsigned char *page)
{
    const struct table_file *file = verify->file;
    char error[TABLE_FILE_ERROR_MAX];
    size_t entry_bytes = table_file_entry_bytes(file->info.section[verify->section].value_bytes);
    size_t count = table_file_entries_in(file, verify->section, number);
    const struct table_file_key *before = verify->has_last ? &verify->last : NULL;
    if (!table_file_order_sound(file, verify->section, number, page, before, error)) {
        found(verify, TABLE_FILE_DAMAGED, error);
    }
    struct table_file_key first = table_file_entry_key(page);
    if (!table_file_verify_stopped(verify) && listed_otherwise(verify, number, first)) {
        fail_with(error, TABLE_FILE_ERROR_MAX,
                  "%s: page %" PRIu64 " at offset %" PRIu64 " begins with id %" PRIu64
                  ", the index says otherwise; " TABLE_FILE_RESTORE,
                  file->path, number, table_file_offset(number), first.id);
        found(verify, TABLE_FILE_DAMAGED, error);
    }
    if (!table_file_verify_stopped(verify) &&
        !all_zero(page + count * entry_bytes, page + TABLE_FILE_PAGE_BYTES)) {
        fail_with(error, TABLE_FILE_ERROR_MAX,
                  "%s: page %" PRIu64 " at offset %" PRIu64
                  " has something after its last entry; " TABLE_FILE_RESTORE,
                  file->path, number, table_file_offset(number));
        found(verify, TABLE_FILE_DAMAGED, error);
    }
    verify->last = table_file_entry_key(page + (count - 1) * entry_bytes);
    verify->has_last = true;
}

static void verify_page(struct verify *verify, uint64_t number, const unsigned char *page)
{
    const struct table_file *file = verify->file;
    char error[TABLE_FILE_ERROR_MAX];
    bool sound = table_file_page_sound(file, number, page, error);
    if (!sound) {
        found(verify, TABLE_FILE_DAMAGED, error);
    }
    if (number < file->info.pages || number >= file->section_begin[file->info.sections]) {
        return;
    }
    while (number >= file->section_begin[verify->section + 1]) {
        verify->section++;
        verify->has_last = false;
    }
    if (sound) {
        verify_entries(verify, number, page);
    } else {
        verify->has_last = false;
    }
}

/* Reads the pages of a block that cannot be read one by one, to name the bad ones. */
static void verify_singly(struct verify *verify, uint64_t first, uint64_t count)
{
    char error[TABLE_FILE_ERROR_MAX];
    for (uint64_t i = 0; i < count && !table_file_verify_stopped(verify); i++) {
        enum table_file_result result =
            table_file_read_run(verify->file, first + i, 1, verify->block, error);
        if (result == TABLE_FILE_DONE) {
            verify_page(verify, first + i, verify->block);
        } else {
            verify->has_last = false;
            found(verify, result, error);
        }
    }
}

static void verify_all(struct verify *verify)
{
    char error[TABLE_FILE_ERROR_MAX];
    uint64_t end = table_file_summed_pages(verify->file);
    for (uint64_t at = 0; at < end && !table_file_verify_stopped(verify);) {
        uint64_t count = end - at < TABLE_FILE_BLOCK_PAGES ? end - at : TABLE_FILE_BLOCK_PAGES;
        if (table_file_read_run(verify->file, at, count, verify->block, error) != TABLE_FILE_DONE) {
            verify_singly(verify, at, count);
        } else {
            for (uint64_t i = 0; i < count && !table_file_verify_stopped(verify); i++) {
                verify_page(verify, at + i, verify->block + i * TABLE_FILE_PAGE_BYTES);
            }
        }
        at += count;
    }
}

enum table_file_result table_file_verify(struct vfs *vfs, const char *path, bool direct,
                                         table_file_report_fn *report, void *context)
{
    char error[TABLE_FILE_ERROR_MAX];
    struct table_file *file = NULL;
    struct verify verify = {
        .report = report, .context = context, .index_page = UINT64_MAX, .result = TABLE_FILE_DONE};
    enum table_file_result result = table_file_open_core(vfs, path, direct, &file, error);
    if (result == TABLE_FILE_ABSENT) {
        fail_with(error, TABLE_FILE_ERROR_MAX, "%s: no such file; " TABLE_FILE_RESTORE, path);
    }
    if (result != TABLE_FILE_DONE) {
        report(context, error);
        return result;
    }
    verify.file = file;
    verify.block = table_file_pages_alloc(TABLE_FILE_BLOCK_PAGES);
    if (verify.block) {
        verify_all(&verify);
    } else {
        fail_with(error, TABLE_FILE_ERROR_MAX, "%s: no memory to read it", path);
        found(&verify, TABLE_FILE_FAILED, error);
    }
    free(verify.block);
    table_file_close(file);
    return verify.result;
}
