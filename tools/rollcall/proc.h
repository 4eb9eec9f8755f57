/*
 * proc.h: the processor time of a process, read from /proc.
 *
 * user and system come from /proc/PID/stat and move in clock ticks (10 ms as a rule); `total` comes
 * from the threads' schedstat in nanoseconds where the kernel keeps it. Cost: a file, and one more
 * a thread. Any thread.
 */
#ifndef ROLLCALL_TOOLS_PROC_H
#define ROLLCALL_TOOLS_PROC_H

#include <stdbool.h>
#include <stdint.h>

#define PROC_PID_MAX 4194304u /* the kernel's own limit */

struct proc_cpu {
    uint64_t user_us;
    uint64_t system_us;
    uint64_t total_ns; /* 0: the kernel does not say; use user_us + system_us */
};

/* What the process has used since it began. False with errno set: no such process, not readable. */
bool proc_cpu_read(uint64_t pid, struct proc_cpu *cpu);

/* What was used from `before` to `after`. */
struct proc_cpu proc_cpu_between(const struct proc_cpu *before, const struct proc_cpu *after);

/* All processor time in nanoseconds, from the finer source. */
uint64_t proc_cpu_total_ns(const struct proc_cpu *cpu);

#endif
