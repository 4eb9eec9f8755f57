/*
 * repair_tables.c: damaged table files: each is written anew without what is lost, under the next
 * generation; MANIFEST names the new ones; the old ones move to DIR/lost. In this order, so that
 * whenever it ends the directory is as before, or as after.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "counter/table.h"
#include "phantom/table.h"
#include "row/row_log.h"
#include "store/table_rescue.h"
#include "tools/rollcall/repair_private.h"

#define KIND_COUNTER  "counter"
#define KIND_PHANTOM  "phantom"
#define LEFT_OVER_MAX 1000u /* generations a killed daemon may have begun */

/* What is lost in one file. */
struct loss {
    struct repair *repair;
    const struct manifest_file *file;
    uint64_t count;     /* of ids or members in the table, as it says */
    uint64_t pages;     /* of the table */
    uint64_t first_run; /* of neighbouring lost pages; if there is a run */
    uint64_t run;
    bool speaks;
};

/* ---- what is said ---- */

static const char *entries_of(const char *kind, unsigned section)
{
    static const char *const counter[] = {"ids kept beside the groups", "values beside their ids"};
    static const char *const phantom[] = {"deletes, whose members are there again",
                                          "members kept apart", "lines of added members"};
    if (strcmp(kind, KIND_COUNTER) == 0 && section < COUNTER_TABLE_SECTIONS) {
        return counter[section];
    }
    return strcmp(kind, KIND_PHANTOM) == 0 && section < PHANTOM_OVERLAY_SECTIONS ? phantom[section]
                                                                                 : "entries";
}

/* Returns how many of the table's ids, or members, are in this many of its pages. */
static uint64_t share(const struct loss *loss, uint64_t pages)
{
    return loss->pages == 0 ? 0 : (loss->count * pages + loss->pages - 1) / loss->pages;
}

static void end_run(struct loss *loss)
{
    const struct manifest_file *file = loss->file;
    if (loss->run > 0) {
        repair_say(loss->repair,
                   "  pages %" PRIu64 " to %" PRIu64 " of the table's %" PRIu64
                   " are lost: about %" PRIu64 " of its %" PRIu64 ", of ids %" PRIu64
                   " to %" PRIu64,
                   loss->first_run, loss->first_run + loss->run - 1, loss->pages,
                   share(loss, loss->run), loss->count, file->first_id, file->last_id);
    }
    loss->run = 0;
}

static void say_entries(struct loss *loss, const char *kind, const struct table_rescue_lost *lost)
{
    const struct manifest_file *file = loss->file;
    end_run(loss);
    repair_say(loss->repair,
               "  %" PRIu64 " %s are lost (page %" PRIu64 "), of ids %" PRIu64 " to %" PRIu64,
               lost->entries, entries_of(kind, lost->section), lost->page,
               lost->has_first ? lost->first_id : file->first_id,
               lost->has_last ? lost->last_id : file->last_id);
}

struct telling {
    struct loss *loss;
    const struct table_file_info *info;
};

static void take_lost(void *context, const struct table_rescue_lost *lost)
{
    const struct telling *telling = context;
    struct loss *loss = telling->loss;
    if (!loss->speaks) {
        return;
    }
    if (lost->of_entries) {
        say_entries(loss, telling->info->kind, lost);
        return;
    }
    if (loss->run > 0 && loss->first_run + loss->run != lost->page) {
        end_run(loss);
    }
    loss->first_run = loss->run == 0 ? lost->page : loss->first_run;
    loss->run++;
}

static void blank(void *context, const struct table_file_info *info, void *page)
{
    size_t at = 0;
    (void)context;
    if (strcmp(info->kind, KIND_COUNTER) == 0 && info->description_bytes > ROW_STATE_BYTES) {
        at = ROW_STATE_BYTES;
        (void)counter_table_blank_page((const unsigned char *)info->description + at,
                                       info->description_bytes - at, page);
    }
}

static void take_count(void *context, const char *name, uint64_t value)
{
    struct loss *loss = context;
    if (strcmp(name, "count") == 0) {
        loss->count = value;
    }
}

static void say_mended(struct repair *repair, const struct table_rescue_mended *mended)
{
    if (mended->header || mended->footer || mended->checksums || mended->index) {
        repair_say(repair, "  made again of the rest:%s%s%s%s", mended->header ? " header" : "",
                   mended->footer ? " footer" : "", mended->checksums ? " checksums" : "",
                   mended->index ? " index" : "");
    }
    if (mended->pages > 0) {
        repair_say(repair,
                   "  %" PRIu64 " page%s had one bit turned over: it is turned back, nothing of %s "
                   "is lost",
                   mended->pages, mended->pages == 1 ? "" : "s",
                   mended->pages == 1 ? "it" : "them");
    }
    if (mended->untried > 0) {
        repair_say(repair,
                   "  %" PRIu64 " of the lost pages may have one bit turned over: that is looked "
                   "for in the first %u damaged pages of a file",
                   mended->untried, TABLE_RESCUE_MENDS_MAX);
    }
}

/* ---- one file ---- */

static bool count_finding(void *context, const char *finding)
{
    (void)finding;
    ++*(uint64_t *)context;
    return true;
}

static bool repair_tables_is_meant(const struct repair_work *work,
                                   const struct table_file_info *info)
{
    const struct manifest_file *file = &work->file;
    return strcmp(info->space, work->space->name) == 0 &&
           strcmp(info->kind, work->space->kind) == 0 && info->serial == file->serial &&
           info->layer == file->layer && info->generation == file->generation &&
           info->start_lsn == file->start_lsn && info->end_lsn == file->end_lsn &&
           info->file_bytes == file->bytes;
}

/* Whole, and the one MANIFEST means. *newer: nothing can be said. */
static bool repair_tables_is_sound(const struct repair_work *work, const char *path, bool *newer)
{
    char error[TABLE_FILE_ERROR_MAX];
    struct table_file *opened = NULL;
    uint64_t findings = 0;
    enum table_file_result result =
        table_file_verify(work->repair->vfs, path, true, count_finding, &findings);
    *newer = result == TABLE_FILE_NEWER;
    bool sound =
        result == TABLE_FILE_DONE &&
        table_file_open(work->repair->vfs, path, false, &opened, error) == TABLE_FILE_DONE &&
        repair_tables_is_meant(work, table_file_info(opened));
    table_file_close(opened);
    return sound;
}

/* Creates the file in the next generation whose name is free: a killed daemon may have left files
 * of some. */
static struct table_file_writer *create_next(struct repair_work *work, struct table_file_info *info,
                                             struct manifest_file *file, char *error)
{
    struct table_file_writer *writer = NULL;
    bool taken = true;
    for (unsigned i = 0; i < LEFT_OVER_MAX && !writer && taken; i++) {
        file->generation = info->generation = ++*work->generation;
        manifest_table_name(file->name, work->space->name, file->serial, file->layer,
                            file->generation);
        writer = table_file_create(work->repair->vfs, work->repair->options->directory, file->name,
                                   info, error);
        taken = errno == EEXIST;
    }
    return writer;
}

bool repair_write_anew(struct repair_work *work, struct table_rescue *rescue,
                       const struct table_rescue_told *told)
{
    struct repair *repair = work->repair;
    char error[TABLE_FILE_ERROR_MAX];
    struct table_file_info info = *table_rescue_info(rescue);
    struct manifest_file file = work->file;
    if (work->description != NULL) {
        info.description = work->description;
    }
    struct table_file_writer *writer = create_next(work, &info, &file, error);
    bool written = writer && table_rescue_run(rescue, writer, told);
    if (writer && !written) {
        snprintf(error, sizeof(error), "%s", table_file_writer_error(writer));
        table_file_abandon(writer);
    }
    if (!written || !table_file_commit(writer, info.end_lsn, &file.bytes, error)) {
        verb_complain(repair->errors, "%s", error);
        repair->failed = true;
        return false;
    }
    return manifest_remove_file(work->space, work->file.name) &&
           manifest_add_file(repair->manifest, work->space, &file);
}

static void rescue_file(struct repair_work *work, struct table_rescue *rescue)
{
    struct repair *repair = work->repair;
    const struct table_file_info *info = table_rescue_info(rescue);
    struct loss loss = {
        .repair = repair, .file = &work->file, .pages = info->pages, .speaks = true};
    struct telling telling = {&loss, info};
    const struct table_rescue_told told = {.blank = blank, .lost = take_lost, .context = &telling};
    size_t at;
    (void)row_state_read(info->description, info->description_bytes, take_count, &loss, &at);
    repair->repairs++;
    repair_say(repair, "%s/%s: damaged; it is written anew (table %" PRIu64 " of space %s)",
               repair->options->directory, work->file.name, work->file.serial, work->space->name);
    (void)table_rescue_run(rescue, NULL, &told);
    end_run(&loss);
    say_mended(repair, table_rescue_mended(rescue));
    loss.speaks = false; /* it was said */
    if (repair->options->yes) {
        repair_write_anew(work, rescue, &told);
    }
}

/* ---- all ---- */

static void repair_file(struct repair_work *work)
{
    struct repair *repair = work->repair;
    char path[VFS_PATH_MAX], error[TABLE_FILE_ERROR_MAX], why[VFS_PATH_MAX + TABLE_FILE_ERROR_MAX];
    struct table_rescue *rescue = NULL;
    bool newer = false;
    if (!vfs_path(path, repair->options->directory, work->file.name) ||
        repair_tables_is_sound(work, path, &newer)) {
        return;
    }
    if (newer) {
        repair_cannot(repair, "%s is of another version; use the program that wrote it", path);
        return;
    }
    enum table_file_result result =
        table_rescue_open(repair->vfs, path, work->file.end_lsn, &rescue, error);
    if (result == TABLE_FILE_DONE && repair_tables_is_meant(work, table_rescue_info(rescue))) {
        rescue_file(work, rescue);
    } else {
        snprintf(why, sizeof(why), "%s%s", result == TABLE_FILE_DAMAGED ? "" : path,
                 result == TABLE_FILE_ABSENT    ? " is missing"
                 : result == TABLE_FILE_DAMAGED ? error
                 : result == TABLE_FILE_DONE    ? " is another file than MANIFEST means"
                                                : " cannot be read; check the disk");
        repair_give_up(work, why);
    }
    table_rescue_close(rescue);
}

/* What the new MANIFEST does not name any more is kept. */
static void repair_tables_store(struct repair *repair, const struct manifest_file *before,
                                size_t count)
{
    char error[MANIFEST_ERROR_MAX];
    if (!manifest_store(repair->vfs, repair->options->directory, repair->manifest, error)) {
        verb_complain(repair->errors, "%s", error);
        repair->failed = true;
        return;
    }
    for (size_t i = 0; i < count && !repair->failed; i++) {
        if (!manifest_find_file(repair->manifest, before[i].name) &&
            vfs_size_in(repair->vfs, repair->options->directory, before[i].name) >= 0) {
            repair_keep(repair, before[i].name);
        }
    }
}

/* Tables rising: where several are lost the one below each was judged before. */
static int by_first_id(const void *left, const void *right)
{
    const struct manifest_file *a = left;
    const struct manifest_file *b = right;
    if (a->first_id != b->first_id) {
        return a->first_id < b->first_id ? -1 : 1;
    }
    return a->layer == b->layer ? 0 : a->layer < b->layer ? -1 : 1;
}

static void repair_space(struct repair *repair, struct manifest_space *space, uint64_t *generation)
{
    size_t count = space->files_count;
    struct manifest_file *files = memory_zalloc((count + 1) * sizeof(*files));
    uint64_t repairs = repair->repairs;
    for (size_t i = 0; i < count; i++) {
        files[i] = space->files[i]; /* the list changes */
    }
    qsort(files, count, sizeof(*files), by_first_id);
    for (size_t i = 0; i < count && !repair->failed; i++) {
        struct repair_work work = {
            .repair = repair, .space = space, .file = files[i], .generation = generation};
        if (manifest_find_file(repair->manifest, files[i].name)) {
            repair_file(&work); /* else it went with its table */
        }
    }
    if (repair->options->yes && repair->repairs > repairs && !repair->failed) {
        repair_close_gaps(repair, space, files, count, generation);
    }
    if (repair->options->yes && repair->repairs > repairs && !repair->failed) {
        repair_tables_store(repair, files, count);
    }
    free(files);
}

void repair_tables(struct repair *repair)
{
    uint64_t generation = manifest_generation(repair->manifest);
    for (size_t i = 0; i < repair->manifest->spaces_count && !repair->failed; i++) {
        repair_space(repair, &repair->manifest->spaces[i], &generation);
    }
}
