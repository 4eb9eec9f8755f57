/* verify_files.c: table files against the manifest, and what it does not name. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "data/fill.h"
#include "store/dir_lock.h"
#include "store/journal.h"
#include "store/journal_format.h"
#include "store/table_file_format.h"
#include "tools/rollcall/repair.h"
#include "tools/rollcall/verify_private.h"

bool verify_is_table(struct verify *verify, const char *name)
{
    uint64_t magic = 0;
    if (verb_ends_with(name, MANIFEST_TABLE_SUFFIX)) {
        return true;
    }
    /* something strange, as a FIFO, must not hold it up */
    int fd = vfs_open_in(verify->vfs, verify->options->directory, name, O_RDONLY | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    ssize_t got = vfs_read_all(verify->vfs, fd, &magic, sizeof(magic), 0);
    verify->vfs->functions->close(verify->vfs, fd);
    return got == sizeof(magic) && magic == TABLE_FILE_MAGIC;
}

/* ---- a table file ---- */

static bool note_finding(void *context, const char *finding)
{
    verify_finding(context, "%s", finding);
    return true;
}

struct line {
    struct verify *verify;
    const char *path;
};

static void verify_files_compare(const struct line *line, const char *what, size_t offset,
                                 uint64_t in_file, uint64_t in_manifest)
{
    if (in_file != in_manifest) {
        verify_finding(line->verify,
                       "%s: offset %zu: %s is %" PRIu64 ", " MANIFEST_NAME " says %" PRIu64
                       ": not the file that is meant",
                       line->path, offset, what, in_file, in_manifest);
    }
}

static void compare_text(const struct line *line, const char *what, size_t offset,
                         const char *in_file, const char *in_manifest)
{
    if (strcmp(in_file, in_manifest) != 0) {
        verify_finding(line->verify,
                       "%s: offset %zu: %s is %s, " MANIFEST_NAME
                       " says %s: not the file that is meant",
                       line->path, offset, what, in_file, in_manifest);
    }
}

/* Compares a sound file with the manifest's line. */
static void compare_all(const struct line *line, const struct table_file_info *info,
                        const struct manifest_space *space, const struct manifest_file *file)
{
    uint64_t end_offset =
        info->file_bytes - TABLE_FILE_PAGE_BYTES + offsetof(struct table_file_footer, end_lsn);
    struct verify *verify = line->verify;
    compare_text(line, "the kind", offsetof(struct table_file_header, kind), info->kind,
                 space->kind);
    compare_text(line, "the space", offsetof(struct table_file_header, space), info->space,
                 space->name);
    verify_files_compare(line, "the serial", offsetof(struct table_file_header, serial),
                         info->serial, file->serial);
    verify_files_compare(line, "the layer", offsetof(struct table_file_header, layer), info->layer,
                         file->layer);
    verify_files_compare(line, "the generation", offsetof(struct table_file_header, generation),
                         info->generation, file->generation);
    verify_files_compare(line, "S", offsetof(struct table_file_header, start_lsn), info->start_lsn,
                         file->start_lsn);
    verify_files_compare(line, "E", end_offset, info->end_lsn, file->end_lsn);
    verify_files_compare(line, "the size", offsetof(struct table_file_header, file_bytes),
                         info->file_bytes, file->bytes);
    if (verify->journal_known && info->end_lsn > verify->journal_end) {
        verify_finding(verify,
                       "%s: offset %" PRIu64 ": holds changes up to LSN %" PRIu64
                       ", the journal ends at LSN %" PRIu64,
                       line->path, end_offset, info->end_lsn, verify->journal_end);
    }
}

/* space and file: NULL without a manifest. */
static void verify_table(struct verify *verify, const char *name,
                         const struct manifest_space *space, const struct manifest_file *file)
{
    char path[VFS_PATH_MAX];
    char error[TABLE_FILE_ERROR_MAX];
    struct table_file *opened = NULL;
    verify_begin(verify, name);
    if (!verify_path(verify, path, name)) {
        return;
    }
    uint64_t findings = verify->count.findings;
    uint64_t shown = verify->count.file_findings;
    enum table_file_result result =
        table_file_verify(verify->vfs, path, true, note_finding, verify);
    if (result == TABLE_FILE_NEWER) { /* its one report is no damage */
        verify->count.findings = findings;
        verify->count.file_findings = shown;
        verify->count.unjudged++;
    }
    verify_count_file(verify, name);
    if (file && table_file_open(verify->vfs, path, false, &opened, error) == TABLE_FILE_DONE) {
        const struct line line = {verify, path};
        compare_all(&line, table_file_info(opened), space, file);
    }
    table_file_close(opened);
}

/* Returns whether the daemon has put another in place of a file meanwhile: then there is another
 * manifest. */
static bool was_replaced(struct verify *verify, const char *name)
{
    struct manifest *now = verify_manifest_now(verify);
    if (!now || manifest_find_file(now, name)) {
        manifest_destroy(now);
        return false;
    }
    verify_renew(verify, now);
    return true;
}

struct looked_at {
    char **names;
    size_t count, room;
};

static bool was_looked_at(const struct looked_at *looked, const char *name)
{
    for (size_t i = 0; i < looked->count; i++) {
        if (strcmp(looked->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* False: it is none of the data any more, and the manifest another. */
static bool verify_one(struct verify *verify, const struct manifest_space *space,
                       const struct manifest_file *file, const char *name)
{
    struct verify_part part;
    verify_part_begin(verify, &part);
    uint64_t findings = verify->count.findings;
    verify_table(verify, name, space, file);
    verify_begin(verify, name);
    bool replaced = verify->count.findings > findings && was_replaced(verify, name);
    verify_part_end(verify, &part, !replaced);
    return !replaced;
}

static void verify_named(struct verify *verify)
{
    struct manifest_at at = {0};
    struct looked_at looked = {0};
    const struct manifest_file *file;
    while ((file = manifest_next_file(verify->manifest, &at)) != NULL) {
        if (verify->renewals > 0 && was_looked_at(&looked, file->name)) {
            continue;
        }
        looked.names = array_room(looked.names, looked.count, &looked.room, sizeof(*looked.names));
        char *name = looked.names[looked.count++] = memory_strdup(file->name);
        if (!verify_one(verify, &verify->manifest->spaces[at.space], file, name)) {
            at = (struct manifest_at){0};
        }
    }
    for (size_t i = 0; i < looked.count; i++) {
        free(looked.names[i]);
    }
    free(looked.names);
}

void verify_tables(struct verify *verify)
{
    if (verify->manifest) {
        verify_named(verify);
        return;
    }
    for (size_t i = 0; i < verify->names_count; i++) {
        if (verify_is_table(verify, verify->names[i])) {
            verify_table(verify, verify->names[i], NULL, NULL);
        }
    }
}

/* ---- the others ---- */

/* What is to be said of a file that is not known to be part of the data; NULL: nothing. */
static const char *leftover(struct verify *verify, const char *name)
{
    uint64_t start;
    bool is_table = verify_is_table(verify, name);
    if (strcmp(name, MANIFEST_NAME) == 0 || strcmp(name, DIR_LOCK_NAME) == 0 ||
        strcmp(name, JOURNAL_BALLAST_NAME) == 0 || journal_name_parse(name, &start)) {
        return NULL;
    }
    if (verify->manifest ? manifest_find_file(verify->manifest, name) != NULL : is_table) {
        return NULL;
    }
    if (manifest_name_ours(name) || journal_name_temporary(name)) {
        return verify->running ? "left over, or in use by the daemon"
                               : "left over: the next start deletes it";
    }
    if (strcmp(name, REPAIR_KEPT_NAME) == 0) {
        return "what rollcall repair has replaced: delete it when it is not wanted any more";
    }
    return is_table ? "a table file " MANIFEST_NAME " does not name: not looked at"
                    : "not a file of a data directory: not looked at";
}

void verify_leftovers(struct verify *verify)
{
    for (size_t i = 0; i < verify->names_count; i++) {
        const char *what = leftover(verify, verify->names[i]);
        if (strcmp(verify->names[i], DATA_FILLING_NAME) == 0) {
            verify_begin(verify, DATA_FILLING_NAME);
            verify_finding(verify, DATA_FILLING_WORDS, verify->options->directory);
        } else if (what) {
            verify_note(verify, "%s/%s: %s", verify->options->directory, verify->names[i], what);
        }
    }
}
