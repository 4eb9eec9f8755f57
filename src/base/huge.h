/*
 * huge.h: how much of the tables' memory the kernel holds in huge pages.
 *
 * A look-up in a table of gigabytes misses the TLB nearly each time where its pages are of 4 KiB;
 * memory.h asks for pages of 2 MiB, and the kernel gives them or not (transparent_hugepage, free
 * memory in pieces). It says which in /proc/self/smaps alone (proc(5): AnonHugePages, and "hg" in
 * VmFlags for memory that was asked for so). Reading that walks the page tables, so a thread of its
 * own looks once a minute, and all others see what it saw then. The state is of the process.
 *
 * Thread rule: start and end by one thread; the rest by any, without waiting for a look.
 */
#ifndef ROLLCALL_BASE_HUGE_H
#define ROLLCALL_BASE_HUGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HUGE_LOOK_S     60           /* from one look to the next */
#define HUGE_FIRST_S    5            /* from the start to the first */
#define HUGE_FEW        0.5          /* a share below this one is worth a warning … */
#define HUGE_FEW_LEAST  (256u << 20) /* … where at least this many bytes are resident */
#define HUGE_RANGES_MAX 4096         /* mappings that are told apart; others count in the sums */

/* Figures of a part of memory, or of all that was asked for in huge pages. */
struct huge_bytes {
    uint64_t resident;
    uint64_t huge; /* of these, in huge pages */
};

/* Starts the thread that looks and warns. False with errno: there is no thread, and all figures are
 * 0. */
bool huge_start(void);
void huge_end(void); /* not started: no-op */

/* Returns the figures of the last look; zeros before the first. A mapping that reaches beyond the
 * memory counts by its share, since the kernel joins neighbours into one. */
struct huge_bytes huge_of(const void *start, uint64_t bytes);
struct huge_bytes huge_sums(void);

/* Returns whether little of what is resident is in huge pages, though it is enough to matter. */
bool huge_are_few(struct huge_bytes sums);

/* Looks at a text as of smaps and publishes the figures. Called by the thread, and by tests. */
void huge_look(FILE *smaps);

#endif
