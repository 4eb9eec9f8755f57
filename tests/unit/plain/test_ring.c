/* The ring against a plain map that knows what each key holds: what is found is right, nothing goes
 * while there is room, and what was read stays longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "plain/ring.h"
#include "tests/support/random.h"

#define RING_BYTES 65536u
#define KEYS       400u
#define OPERATIONS 200000u
#define CHECK_EACH 997u
#define NOW_S      1000u

static struct ring *ring;

static int make(void **state)
{
    (void)state;
    ring = ring_create(RING_BYTES);
    return ring == NULL;
}

static int drop(void **state)
{
    (void)state;
    ring_destroy(ring);
    return 0;
}

/* hash_bits: few of them make keys meet in a bucket. */
static struct ring_key key_of(uint32_t number, char text[16], uint64_t hash_mask)
{
    size_t length = (size_t)snprintf(text, 16, "key%u", number);

    return (struct ring_key){text, length, hash_bytes(text, length, 1) & hash_mask};
}

static bool put(uint32_t number, uint64_t version, size_t length, uint64_t hash_mask)
{
    char text[16];
    struct ring_key key = key_of(number, text, hash_mask);
    struct ring_item *item = ring_store(ring, &key, length, NOW_S);

    if (item == NULL) {
        return false;
    }
    item->cas = version;
    memset(ring_value(item), (int)('a' + version % 26), length);
    return true;
}

static bool holds(uint32_t number, uint64_t version, size_t length, uint64_t hash_mask)
{
    char text[16];
    struct ring_key key = key_of(number, text, hash_mask);
    struct ring_item *item = ring_find(ring, &key);

    if (item == NULL) {
        return false;
    }
    assert_int_equal(item->cas, version);
    assert_int_equal(item->value_length, length);
    for (size_t i = 0; i < length; i++) {
        assert_int_equal(ring_value(item)[i], 'a' + version % 26);
    }
    return true;
}

struct entry {
    uint64_t version; /* 0: never stored, or removed */
    size_t length;
};

static void run_model(uint64_t seed, size_t length_max, uint64_t hash_mask)
{
    static struct entry entries[KEYS];
    struct test_random random;
    uint64_t count = test_scaled(OPERATIONS);
    uint64_t found = 0;

    memset(entries, 0, sizeof(entries));
    random.state = seed;
    for (uint64_t i = 1; i <= count; i++) {
        uint32_t number = (uint32_t)test_random_below(&random, KEYS);
        struct entry *entry = &entries[number];
        char text[16];
        struct ring_key key = key_of(number, text, hash_mask);

        switch (test_random_below(&random, 8)) {
        case 0: {
            struct ring_item *item = ring_find(ring, &key);

            if (item != NULL) {
                ring_remove(ring, item);
            }
            entry->version = 0;
            break;
        }
        case 1:
        case 2:
        case 3: {
            size_t length = test_random_below(&random, length_max);

            if (put(number, i, length, hash_mask)) {
                *entry = (struct entry){i, length};
            }
            break;
        }
        default:
            if (entry->version == 0) {
                assert_null(ring_find(ring, &key));
            } else {
                found += holds(number, entry->version, entry->length, hash_mask);
            }
        }
        if (i % CHECK_EACH == 0) {
            ring_check(ring);
        }
    }
    ring_check(ring);
    assert_true(found > 0);
}

static void test_model(void **state)
{
    (void)state;
    run_model(test_seed(), 64, UINT64_MAX);
}

static void test_model_large(void **state)
{
    (void)state;
    run_model(test_seed(), RING_BYTES / 3, UINT64_MAX); /* some are more than it takes */
}

static void test_model_one_bucket(void **state)
{
    (void)state;
    run_model(test_seed(), 600, 3);
}

/* All that fits stays, however often one of them is stored anew with another length. */
static void test_nothing_goes_for_what_is_dead(void **state)
{
    struct ring_stats stats;
    uint32_t keys = 100;

    (void)state;
    for (uint32_t i = 0; i < keys; i++) {
        assert_true(put(i, 1, 200, UINT64_MAX));
    }
    for (uint64_t i = 0; i < 20000; i++) {
        assert_true(put(keys, i, i % 500, UINT64_MAX));
    }
    for (uint32_t i = 0; i < keys; i++) {
        assert_true(holds(i, 1, 200, UINT64_MAX));
    }
    ring_stats(ring, &stats);
    assert_int_equal(stats.evicted, 0);
    assert_int_equal(stats.items, keys + 1);
    assert_true(stats.moved > 0);
}

/* Twice what fits: those that are read all the time are still there, most others are not. */
static void test_what_is_read_stays(void **state)
{
    enum { HOT = 20 };
    uint32_t keys = 2 * RING_BYTES / (sizeof(struct ring_item) + 8 + 200);
    unsigned lost = 0;

    (void)state;
    for (uint32_t i = 0; i < HOT; i++) {
        assert_true(put(i, 1, 200, UINT64_MAX));
    }
    for (uint32_t i = HOT; i < 10 * keys; i++) {
        char text[16];
        struct ring_key key = key_of(i % HOT, text, UINT64_MAX);
        struct ring_item *item = ring_find(ring, &key);

        if (item != NULL) {
            item->referenced = 1;
        }
        assert_true(put(i, 1, 200, UINT64_MAX));
    }
    for (uint32_t i = 0; i < HOT; i++) {
        lost += !holds(i, 1, 200, UINT64_MAX);
    }
    assert_int_equal(lost, 0);
    assert_false(holds(HOT, 1, 200, UINT64_MAX));
    ring_check(ring);
}

/* What was read once stays once longer, not for ever. */
static void test_what_was_read_once_goes(void **state)
{
    enum { ONCE = 20 };
    uint32_t keys = 2 * RING_BYTES / (sizeof(struct ring_item) + 8 + 200);

    (void)state;
    for (uint32_t i = 0; i < ONCE; i++) {
        char text[16];
        struct ring_key key = key_of(i, text, UINT64_MAX);

        assert_true(put(i, 1, 200, UINT64_MAX));
        ring_find(ring, &key)->referenced = 1;
    }
    for (uint32_t i = ONCE; i < 10 * keys; i++) {
        assert_true(put(i, 1, 200, UINT64_MAX));
    }
    for (uint32_t i = 0; i < ONCE; i++) {
        assert_false(holds(i, 1, 200, UINT64_MAX));
    }
}

/* One that was stored anew where it lay is not the oldest, though it lies there. */
static void test_stored_in_place_stays(void **state)
{
    struct ring_stats stats;
    uint32_t count = 0;

    (void)state;
    do {
        assert_true(put(count++, 1, 200, UINT64_MAX));
        ring_stats(ring, &stats);
    } while (stats.evicted == 0);
    uint32_t oldest = 0;

    while (!holds(oldest, 1, 200, UINT64_MAX)) {
        oldest++;
    }
    assert_true(put(oldest, 2, 200, UINT64_MAX));
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(put(count + i, 1, 200, UINT64_MAX));
    }
    assert_true(holds(oldest, 2, 200, UINT64_MAX));
    assert_false(holds(oldest + 1, 1, 200, UINT64_MAX));
}

static void test_limits(void **state)
{
    size_t most = ring_value_max(ring, 4);
    struct ring_stats stats;

    (void)state;
    assert_true(put(1, 1, most, UINT64_MAX));
    assert_false(put(1, 2, most + 1, UINT64_MAX));
    assert_true(holds(1, 1, most, UINT64_MAX)); /* nothing changed */
    ring_stats(ring, &stats);
    assert_true(stats.bytes <= RING_BYTES);
    ring_clear(ring);
    assert_false(holds(1, 1, most, UINT64_MAX));
    ring_check(ring);
}

/* What has expired goes first, and is no eviction. */
static void test_expired_is_no_eviction(void **state)
{
    struct ring_stats stats;

    (void)state;
    for (uint32_t i = 0; i < KEYS; i++) {
        char text[16];
        struct ring_key key = key_of(i, text, UINT64_MAX);
        struct ring_item *item = ring_store(ring, &key, 400, NOW_S);

        assert_non_null(item);
        item->expires_s = NOW_S;
        item->referenced = 1;
    }
    ring_stats(ring, &stats);
    assert_int_equal(stats.evicted, 0);
    assert_int_equal(stats.moved, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        TEST(test_model),
        TEST(test_model_large),
        TEST(test_model_one_bucket),
        TEST(test_nothing_goes_for_what_is_dead),
        TEST(test_what_is_read_stays),
        TEST(test_what_was_read_once_goes),
        TEST(test_stored_in_place_stays),
        TEST(test_limits),
        TEST(test_expired_is_no_eviction),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
