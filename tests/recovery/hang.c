/*
 * hang.c: put before a daemon by LD_PRELOAD: its writes and syncs of some files hang, as those of a
 * broken disk do, for as long as the test wants (hang.py, which builds it).
 *
 * $ROLLCALL_HANG names a file of HANG_BYTES that both map: what hangs, and how many do now. A file
 * is told by a part of its path; what of the file hangs by a letter a call: w, pwrite; s, fdatasync
 * and fsync; f, statvfs and fstatvfs. The file's name is written before `armed` rises and after it
 * fell.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define HANG_BYTES 4096
#define PATH_BYTES 1024
#define LOOK_NS    1000000 /* how often a call that hangs looks whether it may go on */

struct hang {
    _Atomic uint32_t armed;
    _Atomic uint32_t waiting; /* calls that hang now */
    char calls[8];
    char part[PATH_BYTES];
};

static struct hang *shared;
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_fdatasync)(int);
static int (*real_fsync)(int);
static int (*real_statvfs)(const char *, struct statvfs *);
static int (*real_fstatvfs)(int, struct statvfs *);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("ROLLCALL_HANG");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *at =
        fd >= 0 ? mmap(NULL, HANG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (at == MAP_FAILED) {
        abort();
    }
    close(fd);
    shared = at;
    real_pwrite = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
    real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    real_statvfs = (int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs");
    real_fstatvfs = (int (*)(int, struct statvfs *))dlsym(RTLD_NEXT, "fstatvfs");
}

static int hangs(char call, int fd)
{
    char name[64];
    char path[PATH_BYTES];

    if (!atomic_load(&shared->armed) || strchr(shared->calls, call) == NULL) {
        return 0;
    }
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, sizeof(path) - 1);

    if (length < 0) {
        return 0;
    }
    path[length] = '\0';
    return strstr(path, shared->part) != NULL;
}

static void wait_here(void)
{
    const struct timespec look = {0, LOOK_NS};

    atomic_fetch_add(&shared->waiting, 1);
    while (atomic_load(&shared->armed)) {
        nanosleep(&look, NULL);
    }
    atomic_fetch_sub(&shared->waiting, 1);
}

static void pass(char call, int fd)
{
    if (hangs(call, fd)) {
        wait_here();
    }
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
    pass('w', fd);
    return real_pwrite(fd, from, bytes, offset);
}

int fdatasync(int fd)
{
    pass('s', fd);
    return real_fdatasync(fd);
}

int fsync(int fd)
{
    pass('s', fd);
    return real_fsync(fd);
}

int statvfs(const char *path, struct statvfs *disk)
{
    if (atomic_load(&shared->armed) && strchr(shared->calls, 'f') != NULL &&
        strstr(path, shared->part) != NULL) {
        wait_here();
    }
    return real_statvfs(path, disk);
}

int fstatvfs(int fd, struct statvfs *disk)
{
    pass('f', fd);
    return real_fstatvfs(fd, disk);
}
