/* Checkpoints: what they write, what they delete, what is left of one that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/log.h"
#include "data_run.h"
#include "store/manifest.h"
#include "tests/support/random.h"
#include "toy_engine.h"

#define TABLES         6
#define CUTS           60 /* of the test with power cuts, at 100 per cent */
#define CALLS_MAX      1000
#define BUNCH          20 /* sets between two syncs */
#define SOME_IDS       512
#define FILE_SPACES    (2 * TABLES)
#define IMAGES_ALLOWED (2 * TABLES + 16) /* of a space: checkpoint_private.h */

static struct data_run run;

/* Every table of both spaces gets something. */
static void fill(uint64_t salt)
{
    data_run_fill(&run, TABLES, salt);
}

/* ---- rounds ---- */

static void test_replay_begins_behind_it(void **state)
{
    (void)state;
    data_run_start(&run);
    fill(1);
    assert_true(data_run_checkpoint(&run));
    assert_int_equal(data_run_files(&run, ".table"), FILE_SPACES);
    assert_int_equal(data_run_stats(&run).table_files, FILE_SPACES);
    for (uint64_t id = 0; id < SOME_IDS; id++) {
        assert_true(data_run_set(&run, 1, id, 7 * id));
    }
    data_run_restart(&run);
    assert_int_equal(data_run_stats(&run).recovered_records, SOME_IDS);
    assert_int_equal(toy_replayed(data_run_engine(&run, 0)), 0);
    assert_true(data_run_end(&run));
}

/* Whatever the sync setting: what a checkpoint has seen is on the disk. */
static void test_power_cut_behind_it(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        data_run_start(&run);
        fill(seed + 1);
        assert_true(data_run_checkpoint(&run));
        data_run_power_cut(&run, seed);
        assert_true(data_run_begin(&run));
        data_run_check(&run);
        assert_true(data_run_end(&run));
    }
}

/* Only what changed is written; what was replaced goes; a table that is gone has no file. */
static void test_what_changed(void **state)
{
    (void)state;
    data_run_start(&run);
    fill(1);
    assert_true(data_run_checkpoint(&run));
    uint64_t images = data_run_stats(&run).images;

    assert_int_equal(images, FILE_SPACES);
    assert_true(data_run_checkpoint(&run));
    assert_int_equal(data_run_stats(&run).images, images);
    assert_true(data_run_set(&run, 0, 3, 33));
    assert_true(data_run_checkpoint(&run));
    assert_int_equal(data_run_stats(&run).images, images + 1);
    assert_int_equal(data_run_files(&run, ".table"), FILE_SPACES);
    data_run_restart(&run);
    assert_int_equal(data_run_stats(&run).recovered_records, 0);
    data_run_checkpoints(&run);
    assert_true(data_run_checkpoint(&run)); /* nor is what was only loaded */
    assert_int_equal(data_run_stats(&run).images, 0);
    assert_true(data_run_end(&run));
}

static uint64_t journal_files(void)
{
    struct journal_stats stats;

    journal_stats(data_journal(run.data), &stats);
    return stats.segments;
}

static void test_journal_is_trimmed(void **state)
{
    (void)state;
    data_run_start(&run);
    while (journal_files() < 3) {
        fill(journal_files() + 10);
    }
    assert_true(journal_sync_now(data_journal(run.data)));
    assert_true(data_run_checkpoint(&run));
    assert_true(data_run_set(&run, 0, 1, 1));
    assert_true(journal_sync_now(data_journal(run.data)));
    assert_true(data_run_checkpoint(&run)); /* by now the others are sealed, whoever does that */
    assert_true(journal_files() <= 2);
    data_run_restart(&run);
    assert_true(data_run_end(&run));
}

/* By itself, when so much has been put; and when so much time is over, but not for nothing. */
static void test_by_journal_bytes(void **state)
{
    (void)state;
    run.settings.checkpoint.journal_bytes = 4096;
    data_run_start(&run);
    for (uint64_t id = 0; id < SOME_IDS; id++) {
        assert_true(data_run_set(&run, 0, id, id));
    }
    DATA_RUN_WAIT_FOR(data_run_stats(&run).checkpoints > 0);
    data_run_restart(&run);
    assert_true(data_run_end(&run));
}

static void test_by_time(void **state)
{
    (void)state;
    vfs_sim_set_clock(run.sim, 1000);
    run.settings.checkpoint.every_ms = 60000;
    data_run_start(&run);
    assert_true(data_run_set(&run, 0, 3, 4));
    vfs_sim_advance(run.sim, 60000ull * 1000);
    DATA_RUN_WAIT_FOR(data_run_stats(&run).checkpoints == 1);
    data_run_restart(&run);
    assert_true(data_run_end(&run));
}

/* ---- while the tables are used ---- */

struct meddler {
    unsigned left; /* images to meddle with */
    uint64_t id;
};

/* Sets ids that make tables open and drop, and touches the one that is about to be written. */
static void meddle(void *context, struct engine *engine, uint64_t serial)
{
    struct meddler *meddler = context;
    unsigned space = engine == data_run_engine(&run, 0) ? 0 : 1;

    (void)serial;
    if (meddler->left == 0) {
        return;
    }
    meddler->left--;
    for (unsigned i = 0; i < SOME_IDS; i++) {
        meddler->id = (meddler->id + 61) % (TABLES * TOY_RANGE);
        assert_true(data_run_set(&run, space, meddler->id, meddler->id + 100 + meddler->left));
    }
    toy_touch(engine, meddler->id);
}

struct roller {
    uint64_t next; /* id */
};

static void set_one(void *context, struct engine *engine, uint64_t serial)
{
    struct roller *roller = context;

    (void)engine;
    (void)serial;
    roller->next++;
    assert_true(data_run_set(&run, 0, roller->next, roller->next + 9));
}

/* Files of images that ended when the journal was further than when they began. */
static unsigned blurred_files(void)
{
    struct manifest *manifest = data_run_manifest(&run);
    struct manifest_at at = {0};
    const struct manifest_file *file;
    unsigned blurred = 0;

    while ((file = manifest_next_file(manifest, &at)) != NULL) {
        blurred += file->end_lsn > file->start_lsn;
    }
    manifest_destroy(manifest);
    return blurred;
}

static void test_changes_meanwhile(void **state)
{
    (void)state;
    struct meddler meddlers[DATA_RUN_SPACES] = {{.left = 9}, {.left = 5}};
    struct roller setter = {.next = 5};

    data_run_start(&run);
    fill(1);
    for (unsigned i = 0; i < DATA_RUN_SPACES; i++) {
        toy_on_image(data_run_engine(&run, i), meddle, &meddlers[i]);
    }
    assert_true(data_run_checkpoint(&run));
    assert_int_equal(meddlers[0].left + meddlers[1].left, 0);
    assert_int_equal(data_run_files(&run, ".table"), FILE_SPACES);
    fill(2);
    toy_on_image(data_run_engine(&run, 1), NULL, NULL);
    toy_on_image(data_run_engine(&run, 0), set_one, &setter);
    assert_true(data_run_checkpoint(&run));
    assert_int_equal(blurred_files(), TABLES);
    data_run_restart(&run);
    assert_true(data_run_end(&run));
}

/* One table more with each image, so that old ones go: for as long as there are ids. */
static void roll(void *context, struct engine *engine, uint64_t serial)
{
    struct roller *roller = context;

    (void)engine;
    (void)serial;
    if (roller->next < DATA_RUN_IDS) {
        assert_true(data_run_set(&run, 0, roller->next, roller->next + 5));
        roller->next += TOY_RANGE;
    }
}

static void test_rolls_meanwhile(void **state)
{
    (void)state;
    struct roller roller = {.next = TABLES * TOY_RANGE};

    data_run_start(&run);
    fill(1);
    toy_on_image(data_run_engine(&run, 0), roll, &roller);
    assert_true(data_run_checkpoint(&run));
    assert_true(roller.next >= DATA_RUN_IDS);
    assert_int_equal(data_run_files(&run, "a-"), TOY_TABLES_KEPT);
    data_run_restart(&run);
    data_run_checkpoints(&run);
    assert_true(data_run_set(&run, 0, 0, 12));
    assert_true(data_run_checkpoint(&run));
    data_run_restart(&run);
    assert_true(data_run_end(&run));
}

/* Asks the keeper for maintenance, which touches all, with each image: as long as it may work, one
 * checkpoint would never end. */
static void ask_keeper(void *context, struct engine *engine, uint64_t serial)
{
    uint64_t *begun = context;
    uint64_t maintained = toy_maintained(engine);

    (void)serial;
    (*begun)++;
    engine->keeper.notify(engine->keeper.context);
    if (*begun <= IMAGES_ALLOWED) {
        DATA_RUN_WAIT_FOR(toy_maintained(engine) > maintained);
    } else { /* it is held, but a flush_all or a reload gets its bracket */
        keeper_stop(run.keeper);
        keeper_go(run.keeper, NULL);
    }
}

static void test_rolls_too_fast(void **state)
{
    (void)state;
    uint64_t begun = 0;

    data_run_start(&run);
    fill(1);
    toy_on_image(data_run_engine(&run, 0), ask_keeper, &begun);
    assert_true(data_run_checkpoint(&run));
    assert_int_equal(begun, IMAGES_ALLOWED + TABLES);
    DATA_RUN_WAIT_FOR(toy_maintained(data_run_engine(&run, 0)) > IMAGES_ALLOWED); /* it goes on */
    data_run_restart(&run);
    assert_true(data_run_end(&run));
}

/* ---- failures ---- */

static void test_disk_full(void **state)
{
    (void)state;
    data_run_start(&run);
    fill(1);
    assert_true(data_run_checkpoint(&run));
    fill(2);
    unsigned fault = vfs_sim_fault(
        run.sim,
        &(struct vfs_sim_fault){.op = VFS_SIM_PWRITE, .path = "b-", .first = 3, .error = ENOSPC});

    assert_false(data_run_checkpoint(&run));
    assert_true(vfs_sim_fault_hits(run.sim, fault) > 0);
    assert_int_equal(data_run_files(&run, ".table"), FILE_SPACES); /* of the one before */
    fill(3);
    vfs_sim_faults_end(run.sim);
    assert_true(data_run_checkpoint(&run)); /* a's images of the failed one went, too */
    assert_int_equal(data_run_files(&run, ".table"), FILE_SPACES);
    data_run_restart(&run);
    assert_int_equal(data_run_stats(&run).recovered_records, 0);
    assert_true(data_run_end(&run));
}

static void test_failed_and_killed(void **state)
{
    (void)state;
    data_run_start(&run);
    fill(1);
    assert_true(data_run_checkpoint(&run));
    fill(2);
    vfs_sim_fault(run.sim,
                  &(struct vfs_sim_fault){.op = VFS_SIM_FDATASYNC, .path = "b-", .error = EIO});
    assert_false(data_run_checkpoint(&run));
    vfs_sim_faults_end(run.sim);
    data_run_restart(&run);
    assert_true(data_run_end(&run));
}

/* The sync of the directory after the rename of the manifest fails. */
static void fail_sync(void *context, enum vfs_sim_op op, const char *path)
{
    (void)context;
    if (op == VFS_SIM_RENAME && strstr(path, MANIFEST_NAME) != NULL) {
        vfs_sim_fault(run.sim,
                      &(struct vfs_sim_fault){.op = VFS_SIM_SYNC_DIR, .times = 1, .error = EIO});
    }
}

/* Whichever of the two manifests is there: its files and its journal are. */
static void fail_manifest(enum vfs_sim_op op, bool killed)
{
    data_run_start(&run);
    fill(1);
    assert_true(data_run_checkpoint(&run));
    fill(2);
    if (op == VFS_SIM_SYNC_DIR) {
        vfs_sim_hook(run.sim, fail_sync, NULL);
    } else {
        vfs_sim_fault(run.sim,
                      &(struct vfs_sim_fault){.op = op, .path = MANIFEST_NAME, .error = EIO});
    }
    assert_false(data_run_checkpoint(&run));
    assert_true(data_run_files(&run, ".table") >= FILE_SPACES);
    vfs_sim_hook(run.sim, NULL, NULL);
    vfs_sim_faults_end(run.sim);
    assert_true(data_run_set(&run, 0, 2, 22));
    if (!killed) {
        assert_true(data_run_checkpoint(&run));
        assert_int_equal(data_run_files(&run, ".table"), FILE_SPACES);
    }
    data_run_restart(&run);
    assert_int_equal(data_run_files(&run, ".table"), FILE_SPACES);
    assert_true(data_run_end(&run));
}

static void test_manifest_not_renamed(void **state)
{
    (void)state;
    fail_manifest(VFS_SIM_RENAME, true);
}

static void test_manifest_not_renamed_then_is(void **state)
{
    (void)state;
    fail_manifest(VFS_SIM_RENAME, false);
}

static void test_manifest_not_written(void **state)
{
    (void)state;
    fail_manifest(VFS_SIM_PWRITE, true);
}

static void test_manifest_not_written_then_is(void **state)
{
    (void)state;
    fail_manifest(VFS_SIM_PWRITE, false);
}

static void test_manifest_not_synced(void **state)
{
    (void)state;
    fail_manifest(VFS_SIM_SYNC_DIR, true);
}

static void test_manifest_not_synced_then_is(void **state)
{
    (void)state;
    fail_manifest(VFS_SIM_SYNC_DIR, false);
}

/* The last checkpoint fails: it is no clean stop, and nothing is lost. */
static void test_end_on_a_full_disk(void **state)
{
    (void)state;
    data_run_start(&run);
    fill(1);
    vfs_sim_fault(run.sim,
                  &(struct vfs_sim_fault){.op = VFS_SIM_PWRITE, .path = ".table", .error = ENOSPC});
    assert_false(data_run_end(&run));
    vfs_sim_faults_end(run.sim);
    assert_true(data_run_begin(&run));
    data_run_check(&run);
    assert_true(data_run_end(&run));
}

/* ---- being stopped ---- */

static void test_stopped_meanwhile(void **state)
{
    (void)state;
    data_run_start(&run);
    fill(1);
    toy_image_for_ever(data_run_engine(&run, 1), true); /* after all images of a */
    data_checkpoint(run.data);
    DATA_RUN_WAIT_FOR(toy_images(data_run_engine(&run, 1)) == 1);
    data_stop(run.data);
    assert_int_equal(data_run_stats(&run).checkpoint_failures, 0);
    assert_int_equal(data_run_stats(&run).checkpoints, 0);
    assert_int_equal(data_run_files(&run, ".table"), 0);
    toy_image_for_ever(data_run_engine(&run, 1), false);
    assert_true(data_run_end(&run)); /* has to write them again: they were thrown away */
    assert_true(data_run_begin(&run));
    data_run_check(&run);
    assert_int_equal(data_run_stats(&run).recovered_records, 0);
    assert_int_equal(data_run_files(&run, ".table"), FILE_SPACES);
    assert_true(data_run_end(&run));
}

/* ---- power cuts anywhere ---- */

struct cutter {
    _Atomic uint64_t calls_left;
    uint64_t seed;
    _Atomic bool cut;
};

static void cut(void *context, enum vfs_sim_op op, const char *path)
{
    struct cutter *cutter = context;

    (void)op;
    (void)path;
    if (!cutter->cut && cutter->calls_left-- == 0) {
        cutter->cut = true;
        vfs_sim_power_cut(run.sim, cutter->seed);
    }
}

/* What is durable by then must be there; what came later may be, and is wanted from then on. */
static void adopt(uint64_t (*durable)[DATA_RUN_IDS], uint64_t (*sent)[DATA_RUN_IDS])
{
    for (unsigned i = 0; i < DATA_RUN_SPACES; i++) {
        for (uint64_t id = 0; id < DATA_RUN_IDS; id++) {
            uint64_t is = toy_get(data_run_engine(&run, i), id);

            if (is < durable[i][id] || is > sent[i][id]) {
                fail_msg("space %u id %llu: %llu, not %llu to %llu", i, (unsigned long long)id,
                         (unsigned long long)is, (unsigned long long)durable[i][id],
                         (unsigned long long)sent[i][id]);
            }
            run.wanted[i][id] = is;
        }
    }
}

/* Values rise, a bunch of them, perhaps a checkpoint, then a sync. Until the cut. */
static void work_until_cut(struct test_random *random, struct cutter *cutter,
                           uint64_t (*durable)[DATA_RUN_IDS], uint64_t (*sent)[DATA_RUN_IDS])
{
    for (unsigned bunch = 1; !cutter->cut; bunch++) {
        for (unsigned i = 0; i < BUNCH && !cutter->cut; i++) {
            unsigned space = (unsigned)test_random_below(random, DATA_RUN_SPACES);
            uint64_t id = test_random_below(random, TABLES * TOY_RANGE);

            sent[space][id]++;
            (void)data_run_set(&run, space, id, sent[space][id]);
        }
        if (bunch % 2 == 0 && !cutter->cut) {
            (void)data_run_checkpoint(&run);
        }
        if (journal_sync_now(data_journal(run.data)) && !cutter->cut) {
            memcpy(durable, run.wanted, sizeof(run.wanted));
        }
    }
}

static void test_power_cuts(void **state)
{
    (void)state;
    static uint64_t durable[DATA_RUN_SPACES][DATA_RUN_IDS];
    static uint64_t sent[DATA_RUN_SPACES][DATA_RUN_IDS];
    uint64_t cuts = test_scaled(CUTS);
    struct test_random random = {77};

    memset(durable, 0, sizeof(durable));
    memset(sent, 0, sizeof(sent));
    for (uint64_t round = 0; round < cuts; round++) {
        struct cutter cutter = {.calls_left = test_random_below(&random, CALLS_MAX), .seed = round};

        assert_true(data_run_begin(&run));
        adopt(durable, sent);
        memcpy(durable, run.wanted, sizeof(durable)); /* journal_open made it so */
        memcpy(sent, run.wanted, sizeof(sent));
        data_run_checkpoints(&run);
        vfs_sim_hook(run.sim, cut, &cutter);
        work_until_cut(&random, &cutter, durable, sent);
        vfs_sim_hook(run.sim, NULL, NULL);
        data_run_wind_up(&run);
    }
    assert_true(data_run_begin(&run));
    adopt(durable, sent);
    assert_true(data_run_end(&run));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DATA_RUN_TEST(test_replay_begins_behind_it, &run),
        DATA_RUN_TEST(test_power_cut_behind_it, &run),
        DATA_RUN_TEST(test_what_changed, &run),
        DATA_RUN_TEST(test_journal_is_trimmed, &run),
        DATA_RUN_TEST(test_by_journal_bytes, &run),
        DATA_RUN_TEST(test_by_time, &run),
        DATA_RUN_TEST(test_changes_meanwhile, &run),
        DATA_RUN_TEST(test_rolls_meanwhile, &run),
        DATA_RUN_TEST(test_rolls_too_fast, &run),
        DATA_RUN_TEST(test_disk_full, &run),
        DATA_RUN_TEST(test_failed_and_killed, &run),
        DATA_RUN_TEST(test_manifest_not_renamed, &run),
        DATA_RUN_TEST(test_manifest_not_renamed_then_is, &run),
        DATA_RUN_TEST(test_manifest_not_written, &run),
        DATA_RUN_TEST(test_manifest_not_written_then_is, &run),
        DATA_RUN_TEST(test_manifest_not_synced, &run),
        DATA_RUN_TEST(test_manifest_not_synced_then_is, &run),
        DATA_RUN_TEST(test_end_on_a_full_disk, &run),
        DATA_RUN_TEST(test_stopped_meanwhile, &run),
        DATA_RUN_TEST(test_power_cuts, &run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
