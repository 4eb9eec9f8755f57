/*
 * text_put.h: bytes and numbers into room that the caller made sure of; what replies are made of.
 *
 * Each returns the place after what it wrote. Pure; any thread.
 */
#ifndef ROLLCALL_PROTOCOL_TEXT_PUT_H
#define ROLLCALL_PROTOCOL_TEXT_PUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "base/num.h"

static inline char *text_put(char *to, const char *bytes, size_t length)
{
    memcpy(to, bytes, length);
    return to + length;
}

/*
 * The same for what is mostly short, a key, a record or a number: two pieces that may overlap,
 * since a call of memcpy() would cost more than the copy.
 */
static inline __attribute__((always_inline)) char *text_put_short(char *to, const char *bytes,
                                                                  size_t length)
{
    if (LIKELY(length - 16 <= 16)) {
        memcpy(to, bytes, 16);
        memcpy(to + length - 16, bytes + length - 16, 16);
    } else if (LIKELY(length - 8 <= 8)) {
        memcpy(to, bytes, 8);
        memcpy(to + length - 8, bytes + length - 8, 8);
    } else if (LIKELY(length - 4 <= 4)) {
        memcpy(to, bytes, 4);
        memcpy(to + length - 4, bytes + length - 4, 4);
    } else if (LIKELY(length - 1 <= 2)) {
        to[0] = bytes[0];
        to[length / 2] = bytes[length / 2];
        to[length - 1] = bytes[length - 1];
    } else {
        memcpy(to, bytes, length);
    }
    return to + length;
}

/* Needs room for NUM_DIGITS_MAX bytes whatever the number. */
static inline char *text_put_number(char *to, uint64_t number)
{
    if (number < 10) {
        *to = (char)('0' + number);
        return to + 1;
    }
    return to + num_print(to, number);
}

#define TEXT_PUT(to, literal) text_put((to), (literal), sizeof(literal) - 1)

#endif
