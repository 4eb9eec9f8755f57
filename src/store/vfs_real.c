/* vfs_real.c: the system's files and clock. */
#include "store/vfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"

#define FILE_MODE      0600
#define DIRECTORY_MODE 0700
#define BOOT_ID_FILE   "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_MAX    64

/* A system call again as long as a signal cuts it short. */
#define REPEAT(result, call)                                                                       \
    do {                                                                                           \
        (result) = (call);                                                                         \
    } while ((result) == -1 && errno == EINTR)

static const struct vfs_functions real_functions;

struct real {
    struct vfs vfs;
    char *directory; /* NULL: none is held */
    size_t length;   /* of it */
    int fd;          /* open on it */
};

/* What the system finds a path by. */
struct place {
    int fd;
    const char *path;
};

/* NULL: it holds none. A table with some of these functions in it is another's, with no more than
 * a struct vfs. */
static const struct real *real_held(const struct vfs *vfs)
{
    const struct real *real = (const struct real *)vfs;
    return vfs->functions == &real_functions && real->directory != NULL ? real : NULL;
}

static struct place real_place(const struct vfs *vfs, const char *path)
{
    const struct real *real = real_held(vfs);
    if (real == NULL || strncmp(path, real->directory, real->length) != 0) {
        return (struct place){AT_FDCWD, path};
    }
    const char *rest = path + real->length;
    if (*rest != '/' && *rest != '\0') {
        return (struct place){AT_FDCWD, path};
    }
    while (*rest == '/') {
        rest++;
    }
    return (struct place){real->fd, *rest != '\0' ? rest : "."};
}

static int real_open(struct vfs *vfs, const char *path, int flags)
{
    struct place at = real_place(vfs, path);
    int fd;
    REPEAT(fd, openat(at.fd, at.path, flags | O_CLOEXEC, FILE_MODE));
    return fd;
}

static int real_close(struct vfs *vfs, int fd)
{
    (void)vfs;
    int result = close(fd);
    /* Linux has closed it then; again would close what another thread has opened meanwhile. */
    return result == -1 && errno == EINTR ? 0 : result;
}

static ssize_t real_pread(struct vfs *vfs, int fd, void *to, size_t bytes, uint64_t offset)
{
    (void)vfs;
    ssize_t got;
    REPEAT(got, pread(fd, to, bytes, (off_t)offset));
    return got;
}

static ssize_t real_pwrite(struct vfs *vfs, int fd, const void *from, size_t bytes, uint64_t offset)
{
    (void)vfs;
    ssize_t put;
    REPEAT(put, pwrite(fd, from, bytes, (off_t)offset));
    return put;
}

static int real_fdatasync(struct vfs *vfs, int fd)
{
    (void)vfs;
    int result;
    REPEAT(result, fdatasync(fd));
    return result;
}

static int real_writeback(struct vfs *vfs, int fd, uint64_t offset, uint64_t bytes)
{
    (void)vfs;
    int result;
    /* The flags that wait are left out: they would take the report of a failed write away from the
     * fdatasync that must see it. */
    REPEAT(result, sync_file_range(fd, (off_t)offset, (off_t)bytes, SYNC_FILE_RANGE_WRITE));
    return result;
}

static int real_readahead(struct vfs *vfs, int fd, uint64_t offset, uint64_t bytes)
{
    (void)vfs;
    ssize_t result;
    REPEAT(result, readahead(fd, (off_t)offset, bytes));
    return (int)result; /* 0 or -1 */
}

static int real_truncate(struct vfs *vfs, int fd, uint64_t bytes)
{
    (void)vfs;
    int result;
    REPEAT(result, ftruncate(fd, (off_t)bytes));
    return result;
}

static int64_t real_size(struct vfs *vfs, int fd)
{
    (void)vfs;
    struct stat about;
    return fstat(fd, &about) == 0 ? (int64_t)about.st_size : -1;
}

static int real_allocate(struct vfs *vfs, int fd, uint64_t bytes)
{
    int64_t before = real_size(vfs, fd);
    if (before < 0) {
        return -1;
    }
    int result;
    REPEAT(result, fallocate(fd, 0, 0, (off_t)bytes));
    if (result == 0) {
        return 0;
    }
    if (errno == EOPNOTSUPP || errno == ENOSYS) {
        return vfs_extend(vfs, fd, bytes) ? 0 : -1;
    }
    int error = errno;
    if (real_size(vfs, fd) > before) { /* a disk that filled up on the way gets its room back */
        real_truncate(vfs, fd, (uint64_t)before);
    }
    errno = error;
    return -1;
}

static int real_rename(struct vfs *vfs, const char *from, const char *to)
{
    struct place old = real_place(vfs, from), new = real_place(vfs, to);
    return renameat(old.fd, old.path, new.fd, new.path);
}

static int real_link(struct vfs *vfs, const char *from, const char *to)
{
    struct place old = real_place(vfs, from), new = real_place(vfs, to);
    return linkat(old.fd, old.path, new.fd, new.path, 0);
}

static int real_unlink(struct vfs *vfs, const char *path)
{
    struct place at = real_place(vfs, path);
    return unlinkat(at.fd, at.path, 0);
}

static int real_mkdir(struct vfs *vfs, const char *path)
{
    struct place at = real_place(vfs, path);
    return mkdirat(at.fd, at.path, DIRECTORY_MODE);
}

static int real_mode(struct vfs *vfs, const char *path)
{
    struct place at = real_place(vfs, path);
    struct stat found;
    return fstatat(at.fd, at.path, &found, 0) == 0 ? (int)(found.st_mode & ALLPERMS) : -1;
}

static int real_sync_dir(struct vfs *vfs, const char *path)
{
    int fd = real_open(vfs, path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) {
        return -1;
    }
    int result;
    REPEAT(result, fsync(fd));
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

static int real_list(struct vfs *vfs, const char *path, vfs_entry_fn *entry, void *context)
{
    int fd = real_open(vfs, path, O_RDONLY | O_DIRECTORY);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory) {
        vfs_close(vfs, fd);
        return -1;
    }
    for (;;) {
        errno = 0;
        const struct dirent *found = readdir(directory);
        if (!found) {
            break;
        }
        if (strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0) {
            entry(context, found->d_name);
        }
    }
    int error = errno;
    closedir(directory);
    errno = error;
    return error ? -1 : 0;
}

static int real_lock(struct vfs *vfs, int fd)
{
    (void)vfs;
    int result;
    REPEAT(result, flock(fd, LOCK_EX | LOCK_NB));
    return result;
}

static uint64_t real_now_us(struct vfs *vfs)
{
    (void)vfs;
    return clock_monotonic_us();
}

/* A random UUID, drawn at each boot; the machine's own in containers too. */
static uint64_t real_boot(struct vfs *vfs)
{
    char text[BOOT_ID_MAX];
    int fd = real_open(vfs, BOOT_ID_FILE, O_RDONLY);
    ssize_t length = fd < 0 ? -1 : vfs_read_all(vfs, fd, text, sizeof(text), 0);
    if (fd >= 0) {
        real_close(vfs, fd);
    }
    return length > 0 ? hash_bytes(text, (size_t)length, 0) : 0;
}

static uint64_t real_free_bytes(struct vfs *vfs, const char *path, uint64_t *all)
{
    struct statvfs disk;
    int fd = real_open(vfs, path, O_RDONLY | O_DIRECTORY);
    bool known = fd >= 0 && fstatvfs(fd, &disk) == 0;
    vfs_close(vfs, fd);
    if (!known) {
        return 0;
    }
    *all = (uint64_t)disk.f_blocks * disk.f_frsize;
    return (uint64_t)disk.f_bavail * disk.f_frsize;
}

static const struct vfs_functions real_functions = {
    .open = real_open,
    .close = real_close,
    .pread = real_pread,
    .pwrite = real_pwrite,
    .fdatasync = real_fdatasync,
    .writeback = real_writeback,
    .readahead = real_readahead,
    .allocate = real_allocate,
    .truncate = real_truncate,
    .size = real_size,
    .rename = real_rename,
    .link = real_link,
    .unlink = real_unlink,
    .mkdir = real_mkdir,
    .mode = real_mode,
    .sync_dir = real_sync_dir,
    .list = real_list,
    .lock = real_lock,
    .now_us = real_now_us,
    .free_bytes = real_free_bytes,
    .boot = real_boot,
};

struct vfs *vfs_real(void)
{
    static const struct real real = {.vfs = {&real_functions}, .fd = -1};
    return (struct vfs *)&real.vfs; /* it has no state: nobody writes to it */
}

/* ---- a directory that is held ---- */

struct vfs *vfs_hold(struct vfs *vfs, const char *directory, int fd)
{
    if (vfs != vfs_real()) {
        return vfs;
    }
    CHECK(fd >= 0 && *directory != '\0');
    struct real *held = memory_zalloc(sizeof(*held));

    held->vfs.functions = &real_functions;
    held->directory = memory_strdup(directory);
    held->length = strlen(directory);
    held->fd = fd;
    return &held->vfs;
}

void vfs_let_go(struct vfs *held)
{
    const struct real *real = real_held(held);
    if (real != NULL) {
        free(real->directory);
        free(held);
    }
}

bool vfs_is_in_place(const struct vfs *held)
{
    const struct real *real = real_held(held);
    struct stat there, ours;
    if (real == NULL || fstat(real->fd, &ours) != 0) {
        return true;
    }
    if (stat(real->directory, &there) != 0) {
        return errno != ENOENT && errno != ENOTDIR;
    }
    return there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}
