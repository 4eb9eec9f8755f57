/*
 * Threads ask and change a phantom space whose tables leave memory, while rounds of images are
 * taken of it: dumps under writers, cold tables read and added to by several, merges. What each
 * thread knows of its own members is true at any time, and what is made again of the last round and
 * the journal gives the same answers.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "phantom/phantom_private.h"
#include "row/row_data.h"
#include "store/cold.h"
#include "tests/support/phantom_dumps.h"
#include "tests/support/phantom_threads.h"
#include "tests/support/random.h"
#include "tests/support/vfs_sim.h"

#define DIRECTORY "data"
#define THREADS   3u
#define OPS       40000u /* a thread */
#define MEMBERS   25u    /* of an id, by each thread */
#define TABLES    3u
#define BACK      500u /* ids that are looked back at */
#define WRONG     0.00001
#define CACHE     (64u << 10)
#define OVERLAYS  (512u * PHANTOM_OVERLAY_LINE_BYTES)
#define STEP      500u /* ids by which one thread is ahead of another */
#define BATCH     50u

struct member {
    uint64_t id, number;
    bool there;
};

struct writer {
    struct scene *scene;
    struct recorder_sink sink;
    struct barrier_member *barrier;
    sem_t woken;
    pthread_t thread;
    unsigned number;
    uint64_t seed, count;
    struct member *members;
    uint64_t busy, dead;
};

struct scene {
    struct phantom_keeper keeper;
    struct recorder recorder;
    struct vfs_sim *sim;
    struct phantom_dumps dumps;
    pthread_barrier_t in_step;
    struct writer writers[THREADS];
    sem_t wanted; /* a round is */
    _Atomic bool ended;
};

static void wake(void *target, uint64_t serial)
{
    (void)serial;
    sem_post(target);
}

/* As a worker does: the whole request again, once it was woken. */
static struct engine_op run(struct writer *writer, enum engine_verb verb,
                            const struct member *member)
{
    char text[32];
    struct phantoms_call call;
    struct engine *engine = writer->scene->keeper.engine;
    struct ticket ticket = {wake, &writer->woken, 0};
    snprintf(text, sizeof(text), "m%llu", (unsigned long long)member->number);
    enum engine_status status;
    do {
        phantoms_call_init(&call, verb, member->id, text, "1");
        call.op.ticket = (struct ticket){wake, &writer->woken, 0};
        barrier_enter(writer->barrier);
        status = phantoms_try(engine, &call, &writer->sink.sink);
        barrier_leave(writer->barrier);
        if (status == ENGINE_PENDING) {
            sem_wait(&writer->woken);
        }
    } while (status == ENGINE_PENDING);
    cold_release(writer->scene->dumps.cold.cold, &ticket);
    CHECK(call.op.error != ENGINE_E_READ_FAILED);
    writer->busy += call.op.error == ENGINE_E_BUSY;
    call.op.member = call.op.text = call.op.value = NULL;
    return call.op;
}

static void change(struct writer *writer, struct member *member, bool add)
{
    struct engine_op op = run(writer, add ? ENGINE_SET : ENGINE_DELETE, member);
    if (op.status == ENGINE_DONE) {
        member->there = add;
    }
    writer->dead += op.status == ENGINE_ERROR;
}

static void ask(struct writer *writer, const struct member *member)
{
    struct engine_op op = run(writer, ENGINE_READ, member);
    CHECK(op.status == ENGINE_DONE || op.status == ENGINE_ABSENT || op.error == ENGINE_E_BUSY);
    CHECK(!member->there || op.status != ENGINE_ABSENT); /* never a wrong no */
}

/* Ids rise; late ones of tables that left, deletes and adds again. Its members are its own. */
static void *write_on(void *context)
{
    struct writer *writer = context;
    struct test_random random = {writer->seed};
    uint64_t ops = test_scaled(OPS);
    for (uint64_t i = 0; i < ops; i++) {
        if (i % STEP == 0) {
            pthread_barrier_wait(&writer->scene->in_step);
        }
        struct member *member = &writer->members[writer->count++];
        uint64_t id = i / MEMBERS;
        uint64_t back = id < BACK ? id : BACK;
        *member = (struct member){.id = id, .number = i * THREADS + writer->number};
        if (test_random_once_in(&random, 5)) {
            member->id -= test_random_below(&random, back + 1);
        }
        change(writer, member, true);
        if (test_random_once_in(&random, 3)) {
            member = &writer->members[test_random_below(&random, writer->count)];
            ask(writer, member);
            change(writer, member, test_random_once_in(&random, 2));
            ask(writer, member);
        }
    }
    return NULL;
}

/* ---- rounds ---- */

static void want_round(void *context)
{
    sem_post(context);
}

static void *take_rounds(void *context)
{
    struct scene *scene = context;
    struct engine *engine = scene->keeper.engine;
    while (!atomic_load(&scene->ended)) {
        (void)phantom_dumps_round(&scene->dumps, engine);
        if (!row_images_wanted(engine->row)) {
            sem_wait(&scene->wanted);
        }
    }
    return NULL;
}

/* ---- the scene ---- */

static void start_writers(struct scene *scene, uint64_t seed)
{
    pthread_barrier_init(&scene->in_step, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        struct writer *writer = &scene->writers[i];
        *writer = (struct writer){.scene = scene, .number = i, .seed = seed + i};
        writer->members = calloc(test_scaled(OPS), sizeof(*writer->members));
        writer->barrier = barrier_join(scene->keeper.barrier);
        assert_true(writer->members && writer->barrier);
        sem_init(&writer->woken, 0, 0);
        recorder_sink_init(&writer->sink, &scene->recorder);
        assert_int_equal(pthread_create(&writer->thread, NULL, write_on, writer), 0);
    }
}

static void begin(struct scene *scene, const struct phantom_config *config, uint64_t seed)
{
    memset(scene, 0, sizeof(*scene));
    recorder_init(&scene->recorder);
    scene->sim = vfs_sim_create(seed);
    struct vfs *vfs = vfs_sim_vfs(scene->sim);
    assert_int_equal(vfs->functions->mkdir(vfs, DIRECTORY), 0);
    phantom_dumps_init(&scene->dumps, vfs, DIRECTORY, &scene->recorder, CACHE, OVERLAYS);
    struct engine *engine = phantoms_create(config);
    sem_init(&scene->wanted, 0, 0);
    engine->imager = (struct engine_keeper){want_round, &scene->wanted};
    row_set_cold(engine->row, &scene->dumps.cold);
    row_set_log(engine->row, &scene->recorder.log);
    row_log_begin(engine->row);
    phantom_keeper_start(&scene->keeper, engine);
    scene->dumps.barrier = scene->keeper.barrier;
    scene->dumps.member = barrier_join(scene->keeper.barrier);
}

static void end_rounds(struct scene *scene, pthread_t rounds)
{
    atomic_store(&scene->ended, true);
    sem_post(&scene->wanted);
    pthread_join(rounds, NULL);
    barrier_resign(scene->dumps.member);
    scene->dumps.barrier = NULL;
    scene->dumps.member = NULL;
}

static bool holds(struct scene *scene, struct engine *engine, uint64_t id, uint64_t number)
{
    char text[32];
    struct phantoms_call call;
    snprintf(text, sizeof(text), "m%llu", (unsigned long long)number);
    phantoms_call_init(&call, ENGINE_READ, id, text, "1");
    enum engine_status status = phantom_dumps_run(&scene->dumps, engine, &call, change_sink_null());
    assert_true(status == ENGINE_DONE || status == ENGINE_ABSENT);
    return status == ENGINE_DONE;
}

static void compare(struct scene *scene, struct engine *again)
{
    struct engine *live = scene->keeper.engine;
    for (unsigned i = 0; i < THREADS; i++) {
        const struct writer *writer = &scene->writers[i];
        for (uint64_t j = 0; j < writer->count; j++) {
            const struct member *member = &writer->members[j];
            bool there = holds(scene, live, member->id, member->number);
            assert_true(there || !member->there);
            assert_true(holds(scene, again, member->id, member->number) == there);
        }
    }
    assert_int_equal(phantoms_members(live), phantoms_members(again));
}

static void end(struct scene *scene)
{
    for (unsigned i = 0; i < THREADS; i++) {
        free(scene->writers[i].members);
        sem_destroy(&scene->writers[i].woken);
    }
    phantoms_destroy(scene->keeper.engine);
    phantom_dumps_fini(&scene->dumps);
    recorder_fini(&scene->recorder);
    vfs_sim_destroy(scene->sim);
    sem_destroy(&scene->wanted);
    pthread_barrier_destroy(&scene->in_step);
}

static void tell(const struct scene *scene)
{
    uint64_t busy = 0, dead = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        busy += scene->writers[i].busy;
        dead += scene->writers[i].dead;
    }
    printf("%llu dumps, %llu overlays, %llu merges; %llu busy of %llu refused\n",
           (unsigned long long)scene->dumps.images[ROW_IMAGE_DUMP],
           (unsigned long long)scene->dumps.images[ROW_IMAGE_OVERLAY],
           (unsigned long long)scene->dumps.images[ROW_IMAGE_MERGE], (unsigned long long)busy,
           (unsigned long long)dead);
    assert_true(scene->dumps.images[ROW_IMAGE_DUMP] > 0 ||
                test_scaled(100) < 100); /* a short run may not get there */
}

static void test_threads(void **unused)
{
    (void)unused;
    static struct scene scene;
    pthread_t rounds;
    uint64_t seed = test_seed();
    struct phantom_config config = phantoms_config(true);
    config.row.tables = TABLES;
    config.row.dump = true;
    config.false_positives = WRONG;
    config.exceptions_bytes = 1u << 18;
    begin(&scene, &config, seed);
    start_writers(&scene, seed);
    assert_int_equal(pthread_create(&rounds, NULL, take_rounds, &scene), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(scene.writers[i].thread, NULL);
        barrier_resign(scene.writers[i].barrier);
    }
    end_rounds(&scene, rounds);
    phantom_keeper_end(&scene.keeper);
    tell(&scene);
    struct engine *again = phantoms_create(&config);
    row_set_cold(again->row, &scene.dumps.cold);
    if (!phantom_dumps_restore(&scene.dumps, again, BATCH)) {
        fail_msg("%s", scene.dumps.error);
    }
    compare(&scene, again);
    phantoms_destroy(again);
    end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
