/*
 * settings_run.h: what the tests of settings share: a run with a file and flags, in a folder of the
 * test's own, which is the working directory meanwhile.
 */
#ifndef ROLLCALL_TESTS_SETTINGS_RUN_H
#define ROLLCALL_TESTS_SETTINGS_RUN_H

#include <stddef.h>

#include "config/settings.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define MIB           (1ull << 20)
#define FEED          "spaces:\n  feed: {kind: counter, slots: {like: 20}}\n"

struct run {
    enum settings_action action;
    struct settings *settings;
    char *out, *err; /* what was printed */
};

/* Group setup and teardown: the folder. */
int settings_run_enter(void **unused);
int settings_run_leave(void **unused);

/* Writes a file into the folder. */
void write_file(const char *name, const char *text, size_t length);

/*
 * Loads settings with a file of that text, called t.yaml (none if NULL), and flags, split at
 * blanks; a
 * '~' stands for a blank inside an argument.
 */
void start(struct run *run, const char *yaml, const char *flags);
void finish(struct run *run);

/* As start, and fails unless it is to run without a word. */
struct settings *good(struct run *run, const char *yaml, const char *flags);
/* Fails unless it is refused with exactly these words. */
void refused(const char *yaml, const char *flags, const char *words);

#endif
