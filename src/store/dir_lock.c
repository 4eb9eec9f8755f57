/* dir_lock.c: the lock of a data directory. */
#include "store/dir_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PID_TEXT_MAX 32

/* The last that signed may be gone, and the holder one that does not. */
static bool is_alive(long pid)
{
    return kill((pid_t)pid, 0) == 0 || errno == EPERM;
}

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
    return pid > 0 && is_alive(pid) ? pid : 0;
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

static enum dir_lock_result dir_lock_acquire(struct dir_lock *lock, int fd)
{
    lock->fd = fd;
    if (fd >= 0 && lock->vfs->functions->lock(lock->vfs, fd) == 0) {
        return DIR_LOCK_TAKEN;
    }
    return fd >= 0 && is_held(errno) ? DIR_LOCK_HELD : DIR_LOCK_FAILED;
}

static enum dir_lock_result take_either(struct vfs *vfs, const char *directory, int make,
                                        struct dir_lock *lock)
{
    *lock = (struct dir_lock){0};
    int fd = vfs->functions->open(vfs, directory, O_RDONLY | O_DIRECTORY);
    if (fd < 0) {
        return DIR_LOCK_FAILED;
    }
    lock->vfs = vfs_hold(vfs, directory, fd);
    lock->directory = fd;
    enum dir_lock_result result = dir_lock_acquire(lock, fd);
    if (result == DIR_LOCK_FAILED && is_unsupported(errno)) {
        lock->weak = true;
        result =
            dir_lock_acquire(lock, vfs_open_in(lock->vfs, directory, DIR_LOCK_NAME, O_RDWR | make));
    }
    int error = errno;
    if (result == DIR_LOCK_HELD) {
        lock->holder = read_holder(lock->vfs, directory);
    }
    if (result != DIR_LOCK_TAKEN) {
        dir_lock_give(lock);
    }
    errno = error;
    return result;
}

enum dir_lock_result dir_lock_take(struct vfs *vfs, const char *directory, struct dir_lock *lock)
{
    return take_either(vfs, directory, O_CREAT, lock);
}

enum dir_lock_result dir_lock_take_reading(struct vfs *vfs, const char *directory,
                                           struct dir_lock *lock)
{
    return take_either(vfs, directory, 0, lock);
}

const char *dir_lock_words(const struct dir_lock *lock, char words[DIR_LOCK_WORDS_MAX])
{
    if (lock->holder > 0) {
        snprintf(words, DIR_LOCK_WORDS_MAX, "is in use by rollcalld (pid %ld)", lock->holder);
    } else {
        snprintf(words, DIR_LOCK_WORDS_MAX,
                 "is in use by rollcalld, or by a verb such as rollcall verify");
    }
    return words;
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

void dir_lock_give(struct dir_lock *lock)
{
    struct vfs *vfs = lock->vfs;
    if (vfs == NULL) {
        return;
    }
    if (lock->fd != lock->directory) {
        vfs_close(vfs, lock->fd);
    }
    vfs_close(vfs, lock->directory);
    vfs_let_go(vfs);
    lock->vfs = NULL;
}
