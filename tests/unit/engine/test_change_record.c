/* test_change_record.c: changes and events come back as they were; what is no record is refused. */
#include "engine/change_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/support/random.h"

#define ROUNDS     20000
#define ALL_SLOTS  ((1u << CHANGE_SLOTS_MAX) - 1)
#define ONE_SLOT_B 16 /* bytes of the payload of a change of one slot */

static enum change_record_kind decode(const struct change_record *record, struct change *change)
{
    struct change_record_event event;
    return change_record_decode(record->type, record->a, record->b, record->words, record->bytes,
                                change, &event);
}

static struct change random_change(struct test_random *random)
{
    struct change change = {.type = (enum change_type)test_random_below(random, 4),
                            .space = (uint32_t)test_random_below(random, CHANGE_SPACE_MAX + 1),
                            .id = test_random_next(random) >> 1};
    if (change.type == CHANGE_SLOTS) {
        change.place = (enum change_place)test_random_below(random, CHANGE_THERE_APART + 1);
        change.named = test_random_once_in(random, 2)
                           ? 1u << test_random_below(random, CHANGE_SLOTS_MAX)
                           : (uint32_t)test_random_next(random) & ALL_SLOTS;
        change.set = change.named & (uint32_t)test_random_next(random);
        for (unsigned slot = 0; slot < CHANGE_SLOTS_MAX; slot++) {
            change.values[slot] = test_random_next(random);
        }
    } else if (change.type == CHANGE_DELETE) {
        change.place = (enum change_place)test_random_below(random, CHANGE_APART + 1);
        change.layer = change.place == CHANGE_INSIDE
                           ? 1 + (unsigned)test_random_below(random, CHANGE_LAYERS_MAX)
                           : 0;
    } else {
        bool add = change.type == CHANGE_MEMBER_ADD;
        change.place = (enum change_place)test_random_below(random, add ? 3 : 4);
        change.member[0] = test_random_next(random);
        change.member[1] = test_random_next(random);
    }
    return change;
}

static void expect_same(const struct change *was, const struct change *is)
{
    assert_int_equal(was->type, is->type);
    assert_int_equal(was->space, is->space);
    assert_int_equal(was->place, is->place);
    assert_int_equal(was->id, is->id);
    if (was->type == CHANGE_SLOTS) {
        assert_int_equal(was->named, is->named);
        assert_int_equal(was->set, is->set);
        for (uint32_t left = was->set; left != 0; left &= left - 1) {
            int slot = __builtin_ctz(left);
            assert_int_equal(was->values[slot], is->values[slot]);
        }
    } else if (was->type == CHANGE_DELETE) {
        assert_int_equal(was->layer, is->layer);
    } else {
        assert_int_equal(was->member[0], is->member[0]);
        assert_int_equal(was->member[1], is->member[1]);
    }
}

static void test_changes(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    for (uint64_t i = 0; i < test_scaled(ROUNDS); i++) {
        struct change change = random_change(&random);
        struct change back;
        struct change_record record;
        change_record_encode(&change, &record);
        assert_true(record.type >= CHANGE_RECORD_SLOT && record.bytes <= CHANGE_RECORD_BYTES_MAX);
        assert_int_equal(record.bytes % sizeof(uint64_t), 0);
        memset(&back, 0xff, sizeof(back));
        assert_int_equal(decode(&record, &back), CHANGE_RECORD_IS_CHANGE);
        expect_same(&change, &back);
    }
}

/* As long as a table has one layer, a journal is as it was before there were more. */
static void test_layers(void **unused)
{
    (void)unused;
    struct change_record record;
    struct change change = {.type = CHANGE_DELETE, .place = CHANGE_INSIDE, .layer = 1};
    change_record_encode(&change, &record);
    assert_int_equal(record.b, 1);
    change.layer = CHANGE_LAYERS_MAX;
    change_record_encode(&change, &record);
    assert_int_equal(decode(&record, &change), CHANGE_RECORD_IS_CHANGE);
    assert_int_equal(change.layer, CHANGE_LAYERS_MAX);
}

/* The usual change, and those at the ends of what can be. */
static void test_sizes(void **unused)
{
    (void)unused;
    struct change_record record;
    struct change change = {.type = CHANGE_SLOTS, .named = 1u << 15, .set = 1u << 15};
    change.values[15] = UINT64_MAX;
    change_record_encode(&change, &record);
    assert_int_equal(record.type, CHANGE_RECORD_SLOT);
    assert_int_equal(record.bytes, ONE_SLOT_B);
    change.named = change.set = ALL_SLOTS;
    change_record_encode(&change, &record);
    assert_int_equal(record.bytes, CHANGE_RECORD_BYTES_MAX);
    change.set = 0;
    change_record_encode(&change, &record);
    assert_int_equal(record.bytes, 2 * sizeof(uint64_t));
    change.named = 0; /* a new record of nothing but unset slots */
    change_record_encode(&change, &record);
    assert_int_equal(decode(&record, &change), CHANGE_RECORD_IS_CHANGE);
    assert_int_equal(change.named, 0);
}

static void test_events(void **unused)
{
    (void)unused;
    static const size_t lengths[] = {0, 1, 7, 8, 9, 16, CHANGE_EVENT_BYTES_MAX};
    unsigned char bytes[CHANGE_EVENT_BYTES_MAX];
    memset(bytes, 0x5a, sizeof(bytes));
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        uint64_t words[CHANGE_EVENT_BYTES_MAX / 8 + 2];
        memset(words, 0xff, sizeof(words));
        size_t payload = change_record_encode_event(words, bytes, lengths[i]);
        assert_int_equal(payload % sizeof(uint64_t), 0);
        assert_in_range(payload, 8 + lengths[i], 8 + lengths[i] + 7);
        for (size_t rest = 8 + lengths[i]; rest < payload; rest++) {
            assert_int_equal(((unsigned char *)words)[rest], 0);
        }
        struct change change;
        struct change_record_event event;
        assert_int_equal(change_record_decode(CHANGE_RECORD_EVENT, 3, CHANGE_EVENT_OPEN, words,
                                              payload, &change, &event),
                         CHANGE_RECORD_IS_EVENT);
        assert_int_equal(event.space, 3);
        assert_int_equal(event.event, CHANGE_EVENT_OPEN);
        assert_int_equal(event.length, lengths[i]);
        assert_memory_equal(event.bytes, bytes, lengths[i]);
    }
}

/* Words of all lengths that are allowed; a byte after a word, none, or too few bytes is no head.
 */
static void test_space_head(void **unused)
{
    static const char *const names[] = {"a", "feed", "abcdefghijklmnopqrstuvwxyz012345"};
    unsigned char bytes[CHANGE_SPACE_HEAD_BYTES];
    struct change_space_head head, read;
    (void)unused;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        change_space_head_init(&head, names[i], "counter");
        change_space_head_encode(&head, bytes);
        assert_true(change_space_head_decode(bytes, sizeof(bytes), &read));
        assert_string_equal(read.name, names[i]);
        assert_string_equal(read.kind, "counter");
        assert_false(change_space_head_decode(bytes, sizeof(bytes) - 1, &read));
        bytes[sizeof(bytes) - 1] = 'x';
        assert_false(change_space_head_decode(bytes, sizeof(bytes), &read));
        bytes[sizeof(bytes) - 1] = 0;
        bytes[0] = 0;
        assert_false(change_space_head_decode(bytes, sizeof(bytes), &read));
    }
}

struct bad {
    uint8_t type, b;
    size_t bytes;
    uint64_t words[4];
};

static const struct bad BADS[] = {
    {0, 0, 16, {1, 2}},                                /* the journal's own */
    {CHANGE_RECORD_EVENT + 1, 0, 16, {1, 2}},          /* no such */
    {CHANGE_RECORD_SLOT, 64, 8, {1}},                  /* too short */
    {CHANGE_RECORD_SLOT, 64, 24, {1, 2, 3}},           /* too long */
    {CHANGE_RECORD_SLOT, 64, 13, {1, 2}},              /* no whole words */
    {CHANGE_RECORD_SLOT, 128, 16, {1, 2}},             /* a bit too many */
    {CHANGE_RECORD_SLOT, 0, 16, {1, 2}},               /* unset with a value */
    {CHANGE_RECORD_SLOT, 128 | 64, 16, {1, 2}},        /* more than set */
    {CHANGE_RECORD_SLOTS, 0, 8, {1}},                  /* no slots */
    {CHANGE_RECORD_SLOTS, 4, 16, {1, 1}},              /* no such place */
    {CHANGE_RECORD_SLOTS, 0, 16, {1, 1 | 1 << 16}},    /* a value is missing */
    {CHANGE_RECORD_SLOTS, 0, 24, {1, 1 | 2 << 16, 5}}, /* set, but not named */
    {CHANGE_RECORD_SLOTS, 0, 16, {1, 1ull << 32}},     /* no such slot */
    {CHANGE_RECORD_DELETE, 3, 8, {1}},                 /* no such place */
    {CHANGE_RECORD_DELETE, 4, 8, {1}},                 /* a layer, but not in it */
    {CHANGE_RECORD_DELETE, 1 + 15 * 4, 8, {1}},        /* no such layer */
    {CHANGE_RECORD_DELETE, 0, 16, {1, 2}},
    {CHANGE_RECORD_DELETE, 0, 0, {0}},
    {CHANGE_RECORD_MEMBER_ADD, 0, 16, {1, 2}},
    {CHANGE_RECORD_MEMBER_ADD, 3, 24, {1, 2, 3}},
    {CHANGE_RECORD_MEMBER_DELETE, 4, 24, {1, 2, 3}},
    {CHANGE_RECORD_EVENT, CHANGE_EVENT_OPEN, 16, {9, 1}}, /* bytes are missing */
    {CHANGE_RECORD_EVENT, CHANGE_EVENT_OPEN, 24, {8, 1}}, /* too many */
    {CHANGE_RECORD_EVENT, CHANGE_EVENT_OPEN, 16, {UINT64_MAX, 1}},
    {CHANGE_RECORD_EVENT, 0, 16, {8, 1}},
    {CHANGE_RECORD_EVENT, CHANGE_EVENT_PART + 1, 16, {8, 1}},
};

static void test_bad(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof(BADS) / sizeof(BADS[0]); i++) {
        struct change change;
        struct change_record_event event;
        enum change_record_kind kind = change_record_decode(
            BADS[i].type, 1, BADS[i].b, BADS[i].words, BADS[i].bytes, &change, &event);
        if (kind != CHANGE_RECORD_IS_BAD) {
            fail_msg("bad record %zu was taken for one", i);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),    cmocka_unit_test(test_layers),
        cmocka_unit_test(test_sizes),      cmocka_unit_test(test_events),
        cmocka_unit_test(test_space_head), cmocka_unit_test(test_bad)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
