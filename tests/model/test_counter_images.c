/*
 * test_counter_images.c: images of tables that threads change all the time, on a real disk. While
 * workers go on (and a keeper opens and recycles tables) checkpoints are taken; after each, with
 * the world stopped, an engine is made of its files and of what was recorded since, and must hold
 * what the first one holds.
 *
 * One space is a single table so full that records move all the time, the other rolls.
 */
#include "counter/counter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "row/row_data.h"
#include "tests/model/roll.h"
#include "tests/support/checkpoints.h"
#include "tests/support/give_way.h"
#include "tests/support/random.h"

#define WORKERS     3u
#define CHECKPOINTS 25u
#define OPS_MAX     8u /* of a request */
#define OPS_BETWEEN 3000u
#define NEXT_ONE_IN 10u /* so that a table lives longer than its image takes, as a rule */
#define NEWEST      600u
#define OLDEST      16000u
#define REPLAYED    100u /* changes a batch */
#define LARGE       (1ull << 50)

struct profile {
    const char *name;
    const char *slots;
    uint64_t indices; /* of a table for any ids; 0: they roll */
    uint64_t table_bytes;
    unsigned tables;
    uint64_t part_bytes; /* of any ids: of its largest part; 0: all it may have */
};

static const struct profile profiles[] = {
    {"any, full", "a:20 b:4 c:20 d:30", 60000, 512u << 10, 1, 0},
    {"any, wide", "a:64 b:64 c:64 d:64 e:20 f:3", 9000, 256u << 10, 1, 0},
    {"any, grows", "a:20 b:4 c:20 d:30", 60000, 1u << 20, 1, 64u << 10},
    {"rolling", "a:20 b:4 c:20", 0, 64u << 10, 5, 0},
};

struct shared {
    const struct profile *profile;
    struct roll roll;
    struct counter_config config;
    struct recorder recorder;
    struct checkpoints checkpoints;
    char directory[64];
    size_t slots;
    _Atomic uint64_t newest; /* index, where ids roll */
    _Atomic uint64_t done;   /* operations */
    _Atomic bool stop;
};

struct worker {
    pthread_t thread;
    struct shared *shared;
    struct roll_worker roll;
    struct recorder_sink sink;
    struct test_random random;
    struct counters_call calls[OPS_MAX];
    char texts[OPS_MAX][ENGINE_VALUE_MAX + 1];
};

/* ---- what workers do ---- */

static uint64_t id_of(const struct shared *s, uint64_t index)
{
    return s->profile->indices ? hash_u64(index) >> 40 : 5000 + index;
}

static uint64_t any_index(struct worker *w)
{
    struct shared *s = w->shared;
    if (s->profile->indices) {
        return test_random_below(&w->random, s->profile->indices);
    }
    bool next = test_random_once_in(&w->random, NEXT_ONE_IN);
    uint64_t newest = atomic_fetch_add(&s->newest, next) + 1;
    uint64_t back = test_random_once_in(&w->random, 3) ? OLDEST : NEWEST;
    return newest - test_random_below(&w->random, back < newest ? back : newest);
}

static void put_text(struct worker *w, int slot, char *text)
{
    size_t fields = slot == ENGINE_SLOT_RECORD ? w->shared->slots : 1;
    for (size_t i = 0; i < fields; i++) {
        uint64_t value = test_random_below(&w->random, 30);
        value += test_random_once_in(&w->random, 30) ? LARGE : 0;
        text += sprintf(text, i > 0 ? ",%" PRIu64 : "%" PRIu64, value);
    }
}

static void fill(struct worker *w, unsigned i)
{
    static const enum engine_verb verbs[] = {ENGINE_SET,  ENGINE_SET,    ENGINE_ADD,   ENGINE_INCR,
                                             ENGINE_INCR, ENGINE_DELETE, ENGINE_DELETE};
    enum engine_verb verb = verbs[test_random_below(&w->random, sizeof(verbs) / sizeof(*verbs))];
    int slot = ENGINE_SLOT_RECORD;
    if (test_random_once_in(&w->random, 2)) {
        slot = (int)test_random_below(&w->random, w->shared->slots);
    }
    put_text(w, slot, w->texts[i]);
    counters_call_init(&w->calls[i], verb, slot, id_of(w->shared, any_index(w)),
                       verb == ENGINE_DELETE ? NULL : w->texts[i]);
}

static void *work(void *context)
{
    struct worker *w = context;
    while (!w->shared->stop) {
        struct engine_op *ops[OPS_MAX];
        unsigned n = 1 + (unsigned)test_random_below(&w->random, OPS_MAX);
        for (unsigned i = 0; i < n; i++) {
            fill(w, i);
            ops[i] = &w->calls[i].op;
        }
        roll_run(&w->roll, ops, n);
        atomic_fetch_add(&w->shared->done, n);
    }
    return NULL;
}

/* ---- checkpoints ---- */

static void go_on_for(struct shared *s, uint64_t operations)
{
    uint64_t until = s->done + operations;
    while (s->done < until) {
        give_way();
    }
}

static void take_images(struct shared *s, struct barrier_member *member)
{
    struct engine *engine = s->roll.engine;
    const _Atomic bool stop = false;
    barrier_stop(s->roll.barrier);
    checkpoints_begin(&s->checkpoints, engine, s->recorder.head);
    bool more = checkpoints_next(&s->checkpoints, engine, s->recorder.head);
    barrier_go(s->roll.barrier);
    while (more) {
        enum engine_image result = checkpoints_write(&s->checkpoints, engine, member, &stop);
        assert_true(result == ENGINE_IMAGE_DONE || result == ENGINE_IMAGE_GONE);
        barrier_stop(s->roll.barrier);
        checkpoints_wrote(&s->checkpoints, engine, result);
        more = checkpoints_next(&s->checkpoints, engine, s->recorder.head);
        barrier_go(s->roll.barrier);
    }
}

static void compare_id(struct shared *s, struct engine *restored, uint64_t id)
{
    struct counters_call was, is;
    counters_do(s->roll.engine, &was, ENGINE_READ, ENGINE_SLOT_RECORD, id, NULL);
    counters_do(restored, &is, ENGINE_READ, ENGINE_SLOT_RECORD, id, NULL);
    if (was.op.status != is.op.status || was.op.miss != is.op.miss ||
        strcmp(was.value, is.value) != 0) {
        fail_msg("%s: id %" PRIu64 " was %d '%s', is %d '%s'", s->profile->name, id,
                 (int)was.op.status, was.value, (int)is.op.status, is.value);
    }
}

/* With the world stopped. */
static void compare(struct shared *s)
{
    bool fresh;
    struct engine *restored = counters_create(&s->config);
    if (!checkpoints_restore(&s->checkpoints, restored, &s->recorder, REPLAYED, &fresh)) {
        fail_msg("%s: %s", s->profile->name, s->checkpoints.error);
    }
    counter_check(s->roll.engine);
    counter_check(restored);
    uint64_t indices = s->profile->indices ? s->profile->indices : s->newest + 1;
    for (uint64_t i = 0; i < indices; i++) {
        compare_id(s, restored, id_of(s, i));
    }
    restored->functions->destroy(restored);
}

/* ---- run ---- */

static void start(struct shared *s, const struct profile *profile)
{
    memset(s, 0, sizeof(*s));
    s->profile = profile;
    counters_config(&s->config, profile->slots);
    s->config.row.any_ids = profile->indices > 0;
    s->config.row.table_bytes = profile->table_bytes;
    s->config.row.tables = profile->tables;
    s->config.row.part_bytes = profile->part_bytes;
    s->config.row.recycle = profile->tables > 1;
    s->config.aux_bytes = profile->table_bytes / 2;
    s->slots = s->config.slot_count;
    snprintf(s->directory, sizeof(s->directory), "images.XXXXXX");
    assert_non_null(mkdtemp(s->directory));
    recorder_init(&s->recorder);
    checkpoints_init(&s->checkpoints, vfs_real(), s->directory);
    roll_init_counter(&s->roll, &s->config, true);
    row_set_log(s->roll.engine->row, &s->recorder.log);
    row_log_begin(s->roll.engine->row);
}

static void finish(struct shared *s)
{
    for (size_t i = 0; i < s->checkpoints.last.count; i++) {
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", s->directory, s->checkpoints.last.files[i].name);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(s->directory), 0);
    roll_fini(&s->roll);
    recorder_fini(&s->recorder);
}

static void run_workers(struct shared *s, uint64_t seed)
{
    static struct worker workers[WORKERS];
    memset(workers, 0, sizeof(workers));
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i].shared = s;
        workers[i].random.state = seed + i;
        roll_worker_init(&workers[i].roll, &s->roll);
        recorder_sink_init(&workers[i].sink, &s->recorder);
        workers[i].roll.sink = &workers[i].sink.sink;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    struct barrier_member *member = barrier_join(s->roll.barrier);
    for (uint64_t i = test_scaled(CHECKPOINTS); i > 0; i--) {
        go_on_for(s, OPS_BETWEEN);
        take_images(s, member);
        go_on_for(s, i % 2 ? OPS_BETWEEN : 0);
        barrier_stop(s->roll.barrier);
        compare(s);
        barrier_go(s->roll.barrier);
    }
    s->stop = true;
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        roll_worker_fini(&workers[i].roll);
    }
    barrier_resign(member);
}

static void test_images(void **unused)
{
    static struct shared shared;
    (void)unused;
    uint64_t seed = test_seed();
    for (size_t i = 0; i < sizeof(profiles) / sizeof(*profiles); i++) {
        start(&shared, &profiles[i]);
        run_workers(&shared, seed + 100 * i);
        roll_settle(&shared.roll);
        compare(&shared);
        printf("%-10s %8" PRIu64 " operations, %4" PRIu64 " images, %3" PRIu64 " gone\n",
               shared.profile->name, shared.done, shared.checkpoints.images,
               shared.checkpoints.gone);
        finish(&shared);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
