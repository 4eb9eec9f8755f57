/* adopt.c: a copy takes the place of what was there. */
#include "data/adopt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "data/copy_dir.h"
#include "data/data_private.h"
#include "store/journal_format.h"

struct adoption {
    struct vfs *vfs;
    const char *directory;
    char copy[VFS_PATH_MAX];
    struct manifest *manifest; /* the copy's */
    char *text;                /* of it */
    size_t length;
    bool begun; /* by an earlier start: there is no way back */
    char *error;
};

/* Always false. */
static bool adopt_fail(const struct adoption *adoption, const char *what)
{
    return data_refuse(adoption->error,
                       "data directory %s: its copy cannot be put in place: %s: %s",
                       adoption->directory, what, strerror(errno));
}

static bool adopt_is_there(const struct adoption *adoption, const char *directory, const char *name,
                           uint64_t bytes)
{
    int64_t size = vfs_size_in(adoption->vfs, directory, name);

    return size >= 0 && (bytes == UINT64_MAX || (uint64_t)size == bytes);
}

static bool adopt_unlink(const struct adoption *adoption, const char *directory, const char *name)
{
    return vfs_unlink_in(adoption->vfs, directory, name) == 0 || errno == ENOENT ||
           adopt_fail(adoption, name);
}

static bool adopt_sync(const struct adoption *adoption, const char *directory)
{
    return adoption->vfs->functions->sync_dir(adoption->vfs, directory) == 0 ||
           adopt_fail(adoption, directory);
}

/* ---- a whole copy ---- */

/* Called for each file of the manifest, until one call says false. */
typedef bool adopt_file_fn(struct adoption *adoption, const struct manifest_file *file);

static bool adopt_each(struct adoption *adoption, adopt_file_fn *each)
{
    struct manifest_at at = {0};
    const struct manifest_file *file;

    while ((file = manifest_next_file(adoption->manifest, &at)) != NULL) {
        if (!each(adoption, file)) {
            return false;
        }
    }
    return true;
}

static bool adopt_has(struct adoption *adoption, const struct manifest_file *file)
{
    errno = ENOENT;
    return adopt_is_there(adoption, adoption->copy, file->name, file->bytes) ||
           (adoption->begun &&
            adopt_is_there(adoption, adoption->directory, file->name, file->bytes)) ||
           adopt_fail(adoption, file->name);
}

/* False: error has why not. */
static bool adopt_is_whole(struct adoption *adoption)
{
    char why[MANIFEST_ERROR_MAX];

    if (manifest_parse(adoption->text, adoption->length, COPY_DIR_NAME "/" MANIFEST_NAME,
                       &adoption->manifest, why) != MANIFEST_SOUND) {
        return data_refuse(adoption->error, "data directory %s: %s", adoption->directory, why);
    }
    return adopt_each(adoption, adopt_has);
}

/* ---- the steps ---- */

struct deletion {
    struct adoption *adoption;
    bool good;
};

/* The journal, and table files: those that the copy names come from there. */
static void adopt_delete_entry(void *context, const char *name)
{
    struct deletion *deletion = context;
    struct adoption *adoption = deletion->adoption;
    const struct manifest_file *file = manifest_find_file(adoption->manifest, name);
    uint64_t start;
    bool ours = manifest_name_ours(name) || journal_name_parse(name, &start) ||
                journal_name_temporary(name);
    bool moved = file != NULL && !adopt_is_there(adoption, adoption->copy, name, file->bytes);

    if (ours && !moved && deletion->good) {
        deletion->good = adopt_unlink(adoption, adoption->directory, name);
    }
}

static bool adopt_delete_old(struct adoption *adoption)
{
    struct deletion deletion = {adoption, true};

    if (!adopt_unlink(adoption, adoption->directory, MANIFEST_NAME) ||
        !adopt_sync(adoption, adoption->directory)) {
        return false;
    }
    if (adoption->vfs->functions->list(adoption->vfs, adoption->directory, adopt_delete_entry,
                                       &deletion) != 0) {
        return adopt_fail(adoption, "it cannot be read");
    }
    return deletion.good;
}

/* A file system without links moves it: that is one step of its own there. */
static bool adopt_take(struct adoption *adoption, const struct manifest_file *file)
{
    const struct vfs_functions *functions = adoption->vfs->functions;
    char from[VFS_PATH_MAX], to[VFS_PATH_MAX];

    if (!adopt_is_there(adoption, adoption->copy, file->name, file->bytes)) {
        return true; /* by an earlier start */
    }
    return (vfs_path(from, adoption->copy, file->name) &&
            vfs_path(to, adoption->directory, file->name) &&
            (functions->link(adoption->vfs, from, to) == 0 ||
             functions->rename(adoption->vfs, from, to) == 0)) ||
           adopt_fail(adoption, file->name);
}

/* Ends the adoption: nothing may bring DIR/copy/MANIFEST back, or what is taken from now on would
 * go with the next adoption. */
static bool adopt_end(struct adoption *adoption)
{
    if (!adopt_sync(adoption, adoption->directory)) {
        return false;
    }
    if (!vfs_replace_file(adoption->vfs, adoption->directory, MANIFEST_NAME, adoption->text,
                          adoption->length)) {
        return adopt_fail(adoption, MANIFEST_NAME);
    }
    return adopt_unlink(adoption, adoption->copy, COPY_DIR_STREAM) &&
           adopt_unlink(adoption, adoption->copy, MANIFEST_NAME) &&
           adopt_sync(adoption, adoption->copy);
}

static bool adopt_run(struct adoption *adoption)
{
    log_info("data directory %s: a copy of another node takes its place", adoption->directory);
    if (!adopt_delete_old(adoption) || !adopt_each(adoption, adopt_take) || !adopt_end(adoption)) {
        return false;
    }
    copy_dir_clear(adoption->vfs, adoption->copy, NULL, NULL);
    return true;
}

/* What is not whole, and nothing of DIR was touched for: it goes on as it was. */
static bool adopt_let_be(struct adoption *adoption)
{
    log_warning("%s; it goes on with what it had", adoption->error);
    adoption->error[0] = '\0';
    return adopt_unlink(adoption, adoption->copy, MANIFEST_NAME) &&
           adopt_sync(adoption, adoption->copy);
}

/* Names of a copy that was adopted, if the kill came before they were deleted. */
static void adopt_clear_rest(const struct adoption *adoption)
{
    if (!adopt_is_there(adoption, adoption->copy, COPY_DIR_STREAM, UINT64_MAX)) {
        copy_dir_clear(adoption->vfs, adoption->copy, NULL, NULL);
    }
}

bool data_adopt(struct vfs *vfs, const char *directory, bool follows, char error[DATA_ERROR_MAX])
{
    struct adoption adoption = {.vfs = vfs, .directory = directory, .error = error};

    if (!vfs_path(adoption.copy, directory, COPY_DIR_NAME)) {
        return adopt_fail(&adoption, COPY_DIR_NAME);
    }
    adoption.text =
        vfs_read_in(vfs, adoption.copy, MANIFEST_NAME, MANIFEST_BYTES_MAX, &adoption.length);
    if (adoption.text == NULL && errno == ENOENT) {
        adopt_clear_rest(&adoption);
        return true;
    }
    if (adoption.text == NULL) {
        return adopt_fail(&adoption, COPY_DIR_NAME "/" MANIFEST_NAME);
    }
    adoption.begun = !adopt_is_there(&adoption, directory, MANIFEST_NAME, UINT64_MAX);
    bool done = true;

    if (!follows && !adoption.begun) {
        log_warning("data directory %s: a copy of another node lies in it, and is not taken: "
                    "replication.follow is not set",
                    directory);
    } else if (!adopt_is_whole(&adoption)) {
        done = !adoption.begun && adopt_let_be(&adoption);
    } else {
        done = adopt_run(&adoption);
    }
    manifest_destroy(adoption.manifest);
    free(adoption.text);
    return done;
}
