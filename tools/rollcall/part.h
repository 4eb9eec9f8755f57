/*
 * part.h: the parts of the hash range, as the proxies of conf/fleet route by them: an id is of the
 * part `hash % count`, by twemproxy's `hash: murmur` (MurmurHash2 of 32 bits) of its decimal digits
 * and `distribution: modula`. The hash is that of libmemcached, too, where the key is the id.
 *
 * Thread rule: none; nothing is kept.
 */
#ifndef ROLLCALL_TOOLS_PART_H
#define ROLLCALL_TOOLS_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PART_COUNT_MAX 65536u

/* Part `number` (from 1 on) of `count`; count 0: no part, but the whole. */
struct part {
    uint32_t number, count;
};

/* Reads "I/N". False: it is none, or beyond PART_COUNT_MAX, and *part is unchanged. */
bool part_parse(const char *text, struct part *part);

/* Has the part the id of these digits? The whole has each. */
bool part_has(const struct part *part, const char *digits, size_t length);

#endif
