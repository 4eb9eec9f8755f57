/*
 * num.c: decimal numbers. Sixteen or eight digits at a time are read; up to three are printed from
 * a table, four at a time of longer ones.
 */
#include "base/num.h"

#include "base/check.h"
#include "base/digits.h"

#define FOUR_DIGITS 10000u

static const uint32_t powers[] = {
    1u, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, DIGITS_EIGHT,
};

/* Reads the digits after the first sixteen one by one, as few are left. */
static inline size_t read_rest(const char *text, size_t length, uint64_t *value)
{
    uint64_t number = *value; /* the compiler must allow that text and *value overlap */
    size_t end = length < NUM_DIGITS_SAFE ? length : NUM_DIGITS_SAFE;
    size_t digits = 16;
    for (; digits < end; digits++) {
        unsigned digit = (unsigned char)text[digits] - (unsigned)'0';
        if (digit > 9) {
            break;
        }
        number = number * 10 + digit;
    }
    *value = number;
    return digits;
}

size_t num_read(const char *text, size_t length, uint64_t *value)
{
    uint64_t number;
    if (length >= 16 && digits_sixteen(text, &number)) {
        size_t read = read_rest(text, length, &number);
        *value = number;
        return read;
    }
    size_t digits = digits_eight(text, length, value);
    if (digits < 8) {
        return digits;
    }
    uint64_t next = 0;
    size_t more = digits_eight(text + 8, length - 8, &next);
    CHECK(more < 8); /* else there were sixteen */
    *value = *value * powers[more] + next;
    return 8 + more;
}

static bool add_digit(char byte, uint64_t *number)
{
    unsigned digit = (unsigned char)byte - (unsigned)'0';
    return digit <= 9 && !__builtin_mul_overflow(*number, 10u, number) &&
           !__builtin_add_overflow(*number, digit, number);
}

bool num_parse_long(const char *text, size_t length, uint64_t *value)
{
    uint64_t number = 0;
    size_t digits = num_read(text, length, &number);
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

size_t num_print_long(char *text, uint64_t value)
{
    size_t digits;
    if (value < FOUR_DIGITS) {
        return print_first(text, (uint32_t)value);
    }
    if (value < DIGITS_EIGHT) {
        digits = print_first(text, (uint32_t)value / FOUR_DIGITS);
    } else {
        digits = num_print(text, value / DIGITS_EIGHT);
        print_four(text + digits, (uint32_t)(value % DIGITS_EIGHT) / FOUR_DIGITS);
        digits += 4;
    }
    print_four(text + digits, (uint32_t)(value % FOUR_DIGITS));
    return digits + 4;
}

#define DIGIT(n) (uint32_t)('0' + (n) % 10)
#define ONE(n)                                                                                     \
    ((n) < 10    ? DIGIT(n) | 1u << 24                                                             \
     : (n) < 100 ? DIGIT((n) / 10) | DIGIT(n) << 8 | 2u << 24                                      \
                 : DIGIT((n) / 100) | DIGIT((n) / 10) << 8 | DIGIT(n) << 16 | 3u << 24)
#define FIVE(n)    ONE(n), ONE((n) + 1), ONE((n) + 2), ONE((n) + 3), ONE((n) + 4)
#define TEN(n)     FIVE(n), FIVE((n) + 5)
#define FIFTY(n)   TEN(n), TEN((n) + 10), TEN((n) + 20), TEN((n) + 30), TEN((n) + 40)
#define HUNDRED(n) FIFTY(n), FIFTY((n) + 50)
#define FIVE_HUNDRED(n)                                                                            \
    HUNDRED(n), HUNDRED((n) + 100), HUNDRED((n) + 200), HUNDRED((n) + 300), HUNDRED((n) + 400)

const uint32_t num_short_texts[NUM_SHORT] = {FIVE_HUNDRED(0), FIVE_HUNDRED(500)};
