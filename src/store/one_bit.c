/* one_bit.c: the bit that has turned over. */
#include "store/one_bit.h"

#define BITS 8

bool one_bit_mend(void *block, size_t bytes, one_bit_sound *sound, void *context)
{
    unsigned char *at = block;
    for (size_t i = 0; i < BITS * bytes; i++) {
        unsigned char bit = (unsigned char)(1u << i % BITS);
        at[i / BITS] ^= bit;
        if (sound(context, block)) {
            return true;
        }
        at[i / BITS] ^= bit;
    }
    return false;
}
