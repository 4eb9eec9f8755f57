/*
 * test_journal_crash.c: the process is killed, or the power cut, before any call of the journal's.
 * Kill: committed <= recovered <= put, in the order of the LSNs. Power cut: durable <= recovered.
 * After each the journal goes on from there, and dies again; on a disk that fails now and then too.
 */
#include "store/journal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/store/journal_run.h"

#define WALK_RECORDS    1400 /* of the walk over all calls: more than two segments */
#define WALK_COMMITS    7
#define CUT_LIVES       5
#define CUT_SEEDS       120
#define CUT_CALLS_MAX   300
#define CUT_RECORDS_MAX 3000

/* Ends the process before its n-th call that a thread makes. */
struct doom {
    struct vfs_sim *sim;
    uint64_t at; /* n */
    _Atomic uint64_t calls;
    uint64_t cut_seed; /* 0: a kill */
};

static void on_call(void *context, enum vfs_sim_op op, const char *path)
{
    struct doom *doom = context;
    (void)op;
    (void)path;
    if (++doom->calls == doom->at) {
        if (doom->cut_seed == 0) {
            vfs_sim_kill(doom->sim);
        } else {
            vfs_sim_power_cut(doom->sim, doom->cut_seed);
        }
    }
}

static bool has_ended(const struct doom *doom)
{
    return doom->calls >= doom->at;
}

/* What one life of the journal knew when it ended, as numbers of writer 0. */
struct life {
    uint64_t number; /* put last */
    uint64_t committed, durable;
    uint64_t trim_lsn; /* what lies below is not needed */
};

/* The last record a life knows to be durable. */
static void note_durable(struct journal *journal, struct life *life, uint64_t end, uint64_t number)
{
    if (journal_durable(journal) >= end && number > life->durable) {
        life->durable = number;
    }
}

/* A life of random work, until its records are used up or a commit fails; then it is closed. */
static void live(struct journal *journal, struct test_random *random, struct life *life,
                 uint64_t generation, uint64_t records)
{
    struct journal_writer writer;
    struct run_listener listener;
    run_listen(&listener, journal);
    journal_writer_init(&writer, journal);
    bool alive = true;
    while (alive && records > 0) {
        uint64_t batch = 1 + test_random_below(random, 2 * WALK_COMMITS);
        for (; batch > 0 && records > 0; batch--, records--) {
            size_t bytes = RUN_PAYLOAD_MIN + test_random_below(random, JOURNAL_PAYLOAD_MAX - 16);
            if (!journal_reserve(&writer, bytes + 16)) {
                records--; /* the commit makes room, or the disk is full, or the journal has failed
                            */
                break;
            }
            run_put(&writer, 0, ++life->number, generation, bytes);
        }
        alive = journal_commit(&writer);
        if (alive) {
            life->committed = life->number;
        }
        if (alive && writer.end > 0 && test_random_once_in(random, 4)) {
            alive =
                journal_sync_now(journal) && run_wait_moved(&listener, journal, true, writer.end);
        }
        note_durable(journal, life, writer.end, life->committed);
        if (alive && test_random_once_in(random, 8)) {
            alive = journal_trim(journal, life->trim_lsn);
        }
    }
    journal_writer_fini(&writer);
    journal_close(journal);
}

/* ---- a kill, or a cut, before every call of one workload ---- */

/* One life that ends before the n-th call. False: it had fewer. */
static bool end_before(uint64_t call, enum journal_sync sync, bool cut)
{
    struct vfs_sim *sim = vfs_sim_create(call);
    struct vfs *vfs = vfs_sim_vfs(sim);
    struct test_random random = {.state = 5};
    struct life life = {0};
    char error[JOURNAL_ERROR_MAX];
    run_make_directory(vfs);
    struct doom doom = {.sim = sim, .at = call, .cut_seed = cut ? call + 1 : 0};
    vfs_sim_hook(sim, on_call, &doom);
    struct journal_config config = run_config(vfs, sync);
    struct journal *journal = journal_open(&config, error);
    if (journal) {
        live(journal, &random, &life, 0, WALK_RECORDS);
    }
    vfs_sim_hook(sim, NULL, NULL);
    bool ended = has_ended(&doom);
    if (!ended) { /* then it closed */
        life.committed = life.durable = life.number;
    }
    config.vfs = vfs = vfs_sim_vfs(sim);
    struct recovered recovered = {0};
    run_scan(vfs, 0, &recovered);
    assert_string_equal(recovered.scan.error, "");
    assert_true(recovered.end == JOURNAL_SCAN_CLEAN || recovered.end == JOURNAL_SCAN_TORN);
    assert_true(ended || recovered.end == JOURNAL_SCAN_CLEAN);
    assert_true(recovered.count[0] <= life.number);
    assert_true(recovered.count[0] >= (cut ? life.durable : life.committed));

    /* and goes on */
    journal = run_open(&config, &recovered);
    struct life next = {.number = recovered.count[0]};
    live(journal, &random, &next, 1, 20);
    recovered = (struct recovered){0};
    run_scan(vfs, 0, &recovered);
    assert_string_equal(recovered.scan.error, "");
    assert_int_equal(recovered.end, JOURNAL_SCAN_CLEAN);
    assert_int_equal(recovered.count[0], next.number);
    vfs_sim_destroy(sim);
    return ended;
}

static void end_before_each(bool cut)
{
    for (unsigned sync = JOURNAL_SYNC_NEVER; sync <= JOURNAL_SYNC_ALWAYS; sync++) {
        uint64_t call = 1;
        uint64_t step = 1 + 100 / test_scaled(100);
        while (end_before(call, sync, cut)) {
            call += step;
        }
        printf("%s before each of %u calls, sync %u\n", cut ? "power cut" : "kill", (unsigned)call,
               sync);
    }
}

static void test_kill_before_each_call(void **state)
{
    (void)state;
    end_before_each(false);
}

static void test_cut_before_each_call(void **state)
{
    (void)state;
    end_before_each(true);
}

/* ---- many lives, each ended by a kill or a cut at a random call ---- */

struct world {
    struct vfs_sim *sim;
    struct journal_config config;
    struct doom doom;
    struct test_random random;
    struct recovered recovered; /* before the next life */
    struct recovered base;      /* where scans begin: what a checkpoint would hold */
    struct life life;
    uint64_t generation;
    bool faulty; /* the disk */
};

static void doom_this_life(struct world *world)
{
    struct test_random *random = &world->random;
    world->doom.cut_seed = test_random_once_in(random, 3) ? 0 : test_random_next(random) | 1;
    world->doom.at = 1 + test_random_below(random, CUT_CALLS_MAX);
    world->doom.calls = 0;
    vfs_sim_hook(world->sim, on_call, &world->doom);
}

static bool any_record(void *context, const struct journal_record *record)
{
    (void)context;
    return record->type == RUN_TYPE;
}

/* What older segments are left of a trim follow one another too. */
static void check_older(struct world *world)
{
    struct journal_scan scan = {.from = JOURNAL_FROM_OLDEST};
    enum journal_scan_end end =
        journal_scan(world->config.vfs, RUN_DIRECTORY, &scan, any_record, NULL);
    assert_string_equal(scan.error, "");
    assert_int_equal(end, world->recovered.end);
    assert_int_equal(scan.end, world->recovered.scan.end);
    assert_int_equal(scan.sum, world->recovered.scan.sum);
}

/* What the last life left must be there; a kill leaves what was committed too. */
static void check_what_is_left(struct world *world)
{
    const struct life *life = &world->life;
    bool killed = world->doom.cut_seed == 0;
    bool ended = has_ended(&world->doom);
    vfs_sim_faults_end(world->sim);
    world->config.vfs = vfs_sim_vfs(world->sim);
    world->recovered = world->base;
    run_scan(world->config.vfs, world->base.scan.end, &world->recovered);
    assert_string_equal(world->recovered.scan.error, "");
    check_older(world);
    uint64_t count = world->recovered.count[0];
    assert_true(count <= life->number);
    assert_true(count >= life->durable);
    if (!ended || killed) {
        assert_true(count >= life->committed);
    }
    if (!ended && !world->faulty) {
        assert_int_equal(world->recovered.end, JOURNAL_SCAN_CLEAN);
    }
    /* all of it is durable only when the next open is through */
    world->life.number = world->life.committed = count;
}

/* What a disk may do. Nothing of it may cost what was promised. */
static const struct vfs_sim_fault fault_kinds[] = {
    {.op = VFS_SIM_PWRITE, .one_in = 100, .error = EIO},
    {.op = VFS_SIM_PWRITE, .one_in = 100, .error = ENOSPC},
    {.op = VFS_SIM_PWRITE, .one_in = 3, .kind = VFS_SIM_SHORT, .bytes = 1000},
    {.op = VFS_SIM_FDATASYNC, .one_in = 10, .kind = VFS_SIM_SYNC_LOST},
    {.op = VFS_SIM_FDATASYNC, .one_in = 4, .kind = VFS_SIM_SYNC_PARTLY_LOST},
    {.op = VFS_SIM_ALLOCATE, .one_in = 2, .error = ENOSPC},
    {.op = VFS_SIM_RENAME, .one_in = 4, .error = EIO},
    {.op = VFS_SIM_SYNC_DIR, .one_in = 6, .error = EIO},
    {.op = VFS_SIM_OPEN, .one_in = 10, .error = EMFILE},
    {.op = VFS_SIM_UNLINK, .one_in = 2, .error = EIO},
    {.op = VFS_SIM_TRUNCATE, .one_in = 2, .error = EIO},
    {.op = VFS_SIM_WRITEBACK, .error = EIO},
    {.op = VFS_SIM_READAHEAD, .error = EIO},
};

static void break_disk(struct world *world)
{
    const size_t kinds = sizeof(fault_kinds) / sizeof(*fault_kinds);
    for (uint64_t n = 1 + test_random_below(&world->random, 3); n > 0; n--) {
        vfs_sim_fault(world->sim, &fault_kinds[test_random_below(&world->random, kinds)]);
    }
}

static void next_life(struct world *world)
{
    char error[JOURNAL_ERROR_MAX];
    struct journal_config *config = &world->config;
    struct test_random *random = &world->random;
    doom_this_life(world);
    if (world->faulty) {
        break_disk(world);
    }
    config->start_lsn = world->recovered.scan.end;
    config->sum = world->recovered.scan.sum;
    config->epoch++;
    config->sync = (enum journal_sync)test_random_below(random, 3);
    config->segment_bytes = RUN_SEGMENT_BYTES + 4096 * test_random_below(random, 50);
    struct journal *journal = journal_open(config, error);
    if (journal) {
        world->life.durable = world->life.number;
        if (test_random_once_in(random, 2)) {
            world->base = world->recovered;
            world->life.trim_lsn = world->base.scan.end;
        }
        live(journal, random, &world->life, ++world->generation,
             test_random_below(random, CUT_RECORDS_MAX));
    }
    vfs_sim_hook(world->sim, NULL, NULL);
}

static void run_world(uint64_t seed, bool faulty)
{
    struct world world = {.sim = vfs_sim_create(seed), .random = {.state = seed}, .faulty = faulty};
    world.doom.sim = world.sim;
    world.config = run_config(vfs_sim_vfs(world.sim), JOURNAL_SYNC_EVERYSEC);
    run_make_directory(world.config.vfs);
    for (unsigned i = 0; i < CUT_LIVES; i++) {
        next_life(&world);
        check_what_is_left(&world);
    }
    vfs_sim_destroy(world.sim);
}

static void run_worlds(bool faulty)
{
    uint64_t seed = test_seed();
    for (uint64_t i = 0; i < test_scaled(CUT_SEEDS); i++) {
        run_world(seed + i, faulty);
    }
}

static void test_lives(void **state)
{
    (void)state;
    run_worlds(false);
}

static void test_lives_on_a_bad_disk(void **state)
{
    (void)state;
    run_worlds(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill_before_each_call),
        cmocka_unit_test(test_cut_before_each_call),
        cmocka_unit_test(test_lives),
        cmocka_unit_test(test_lives_on_a_bad_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
