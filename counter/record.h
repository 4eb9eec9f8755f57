/*
 * record.h: a record's numbers to and from text.
 *
 * A slot is a decimal number. A whole record is its slots in the configuration's order joined by
 * ','; an unset slot is an empty field, so that writing back what was read keeps it unset. A number
 * has 1 to 20 digits; leading zeros and spaces after it are taken and dropped. Pure functions.
 */
#ifndef ROLLCALL_COUNTER_RECORD_H
#define ROLLCALL_COUNTER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"

/* Numbers of slots; those not in `set` are unset and their value means nothing. */
struct counter_values {
    uint32_t set; /* bit a slot */
    uint64_t value[ENGINE_SLOTS_MAX];
};

/* Text of slots 0 .. count - 1. Returns its length; text has room for ENGINE_VALUE_MAX bytes. */
size_t counter_record_print(char *text, const struct counter_values *values, unsigned count);

/* Exactly `count` fields, each a number or empty, into *values. False: anything else. */
bool counter_record_parse(const char *text, size_t length, unsigned count,
                          struct counter_values *values);

/* One number. False: anything else. */
bool counter_number_parse(const char *text, size_t length, uint64_t *value);

/*
 * The token of a cas: a 63-bit hash of id, name (0 for the whole record) and text; never 0. The
 * same in every process, so a replica or a restart does not change it. Not 64 bits: libmemcached
 * refuses to send tokens of 20 digits, and Java clients read them as signed.
 */
uint64_t counter_record_token(uint64_t id, uint64_t name_hash, const char *text, size_t length);

#endif
