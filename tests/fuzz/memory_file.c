/* memory_file.c: see memory_file.h. */
#include "tests/fuzz/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

#define FD 3

static int fail(int error)
{
    errno = error;
    return -1;
}

static struct memory_file *of(struct vfs *vfs)
{
    return (struct memory_file *)vfs;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static bool is_it(const struct memory_file *file, const char *path)
{
    return file->name[0] != '\0' && strcmp(name_of(path), file->name) == 0;
}

static int open_it(struct vfs *vfs, const char *path, int flags)
{
    struct memory_file *file = of(vfs);

    if ((flags & O_DIRECTORY) != 0) {
        return FD + 1;
    }
    if ((flags & O_CREAT) != 0 && !is_it(file, path)) {
        memory_file_set(file, name_of(path), "", 0);
    }
    return is_it(file, path) ? FD : fail(ENOENT);
}

static int close_it(struct vfs *vfs, int fd)
{
    (void)vfs;
    (void)fd;
    return 0;
}

static ssize_t read_it(struct vfs *vfs, int fd, void *to, size_t bytes, uint64_t offset)
{
    const struct memory_file *file = of(vfs);
    size_t left = offset < file->length ? file->length - (size_t)offset : 0;
    size_t most = bytes < left ? bytes : left;

    CHECK(fd == FD);
    if (offset > INT64_MAX) {
        return fail(EINVAL); /* as the system says of a negative one */
    }
    if (most > 0) {
        memcpy(to, file->bytes + offset, most);
    }
    return (ssize_t)most;
}

static ssize_t write_it(struct vfs *vfs, int fd, const void *from, size_t bytes, uint64_t offset)
{
    struct memory_file *file = of(vfs);

    CHECK(fd == FD && offset + bytes <= sizeof(file->bytes));
    memcpy(file->bytes + offset, from, bytes);
    file->length = offset + bytes > file->length ? (size_t)offset + bytes : file->length;
    return (ssize_t)bytes;
}

static int sync_it(struct vfs *vfs, int fd)
{
    (void)vfs;
    (void)fd;
    return 0;
}

static int write_back(struct vfs *vfs, int fd, uint64_t offset, uint64_t bytes)
{
    (void)offset;
    (void)bytes;
    return sync_it(vfs, fd);
}

static int64_t size_of(struct vfs *vfs, int fd)
{
    CHECK(fd == FD);
    return (int64_t)of(vfs)->length;
}

static int set_size(struct vfs *vfs, int fd, uint64_t bytes)
{
    (void)vfs;
    (void)fd;
    (void)bytes;
    return fail(EROFS);
}

static int rename_it(struct vfs *vfs, const char *from, const char *to)
{
    CHECK(is_it(of(vfs), from));
    snprintf(of(vfs)->name, sizeof(of(vfs)->name), "%s", name_of(to));
    return 0;
}

static int unlink_it(struct vfs *vfs, const char *path)
{
    CHECK(is_it(of(vfs), path));
    of(vfs)->name[0] = '\0';
    return 0;
}

static int by_path(struct vfs *vfs, const char *path)
{
    (void)vfs;
    (void)path;
    return 0;
}

static int list_it(struct vfs *vfs, const char *path, vfs_entry_fn *entry, void *context)
{
    (void)path;
    if (of(vfs)->name[0] != '\0') {
        entry(context, of(vfs)->name);
    }
    return 0;
}

static uint64_t now_us(struct vfs *vfs)
{
    (void)vfs;
    return 1;
}

static uint64_t boot(struct vfs *vfs)
{
    (void)vfs;
    return 0;
}

static uint64_t free_bytes(struct vfs *vfs, const char *path, uint64_t *all)
{
    (void)vfs, (void)path, (void)all;
    return 0;
}

static const struct vfs_functions functions = {
    .open = open_it,
    .close = close_it,
    .pread = read_it,
    .pwrite = write_it,
    .fdatasync = sync_it,
    .writeback = write_back,
    .allocate = set_size,
    .truncate = set_size,
    .size = size_of,
    .rename = rename_it,
    .unlink = unlink_it,
    .mkdir = by_path,
    .mode = by_path,
    .sync_dir = by_path,
    .list = list_it,
    .lock = sync_it,
    .now_us = now_us,
    .free_bytes = free_bytes,
    .boot = boot,
};

void memory_file_init(struct memory_file *file)
{
    file->vfs.functions = &functions;
    file->name[0] = '\0';
    file->length = 0;
}

void memory_file_set(struct memory_file *file, const char *name, const void *bytes, size_t length)
{
    CHECK(length <= sizeof(file->bytes));
    snprintf(file->name, sizeof(file->name), "%s", name);
    memcpy(file->bytes, bytes, length);
    file->length = length;
}
