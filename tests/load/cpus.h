/*
 * cpus.h: the processors that the threads of a bench are pinned to, from a list as in
 * "0,2-5": thread i gets the i-th of it, modulo its length. A processor may stand in it twice.
 */
#ifndef ROLLCALL_TESTS_LOAD_CPUS_H
#define ROLLCALL_TESTS_LOAD_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_CPUS_MAX       1024u /* in a list */
#define LOAD_CPU_LAST       (CPU_SETSIZE - 1)
#define LOAD_CPUS_ERROR_MAX 512u

struct load_cpus {
    size_t count; /* 0: threads are not pinned */
    uint16_t cpus[LOAD_CPUS_MAX];
};

/*
 * Reads a list of processors, each of which must be among the allowed. On false `error` says what
 * is wrong and what would be right.
 */
bool load_cpus_parse(const char *list, const cpu_set_t *allowed, struct load_cpus *cpus,
                     char error[LOAD_CPUS_ERROR_MAX]);

/* The same with the processors that the calling thread may run on now. */
bool load_cpus_parse_here(const char *list, struct load_cpus *cpus,
                          char error[LOAD_CPUS_ERROR_MAX]);

/*
 * Pins the calling thread, which is the run's thread of this number, from 0; threads it creates
 * later inherit that. 0, or an errno. NULL, no processors: a no-op.
 */
int load_cpus_pin(const struct load_cpus *cpus, uint64_t thread);

#endif
