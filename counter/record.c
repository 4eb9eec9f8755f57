#include "counter/record.h"

#include <string.h>

#include "base/hash.h"
#include "base/num.h"

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

bool counter_record_parse(const char *text, size_t length, unsigned count,
                          struct counter_values *values)
{
    values->set = 0;
    for (unsigned i = 0; i < count; i++) {
        const char *comma = memchr(text, ',', length);
        bool last = i + 1 == count;
        if (last != (comma == NULL)) {
            return false;
        }
        size_t field = comma ? (size_t)(comma - text) : length;
        size_t digits = without_spaces(text, field);
        if (digits > 0) {
            if (!num_parse(text, digits, &values->value[i])) {
                return false;
            }
            values->set |= 1u << i;
        }
        if (!last) {
            text += field + 1;
            length -= field + 1;
        }
    }
    return true;
}

uint64_t counter_record_token(uint64_t id, uint64_t name_hash, const char *text, size_t length)
{
    uint64_t token = hash_bytes(text, length, hash_u64(id) ^ name_hash) >> 1;
    return token ? token : 1;
}
