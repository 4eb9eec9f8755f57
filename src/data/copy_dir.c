/* copy_dir.c: a copy's directory, while it comes. */
#include "data/copy_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/memory.h"
#include "store/table_file.h"

/* Of a part: what the disk is given while the next bytes come, and what lies between two syncs, so
 * that none is a long one. */
#define WRITEBACK_BYTES (1u << 20)
#define SYNC_BYTES      (64u << 20)
#define STREAM_DIGITS   32

static bool copy_dir_refuse_errno(struct copy_dir *dir, const char *name)
{
    return fail_with(dir->error, sizeof(dir->error), COPY_DIR_NAME "/%.120s: %s", name,
                     strerror(errno));
}

/* Returns the path of a name within, with `more` after it. Names of manifests fit: data_open has
 * seen to it. */
static const char *copy_dir_path(const struct copy_dir *dir, const char *name, const char *more,
                                 char path[VFS_PATH_MAX])
{
    char whole[MANIFEST_FILE_NAME_MAX + 32];

    snprintf(whole, sizeof(whole), "%s%s", name, more);
    CHECK(vfs_path(path, dir->path, whole));
    return path;
}

/* ---- what is in it ---- */

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), end = strlen(suffix);

    return length > end && strcmp(name + length - end, suffix) == 0;
}

static bool copy_dir_is_table(const char *name)
{
    return manifest_name_ours(name) && has_suffix(name, MANIFEST_TABLE_SUFFIX);
}

/* The table file whose part that is, into whole. */
static bool copy_dir_is_part(const char *name, char whole[MANIFEST_FILE_NAME_MAX + 1])
{
    size_t length = strlen(name);

    if (!has_suffix(name, COPY_DIR_PART) ||
        length - strlen(COPY_DIR_PART) > MANIFEST_FILE_NAME_MAX) {
        return false;
    }
    snprintf(whole, MANIFEST_FILE_NAME_MAX + 1, "%.*s", (int)(length - strlen(COPY_DIR_PART)),
             name);
    return copy_dir_is_table(whole);
}

static bool copy_dir_is_ours(const char *name)
{
    static const char *const names[] = {MANIFEST_NAME, MANIFEST_NAME VFS_TEMPORARY, COPY_DIR_STREAM,
                                        COPY_DIR_STREAM VFS_TEMPORARY};
    char whole[MANIFEST_FILE_NAME_MAX + 1];

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return copy_dir_is_table(name) || copy_dir_is_part(name, whole);
}

struct clearing {
    struct vfs *vfs;
    const char *path;
    copy_dir_keep_fn *keep;
    const void *context;
};

static void clear_entry(void *context, const char *name)
{
    const struct clearing *clearing = context;
    bool stays = !copy_dir_is_ours(name) ||
                 (clearing->keep != NULL && clearing->keep(clearing->context, name));

    if (!stays) {
        (void)vfs_unlink_in(clearing->vfs, clearing->path, name);
    }
}

void copy_dir_clear(struct vfs *vfs, const char *path, copy_dir_keep_fn *keep, const void *context)
{
    struct clearing clearing = {vfs, path, keep, context};

    (void)vfs->functions->list(vfs, path, clear_entry, &clearing);
}

/* ---- a copy begins, or goes on ---- */

static void copy_dir_print_stream(const struct manifest *manifest, char text[STREAM_DIGITS + 1])
{
    snprintf(text, STREAM_DIGITS + 1, "%016" PRIx64 "%016" PRIx64, manifest->stream[0],
             manifest->stream[1]);
}

/* Returns whether what is there is of the same stream. */
static bool copy_dir_goes_on(const struct copy_dir *dir, const char stream[STREAM_DIGITS + 1])
{
    size_t length = 0;
    char *text = vfs_read_in(dir->vfs, dir->path, COPY_DIR_STREAM, STREAM_DIGITS, &length);
    bool same = text != NULL && length == STREAM_DIGITS && memcmp(text, stream, STREAM_DIGITS) == 0;

    free(text);
    return same;
}

static bool copy_dir_keeps(const void *context, const char *name)
{
    const struct manifest *manifest = context;
    char whole[MANIFEST_FILE_NAME_MAX + 1];

    if (strcmp(name, COPY_DIR_STREAM) == 0) {
        return true;
    }
    return manifest_find_file(manifest, copy_dir_is_part(name, whole) ? whole : name) != NULL;
}

/* A name that no daemon gives is nothing to make a file of. */
static bool copy_dir_names_good(struct copy_dir *dir, const struct manifest *manifest)
{
    struct manifest_at at = {0};
    const struct manifest_file *file;

    while ((file = manifest_next_file(manifest, &at)) != NULL) {
        if (!copy_dir_is_table(file->name)) {
            return fail_with(dir->error, sizeof(dir->error),
                             "its manifest names %.100s, which is no table file", file->name);
        }
    }
    return true;
}

bool copy_dir_begin(struct copy_dir *dir, struct vfs *vfs, const char *home,
                    const struct manifest *manifest)
{
    const struct vfs_functions *file = vfs->functions;
    char stream[STREAM_DIGITS + 1], path[VFS_PATH_MAX];

    *dir = (struct copy_dir){.vfs = vfs};
    snprintf(dir->home, sizeof(dir->home), "%s", home);
    if (!vfs_path(dir->path, home, COPY_DIR_NAME) ||
        (file->mkdir(vfs, dir->path) != 0 && errno != EEXIST) || file->sync_dir(vfs, home) != 0) {
        return copy_dir_refuse_errno(dir, "");
    }
    if (!copy_dir_names_good(dir, manifest)) {
        return false;
    }
    /* From here on it is not whole, whatever it was. */
    if (file->unlink(vfs, copy_dir_path(dir, MANIFEST_NAME, "", path)) != 0 && errno != ENOENT) {
        return copy_dir_refuse_errno(dir, MANIFEST_NAME);
    }
    copy_dir_print_stream(manifest, stream);
    bool goes_on = copy_dir_goes_on(dir, stream);

    copy_dir_clear(vfs, dir->path, goes_on ? copy_dir_keeps : NULL, manifest);
    if (file->sync_dir(vfs, dir->path) != 0) {
        return copy_dir_refuse_errno(dir, "");
    }
    return goes_on || vfs_replace_file(vfs, dir->path, COPY_DIR_STREAM, stream, STREAM_DIGITS) ||
           copy_dir_refuse_errno(dir, COPY_DIR_STREAM);
}

/* ---- one file ---- */

/* Returns whether it is the file that is named. Reads its ends. */
static bool copy_dir_is_meant(const struct copy_dir *dir, const char *path,
                              const struct copy_file *file)
{
    const struct manifest_file *named = file->named;
    struct table_file *table = NULL;
    char why[TABLE_FILE_ERROR_MAX];

    if (table_file_open(dir->vfs, path, false, &table, why) != TABLE_FILE_DONE) {
        return false;
    }
    const struct table_file_info *info = table_file_info(table);
    bool meant = strcmp(info->space, file->space->name) == 0 &&
                 strcmp(info->kind, file->space->kind) == 0 && info->serial == named->serial &&
                 info->layer == named->layer && info->generation == named->generation &&
                 info->start_lsn == named->start_lsn && info->end_lsn == named->end_lsn &&
                 info->file_bytes == named->bytes;

    table_file_close(table);
    return meant;
}

/* Returns whether DIR has the file. */
static bool copy_dir_link(const struct copy_dir *dir, const struct manifest *manifest,
                          const struct manifest *own, const struct copy_file *file,
                          const char *path)
{
    const struct manifest_file *named = file->named;
    const struct manifest_file *there =
        own != NULL && memcmp(own->stream, manifest->stream, sizeof(own->stream)) == 0
            ? manifest_find_file(own, named->name)
            : NULL;
    char from[VFS_PATH_MAX];

    return there != NULL && there->start_lsn == named->start_lsn &&
           there->end_lsn == named->end_lsn && there->bytes == named->bytes &&
           vfs_path(from, dir->home, named->name) && copy_dir_is_meant(dir, from, file) &&
           dir->vfs->functions->link(dir->vfs, from, path) == 0;
}

bool copy_dir_look(struct copy_dir *dir, const struct manifest *manifest,
                   const struct manifest *own, struct copy_file *file)
{
    const struct vfs_functions *functions = dir->vfs->functions;
    char path[VFS_PATH_MAX];

    file->have = 0;
    file->fd = -1;
    copy_dir_path(dir, file->named->name, "", path);
    if (vfs_size(dir->vfs, path) >= 0) {
        if (copy_dir_is_meant(dir, path, file)) {
            return true;
        }
        (void)functions->unlink(dir->vfs, path);
    }
    if (copy_dir_link(dir, manifest, own, file, path)) {
        return true;
    }
    int64_t part = vfs_size(dir->vfs, copy_dir_path(dir, file->named->name, COPY_DIR_PART, path));

    if (part > 0 && (uint64_t)part <= file->named->bytes) {
        file->have = (uint64_t)part;
    } else if (part > 0) {
        (void)functions->unlink(dir->vfs, path);
    }
    return false;
}

bool copy_dir_open(struct copy_dir *dir, struct copy_file *file)
{
    char path[VFS_PATH_MAX];

    file->fd = dir->vfs->functions->open(
        dir->vfs, copy_dir_path(dir, file->named->name, COPY_DIR_PART, path), O_RDWR | O_CREAT);
    file->goes_on = file->have > 0;
    return file->fd >= 0 || copy_dir_refuse_errno(dir, file->named->name);
}

/* Has a part that grows gone beyond a multiple of `bytes`? */
static bool copy_dir_passes(uint64_t before, uint64_t now, uint64_t bytes)
{
    return now / bytes > before / bytes;
}

/* After a sync that failed the system has in memory what the disk may never get. */
static bool copy_dir_sync(struct copy_dir *dir, const struct copy_file *file)
{
    const struct vfs_functions *functions = dir->vfs->functions;
    char path[VFS_PATH_MAX];

    if (functions->fdatasync(dir->vfs, file->fd) == 0) {
        return true;
    }
    copy_dir_refuse_errno(dir, file->named->name);
    (void)functions->unlink(dir->vfs, copy_dir_path(dir, file->named->name, COPY_DIR_PART, path));
    return false;
}

bool copy_dir_write(struct copy_dir *dir, struct copy_file *file, const void *bytes, size_t length)
{
    const struct vfs_functions *functions = dir->vfs->functions;
    uint64_t before = file->have;

    CHECK(file->fd >= 0 && length <= file->named->bytes - before);
    if (!vfs_write_all(dir->vfs, file->fd, bytes, length, before)) {
        return copy_dir_refuse_errno(dir, file->named->name);
    }
    file->have += length;
    if (copy_dir_passes(before, file->have, WRITEBACK_BYTES)) {
        uint64_t begin = before / WRITEBACK_BYTES * WRITEBACK_BYTES;

        functions->writeback(dir->vfs, file->fd, begin, file->have - begin);
    }
    return !copy_dir_passes(before, file->have, SYNC_BYTES) || copy_dir_sync(dir, file);
}

void copy_dir_leave(struct copy_dir *dir, struct copy_file *file)
{
    if (file->fd >= 0) {
        dir->vfs->functions->close(dir->vfs, file->fd);
        file->fd = -1;
    }
}

static bool stop_at_first(void *context, const char *finding)
{
    struct copy_dir *dir = context;

    return fail_with(dir->error, sizeof(dir->error), "%.400s", finding);
}

/* What is not good is fetched from its beginning. What was written here is read from the system's
 * memory, as far as it is there: it was synced just now. A part of before is read from the disk:
 * its sync may have failed, and whoever saw that may have been killed, or unable to delete it. */
static bool copy_dir_is_sound(struct copy_dir *dir, const char *path, const struct copy_file *file)
{
    if (!copy_dir_is_meant(dir, path, file)) {
        fail_with(dir->error, sizeof(dir->error), "%.120s came damaged, and is fetched again",
                  file->named->name);
    } else if (table_file_verify(dir->vfs, path, file->goes_on, stop_at_first, dir) ==
               TABLE_FILE_DONE) {
        return true;
    }
    (void)dir->vfs->functions->unlink(dir->vfs, path);
    return false;
}

bool copy_dir_finish(struct copy_dir *dir, struct copy_file *file)
{
    const struct vfs_functions *functions = dir->vfs->functions;
    char part[VFS_PATH_MAX], path[VFS_PATH_MAX];

    CHECK(file->fd >= 0 && file->have == file->named->bytes);
    bool synced = copy_dir_sync(dir, file);

    copy_dir_leave(dir, file);
    copy_dir_path(dir, file->named->name, COPY_DIR_PART, part);
    return synced && copy_dir_is_sound(dir, part, file) &&
           (functions->rename(dir->vfs, part, copy_dir_path(dir, file->named->name, "", path)) ==
                0 ||
            copy_dir_refuse_errno(dir, file->named->name));
}

bool copy_dir_end(struct copy_dir *dir, const char *text, size_t length)
{
    if (dir->vfs->functions->sync_dir(dir->vfs, dir->path) != 0) {
        return copy_dir_refuse_errno(dir, "");
    }
    return vfs_replace_file(dir->vfs, dir->path, MANIFEST_NAME, text, length) ||
           copy_dir_refuse_errno(dir, MANIFEST_NAME);
}
