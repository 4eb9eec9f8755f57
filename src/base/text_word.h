/*
 * text_word.h: the first bytes of a text as one word, so that short texts are compared and read all
 * bytes at once.
 *
 * The first byte is the lowest (configure refuses other machines). Pure; any thread.
 */
#ifndef ROLLCALL_BASE_TEXT_WORD_H
#define ROLLCALL_BASE_TEXT_WORD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TEXT_WORD_BYTES         sizeof(uint64_t)
#define TEXT_WORD_OF_BYTE(byte) (0x0101010101010101u * (uint64_t)(byte)) /* in every place */

/*
 * Returns the first eight bytes of text[0..length), zeros in the places of those it does not have.
 * Touches nothing beyond text[0..length). With fewer than eight, bytes that are read twice fall on
 * themselves.
 */
static inline uint64_t text_word(const char *text, size_t length)
{
    if (length >= 8) {
        uint64_t word;
        memcpy(&word, text, sizeof(word));
        return word;
    }
    if (length >= 4) {
        uint32_t first, last;
        memcpy(&first, text, sizeof(first));
        memcpy(&last, text + length - sizeof(last), sizeof(last));
        return first | (uint64_t)last << 8 * (length - sizeof(last));
    }
    if (length == 0) {
        return 0;
    }
    size_t middle = length / 2;
    size_t last = length - 1;
    return (unsigned char)text[0] | (uint64_t)(unsigned char)text[middle] << 8 * middle |
           (uint64_t)(unsigned char)text[last] << 8 * last;
}

/* Ones in the places of the first `length` bytes. */
static inline uint64_t text_word_mask(size_t length)
{
    if (length >= TEXT_WORD_BYTES) {
        return UINT64_MAX;
    }
    return ~(UINT64_MAX << 8 * length);
}

#endif
