/*
 * size.h: numbers of bytes as text, in units of 1024, without locale. Pure functions, any thread.
 */
#ifndef ROLLCALL_BASE_SIZE_H
#define ROLLCALL_BASE_SIZE_H

#include <stdint.h>

#define SIZE_TEXT_MAX 32 /* bytes of a printed size, NUL included */

/* Prints a size for people, in the largest unit that fits, TiB at most: 345 MiB, 1.2 GiB, 4 KiB, 17
 * bytes; below ten units with one digit after the point, unless that is 0. Returns `text`. */
const char *size_text(char text[SIZE_TEXT_MAX], uint64_t bytes);

/* Prints a size to be read back, in the largest unit that leaves no rest: 16MiB, 1000, 0. Returns
 * `text`. */
const char *size_exact(char text[SIZE_TEXT_MAX], uint64_t bytes);

/* Returns the bytes of a unit: K, KB or KiB, likewise M, G, T, in either case; "" or B: 1. 0: there
 * is no such unit. */
uint64_t size_factor(const char *unit);

#endif
