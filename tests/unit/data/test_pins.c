/* Pins: whatever checkpoints delete, a copy's files are there until it ends, and then they go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>

#include "data/data_private.h"
#include "data/pins.h"
#include "data_run.h"
#include "toy_engine.h"

#define TABLES      4
#define FILES       (2u * TABLES) /* of both spaces, once all have an image */
#define CHECKPOINTS 60            /* beside those who copy */
#define COPIERS     2

static struct data_run run;

static struct data_pin *take(void)
{
    char error[DATA_ERROR_MAX];
    struct data_pin *pin = data_pin_take(run.data, error);

    assert_non_null(pin);
    return pin;
}

/* Returns how many of its files are there, whole. */
static unsigned files_there(const struct data_pin *pin)
{
    struct manifest_at at = {0};
    const struct manifest_file *file;
    unsigned there = 0;

    while ((file = manifest_next_file(pin->manifest, &at)) != NULL) {
        there += vfs_size_in(vfs_sim_vfs(run.sim), DATA_RUN_DIRECTORY, file->name) ==
                 (int64_t)file->bytes;
    }
    return there;
}

static void begin(void)
{
    data_run_start(&run);
    data_run_fill(&run, TABLES, 1);
    assert_true(data_run_checkpoint(&run));
    assert_int_equal(data_run_files(&run, ".table"), FILES);
}

/* Every table has a new image, and the one before is named no more. */
static void replace_all(uint64_t salt)
{
    data_run_fill(&run, TABLES, salt);
    assert_true(data_run_checkpoint(&run));
}

static void test_stays_and_goes(void **state)
{
    (void)state;
    begin();
    uint64_t bytes = data_run_stats(&run).table_file_bytes;
    struct data_pin *pin = take();
    struct manifest *now = data_run_manifest(&run);

    assert_int_equal(manifest_count_files(pin->manifest), FILES);
    assert_true(pin->manifest->journal_lsn == now->journal_lsn);
    assert_true(manifest_checksum_fits(pin->text, pin->text_length));
    manifest_destroy(now);
    for (uint64_t salt = 2; salt < 5; salt++) {
        replace_all(salt); /* the second one finds what the first left, and leaves it again */
        assert_int_equal(files_there(pin), FILES);
        assert_int_equal(data_run_files(&run, ".table"), 2 * FILES);
        assert_int_equal(data_run_stats(&run).table_files, 2 * FILES);
        assert_true(data_run_stats(&run).table_file_bytes > bytes);
    }
    data_pin_give(run.data, pin);
    assert_int_equal(data_run_files(&run, ".table"), FILES);
    assert_int_equal(data_run_stats(&run).table_files, FILES);
    assert_true(data_run_stats(&run).table_file_bytes == bytes);
    data_pin_give(run.data, NULL);
    assert_true(data_run_end(&run));
}

/* Of two copies each has its own: what both need goes with the last. */
static void test_two(void **state)
{
    (void)state;
    begin();
    struct data_pin *first = take();

    assert_true(data_run_set(&run, 0, 3, 33));
    assert_true(data_run_checkpoint(&run));
    struct data_pin *second = take();

    replace_all(2);
    assert_int_equal(data_run_files(&run, ".table"), 2 * FILES + 1);
    data_pin_give(run.data, first);
    assert_int_equal(data_run_files(&run, ".table"), 2 * FILES);
    assert_int_equal(files_there(second), FILES);
    data_pin_give(run.data, second);
    assert_int_equal(data_run_files(&run, ".table"), FILES);
    assert_true(data_run_end(&run));
}

/* A round for dumps alone deletes by two manifests and looks at no directory. */
static void test_dumps(void **state)
{
    (void)state;
    begin();
    struct data_pin *pin = take();

    for (uint64_t merges = 0; merges < 2; merges++) {
        barrier_stop(run.barrier);
        (merges == 0 ? toy_leave : toy_merge)(data_run_engine(&run, 0), 0);
        barrier_go(run.barrier);
        DATA_RUN_WAIT_FOR(data_run_stats(&run).dumps + data_run_stats(&run).merges == merges + 1 &&
                          data_run_stats(&run).table_files == FILES + 1);
        assert_int_equal(files_there(pin), FILES);
        data_pin_give(run.data, pin);
        assert_int_equal(data_run_files(&run, ".table"), FILES);
        pin = take();
    }
    data_pin_give(run.data, pin);
    assert_int_equal(data_run_stats(&run).checkpoints, 1);
    assert_true(data_run_end(&run));
}

/* Between a manifest and the hand-over of its dumps engines read files that it does not name. */
static void test_still_read(void **state)
{
    (void)state;
    begin();
    struct data_pin *pin = take();
    struct manifest_space *space = manifest_find_space(run.data->manifest, "a");
    struct manifest_file file = space->files[0];

    pthread_mutex_lock(&run.data->lock);
    assert_true(manifest_remove_file(space, file.name));
    pthread_mutex_unlock(&run.data->lock);
    data_pin_give(run.data, pin);
    assert_int_equal(data_run_files(&run, file.name), 1);
    pthread_mutex_lock(&run.data->lock);
    assert_true(manifest_add_file(run.data->manifest, space, &file));
    pthread_mutex_unlock(&run.data->lock);
    assert_true(data_run_end(&run));
}

/* A kill takes the pin and leaves its files: the next start deletes them. */
static void test_killed(void **state)
{
    (void)state;
    begin();
    struct data_pin *pin = take();

    replace_all(2);
    vfs_sim_kill(run.sim);
    data_pin_give(run.data, pin);
    data_run_wind_up(&run);
    assert_int_equal(data_run_files(&run, ".table"), 2 * FILES);
    assert_true(data_run_begin(&run));
    data_run_check(&run);
    assert_int_equal(data_run_files(&run, ".table"), FILES);
    assert_true(data_run_end(&run));
}

static void test_cannot_be_read(void **state)
{
    char error[DATA_ERROR_MAX];

    (void)state;
    begin();
    vfs_sim_fault(run.sim, &(struct vfs_sim_fault){.path = MANIFEST_NAME, .error = EMFILE});
    assert_null(data_pin_take(run.data, error));
    assert_string_equal(error, DATA_RUN_DIRECTORY "/" MANIFEST_NAME ": Too many open files");
    vfs_sim_faults_end(run.sim);
    replace_all(2); /* nothing is kept for it */
    assert_int_equal(data_run_files(&run, ".table"), FILES);
    assert_true(data_run_end(&run));
}

/* A manifest that could not be stored may be what a copy has: then no file of either goes. */
static void test_not_stored(void **state)
{
    (void)state;
    begin();
    data_run_fill(&run, TABLES, 2);
    vfs_sim_fault(run.sim, &(struct vfs_sim_fault){
                               .op = VFS_SIM_RENAME, .path = MANIFEST_NAME, .error = EIO});
    assert_false(data_run_checkpoint(&run));
    vfs_sim_faults_end(run.sim);
    struct data_pin *pin = take();

    replace_all(3);
    assert_int_equal(files_there(pin), FILES);
    data_pin_give(run.data, pin);
    assert_int_equal(data_run_files(&run, ".table"), FILES);
    assert_true(data_run_end(&run));
}

/* ---- with others ---- */

struct copier {
    pthread_t thread;
    _Atomic bool *ended;
    unsigned missing, copies;
};

static void *copy_again_and_again(void *context)
{
    struct copier *copier = context;

    while (!*copier->ended) {
        struct data_pin *pin = take();

        copier->missing += FILES - files_there(pin);
        copier->copies++;
        data_pin_give(run.data, pin);
    }
    return NULL;
}

static void test_beside_checkpoints(void **state)
{
    struct copier copiers[COPIERS] = {{.missing = 0}};
    _Atomic bool ended = false;

    (void)state;
    begin();
    for (unsigned i = 0; i < COPIERS; i++) {
        copiers[i].ended = &ended;
        assert_int_equal(
            pthread_create(&copiers[i].thread, NULL, copy_again_and_again, &copiers[i]), 0);
    }
    for (uint64_t i = 0; i < CHECKPOINTS; i++) {
        replace_all(2 + i);
    }
    ended = true;
    for (unsigned i = 0; i < COPIERS; i++) {
        pthread_join(copiers[i].thread, NULL);
        assert_int_equal(copiers[i].missing, 0);
        assert_true(copiers[i].copies > 0);
    }
    assert_int_equal(data_run_files(&run, ".table"), FILES);
    assert_true(data_run_end(&run));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DATA_RUN_TEST(test_stays_and_goes, &run), DATA_RUN_TEST(test_two, &run),
        DATA_RUN_TEST(test_dumps, &run),          DATA_RUN_TEST(test_still_read, &run),
        DATA_RUN_TEST(test_killed, &run),         DATA_RUN_TEST(test_cannot_be_read, &run),
        DATA_RUN_TEST(test_not_stored, &run),     DATA_RUN_TEST(test_beside_checkpoints, &run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
