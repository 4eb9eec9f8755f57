/* test_record.c: records to and from text, byte for byte, and what is refused. */
#include "counter/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/support/random.h"

#define ROUNDS 100000u

/* A value of any length, the edges often. */
static uint64_t any_value(struct test_random *random)
{
    uint64_t value = test_random_next(random) >> test_random_below(random, 64);
    switch (test_random_below(random, 8)) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    default:
        return value;
    }
}

static void test_round_trip(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    uint64_t rounds = test_scaled(ROUNDS);
    for (uint64_t round = 0; round < rounds; round++) {
        unsigned count = 1 + (unsigned)test_random_below(&random, ENGINE_SLOTS_MAX);
        struct counter_values values = {0};
        struct counter_values back = {0};
        values.set = (uint32_t)test_random_below(&random, 1ull << count);
        for (unsigned i = 0; i < count; i++) {
            values.value[i] = any_value(&random);
        }
        char text[ENGINE_VALUE_MAX + 1];
        char again[ENGINE_VALUE_MAX + 1];
        size_t length = counter_record_print(text, &values, count);
        assert_true(length <= ENGINE_VALUE_MAX);
        assert_true(counter_record_parse(text, length, count, &back));
        assert_int_equal(back.set, values.set);
        assert_int_equal(counter_record_print(again, &back, count), length);
        assert_memory_equal(again, text, length);
    }
}

static void test_longest(void **unused)
{
    (void)unused;
    struct counter_values values = {.set = (1u << ENGINE_SLOTS_MAX) - 1};
    memset(values.value, 0xff, sizeof(values.value));
    char text[ENGINE_VALUE_MAX];
    size_t length = counter_record_print(text, &values, ENGINE_SLOTS_MAX);
    assert_int_equal(length, ENGINE_SLOTS_MAX * 20 + ENGINE_SLOTS_MAX - 1);
    assert_true(counter_record_parse(text, length, ENGINE_SLOTS_MAX, &values));
}

struct example {
    const char *text;
    unsigned count;
    const char *back; /* NULL: refused */
};

static const struct example examples[] = {
    {"12,,30,400", 4, "12,,30,400"},
    {",,,", 4, ",,,"},
    {"", 1, ""},
    {"7", 1, "7"},
    {"0007,00,", 3, "7,0,"},
    {"7  ,8 ,9   ", 3, "7,8,9"}, /* spaces after a number: decr of memcached pads */
    {"  ,1", 2, ",1"},
    {"18446744073709551615,1", 2, "18446744073709551615,1"},
    {"18446744073709551616,1", 2, NULL},
    {"000000000000000000001,1", 2, NULL}, /* 21 digits */
    {"00000000000000000001,1", 2, "1,1"},
    {"1,2,3", 4, NULL},
    {"1,2,3,4,5", 4, NULL},
    {"1,2,3,4,", 4, NULL},
    {"", 2, NULL},
    {",", 1, NULL},
    {" 1,2", 2, NULL},
    {"1, 2", 2, NULL},
    {"1 2,3", 2, NULL},
    {"-1,2", 2, NULL},
    {"+1,2", 2, NULL},
    {"1.0,2", 2, NULL},
    {"0x1,2", 2, NULL},
    {"a,2", 2, NULL},
    {"1,2\n", 2, NULL},
    {"1;2", 2, NULL},
};

static void test_examples(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
        const struct example *example = &examples[i];
        struct counter_values values;
        size_t length = strlen(example->text);
        bool taken = counter_record_parse(example->text, length, example->count, &values);
        if (taken != (example->back != NULL)) {
            fail_msg("'%s' with %u slots", example->text, example->count);
        }
        if (taken) {
            char text[ENGINE_VALUE_MAX + 1] = "";
            text[counter_record_print(text, &values, example->count)] = '\0';
            assert_string_equal(text, example->back);
        }
    }
}

static void test_numbers(void **unused)
{
    (void)unused;
    uint64_t value = 0;
    assert_true(counter_number_parse("18446744073709551615", 20, &value) && value == UINT64_MAX);
    assert_true(counter_number_parse("0042   ", 7, &value) && value == 42);
    assert_false(counter_number_parse("", 0, &value));
    assert_false(counter_number_parse("   ", 3, &value));
    assert_false(counter_number_parse(" 1", 2, &value));
    assert_false(counter_number_parse("1,2", 3, &value));
    assert_false(counter_number_parse("18446744073709551616", 20, &value));
    assert_false(counter_number_parse("1\0", 2, &value)); /* length counts, not NUL */
}

/* Fixed numbers: a token may not change between versions, or a restart would fail a cas. */
static void test_tokens(void **unused)
{
    (void)unused;
    uint64_t token = counter_record_token(1, 0, "12", 2);
    assert_true(token != 0);
    assert_true(token == counter_record_token(1, 0, "12,", 2));
    assert_true(token != counter_record_token(2, 0, "12", 2));
    assert_true(token != counter_record_token(1, 5, "12", 2));
    assert_true(token != counter_record_token(1, 0, "13", 2));
    assert_true(token == hash_bytes("12", 2, hash_u64(1)) >> 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_longest),
        cmocka_unit_test(test_examples),   cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
