/*
 * vfs_sim.h: a file system in memory for tests, behind the table of store/vfs.h. It keeps what a
 * program sees and, apart, what is durable; it can lose power, kill the program, fail any call,
 * fill up, damage a bit, stop a thread before a call, and count.
 *
 * What a power cut leaves (vfs_sim_power_cut):
 *   - of each file, for every sector of 512 bytes by itself: the version of its last fdatasync, the
 *     latest, or one written between (the last 7 of those are kept); likewise the file's size;
 *   - of each directory, any of the creates, renames, links and unlinks since its sync_dir: each
 * happened as a whole or not at all, and of those that happened the last one of a name holds. A
 * file's name is never made durable by an fdatasync of the file. Cuts of different seeds leave
 * nothing, everything, a few, most, or all up to some point.
 *
 * Processes: vfs_sim_vfs() is the table of the present process. A power cut or a kill ends that
 * process: every further call through its table, or one that is just held by the hook, changes
 * nothing and fails with EBADF, so its threads can be wound up in peace. Ask vfs_sim_vfs() again
 * for the process that comes after.
 *
 * Paths: absolute and relative ones are the same; `.` and doubled slashes are left out, `..` is
 * unknown. The root exists. A rename to another directory gives EXDEV, of a directory EISDIR; a
 * link within one EPERM. Descriptors are never used again and never those of the system. O_DIRECT
 * wants memory, offset and size in multiples of 4096 bytes (EINVAL). list() gives the names in an
 * order drawn from the seed.
 *
 * One thread and one seed: the same again each time. Thread rule: all functions by any thread, but
 * create and destroy. A failed malloc ends the test.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_VFS_SIM_H
#define ROLLCALL_TESTS_SUPPORT_VFS_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/vfs.h"

enum vfs_sim_op {
    VFS_SIM_OPEN,
    VFS_SIM_CLOSE,
    VFS_SIM_PREAD,
    VFS_SIM_PWRITE,
    VFS_SIM_FDATASYNC,
    VFS_SIM_WRITEBACK,
    VFS_SIM_READAHEAD,
    VFS_SIM_ALLOCATE,
    VFS_SIM_TRUNCATE,
    VFS_SIM_SIZE,
    VFS_SIM_RENAME,
    VFS_SIM_LINK,
    VFS_SIM_UNLINK,
    VFS_SIM_MKDIR,
    VFS_SIM_SYNC_DIR,
    VFS_SIM_LIST,
    VFS_SIM_LOCK,
    VFS_SIM_OPS,
    VFS_SIM_ANY = VFS_SIM_OPS, /* in a fault or a count: every operation */
};

struct vfs_sim;

struct vfs_sim *vfs_sim_create(uint64_t seed);
/* No call is in flight. NULL: no-op. */
void vfs_sim_destroy(struct vfs_sim *sim);
/* The table of the present process; valid as memory until destroy. */
struct vfs *vfs_sim_vfs(struct vfs_sim *sim);
/* "pread" */
const char *vfs_sim_op_name(enum vfs_sim_op op);

/* ---- the end of a process; both may be called from the hook ---- */

/* What is left depends on what was written and on this seed alone. It is durable afterwards. */
void vfs_sim_power_cut(struct vfs_sim *sim, uint64_t seed);
/* All that was written stays, what is not durable stays so. */
void vfs_sim_kill(struct vfs_sim *sim);

/* ---- faults ---- */

enum vfs_sim_fault_kind {
    VFS_SIM_FAIL,  /* nothing happens (a close closes all the same): -1 with `error` */
    VFS_SIM_SHORT, /* pread, pwrite: at most `bytes` are moved */
    VFS_SIM_LOSE,  /* pwrite: says it wrote all, writes nothing */
    /*
     * fdatasync fails with `error`, and the sectors that were not durable count as clean: they are
     * read as written, but no later fdatasync makes them durable unless they are written again. So
     * does Linux. All of them, or each with an even chance while the others are durable.
     */
    VFS_SIM_SYNC_LOST,
    VFS_SIM_SYNC_PARTLY_LOST,
};

/* What is zero is the usual: every call, on every path, each time, for ever, EIO. */
struct vfs_sim_fault {
    enum vfs_sim_op op; /* mind that 0 is VFS_SIM_OPEN */
    const char *path;   /* a part of the path; NULL: any. A rename's path is the new one */
    unsigned first;  /* of the calls that match, counted from now: the first it may hit, from 1 */
    unsigned times;  /* how many it hits, then it is spent; 0: no end */
    unsigned one_in; /* hits with a chance of one in so many, drawn from the seed; 0: always */
    enum vfs_sim_fault_kind kind;
    int error;
    size_t bytes;
};

/* The first rule that hits a call decides. Returns the rule's number. `path` is copied. */
unsigned vfs_sim_fault(struct vfs_sim *sim, const struct vfs_sim_fault *fault);
uint64_t vfs_sim_fault_hits(struct vfs_sim *sim, unsigned number);
void vfs_sim_fault_end(struct vfs_sim *sim, unsigned number); /* it hits no more */
void vfs_sim_faults_end(struct vfs_sim *sim);                 /* none does */

/*
 * Bytes the disk holds; without end at first. Beyond it allocate gives ENOSPC, pwrite writes the
 * part that has room, then ENOSPC. Files take blocks of 4096 bytes up to their end, holes too; what
 * is unlinked takes room while it is open. What is allocated can always be written.
 */
void vfs_sim_set_capacity(struct vfs_sim *sim, uint64_t bytes);
uint64_t vfs_sim_used(struct vfs_sim *sim); /* bytes taken */

/* Turns a bit (0..7) of a byte over, on the disk and in memory. False: no such file or byte. */
bool vfs_sim_flip(struct vfs_sim *sim, const char *path, uint64_t offset, unsigned bit);

/* Whether files can be opened with O_DIRECT (EINVAL if not). True at first. */
void vfs_sim_set_direct(struct vfs_sim *sim, bool can);

/* ---- the hook ---- */

/*
 * Called before each operation does anything, by the thread that calls it, with nothing locked: it
 * may block, and use everything here. path stays valid until vfs_sim_destroy().
 */
typedef void vfs_sim_hook_fn(void *context, enum vfs_sim_op op, const char *path);
void vfs_sim_hook(struct vfs_sim *sim, vfs_sim_hook_fn *hook, void *context); /* NULL: none */

/* ---- counters ---- */

/*
 * Calls, the failed ones too, and bytes moved (pread, pwrite, readahead), of files with `path` in
 * their path. NULL: all. A file counts under the name it had at the time.
 */
uint64_t vfs_sim_calls(struct vfs_sim *sim, enum vfs_sim_op op, const char *path);
uint64_t vfs_sim_bytes(struct vfs_sim *sim, enum vfs_sim_op op, const char *path);
void vfs_sim_counts_clear(struct vfs_sim *sim);

/* ---- boot() is another number after each power cut ---- */

void vfs_sim_forget_boot(struct vfs_sim *sim); /* it is not known until the next one */

/* ---- the clock: now_us() is the real one until one of these is called ---- */

void vfs_sim_set_clock(struct vfs_sim *sim, uint64_t us);
void vfs_sim_advance(struct vfs_sim *sim, uint64_t us);

#endif
