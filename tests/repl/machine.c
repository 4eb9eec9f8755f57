/*
 * machine.c: put before a daemon and its agent by LD_PRELOAD: the disk of their machine is full, or
 * its clocks jump, as the test says (machine.py, which builds it).
 *
 * $ROLLCALL_MACHINE names a file of MACHINE_BYTES that all of them map. Full: files grow only by
 * what others gave back since. What was reserved for the journal can be written.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define MACHINE_BYTES 4096

struct machine {
    _Atomic int64_t wall_s; /* that the wall clock is ahead, or behind */
    _Atomic int64_t boot_s; /* that the machine slept */
    _Atomic uint32_t full;
    _Atomic int64_t room; /* full: bytes that were given back, and not taken again */
};

static struct machine *machine;
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_fallocate)(int, int, off_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_unlink)(const char *);
static int (*real_rename)(const char *, const char *);
static int (*real_fstatvfs)(int, struct statvfs *);
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("ROLLCALL_MACHINE");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *at =
        fd >= 0 ? mmap(NULL, MACHINE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (at == MAP_FAILED) {
        abort();
    }
    close(fd);
    machine = at;
    real_pwrite = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
    real_fallocate = (int (*)(int, int, off_t, off_t))dlsym(RTLD_NEXT, "fallocate");
    real_ftruncate = (int (*)(int, off_t))dlsym(RTLD_NEXT, "ftruncate");
    real_unlink = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
    real_rename = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    real_fstatvfs = (int (*)(int, struct statvfs *))dlsym(RTLD_NEXT, "fstatvfs");
    real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
}

static int has_no_room(int fd, off_t end)
{
    struct stat status;

    if (!atomic_load(&machine->full) || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        end <= status.st_size) {
        return 0;
    }
    off_t more = end - status.st_size;

    if (atomic_fetch_sub(&machine->room, more) >= more) {
        return 0;
    }
    atomic_fetch_add(&machine->room, more);
    return 1;
}

static off_t bytes_of(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
}

int ftruncate(int fd, off_t bytes)
{
    struct stat status;
    off_t before = fstat(fd, &status) == 0 ? status.st_size : 0;
    int result = real_ftruncate(fd, bytes);

    if (result == 0 && bytes < before) {
        atomic_fetch_add(&machine->room, before - bytes);
    }
    return result;
}

int unlink(const char *path)
{
    off_t before = bytes_of(path);
    int result = real_unlink(path);

    if (result == 0) {
        atomic_fetch_add(&machine->room, before);
    }
    return result;
}

int rename(const char *from, const char *to)
{
    off_t before = bytes_of(to);
    int result = real_rename(from, to);

    if (result == 0) {
        atomic_fetch_add(&machine->room, before);
    }
    return result;
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
    if (has_no_room(fd, offset + (off_t)bytes)) {
        errno = ENOSPC;
        return -1;
    }
    return real_pwrite(fd, from, bytes, offset);
}

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    if (has_no_room(fd, offset + bytes)) {
        errno = ENOSPC;
        return -1;
    }
    return real_fallocate(fd, mode, offset, bytes);
}

int fstatvfs(int fd, struct statvfs *disk)
{
    int result = real_fstatvfs(fd, disk);

    if (result == 0 && atomic_load(&machine->full)) {
        disk->f_bfree = disk->f_bavail =
            (fsblkcnt_t)atomic_load(&machine->room) / (fsblkcnt_t)disk->f_frsize;
    }
    return result;
}

/* Libraries ask for the time before `begin`. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (real_clock_gettime == NULL) {
        real_clock_gettime =
            (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    }
    int result = real_clock_gettime(clock, now);

    if (machine != NULL && clock == CLOCK_REALTIME) {
        now->tv_sec += atomic_load(&machine->wall_s);
    } else if (machine != NULL && clock == CLOCK_BOOTTIME) {
        now->tv_sec += atomic_load(&machine->boot_s);
    }
    return result;
}
