/*
 * test_journal_threads.c: several writers, their commits, waits and syncs at once. After a kill
 * each writer's records are there in its order, all that it committed among them.
 */
#include "store/journal.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/check.h"
#include "store/journal_private.h"
#include "tests/support/give_way.h"
#include "tests/support/random.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/store/journal_run.h"

#define WRITERS 4
#define RECORDS 6000u /* of each */
#define YIELDS  2000u

struct world {
    struct vfs_sim *sim;
    struct journal *journal;
    struct run_listener listener;
    _Atomic unsigned running;
};

struct thread {
    pthread_t thread;
    struct world *world;
    uint8_t w;
    uint64_t records;
    uint64_t put, committed, durable;
};

/* By this thread, or by the journal's. */
static bool commit(struct world *world, struct journal_writer *writer, bool here)
{
    if (here) {
        return journal_commit(writer);
    }
    uint64_t lsn = journal_submit(writer);
    return run_wait_moved(&world->listener, world->journal, false, lsn);
}

/* Until its records are used up or the journal has failed. */
static void *write_records(void *context)
{
    struct thread *self = context;
    struct journal *journal = self->world->journal;
    struct test_random random = {.state = self->w};
    struct journal_writer writer;
    journal_writer_init(&writer, journal);
    bool alive = true;
    while (alive && self->put < self->records) {
        for (uint64_t batch = 1 + test_random_below(&random, 30); batch > 0; batch--) {
            size_t bytes = RUN_PAYLOAD_MIN + test_random_below(&random, 200);
            if (!journal_reserve(&writer, bytes + 16)) {
                give_way();
                break;
            }
            run_put(&writer, self->w, ++self->put, 0, bytes);
        }
        uint64_t head = journal_head(journal);
        alive = commit(self->world, &writer, test_random_once_in(&random, 2));
        CHECK(!alive || journal_written(journal) >= head);
        self->committed = alive ? self->put : self->committed;
        if (alive && test_random_once_in(&random, 20) &&
            run_wait_moved(&self->world->listener, journal, true, writer.end)) {
            self->durable = self->committed;
        }
    }
    journal_writer_fini(&writer);
    self->world->running--;
    return NULL;
}

/* Looks, syncs and trims meanwhile. */
static void watch(struct world *world, uint64_t kill_at)
{
    struct journal_stats stats;
    uint64_t durable = 0;
    while (world->running > 0) {
        journal_stats(world->journal, &stats);
        assert_true(stats.durable >= durable);
        durable = stats.durable;
        assert_true(stats.durable <= stats.written && stats.written <= stats.head);
        assert_true(stats.head - stats.written <= RUN_BUFFER_BYTES);
        assert_true(journal_trim(world->journal, 0) || stats.failed || kill_at);
        journal_sync_now(world->journal);
        if (kill_at && stats.records >= kill_at) {
            vfs_sim_kill(world->sim);
        }
        give_way();
    }
}

/* kill_at: when so many records are written; 0: never. */
static void run(enum journal_sync sync, uint64_t kill_at)
{
    struct world world = {.sim = vfs_sim_create(test_seed()), .running = WRITERS};
    struct journal_config config = run_config(vfs_sim_vfs(world.sim), sync);
    struct thread threads[WRITERS];
    run_make_directory(config.vfs);
    world.journal = run_open(&config, NULL);
    run_listen(&world.listener, world.journal);
    for (unsigned i = 0; i < WRITERS; i++) {
        threads[i] = (struct thread){.world = &world,
                                     .w = (uint8_t)i,
                                     .records = kill_at ? UINT64_MAX : test_scaled(RECORDS)};
        assert_int_equal(pthread_create(&threads[i].thread, NULL, write_records, &threads[i]), 0);
    }
    watch(&world, kill_at);
    for (unsigned i = 0; i < WRITERS; i++) {
        pthread_join(threads[i].thread, NULL);
    }
    journal_close(world.journal);
    struct recovered recovered = {0};
    run_scan(vfs_sim_vfs(world.sim), 0, &recovered);
    assert_string_equal(recovered.scan.error, "");
    assert_int_equal(recovered.end, kill_at ? JOURNAL_SCAN_TORN : JOURNAL_SCAN_CLEAN);
    for (unsigned i = 0; i < WRITERS; i++) {
        assert_true(recovered.count[i] <= threads[i].put);
        assert_true(recovered.count[i] >= threads[i].committed);
        assert_true(kill_at || recovered.count[i] == threads[i].put);
    }
    vfs_sim_destroy(world.sim);
}

static void test_to_the_end(void **state)
{
    (void)state;
    run(JOURNAL_SYNC_NEVER, 0);
    run(JOURNAL_SYNC_EVERYSEC, 0);
    run(JOURNAL_SYNC_ALWAYS, 0);
}

static void test_killed(void **state)
{
    (void)state;
    uint64_t all = WRITERS * test_scaled(RECORDS);
    run(JOURNAL_SYNC_NEVER, all / 2);
    run(JOURNAL_SYNC_EVERYSEC, all / 3);
    run(JOURNAL_SYNC_ALWAYS, all / 2);
}

/* ---- a record whose LSN is taken but that is not filled yet ---- */

struct commit {
    struct journal_writer writer;
    _Atomic bool done;
};

static void *commit_once(void *context)
{
    struct commit *commit = context;
    CHECK(journal_commit(&commit->writer));
    commit->done = true;
    return NULL;
}

static void test_unfilled(void **state)
{
    (void)state;
    struct vfs_sim *sim = vfs_sim_create(1);
    struct journal_config config = run_config(vfs_sim_vfs(sim), JOURNAL_SYNC_NEVER);
    struct commit commit = {.done = false};
    pthread_t thread;
    run_make_directory(config.vfs);
    struct journal *journal = run_open(&config, NULL);
    struct journal_ring *ring = &journal->ring;
    journal_writer_init(&commit.writer, journal);
    run_reserve(&commit.writer, 1000);
    run_put(&commit.writer, 0, 1, 0, RUN_PAYLOAD_MIN);
    uint64_t lsn = journal_head(journal);
    run_put(&commit.writer, 0, 2, 0, RUN_PAYLOAD_MIN);
    /* the second record is taken back, as if its writer were about to fill it */
    uint64_t bytes = JOURNAL_HEADER_BYTES;
    shared_word *word = (shared_word *)(uintptr_t)journal_ring_at(ring, lsn, &bytes);
    uint64_t filled = *word;
    *word = 0;
    run_put(&commit.writer, 0, 3, 0, RUN_PAYLOAD_MIN);
    assert_int_equal(pthread_create(&thread, NULL, commit_once, &commit), 0);
    RUN_WAIT_FOR(journal_written(journal) == lsn);
    for (unsigned i = 0; i < YIELDS; i++) {
        assert_false(commit.done);
        give_way();
    }
    __atomic_store_n(word, filled, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    assert_int_equal(journal_written(journal), journal_head(journal));
    journal_writer_fini(&commit.writer);
    journal_close(journal);
    struct recovered recovered = {0};
    run_scan(config.vfs, 0, &recovered);
    assert_int_equal(recovered.end, JOURNAL_SCAN_CLEAN);
    assert_int_equal(recovered.count[0], 3);
    vfs_sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_to_the_end),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_unfilled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
