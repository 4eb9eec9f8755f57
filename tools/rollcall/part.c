/* part.c: MurmurHash2, with the seed that proxies and clients of memcached give it. */
#include "tools/rollcall/part.h"

#include <string.h>

#include "base/num.h"

#define MURMUR_FACTOR 0x5bd1e995u
#define MURMUR_SEED   0xdeadbeefu /* times the length */

static uint32_t part_mix(uint32_t word)
{
    word *= MURMUR_FACTOR;
    word ^= word >> 24;
    return word * MURMUR_FACTOR;
}

/* The bytes of a word, the lowest first; at most 4. */
static uint32_t part_word(const unsigned char *bytes, size_t count)
{
    uint32_t word = 0;

    for (size_t i = 0; i < count; i++) {
        word |= (uint32_t)bytes[i] << 8 * i;
    }
    return word;
}

static uint32_t part_hash(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    uint32_t hash = MURMUR_SEED * (uint32_t)length ^ (uint32_t)length;

    for (; length >= 4; length -= 4, at += 4) {
        hash = hash * MURMUR_FACTOR ^ part_mix(part_word(at, 4));
    }
    if (length > 0) {
        hash = (hash ^ part_word(at, length)) * MURMUR_FACTOR;
    }
    hash = (hash ^ hash >> 13) * MURMUR_FACTOR;
    return hash ^ hash >> 15;
}

bool part_parse(const char *text, struct part *part)
{
    const char *slash = strchr(text, '/');
    uint64_t number;
    uint64_t count;

    if (slash == NULL || !num_parse(text, (size_t)(slash - text), &number) ||
        !num_parse(slash + 1, strlen(slash + 1), &count) || number == 0 || number > count ||
        count > PART_COUNT_MAX) {
        return false;
    }
    *part = (struct part){.number = (uint32_t)number, .count = (uint32_t)count};
    return true;
}

bool part_has(const struct part *part, const char *digits, size_t length)
{
    return part->count == 0 || part_hash(digits, length) % part->count == part->number - 1;
}
