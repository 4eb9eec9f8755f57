/* files.h: files of a vfs in one call, for the tests of store. All abort the test on an error. */
#ifndef ROLLCALL_TESTS_UNIT_STORE_FILES_H
#define ROLLCALL_TESTS_UNIT_STORE_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "store/vfs.h"
#include "tests/support/vfs_sim.h"

#define FILES_BYTES_MAX (1u << 20)

/* A call of the table failed with this errno. */
#define assert_errno(call, number)                                                                 \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_int_equal((call), -1);                                                              \
        assert_int_equal(errno, (number));                                                         \
    } while (0)

static inline int files_open(struct vfs *vfs, const char *path, int flags)
{
    int fd = vfs->functions->open(vfs, path, flags);
    assert_true(fd >= 0);
    return fd;
}

static inline void files_close(struct vfs *vfs, int fd)
{
    assert_int_equal(vfs->functions->close(vfs, fd), 0);
}

/* Writes a text at the beginning of a file, new or not; `synced`: makes it durable, not its name.
 */
static inline void files_write(struct vfs *vfs, const char *path, const char *text, bool synced)
{
    int fd = files_open(vfs, path, O_RDWR | O_CREAT);
    assert_true(vfs_write_all(vfs, fd, text, strlen(text), 0));
    assert_true(!synced || vfs->functions->fdatasync(vfs, fd) == 0);
    files_close(vfs, fd);
}

static inline bool files_exist(struct vfs *vfs, const char *path)
{
    int fd = vfs->functions->open(vfs, path, O_RDONLY);
    assert_true(fd >= 0 || errno == ENOENT);
    if (fd >= 0) {
        files_close(vfs, fd);
    }
    return fd >= 0;
}

/* Is this, no more and no less, what the file holds? False too if there is none. */
static inline bool files_hold(struct vfs *vfs, const char *path, const char *text)
{
    size_t length = 0;
    char *found = vfs_read_file(vfs, path, FILES_BYTES_MAX, &length);
    bool same = found && length == strlen(text) && memcmp(found, text, length) == 0;
    free(found);
    return same;
}

static inline void files_sync_dir(struct vfs *vfs, const char *path)
{
    assert_int_equal(vfs->functions->sync_dir(vfs, path), 0);
}

/* A hook of a simulated disk: cuts the power before its calls_left-th call from now. */
struct files_cutter {
    struct vfs_sim *sim;
    unsigned calls_left;
    uint64_t seed;
};

static inline void files_cut(void *context, enum vfs_sim_op op, const char *path)
{
    (void)op;
    (void)path;
    struct files_cutter *cutter = context;
    if (cutter->calls_left > 0 && --cutter->calls_left == 0) {
        vfs_sim_power_cut(cutter->sim, cutter->seed);
    }
}

#endif
