#include "tools/rollcall/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "data/fill.h"
#include "store/dir_lock.h"
#include "store/vfs.h"

#define PIECE_BYTES (4u << 20)
#define PAGE_BYTES  4096u /* of what is compared, at both ends */
#define SPARE_FILES 64u   /* that a process has open besides */

bool copy_fail(struct copy *copy, const char *name, const char *what)
{
    return fail_with(copy->error, sizeof(copy->error), "%.400s%s%.200s: %.300s", copy->to,
                     name != NULL ? "/" : "", name != NULL ? name : "", what);
}

bool copy_begin(struct copy *copy, const char *from, const char *to)
{
    struct stat is;

    copy->from = from;
    copy->to = to;
    if (stat(from, &is) != 0 || !S_ISDIR(is.st_mode)) {
        return fail_with(copy->error, sizeof(copy->error), "%.400s: %s", from,
                         errno != 0 ? strerror(errno) : "no directory");
    }
    if (data_is_filling(vfs_real(), from)) {
        return fail_with(copy->error, sizeof(copy->error), DATA_FILLING_WORDS, from);
    }
    copy->owner = is.st_uid;
    copy->group = is.st_gid;
    return true;
}

static bool copy_give(const struct copy *copy, int fd)
{
    return geteuid() != 0 || fchown(fd, copy->owner, copy->group) == 0;
}

bool copy_make_directory(struct copy *copy)
{
    if (mkdir(copy->to, 0700) != 0 && errno != EEXIST) {
        return copy_fail(copy, NULL, strerror(errno));
    }
    int fd = open(copy->to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool given = fd >= 0 && copy_give(copy, fd); /* a kill may have come before it */

    if (fd >= 0) {
        close(fd);
    }
    return given || copy_fail(copy, NULL, strerror(errno));
}

/* ---- pins ---- */

bool copy_allow_files(struct copy *copy, uint64_t count)
{
    struct rlimit limit = {.rlim_cur = 0};

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < count + SPARE_FILES) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= count + SPARE_FILES) {
        return true;
    }
    return fail_with(copy->error, sizeof(copy->error),
                     "%.400s: the system allows %llu open files, and %llu must be open at one "
                     "time; set the limit (ulimit -n, LimitNOFILE) to that",
                     copy->from, (unsigned long long)limit.rlim_cur,
                     (unsigned long long)(count + SPARE_FILES));
}

enum copy_found copy_pin(struct copy *copy, const char *name, struct copy_pin *pin)
{
    char path[VFS_PATH_MAX];
    struct stat is;

    snprintf(pin->name, sizeof(pin->name), "%.*s", MANIFEST_FILE_NAME_MAX, name);
    pin->fd = vfs_path(path, copy->from, name) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (pin->fd >= 0 && fstat(pin->fd, &is) == 0) {
        pin->bytes = (uint64_t)is.st_size;
        return COPY_OPEN;
    }
    if (errno == ENOENT) {
        return COPY_ABSENT;
    }
    snprintf(copy->error, sizeof(copy->error), "%.400s/%.200s: %s", copy->from, name,
             strerror(errno));
    copy_unpin(pin);
    return COPY_FAILED;
}

void copy_unpin(struct copy_pin *pin)
{
    if (pin->fd >= 0) {
        close(pin->fd);
    }
    pin->fd = -1;
}

/* ---- one file ---- */

static bool same_page(int left, int right, uint64_t offset)
{
    char pages[2][PAGE_BYTES];
    ssize_t bytes = pread(left, pages[0], PAGE_BYTES, (off_t)offset);

    return bytes > 0 && pread(right, pages[1], PAGE_BYTES, (off_t)offset) == bytes &&
           memcmp(pages[0], pages[1], (size_t)bytes) == 0;
}

/* Returns whether a file begins and ends as the pinned one does: then it is a part of it, or all.
 */
static bool begins_alike(const struct copy_pin *pin, int fd, uint64_t bytes)
{
    uint64_t end = bytes / PAGE_BYTES * PAGE_BYTES;

    return bytes >= PAGE_BYTES && bytes <= pin->bytes && same_page(pin->fd, fd, 0) &&
           same_page(pin->fd, fd, end - PAGE_BYTES);
}

/* It is there whole. */
static bool is_kept(const struct copy_pin *pin, const char *path)
{
    struct stat is;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool kept = fd >= 0 && fstat(fd, &is) == 0 && (uint64_t)is.st_size == pin->bytes &&
                begins_alike(pin, fd, pin->bytes);

    if (fd >= 0) {
        close(fd);
    }
    return kept;
}

/* True: it is there by its second name. */
static bool link_file(const struct copy *copy, const struct copy_pin *pin, const char *path)
{
    char from[VFS_PATH_MAX];
    struct stat is, was;

    if (!vfs_path(from, copy->from, pin->name) || link(from, path) != 0) {
        return false;
    }
    bool same = stat(path, &is) == 0 && fstat(pin->fd, &was) == 0 && is.st_ino == was.st_ino &&
                is.st_dev == was.st_dev;

    if (!same) { /* another one has its name by now */
        unlink(path);
    }
    return same;
}

static bool copy_one_piece(const struct copy_pin *pin, int to, uint64_t at, char *piece,
                           size_t *got)
{
    ssize_t bytes = pread(pin->fd, piece, PIECE_BYTES, (off_t)at);

    *got = bytes > 0 ? (size_t)bytes : 0;
    return bytes >= 0 && vfs_write_all(vfs_real(), to, piece, *got, at);
}

/* Goes on where a part ends, if it is a part of this file. */
static bool fill_part(struct copy *copy, const struct copy_pin *pin, int to)
{
    struct stat is;
    uint64_t at = fstat(to, &is) == 0 ? (uint64_t)is.st_size / PAGE_BYTES * PAGE_BYTES : 0;
    char *piece = malloc(PIECE_BYTES);
    bool good = piece != NULL;

    at = begins_alike(pin, to, at) ? at : 0;
    good = good && ftruncate(to, (off_t)at) == 0;
    copy->done += at;
    while (good && at < pin->bytes) {
        size_t got;

        good = copy_one_piece(pin, to, at, piece, &got);
        if (good && got == 0) {
            errno = EIO; /* it is shorter than it was */
            good = false;
        }
        at += got;
        copy->done += got;
        progress_tell(&copy->progress, copy->done, copy->whole, pin->name);
    }
    free(piece);
    return good;
}

static bool copy_bytes(struct copy *copy, const struct copy_pin *pin, const char *path)
{
    char part[VFS_PATH_MAX + sizeof(COPY_PART)];

    snprintf(part, sizeof(part), "%s" COPY_PART, path);
    int to = open(part, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool good = to >= 0 && fill_part(copy, pin, to) && copy_give(copy, to) && fdatasync(to) == 0;
    int error = errno;

    if (to >= 0) {
        good = close(to) == 0 && good;
    }
    if (good && rename(part, path) == 0) {
        return true;
    }
    return copy_fail(copy, pin->name, strerror(good ? errno : error));
}

bool copy_file(struct copy *copy, const struct copy_pin *pin, bool linkable)
{
    char path[VFS_PATH_MAX];

    if (!vfs_path(path, copy->to, pin->name)) {
        return copy_fail(copy, pin->name, strerror(errno));
    }
    if (is_kept(pin, path)) {
        copy->kept++;
        copy->done += pin->bytes;
        return true;
    }
    (void)unlink(path);
    if (linkable && copy->link && link_file(copy, pin, path)) {
        copy->linked++;
        copy->done += pin->bytes;
        return true;
    }
    copy->copied++;
    return copy_bytes(copy, pin, path);
}

bool copy_write(struct copy *copy, const char *name, const void *bytes, size_t length,
                uint64_t size)
{
    char path[VFS_PATH_MAX];
    char part[VFS_PATH_MAX + sizeof(COPY_PART)];

    if (!vfs_path(path, copy->to, name)) {
        return copy_fail(copy, name, strerror(errno));
    }
    snprintf(part, sizeof(part), "%s" COPY_PART, path);
    int to = open(part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = to >= 0 && vfs_write_all(vfs_real(), to, bytes, length, 0) &&
                (size <= length || ftruncate(to, (off_t)size) == 0) && copy_give(copy, to) &&
                fdatasync(to) == 0;

    if (to >= 0) {
        good = close(to) == 0 && good;
    }
    return (good && rename(part, path) == 0) || copy_fail(copy, name, strerror(errno));
}

bool copy_remove(struct copy *copy, const char *name)
{
    char path[VFS_PATH_MAX];

    return (vfs_path(path, copy->to, name) && (unlink(path) == 0 || errno == ENOENT)) ||
           copy_fail(copy, name, strerror(errno));
}

bool copy_sync(struct copy *copy)
{
    return vfs_real()->functions->sync_dir(vfs_real(), copy->to) == 0 ||
           copy_fail(copy, NULL, strerror(errno));
}

/* Names of a copy that was killed before it had begun. */
static bool is_from_before(const char *name, const char *note)
{
    size_t length = strlen(note);

    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, DIR_LOCK_NAME) == 0 ||
           (strncmp(name, note, length) == 0 && strcmp(name + length, COPY_PART) == 0);
}

bool copy_is_empty(const char *path, const char *note)
{
    DIR *directory = opendir(path);
    bool empty = directory != NULL || errno == ENOENT;

    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        empty = empty && is_from_before(entry->d_name, note);
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return empty;
}
