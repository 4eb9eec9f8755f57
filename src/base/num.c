/* num.c: decimal numbers. Eight digits at a time are read, four at a time are printed. */
#include "base/num.h"

#include "base/check.h"
#include "base/text_word.h"

#define FOUR_DIGITS  10000u
#define EIGHT_DIGITS 100000000u

static const uint32_t powers[] = {
    1u, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, EIGHT_DIGITS,
};

/*
 * The digits text[0..length) begins with, up to eight of them, 0: none. Moved to the end of the
 * word, with zeros in front, any number of them is read as eight: in three multiplications
 * neighbours are joined to pairs, pairs to fours, fours to the number, all lanes of the word at
 * once.
 */
static inline size_t read_eight(const char *text, size_t length, uint64_t *value)
{
    uint64_t word = text_word(text, length) ^ TEXT_WORD_OF_BYTE('0');
    /* The first lane above 9 is found exactly, those behind it may be carried into. */
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

size_t num_read(const char *text, size_t length, uint64_t *value)
{
    size_t digits = read_eight(text, length, value);
    if (digits < 8) {
        return digits;
    }
    uint64_t next = 0;
    digits += read_eight(text + 8, length - 8, &next);
    uint64_t number = *value * powers[digits - 8] + next;
    if (digits == 16) { /* few are left: one by one is faster */
        for (unsigned digit; digits < length && digits < NUM_DIGITS_SAFE &&
                             (digit = (unsigned char)text[digits] - (unsigned)'0') <= 9;
             digits++) {
            number = number * 10 + digit;
        }
    }
    *value = number;
    return digits;
}

static bool add_digit(char byte, uint64_t *number)
{
    unsigned digit = (unsigned char)byte - (unsigned)'0';
    return digit <= 9 && !__builtin_mul_overflow(*number, 10u, number) &&
           !__builtin_add_overflow(*number, digit, number);
}

bool num_parse(const char *text, size_t length, uint64_t *value)
{
    uint64_t number = 0;
    size_t digits;
    if (length == 1) { /* most deltas, flags and lengths */
        digits = add_digit(text[0], &number);
    } else {
        digits = num_read(text, length, &number);
    }
    if (digits == NUM_DIGITS_SAFE && length == NUM_DIGITS_MAX) {
        digits += add_digit(text[NUM_DIGITS_SAFE], &number);
    }
    if (digits == 0 || digits != length) {
        return false;
    }
    *value = number;
    return true;
}

/* The four digits of a number below 10,000 as four bytes 0 to 9, the first one lowest. */
static inline uint32_t four_digits(uint32_t value)
{
    uint32_t hundreds = value * 5243 >> 19; /* value / 100 */
    uint32_t pairs = hundreds | (value - hundreds * 100) << 16;
    uint32_t tens = pairs * 103 >> 10 & 0x000f000fu; /* both pairs / 10 */
    return tens | (pairs - tens * 10) << 8;
}

static inline void print_four(char *text, uint32_t value)
{
    uint32_t digits = four_digits(value) | 0x30303030u;
    memcpy(text, &digits, sizeof(digits));
}

/* A number below 10,000 without its leading zeros. */
static inline size_t print_first(char *text, uint32_t value)
{
    uint32_t digits = four_digits(value);
    unsigned zeros = (unsigned)__builtin_ctz(digits | 1u << 24) / 8; /* the last may be one */
    digits = (digits | 0x30303030u) >> 8 * zeros;
    memcpy(text, &digits, sizeof(digits));
    return 4 - zeros;
}

/* Apart: its recursion would have the short ones save registers too. */
__attribute__((noinline)) static size_t print_long(char *text, uint64_t value)
{
    size_t digits;
    if (value < EIGHT_DIGITS) {
        digits = print_first(text, (uint32_t)value / FOUR_DIGITS);
    } else {
        digits = num_print(text, value / EIGHT_DIGITS);
        print_four(text + digits, (uint32_t)(value % EIGHT_DIGITS) / FOUR_DIGITS);
        digits += 4;
    }
    print_four(text + digits, (uint32_t)(value % FOUR_DIGITS));
    return digits + 4;
}

size_t num_print(char *text, uint64_t value)
{
    return value < FOUR_DIGITS ? print_first(text, (uint32_t)value) : print_long(text, value);
}
