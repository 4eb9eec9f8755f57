/* dir_lock.c: the lock of a data directory. */
#include "store/dir_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PID_TEXT_MAX 32

static long read_holder(struct vfs *vfs, const char *directory)
{
    char text[PID_TEXT_MAX] = "";
    int fd = vfs_open_in(vfs, directory, DIR_LOCK_NAME, O_RDONLY);
    if (fd < 0) {
        return 0;
    }
    ssize_t length = vfs_read_all(vfs, fd, text, sizeof(text) - 1, 0);
    vfs->functions->close(vfs, fd);
    long pid = length > 0 ? strtol(text, NULL, 10) : 0;
    return pid > 0 ? pid : 0;
}

static bool is_held(int error)
{
    return error == EWOULDBLOCK || error == EACCES;
}

/* Returns whether the file system does not lock this kind of file. */
static bool is_unsupported(int error)
{
    return error == EBADF || error == EINVAL || error == ENOLCK || error == EOPNOTSUPP ||
           error == ENOSYS;
}

static enum dir_lock_result dir_lock_acquire(struct vfs *vfs, struct dir_lock *lock, int fd)
{
    if (fd < 0) {
        return DIR_LOCK_FAILED;
    }
    if (vfs->functions->lock(vfs, fd) == 0) {
        lock->fd = fd;
        return DIR_LOCK_TAKEN;
    }
    vfs_close(vfs, fd);
    return is_held(errno) ? DIR_LOCK_HELD : DIR_LOCK_FAILED;
}

static enum dir_lock_result take_either(struct vfs *vfs, const char *directory, int make,
                                        struct dir_lock *lock)
{
    *lock = (struct dir_lock){.fd = -1};
    int fd = vfs->functions->open(vfs, directory, O_RDONLY | O_DIRECTORY);
    enum dir_lock_result result = dir_lock_acquire(vfs, lock, fd);
    if (result == DIR_LOCK_FAILED && fd >= 0 && is_unsupported(errno)) {
        lock->weak = true;
        result =
            dir_lock_acquire(vfs, lock, vfs_open_in(vfs, directory, DIR_LOCK_NAME, O_RDWR | make));
    }
    if (result == DIR_LOCK_HELD) {
        lock->holder = read_holder(vfs, directory);
    }
    return result;
}

enum dir_lock_result dir_lock_take(struct vfs *vfs, const char *directory, struct dir_lock *lock)
{
    return take_either(vfs, directory, O_CREAT, lock);
}

bool dir_lock_is_held(struct vfs *vfs, const char *directory)
{
    struct dir_lock lock;
    bool held = take_either(vfs, directory, 0, &lock) == DIR_LOCK_HELD;
    dir_lock_give(vfs, &lock);
    return held;
}

bool dir_lock_sign(struct vfs *vfs, const char *directory)
{
    char text[PID_TEXT_MAX];
    int length = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    int fd = vfs_open_in(vfs, directory, DIR_LOCK_NAME, O_RDWR | O_CREAT);
    if (fd < 0) {
        return false;
    }
    bool signed_it = vfs->functions->truncate(vfs, fd, 0) == 0 &&
                     vfs_write_all(vfs, fd, text, (size_t)length, 0);
    vfs_close(vfs, fd);
    return signed_it;
}

void dir_lock_give(struct vfs *vfs, struct dir_lock *lock)
{
    if (lock->fd >= 0) {
        vfs->functions->close(vfs, lock->fd);
        lock->fd = -1;
    }
}
