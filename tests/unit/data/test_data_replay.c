/* The journal of a start, where it begins to count, and where it must end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data_run.h"
#include "store/manifest.h"
#include "toy_engine.h"

static struct data_run run;

/* The first record after a checkpoint is that of a table: the manifest does not know it yet. */
static void test_table_opened_right_after(void **state)
{
    (void)state;
    data_run_start(&run);
    data_run_fill(&run, 2, 1);
    assert_true(data_run_checkpoint(&run));
    assert_true(journal_head(data_journal(run.data)) == data_run_stats(&run).checkpoint_lsn);
    assert_true(data_run_set(&run, 0, 5 * TOY_RANGE + 1, 7));
    data_run_kill(&run);
    assert_true(data_run_begin(&run));
    data_run_check(&run);
    assert_true(data_run_end(&run));
}

/* The journal was closed, but that could not be noted any more: that was no clean stop. */
static void test_stop_not_noted(void **state)
{
    struct vfs_sim_fault fault = {.op = VFS_SIM_RENAME, .path = MANIFEST_NAME, .first = 2};

    (void)state;
    data_run_start(&run);
    data_run_fill(&run, 2, 1);
    uint64_t before = data_run_epoch(&run);
    unsigned number = vfs_sim_fault(run.sim, &fault);

    (void)data_run_end(&run);
    assert_true(vfs_sim_fault_hits(run.sim, number) > 0);
    vfs_sim_faults_end(run.sim);
    assert_true(data_run_begin(&run));
    data_run_check(&run);
    assert_int_equal(data_run_stats(&run).recovered_records, 0);
    assert_true(data_run_epoch(&run) > before);
    assert_true(data_run_end(&run));
}

/* ---- a journal that lost its end ---- */

struct segment {
    char name[64];
    char *bytes;
    size_t length;
};

static void find_segment(void *context, const char *name)
{
    struct segment *segment = context;

    if (strncmp(name, "journal-0", strlen("journal-0")) == 0) {
        assert_true(strlen(name) < sizeof(segment->name));
        strcpy(segment->name, name);
    }
}

static void read_segment(struct segment *segment)
{
    struct vfs *vfs = vfs_sim_vfs(run.sim);
    char path[VFS_PATH_MAX];

    segment->name[0] = '\0';
    assert_int_equal(vfs->functions->list(vfs, DATA_RUN_DIRECTORY, find_segment, segment), 0);
    assert_true(vfs_path(path, DATA_RUN_DIRECTORY, segment->name));
    segment->bytes = vfs_read_file(vfs, path, 2 * JOURNAL_SEGMENT_BYTES_MIN, &segment->length);
    assert_non_null(segment->bytes);
}

static void write_segment(const struct segment *segment)
{
    struct vfs *vfs = vfs_sim_vfs(run.sim);

    assert_true(
        vfs_replace_file(vfs, DATA_RUN_DIRECTORY, segment->name, segment->bytes, segment->length));
}

/* While the first table is written: what the segment holds now is all that will be left. */
static void write_on(void *context, struct engine *engine, uint64_t serial)
{
    struct segment *segment = context;

    (void)engine;
    (void)serial;
    if (segment->bytes == NULL) {
        read_segment(segment);
        for (uint64_t id = 0; id < 100; id++) {
            assert_true(data_run_set(&run, 0, id, id + 66));
        }
    }
}

/*
 * A disk that said it had written: the journal ends, soundly, below what files hold. What came
 * after that end would get the numbers of changes that are in them.
 */
static void test_end_lost(void **state)
{
    struct segment segment = {.bytes = NULL};

    (void)state;
    data_run_start(&run);
    data_run_fill(&run, 2, 1);
    assert_true(data_run_checkpoint(&run));
    assert_true(data_run_set(&run, 0, 5, 55));
    toy_on_image(data_run_engine(&run, 0), write_on, &segment);
    assert_true(data_run_checkpoint(&run));
    data_run_kill(&run);
    write_segment(&segment);
    assert_false(data_run_begin(&run));
    if (strstr(run.error, "/data: the journal ends at ") == NULL ||
        strstr(run.error, "rollcall repair /data") == NULL) {
        fail_msg("unexpected: %s", run.error);
    }
    free(segment.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DATA_RUN_TEST(test_table_opened_right_after, &run),
        DATA_RUN_TEST(test_stop_not_noted, &run),
        DATA_RUN_TEST(test_end_lost, &run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
