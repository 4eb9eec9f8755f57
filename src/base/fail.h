/* fail.h: one statement says why something failed, and returns that it did. Any thread. */
#ifndef ROLLCALL_BASE_FAIL_H
#define ROLLCALL_BASE_FAIL_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the reason to `why`, cut to its `size` bytes with the NUL; errno stays. Returns false. */
__attribute__((format(printf, 3, 4))) bool fail_with(char *why, size_t size, const char *format,
                                                     ...);

#endif
