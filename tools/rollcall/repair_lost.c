/*
 * repair_lost.c: table files that have nothing left. Ranges of a space's tables leave no gap: the
 * table below a lost one takes over its range, as it does when a table is dropped
 * (row/row_dropped.h). So its files are written anew, after all that are damaged.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "row/row_data.h"
#include "row/row_state.h"
#include "tools/rollcall/repair_private.h"

static bool is_of_ids_apart(const struct manifest_file *file)
{
    return file->serial >= ROW_APART_SERIALS;
}

static bool lost_is_table(const struct manifest_file *file)
{
    return file->layer == 0 && !is_of_ids_apart(file);
}

/* Returns where the next table of the space begins; UINT64_MAX: there is none above. */
static uint64_t next_first(const struct manifest_space *space, uint64_t first_id)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < space->files_count; i++) {
        const struct manifest_file *other = &space->files[i];
        if (lost_is_table(other) && other->first_id > first_id && other->first_id < next) {
            next = other->first_id;
        }
    }
    return next;
}

/* ---- the state of a table, changed ---- */

struct amended {
    struct table_rescue *rescue;
    unsigned char description[TABLE_FILE_DESCRIPTION_MAX];
    bool changed;
    uint64_t left_out; /* ids that count from nothing if they come again */
};

/* NULL: nothing of the file can be had. */
static struct table_rescue *lost_open(struct repair *repair, const struct manifest_file *file)
{
    char path[VFS_PATH_MAX], error[TABLE_FILE_ERROR_MAX];
    struct table_rescue *rescue = NULL;
    bool opened =
        vfs_path(path, repair->options->directory, file->name) &&
        table_rescue_open(repair->vfs, path, file->end_lsn, &rescue, error) == TABLE_FILE_DONE;
    return opened ? rescue : NULL;
}

/* False: the file cannot be read, or its table takes nothing over. The caller closes the rescue. */
static bool amend(struct repair *repair, const struct manifest_file *file,
                  const struct row_amend *amend, struct amended *amended)
{
    amended->rescue = lost_open(repair, file);
    if (amended->rescue == NULL) {
        return false;
    }
    const struct table_file_info *info = table_rescue_info(amended->rescue);
    memcpy(amended->description, info->description, info->description_bytes);
    return row_state_amend(amended->description, info->description_bytes, amend, &amended->changed,
                           &amended->left_out);
}

static void lost_see_flags(void *context, const char *name, uint64_t value)
{
    if (strcmp(name, "flags") == 0) {
        *(bool *)context |= (value & ROW_STATE_ANY_IDS) != 0;
    }
}

/* Is the file one of a part of `ids: any`, as another part of its space says? All are needed. */
static bool lost_is_part(const struct repair_work *work)
{
    bool part = false;
    bool known = false;
    for (size_t i = 0; i < work->space->files_count && !known; i++) {
        const struct manifest_file *other = &work->space->files[i];
        bool asked = lost_is_table(other) && other->serial != work->file.serial;
        struct table_rescue *rescue = asked ? lost_open(work->repair, other) : NULL;
        if (rescue != NULL) {
            const struct table_file_info *info = table_rescue_info(rescue);
            size_t at;
            known = row_state_read(info->description, info->description_bytes, lost_see_flags,
                                   &part, &at);
        }
        table_rescue_close(rescue);
    }
    return part;
}

/* ---- one file ---- */

/*
 * The lowest table may go, as the oldest does. Another one may if a table lies above, which takes
 * new ids, and the one below can take over its range.
 */
static bool lost_may_go(const struct repair_work *work)
{
    const struct manifest_file *below = NULL;
    if (lost_is_part(work)) {
        return false;
    }
    for (size_t i = 0; i < work->space->files_count; i++) {
        const struct manifest_file *other = &work->space->files[i];
        if (lost_is_table(other) && other->first_id < work->file.first_id &&
            (below == NULL || other->first_id > below->first_id)) {
            below = other;
        }
    }
    if (below == NULL || next_first(work->space, work->file.first_id) == UINT64_MAX) {
        return below == NULL;
    }
    const struct row_amend wanted = {.last = work->file.last_id, .layered = true};
    struct amended amended;
    bool can = amend(work->repair, below, &wanted, &amended);
    table_rescue_close(amended.rescue);
    return can;
}

/* MANIFEST's lines of one file and what lies over it; of a table, its layer's, too. */
static void forget(struct repair_work *work)
{
    const struct manifest_file *gone = &work->file;
    for (size_t i = work->space->files_count; i-- > 0;) {
        const struct manifest_file *file = &work->space->files[i];
        bool over = file->layer == gone->layer || row_file_under(file->layer) == gone->layer;
        if (file->serial == gone->serial && (gone->layer == 0 || over)) {
            char name[MANIFEST_FILE_NAME_MAX + 1];
            memcpy(name, file->name, sizeof(name));
            manifest_remove_file(work->space, name);
        }
    }
}

static void lost_say(struct repair_work *work)
{
    struct repair *repair = work->repair;
    const struct manifest_file *file = &work->file;
    const char *space = work->space->name;
    if (row_file_is_overlay(file->layer)) {
        repair_say(repair,
                   "  it is left out: changes of ids %" PRIu64 " to %" PRIu64
                   " since table %" PRIu64 " of space %s was written are lost",
                   file->first_id, file->last_id, file->serial, space);
    } else if (is_of_ids_apart(file)) {
        repair_say(repair,
                   "  it is left out: ids of space %s that were apart, far ahead of all others, "
                   "are lost",
                   space);
    } else if (file->layer > 0) {
        repair_say(repair,
                   "  a layer of table %" PRIu64 " of space %s is left out: the ids of %" PRIu64
                   " to %" PRIu64 " that it held are lost",
                   file->serial, space, file->first_id, file->last_id);
    } else {
        repair_say(repair,
                   "  table %" PRIu64 " of space %s is left out: all its ids, %" PRIu64
                   " to %" PRIu64 ", are lost",
                   file->serial, space, file->first_id, file->last_id);
    }
}

void repair_give_up(struct repair_work *work, const char *why)
{
    struct repair *repair = work->repair;
    if (lost_is_table(&work->file) && !lost_may_go(work)) {
        repair_cannot(repair,
                      "%s; space %s cannot go on without its table of ids %" PRIu64 " to %" PRIu64
                      ": restore the file from a copy",
                      why, work->space->name, work->file.first_id, work->file.last_id);
        return;
    }
    repair->repairs++;
    repair_say(repair, "%s", why);
    lost_say(work);
    forget(work); /* not stored where nothing is to be changed */
}

/* ---- what is left ---- */

/* Returns whether the table has a layer after this one of its files. */
static bool has_layer(const struct manifest_file *files, size_t count,
                      const struct manifest_file *file)
{
    bool found = false;
    for (size_t i = 0; i < count && !found; i++) {
        found = files[i].serial == file->serial &&
                row_file_layer(files[i].layer) > row_file_layer(file->layer);
    }
    return found;
}

/* No page of it is lost that was not said to be. */
static void lose_nothing(void *context, const struct table_rescue_lost *lost)
{
    (void)context;
    (void)lost;
}

static void blank_nothing(void *context, const struct table_file_info *info, void *page)
{
    (void)context;
    (void)info;
    (void)page;
}

static void write_amended(struct repair_work *work, const struct row_amend *wanted, bool unlayered)
{
    static const struct table_rescue_told told = {.blank = blank_nothing, .lost = lose_nothing};
    struct repair *repair = work->repair;
    struct amended amended;
    if (!amend(repair, &work->file, wanted, &amended)) {
        verb_complain(repair->errors, "%s/%s: cannot be written anew: is the disk well?",
                      repair->options->directory, work->file.name);
        repair->failed = true;
    } else if (amended.changed) {
        repair_say(repair, "%s/%s: written anew, as ids up to %" PRIu64 " are its table's now%s",
                   repair->options->directory, work->file.name, wanted->last,
                   unlayered ? ", and it has no further layer" : "");
        if (amended.left_out > 0) {
            repair_say(repair, "  %" PRIu64 " of them count from nothing if they come again",
                       amended.left_out);
        }
        work->description = amended.description;
        work->file.last_id = wanted->last;
        repair_write_anew(work, amended.rescue, &told);
    }
    table_rescue_close(amended.rescue);
}

void repair_close_gaps(struct repair *repair, struct manifest_space *space,
                       const struct manifest_file *before, size_t count, uint64_t *generation)
{
    size_t left = space->files_count;
    struct manifest_file *files = memory_zalloc((left + 1) * sizeof(*files));
    for (size_t i = 0; i < left; i++) {
        files[i] = space->files[i]; /* the list changes */
    }
    for (size_t i = 0; i < left && !repair->failed; i++) {
        uint64_t next = next_first(space, files[i].first_id);
        uint64_t last = next == UINT64_MAX ? files[i].last_id : next - 1;
        bool layered = has_layer(files, left, &files[i]);
        bool unlayered = !layered && has_layer(before, count, &files[i]);
        struct repair_work work = {
            .repair = repair, .space = space, .file = files[i], .generation = generation};
        if ((unlayered || last != files[i].last_id) && !is_of_ids_apart(&files[i])) {
            const struct row_amend wanted = {.last = last, .layered = layered};
            write_amended(&work, &wanted, unlayered);
        }
    }
    free(files);
}
