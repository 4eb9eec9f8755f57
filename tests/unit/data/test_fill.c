/* A directory that is filled without a journal: nothing of it counts before it is whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "data/fill.h"
#include "data_run.h"
#include "toy_engine.h"

static struct data_run run;

static int setup(void **state)
{
    (void)state;
    data_run_init(&run, 1);
    run.fills = true;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    data_run_fini(&run);
    return 0;
}

/* Ids of both spaces, in no journal. */
static void fill_some(uint64_t salt)
{
    barrier_stop(run.barrier); /* a toy is changed by one at a time */
    for (unsigned i = 0; i < DATA_RUN_SPACES; i++) {
        for (uint64_t id = 0; id < 2 * TOY_RANGE; id += 3) {
            assert_true(toy_set(data_run_engine(&run, i), change_sink_null(), id, id + salt + i));
            run.wanted[i][id] = id + salt + i;
        }
    }
    barrier_go(run.barrier);
}

/* True: the mark is gone, and the process has ended. */
static bool fill_end(void)
{
    bool ended = data_fill_ends(run.data, data_run_engine(&run, 0)) &&
                 data_fill_ends(run.data, data_run_engine(&run, 1));

    return data_run_end(&run) && ended;
}

/* What was filled is there for a daemon, which is left running. */
static void end_and_start(void)
{
    run.filled = true;
    assert_true(fill_end());
    run.fills = run.filled = false;
    assert_true(data_run_begin(&run));
    data_run_check(&run);
}

static void expect_refused(void)
{
    run.fills = false;
    assert_false(data_run_open(&run));
    assert_non_null(strstr(run.error, "an offline load into it has not ended"));
}

static void test_fill_is_whole(void **state)
{
    (void)state;
    assert_true(data_run_begin(&run));
    assert_true(data_is_filling(vfs_sim_vfs(run.sim), DATA_RUN_DIRECTORY));
    fill_some(5);
    run.filled = true;
    assert_true(fill_end());
    assert_int_equal(data_run_files(&run, "journal-0000000000000000"), 0); /* for no follower */
    assert_int_equal(data_run_files(&run, "journal-0"), 1); /* the last one, of no rows */
    assert_false(data_is_filling(vfs_sim_vfs(run.sim), DATA_RUN_DIRECTORY));
    run.fills = run.filled = false;
    assert_true(data_run_begin(&run));
    data_run_check(&run);
    data_run_set(&run, 0, 1, 77); /* and goes on as any */
    data_run_restart(&run);
    data_run_check(&run);
    assert_true(data_run_end(&run));
    run.fills = true;
    assert_false(data_run_open(&run));
    assert_non_null(strstr(run.error, "it is not empty, as it has "));
}

/* A table that has an image of where the journal ends is written again, though no record came. */
static void test_fill_after_a_checkpoint(void **state)
{
    (void)state;
    assert_true(data_run_begin(&run));
    data_run_checkpoints(&run);
    fill_some(1);
    assert_true(data_run_checkpoint(&run));
    fill_some(9);
    end_and_start();
    assert_true(data_run_end(&run));
}

static void test_fill_cut_off(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        run.fills = true;
        assert_true(data_run_begin(&run));
        fill_some(round);
        if (round == 0) {
            data_run_kill(&run);
        } else if (round == 1) {
            data_run_power_cut(&run, round);
        } else { /* it ended well, but nobody said that it is filled */
            assert_true(fill_end());
        }
        expect_refused();
    }
    run.fills = true;
    memset(run.wanted, 0, sizeof(run.wanted));
    assert_true(data_run_begin(&run));
    data_run_check(&run); /* nothing is left of those before */
    fill_some(7);
    end_and_start();
    assert_true(data_run_end(&run));
}

static void test_fill_finds_something(void **state)
{
    struct vfs *vfs = vfs_sim_vfs(run.sim);

    (void)state;
    assert_int_equal(vfs->functions->mkdir(vfs, DATA_RUN_DIRECTORY), 0);
    assert_true(vfs_replace_file(vfs, DATA_RUN_DIRECTORY, "notes", "mine", 4));
    assert_false(data_run_open(&run));
    assert_non_null(strstr(run.error, "it is not empty, as it has notes"));
    assert_false(data_is_filling(vfs, DATA_RUN_DIRECTORY)); /* nor is it marked */
    assert_int_equal(data_run_files(&run, "notes"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fill_is_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fill_after_a_checkpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fill_cut_off, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fill_finds_something, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
