/*
 * verb.h: the table of verbs, and what they have in common: exit statuses, complaints.
 */
#ifndef ROLLCALL_TOOLS_VERB_H
#define ROLLCALL_TOOLS_VERB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/exit_status.h"

#define VERB_COMPLAINT_MAX 8192
#define VERB_JSON_SAFE     (1ull << 53) /* a double holds no larger id; with --json-safe-ids: text */

/* The first line of an export that is not of all ids begins so; its part follows. */
#define VERB_EXPORT_NOTE "# rollcall export"

enum verb_exit {
    VERB_SOUND = EXIT_STATUS_DONE,
    VERB_DAMAGED = EXIT_STATUS_FAILED, /* something is not as it was written, or is missing */
    VERB_USAGE = EXIT_STATUS_USAGE, /* or nothing could be judged: no such file, none of ours … */
};

struct online_verb;

struct verb {
    const char *name;
    int (*main)(int argc, char **argv); /* argv[0] is the verb; NULL: it is as `online` says */
    const struct online_verb *online;
    const char *help;
};
extern const struct verb verbs[];
extern const size_t verb_count;
const char *verb_nearest(const char *wrong); /* NULL: none is near */

const struct verb *verb_find(const char *name); /* NULL: none */
int verb_refuse(const char *name);              /* tells that there is none; VERB_USAGE */
int verb_run(const struct verb *verb, int argc, char **argv);
void verb_usage(FILE *to);
/* Verbs. argv[0] is the verb; they return the exit status. */
int verb_help_main(int argc, char **argv); /* help, help VERB */
int backup_main(int argc, char **argv);
int restore_main(int argc, char **argv);
int export_main(int argc, char **argv);
int load_main(int argc, char **argv);

/* `rollcall: ...` and a newline to `to`; returns VERB_USAGE. */
__attribute__((format(printf, 2, 3))) enum verb_exit verb_complain(FILE *to, const char *format,
                                                                   ...);
/* What this thread complained of last, to stderr; "": nothing. */
const char *verb_last_complaint(void);

bool verb_ends_with(const char *name, const char *suffix); /* and has something before it */
/* Returns what stands after the last slash. */
const char *verb_base_name(const char *path);

#endif
