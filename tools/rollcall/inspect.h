/*
 * inspect.h: the verb `rollcall inspect FILE`: a file of a data directory as text. It tells what
 * kind it is by its first bytes, or else by its name.
 */
#ifndef ROLLCALL_TOOLS_INSPECT_H
#define ROLLCALL_TOOLS_INSPECT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "store/vfs.h"
#include "tools/rollcall/verb.h"

#define INSPECT_LIMIT_DEFAULT 100
#define INSPECT_NO_PAGE       UINT64_MAX

struct inspect_options {
    const char *path;
    uint64_t limit; /* lines of records, of entries of a section, of files of a space; 0: all */
    uint64_t page;  /* of a table file: this page only. INSPECT_NO_PAGE: none */
};

/*
 * The listing goes to `out`, what is wrong with the file to `errors`. SOUND: what was read is;
 * DAMAGED; USAGE: it cannot be opened, is none of ours or of a newer version, has no such page.
 */
enum verb_exit inspect_file(struct vfs *vfs, const struct inspect_options *options, FILE *out,
                            FILE *errors);

/* argv[0] is the verb. Returns the exit status. */
int inspect_main(int argc, char **argv);

#endif
