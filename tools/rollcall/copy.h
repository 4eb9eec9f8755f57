/*
 * copy.h: files of a data directory brought to another one, whole and durable, by link or copy.
 *
 * A file that is open cannot be lost: a checkpoint that unlinks it takes only its name. So a copy
 * of a directory that is in use first opens all it needs (copy_pin), which takes no time, and then
 * copies at leisure. Nothing is asked of the daemon, a kill leaves nothing behind, and the disk
 * holds for a copy at most what was there when it began.
 *
 * A copy is written as NAME.part and renamed when it is durable. A part that a kill left is
 * continued; a whole file stays.
 *
 * Thread rule: one thread.
 */
#ifndef ROLLCALL_TOOLS_COPY_H
#define ROLLCALL_TOOLS_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/manifest.h"
#include "tools/rollcall/progress.h"

#define COPY_ERROR_MAX 1024
#define COPY_PART      ".part"

struct copy_pin {
    char name[MANIFEST_FILE_NAME_MAX + 1];
    int fd;
    uint64_t bytes;
};

struct copy {
    const char *from, *to;
    bool link;   /* table files by link, where the file system can */
    uid_t owner; /* of what is made, where this is root */
    gid_t group;
    struct progress progress;
    uint64_t done, whole;          /* bytes */
    uint64_t linked, copied, kept; /* files */
    char error[COPY_ERROR_MAX];
};

/* Owner as that of `from`. False with `error`. */
bool copy_begin(struct copy *copy, const char *from, const char *to);
/* Makes the directory, unless it is there, and gives it to the owner. */
bool copy_make_directory(struct copy *copy);

enum copy_found { COPY_OPEN, COPY_ABSENT, COPY_FAILED };
enum copy_found copy_pin(struct copy *copy, const char *name, struct copy_pin *pin);
void copy_unpin(struct copy_pin *pin);
/* Lets this process open this many files, up to its hard limit. False with `error`. */
bool copy_allow_files(struct copy *copy, uint64_t count);

/* linkable: nobody ever changes it. False with `error`. */
bool copy_file(struct copy *copy, const struct copy_pin *pin, bool linkable);
/* A new file NAME of these bytes, then zeroes up to `size`; durable. */
bool copy_write(struct copy *copy, const char *name, const void *bytes, size_t length,
                uint64_t size);
/* Removes it; one that is not there is fine. */
bool copy_remove(struct copy *copy, const char *name);
bool copy_sync(struct copy *copy); /* the directory */
/* Is nothing in it but a lock and what a kill left of the first file, `note`? Also if there is no
 * such directory. */
bool copy_is_empty(const char *directory, const char *note);

bool copy_fail(struct copy *copy, const char *name, const char *what);

#endif
