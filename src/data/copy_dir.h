/*
 * copy_dir.h: DIR/copy, where a copy of another node's data directory comes together while the
 * daemon goes on with what is in DIR.
 *
 *     DIR/copy/stream      whose copy: the 32 digits of the other's stream
 *     DIR/copy/NAME.part   of a table file, from its beginning on
 *     DIR/copy/NAME        a table file, whole and durable
 *     DIR/copy/MANIFEST    last: the copy is whole (data/adopt.h takes it then)
 *
 * A copy that broke goes on: what is whole is not fetched again, a part goes on at its end. That
 * holds too when the other's manifest has become a newer one: files that it still names stay. What
 * has come is read once whole: it may be of two nodes, lack what a power cut took, or have a bad
 * byte.
 *
 * A table file of DIR that both manifests name in the same words is of the same stream the same
 * table as of the same LSNs: it gets a second name instead of being fetched.
 *
 * Thread rule: one thread. Every call may wait for the disk.
 */
#ifndef ROLLCALL_DATA_COPY_DIR_H
#define ROLLCALL_DATA_COPY_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/manifest.h"
#include "store/vfs.h"

#define COPY_DIR_NAME      "copy"
#define COPY_DIR_STREAM    "stream"
#define COPY_DIR_PART      ".part"
#define COPY_DIR_ERROR_MAX 512

struct copy_dir {
    struct vfs *vfs;
    char home[VFS_PATH_MAX];        /* DIR */
    char path[VFS_PATH_MAX];        /* DIR/copy */
    char error[COPY_DIR_ERROR_MAX]; /* why the last call that failed did */
};

/* A file that is to come. */
struct copy_file {
    const struct manifest_space *space;
    const struct manifest_file *named;
    uint64_t have; /* bytes of it that are there */
    int fd;        /* of the part; -1: not open */
    bool goes_on;  /* with a part that was there when it was opened */
};

/* Makes the directory ready for what the manifest names, deletes what it does not. False: error. */
bool copy_dir_begin(struct copy_dir *dir, struct vfs *vfs, const char *home,
                    const struct manifest *manifest);
/*
 * Returns whether the file is whole already. False: it is to be fetched from file->have on. `own`:
 * DIR's manifest; NULL: there is none.
 */
bool copy_dir_look(struct copy_dir *dir, const struct manifest *manifest,
                   const struct manifest *own, struct copy_file *file);

/* False: error. Whatever comes, the file is closed in the end by one of the last two. */
bool copy_dir_open(struct copy_dir *dir, struct copy_file *file);
bool copy_dir_write(struct copy_dir *dir, struct copy_file *file, const void *bytes, size_t length);
bool copy_dir_finish(struct copy_dir *dir, struct copy_file *file); /* whole, durable, named */
void copy_dir_leave(struct copy_dir *dir, struct copy_file *file);  /* not open: no-op */

/* Called when all files are there: makes them and this manifest durable. False: error. */
bool copy_dir_end(struct copy_dir *dir, const char *text, size_t length);

/* Deletes what a copy is made of; what is none of ours stays. Of what cannot be deleted nothing is
 * said: the next one tries again. keep: these names stay (NULL: none do). */
typedef bool copy_dir_keep_fn(const void *context, const char *name);
void copy_dir_clear(struct vfs *vfs, const char *path, copy_dir_keep_fn *keep, const void *context);

#endif
