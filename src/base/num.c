/* num.c: decimal numbers. Eight digits at a time where there are eight, pairs for the others. */
#include "base/num.h"

#include <endian.h>
#include <string.h>

#define EIGHT_DIGITS 100000000u

static const char pairs[] = "00010203040506070809"
                            "10111213141516171819"
                            "20212223242526272829"
                            "30313233343536373839"
                            "40414243444546474849"
                            "50515253545556575859"
                            "60616263646566676869"
                            "70717273747576777879"
                            "80818283848586878889"
                            "90919293949596979899";

/*
 * Eight digits in three multiplications: neighbours are joined to pairs, pairs to fours, fours to
 * the number, all lanes of the word at once.
 */
static bool parse_eight(const char *text, uint64_t *value)
{
    uint64_t word;
    memcpy(&word, text, sizeof word);
    word = le64toh(word) ^ 0x3030303030303030u;
    if ((word + 0x7676767676767676u) & 0x8080808080808080u || word & 0x8080808080808080u) {
        return false; /* a lane above 9 */
    }
    word = (word * 10 + (word >> 8)) & 0x00ff00ff00ff00ffu;
    word = (word * 100 + (word >> 16)) & 0x0000ffff0000ffffu;
    *value = (word * 10000 + (word >> 32)) & 0xffffffffu;
    return true;
}

bool num_parse(const char *text, size_t length, uint64_t *value)
{
    if (length == 0 || length > NUM_DIGITS_MAX) {
        return false;
    }
    uint64_t sum = 0;
    size_t last = length == NUM_DIGITS_MAX ? length - 1 : length; /* 19 digits always fit */
    size_t i = 0;
    for (uint64_t eight; last - i >= 8; i += 8) {
        if (!parse_eight(text + i, &eight)) {
            return false;
        }
        sum = sum * EIGHT_DIGITS + eight;
    }
    for (; i < last; i++) {
        unsigned digit = (unsigned char)text[i] - (unsigned)'0';
        if (digit > 9) {
            return false;
        }
        sum = sum * 10 + digit;
    }
    if (i < length) {
        unsigned digit = (unsigned char)text[i] - (unsigned)'0';
        if (digit > 9 || __builtin_mul_overflow(sum, 10u, &sum) ||
            __builtin_add_overflow(sum, digit, &sum)) {
            return false;
        }
    }
    *value = sum;
    return true;
}

static size_t digits_of(uint64_t value)
{
    static const uint64_t powers[] = {
        0, /* not 1: the number 0 has a digit too */
        10u,
        100u,
        1000u,
        10000u,
        100000u,
        1000000u,
        10000000u,
        100000000u,
        1000000000u,
        10000000000u,
        100000000000u,
        1000000000000u,
        10000000000000u,
        100000000000000u,
        1000000000000000u,
        10000000000000000u,
        100000000000000000u,
        1000000000000000000u,
        10000000000000000000u,
    };
    unsigned bits = 64u - (unsigned)__builtin_clzll(value | 1);
    unsigned low = bits * 1233 >> 12; /* 1233/4096 is log10(2), close enough for 64 bits */
    return low + (value >= powers[low]);
}

static void print_pair(char *text, uint32_t value)
{
    memcpy(text, pairs + (size_t)value * 2, 2);
}

static void print_eight(char *text, uint32_t value)
{
    uint32_t high = value / 10000;
    uint32_t low = value % 10000;
    print_pair(text, high / 100);
    print_pair(text + 2, high % 100);
    print_pair(text + 4, low / 100);
    print_pair(text + 6, low % 100);
}

size_t num_print(char *text, uint64_t value)
{
    size_t digits = digits_of(value);
    char *end = text + digits;
    for (; value >= EIGHT_DIGITS; value /= EIGHT_DIGITS) {
        end -= 8;
        print_eight(end, (uint32_t)(value % EIGHT_DIGITS));
    }
    uint32_t rest = (uint32_t)value;
    for (; rest >= 100; rest /= 100) {
        end -= 2;
        print_pair(end, rest % 100);
    }
    if (rest >= 10) {
        print_pair(end - 2, rest);
    } else {
        end[-1] = (char)('0' + rest);
    }
    return digits;
}
