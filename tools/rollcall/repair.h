/*
 * repair.h: the verb `rollcall repair DIR`: makes a data directory one that a daemon starts with
 * again. What it does is in DESIGN.md beside this file. Without `yes` it changes nothing and says
 * what it would do.
 */
#ifndef ROLLCALL_TOOLS_REPAIR_H
#define ROLLCALL_TOOLS_REPAIR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "store/vfs.h"
#include "tools/rollcall/verb.h"

#define REPAIR_DROP_NOTHING UINT64_MAX
#define REPAIR_KEPT_NAME    "lost" /* a directory in DIR: what was replaced */

struct repair_options {
    const char *directory;
    bool yes;
    uint64_t drop_from; /* LSN: records of the journal from there on are given up */
};

/*
 * SOUND: nothing is, or is left, to be repaired; DAMAGED: something is (without `yes`: would be
 * repaired, or cannot be); USAGE: no data directory, in use, or of a newer version.
 */
enum verb_exit repair_directory(struct vfs *vfs, const struct repair_options *options, FILE *out,
                                FILE *errors);

/* argv[0] is the verb. Returns the exit status. */
int repair_main(int argc, char **argv);

#endif
