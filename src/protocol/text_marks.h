/*
 * text_marks.h: walks over the spaces and newlines of a text, which end its words.
 *
 * A block of bytes is compared at once and gives a word with a bit a mark, lowest first: SSE2, part
 * of every x86-64, looks at 64 bytes, the portable way at 8. Nothing beyond the text is touched.
 * Pure; any thread.
 */
#ifndef ROLLCALL_PROTOCOL_TEXT_MARKS_H
#define ROLLCALL_PROTOCOL_TEXT_MARKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/text_word.h"

#ifdef __SSE2__
#include <emmintrin.h>

#define TEXT_MARKS_BLOCK 64
#define TEXT_MARKS_STEP  16
#define TEXT_MARKS_BITS  1 /* a byte; its lowest may be set */

static inline uint64_t text_marks_of(__m128i bytes)
{
    __m128i spaces = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(' '));
    __m128i newlines = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'));
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(spaces, newlines));
}

static inline uint64_t text_marks_sixteen(const char *text, size_t at)
{
    return text_marks_of(_mm_loadu_si128((const __m128i *)(const void *)(text + at))) << at;
}

/* The marks of the first TEXT_MARKS_STEP bytes of a text that has them. */
static inline uint64_t text_marks_step(const char *text)
{
    return text_marks_sixteen(text, 0);
}

/* The marks of the first block of a text of `length` > 0 bytes, which may be shorter. */
static inline uint64_t text_marks_block(const char *text, size_t length)
{
    if (LIKELY(length >= TEXT_MARKS_BLOCK)) {
        return text_marks_sixteen(text, 0) | text_marks_sixteen(text, 16) |
               text_marks_sixteen(text, 32) | text_marks_sixteen(text, 48);
    }
    if (length >= 16) {
        uint64_t marks = text_marks_sixteen(text, length - 16); /* some are looked at twice */
        for (size_t at = 0; at < length - 16; at += 16) {
            marks |= text_marks_sixteen(text, at);
        }
        return marks;
    }
    uint64_t marks = text_marks_of(_mm_cvtsi64_si128((long long)text_word(text, length)));
    if (length > TEXT_WORD_BYTES) {
        size_t last = length - TEXT_WORD_BYTES;
        uint64_t word = text_word(text + last, TEXT_WORD_BYTES);
        marks |= text_marks_of(_mm_cvtsi64_si128((long long)word)) << last;
    }
    return marks;
}

#else

#define TEXT_MARKS_BLOCK 8
#define TEXT_MARKS_STEP  8
#define TEXT_MARKS_BITS  8

/* The highest bit of every byte of word that is `byte`. */
static inline uint64_t text_marks_of(uint64_t word, unsigned char byte)
{
    const uint64_t low = TEXT_WORD_OF_BYTE(0x7f);
    uint64_t zero = word ^ TEXT_WORD_OF_BYTE(byte);
    return ~(((zero & low) + low) | zero | low);
}

static inline uint64_t text_marks_block(const char *text, size_t length)
{
    uint64_t word = text_word(text, length);
    return text_marks_of(word, ' ') | text_marks_of(word, '\n');
}

static inline uint64_t text_marks_step(const char *text)
{
    return text_marks_block(text, TEXT_MARKS_STEP);
}

#endif

struct text_marks {
    const char *block;
    const char *end;
    uint64_t left; /* marks of the block not yet walked over */
};

static inline struct text_marks text_marks_begin(const char *from, const char *end)
{
    uint64_t left = from < end ? text_marks_block(from, (size_t)(end - from)) : 0;
    return (struct text_marks){.block = from, .end = end, .left = left};
}

/* The next space or newline, or the text's end, then always. */
static inline const char *text_marks_next(struct text_marks *marks)
{
    while (marks->left == 0) {
        if (marks->end - marks->block <= TEXT_MARKS_BLOCK) {
            return marks->end;
        }
        marks->block += TEXT_MARKS_BLOCK;
        marks->left = text_marks_block(marks->block, (size_t)(marks->end - marks->block));
    }
    const char *mark = marks->block + (unsigned)__builtin_ctzll(marks->left) / TEXT_MARKS_BITS;
    marks->left &= marks->left - 1;
    return mark;
}

/* The first of them alone, which is near, as after a key; the text's end: there is none. */
static inline const char *text_marks_near(const char *from, const char *end)
{
    for (; end - from >= TEXT_MARKS_STEP; from += TEXT_MARKS_STEP) {
        uint64_t marks = text_marks_step(from);
        if (marks != 0) {
            return from + __builtin_ctzll(marks) / TEXT_MARKS_BITS;
        }
    }
    struct text_marks rest = text_marks_begin(from, end);
    return text_marks_next(&rest);
}

#endif
