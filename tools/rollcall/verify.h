/*
 * verify.h: the verb `rollcall verify DIR`: reads a whole data directory, without a daemon, and
 * says whether every checksum, order and count is right. What it looks at is in DESIGN.md beside
 * this file. It changes nothing.
 */
#ifndef ROLLCALL_TOOLS_VERIFY_H
#define ROLLCALL_TOOLS_VERIFY_H

#include <stdbool.h>
#include <stdio.h>

#include "store/vfs.h"
#include "tools/rollcall/verb.h"

struct verify_options {
    const char *directory;
    bool quiet;    /* findings only: no notes, no summary, no warning */
    bool progress; /* a line on `errors` that is written over again and again */
};

/*
 * Findings, notes and the summary go to `out`, what kept it from looking to `errors`. SOUND;
 * DAMAGED: at least one finding; USAGE: no finding, but something could not be judged (no data
 * directory, a file of a newer version).
 */
enum verb_exit verify_directory(struct vfs *vfs, const struct verify_options *options, FILE *out,
                                FILE *errors);

/* The same for the holder of the directory's lock. */
enum verb_exit verify_locked(struct vfs *vfs, const struct verify_options *options, FILE *out,
                             FILE *errors);

/* argv[0] is the verb. Returns the exit status. */
int verify_main(int argc, char **argv);

#endif
