/*
 * descriptors.h: who may have how many of the process's file descriptors.
 *
 * The limit (RLIMIT_NOFILE) is raised to the hard limit, at most PROCESS_DESCRIPTORS_MOST, or to
 * what is needed if the system lets it be more, and divided:
 *
 *   own          loops, listeners, lock, journal, whatever a checkpoint or a start has open; of
 *                each follower its connection and one file, also while it gets a copy
 *   files        of dumped tables, open at one time (store/open_files.h). None without data.
 *   connections  the rest, at most max-connections
 *
 * So clients never take what the store needs. Where the limit is too low for all, files get an
 * eighth of it (not fewer than threads read, not more than DESCRIPTORS_FILES_MOST), and
 * max-connections is lowered to the rest, with a warning, as Redis does with maxclients: with fewer
 * clients the daemon is of use, and they are refused in words. If there is no rest it does not
 * start.
 *
 * Main thread.
 */
#ifndef ROLLCALL_DAEMON_DESCRIPTORS_H
#define ROLLCALL_DAEMON_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/settings.h"

#define DESCRIPTORS_FILES_MOST 1024

struct descriptors {
    uint64_t own, files, connections;
};

/* What these settings would have without a limit. */
void descriptors_wanted(const struct settings *settings, struct descriptors *wanted);
/* The least that a start needs, with one connection. */
uint64_t descriptors_least(const struct settings *settings);
/* Divides `limit`. False: it is below descriptors_least(). */
bool descriptors_divide(const struct settings *settings, uint64_t limit,
                        struct descriptors *shares);

/* At a start: raises the limit, and sets cold.open_files and, maybe lower, max_connections. False,
 * after logging it: there are not enough. */
bool descriptors_provide(struct settings *settings);
/* At a reload: files keep what they were given at the start. */
void descriptors_provide_again(struct settings *next, const struct settings *now);

#endif
