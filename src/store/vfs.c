/* vfs.c: what every file system's table is used for in the same way. */
#include "store/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

#define ZEROES_BYTES (64u << 10)

ssize_t vfs_read_all(struct vfs *vfs, int fd, void *to, size_t bytes, uint64_t offset)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t got =
            vfs->functions->pread(vfs, fd, (char *)to + done, bytes - done, offset + done);
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
        CHECK(done <= bytes);
    }
    return (ssize_t)done;
}

bool vfs_write_all(struct vfs *vfs, int fd, const void *from, size_t bytes, uint64_t offset)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t put =
            vfs->functions->pwrite(vfs, fd, (const char *)from + done, bytes - done, offset + done);
        if (put < 0) {
            return false;
        }
        if (put == 0) {
            errno = EIO; /* no progress and no reason: better an error than a loop without end */
            return false;
        }
        done += (size_t)put;
        CHECK(done <= bytes);
    }
    return true;
}

void vfs_close(struct vfs *vfs, int fd)
{
    int error = errno;
    if (fd >= 0) {
        vfs->functions->close(vfs, fd);
    }
    errno = error;
}

static void free_keeping_errno(void *memory)
{
    int error = errno;
    free(memory);
    errno = error;
}

char *vfs_read_file(struct vfs *vfs, const char *path, size_t bytes_max, size_t *length)
{
    char *text = NULL;
    int fd = vfs->functions->open(vfs, path, O_RDONLY);
    if (fd < 0) {
        return NULL;
    }
    int64_t size = vfs->functions->size(vfs, fd);
    if (size < 0) {
        goto close;
    }
    if ((uint64_t)size > bytes_max) {
        errno = EFBIG;
        goto close;
    }
    text = malloc((size_t)size + 1);
    if (!text) {
        goto close;
    }
    ssize_t got = vfs_read_all(vfs, fd, text, (size_t)size, 0);
    if (got < 0) {
        goto close;
    }
    text[got] = '\0';
    *length = (size_t)got;
    vfs->functions->close(vfs, fd);
    return text;

close:
    vfs_close(vfs, fd);
    free_keeping_errno(text);
    return NULL;
}

int64_t vfs_size(struct vfs *vfs, const char *path)
{
    int fd = vfs->functions->open(vfs, path, O_RDONLY);
    if (fd < 0) {
        return -1;
    }
    int64_t size = vfs->functions->size(vfs, fd);
    vfs_close(vfs, fd);
    return size;
}

int vfs_open_in(struct vfs *vfs, const char *directory, const char *name, int flags)
{
    char path[VFS_PATH_MAX];
    return vfs_path(path, directory, name) ? vfs->functions->open(vfs, path, flags) : -1;
}

int vfs_unlink_in(struct vfs *vfs, const char *directory, const char *name)
{
    char path[VFS_PATH_MAX];
    return vfs_path(path, directory, name) ? vfs->functions->unlink(vfs, path) : -1;
}

char *vfs_read_in(struct vfs *vfs, const char *directory, const char *name, size_t bytes_max,
                  size_t *length)
{
    char path[VFS_PATH_MAX];
    return vfs_path(path, directory, name) ? vfs_read_file(vfs, path, bytes_max, length) : NULL;
}

int64_t vfs_size_in(struct vfs *vfs, const char *directory, const char *name)
{
    char path[VFS_PATH_MAX];
    return vfs_path(path, directory, name) ? vfs_size(vfs, path) : -1;
}

/* The whole file under its temporary name, durable but for the name. */
static bool write_temporary(struct vfs *vfs, const char *path, const void *bytes, size_t length)
{
    int fd = vfs->functions->open(vfs, path, O_RDWR | O_CREAT | O_TRUNC);
    if (fd < 0) {
        return false;
    }
    bool sound =
        vfs_write_all(vfs, fd, bytes, length, 0) && vfs->functions->fdatasync(vfs, fd) == 0;
    vfs_close(vfs, fd);
    return sound;
}

bool vfs_replace_file(struct vfs *vfs, const char *directory, const char *name, const void *bytes,
                      size_t length)
{
    char path[VFS_PATH_MAX];
    char temporary[VFS_PATH_MAX];
    if (!vfs_path(path, directory, name)) {
        return false;
    }
    if (snprintf(temporary, sizeof(temporary), "%s%s", path, VFS_TEMPORARY) >=
        (int)sizeof(temporary)) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (!write_temporary(vfs, temporary, bytes, length) ||
        vfs->functions->rename(vfs, temporary, path) != 0) {
        int error = errno;
        vfs->functions->unlink(vfs, temporary);
        errno = error;
        return false;
    }
    return vfs->functions->sync_dir(vfs, directory) == 0;
}

bool vfs_extend(struct vfs *vfs, int fd, uint64_t bytes)
{
    static const _Alignas(4096) char zeroes[ZEROES_BYTES]; /* aligned: fd may be O_DIRECT */
    int64_t size = vfs->functions->size(vfs, fd);
    if (size < 0) {
        return false;
    }
    for (uint64_t at = (uint64_t)size; at < bytes;) {
        size_t piece = bytes - at < sizeof(zeroes) ? (size_t)(bytes - at) : sizeof(zeroes);
        if (!vfs_write_all(vfs, fd, zeroes, piece, at)) {
            int error = errno;
            vfs->functions->truncate(vfs, fd, (uint64_t)size);
            errno = error;
            return false;
        }
        at += piece;
    }
    return true;
}

bool vfs_path(char *path, const char *directory, const char *name)
{
    if (snprintf(path, VFS_PATH_MAX, "%s/%s", directory, name) >= VFS_PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    return true;
}
