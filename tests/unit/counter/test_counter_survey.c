/*
 * test_counter_survey.c: a look at the values of a space meets each record in memory once, knows
 * the largest number of each slot, and which do not fit theirs and the bits that would hold them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "counter/counter_private.h"
#include "tests/support/counters.h"

#define TABLES    6u
#define IDS       20000u
#define FAR       (1ull << 50) /* outside of every window: in a dict */
#define STEPS_MAX 1000u

static struct engine *open_tables(const char *slots)
{
    struct counter_config config;
    counters_config(&config, slots);
    config.row.tables = TABLES;
    config.aux_bytes = 256u << 10;
    return counters_create(&config);
}

static void put(struct engine *engine, int slot, uint64_t id, uint64_t value)
{
    struct counters_call call;
    char text[32];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    assert_int_equal(counters_do(engine, &call, ENGINE_SET, slot, id, text), ENGINE_DONE);
}

static void look(const struct engine *engine, struct engine_survey *survey)
{
    unsigned steps = 0;
    memset(survey, 0, sizeof(*survey));
    while (counter_survey(engine, survey)) {
        assert_true(++steps < STEPS_MAX);
    }
}

static uint64_t met(const struct engine_survey *survey)
{
    return survey->reach[ENGINE_REACH_HOME] + survey->reach[ENGINE_REACH_OTHER] +
           survey->reach[ENGINE_REACH_DICT];
}

/* The edge of a slot of four bits is 13, and 14 needs five. */
static void test_edges(void **unused)
{
    static const struct {
        uint64_t value;
        unsigned bits; /* 0: it fits */
    } edges[] = {{0, 0},          {13, 0},
                 {14, 5},         {29, 5},
                 {30, 6},         {1021, 10},
                 {1022, 11},      {(1ull << 40) - 3, 40},
                 {61, 6},         {UINT64_MAX - 2, 64},
                 {UINT64_MAX, 64}};
    uint64_t by_bits[65] = {0};
    uint64_t beside = 0;
    struct engine_survey survey;
    struct engine *engine = open_tables("a:4 b:20");
    (void)unused;
    look(engine, &survey);
    assert_int_equal(met(&survey), 0);
    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        put(engine, 0, 100 + i, edges[i].value);
        by_bits[edges[i].bits] += edges[i].bits != 0;
        beside += edges[i].bits != 0;
        look(engine, &survey);
        assert_int_equal(met(&survey), i + 1);
        assert_int_equal(survey.slots[0].beside, beside);
        assert_memory_equal(survey.slots[0].by_bits, by_bits, sizeof(by_bits));
    }
    assert_int_equal(survey.slots[0].largest, UINT64_MAX);
    assert_int_equal(survey.slots[1].largest, 0);
    put(engine, 1, 100, 1000000);
    look(engine, &survey);
    assert_int_equal(survey.slots[1].largest, 1000000);
    assert_int_equal(survey.slots[1].beside, 0);
    engine->functions->destroy(engine);
}

/* Over several tables, in groups and in dicts; a further slot that tables lack counts as it is. */
static void test_all_met(void **unused)
{
    struct engine_survey survey;
    struct counter_config config;
    struct engine *engine = open_tables("a:4 b:20");
    uint64_t large = 0;
    (void)unused;
    for (uint64_t id = 1; id <= IDS; id++) {
        uint64_t value = id % 100 == 0 ? id : id % 14;
        put(engine, 0, id, value);
        large += value > 13;
    }
    put(engine, 1, FAR, 77);
    look(engine, &survey);
    assert_int_equal(met(&survey), IDS + 1);
    assert_true(survey.reach[ENGINE_REACH_OTHER] > 0 && survey.reach[ENGINE_REACH_DICT] > 0);
    assert_true(survey.reach[ENGINE_REACH_HOME] > survey.reach[ENGINE_REACH_OTHER]);
    assert_int_equal(survey.slots[0].beside, large);
    assert_int_equal(survey.slots[0].largest, IDS);
    assert_int_equal(survey.slots[1].largest, 77);

    config = ((const struct counter *)engine)->config;
    counters_config_slots(&config, "c:8 a:4 b:20");
    counters_reconfigure(engine, &config);
    put(engine, 0, 5, 200);
    put(engine, 0, 6, 300);
    look(engine, &survey);
    assert_int_equal(survey.slots[0].largest, 300);
    assert_int_equal(survey.slots[0].beside, 1); /* 200 lies beside its table, but would fit */
    assert_int_equal(survey.slots[1].beside, large);
    assert_int_equal(survey.slots[2].largest, 77);
    engine->functions->destroy(engine);
}

/* Records of sixteen small slots have many values: a step looks at fewer of them. */
static void test_steps(void **unused)
{
    struct engine_survey survey = {.from = 0};
    uint64_t before = 0;
    unsigned steps = 0;
    struct engine *engine = open_tables("a:2 b:2 c:2 d:2 e:2 f:2 g:2 h:2 i:2 j:2 k:2 l:2 m:2 n:2 "
                                        "o:2 p:2");
    (void)unused;
    for (uint64_t id = 1; id <= IDS; id++) {
        put(engine, 15, id, 1);
    }
    while (counter_survey(engine, &survey)) {
        assert_true((met(&survey) - before) * 16 <= COUNTER_SURVEY_VALUES + 64 * 16);
        before = met(&survey);
        assert_true(++steps < STEPS_MAX);
    }
    assert_int_equal(met(&survey), IDS);
    assert_true(steps > IDS * 16 / COUNTER_SURVEY_VALUES);
    engine->functions->destroy(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_all_met),
        cmocka_unit_test(test_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
