/* sim.c: points, and the life of a process. */
#include "tests/sim/sim.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sched.h>

#include "base/check.h"
#include "base/log.h"
#include "base/point.h"
#include "data/checkpoint_private.h"
#include "data/follow.h"
#include "row/row.h"
#include "store/journal_private.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/fake_barrier.h"

#define RECOVERIES_MAX  20
#define OPERATIONS_HERE 12 /* at a point, at most */
#define MANY_HERE       400
#define MANY_ONE_IN     12

#define WORK_INSIDE_ONE_IN 3

struct engine *sim_engine(const struct sim *sim, unsigned space)
{
    return sim->spaces->at[space]->engine;
}

/* ---- the end of a process ---- */

bool sim_always(const struct sim *sim)
{
    return sim->settings.journal.sync == JOURNAL_SYNC_ALWAYS;
}

/* At a point, by whatever thread is there; the others wait for it or have nothing to do. */
static void die(struct sim *sim, enum sim_point point, unsigned code)
{
    struct journal *journal = sim->stage > SIM_RECOVERING ? data_journal(sim->data) : NULL;

    if (journal != NULL) {
        sim->must = journal_written(journal);
        sim->durable = journal_durable(journal);
        sim->broken |= sim->acknowledged > (sim_always(sim) ? sim->durable : sim->must);
    }
    if (sim->end.cut && sim->durable < sim->must) {
        sim->must = sim->durable;
    }
    sim->figures.ends[point]++;
    if (code != SIM_CODE_ANY) {
        sim->figures.code_ends[code]++;
        sim->unmet = false;
    }
    sim->figures.cuts += sim->end.cut;
    sim->figures.kills += !sim->end.cut;
    sim->figures.recovery_kills += sim->stage == SIM_RECOVERING;
    sim->end.armed = false;
    if (sim->end.cut) {
        vfs_sim_power_cut(sim->disk, test_random_next(&sim->ends_random));
    } else {
        vfs_sim_kill(sim->disk);
    }
    sim->ended = true;
}

void sim_arm(struct sim *sim, enum sim_point point, uint64_t within, bool cut)
{
    sim->end = (struct sim_end){
        .armed = true,
        .cut = cut,
        .point = point,
        .code = SIM_CODE_ANY,
        .count = 1 + test_random_below(&sim->ends_random, within),
    };
}

void sim_arm_code(struct sim *sim, unsigned code, bool cut)
{
    sim_arm(sim, SIM_POINT_CODE, sim_code(code)->usual, cut);
    sim->end.code = code;
    sim->unmet = true;
}

/* ---- points ---- */

static void pass_code(struct sim *sim, enum sim_point point, unsigned code)
{
    struct sim_end *end = &sim->end;
    bool this = end->code != SIM_CODE_ANY ? end->code == code
                                          : end->point == SIM_POINT_ANY || end->point == point;

    if (!sim->ended && end->armed && this && --end->count == 0) {
        die(sim, point, code);
    }
}

void sim_pass(struct sim *sim, enum sim_point point)
{
    pass_code(sim, point, SIM_CODE_ANY);
}

static void pass_named(struct sim *sim, enum sim_point point, unsigned code)
{
    if (!sim->ended) {
        sim->figures.code_passed[code]++;
        pass_code(sim, point, code);
    }
}

/* Does the main thread wait for the journal's? Not for the marks after a sync: it was woken
 * before, and goes on until it is to be calm. */
static bool is_sync_awaited(const struct sim *sim)
{
    const struct journal *journal = data_journal(sim->data);

    return journal_durable(journal) < atomic_load(&journal->sync_target);
}

/* Is nothing locked here, and nobody else at work? */
static bool can_work(const struct sim *sim, enum sim_point point, enum vfs_sim_op op)
{
    bool here = pthread_equal(pthread_self(), sim->main);

    if (sim->ended || sim->occupied || sim->stage != SIM_CHECKPOINT) {
        return false;
    }
    if (point == SIM_POINT_JOURNAL) {
        return !here && op == VFS_SIM_FDATASYNC && !sim_always(sim) && is_sync_awaited(sim);
    }
    return here;
}

static void work_here(struct sim *sim)
{
    unsigned most = test_random_once_in(&sim->random, MANY_ONE_IN) ? MANY_HERE : OPERATIONS_HERE;

    if (sim->node != NULL && pthread_equal(pthread_self(), sim->main)) {
        sim->node->between(sim->node->context);
    }
    if (sim->leads && !sim->ended && !test_random_once_in(&sim->random, 3)) {
        workers_do(sim, 1 + (unsigned)test_random_below(&sim->random, most));
    }
}

static enum sim_point point_of(const char *path)
{
    return strstr(path, "journal-") != NULL ? SIM_POINT_JOURNAL
           : strstr(path, ".table") != NULL ? SIM_POINT_TABLE
                                            : SIM_POINT_MANIFEST;
}

/*
 * A file is asked for. By whom, and what stands still meanwhile?
 */
static void check_nobody_waits(const struct sim *sim, const char *path)
{
    bool running = sim->stage == SIM_RUNNING || sim->stage == SIM_CHECKPOINT;
    bool ours =
        pthread_equal(pthread_self(), sim->main) || (sim->node != NULL && sim->node->acts());

    if (!running || sim->ended || !ours) {
        return;
    }
    if (sim->member->inside || fake_barrier_is_stopped(sim->barrier)) {
        fail_msg("seed %llu: %s is asked for %s", (unsigned long long)sim->seed, path,
                 sim->member->inside ? "inside the barrier" : "with the world stopped");
    }
}

/* By the thread that does nothing else, while its client waits: how many is not the same again. It
 * opens the file first, and may close another for that. */
static bool is_cold_read(const struct sim *sim, enum sim_point point, enum vfs_sim_op op)
{
    return point == SIM_POINT_TABLE &&
           (op == VFS_SIM_PREAD || op == VFS_SIM_OPEN || op == VFS_SIM_CLOSE) &&
           sim->stage > SIM_RECOVERING && !pthread_equal(pthread_self(), sim->main);
}

/* While this one goes on with the recovery: which comes first is not the same again. */
static bool is_start_of_journal(const struct sim *sim, enum sim_point point)
{
    return point == SIM_POINT_JOURNAL && sim->stage == SIM_RECOVERING &&
           !pthread_equal(pthread_self(), sim->main);
}

/* Calls that order what is durable. */
static const char *name_of(enum vfs_sim_op op, const char *path)
{
    return op == VFS_SIM_SYNC_DIR                           ? "sync of the directory"
           : op == VFS_SIM_RENAME                           ? "the manifest gets its name"
           : op == VFS_SIM_UNLINK && strstr(path, ".table") ? "unlink of a table's file"
           : op == VFS_SIM_FDATASYNC                        ? "sync of a file"
                                                            : NULL;
}

static void on_call(void *context, enum vfs_sim_op op, const char *path)
{
    struct sim *sim = context;
    enum sim_point point = point_of(path);

    if (op == VFS_SIM_READAHEAD || (op == VFS_SIM_WRITEBACK && point == SIM_POINT_JOURNAL)) {
        return;
    }
    check_nobody_waits(sim, path);
    if (is_cold_read(sim, point, op) || is_start_of_journal(sim, point)) {
        return;
    }
    if (point != SIM_POINT_JOURNAL) {
        sim_calm(sim);
    }
    if (sim->may_hang && !sim->ended && op == VFS_SIM_PWRITE && sim_is_writer(sim)) {
        sim_hang(sim);
    } else if (can_work(sim, point, op)) {
        work_here(sim);
    }
    const char *name = point == SIM_POINT_JOURNAL ? NULL : name_of(op, path);

    if (name != NULL) {
        pass_named(sim, point, sim_code_of(name));
    } else {
        sim_pass(sim, point);
    }
}

#ifdef ROLLCALL_POINTS
/* Locks may be held: then the process can end here, and nothing else. */
static void on_point(void *context, const char *name)
{
    struct sim *sim = context;
    unsigned code = sim_code_of(name);

    if (!sim->ended) {
        if (sim->leads && sim_code(code)->open && can_work(sim, SIM_POINT_CODE, VFS_SIM_ANY) &&
            test_random_once_in(&sim->random, WORK_INSIDE_ONE_IN)) {
            workers_do(sim, 1 + (unsigned)test_random_below(&sim->random, OPERATIONS_HERE));
        }
        pass_named(sim, SIM_POINT_CODE, code);
    }
}
#endif

static void on_left(void *context)
{
    struct sim *sim = context;

    if (can_work(sim, SIM_POINT_LEFT, VFS_SIM_ANY)) {
        if (sim->leads) {
            sim_check_rows(sim); /* what holds between two images, too */
        }
        work_here(sim);
    }
    sim_pass(sim, SIM_POINT_LEFT);
}

/* ---- a process ---- */

static void on_asked(void *context)
{
    *(bool *)context = true;
}

static void open_process(struct sim *sim)
{
    char error[SPACES_ERROR_MAX];
    struct vfs *vfs = vfs_sim_vfs(sim->disk);

    sim->ended = false;
    sim->stage = SIM_RECOVERING;
    sim->barrier = barrier_create();
    sim->member = barrier_join(sim->barrier);
    sim->member->left = on_left;
    sim->member->context = sim;
    sim->keeper = keeper_create(sim->barrier, NULL, NULL);
    sim->spaces = spaces_create(&sim->settings, NULL, 1, space_engine_create, error);
    if (sim->spaces == NULL) {
        fail_msg("%s", error);
    }
    for (unsigned i = 0; i < SIM_SPACES; i++) {
        sim->asked[i] = true;
        if (sim_engine(sim, i)->row != NULL) { /* so few that it takes several stops */
            sim_engine(sim, i)->row->fold_records = 1 + (unsigned)(sim->seed * 5 % 37);
        }
        sim_engine(sim, i)->keeper = (struct engine_keeper){on_asked, &sim->asked[i]};
        sim->spaces->at[i]->job.keeper = sim->keeper;
    }
    if (sim->node != NULL) {
        sim->node->opening(sim->node->context);
    }
    sim->data = data_open_with(vfs, &sim->settings, sim->error);
    if (sim->data != NULL) {
        sim_cold_open(sim);
    }
}

static bool wind_up(struct sim *sim, bool clean)
{
    bool led = sim->leads;

    sim->stage = SIM_STOPPING;
    sim->leads = false;
    if (sim->node != NULL) {
        sim->node->stopping(sim->node->context);
    }
    for (unsigned i = 0; led && i < SIM_WORKERS; i++) {
        journal_sink_fini(&sim->sinks[i].journal);
    }
    if (sim->data != NULL) {
        data_stop(sim->data);
        sim_cold_count(sim);
    }
    bool closed = data_close(sim->data, sim->spaces, clean);

    if (sim->node != NULL) {
        sim->node->stopped(sim->node->context);
    }
    spaces_drop(sim->spaces, NULL);
    data_destroy(sim->data);
    keeper_destroy(sim->keeper);
    barrier_resign(sim->member);
    barrier_destroy(sim->barrier);
    sim->data = NULL;
    sim->stage = SIM_NOTHING;
    return closed;
}

void sim_end(struct sim *sim, bool cut)
{
    if (!sim->ended) {
        sim_calm(sim);
        sim->end.cut = cut;
        die(sim, SIM_POINT_ANY, SIM_CODE_ANY);
    }
    wind_up(sim, false);
}

void sim_stop_cleanly(struct sim *sim, bool checkpoint)
{
    if (sim->ended) {
        sim_end(sim, false);
        return;
    }
    sim->end.armed = false; /* that is the checkpoint's business */
    sim->acknowledged = journal_head(data_journal(sim->data));
    if (sim->leads) {
        (void)journal_sink_submit(&sim->sinks[0].journal);
        (void)sim_wait_written(sim, sim->acknowledged);
    }
    if (!wind_up(sim, checkpoint)) {
        fail_msg("seed %llu: it cannot stop cleanly", (unsigned long long)sim->seed);
    }
    sim->figures.clean_stops++;
    sim->must = sim->durable = sim->acknowledged;
}

bool sim_is_held(const struct sim *sim)
{
    return sim->member->inside || sim_keeper_is_held(sim->keeper);
}

bool sim_is_bracketed(const struct sim *sim)
{
    return sim->member->inside || sim_keeper_is_bracketed(sim->keeper);
}

bool sim_maintain(struct sim *sim, unsigned space)
{
    struct engine *engine = sim_engine(sim, space);

    if (sim_is_held(sim)) {
        return false;
    }
    sim->asked[space] = false;
    row_maintain(engine->row, sim->barrier);
    return true;
}

static void run_round(struct sim *sim, bool dumps_only)
{
    struct checkpoint_round round = {.data = sim->data,
                                     .barrier = sim->barrier,
                                     .member = sim->member,
                                     .stop = &sim->stop,
                                     .dumps_only = dumps_only};

    if (!data_may_store(sim->data)) {
        return; /* as the thread for checkpoints */
    }
    sim->stop = false;
    sim->stage = SIM_CHECKPOINT;
    bool done = checkpoint_round(&round, &sim->spaces);

    sim_calm(sim);
    sim->stage = SIM_RUNNING;
    sim->figures.checkpoints += done;
    sim->figures.failed_checkpoints += !done && !sim->ended;
    sim->figures.images += round.images;
}

void sim_checkpoint(struct sim *sim)
{
    run_round(sim, false);
}

void sim_dump(struct sim *sim)
{
    run_round(sim, true);
}

/* ---- what is found ---- */

static bool meet(void *context, const struct journal_record *record)
{
    struct sim *sim = context;

    if (sim->node != NULL) {
        sim->node->learn(sim->node->context, record);
    }
    if (!history_meet(&sim->history, record)) {
        fail_msg("seed %llu: at LSN %llu stands what nobody has put there",
                 (unsigned long long)sim->seed, (unsigned long long)record->lsn);
    }
    return true;
}

static bool nothing(void *context, const struct journal_record *record)
{
    (void)context;
    (void)record;
    return true;
}

static void scan(struct sim *sim, uint64_t from, journal_record_fn *record, uint64_t *end)
{
    struct journal_scan scan = {.from = from};
    enum journal_scan_end result =
        journal_scan(vfs_sim_vfs(sim->disk), SIM_DIRECTORY, &scan, record, sim);

    if (result != JOURNAL_SCAN_CLEAN && result != JOURNAL_SCAN_TORN) {
        fail_msg("seed %llu: %s", (unsigned long long)sim->seed, scan.error);
    }
    *end = scan.end;
}

/* Where does the journal end, and is that late enough? What comes after is forgotten. */
static void look(struct sim *sim)
{
    uint64_t end;

    scan(sim, JOURNAL_FROM_OLDEST, nothing, &end);
    if (sim->node != NULL) {
        sim->node->found(sim->node->context, &end);
    }
    if (sim->broken) {
        fail_msg("seed %llu: something was acknowledged too early", (unsigned long long)sim->seed);
    }
    if (end < sim->must) {
        fail_msg("seed %llu: the journal ends at %llu, and must not below %llu",
                 (unsigned long long)sim->seed, (unsigned long long)end,
                 (unsigned long long)sim->must);
    }
    sim->figures.lost += history_above(&sim->history, end);
    history_cut(&sim->history, end);
    scan(sim, JOURNAL_FROM_OLDEST, meet, &(uint64_t){0});
    sim->found = end;
    sim->acknowledged = end; /* or it never was */
    sim->must = end;         /* a kill in the recovery takes nothing away */
}

/* Seen with no hook: looking is no part of what is simulated. */
static void look_aside(struct sim *sim)
{
    vfs_sim_hook(sim->disk, NULL, NULL);
    look(sim);
    vfs_sim_hook(sim->disk, on_call, sim);
}

void sim_meet(struct sim *sim)
{
    vfs_sim_hook(sim->disk, NULL, NULL);
    scan(sim, JOURNAL_FROM_OLDEST, meet, &(uint64_t){0});
    vfs_sim_hook(sim->disk, on_call, sim);
}

bool sim_has_file(struct sim *sim, const char *path)
{
    struct vfs *vfs = vfs_sim_vfs(sim->disk);

    vfs_sim_hook(sim->disk, NULL, NULL);
    int fd = vfs->functions->open(vfs, path, O_RDONLY);

    if (fd >= 0) {
        vfs->functions->close(vfs, fd);
    }
    vfs_sim_hook(sim->disk, on_call, sim);
    return fd >= 0;
}

static bool recover(struct sim *sim)
{
    static const _Atomic bool never = false;

    open_process(sim);
    if (sim->data == NULL || sim->ended) {
        return false;
    }
    look_aside(sim);
    if (sim->node != NULL) {
        sim->node->opened(sim->node->context);
    }
    if (!data_recover(sim->data, sim->spaces, &never, sim->error) || sim->ended) {
        return false;
    }
    sim->end.armed = false;
    sim_calm(sim); /* it makes a further segment */
    if (sim_always(sim)) {
        (void)sim_wait_durable(sim, journal_written(data_journal(sim->data)));
    }
    sim_calm(sim);
    if (sim->node != NULL) {
        sim->node->recovered(sim->node->context);
    }
    sim_meet(sim); /* with what recovery has put */
    return true;
}

void sim_begin(struct sim *sim)
{
    for (unsigned i = 0; i < RECOVERIES_MAX; i++) {
        if (recover(sim)) {
            sim->stage = SIM_RUNNING;
            sim->figures.recoveries++;
            if (!data_follows(sim->data)) {
                sim_sinks_begin(sim);
            }
            if (sim->leads || data_readable(sim->data)) {
                sim_compare(sim);
            }
            return;
        }
        if (!sim->ended) {
            fail_msg("seed %llu: %s", (unsigned long long)sim->seed, sim->error);
        }
        wind_up(sim, false);
    }
    fail_msg("seed %llu: it never recovers", (unsigned long long)sim->seed);
}

/* ---- a simulation ---- */

void sim_init(struct sim *sim, uint64_t seed)
{
    memset(sim, 0, sizeof(*sim));
    sim->seed = seed;
    sim->random.state = hash_u64(seed);
    sim->ends_random.state = hash_u64(~seed);
    sim->main = pthread_self();
    sim_clock_seed(seed);
    history_init(&sim->history);
    sim->disk = vfs_sim_create(seed);
    vfs_sim_set_clock(sim->disk, 1);
    vfs_sim_hook(sim->disk, on_call, sim);
#ifdef ROLLCALL_POINTS
    point_set(on_point, sim);
#endif
    sim_settings(sim);
}

void sim_fini(struct sim *sim)
{
    CHECK(sim->stage == SIM_NOTHING);
    vfs_sim_destroy(sim->disk);
    history_fini(&sim->history);
}
