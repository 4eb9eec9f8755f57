/*
 * vfs.h: every file call and the clock of src/store, as one table of functions, so that tests can
 * put a file system of their own under it: short writes, ENOSPC, EIO, a failing fsync, delays, and
 * a power cut that drops or tears what was not synced.
 *
 * vfs_real() passes everything to the system. Functions have the meaning of the system call they
 * are named after: -1 with errno on failure, interrupted calls are repeated by vfs_real() itself.
 *
 * What survives a power cut, as every implementation must have it and store relies on:
 *     bytes written            after fdatasync or fsync of that file
 *     a file's existence,      after sync_dir of its directory
 *     a rename, a link, an unlink
 * Before that each sector of 512 bytes, and each directory change, may survive or not, in any
 * order.
 *
 * Thread rule: all functions by any thread at once.
 */
#ifndef ROLLCALL_STORE_VFS_H
#define ROLLCALL_STORE_VFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define VFS_PATH_MAX  4096
#define VFS_TEMPORARY ".tmp" /* ends the name of a file that is not in place yet */

struct vfs;

/* Gets each entry of a directory; `.` and `..` are left out. */
typedef void vfs_entry_fn(void *context, const char *name);

struct vfs_functions {
    /* flags: O_RDONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_DIRECT, O_DIRECTORY. mode 0600. */
    int (*open)(struct vfs *vfs, const char *path, int flags);
    int (*close)(struct vfs *vfs, int fd);
    ssize_t (*pread)(struct vfs *vfs, int fd, void *to, size_t bytes, uint64_t offset);
    ssize_t (*pwrite)(struct vfs *vfs, int fd, const void *from, size_t bytes, uint64_t offset);
    int (*fdatasync)(struct vfs *vfs, int fd);
    /* Starts writing back a range without waiting (sync_file_range); advice only. */
    int (*writeback)(struct vfs *vfs, int fd, uint64_t offset, uint64_t bytes);
    /* Starts bringing a range into memory without waiting (readahead); advice only. */
    int (*readahead)(struct vfs *vfs, int fd, uint64_t offset, uint64_t bytes);
    /* The file gets `bytes` unless it has more, its space reserved, zeroes where nothing was
     * (fallocate). -1: it has its old size. */
    int (*allocate)(struct vfs *vfs, int fd, uint64_t bytes);
    int (*truncate)(struct vfs *vfs, int fd, uint64_t bytes);
    int64_t (*size)(struct vfs *vfs, int fd);
    int (*rename)(struct vfs *vfs, const char *from, const char *to);
    /* Gives a file a second name, in another directory. Some file systems cannot. */
    int (*link)(struct vfs *vfs, const char *from, const char *to);
    int (*unlink)(struct vfs *vfs, const char *path);
    int (*mkdir)(struct vfs *vfs, const char *path); /* mode 0700; EEXIST as the system's */
    int (*mode)(struct vfs *vfs, const char *path);  /* its permission bits (stat) */
    int (*sync_dir)(struct vfs *vfs, const char *path);
    int (*list)(struct vfs *vfs, const char *path, vfs_entry_fn *entry, void *context);
    /* An exclusive lock on the file for as long as fd is open (flock LOCK_EX | LOCK_NB). */
    int (*lock)(struct vfs *vfs, int fd);
    uint64_t (*now_us)(struct vfs *vfs); /* monotonic */
    /* Returns the bytes that are free where a directory is, for others than root, quotas left out
     * (statvfs), and *all, those of that file system; 0, and *all as it was: not known. */
    uint64_t (*free_bytes)(struct vfs *vfs, const char *path, uint64_t *all);
    /* Returns the number of this run of the system, another one after each power cut; 0: not known.
     * While it is the same, all that was ever written is read back, synced or not. */
    uint64_t (*boot)(struct vfs *vfs);
};

struct vfs {
    const struct vfs_functions *functions;
};

struct vfs *vfs_real(void); /* shared, never freed */

/*
 * Returns vfs_real() but for one directory: its path, and all below, leads to what fd is open on,
 * wherever that is moved to and whatever lies at the path then. fd stays the caller's, open until
 * vfs_let_go(). Of any other vfs: that itself, as nobody else moves its directories.
 */
struct vfs *vfs_hold(struct vfs *vfs, const char *directory, int fd);
void vfs_let_go(struct vfs *held); /* of vfs_hold(): frees it. Another: no-op */
/* Returns whether the path itself leads there, too, or cannot be looked at. Another: true. */
bool vfs_is_in_place(const struct vfs *held);

/* Reads or writes all of `bytes`, over short reads and writes. read: returns the bytes read, fewer
 * only at the file's end; -1 with errno. write: false with errno. */
ssize_t vfs_read_all(struct vfs *vfs, int fd, void *to, size_t bytes, uint64_t offset);
bool vfs_write_all(struct vfs *vfs, int fd, const void *from, size_t bytes, uint64_t offset);

/* A whole small file. read: malloc'd with a NUL after it, NULL with errno (EFBIG over
 * bytes_max). */
char *vfs_read_file(struct vfs *vfs, const char *path, size_t bytes_max, size_t *length);
int64_t vfs_size(struct vfs *vfs,
                 const char *path); /* -1 with errno: it cannot be opened, or asked */

void vfs_close(struct vfs *vfs, int fd); /* negative: there is none; errno stays */

/* The same of directory/name; ENAMETOOLONG as vfs_path() has it. */
int vfs_open_in(struct vfs *vfs, const char *directory, const char *name, int flags);
int vfs_unlink_in(struct vfs *vfs, const char *directory, const char *name);
char *vfs_read_in(struct vfs *vfs, const char *directory, const char *name, size_t bytes_max,
                  size_t *length);
int64_t vfs_size_in(struct vfs *vfs, const char *directory, const char *name);
/*
 * Replaces a small file in one step: temporary name, write, fdatasync, rename, sync_dir. False with
 * errno: the old one, or none, is there; if it was sync_dir that failed, the new one, whole, but a
 * power cut may bring the old one back. Two calls for one name must not overlap.
 */
bool vfs_replace_file(struct vfs *vfs, const char *directory, const char *name, const void *bytes,
                      size_t length);

/*
 * Makes the file `bytes` long, unless it is longer, by writing zeroes after its end: allocate for
 * file systems that cannot. False with errno: it has its old size again.
 */
bool vfs_extend(struct vfs *vfs, int fd, uint64_t bytes);

/* directory/name into path[VFS_PATH_MAX]; false: too long (ENAMETOOLONG). */
bool vfs_path(char *path, const char *directory, const char *name);

#endif
