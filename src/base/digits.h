/*
 * digits.h: eight and sixteen digits at a time, for those who read numbers where a call would cost
 * as much as the reading: num.c, and keys.
 *
 * Pure; any thread.
 */
#ifndef ROLLCALL_BASE_DIGITS_H
#define ROLLCALL_BASE_DIGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/text_word.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define DIGITS_EIGHT   100000000u         /* what eight digits can say, and one */
#define DIGITS_SIXTEEN 10000000000000000u /* … and sixteen */

/*
 * Reads the digits that text[0..length) begins with, up to eight; 0: there are none. They are moved
 * to the end of the word, with zeros in front, so any number of them is read as eight: three
 * multiplications join neighbours to pairs, pairs to fours, fours to the number, all lanes of the
 * word at once.
 */
static inline size_t digits_eight(const char *text, size_t length, uint64_t *value)
{
    uint64_t word = text_word(text, length) ^ TEXT_WORD_OF_BYTE('0');
    /* The first lane above 9 is found exactly; later lanes may hold a carry. */
    uint64_t others = ((word + TEXT_WORD_OF_BYTE(0x76)) | word) & TEXT_WORD_OF_BYTE(0x80);
    size_t digits = 8;
    if (others != 0) {
        digits = (size_t)__builtin_ctzll(others) / 8;
        if (UNLIKELY(digits == 0)) {
            return 0;
        }
        word <<= 64 - 8 * digits;
    }
    word = (word * 10 + (word >> 8)) & 0x00ff00ff00ff00ffu;
    word = (word * 100 + (word >> 16)) & 0x0000ffff0000ffffu;
    *value = (word * 10000 + (word >> 32)) & 0xffffffffu;
    return digits;
}

#ifdef __SSE2__

/* Reads sixteen bytes as digits; false, leaving *value alone: not all of them are. Neighbours are
 * joined as in digits_eight(). */
static inline bool digits_sixteen(const char *text, uint64_t *value)
{
    __m128i digits =
        _mm_sub_epi8(_mm_loadu_si128((const __m128i *)(const void *)text), _mm_set1_epi8('0'));
    __m128i small = _mm_cmpeq_epi8(_mm_min_epu8(digits, _mm_set1_epi8(9)), digits);
    if (_mm_movemask_epi8(small) != 0xffff) {
        return false;
    }
    __m128i factor = _mm_set1_epi16(10 << 8 | 1); /* of two neighbours as one number */
    __asm__("" : "+x"(factor));                   /* else GCC makes additions and shifts of it */
    __m128i pairs = _mm_srli_epi16(_mm_mullo_epi16(digits, factor), 8);
    __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(1 << 16 | 100));
    fours = _mm_packs_epi32(fours, fours);
    __m128i eights = _mm_madd_epi16(fours, _mm_set1_epi32(1 << 16 | 10000));
    uint64_t both = (uint64_t)_mm_cvtsi128_si64(eights);
    *value = (both & UINT32_MAX) * DIGITS_EIGHT + (both >> 32);
    return true;
}

#else

static inline bool digits_sixteen(const char *text, uint64_t *value)
{
    uint64_t first, last;
    if (digits_eight(text, 8, &first) < 8 || digits_eight(text + 8, 8, &last) < 8) {
        return false;
    }
    *value = first * DIGITS_EIGHT + last;
    return true;
}

#endif

#endif
