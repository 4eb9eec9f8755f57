/*
 * memory.h: the one place that knows mmap and jemalloc.
 *
 * Tables are regions: anonymous memory, zeroed, 2 MiB aligned and advised for huge pages when large
 * enough, reserved whole at start and made resident by memory_populate() in the background.
 * Small objects come from malloc (jemalloc in a release build).
 */
#ifndef ROLLCALL_BASE_MEMORY_H
#define ROLLCALL_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_LINE_BYTES 64         /* a cache line */
#define MEMORY_HUGE_BYTES (2u << 20) /* a huge page */

/*
 * A zeroed region of `bytes` (rounded up to a page; aligned to MEMORY_HUGE_BYTES when at least that
 * large, else to a page). Returns NULL with errno set when the system refuses.
 */
void *memory_region_create(size_t bytes);
void memory_region_destroy(void *region, size_t bytes); /* NULL: no-op */

/* Makes a whole region zero again by giving its pages back to the system. */
void memory_region_clear(void *region, size_t bytes);

/*
 * Makes part of a region resident, so that the first use does not fault. Blocks for about 0.3 s a
 * GiB: call it from a thread that may block. False: the system could not, which does no harm.
 */
bool memory_populate(void *start, size_t bytes);

/* The same in steps. It ends when *stop is true between two steps, or when a step fails. */
void memory_populate_until(void *start, size_t bytes, const _Atomic bool *stop);

void *memory_zalloc(size_t bytes);     /* zeroed, never NULL: ends the process when out of memory */
char *memory_strdup(const char *text); /* never NULL */
char *memory_strndup(const char *text, size_t length); /* never NULL; NUL added */

/* Keeps all memory, also what comes later, from being swapped out. False: errno says why not. */
bool memory_lock_all(void);

uint64_t memory_resident_bytes(void); /* of this process, from /proc/self/statm; 0 if unknown */
void memory_purge(void);              /* returns the allocator's unused pages to the system */

#endif
