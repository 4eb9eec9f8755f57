/* memory.c: regions by mmap, small objects by malloc. */
#include "base/memory.h"

#include "base/check.h"

#define POPULATE_STEP_BYTES (16u << 20) /* between two looks at the stop flag */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older ones refuse it */
#endif

#define STATM_BYTES 128 /* /proc/self/statm: seven numbers */

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) & ~(unit - 1);
}

/* Maps more than is needed and gives back what lies before and after the aligned part. */
static void *map_aligned(size_t bytes)
{
    size_t mapped = bytes + MEMORY_HUGE_BYTES;
    if (mapped < bytes) {
        errno = ENOMEM;
        return NULL;
    }
    char *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        return NULL;
    }
    size_t front = round_up((uintptr_t)start, MEMORY_HUGE_BYTES) - (uintptr_t)start;
    if (front > 0) {
        munmap(start, front);
    }
    munmap(start + front + bytes, MEMORY_HUGE_BYTES - front);
    (void)madvise(start + front, bytes, MADV_HUGEPAGE); /* a kernel without huge pages: no loss */
    return start + front;
}

void *memory_region_create(size_t bytes)
{
    CHECK(bytes > 0);
    size_t rounded = round_up(bytes, page_bytes());
    if (rounded < bytes) {
        errno = ENOMEM;
        return NULL;
    }
    if (rounded >= MEMORY_HUGE_BYTES) {
        return map_aligned(rounded);
    }
    void *region = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return region == MAP_FAILED ? NULL : region;
}

void memory_region_destroy(void *region, size_t bytes)
{
    if (region != NULL) {
        CHECK(munmap(region, round_up(bytes, page_bytes())) == 0);
    }
}

void memory_region_clear(void *region, size_t bytes)
{
    size_t rounded = round_up(bytes, page_bytes());
    if (madvise(region, rounded, MADV_DONTNEED) != 0) {
        memset(region, 0, rounded); /* locked pages stay where they are */
    }
}

bool memory_populate(void *start, size_t bytes)
{
    size_t page = page_bytes();
    size_t before = (uintptr_t)start & (page - 1);
    char *first = (char *)start - before;
    size_t length = round_up(bytes + before, page);
    int failed;
    do {
        failed = madvise(first, length, MADV_POPULATE_WRITE);
    } while (failed && errno == EINTR);
    return !failed;
}

void memory_populate_until(void *start, size_t bytes, const _Atomic bool *stop)
{
    for (size_t at = 0; at < bytes && !*stop; at += POPULATE_STEP_BYTES) {
        size_t left = bytes - at;
        size_t step = left < POPULATE_STEP_BYTES ? left : POPULATE_STEP_BYTES;
        if (!memory_populate((char *)start + at, step)) {
            return; /* the first use of a page will do it */
        }
    }
}

bool memory_lock_all(void)
{
    return mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
}

void *memory_zalloc(size_t bytes)
{
    void *memory = calloc(1, bytes == 0 ? 1 : bytes);
    CHECK(memory != NULL);
    return memory;
}

char *memory_strndup(const char *text, size_t length)
{
    char *copy = memory_zalloc(length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *memory_strdup(const char *text)
{
    return memory_strndup(text, strlen(text));
}

uint64_t memory_resident_bytes(void)
{
    char text[STATM_BYTES];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (length <= 0) {
        return 0;
    }
    text[length] = '\0';
    const char *second = strchr(text, ' ');
    return second == NULL ? 0 : strtoull(second, NULL, 10) * page_bytes();
}

#ifdef HAVE_JEMALLOC
/* The symbol is weak: a build that links another allocator (a sanitizer's) lacks it. */
__attribute__((weak)) int mallctl(const char *name, void *old, size_t *old_length, void *new_value,
                                  size_t new_length);

void memory_purge(void)
{
    if (mallctl != NULL) {
        (void)mallctl("arena.4096.purge", NULL, NULL, NULL, 0); /* 4096: all arenas */
    }
}
#else
void memory_purge(void)
{
}
#endif
