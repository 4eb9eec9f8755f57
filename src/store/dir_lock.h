/*
 * dir_lock.h: one user of a data directory at a time.
 *
 * What is locked is the directory itself: whatever file in it is removed or replaced, a process
 * that opens the directory finds the lock. DIR/lock holds the process id of the holder, for
 * messages alone. Where a file system cannot lock a directory (NFS locks only what may be written),
 * DIR/lock is locked in its place, and must not be removed there.
 *
 * Who has the lock uses the directory by lock.vfs: then its files are always those of the directory
 * that is locked. Were they found by its path, a directory that was moved away would have its next
 * files made, and replaced, in whatever was made in its place, which another may have locked.
 *
 * It is an flock: it ends with the process, and it is seen by all processes of a machine, in other
 * containers too; by another machine only if the file system passes it on, as NFS does.
 *
 * Thread rule: a lock belongs to one thread.
 */
#ifndef ROLLCALL_STORE_DIR_LOCK_H
#define ROLLCALL_STORE_DIR_LOCK_H

#include <stdbool.h>

#include "store/vfs.h"

#define DIR_LOCK_NAME      "lock"
#define DIR_LOCK_WORDS_MAX 80 /* bytes */

struct dir_lock {
    struct vfs *vfs; /* the directory's files; NULL: not taken */
    int directory;   /* open on it */
    int fd;          /* what is locked: that, or DIR/lock */
    bool weak;       /* on DIR/lock, which must not be removed */
    long holder;     /* HELD: the process that has it; 0: not known, or it has not signed */
};

enum dir_lock_result {
    DIR_LOCK_TAKEN,
    DIR_LOCK_HELD,   /* by another */
    DIR_LOCK_FAILED, /* errno */
};

/* Makes no file, but DIR/lock where it is weak. */
enum dir_lock_result dir_lock_take(struct vfs *vfs, const char *directory, struct dir_lock *lock);
/* The same for one that changes nothing: it makes no file, and does not sign. Where the lock is
 * weak and DIR/lock is not there, or may not be written: FAILED. */
enum dir_lock_result dir_lock_take_reading(struct vfs *vfs, const char *directory,
                                           struct dir_lock *lock);
/* HELD: writes who has it, for a sentence that begins with the directory's name. Returns `words`.
 */
const char *dir_lock_words(const struct dir_lock *lock, char words[DIR_LOCK_WORDS_MAX]);
/* Writes the process id for others to name. False: errno. */
bool dir_lock_sign(struct vfs *vfs, const char *directory);
/* Ends lock.vfs with it. Not taken: no-op. */
void dir_lock_give(struct dir_lock *lock);

#endif
