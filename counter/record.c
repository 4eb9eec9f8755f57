#include "counter/record.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/num.h"

#define SHORT_DIGITS 4 /* a field of no more is not worth a call */

_Static_assert(ENGINE_SLOTS_MAX *(NUM_DIGITS_MAX + 1) <= ENGINE_VALUE_MAX,
               "a full record fits its text");

size_t counter_record_print(char *text, const struct counter_values *values, unsigned count)
{
    char *at = text;
    for (unsigned i = 0; i < count; i++) {
        if (values->set >> i & 1) {
            at += num_print(at, values->value[i]);
        }
        *at++ = ',';
    }
    return (size_t)(at - text) - 1; /* without the last comma */
}

static size_t without_spaces(const char *text, size_t length)
{
    while (length > 0 && text[length - 1] == ' ') {
        length--;
    }
    return length;
}

bool counter_number_parse(const char *text, size_t length, uint64_t *value)
{
    return num_parse(text, without_spaces(text, length), value);
}

/* A field that is not read as digits and no more: spaces after it, or twenty digits. Returns where
 * it ends; NULL: it is no number. */
static __attribute__((noinline)) const char *parse_odd(const char *at, const char *end,
                                                       uint64_t *value, bool *set)
{
    const char *comma = memchr(at, ',', (size_t)(end - at));
    const char *stop = comma ? comma : end;
    size_t digits = without_spaces(at, (size_t)(stop - at));
    *set = digits > 0;
    return !*set || num_parse(at, digits, value) ? stop : NULL;
}

/* num_read() of a field: the few digits that most have one by one. */
static inline size_t read_digits(const char *text, size_t length, uint64_t *value)
{
    uint64_t number = 0;
    size_t digits = 0;
    for (; digits < length && (unsigned char)text[digits] - (unsigned)'0' <= 9; digits++) {
        if (digits == SHORT_DIGITS) {
            return num_read(text, length, value);
        }
        number = number * 10 + (unsigned char)text[digits] - '0';
    }
    *value = number;
    return digits;
}

bool counter_record_parse(const char *text, size_t length, unsigned count,
                          struct counter_values *values)
{
    const char *end = text + length;
    values->set = 0;
    for (unsigned i = 0; i < count; i++) {
        size_t digits = read_digits(text, (size_t)(end - text), &values->value[i]);
        const char *stop = text + digits;
        bool set = digits > 0;
        if (UNLIKELY(stop < end && *stop != ',')) {
            stop = parse_odd(text, end, &values->value[i], &set);
        }
        bool last = i + 1 == count;
        if (stop == NULL || last != (stop == end)) {
            return false;
        }
        values->set |= (uint32_t)set << i;
        text = stop + 1;
    }
    return true;
}

uint64_t counter_record_token(uint64_t id, uint64_t name_hash, const char *text, size_t length)
{
    uint64_t token = hash_bytes(text, length, hash_u64(id) ^ name_hash) >> 1;
    return token ? token : 1;
}
