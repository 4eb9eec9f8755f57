/* Tables that leave memory: rounds for them alone, what the manifest names, and starts. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data_run.h"
#include "tests/support/random.h"
#include "toy_engine.h"

#define TABLES 4
#define CUTS   24

static struct data_run run;

static int setup(void **state)
{
    (void)state;
    data_run_init(&run, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    data_run_fini(&run);
    return 0;
}

static void fill(uint64_t salt)
{
    for (uint64_t id = 0; id < TABLES * TOY_RANGE; id += 7) {
        assert_true(data_run_set(&run, 0, id, id + salt));
        assert_true(data_run_set(&run, 1, id, id + salt + 1));
    }
}

static void begin(void)
{
    assert_true(data_run_begin(&run));
    data_run_checkpoints(&run);
}

/* World stopped: the toy's tables are its keeper's and the checkpoint's too. */
static void ask(void (*what)(struct engine *engine, uint64_t id), unsigned space, uint64_t id)
{
    barrier_stop(run.barrier);
    what(data_run_engine(&run, space), id);
    barrier_go(run.barrier);
}

/* Images are counted when the round is over. */
static void dump(unsigned space, uint64_t id)
{
    struct data_stats before = data_run_stats(&run);

    ask(toy_leave, space, id);
    DATA_RUN_WAIT_FOR(data_run_stats(&run).images > before.images);
    assert_true(data_run_stats(&run).dumps == before.dumps + 1);
}

static void merge(unsigned space, uint64_t id)
{
    struct data_stats before = data_run_stats(&run);

    ask(toy_merge, space, id);
    DATA_RUN_WAIT_FOR(data_run_stats(&run).images > before.images);
    assert_true(data_run_stats(&run).merges == before.merges + 1);
}

static void restart(void)
{
    data_run_kill(&run);
    assert_true(data_run_begin(&run));
    data_run_check(&run);
    data_run_checkpoints(&run);
}

/* Before any checkpoint a dump is one of all; after it one of that space alone. */
static void test_alone(void **state)
{
    (void)state;
    begin();
    fill(1);
    dump(0, 0);
    DATA_RUN_WAIT_FOR(data_run_stats(&run).checkpoints == 1);
    assert_true(data_run_set(&run, 1, 5, 55));
    uint64_t lsn = data_run_stats(&run).checkpoint_lsn;
    uint64_t images = data_run_stats(&run).images;

    dump(0, TOY_RANGE);
    assert_int_equal(data_run_stats(&run).checkpoints, 1);
    assert_int_equal(data_run_stats(&run).images, images + 1);
    assert_true(data_run_stats(&run).checkpoint_lsn == lsn);
    assert_int_equal(data_run_stats(&run).dump_files, 2);
    assert_int_equal(data_run_files(&run, ".table"), 2 * TABLES);
    restart();
    assert_true(toy_dumped(data_run_engine(&run, 0), 0));
    assert_true(toy_dumped(data_run_engine(&run, 0), TOY_RANGE));
    assert_false(toy_dumped(data_run_engine(&run, 0), 2 * TOY_RANGE));
    assert_true(data_run_end(&run));
}

/* What changed of it has a file of its own, which a merge makes superfluous. */
static void test_overlay_and_merge(void **state)
{
    (void)state;
    begin();
    fill(1);
    dump(0, 0);
    assert_true(data_run_set(&run, 0, 3, 33));
    assert_true(data_run_checkpoint(&run));
    assert_int_equal(data_run_files(&run, "a-1-2-"), 1);
    assert_int_equal(data_run_files(&run, ".table"), 2 * TABLES + 1);
    assert_true(data_run_set(&run, 0, 4, 44));
    assert_true(data_run_checkpoint(&run));
    assert_int_equal(data_run_files(&run, "a-1-2-"), 1);
    restart();
    assert_true(toy_dumped(data_run_engine(&run, 0), 0));
    merge(0, 0);
    assert_int_equal(data_run_files(&run, "a-1-2-"), 0);
    assert_int_equal(data_run_files(&run, "a-1-0-"), 1);
    restart();
    assert_true(data_run_set(&run, 0, 4, 45));
    assert_true(data_run_end(&run));
    assert_true(data_run_begin(&run));
    data_run_check(&run);
    assert_true(data_run_end(&run));
}

static void test_power_cuts(void **state)
{
    struct test_random random = {.state = 11};

    (void)state;
    begin();
    fill(1);
    assert_true(data_run_checkpoint(&run));
    for (unsigned i = 0; i < CUTS; i++) {
        uint64_t id = test_random_below(&random, TABLES) * TOY_RANGE;
        bool there = toy_dumped(data_run_engine(&run, 0), id);

        assert_true(data_run_set(&run, 0, id + i, 1000 + i));
        assert_true(journal_sync_now(data_journal(run.data)));
        ask(there ? toy_merge : toy_leave, 0, id);
        for (uint64_t k = test_random_below(&random, 2000); k > 0; k--) {
            sched_yield();
        }
        data_run_power_cut(&run, i);
        assert_true(data_run_begin(&run));
        data_run_check(&run);
        data_run_checkpoints(&run);
    }
    assert_true(data_run_end(&run));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overlay_and_merge, setup, teardown),
        cmocka_unit_test_setup_teardown(test_power_cuts, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
