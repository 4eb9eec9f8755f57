/*
 * test_row_replay_random.c: rows of random configurations that random streams go through are made
 * again at random times: of the whole journal, and of blurred images with what came after. Now and
 * then the row made again takes the place of the live one.
 */
#include "row/row_cold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "row/row_data.h"
#include "row/row_private.h"
#include "tests/support/random.h"
#include "tests/unit/row/kept_row.h"

#define CAPACITY      KEPT_CAPACITY
#define FIRST         KEPT_FIRST
#define FAR           KEPT_FAR
#define ROUNDS        12
#define STEPS         6000
#define CHECKPOINT_IN 400
#define DUMP_IN       40
#define COMPARE_IN    1500

struct stream {
    struct test_random random;
    struct checkpoint point;
    uint64_t at; /* the next usual id */
    uint64_t spacing;
};

static uint64_t next_id(struct stream *stream, const struct kept *kept)
{
    struct test_random *random = &stream->random;
    uint64_t dice = test_random_below(random, 1000);
    if (dice < 5) {
        return test_random_next(random) >> (1 + test_random_below(random, 40)); /* typos */
    }
    if (dice < 60) { /* late ones */
        uint64_t back = test_random_below(random, 3 * CAPACITY * stream->spacing);
        return stream->at > back ? stream->at - back : back;
    }
    if (dice < 63) { /* another stream, for a while */
        stream->at += test_random_below(random, FAR);
    }
    if (dice < 70 && kept->count > 0) {
        return kept->ids[test_random_below(random, kept->count)];
    }
    stream->at += 1 + test_random_below(random, stream->spacing);
    return stream->at;
}

static void cluster(struct kept *kept, struct stream *stream)
{
    uint64_t from = stream->at + test_random_below(&stream->random, FAR);
    for (uint64_t i = 0; i <= ROW_CLUSTER; i++) {
        kept_add_one(kept, from + i * stream->spacing);
    }
}

static void one_step(struct kept *kept, struct stream *stream)
{
    struct test_random *random = &stream->random;
    if (test_random_once_in(random, 2000)) {
        cluster(kept, stream);
    } else if (test_random_once_in(random, 12) && kept->count > 0) {
        uint64_t id = kept->ids[test_random_below(random, kept->count)];
        if (fake_has(&kept->rows, id)) {
            fake_remove(&kept->rows, id);
        }
    } else if (test_random_once_in(random, 30000)) {
        row_clear(&kept->rows.row);
        fake_maintain(&kept->rows);
    } else {
        kept->recorder.refuse = test_random_once_in(random, 50);
        kept_add_one(kept, next_id(stream, kept));
        kept->recorder.refuse = false;
    }
}

static void some_steps(struct kept *kept, void *context)
{
    struct stream *stream = context;
    uint64_t n = test_random_below(&stream->random, 60);
    for (uint64_t i = 0; i < n; i++) {
        one_step(kept, stream);
    }
    stream->point.fail = stream->point.fail || test_random_once_in(&stream->random, 60);
    if (test_random_once_in(&stream->random, 20)) {
        kept->rows.row.again_us = kept->rows.row.dump_failed; /* time has passed */
    }
}

static void take_checkpoint(struct kept *kept, struct stream *stream)
{
    checkpoint_begin(&stream->point, kept);
    while (checkpoint_step(&stream->point, kept, some_steps, stream)) {
    }
    stream->point.fail = false;
    fake_maintain(&kept->rows);
}

static void compare(struct kept *kept, const struct checkpoint *point, bool whole)
{
    if (whole) {
        expect_again(kept);
    }
    if (point->m > 0) {
        again_load(kept, point);
        again_replay(kept, point->since, point->m);
        again_same(kept, false);
        fake_maintain(&kept->again);
        fake_fini(&kept->again);
    }
}

/* The row that is made again is the one that lives. */
static void restart(struct kept *kept, struct checkpoint *point)
{
    again_load(kept, point);
    again_replay(kept, point->since, point->m);
    again_same(kept, false);
    fake_fini(&kept->again);
    kept_replace(kept);
    checkpoint_load(point, &kept->rows);
    assert_true(recorder_replay(&kept->recorder, &kept->rows.engine, point->since, point->m, 1));
    fake_keep(&kept->rows, &kept->recorder);
    assert_true(kept->recorder.log.reserve(&kept->recorder.log));
    assert_true(row_restore_end(&kept->rows.row));
    fake_maintain(&kept->rows);
}

static void random_round(uint64_t seed)
{
    struct kept kept;
    struct stream stream = {.random = {seed}};
    struct checkpoint *point = &stream.point;
    bool recycle = test_random_once_in(&stream.random, 3);
    struct row_config config =
        fake_config(3 + (unsigned)test_random_below(&stream.random, 8), recycle);
    config.dump = !recycle && !test_random_once_in(&stream.random, 4);
    config.dumps_max = (unsigned)test_random_below(&stream.random, 6);
    config.late_room = test_random_once_in(&stream.random, 2) ? 0.1 : ROW_LATE_AUTO;
    stream.at = FIRST;
    stream.spacing = 1 + test_random_below(&stream.random, 20);
    kept_begin_with(&kept, &config);
    bool whole = !config.dump; /* no journal says who is cold */
    for (uint64_t i = 0; i < STEPS; i++) {
        one_step(&kept, &stream);
        bool wanted = row_cold_wanted(&kept.rows.row);
        if (test_random_once_in(&stream.random, wanted ? DUMP_IN : CHECKPOINT_IN)) {
            take_checkpoint(&kept, &stream);
        }
        if (test_random_once_in(&stream.random, COMPARE_IN)) {
            compare(&kept, point, whole);
        }
        if (point->m > 0 && test_random_once_in(&stream.random, COMPARE_IN)) {
            restart(&kept, point);
            whole = false; /* what is soft may be decided in another way from here on */
        }
    }
    compare(&kept, point, whole);
    checkpoint_fini(point);
    kept_row_end(&kept);
}

static void test_random(void **unused)
{
    (void)unused;
    uint64_t seed = test_seed();
    for (uint64_t i = 0; i < test_scaled(ROUNDS); i++) {
        random_round(seed + i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
