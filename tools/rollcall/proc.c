#include "tools/rollcall/proc.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 320
#define LINE_BYTES 1024

/* First line of a file. */
static bool read_line(const char *path, char line[LINE_BYTES])
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool ok = fgets(line, LINE_BYTES, file) != NULL;
    fclose(file);
    if (!ok) {
        errno = ESRCH; /* the process ended between open and read */
    }
    return ok;
}

static uint64_t ticks_to_us(uint64_t ticks)
{
    long per_second = sysconf(_SC_CLK_TCK);
    return ticks * 1000000u / (uint64_t)(per_second > 0 ? per_second : 100);
}

static uint64_t thread_ns(uint64_t pid, const char *thread)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    uint64_t ns = 0;

    snprintf(path, sizeof(path), "/proc/%" PRIu64 "/task/%s/schedstat", pid, thread);
    if (!read_line(path, line) || sscanf(line, "%" SCNu64, &ns) != 1) {
        return 0;
    }
    return ns;
}

static uint64_t threads_ns(uint64_t pid)
{
    char path[PATH_BYTES];
    uint64_t ns = 0;

    snprintf(path, sizeof(path), "/proc/%" PRIu64 "/task", pid);
    DIR *threads = opendir(path);
    if (threads == NULL) {
        return 0;
    }
    for (struct dirent *entry = readdir(threads); entry != NULL; entry = readdir(threads)) {
        if (entry->d_name[0] != '.') {
            ns += thread_ns(pid, entry->d_name);
        }
    }
    closedir(threads);
    return ns;
}

bool proc_cpu_read(uint64_t pid, struct proc_cpu *cpu)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    uint64_t user = 0, system = 0;

    snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat", pid);
    if (!read_line(path, line)) {
        errno = errno == ENOENT ? ESRCH : errno;
        return false;
    }
    /* The command stands in parentheses and may hold anything: fields count from the last one. */
    const char *rest = strrchr(line, ')');
    if (rest == NULL ||
        sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user,
               &system) != 2) {
        errno = EINVAL;
        return false;
    }
    cpu->user_us = ticks_to_us(user);
    cpu->system_us = ticks_to_us(system);
    cpu->total_ns = threads_ns(pid);
    return true;
}

static uint64_t difference(uint64_t before, uint64_t after)
{
    return after > before ? after - before : 0;
}

struct proc_cpu proc_cpu_between(const struct proc_cpu *before, const struct proc_cpu *after)
{
    struct proc_cpu cpu = {
        .user_us = difference(before->user_us, after->user_us),
        .system_us = difference(before->system_us, after->system_us),
        .total_ns = difference(before->total_ns, after->total_ns),
    };
    return cpu;
}

uint64_t proc_cpu_total_ns(const struct proc_cpu *cpu)
{
    return cpu->total_ns != 0 ? cpu->total_ns : (cpu->user_us + cpu->system_us) * 1000u;
}
