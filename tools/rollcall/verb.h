/*
 * verb.h: what the verbs that look at files have in common: exit statuses, complaints, sizes.
 */
#ifndef ROLLCALL_TOOLS_VERB_H
#define ROLLCALL_TOOLS_VERB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/exit_status.h"

enum verb_exit {
    VERB_SOUND = EXIT_STATUS_DONE,
    VERB_DAMAGED = EXIT_STATUS_FAILED, /* something is not as it was written, or is missing */
    VERB_USAGE = EXIT_STATUS_USAGE, /* or nothing could be judged: no such file, none of ours … */
};

/* `rollcall: ...` and a newline to `to`; returns VERB_USAGE. */
__attribute__((format(printf, 2, 3))) enum verb_exit verb_complain(FILE *to, const char *format,
                                                                   ...);

bool verb_ends_with(const char *name, const char *suffix); /* and has something before it */
/* What stands behind the last slash. */
const char *verb_base_name(const char *path);

#endif
