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
static __attribute__((noinline)) const char *
parse_odd(const char *at, const char *end, unsigned field, struct counter_values *values)
{
    const char *comma = memchr(at, ',', (size_t)(end - at));
    const char *stop = comma ? comma : end;
    size_t digits = without_spaces(at, (size_t)(stop - at));
    bool set = digits > 0;
    values->set = (values->set & ~(1u << field)) | (uint32_t)set << field;
    return !set || num_parse(at, digits, &values->value[field]) ? stop : NULL;
}

static inline bool is_decimal(char byte)
{
    return (unsigned char)byte - (unsigned)'0' <= 9;
}

/* Reads the digits of a field, one by one the few that most have. Returns where they end. */
static inline const char *read_digits(const char *at, const char *end, uint64_t *value)
{
    const char *begin = at;
    const char *limit = end - at > SHORT_DIGITS ? at + SHORT_DIGITS : end;
    uint64_t number = 0;
    for (; at < limit && is_decimal(*at); at++) {
        number = number * 10 + ((unsigned char)*at - (unsigned)'0');
    }
    if (UNLIKELY(at == limit && at < end) && is_decimal(*at)) {
        return begin + num_read(begin, (size_t)(end - begin), value);
    }
    *value = number;
    return at;
}

bool counter_record_parse(const char *text, size_t length, unsigned count,
                          struct counter_values *values)
{
    const char *end = text + length;
    values->set = 0;
    for (unsigned i = 0; i < count; i++) {
        const char *stop = read_digits(text, end, &values->value[i]);
        values->set |= (uint32_t)(stop != text) << i;
        if (stop != end && UNLIKELY(*stop != ',')) {
            stop = parse_odd(text, end, i, values);
        }
        if (stop == end) {
            return i + 1 == count;
        }
        if (UNLIKELY(stop == NULL)) {
            return false;
        }
        text = stop + 1;
    }
    return false; /* there are more */
}

uint64_t counter_record_token(uint64_t id, uint64_t name_hash, const char *text, size_t length)
{
    uint64_t token = hash_bytes(text, length, hash_u64(id) ^ name_hash) >> 1;
    return token ? token : 1;
}
