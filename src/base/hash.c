/* hash.c: XXH3, compiled in here and nowhere else. */
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Apart, since it needs a stack frame. */
static __attribute__((noinline)) uint64_t hash_long(const void *bytes, size_t length, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, length, seed);
}

/* With a length that is short for certain XXH3 is a dozen steps, if it is inlined: by force. */
__attribute__((flatten)) uint64_t hash_bytes(const void *bytes, size_t length, uint64_t seed)
{
    return length <= HASH_SHORT_MAX ? XXH3_64bits_withSeed(bytes, length, seed)
                                    : hash_long(bytes, length, seed);
}

/* With a length that is known here the words never leave the registers, if XXH3 is inlined: by
 * force. */
__attribute__((flatten)) uint64_t hash_words2(uint64_t first, uint64_t second, uint64_t seed)
{
    const uint64_t words[2] = {first, second};
    return XXH3_64bits_withSeed(words, sizeof(words), seed);
}
