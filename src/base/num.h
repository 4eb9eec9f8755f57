/*
 * num.h: decimal numbers, text to and from uint64_t, without locale, sign or division chains.
 *
 * Cost: one to three nanoseconds a number of up to eight digits. Up to the sixteenth digit there is
 * no loop, so mixed lengths cost few mispredicted branches. Pure functions, any thread.
 */
#ifndef ROLLCALL_BASE_NUM_H
#define ROLLCALL_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NUM_DIGITS_MAX  20 /* digits of 2^64-1 */
#define NUM_DIGITS_SAFE 19 /* this many digits always fit */

/* num_parse() of any length. */
bool num_parse_long(const char *text, size_t length, uint64_t *value);

/*
 * Reads all of text[0..length) as a decimal number 0 to 2^64-1: digits only, 1 to 20 of them,
 * leading zeros allowed. Returns false, leaving *value alone, if it is anything else or too large.
 */
static inline bool num_parse(const char *text, size_t length, uint64_t *value)
{
    if (length - 1 > 1) {
        return num_parse_long(text, length, value);
    }
    unsigned digit = (unsigned char)text[0] - (unsigned)'0'; /* most deltas, flags and lengths */
    if (digit > 9) {
        return false;
    }
    if (length == 2) {
        unsigned last = (unsigned char)text[1] - (unsigned)'0';
        if (last > 9) {
            return false;
        }
        digit = digit * 10 + last;
    }
    *value = digit;
    return true;
}

/*
 * Reads the number that text[0..length) begins with. Returns how many digits it read,
 * NUM_DIGITS_SAFE at most though more may follow; 0, leaving *value alone: the text begins with
 * none.
 */
size_t num_read(const char *text, size_t length, uint64_t *value);

#define NUM_SHORT 1000u

/* The text of each number below NUM_SHORT, its first byte lowest, and in the last byte how long it
 * is: 4 KiB. */
extern const uint32_t num_short_texts[NUM_SHORT];

/* num_print() of any number. */
size_t num_print_long(char *text, uint64_t value);

/* num_print() of one below NUM_SHORT. */
static inline size_t num_print_short(char *text, uint64_t value)
{
    uint32_t entry = num_short_texts[value];
    memcpy(text, &entry, sizeof(entry));
    return entry >> 24;
}

/*
 * Writes value in decimal to text, which has room for NUM_DIGITS_MAX bytes: any of them may be
 * overwritten, also after the digits. Writes no NUL. Returns the number of digits.
 */
static inline size_t num_print(char *text, uint64_t value)
{
    return value < NUM_SHORT ? num_print_short(text, value) : num_print_long(text, value);
}

#endif
