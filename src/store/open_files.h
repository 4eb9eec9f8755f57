/*
 * open_files.h: a bounded number of descriptors for any number of files that are read.
 *
 * Each file of the set has a struct open_file, which lies in what reads it. Its descriptor is
 * opened when it is read and stays open until another file needs the room: then the one that was
 * not read for the longest time is closed. A file that is being read is never closed. If all are
 * being read, the next reader waits until one is not. This ends, since a reader holds one file at a
 * time; and nobody waits at all where the limit is not below the number of threads that read.
 *
 * The bound holds at every moment: what goes is closed before the next file is opened. Nothing is
 * locked while a file is opened or closed, and nobody waits for somebody else's opening: two who
 * want the same file at the same time may both open it, and the second one's is closed when it was
 * read.
 *
 * Thread rule: all functions by any thread that may block, at once; create and destroy by one, with
 * no file left in the set.
 */
#ifndef ROLLCALL_STORE_OPEN_FILES_H
#define ROLLCALL_STORE_OPEN_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "store/cold_lists.h"
#include "store/vfs.h"

struct open_files;

/* The set's; zeroed: a file that is closed. */
struct open_file {
    bool open;
    int fd;                /* if it is open */
    unsigned readers;      /* of that one */
    struct cold_link link; /* open, and nobody reads it: in the order of use */
};

struct open_files_stats {
    uint64_t limit;
    uint64_t open;   /* now, those being opened too */
    uint64_t opened; /* so far, those that failed too */
    uint64_t waits;  /* for a reader of another file, as all that may be open were being read */
};

/* limit: at least 1. Never NULL. */
struct open_files *open_files_create(struct vfs *vfs, unsigned limit);
void open_files_destroy(struct open_files *files); /* NULL: no-op */

/* Takes over an open descriptor, as one just read; closes it if there is no room for it. */
void open_files_add(struct open_files *files, struct open_file *file, int fd);
/* Closes it for good. CHECKs that nobody reads it. */
void open_files_remove(struct open_files *files, struct open_file *file);

/* Opens the file, and sees that it is the right one; -1: it cannot, and `context` knows why. */
typedef int open_file_fn(void *context);

/* A descriptor of it, valid until let go; -1: `open` said so. */
int open_files_hold(struct open_files *files, struct open_file *file, open_file_fn *open,
                    void *context);
/* errno stays. */
void open_files_let_go(struct open_files *files, struct open_file *file, int fd);

void open_files_stats(struct open_files *files, struct open_files_stats *stats);

#endif
