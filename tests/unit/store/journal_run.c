/* journal_run.c: records that tell where they belong. */
#include "tests/unit/store/journal_run.h"

#include "tests/support/give_way.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "store/journal_chain.h"

#define WAIT_US_MAX   60000000u
#define PAYLOAD_WORDS (JOURNAL_PAYLOAD_MAX / 8)

struct journal_config run_config(struct vfs *vfs, enum journal_sync sync)
{
    return (struct journal_config){
        .vfs = vfs,
        .directory = RUN_DIRECTORY,
        .segment_bytes = RUN_SEGMENT_BYTES,
        .buffer_bytes = RUN_BUFFER_BYTES,
        .sync = sync,
        .epoch = 1,
    };
}

void run_make_directory(struct vfs *vfs)
{
    assert_true(vfs->functions->mkdir(vfs, RUN_DIRECTORY) == 0 || errno == EEXIST);
    assert_int_equal(vfs->functions->sync_dir(vfs, "/"), 0);
}

struct journal *run_open(struct journal_config *config, const struct recovered *recovered)
{
    char error[JOURNAL_ERROR_MAX];
    if (recovered) {
        config->start_lsn = recovered->scan.end;
        config->sum = recovered->scan.sum;
        config->epoch = recovered->scan.epoch + (recovered->end != JOURNAL_SCAN_CLEAN);
    }
    struct journal *journal = journal_open(config, error);
    if (!journal) {
        fail_msg("%s", error);
    }
    return journal;
}

void run_pause(uint64_t *waited)
{
    if (*waited == 0) {
        *waited = clock_monotonic_us();
    }
    if (clock_monotonic_us() - *waited > WAIT_US_MAX) {
        fail_msg("waited in vain");
    }
    give_way();
}

void run_reserve(struct journal_writer *writer, size_t bytes)
{
    RUN_WAIT_FOR(journal_reserve(writer, bytes));
}

/* `bytes` of payload, zeroes up to the next word. */
static void make_payload(uint64_t *words, uint8_t w, uint64_t number, uint64_t life, size_t bytes)
{
    size_t count = (bytes + 7) / 8;
    words[0] = number | (uint64_t)bytes << 48;
    words[1] = life;
    for (size_t i = 2; i < count; i++) {
        words[i] = hash_u64(number * 0x9e3779b97f4a7c15u + life * 1024 + w + i);
    }
    memset((char *)words + bytes, 0, count * 8 - bytes);
}

uint64_t run_put(struct journal_writer *writer, uint8_t w, uint64_t number, uint64_t life,
                 size_t bytes)
{
    uint64_t words[PAYLOAD_WORDS];
    make_payload(words, w, number, life, bytes);
    return journal_put(writer, RUN_TYPE, w, (uint8_t)number, words, (bytes + 7) / 8 * 8);
}

bool run_write(struct journal_writer *writer, uint8_t w, uint64_t number, uint64_t life,
               size_t bytes)
{
    run_reserve(writer, bytes + 2 * JOURNAL_HEADER_BYTES);
    run_put(writer, w, number, life, bytes);
    return journal_commit(writer);
}

void run_die_at(void *context, enum vfs_sim_op op, const char *path)
{
    struct run_doom *doom = context;
    (void)op;
    (void)path;
    bool now = ++doom->calls == doom->at;
    if (now && doom->cut_seed == 0) {
        vfs_sim_kill(doom->sim);
    } else if (now) {
        vfs_sim_power_cut(doom->sim, doom->cut_seed);
    }
}

/* ---- a listener ---- */

#define TOLD_WITHIN_S 60 /* then the test fails */

static void note(struct run_listener *listener, uint64_t *times)
{
    pthread_mutex_lock(&listener->lock);
    (*times)++;
    pthread_cond_broadcast(&listener->told);
    pthread_mutex_unlock(&listener->lock);
}

static void note_moved(void *context)
{
    struct run_listener *listener = context;
    note(listener, &listener->moved);
}

static void note_room(void *context)
{
    struct run_listener *listener = context;
    note(listener, &listener->room);
}

void run_listen(struct run_listener *listener, struct journal *journal)
{
    *listener = (struct run_listener){.listener = {note_moved, note_room, listener}};
    pthread_mutex_init(&listener->lock, NULL);
    pthread_cond_init(&listener->told, NULL);
    journal_listen(journal, &listener->listener);
}

/* Under its lock: until it is told of anything. */
static void await_told(struct run_listener *listener)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TOLD_WITHIN_S;
    CHECK(pthread_cond_timedwait(&listener->told, &listener->lock, &until) == 0);
}

bool run_wait_moved(struct run_listener *listener, struct journal *journal, bool durable,
                    uint64_t lsn)
{
    bool reached = false;
    pthread_mutex_lock(&listener->lock);
    for (;;) {
        bool failed = journal_failed(journal);
        reached = (durable ? journal_durable(journal) : journal_written(journal)) >= lsn;
        if (reached || failed) {
            break;
        }
        await_told(listener);
    }
    pthread_mutex_unlock(&listener->lock);
    return reached;
}

uint64_t run_room_told(struct run_listener *listener)
{
    pthread_mutex_lock(&listener->lock);
    uint64_t times = listener->room;
    pthread_mutex_unlock(&listener->lock);
    return times;
}

void run_wait_room(struct run_listener *listener, uint64_t times)
{
    pthread_mutex_lock(&listener->lock);
    while (listener->room < times) {
        await_told(listener);
    }
    pthread_mutex_unlock(&listener->lock);
}

/* ---- a scan ---- */

static bool check_record(void *context, const struct journal_record *record)
{
    struct recovered *recovered = context;
    uint64_t words[PAYLOAD_WORDS];
    uint64_t number;
    uint64_t life;
    assert_int_equal(record->type, RUN_TYPE);
    assert_true(record->a < RUN_WRITERS);
    assert_true(record->bytes >= RUN_PAYLOAD_MIN && record->bytes <= JOURNAL_PAYLOAD_MAX);
    assert_int_equal((uintptr_t)record->payload % 8, 0);
    memcpy(&number, record->payload, 8);
    memcpy(&life, (const char *)record->payload + 8, 8);
    size_t bytes = number >> 48;
    number &= ~0ull >> 16;
    assert_int_equal(number, recovered->count[record->a] + 1);
    assert_int_equal(record->b, (uint8_t)number);
    assert_true(life >= recovered->life);
    assert_int_equal((bytes + 7) / 8 * 8, record->bytes);
    make_payload(words, record->a, number, life, bytes);
    assert_memory_equal(words, record->payload, record->bytes);
    recovered->count[record->a] = number;
    recovered->life = life;
    return true;
}

void run_scan(struct vfs *vfs, uint64_t from, struct recovered *recovered)
{
    recovered->scan.from = from;
    recovered->end = journal_scan(vfs, RUN_DIRECTORY, &recovered->scan, check_record, recovered);
}

unsigned run_check_seals(struct vfs *vfs)
{
    struct journal_chain chain;
    char error[JOURNAL_ERROR_MAX];
    unsigned sealed = 0;
    assert_true(journal_chain_init(&chain, vfs, RUN_DIRECTORY, error));
    for (size_t i = 0; i < chain.live_count; i++) {
        const struct journal_found *live = chain.live[i];
        if (live->mark.sealed) {
            assert_int_equal(live->mark.durable, live->end);
            assert_int_equal(live->mark.written, live->end);
            sealed++;
        }
    }
    journal_chain_fini(&chain);
    return sealed;
}

void run_world_begin(struct run_world *world, uint64_t seed, enum journal_sync sync)
{
    *world = (struct run_world){.sim = vfs_sim_create(seed)};
    vfs_sim_set_clock(world->sim, 0);
    world->vfs = vfs_sim_vfs(world->sim);
    world->config = run_config(world->vfs, sync);
    run_make_directory(world->vfs);
    world->journal = run_open(&world->config, NULL);
    journal_writer_init(&world->writer, world->journal);
}

void run_world_end(struct run_world *world, bool kill)
{
    if (kill) {
        vfs_sim_kill(world->sim);
    }
    journal_writer_fini(&world->writer);
    journal_close(world->journal);
    world->vfs = world->config.vfs = vfs_sim_vfs(world->sim);
}

struct recovered run_world_scan(struct run_world *world)
{
    struct recovered recovered = {0};
    run_scan(world->vfs, 0, &recovered);
    return recovered;
}
