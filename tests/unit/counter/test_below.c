/*
 * test_below.c: records below the oldest table: a map that may forget, and tells how often; the
 * ones used last stay; threads.
 */
#include "counter/below.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tests/support/random.h"

#define IDS        300u
#define ID_BASE    (1ull << 62)
#define ROUNDS     300000u
#define THREADS    4
#define SHARED     16u /* ids of all threads */
#define INCREMENTS 40000u
#define LARGE      (1u << 20) /* bytes: forgets none of these few */
#define ALL_SLOTS  ENGINE_SLOTS_MAX

/* ---- edits ---- */

/* Sets what `to` has, unsets the other named slots; not if `add` and it is there. */
struct write {
    struct counter_values to;
    bool add;
    bool was_there;
    struct counter_values was;
};

static enum engine_status decide_write(const struct counter_edit *edit, bool present,
                                       const struct counter_values *before,
                                       struct counter_values *after)
{
    struct write *write = edit->context;
    write->was_there = present;
    write->was = *before;
    if (write->add && present) {
        return ENGINE_EXISTS;
    }
    after->set = (before->set & ~edit->named) | write->to.set;
    for (unsigned i = 0; i < ENGINE_SLOTS_MAX; i++) {
        if (write->to.set >> i & 1) {
            after->value[i] = write->to.value[i];
        }
    }
    return ENGINE_DONE;
}

static enum engine_status put(struct counter_below *below, uint64_t id, uint32_t named,
                              struct write *write)
{
    struct counter_edit edit = {.named = named, .decide = decide_write, .context = write};
    return counter_below_edit(below, id, &edit);
}

static void put_one(struct counter_below *below, uint64_t id, uint64_t value)
{
    struct write write = {.to = {.set = 1, .value = {value}}};
    assert_int_equal(put(below, id, 1, &write), ENGINE_DONE);
}

static bool has_one(struct counter_below *below, uint64_t id, uint64_t value)
{
    struct counter_values values;
    if (!counter_below_look(below, id, &values)) {
        return false;
    }
    assert_true(values.set == 1 && values.value[0] == value);
    return true;
}

static struct counter_below *create(uint64_t bytes, unsigned slots)
{
    struct counter_below *below = counter_below_create(bytes, slots);
    assert_non_null(below);
    return below;
}

static struct counter_below_stats figures(const struct counter_below *below)
{
    struct counter_below_stats stats;
    counter_below_stats(below, &stats);
    return stats;
}

/* ---- against a map ---- */

struct model {
    struct counter_below *below;
    struct test_random random;
    unsigned slots;
    struct counter_values has[IDS]; /* set 0: not there */
    uint64_t forgotten, hits;
};

static void expect_same(const struct model *model, const struct counter_values *has,
                        const struct counter_values *found)
{
    assert_int_equal(has->set, found->set);
    for (unsigned i = 0; i < model->slots; i++) {
        assert_true(!(has->set >> i & 1) || has->value[i] == found->value[i]);
    }
}

/* What was found, or not, of an id. */
static void compare(struct model *model, unsigned index, bool there,
                    const struct counter_values *found)
{
    struct counter_values *has = &model->has[index];
    if (there) {
        expect_same(model, has, found);
    } else if (has->set) {
        model->forgotten++;
        has->set = 0;
    }
}

static void look(struct model *model, unsigned index)
{
    struct counter_values found;
    bool there = counter_below_look(model->below, ID_BASE + index, &found);
    model->hits += there;
    compare(model, index, there, &found);
}

static void change(struct model *model, unsigned index)
{
    struct test_random *random = &model->random;
    uint32_t all = (1u << model->slots) - 1;
    uint32_t named = test_random_once_in(random, 2) ? all : 1u << test_random_below(random, 3);
    struct write write = {.add = test_random_once_in(random, 4)};
    write.to.set = (uint32_t)test_random_next(random) & named;
    for (unsigned i = 0; i < model->slots; i++) {
        write.to.value[i] = test_random_next(random) >> test_random_below(random, 64);
    }
    enum engine_status status = put(model->below, ID_BASE + index, named, &write);
    compare(model, index, write.was_there, &write.was);
    struct counter_values *has = &model->has[index];
    assert_int_equal(status, write.add && has->set ? ENGINE_EXISTS : ENGINE_DONE);
    if (status == ENGINE_DONE) {
        has->set = (has->set & ~named) | write.to.set;
        for (unsigned i = 0; i < model->slots; i++) {
            has->value[i] = write.to.set >> i & 1 ? write.to.value[i] : has->value[i];
        }
    }
}

static void run_model(unsigned slots, uint64_t bytes, bool forgets)
{
    struct model model = {.below = create(bytes, slots), .random = {test_seed()}, .slots = slots};
    uint64_t rounds = test_scaled(ROUNDS);
    for (uint64_t round = 0; round < rounds; round++) {
        unsigned index = (unsigned)test_random_below(&model.random, IDS);
        if (test_random_once_in(&model.random, 2)) {
            look(&model, index);
        } else {
            change(&model, index);
        }
        if (round % 1000 == 0) {
            counter_below_check(model.below, ID_BASE + IDS);
        }
    }
    uint64_t left = 0;
    for (unsigned i = 0; i < IDS; i++) {
        look(&model, i);
        left += model.has[i].set != 0;
    }
    struct counter_below_stats stats = figures(model.below);
    assert_true(stats.records == left && stats.hits == model.hits);
    assert_true(stats.evicted == model.forgotten && forgets == (model.forgotten > 0));
    assert_true(stats.used_bytes <= stats.held_bytes && stats.held_bytes == bytes);
    counter_below_check(model.below, ID_BASE + IDS);
    counter_below_destroy(model.below);
}

static void test_model(void **unused)
{
    (void)unused;
    run_model(ALL_SLOTS, COUNTER_BELOW_BYTES_MIN, true);
    run_model(3, COUNTER_BELOW_BYTES_MIN, true);
    run_model(3, 5000, true);
    run_model(ALL_SLOTS, LARGE, false);
    run_model(3, LARGE, false);
}

/* ---- which are forgotten ---- */

/* However many come: the last ones used, as many as a bucket holds, are there. */
static void test_used_last_stay(void **unused)
{
    (void)unused;
    struct counter_below *below = create(COUNTER_BELOW_BYTES_MIN, ALL_SLOTS);
    const uint64_t others = 1000, latest = COUNTER_BELOW_WAYS - 2; /* and one of every round */
    for (uint64_t id = 0; id < others; id++) {
        put_one(below, id, id * 3);
        if (id % 2 == 0) {
            put_one(below, ID_BASE, 7);
        } else {
            assert_true(has_one(below, ID_BASE, 7));
        }
        for (uint64_t back = 0; back <= id && back < latest; back++) {
            assert_true(has_one(below, id - back, (id - back) * 3));
        }
    }
    assert_false(has_one(below, 0, 0));
    assert_true(figures(below).evicted > others / 2);
    counter_below_check(below, ID_BASE + 1);
    counter_below_destroy(below);
}

/* It holds about as many as its bytes say, before many are forgotten. */
static void test_capacity(void **unused)
{
    (void)unused;
    struct counter_below *below = create(LARGE, 4);
    uint64_t fit = LARGE / 50;
    for (uint64_t id = 0; id < fit / 2; id++) {
        put_one(below, id, id);
    }
    uint64_t early = figures(below).evicted;
    for (uint64_t id = fit / 2; id < 10 * fit; id++) {
        put_one(below, id, id);
    }
    struct counter_below_stats stats = figures(below);
    printf("%" PRIu64 " of %" PRIu64 " forgotten when half full; %" PRIu64 " at most\n", early,
           fit / 2, stats.records);
    assert_true(early < fit / 40);
    assert_true(stats.records > fit * 9 / 10 && stats.records + stats.evicted == 10 * fit);
    counter_below_check(below, 10 * fit);
    counter_below_destroy(below);
}

/* ---- all values, all slots; begun anew ---- */

static void test_reset(void **unused)
{
    (void)unused;
    struct counter_below *below = create(LARGE, 2);
    struct counter_values values;
    struct write full = {.to = {.set = (1u << ALL_SLOTS) - 1}};
    memset(full.to.value, 0xff, sizeof(full.to.value));
    put_one(below, 0, UINT64_MAX);
    assert_true(has_one(below, 0, UINT64_MAX));
    counter_below_reset(below, ALL_SLOTS);
    assert_false(counter_below_look(below, 0, &values));
    assert_int_equal(figures(below).records, 0);
    for (uint64_t id = INT64_MAX - 100; id <= INT64_MAX; id++) {
        assert_int_equal(put(below, id, full.to.set, &full), ENGINE_DONE);
    }
    for (uint64_t id = INT64_MAX - 100; id <= INT64_MAX; id++) {
        assert_true(counter_below_look(below, id, &values));
        assert_int_equal(values.set, full.to.set);
        assert_memory_equal(values.value, full.to.value, sizeof(values.value));
    }
    counter_below_check(below, 1ull << 63);
    counter_below_reset(below, 1);
    counter_below_check(below, 0);
    counter_below_destroy(below);
    counter_below_destroy(NULL);
}

/* ---- threads ---- */

struct race {
    struct counter_below *below;
    _Atomic uint64_t created;
    uint64_t seed;
    bool forgets;
};

static enum engine_status decide_add(const struct counter_edit *edit, bool present,
                                     const struct counter_values *before,
                                     struct counter_values *after)
{
    uint64_t id = *(const uint64_t *)edit->context;
    for (unsigned i = 0; i < 2; i++) {
        after->value[i] = present ? before->value[i] + 1 : id << 32;
    }
    after->set = 3;
    return ENGINE_DONE;
}

/* Both numbers of a record are always the same, and of its id. */
static void expect_whole(uint64_t id, const struct counter_values *values)
{
    CHECK(values->set == 3 && values->value[0] == values->value[1]);
    CHECK(values->value[0] >> 32 == id);
}

static void *run_race(void *argument)
{
    struct race *race = argument;
    struct test_random random = {race->seed + (uintptr_t)&random};
    for (unsigned i = 0; i < INCREMENTS; i++) {
        uint64_t ids = race->forgets ? IDS : SHARED;
        uint64_t id = 1 + test_random_below(&random, ids);
        struct counter_edit edit = {.named = 3, .decide = decide_add, .context = &id};
        struct counter_values values;
        CHECK(counter_below_edit(race->below, id, &edit) == ENGINE_DONE);
        expect_whole(id, &edit.after);
        if (edit.after.value[0] == id << 32) {
            atomic_fetch_add(&race->created, 1);
        }
        id = 1 + test_random_below(&random, ids);
        counter_below_prefetch(race->below, id);
        if (counter_below_look(race->below, id, &values)) {
            expect_whole(id, &values);
        }
    }
    return NULL;
}

/* No increment is lost, none is made of half a record; each record is created once. */
static void run_races(bool forgets)
{
    struct race race = {.seed = test_seed(), .forgets = forgets};
    race.below = create(forgets ? COUNTER_BELOW_BYTES_MIN : LARGE, 2);
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_race, &race), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    struct counter_below_stats stats = figures(race.below);
    struct counter_values values;
    uint64_t sum = 0;
    for (uint64_t id = 1; !forgets && id <= SHARED; id++) {
        assert_true(counter_below_look(race.below, id, &values));
        sum += (uint32_t)values.value[0];
    }
    assert_true(forgets || sum + SHARED == (uint64_t)THREADS * INCREMENTS);
    assert_true(stats.records + stats.evicted == race.created && forgets == (stats.evicted > 0));
    counter_below_check(race.below, IDS + 1);
    counter_below_destroy(race.below);
}

static void test_threads(void **unused)
{
    (void)unused;
    run_races(false);
    run_races(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),    cmocka_unit_test(test_used_last_stay),
        cmocka_unit_test(test_capacity), cmocka_unit_test(test_reset),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
