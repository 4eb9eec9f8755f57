/*
 * test_sim.c: kills and power cuts at all points of a server's data, seed after seed (sim.h). A
 * failing seed is named, and does the same again: ROLLCALL_TEST_SEED=n runs it first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "tests/sim/sim.h"
#include "tests/support/give_way.h"

#define SEEDS           30u
#define SEEDS_LONG      5000u /* of check-long */
#define PROCESSES_MAX   6u
#define CYCLES_MAX      6u
#define BURST_MAX       700u
#define DUMPS_BURST_MAX 2000u
#define RECOVERY_CALLS  60u

/* How many points of a kind a process comes to, more or less. */
static const uint64_t usual[SIM_POINTS + 1] = {
    [SIM_POINT_PUT] = 6000,    [SIM_POINT_LEFT] = 60,     [SIM_POINT_TABLE] = 150,
    [SIM_POINT_MANIFEST] = 60, [SIM_POINT_JOURNAL] = 800, [SIM_POINT_CODE] = 2000,
    [SIM_POINT_ANY] = 8000,
};

/* Where tables leave memory, more often one of the points of that. */
static bool suits(struct sim *sim, const struct sim_code *code)
{
    return code->of_dumps ? sim->dumps : !sim->dumps || test_random_once_in(&sim->random, 2);
}

/* One that was not met before is tried again: more tables are there now. */
static void arm_code(struct sim *sim, unsigned before, bool cut)
{
    unsigned code = before;

    while (code == SIM_CODE_ANY || !suits(sim, sim_code(code))) {
        code = (unsigned)test_random_below(&sim->random, SIM_CODES_ENDS);
    }
    sim_arm_code(sim, code, cut);
}

static void arm(struct sim *sim, unsigned before)
{
    if (!test_random_once_in(&sim->random, 4)) {
        arm_code(sim, before, test_random_once_in(&sim->random, 2));
        return;
    }
    enum sim_point point = (enum sim_point)test_random_below(&sim->random, SIM_POINTS + 1);

    sim_arm(sim, point, usual[point], test_random_once_in(&sim->random, 2));
}

/* A call of the next checkpoint fails, once. */
static void disturb(struct sim *sim)
{
    static const struct vfs_sim_fault faults[] = {
        {.op = VFS_SIM_PWRITE, .path = ".table"},   {.op = VFS_SIM_FDATASYNC, .path = ".table"},
        {.op = VFS_SIM_RENAME, .path = "MANIFEST"}, {.op = VFS_SIM_SYNC_DIR},
        {.op = VFS_SIM_UNLINK, .path = ".table"},
    };
    struct vfs_sim_fault fault =
        faults[test_random_below(&sim->random, sizeof(faults) / sizeof(*faults))];

    fault.first = 1 + (unsigned)test_random_below(&sim->random, 4);
    fault.times = 1;
    vfs_sim_fault(sim->disk, &fault);
}

static void live(struct sim *sim)
{
    for (uint64_t i = 1 + test_random_below(&sim->random, CYCLES_MAX); i > 0 && !sim->ended; i--) {
        uint64_t most = sim->dumps ? DUMPS_BURST_MAX : BURST_MAX;

        workers_do(sim, (unsigned)test_random_below(&sim->random, most));
        if (!sim->ended && test_random_once_in(&sim->random, 8)) {
            disturb(sim);
        }
        if (!sim->ended && !test_random_once_in(&sim->random, 5)) {
            sim_checkpoint(sim);
        }
        vfs_sim_faults_end(sim->disk);
        if (!sim->ended && test_random_once_in(&sim->random, 4)) {
            sim_sync(sim);
        }
    }
    if (!sim->ended && test_random_once_in(&sim->random, 3)) {
        sim_compare(sim); /* the history itself */
    }
}

static void run_process(struct sim *sim)
{
    unsigned before = sim->unmet ? sim->end.code : SIM_CODE_ANY;

    sim->unmet = false;
    if (test_random_once_in(&sim->random, 3)) {
        sim_arm(sim, SIM_POINT_ANY, RECOVERY_CALLS, test_random_once_in(&sim->random, 2));
    }
    sim_begin(sim);
    arm(sim, before);
    live(sim);
    if (test_random_once_in(&sim->random, 5)) {
        sim_stop_cleanly(sim, true);
    } else {
        sim_end(sim, test_random_once_in(&sim->random, 2));
    }
}

static void add_figures(uint64_t *sum, const struct sim_figures *figures)
{
    const uint64_t *figure = (const uint64_t *)figures;

    for (size_t i = 0; i < sizeof(*figures) / sizeof(*figure); i++) {
        sum[i] += figure[i];
    }
}

static void run_seed(uint64_t seed, struct sim_figures *sum)
{
    static struct sim sim;

    sim_init(&sim, seed);
    for (uint64_t i = 1 + test_random_below(&sim.random, PROCESSES_MAX); i > 0; i--) {
        run_process(&sim);
    }
    sim_begin(&sim);
    sim.figures.dropped += sim.history.dropped;
    sim_stop_cleanly(&sim, true);
    add_figures((uint64_t *)sum, &sim.figures);
    uint64_t calls = vfs_sim_calls(sim.disk, VFS_SIM_ANY, NULL);

    sim_fini(&sim);
    if (getenv("ROLLCALL_SIM_TRACE") != NULL) {
        printf("seed %llu: %llu operations, %llu keys, end %llu, %llu calls\n",
               (unsigned long long)seed, (unsigned long long)sim.figures.operations,
               (unsigned long long)sim.figures.keys, (unsigned long long)sim.found,
               (unsigned long long)calls);
    }
}

static void print(const struct sim_figures *f)
{
    printf("%llu operations (%llu waited, %llu refused), %llu checkpoints (%llu failed, %llu "
           "images)\n",
           (unsigned long long)f->operations, (unsigned long long)f->pending,
           (unsigned long long)f->refused, (unsigned long long)f->checkpoints,
           (unsigned long long)f->failed_checkpoints, (unsigned long long)f->images);
    printf("%llu kills, %llu power cuts, of both %llu in a recovery; %llu clean stops; %llu "
           "recoveries\n",
           (unsigned long long)f->kills, (unsigned long long)f->cuts,
           (unsigned long long)f->recovery_kills, (unsigned long long)f->clean_stops,
           (unsigned long long)f->recoveries);
    printf("%llu keys compared; %llu records were cut off, %llu keys went with their tables\n",
           (unsigned long long)f->keys, (unsigned long long)f->lost,
           (unsigned long long)f->dropped);
    printf("ends at: put %llu, left %llu, table %llu, manifest %llu, journal %llu, code %llu, "
           "between %llu\n",
           (unsigned long long)f->ends[0], (unsigned long long)f->ends[1],
           (unsigned long long)f->ends[2], (unsigned long long)f->ends[3],
           (unsigned long long)f->ends[4], (unsigned long long)f->ends[5],
           (unsigned long long)f->ends[6]);
    printf("%llu dumps, %llu merges, %llu pages read, %llu waits for them, %llu hanging writes\n",
           (unsigned long long)f->dumps, (unsigned long long)f->merges,
           (unsigned long long)f->cold_reads, (unsigned long long)f->cold_waits,
           (unsigned long long)f->hangs);
#ifdef ROLLCALL_POINTS
    sim_codes_print(f);
#endif
}

/* A point that no process has ended at. */
static bool missed_one(const struct sim_figures *figures)
{
    bool missed = false;

#ifdef ROLLCALL_POINTS
    for (unsigned i = 0; i < SIM_CODES_ENDS; i++) {
        missed = missed || figures->code_ends[i] == 0;
    }
#else
    (void)figures;
#endif
    return missed;
}

static void test_seeds(void **state)
{
    struct sim_figures sum = {0};
    uint64_t first = test_seed();
    uint64_t seeds = sim_seeds_wanted(SEEDS, SEEDS_LONG);

    (void)state;
    log_setup("test", LOG_LEVEL_ERROR);
    /* By bad luck one point may be left out: then some more. */
    uint64_t most = seeds >= SEEDS ? 4 * seeds : seeds;

    for (uint64_t i = 0; i < seeds || (i < most && missed_one(&sum)); i++) {
        run_seed(first + i, &sum);
    }
    print(&sum);
    assert_true(seeds < SEEDS || (!missed_one(&sum) && sum.hangs > 0));
}

int main(void)
{
    give_way_on_one_processor();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seeds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
