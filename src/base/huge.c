/* huge.c: reads smaps, and keeps what it said. */
#include "base/huge.h"

#include "base/log.h"
#include "base/readable.h"
#include "base/thread.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct range {
    uint64_t start, end;
    struct huge_bytes bytes;
};

struct look {
    struct huge_bytes sums;
    size_t count;
    struct range ranges[HUGE_RANGES_MAX];
};

static struct {
    pthread_mutex_t lock; /* of what follows; held for no call of the system */
    pthread_cond_t end;
    bool started, ending;
    struct look seen;
    pthread_t thread;
    struct look next; /* the looking thread's */
    bool warned;      /* likewise */
} huge = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Reads the bytes of a line "Name:   12 kB". */
static bool read_size(const char *line, const char *name, uint64_t *bytes)
{
    size_t length = strlen(name);
    if (strncmp(line, name, length) != 0) {
        return false;
    }
    *bytes = strtoull(line + length, NULL, 10) * 1024;
    return true;
}

/* A mapping is read to its last line, which has its flags. */
static void end_range(struct look *look, const struct range *range, const char *flags)
{
    if (strstr(flags, " hg") == NULL) {
        return;
    }
    look->sums.resident += range->bytes.resident;
    look->sums.huge += range->bytes.huge;
    if (look->count < HUGE_RANGES_MAX) {
        look->ranges[look->count++] = *range;
    }
}

static void read_smaps(FILE *smaps, struct look *look)
{
    static const char flags[] = "VmFlags:";
    struct range range = {0};
    char *line = NULL;
    size_t room = 0;
    look->count = 0;
    look->sums = (struct huge_bytes){0, 0};
    while (getline(&line, &room, smaps) > 0) {
        uint64_t start, end;
        bool field = line[0] >= 'A' && line[0] <= 'Z'; /* else addresses, in lower case */
        if (!field && sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &start, &end) == 2) {
            range = (struct range){.start = start, .end = end};
        } else if (strncmp(line, flags, sizeof(flags) - 1) == 0) {
            end_range(look, &range, line + sizeof(flags) - 1);
        } else if (!read_size(line, "Rss:", &range.bytes.resident)) {
            (void)read_size(line, "AnonHugePages:", &range.bytes.huge);
        }
    }
    free(line);
}

void huge_look(FILE *smaps)
{
    read_smaps(smaps, &huge.next);
    pthread_mutex_lock(&huge.lock);
    huge.seen.sums = huge.next.sums;
    huge.seen.count = huge.next.count;
    memcpy(huge.seen.ranges, huge.next.ranges, huge.next.count * sizeof(huge.next.ranges[0]));
    pthread_mutex_unlock(&huge.lock);
}

bool huge_are_few(struct huge_bytes sums)
{
    return sums.resident >= HUGE_FEW_LEAST && (double)sums.huge < HUGE_FEW * (double)sums.resident;
}

/* The warning comes once, until there were enough huge pages again. */
static void warn_of_few(void)
{
    struct huge_bytes sums = huge_sums();
    bool few = huge_are_few(sums);
    char resident[READABLE_MAX], in_huge[READABLE_MAX];
    if (few && !huge.warned) {
        log_warning("of %s of tables only %s lie in huge pages, and each look-up misses the TLB: "
                    "/sys/kernel/mm/transparent_hugepage/enabled should say madvise or always, and "
                    "memory be free in pieces of 2 MiB (a restart soon after boot helps)",
                    readable_bytes(resident, (double)sums.resident),
                    readable_bytes(in_huge, (double)sums.huge));
    }
    huge.warned = few;
}

static void look_at_own(void)
{
    FILE *smaps = fopen("/proc/self/smaps", "re");
    if (smaps == NULL) {
        return; /* on a system without smaps the figures stay 0 */
    }
    huge_look(smaps);
    fclose(smaps);
    warn_of_few();
}

/* Waits for the next look. False: the thread is to end. */
static bool sleep_for(time_t seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    int failed = 0;
    pthread_mutex_lock(&huge.lock);
    while (!huge.ending && failed == 0) {
        failed = pthread_cond_timedwait(&huge.end, &huge.lock, &until);
    }
    bool ending = huge.ending;
    pthread_mutex_unlock(&huge.lock);
    return !ending;
}

static void *huge_run(void *unused)
{
    (void)unused;
    for (time_t seconds = HUGE_FIRST_S; sleep_for(seconds); seconds = HUGE_LOOK_S) {
        look_at_own();
    }
    return NULL;
}

bool huge_start(void)
{
    thread_cond_init(&huge.end);
    huge.ending = false;
    huge.started = thread_start(&huge.thread, huge_run, NULL, "huge pages");
    return huge.started;
}

void huge_end(void)
{
    if (!huge.started) {
        return;
    }
    pthread_mutex_lock(&huge.lock);
    huge.ending = true;
    pthread_cond_signal(&huge.end);
    pthread_mutex_unlock(&huge.lock);
    pthread_join(huge.thread, NULL);
    huge.started = false;
}

/* Returns how many of a mapping's bytes lie in a part of it. */
static uint64_t share_of(uint64_t bytes, uint64_t part, uint64_t whole)
{
    return part == whole ? bytes : (uint64_t)((double)bytes * (double)part / (double)whole);
}

/* Returns the first mapping that ends after an address: smaps has them in the order of their
 * addresses. */
static size_t first_behind(const struct look *look, uint64_t address)
{
    size_t low = 0, high = look->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (look->ranges[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct huge_bytes huge_of(const void *start, uint64_t bytes)
{
    uint64_t from = (uintptr_t)start, to = from + bytes;
    struct huge_bytes sum = {0, 0};
    pthread_mutex_lock(&huge.lock);
    for (size_t i = first_behind(&huge.seen, from); i < huge.seen.count; i++) {
        const struct range *range = &huge.seen.ranges[i];
        uint64_t low = from > range->start ? from : range->start;
        uint64_t high = to < range->end ? to : range->end;
        if (low >= high) {
            break;
        }
        sum.resident += share_of(range->bytes.resident, high - low, range->end - range->start);
        sum.huge += share_of(range->bytes.huge, high - low, range->end - range->start);
    }
    pthread_mutex_unlock(&huge.lock);
    return sum;
}

struct huge_bytes huge_sums(void)
{
    pthread_mutex_lock(&huge.lock);
    struct huge_bytes sums = huge.seen.sums;
    pthread_mutex_unlock(&huge.lock);
    return sums;
}
