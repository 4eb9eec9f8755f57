#include "data_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "data/fill.h"
#include "tests/support/give_way.h"
#include "toy_engine.h"

#define WAIT_US_MAX 60000000u
#define FILL_STEP   7

static void name_space(struct space_settings *space, const char *name, enum space_kind kind)
{
    snprintf(space->name, sizeof(space->name), "%s", name);
    snprintf(space->key, sizeof(space->key), "%s:{id}", name);
    space->kind = kind;
}

void data_run_init(struct data_run *run, uint64_t seed)
{
    static char directory[] = DATA_RUN_DIRECTORY;

    log_setup("test", LOG_LEVEL_ERROR);
    memset(run, 0, sizeof(*run));
    run->sim = vfs_sim_create(seed);
    run->settings.data = directory;
    run->settings.threads = 2;
    run->settings.journal.sync = JOURNAL_SYNC_NEVER;
    run->settings.journal.segment_bytes = JOURNAL_SEGMENT_BYTES_MIN;
    run->settings.journal.buffer_bytes = 2 * JOURNAL_BUFFER_BYTES_MIN;
    run->settings.cold.threads = 1;
    run->settings.cold.queue = 16;
    run->settings.cold.overlay_bytes = SETTINGS_OVERLAY_BYTES_MIN;
    run->settings.space_count = DATA_RUN_SPACES;
    name_space(&run->settings.spaces[0], "a", SPACE_COUNTER);
    name_space(&run->settings.spaces[1], "b", SPACE_PHANTOM);
}

void data_run_fini(struct data_run *run)
{
    vfs_sim_destroy(run->sim);
}

int data_run_setup(void **state)
{
    data_run_init(*state, 1);
    return 0;
}

int data_run_teardown(void **state)
{
    data_run_fini(*state);
    return 0;
}

/* ---- a process ---- */

bool data_run_open(struct data_run *run)
{
    char error[SPACES_ERROR_MAX];

    run->data = (run->fills ? data_open_to_fill : data_open_with)(vfs_sim_vfs(run->sim),
                                                                  &run->settings, run->error);
    if (run->data == NULL) {
        return false;
    }
    run->spaces = spaces_create(&run->settings, NULL, 1, toy_create, error);
    assert_non_null(run->spaces);
    run->barrier = barrier_create();
    run->keeper = keeper_create(run->barrier, NULL, NULL);
    keeper_attach(run->keeper, run->spaces);
    run->stop = false;
    run->checkpoints = false;
    return true;
}

bool data_run_recover(struct data_run *run)
{
    bool recovered = data_recover(run->data, run->spaces, &run->stop, run->error);

    if (recovered) {
        journal_sink_init(&run->sink, data_journal(run->data));
    }
    return recovered;
}

static bool close_all(struct data_run *run, bool clean)
{
    keeper_end(run->keeper);
    data_stop(run->data);
    if (data_journal(run->data) != NULL) {
        journal_sink_fini(&run->sink);
    }
    bool closed = data_close(run->data, run->spaces, clean) &&
                  (!clean || !run->filled || data_filled(run->data, run->error));

    keeper_destroy(run->keeper);
    spaces_drop(run->spaces, NULL);
    data_destroy(run->data);
    barrier_destroy(run->barrier);
    run->data = NULL;
    return closed;
}

bool data_run_begin(struct data_run *run)
{
    if (!data_run_open(run)) {
        return false;
    }
    if (!data_run_recover(run)) {
        close_all(run, false);
        return false;
    }
    return true;
}

void data_run_checkpoints(struct data_run *run)
{
    assert_true(keeper_start(run->keeper, run->spaces));
    assert_true(data_start(run->data, run->barrier, &run->spaces));
    run->checkpoints = true;
}

void data_run_start(struct data_run *run)
{
    assert_true(data_run_begin(run));
    data_run_checkpoints(run);
}

bool data_run_end(struct data_run *run)
{
    return close_all(run, true);
}

void data_run_wind_up(struct data_run *run)
{
    close_all(run, false);
}

void data_run_kill(struct data_run *run)
{
    vfs_sim_kill(run->sim);
    close_all(run, false);
}

void data_run_power_cut(struct data_run *run, uint64_t seed)
{
    vfs_sim_power_cut(run->sim, seed);
    close_all(run, false);
}

void data_run_restart(struct data_run *run)
{
    data_run_kill(run);
    assert_true(data_run_begin(run));
    data_run_check(run);
}

/* ---- values ---- */

struct engine *data_run_engine(const struct data_run *run, unsigned i)
{
    return spaces_find(run->spaces, run->settings.spaces[i].name)->engine;
}

bool data_run_set(struct data_run *run, unsigned i, uint64_t id, uint64_t value)
{
    CHECK(id < DATA_RUN_IDS);
    barrier_stop(run->barrier); /* a toy is changed by one at a time */
    bool set = toy_set(data_run_engine(run, i), &run->sink.sink, id, value) &&
               journal_commit(&run->sink.writer);

    barrier_go(run->barrier);
    if (set) {
        run->wanted[i][id] = value;
    }
    return set;
}

/* As soon as the journal's buffer has room: whoever fills it may be faster than its sync. */
static void set_surely(struct data_run *run, unsigned i, uint64_t id, uint64_t value)
{
    while (!data_run_set(run, i, id, value)) {
        assert_true(journal_sync_now(data_journal(run->data)));
    }
}

void data_run_fill(struct data_run *run, unsigned tables, uint64_t salt)
{
    for (uint64_t id = 0; id < tables * TOY_RANGE; id += FILL_STEP) {
        set_surely(run, 0, id, id + salt);
        set_surely(run, 1, id, id + salt + 1);
    }
}

void data_run_check(const struct data_run *run)
{
    for (unsigned i = 0; i < DATA_RUN_SPACES; i++) {
        for (uint64_t id = 0; id < DATA_RUN_IDS; id++) {
            uint64_t is = toy_get(data_run_engine(run, i), id);

            if (is != run->wanted[i][id]) {
                fail_msg("space %u id %llu: %llu, not %llu", i, (unsigned long long)id,
                         (unsigned long long)is, (unsigned long long)run->wanted[i][id]);
            }
        }
    }
}

/* ---- checkpoints ---- */

struct manifest *data_run_manifest(const struct data_run *run)
{
    struct manifest *manifest;
    char error[MANIFEST_ERROR_MAX];

    assert_int_equal(manifest_load(vfs_sim_vfs(run->sim), DATA_RUN_DIRECTORY, &manifest, error),
                     MANIFEST_SOUND);
    return manifest;
}

uint64_t data_run_epoch(const struct data_run *run)
{
    struct manifest *manifest = data_run_manifest(run);
    uint64_t epoch = manifest->epoch;

    manifest_destroy(manifest);
    return epoch;
}

struct data_stats data_run_stats(const struct data_run *run)
{
    struct data_stats stats;

    data_stats(run->data, &stats);
    return stats;
}

static uint64_t ended(const struct data_run *run)
{
    struct data_stats stats = data_run_stats(run);

    return stats.checkpoints + stats.checkpoint_failures;
}

bool data_run_checkpoint(struct data_run *run)
{
    uint64_t before = ended(run);
    uint64_t done = data_run_stats(run).checkpoints;

    data_checkpoint(run->data);
    DATA_RUN_WAIT_FOR(ended(run) > before);
    return data_run_stats(run).checkpoints > done;
}

void data_run_pause(uint64_t *waited)
{
    if (*waited == 0) {
        *waited = clock_monotonic_us();
    }
    if (clock_monotonic_us() - *waited > WAIT_US_MAX) {
        fail_msg("waited in vain");
    }
    give_way();
}

/* ---- the directory ---- */

struct counting {
    const char *part;
    unsigned count;
};

static void count_name(void *context, const char *name)
{
    struct counting *counting = context;

    counting->count += strstr(name, counting->part) != NULL;
}

unsigned data_run_files(const struct data_run *run, const char *part)
{
    struct counting counting = {.part = part};
    struct vfs *vfs = vfs_sim_vfs(run->sim);

    assert_int_equal(vfs->functions->list(vfs, DATA_RUN_DIRECTORY, count_name, &counting), 0);
    return counting.count;
}
