/* Who reigned since when: the manifest says what the journal says, whatever end a process had. */
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
#include "data/follow.h"
#include "data_run.h"
#include "store/journal_format.h"
#include "store/manifest.h"
#include "toy_engine.h"

#define TEXT_MAX      (1u << 20)
#define CHECKSUM_SEED 0x54534546494e414dull /* of a manifest */
#define CUTS          24
#define REIGNS_MAX    64
#define FIRST_SYNCS   3 /* of the journal, by a start in an empty directory */
#define START_SYNCS   4 /* and by one that finds another's segment */

static struct data_run run;

/* As the other node's sum of a segment is compared: its records may begin elsewhere than those
 * here. */
static void test_sums(void **state)
{
    uint64_t sum = 0, other = 0;

    (void)state;
    assert_true(data_run_begin(&run));
    uint64_t from = journal_head(data_journal(run.data));

    assert_true(data_run_set(&run, 0, 1, 1) && data_run_set(&run, 0, 2, 2));
    uint64_t lsn = journal_head(data_journal(run.data));

    assert_true(data_sum(run.data, from, lsn, &sum) && sum != 0);
    assert_true(data_run_set(&run, 0, 3, 3));
    assert_true(data_sum(run.data, from, lsn, &other) && other == sum);
    assert_true(data_sum(run.data, from + JOURNAL_UNIT, lsn, &sum) && sum == 0);
    assert_false(data_sum(run.data, from, lsn + JOURNAL_UNIT, &sum)); /* no record ends there */
    assert_true(data_run_end(&run));
    data_run_start(&run);
    assert_true(data_run_checkpoint(&run));
    assert_false(data_sum(run.data, from, lsn, &sum)); /* that has let it go */
    assert_true(data_run_end(&run));
}

/* A cut is between records, takes no space's beginning with it, and nothing that images hold. */
static void test_rewind(void **state)
{
    (void)state;
    assert_true(data_run_begin(&run));
    assert_true(data_run_set(&run, 0, 1, 1));
    uint64_t lsn = journal_head(data_journal(run.data));

    assert_int_equal(data_can_rewind(run.data, lsn), DATA_REWIND);
    assert_true(data_run_set(&run, 0, 2, 2));
    assert_int_equal(data_can_rewind(run.data, lsn), DATA_REWIND);
    assert_int_equal(data_can_rewind(run.data, lsn + JOURNAL_UNIT), DATA_REWIND_PARTED);
    assert_int_equal(data_can_rewind(run.data, 0), DATA_REWIND_COPY); /* the manifest names them */
    data_run_checkpoints(&run);
    assert_true(data_run_checkpoint(&run));
    assert_int_equal(data_can_rewind(run.data, lsn), DATA_REWIND_COPY);
    lsn = journal_head(data_journal(run.data));
    assert_true(data_run_set(&run, 0, 3, 3));
    assert_int_equal(data_can_rewind(run.data, lsn), DATA_REWIND);
    assert_int_equal(data_can_rewind(run.data, lsn + JOURNAL_UNIT), DATA_REWIND_PARTED);
    assert_true(data_run_end(&run));
}

static char *read_text(void)
{
    size_t length;
    char *text = vfs_read_file(vfs_sim_vfs(run.sim), DATA_RUN_DIRECTORY "/" MANIFEST_NAME, TEXT_MAX,
                               &length);

    assert_non_null(text);
    return text;
}

static void write_text(const char *text)
{
    assert_true(vfs_replace_file(vfs_sim_vfs(run.sim), DATA_RUN_DIRECTORY, MANIFEST_NAME, text,
                                 strlen(text)));
}

struct reigns {
    size_t count;
    struct journal_reign at[REIGNS_MAX];
};

static bool take_reign(void *context, const struct journal_reign *reign)
{
    struct reigns *reigns = context;

    assert_true(reigns->count < REIGNS_MAX);
    reigns->at[reigns->count++] = *reign;
    return true;
}

static bool pass_over(void *context, const struct journal_record *record)
{
    (void)context;
    (void)record;
    return true;
}

/* Of a running daemon: what the manifest has from the journal's beginning on is what that has.
 * Returns how many reigns there ever were. */
static size_t same_history(void)
{
    struct reigns reigns = {0};
    struct journal_scan scan = {.from = JOURNAL_FROM_OLDEST, .reign = take_reign};
    struct manifest *manifest = data_run_manifest(&run);
    size_t count = manifest->history_count;
    size_t older = 0;

    (void)journal_scan(vfs_sim_vfs(run.sim), DATA_RUN_DIRECTORY, &scan, pass_over, &reigns);
    while (older < count && manifest->history[older].lsn < scan.first) {
        older++;
    }
    assert_int_equal(count - older, reigns.count);
    for (size_t i = 0; i < reigns.count; i++) {
        assert_int_equal(manifest->history[older + i].lsn, reigns.at[i].lsn);
        assert_int_equal(manifest->history[older + i].epoch, reigns.at[i].epoch);
        assert_int_equal(reigns.at[i].node, 0);
    }
    assert_int_equal(manifest->history[count - 1].epoch, manifest->epoch);
    manifest_destroy(manifest);
    return count;
}

/* A reign begins with each start after no clean stop, at the end of the stream; checkpoints and
 * clean stops go on with it, and the stream stays what it is. */
static void test_reigns(void **state)
{
    (void)state;
    assert_true(data_run_begin(&run));
    assert_int_equal(same_history(), 1);
    struct manifest *first = data_run_manifest(&run);

    assert_int_equal(first->history[0].lsn, 0);
    for (unsigned i = 2; i < 6; i++) {
        data_run_fill(&run, 2, i);
        uint64_t head = journal_head(data_journal(run.data));

        data_run_restart(&run);
        assert_int_equal(same_history(), i);
        struct manifest *now = data_run_manifest(&run);

        assert_int_equal(now->history[i - 1].lsn, head);
        assert_memory_equal(now->stream, first->stream, sizeof(first->stream));
        manifest_destroy(now);
    }
    assert_true(data_run_end(&run));
    data_run_start(&run);
    assert_int_equal(same_history(), 5);
    data_run_fill(&run, 3, 9);
    assert_true(data_run_checkpoint(&run));
    assert_int_equal(same_history(), 5);
    data_run_restart(&run);
    assert_int_equal(same_history(), 6);
    assert_true(data_run_end(&run));
    manifest_destroy(first);
}

struct cut {
    uint64_t seed;
    _Atomic unsigned passed; /* of the journal's syncs */
    unsigned at;             /* from 1 */
};

static void cut_at_sync(void *context, enum vfs_sim_op op, const char *path)
{
    struct cut *cut = context;

    if (op == VFS_SIM_FDATASYNC && strstr(path, "/journal-") != NULL && ++cut->passed == cut->at) {
        vfs_sim_power_cut(run.sim, cut->seed);
    }
}

/* A start that ends at one of the journal's syncs; the last is that of its reign. */
static void cut_in_start(uint64_t seed, unsigned at)
{
    struct cut cut = {.seed = seed, .at = at};

    vfs_sim_hook(run.sim, cut_at_sync, &cut);
    assert_false(data_run_begin(&run));
    vfs_sim_hook(run.sim, NULL, NULL);
}

static bool has_reign(const struct manifest *manifest, uint64_t epoch)
{
    for (size_t i = 0; i < manifest->history_count; i++) {
        if (manifest->history[i].epoch == epoch) {
            return true;
        }
    }
    return false;
}

/*
 * A power cut in a start may take the record of a reign that the manifest has already: then it
 * never was, and its epoch is not given again. One that served did reign, whatever else is lost.
 */
static void power_cuts(enum journal_sync sync)
{
    uint64_t last = 0;
    unsigned taken = 0;

    run.settings.journal.sync = sync;
    for (uint64_t seed = 1; seed <= CUTS; seed++) {
        cut_in_start(seed, seed == 1 ? FIRST_SYNCS : 1 + seed % START_SYNCS);
        assert_true(data_run_begin(&run));
        (void)same_history();
        struct manifest *now = data_run_manifest(&run);

        assert_true(now->epoch > last);
        assert_true(last == 0 || has_reign(now, last));
        taken += last != 0 && !has_reign(now, last + 1);
        last = now->epoch;
        manifest_destroy(now);
        data_run_power_cut(&run, seed);
    }
    assert_true(taken > 0 && taken < CUTS - 1);
    assert_true(data_run_begin(&run));
    assert_true(data_run_end(&run));
}

static void test_power_cuts(void **state)
{
    (void)state;
    power_cuts(JOURNAL_SYNC_EVERYSEC);
}

static void test_power_cuts_never(void **state)
{
    (void)state;
    power_cuts(JOURNAL_SYNC_NEVER);
}

/* A manifest of before the reign, as in a copy: the journal says the rest. */
static void test_older_manifest(void **state)
{
    (void)state;
    assert_true(data_run_begin(&run));
    data_run_fill(&run, 2, 1);
    char *before = read_text();

    data_run_restart(&run);
    data_run_fill(&run, 2, 2);
    data_run_kill(&run);
    write_text(before);
    assert_true(data_run_begin(&run));
    data_run_check(&run);
    assert_int_equal(same_history(), 3);
    assert_true(data_run_end(&run));
    free(before);
}

/* One that says otherwise than the journal is of another directory. */
static void test_contradiction(void **state)
{
    (void)state;
    static const char second[] = "\nhistory 2 ";

    assert_true(data_run_begin(&run));
    data_run_fill(&run, 2, 1);
    data_run_restart(&run);
    data_run_kill(&run);
    char *text = read_text();
    char *at = strstr(text, second);
    char *last = strstr(text, "checksum ");

    assert_true(at != NULL && last != NULL);
    *(strchr(at + 1, '\n') - 1) ^= 1; /* another LSN: the next one, as it is even */
    snprintf(last, strlen(last) + 1, "checksum %016llx\n",
             (unsigned long long)hash_bytes(text, (size_t)(last - text), CHECKSUM_SEED));
    write_text(text);
    free(text);
    assert_false(data_run_begin(&run));
    assert_non_null(strstr(run.error, "epoch 2 begins there, and the history in /data/MANIFEST"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DATA_RUN_TEST(test_sums, &run),
        DATA_RUN_TEST(test_rewind, &run),
        DATA_RUN_TEST(test_reigns, &run),
        DATA_RUN_TEST(test_power_cuts, &run),
        DATA_RUN_TEST(test_power_cuts_never, &run),
        DATA_RUN_TEST(test_older_manifest, &run),
        DATA_RUN_TEST(test_contradiction, &run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
