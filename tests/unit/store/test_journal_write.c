/*
 * test_journal_write.c: the thread that writes the journal, and what it shares with those who write
 * themselves: when it writes, under which lock, what it stops at, whom it tells, and when the sync
 * thread has to look. The clock stands still, so that thread does nothing by itself.
 */
#include "store/journal_private.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "tests/support/give_way.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/store/journal_run.h"

#define MIB          (1u << 20)
#define CLOCK_US     1000000u
#define LONG_BYTES   1024u /* records, as they are in the stream */
#define SHORT_BYTES  24u
#define LOOKS        200u
#define RING_BYTES   RUN_BUFFER_BYTES
#define HALF_SEGMENT (RUN_SEGMENT_BYTES / 2)
#define PAGES_PIECE  (128u << 10) /* journal_pages.c */

struct world {
    struct vfs_sim *sim;
    struct journal_config config;
    struct journal *journal;
    struct journal_writer writer;
    uint64_t number; /* put last */
};

/* Whether the sync thread has done all it was kicked for, and cannot begin anything: it needs the
 * state lock, which is held. */
static bool sync_rests_locked(struct journal *journal)
{
    pthread_mutex_lock(&journal->state_lock);
    if (journal->rests && !atomic_load(&journal->kicked)) {
        return true;
    }
    pthread_mutex_unlock(&journal->state_lock);
    return false;
}

static void await_sync_rests(struct journal *journal)
{
    RUN_WAIT_FOR(sync_rests_locked(journal));
    pthread_mutex_unlock(&journal->state_lock);
}

static uint64_t rooms_told(struct journal *journal)
{
    pthread_mutex_lock(&journal->state_lock);
    uint64_t times = journal->rooms_told;
    pthread_mutex_unlock(&journal->state_lock);
    return times;
}

/* What the writing thread was kicked for before this, it has done after. */
static void await_writer_rests(struct journal *journal)
{
    RUN_WAIT_FOR(kick_rests(&journal->writer_kick));
}

static void begin(struct world *world, enum journal_sync sync, uint64_t segment, uint64_t buffer)
{
    *world = (struct world){.sim = vfs_sim_create(1)};
    vfs_sim_set_clock(world->sim, CLOCK_US);
    world->config = run_config(vfs_sim_vfs(world->sim), sync);
    world->config.segment_bytes = segment;
    world->config.buffer_bytes = buffer;
    run_make_directory(world->config.vfs);
    world->journal = run_open(&world->config, NULL);
    journal_writer_init(&world->writer, world->journal);
    await_sync_rests(world->journal);
}

/* Everything that was put is in the files. */
static void end(struct world *world, enum journal_scan_end how)
{
    struct recovered recovered = {0};
    journal_writer_fini(&world->writer);
    journal_close(world->journal);
    run_scan(world->config.vfs, 0, &recovered);
    assert_string_equal(recovered.scan.error, "");
    assert_int_equal(recovered.end, how);
    assert_int_equal(recovered.count[0], world->number);
    vfs_sim_destroy(world->sim);
}

/* A record that is so long in the stream. */
static void put(struct world *world, size_t bytes)
{
    assert_true(journal_reserve(&world->writer, bytes));
    run_put(&world->writer, 0, ++world->number, 0, bytes - JOURNAL_HEADER_BYTES);
}

static void put_many(struct world *world, uint64_t bytes)
{
    for (; bytes > 0; bytes -= LONG_BYTES) {
        put(world, LONG_BYTES);
    }
}

static uint64_t writes_of(struct world *world)
{
    return vfs_sim_calls(world->sim, VFS_SIM_PWRITE, NULL);
}

static struct journal_stats stats_of(struct world *world)
{
    struct journal_stats stats;
    journal_stats(world->journal, &stats);
    return stats;
}

/* ---- when the sync thread has to look ---- */

/* Writes what is put, and asks before anybody can have made it durable. */
static bool is_needed_after_writing(struct journal *journal)
{
    pthread_mutex_lock(&journal->write_lock);
    assert_true(journal_write_through(journal, journal_head(journal)));
    bool needed = journal_sync_is_needed(journal);
    pthread_mutex_unlock(&journal->write_lock);
    return needed;
}

/* everysec, before its second is over: more than half of the ring is not durable. */
static void test_half_the_ring(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_EVERYSEC, 8 * MIB, RING_BYTES);
    put_many(&world, RING_BYTES / 2);
    assert_false(is_needed_after_writing(world.journal));
    journal_kick(world.journal);
    await_sync_rests(world.journal);
    assert_int_equal(journal_durable(world.journal), 0);
    put(&world, SHORT_BYTES);
    assert_true(is_needed_after_writing(world.journal));
    journal_kick(world.journal);
    RUN_WAIT_FOR(journal_durable(world.journal) == world.writer.end);
    /* from there on the next half counts */
    RUN_WAIT_FOR(stats_of(&world).buffer_used_bytes == 0);
    await_sync_rests(world.journal);
    put_many(&world, RING_BYTES / 2);
    assert_false(is_needed_after_writing(world.journal));
    end(&world, JOURNAL_SCAN_CLEAN);
}

/* never: nobody waits for the ring's other half. always: whatever is written. */
static void test_other_settings(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_NEVER, 8 * MIB, RING_BYTES);
    put_many(&world, RING_BYTES * 3 / 4);
    assert_false(is_needed_after_writing(world.journal));
    journal_kick(world.journal);
    await_sync_rests(world.journal);
    assert_int_equal(journal_durable(world.journal), 0);
    end(&world, JOURNAL_SCAN_CLEAN);
    begin(&world, JOURNAL_SYNC_ALWAYS, 8 * MIB, RING_BYTES);
    put(&world, SHORT_BYTES);
    assert_true(is_needed_after_writing(world.journal));
    end(&world, JOURNAL_SCAN_CLEAN);
}

static bool has_spare(struct journal *journal)
{
    pthread_mutex_lock(&journal->write_lock);
    bool has = journal->spare_fd >= 0;
    pthread_mutex_unlock(&journal->write_lock);
    return has;
}

/* Half of a segment is left: the next one is to be made, and only once. */
static void test_half_the_segment(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_NEVER, RUN_SEGMENT_BYTES, RING_BYTES);
    const uint64_t half = RUN_SEGMENT_BYTES - JOURNAL_PAGE_BYTES - HALF_SEGMENT;
    assert_int_equal(half % LONG_BYTES, 0);
    for (uint64_t written = 0; written + LONG_BYTES < half; written += LONG_BYTES) {
        put(&world, LONG_BYTES);
        assert_true(journal_commit(&world.writer));
    }
    put(&world, LONG_BYTES - SHORT_BYTES);
    assert_false(is_needed_after_writing(world.journal));
    journal_kick(world.journal);
    await_sync_rests(world.journal);
    assert_false(has_spare(world.journal));
    put(&world, SHORT_BYTES);
    assert_int_equal(world.writer.end, half);
    assert_true(is_needed_after_writing(world.journal));
    journal_kick(world.journal);
    RUN_WAIT_FOR(has_spare(world.journal));
    put(&world, SHORT_BYTES);
    assert_false(is_needed_after_writing(world.journal));
    end(&world, JOURNAL_SCAN_CLEAN);
}

/* The pages that come next are asked for as the stream goes on: 16 MiB ahead, a piece at a time. */
static void test_pages_ahead(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_NEVER, 64 * MIB, RING_BYTES);
    put_many(&world, PAGES_PIECE - LONG_BYTES);
    put(&world, LONG_BYTES - SHORT_BYTES);
    assert_false(is_needed_after_writing(world.journal));
    put(&world, SHORT_BYTES);
    assert_true(is_needed_after_writing(world.journal));
    end(&world, JOURNAL_SCAN_CLEAN);
}

/* always: the sync thread, which would look by itself within a second only, is kicked. */
static void test_kicks(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_ALWAYS, 8 * MIB, RING_BYTES);
    put(&world, LONG_BYTES);
    RUN_WAIT_FOR(sync_rests_locked(world.journal));
    (void)journal_submit(&world.writer);
    RUN_WAIT_FOR(atomic_load(&world.journal->kicked));
    pthread_mutex_unlock(&world.journal->state_lock);
    RUN_WAIT_FOR(journal_durable(world.journal) == world.writer.end);
    end(&world, JOURNAL_SCAN_CLEAN);
}

/* ---- writing ---- */

/* What is put is written in pieces, so that others are told in between. */
static void test_pieces(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_EVERYSEC, 8 * MIB, 4 * MIB);
    put_many(&world, 2 * JOURNAL_WRITE_BYTES + LONG_BYTES);
    vfs_sim_counts_clear(world.sim);
    assert_int_equal(stats_of(&world).writes, 0);
    assert_true(journal_commit(&world.writer));
    assert_int_equal(stats_of(&world).writes, 3);
    end(&world, JOURNAL_SCAN_CLEAN);
}

/* The time that something has not been durable goes from the first of it. */
static void test_unsynced_since(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_EVERYSEC, 8 * MIB, RING_BYTES);
    for (unsigned i = 0; i < 3; i++) {
        put(&world, LONG_BYTES);
        assert_true(journal_commit(&world.writer));
        vfs_sim_advance(world.sim, 1000);
        assert_int_equal(stats_of(&world).unsynced_us, (i + 1) * 1000);
    }
    end(&world, JOURNAL_SCAN_CLEAN);
}

struct lock_looker {
    struct journal *journal;
    _Atomic unsigned writes, unlocked;
};

static void look_at_lock(void *context, enum vfs_sim_op op, const char *path)
{
    struct lock_looker *looker = context;
    (void)path;
    if (op == VFS_SIM_PWRITE) {
        looker->writes++;
        if (pthread_mutex_trylock(&looker->journal->write_lock) == 0) {
            looker->unlocked++;
            pthread_mutex_unlock(&looker->journal->write_lock);
        }
    }
}

/* The thread writes under the lock that all others who write have. */
static void test_writes_locked(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_NEVER, 8 * MIB, RING_BYTES);
    struct lock_looker looker = {.journal = world.journal};
    vfs_sim_hook(world.sim, look_at_lock, &looker);
    put(&world, LONG_BYTES);
    (void)journal_submit(&world.writer);
    RUN_WAIT_FOR(journal_written(world.journal) == world.writer.end);
    vfs_sim_hook(world.sim, NULL, NULL);
    assert_int_equal(looker.writes, 1);
    assert_int_equal(looker.unlocked, 0);
    end(&world, JOURNAL_SCAN_CLEAN);
}

/* Counts, and takes what only the one who tells could have kept. */
struct told {
    struct journal_listener listener;
    struct journal *journal;
    _Atomic unsigned moved, room;
    size_t asks; /* for so much room, the first time it is told of any */
};

static void told_moved(void *context)
{
    struct told *told = context;
    pthread_mutex_lock(&told->journal->write_lock);
    told->moved++;
    pthread_mutex_unlock(&told->journal->write_lock);
}

static void told_room(void *context)
{
    struct told *told = context;
    if (told->room == 0 && told->asks > 0) {
        journal_want_room(told->journal, told->asks);
    }
    told->room++;
}

static void listen_to(struct world *world, struct told *told, size_t asks)
{
    *told = (struct told){
        .listener = {told_moved, told_room, told}, .journal = world->journal, .asks = asks};
    journal_listen(world->journal, &told->listener);
}

/* Others are told under no lock, and only when something was written. */
static void test_tells_what_moved(void **state)
{
    (void)state;
    struct world world;
    struct told told;
    begin(&world, JOURNAL_SYNC_NEVER, 8 * MIB, RING_BYTES);
    listen_to(&world, &told, 0);
    put(&world, LONG_BYTES);
    (void)journal_submit(&world.writer);
    RUN_WAIT_FOR(told.moved == 1);
    await_writer_rests(world.journal);
    /* a record that is not filled yet: the thread looks again and again */
    uint64_t lsn = journal_head(world.journal);
    uint64_t bytes = JOURNAL_HEADER_BYTES;
    put(&world, LONG_BYTES);
    shared_word *word =
        (shared_word *)(uintptr_t)journal_ring_at(&world.journal->ring, lsn, &bytes);
    uint64_t filled = *word;
    *word = 0;
    (void)journal_submit(&world.writer);
    RUN_WAIT_FOR(atomic_load(&world.journal->writer_kick.state) == KICK_BUSY);
    for (unsigned i = 0; i < LOOKS; i++) {
        assert_int_equal(told.moved, 1);
        assert_int_equal(world.journal->writes, 1);
        give_way();
    }
    __atomic_store_n(word, filled, __ATOMIC_RELEASE);
    RUN_WAIT_FOR(told.moved == 2);
    assert_int_equal(world.journal->writes, 2);
    end(&world, JOURNAL_SCAN_CLEAN);
}

/* ---- trouble ---- */

/* What has failed writes nothing more, by whomever: nobody knows what is in the file. */
static void test_failed(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_EVERYSEC, 8 * MIB, RING_BYTES);
    put(&world, LONG_BYTES);
    assert_true(journal_commit(&world.writer));
    uint64_t written = journal_written(world.journal);
    put(&world, LONG_BYTES);
    world.number--; /* it gets nowhere: not into this file, nor into the one begun for it */
    vfs_sim_fault(world.sim, &(struct vfs_sim_fault){.op = VFS_SIM_PWRITE, .times = 2});
    assert_false(journal_commit(&world.writer));
    assert_true(journal_failed(world.journal));
    vfs_sim_faults_end(world.sim);
    await_writer_rests(world.journal);
    uint64_t calls = writes_of(&world);
    assert_false(journal_commit(&world.writer));
    pthread_mutex_lock(&world.journal->write_lock);
    assert_false(journal_write_through(world.journal, written)); /* even of what is there */
    pthread_mutex_unlock(&world.journal->write_lock);
    (void)journal_submit(&world.writer);
    await_writer_rests(world.journal);
    assert_int_equal(journal_written(world.journal), written);
    assert_int_equal(writes_of(&world), calls);
    end(&world, JOURNAL_SCAN_TORN);
}

/* A disk that is full is no reason for another file, and it is not asked at each turn. */
static void test_stuck(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_EVERYSEC, 8 * MIB, RING_BYTES);
    put(&world, LONG_BYTES);
    assert_true(journal_commit(&world.writer));
    uint64_t written = journal_written(world.journal);
    put(&world, LONG_BYTES);
    struct vfs_sim_fault fault = {.op = VFS_SIM_PWRITE, .error = ENOSPC, .path = "journal-0"};
    vfs_sim_fault(world.sim, &fault);
    assert_false(journal_commit(&world.writer));
    assert_int_equal(stats_of(&world).segments, 1);
    assert_true(stats_of(&world).full);
    await_sync_rests(world.journal); /* that thread has tried, and does so each second */
    await_writer_rests(world.journal);
    uint64_t calls = writes_of(&world);
    (void)journal_submit(&world.writer);
    await_writer_rests(world.journal);
    assert_int_equal(writes_of(&world), calls);
    assert_int_equal(journal_written(world.journal), written);
    vfs_sim_faults_end(world.sim);
    vfs_sim_advance(world.sim, CLOCK_US);
    journal_kick(world.journal);
    RUN_WAIT_FOR(journal_written(world.journal) == world.writer.end);
    end(&world, JOURNAL_SCAN_CLEAN);
}

/* ---- room ---- */

/* Whoever waits for room is told once, and by nothing that comes later. */
static void test_room_is_told_once(void **state)
{
    (void)state;
    struct world world;
    struct told told;
    begin(&world, JOURNAL_SYNC_NEVER, 8 * MIB, RING_BYTES);
    journal_want_room(world.journal, LONG_BYTES); /* nobody listens yet */
    RUN_WAIT_FOR(rooms_told(world.journal) == 1);
    await_writer_rests(world.journal);
    listen_to(&world, &told, 0);
    journal_want_room(world.journal, LONG_BYTES);
    RUN_WAIT_FOR(told.room == 1);
    put(&world, LONG_BYTES); /* the thread has something else to do */
    (void)journal_submit(&world.writer);
    RUN_WAIT_FOR(journal_written(world.journal) == world.writer.end);
    await_writer_rests(world.journal);
    assert_true(journal_reserve(&world.writer, LONG_BYTES)); /* room comes that nobody waits for */
    journal_give_back(&world.writer, 0);
    await_writer_rests(world.journal);
    assert_int_equal(told.room, 1);
    assert_int_equal(rooms_told(world.journal), 2);
    end(&world, JOURNAL_SCAN_CLEAN);
}

/* Who is told, and asks at once for more than there is, is told when room comes. */
static void test_asks_again(void **state)
{
    (void)state;
    struct world world;
    struct told told;
    begin(&world, JOURNAL_SYNC_NEVER, 8 * MIB, RING_BYTES);
    listen_to(&world, &told, 2 * RING_BYTES);
    journal_want_room(world.journal, LONG_BYTES);
    RUN_WAIT_FOR(told.room == 1);
    await_writer_rests(world.journal);
    assert_true(journal_reserve(&world.writer, LONG_BYTES));
    journal_give_back(&world.writer, 0);
    RUN_WAIT_FOR(told.room == 2);
    end(&world, JOURNAL_SCAN_CLEAN);
}

struct waiters {
    struct journal *journal;
    unsigned waiting; /* under the journal's state lock */
};

static void *wait_for_room(void *context)
{
    struct waiters *waiters = context;
    struct journal *journal = waiters->journal;
    pthread_mutex_lock(&journal->state_lock);
    uint64_t told = journal->rooms_told;
    waiters->waiting++;
    while (journal->rooms_told == told) {
        pthread_cond_wait(&journal->roomy, &journal->state_lock);
    }
    pthread_mutex_unlock(&journal->state_lock);
    return NULL;
}

static bool all_wait(struct waiters *waiters, unsigned count)
{
    pthread_mutex_lock(&waiters->journal->state_lock);
    bool all = waiters->waiting == count;
    pthread_mutex_unlock(&waiters->journal->state_lock);
    return all;
}

/* All that wait in journal_await_room go on. */
static void test_all_go_on(void **state)
{
    (void)state;
    struct world world;
    pthread_t threads[3];
    begin(&world, JOURNAL_SYNC_NEVER, 8 * MIB, RING_BYTES);
    struct waiters waiters = {.journal = world.journal};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_room, &waiters), 0);
    }
    RUN_WAIT_FOR(all_wait(&waiters, 3));
    journal_want_room(world.journal, LONG_BYTES);
    for (unsigned i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    end(&world, JOURNAL_SCAN_CLEAN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half_the_ring),
        cmocka_unit_test(test_other_settings),
        cmocka_unit_test(test_half_the_segment),
        cmocka_unit_test(test_pages_ahead),
        cmocka_unit_test(test_kicks),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_unsynced_since),
        cmocka_unit_test(test_writes_locked),
        cmocka_unit_test(test_tells_what_moved),
        cmocka_unit_test(test_failed),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_room_is_told_once),
        cmocka_unit_test(test_asks_again),
        cmocka_unit_test(test_all_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
