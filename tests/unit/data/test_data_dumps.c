/* Tables that leave memory: rounds for them alone, what the manifest names, and starts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>

#include "data/follow.h"
#include "data_run.h"
#include "store/cold.h"
#include "store/manifest.h"
#include "tests/support/give_way.h"
#include "tests/support/random.h"
#include "toy_engine.h"

#define TABLES 4
#define CUTS   24

static struct data_run run;

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
    data_run_restart(&run);
    data_run_checkpoints(&run);
}

/* Before any checkpoint a dump is one of all; after it one of that space alone. */
static void test_alone(void **state)
{
    (void)state;
    data_run_start(&run);
    data_run_fill(&run, TABLES, 1);
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

/* A node that follows may go back as far as a start needs no more of the journal. */
static void test_rewind(void **state)
{
    (void)state;
    data_run_start(&run);
    data_run_fill(&run, TABLES, 1);
    dump(0, 0);
    DATA_RUN_WAIT_FOR(data_run_stats(&run).checkpoints == 1);
    uint64_t lsn = data_run_stats(&run).checkpoint_lsn;

    assert_true(data_run_set(&run, 1, 5, 55));
    assert_int_equal(data_can_rewind(run.data, lsn), DATA_REWIND);
    dump(0, TOY_RANGE); /* its file has what was put since, and replay still begins there */
    assert_true(data_run_stats(&run).checkpoint_lsn == lsn);
    assert_int_equal(data_can_rewind(run.data, lsn), DATA_REWIND_COPY);
    lsn = journal_head(data_journal(run.data));
    assert_int_equal(data_can_rewind(run.data, lsn), DATA_REWIND);
    assert_true(data_run_end(&run));
}

/* What changed of it has a file of its own, which a merge makes superfluous. */
static void test_overlay_and_merge(void **state)
{
    (void)state;
    data_run_start(&run);
    data_run_fill(&run, TABLES, 1);
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

static void wake(void *target, uint64_t serial)
{
    _Atomic bool *woken = target;

    (void)serial;
    *woken = true;
}

/* Pages of a file that a merge has replaced are not held, nor read any more. */
static void test_replaced_is_forgotten(void **state)
{
    char page[TABLE_FILE_PAGE_BYTES];
    char error[TABLE_FILE_ERROR_MAX];
    _Atomic bool woken = false;
    struct ticket ticket = {wake, &woken, 1};
    struct cold_stats stats;

    (void)state;
    run.settings.cold.cache_bytes = 1u << 20;
    run.settings.spaces[0].oldest = SPACE_OLDEST_DUMP;
    data_run_start(&run);
    data_run_fill(&run, TABLES, 1);
    dump(0, 0);
    struct cold *cold = data_cold(run.data);

    for (uint64_t i = 0; i < 2; i++) {
        const struct table_file *file = toy_file(data_run_engine(&run, 0), 0);

        assert_int_equal(cold_get(cold, file, i, &ticket, page, error), COLD_PENDING);
        DATA_RUN_WAIT_FOR(woken);
        cold_stats(cold, &stats);
        assert_int_equal(stats.promised + stats.cached_pages, 2);
        merge(0, 0);
        cold_stats(cold, &stats);
        assert_int_equal(stats.promised, 0);
        assert_int_equal(stats.cached_pages, 0);
        woken = false;
        cold_release(cold, &ticket);
    }
    assert_true(data_run_end(&run));
}

/* Of the table of id 0. */
static const char *file_path(void)
{
    return table_file_path(toy_file(data_run_engine(&run, 0), 0));
}

struct unlinking {
    unsigned unlinked;
    bool was_read; /* a file that the engine still had */
};

/* By the thread of checkpoints, which hands files over, too. */
static void see_unlink(void *context, enum vfs_sim_op op, const char *path)
{
    struct unlinking *unlinking = context;

    if (op == VFS_SIM_UNLINK && strstr(path, ".table") != NULL) {
        unlinking->unlinked++;
        unlinking->was_read |= strcmp(file_path(), path) == 0;
    }
}

/* Its descriptor may be closed at any time: the name goes once nobody reads the file any more. */
static void test_unlinked_last(void **state)
{
    struct unlinking unlinking = {0};

    (void)state;
    data_run_start(&run);
    data_run_fill(&run, TABLES, 1);
    dump(0, 0);
    vfs_sim_hook(run.sim, see_unlink, &unlinking);
    for (uint64_t i = 0; i < 3; i++) {
        assert_true(data_run_set(&run, 0, 3, 33 + i));
        merge(0, 0);
    }
    vfs_sim_hook(run.sim, NULL, NULL);
    assert_true(unlinking.unlinked >= 3 && !unlinking.was_read);
    assert_non_null(strstr(file_path(), "a-1-0-"));
    assert_true(data_run_end(&run));
}

/* The keeper touches it while the dump and the manifest are made: it waits, or the dump is made
 * anew, however often. */
static void test_touched(void **state)
{
    (void)state;
    data_run_start(&run);
    data_run_fill(&run, TABLES, 1);
    assert_true(data_run_checkpoint(&run));
    struct engine *engine = data_run_engine(&run, 0);

    for (uint64_t table = 0; table < TABLES; table++) {
        uint64_t before = data_run_stats(&run).dumps;

        ask(toy_leave, 0, table * TOY_RANGE);
        while (data_run_stats(&run).dumps == before) {
            engine->keeper.notify(engine->keeper.context);
            give_way();
        }
    }
    restart();
    assert_true(data_run_end(&run));
}

/* ---- brackets of others ---- */

#define BRACKET_S 60 /* SIGALRM ends a test in which a bracket waits for a file */

struct bracketing {
    _Atomic unsigned brackets;
    _Atomic unsigned touches; /* left, before the last look at the dumps */
    uint64_t images;          /* of space a by then */
};

static void touch_again(struct bracketing *bracketing)
{
    struct engine *engine = data_run_engine(&run, 0);

    if (toy_images(engine) >= bracketing->images && bracketing->touches > 0) {
        bracketing->touches--;
        bracketing->images = toy_images(engine) + 1;
        ask(toy_touch, 0, 0);
        assert_true(data_run_set(&run, 0, 3, bracketing->images));
    }
}

/* By the thread that writes: what is in a bracket of the checkpoint's hangs here. */
static void bracket(void *context, enum vfs_sim_op op, const char *path)
{
    struct bracketing *bracketing = context;
    bool writes = op == VFS_SIM_PWRITE || op == VFS_SIM_FDATASYNC;

    if (writes && strstr(path, ".table") != NULL) {
        keeper_stop(run.keeper);
        keeper_go(run.keeper, NULL);
        bracketing->brackets++;
    } else if (op == VFS_SIM_FDATASYNC && strstr(path, "journal-") != NULL) {
        touch_again(bracketing);
    }
}

/* While b's is written a's is touched: written already, it has to be made anew. */
static void touch_a(void *context, struct engine *engine, uint64_t serial)
{
    bool *touched = context;

    (void)engine;
    (void)serial;
    if (!*touched) {
        *touched = true;
        ask(toy_touch, 0, 0);
        assert_true(data_run_set(&run, 0, 3, 77));
    }
}

static void test_brackets_while_written(void **state)
{
    struct bracketing bracketing = {.touches = 2};
    bool touched = false;

    (void)state;
    alarm(BRACKET_S);
    data_run_start(&run);
    data_run_fill(&run, TABLES, 1);
    assert_true(data_run_checkpoint(&run));
    uint64_t images = toy_images(data_run_engine(&run, 0));

    bracketing.images = images + 2;
    toy_on_image(data_run_engine(&run, 1), touch_a, &touched);
    vfs_sim_hook(run.sim, bracket, &bracketing);
    barrier_stop(run.barrier); /* one round for both */
    toy_leave(data_run_engine(&run, 0), 0);
    toy_leave(data_run_engine(&run, 1), 0);
    barrier_go(run.barrier);
    DATA_RUN_WAIT_FOR(data_run_stats(&run).dumps == 2);
    assert_int_equal(toy_images(data_run_engine(&run, 0)), images + 4);
    assert_true(bracketing.brackets > 4);
    vfs_sim_hook(run.sim, NULL, NULL);
    restart();
    assert_true(toy_dumped(data_run_engine(&run, 0), 0));
    assert_true(data_run_end(&run));
    alarm(0);
}

/* ---- failures ---- */

static bool time_passes(void)
{
    vfs_sim_advance(run.sim, 10000);
    return true;
}

/* Fails as the fault says; nothing is lost; it is tried again when time has passed. */
static void fail_once(void (*what)(struct engine *engine, uint64_t id),
                      const struct vfs_sim_fault *fault)
{
    struct data_stats before = data_run_stats(&run);
    uint64_t files = before.dumps + before.merges;
    unsigned number = vfs_sim_fault(run.sim, fault);

    ask(what, 0, 0);
    DATA_RUN_WAIT_FOR(data_run_stats(&run).dump_failures > before.dump_failures);
    assert_true(vfs_sim_fault_hits(run.sim, number) > 0);
    assert_true(data_run_set(&run, 0, 5, 1000 + number));
    assert_true(data_run_stats(&run).dumps + data_run_stats(&run).merges == files);
    vfs_sim_faults_end(run.sim);
    if (what == toy_merge) {
        ask(what, 0, 0);
    }
    DATA_RUN_WAIT_FOR(time_passes() &&
                      data_run_stats(&run).dumps + data_run_stats(&run).merges > files);
    DATA_RUN_WAIT_FOR(data_run_files(&run, "a-1-0-") == 1); /* the round is over */
}

static void test_disk_fails(void **state)
{
    static const struct vfs_sim_fault faults[] = {
        {.op = VFS_SIM_OPEN, .path = "a-1-0-", .error = ENOSPC},
        {.op = VFS_SIM_PWRITE, .path = "a-1-0-", .error = ENOSPC},
        {.op = VFS_SIM_PWRITE, .path = "a-1-0-", .first = 2, .error = EIO},
        {.op = VFS_SIM_FDATASYNC, .path = "a-1-0-", .error = EIO},
        {.op = VFS_SIM_FDATASYNC, .path = "a-1-0-", .first = 2, .error = ENOSPC},
        {.op = VFS_SIM_PREAD, .path = "a-1-0-", .error = EIO}, /* it cannot be opened */
        {.op = VFS_SIM_FDATASYNC, .path = MANIFEST_NAME, .error = EIO},
        {.op = VFS_SIM_RENAME, .path = MANIFEST_NAME, .error = ENOSPC},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        data_run_fini(&run);
        data_run_init(&run, i);
        data_run_start(&run);
        data_run_fill(&run, TABLES, 1);
        assert_true(data_run_checkpoint(&run));
        fail_once(toy_leave, &faults[i]);
        fail_once(toy_merge, &faults[i]);
        restart();
        assert_true(toy_dumped(data_run_engine(&run, 0), 0));
        assert_true(data_run_end(&run));
    }
}

/* Each way a round can fail, be it of one space alone, ends the waits of requests for all. */
static void test_waits_end(void **state)
{
    static const struct vfs_sim_fault faults[] = {
        {.op = VFS_SIM_PWRITE, .path = "a-1-0-", .error = ENOSPC},
        {.op = VFS_SIM_PREAD, .path = "a-1-0-", .error = EIO},
        {.op = VFS_SIM_OPEN, .path = MANIFEST_NAME, .error = EMFILE},
        {.op = VFS_SIM_PWRITE, .path = MANIFEST_NAME, .error = ENOSPC},
        {.op = VFS_SIM_RENAME, .path = MANIFEST_NAME, .error = EIO},
        {.op = VFS_SIM_SYNC_DIR, .error = EIO},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        data_run_fini(&run);
        data_run_init(&run, i);
        data_run_start(&run);
        data_run_fill(&run, TABLES, 1);
        assert_true(data_run_checkpoint(&run));
        assert_int_equal(toy_failed_rounds(data_run_engine(&run, 0)), 0);
        vfs_sim_fault(run.sim, &faults[i]);
        ask(toy_leave, 0, 0);
        for (unsigned space = 0; space < DATA_RUN_SPACES; space++) {
            DATA_RUN_WAIT_FOR(toy_failed_rounds(data_run_engine(&run, space)) > 0);
        }
        vfs_sim_faults_end(run.sim);
        DATA_RUN_WAIT_FOR(time_passes() && data_run_stats(&run).dumps > 0);
        restart();
        assert_true(data_run_end(&run));
    }
}

/* Before the keeper has its turn, were it not in a bracket: so often others come first. */
#define TURNS 2000

struct keeping_out {
    _Atomic bool asked;
    bool kept_out;
};

/* By the thread of checkpoints, as it stores the next manifest: the keeper is asked to touch all
 * tables. */
static void ask_keeper(void *context, enum vfs_sim_op op, const char *path)
{
    struct keeping_out *keeping_out = context;
    struct engine *engine = data_run_engine(&run, 0);
    uint64_t before = toy_maintained(engine);

    if (op != VFS_SIM_RENAME || strstr(path, MANIFEST_NAME) == NULL || keeping_out->asked) {
        return;
    }
    keeping_out->asked = true;
    engine->keeper.notify(engine->keeper.context);
    for (unsigned i = 0; i < TURNS && toy_maintained(engine) == before; i++) {
        give_way();
    }
    keeping_out->kept_out = toy_maintained(engine) == before;
}

/*
 * A dump whose manifest may be on the disk or not is handed over by the next round in a bracket of
 * the keeper's, though that round has no dump of its own, or one of another space alone.
 */
static void pending_in_bracket(bool other)
{
    static const struct vfs_sim_fault fault = {
        .op = VFS_SIM_PWRITE, .path = MANIFEST_NAME, .error = ENOSPC};
    struct keeping_out keeping_out = {0};

    data_run_start(&run);
    data_run_fill(&run, TABLES, 1); /* no checkpoint yet: a dump's round is one of all */
    vfs_sim_fault(run.sim, &fault);
    ask(toy_leave, 0, 0);
    DATA_RUN_WAIT_FOR(toy_failed_rounds(data_run_engine(&run, 1)) > 0);
    assert_int_equal(data_run_stats(&run).dumps, 0);
    vfs_sim_faults_end(run.sim);
    if (other) {
        ask(toy_touch, 0, 0);
        ask(toy_leave, 1, 0);
    }
    vfs_sim_hook(run.sim, ask_keeper, &keeping_out);
    DATA_RUN_WAIT_FOR(time_passes() && data_run_stats(&run).dumps > other);
    vfs_sim_hook(run.sim, NULL, NULL);
    assert_true(keeping_out.asked && keeping_out.kept_out);
    restart();
    assert_true(toy_dumped(data_run_engine(&run, 0), 0));
    assert_true(data_run_end(&run));
}

static void test_pending_in_bracket(void **state)
{
    (void)state;
    pending_in_bracket(false);
}

static void test_pending_with_another(void **state)
{
    (void)state;
    pending_in_bracket(true);
}

/* It fails, and the process ends before it is tried again. */
static void test_failed_and_killed(void **state)
{
    static const enum vfs_sim_op ops[] = {VFS_SIM_PWRITE, VFS_SIM_SYNC_DIR};

    (void)state;
    data_run_start(&run);
    data_run_fill(&run, TABLES, 1);
    assert_true(data_run_checkpoint(&run));
    for (size_t i = 0; i < 4; i++) {
        struct vfs_sim_fault fault = {.op = ops[i % 2], .error = EIO};
        uint64_t before = data_run_stats(&run).dump_failures;

        fault.path = fault.op == VFS_SIM_PWRITE ? "a-1-0-" : NULL;
        vfs_sim_fault(run.sim, &fault);
        bool there = toy_dumped(data_run_engine(&run, 0), 0);

        ask(there ? toy_merge : toy_leave, 0, 0);
        DATA_RUN_WAIT_FOR(data_run_stats(&run).dump_failures > before);
        ask(toy_touch, 0, 0);
        assert_true(data_run_set(&run, 0, 7, 70 + i));
        vfs_sim_faults_end(run.sim);
        restart();
    }
    assert_true(data_run_end(&run));
}

/* A merge that fails stops no checkpoint: what changed is in an overlay's image as before. */
static void checkpoint_without_merge(bool full)
{
    static const struct vfs_sim_fault fault = {
        .op = VFS_SIM_PWRITE, .path = "a-1-0-", .error = ENOSPC};

    data_run_start(&run);
    data_run_fill(&run, TABLES, 1);
    dump(0, 0);
    struct data_stats before = data_run_stats(&run);

    if (full) {
        vfs_sim_fault(run.sim, &fault);
    }
    assert_true(data_run_set(&run, 0, 0, full ? 11 : TOY_BAD));
    ask(toy_merge, 0, 0);
    assert_true(data_run_set(&run, 0, 3, 33));
    DATA_RUN_WAIT_FOR(data_run_stats(&run).dump_failures > before.dump_failures);
    assert_true(data_run_checkpoint(&run));
    assert_int_equal(data_run_stats(&run).checkpoint_failures, before.checkpoint_failures);
    assert_true(data_run_stats(&run).merges == before.merges);
    vfs_sim_faults_end(run.sim);
    assert_true(data_run_set(&run, 0, 0, 12));
    ask(toy_merge, 0, 0);
    DATA_RUN_WAIT_FOR(data_run_stats(&run).merges > before.merges);
    restart();
    assert_true(data_run_end(&run));
}

static void test_merge_on_full_disk(void **state)
{
    (void)state;
    checkpoint_without_merge(true);
}

static void test_merge_of_bad_file(void **state)
{
    (void)state;
    checkpoint_without_merge(false);
}

static void want_merge(void *context, struct engine *engine, uint64_t serial)
{
    bool *wanted = context;

    (void)engine;
    (void)serial;
    if (!*wanted) {
        *wanted = true;
        ask(toy_merge, 0, 0);
    }
}

/* A round of all makes merges, too, if they are asked for while it writes: the same holds there. */
static void test_merge_fails_in_round_of_all(void **state)
{
    bool wanted = false;

    (void)state;
    data_run_start(&run);
    data_run_fill(&run, TABLES, 1);
    dump(0, 0);
    assert_true(data_run_set(&run, 0, 0, TOY_BAD));
    assert_true(data_run_set(&run, 0, TOY_RANGE, 5));
    struct data_stats before = data_run_stats(&run);

    toy_on_image(data_run_engine(&run, 0), want_merge, &wanted);
    assert_true(data_run_checkpoint(&run));
    toy_on_image(data_run_engine(&run, 0), NULL, NULL);
    assert_true(wanted);
    assert_int_equal(data_run_stats(&run).dump_failures, before.dump_failures + 1);
    assert_int_equal(data_run_stats(&run).checkpoint_failures, before.checkpoint_failures);
    assert_true(data_run_stats(&run).merges == before.merges);
    assert_true(toy_dumped(data_run_engine(&run, 0), 0));
    restart();
    assert_true(data_run_end(&run));
}

static void test_power_cuts(void **state)
{
    struct test_random random = {.state = 11};

    (void)state;
    data_run_start(&run);
    data_run_fill(&run, TABLES, 1);
    assert_true(data_run_checkpoint(&run));
    for (unsigned i = 0; i < CUTS; i++) {
        uint64_t id = test_random_below(&random, TABLES) * TOY_RANGE;
        bool there = toy_dumped(data_run_engine(&run, 0), id);

        assert_true(data_run_set(&run, 0, id + i, 1000 + i));
        assert_true(journal_sync_now(data_journal(run.data)));
        ask(there ? toy_merge : toy_leave, 0, id);
        for (uint64_t k = test_random_below(&random, 2000); k > 0; k--) {
            give_way();
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
        DATA_RUN_TEST(test_alone, &run),
        DATA_RUN_TEST(test_rewind, &run),
        DATA_RUN_TEST(test_overlay_and_merge, &run),
        DATA_RUN_TEST(test_replaced_is_forgotten, &run),
        DATA_RUN_TEST(test_unlinked_last, &run),
        DATA_RUN_TEST(test_touched, &run),
        DATA_RUN_TEST(test_brackets_while_written, &run),
        DATA_RUN_TEST(test_disk_fails, &run),
        DATA_RUN_TEST(test_waits_end, &run),
        DATA_RUN_TEST(test_pending_in_bracket, &run),
        DATA_RUN_TEST(test_pending_with_another, &run),
        DATA_RUN_TEST(test_merge_on_full_disk, &run),
        DATA_RUN_TEST(test_merge_of_bad_file, &run),
        DATA_RUN_TEST(test_merge_fails_in_round_of_all, &run),
        DATA_RUN_TEST(test_failed_and_killed, &run),
        DATA_RUN_TEST(test_power_cuts, &run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
