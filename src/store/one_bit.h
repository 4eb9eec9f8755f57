/*
 * one_bit.h: a block whose checksum does not fit because one bit of it has turned over. Each bit is
 * turned back by itself until the checksum fits.
 *
 * A checksum of 32 bits fits by chance once in 2^32 tries: for a page of 4096 bytes that is one
 * wrong answer in 130,000 blocks that have other damage.
 */
#ifndef ROLLCALL_STORE_ONE_BIT_H
#define ROLLCALL_STORE_ONE_BIT_H

#include <stdbool.h>
#include <stddef.h>

typedef bool one_bit_sound(void *context, const void *block);

/* True: the block is sound now. False: it is as it was. Costs 8 * bytes checks. */
bool one_bit_mend(void *block, size_t bytes, one_bit_sound *sound, void *context);

#endif
