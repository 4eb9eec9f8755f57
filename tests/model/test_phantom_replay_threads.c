/*
 * Threads change a phantom space while a checkpoint after the other is taken of it; what is made
 * again of the last one and the journal is the same.
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

#include "row/row.h"
#include "row/row_data.h"
#include "tests/model/phantom_history.h"
#include "tests/support/checkpoints.h"
#include "tests/support/phantom_threads.h"
#include "tests/support/vfs_sim.h"

#define DIRECTORY "data"
#define THREADS   3u
#define OPS       120000u /* a thread */
#define MEMBERS   10u     /* of an id, by each thread */
#define TABLES    5u
#define BACK      2000u /* ids that are looked back at */
#define WRONG     0.01
#define STRAY     (1ull << 40)
#define STEP      1000u /* ids by which one thread is ahead of another */
#define ROUNDS    2u
#define BATCH     50u

struct writer {
    struct phantom_turn turn;
    struct recorder_sink sink;
    pthread_t thread;
    pthread_barrier_t *in_step;
    _Atomic bool *enough; /* no further checkpoint: the rest is for the journal */
    unsigned number;
    uint64_t seed, ops;
    size_t count;
    struct phantom_pair *pairs;
};

static void run(struct writer *writer, enum engine_verb verb, const struct phantom_pair *pair)
{
    char member[32];
    snprintf(member, sizeof(member), "m%llu", (unsigned long long)pair->member);
    (void)phantom_turn_run(&writer->turn, verb, pair->id, member);
}

/* Ids rise; late ones, strays, deletes and adds again. Its members are its own. */
static void *write_on(void *context)
{
    struct writer *writer = context;
    struct test_random random = {writer->seed};
    for (uint64_t i = 0; i < writer->ops; i++) {
        if (i % STEP == 0) {
            pthread_barrier_wait(writer->in_step);
        }
        if (i == writer->ops - writer->ops / 4) {
            atomic_store(writer->enough, true);
        }
        struct phantom_pair pair = {i / MEMBERS, i * THREADS + writer->number};
        uint64_t back = pair.id < BACK ? pair.id : BACK;
        if (test_random_once_in(&random, 4)) {
            pair.id -= test_random_below(&random, back + 1);
        } else if (test_random_once_in(&random, 300)) {
            pair.id = STRAY + test_random_below(&random, STRAY);
        }
        writer->pairs[writer->count++] = pair;
        run(writer, ENGINE_ADD, &pair);
        if (test_random_once_in(&random, 3)) {
            size_t from = writer->count > BACK ? writer->count - BACK : 0;
            pair = writer->pairs[from + test_random_below(&random, writer->count - from)];
            run(writer, test_random_once_in(&random, 3) ? ENGINE_ADD : ENGINE_DELETE, &pair);
        }
    }
    return NULL;
}

struct scene {
    struct phantom_keeper keeper;
    struct recorder recorder;
    struct vfs_sim *sim;
    struct checkpoints checkpoints;
    pthread_barrier_t in_step;
    struct writer writers[THREADS];
    _Atomic bool enough;
};

static void take_checkpoint(struct scene *scene, struct barrier_member *member)
{
    static const _Atomic bool never = false;
    struct checkpoints *checkpoints = &scene->checkpoints;
    struct engine *engine = scene->keeper.engine;
    struct barrier *barrier = scene->keeper.barrier;
    barrier_stop(barrier);
    checkpoints_begin(checkpoints, engine, scene->recorder.head);
    while (checkpoints_next(checkpoints, engine, scene->recorder.head)) {
        barrier_go(barrier);
        enum engine_image result = checkpoints_write(checkpoints, engine, member, &never);
        barrier_stop(barrier);
        checkpoints_wrote(checkpoints, engine, result);
    }
    barrier_go(barrier);
}

static void *take_checkpoints(void *context)
{
    struct scene *scene = context;
    struct barrier_member *member = barrier_join(scene->keeper.barrier);
    while (!atomic_load(&scene->enough)) {
        take_checkpoint(scene, member);
    }
    barrier_resign(member);
    return NULL;
}

static void start_writers(struct scene *scene, uint64_t seed)
{
    pthread_barrier_init(&scene->in_step, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        struct writer *writer = &scene->writers[i];
        *writer = (struct writer){.in_step = &scene->in_step,
                                  .enough = &scene->enough,
                                  .number = i,
                                  .seed = seed + i,
                                  .ops = test_scaled(OPS)};
        writer->pairs = calloc(writer->ops, sizeof(*writer->pairs));
        assert_non_null(writer->pairs);
        recorder_sink_init(&writer->sink, &scene->recorder);
        phantom_turn_init(&writer->turn, &scene->keeper, &writer->sink.sink);
        assert_int_equal(pthread_create(&writer->thread, NULL, write_on, writer), 0);
    }
}

/* All pairs the writers used, as one history. */
static struct phantom_history end_writers(struct scene *scene)
{
    struct phantom_history history = {.pairs = NULL};
    for (unsigned i = 0; i < THREADS; i++) {
        struct writer *writer = &scene->writers[i];
        pthread_join(writer->thread, NULL);
        phantom_turn_fini(&writer->turn);
        history.room = history.count + writer->count;
        history.pairs = realloc(history.pairs, history.room * sizeof(*history.pairs));
        assert_non_null(history.pairs);
        memcpy(history.pairs + history.count, writer->pairs,
               writer->count * sizeof(*writer->pairs));
        history.count += writer->count;
        free(writer->pairs);
    }
    pthread_barrier_destroy(&scene->in_step);
    return history;
}

static void compare(struct scene *scene, const struct phantom_history *history,
                    struct checkpoints *checkpoints, const struct phantom_config *config)
{
    struct engine *again = phantoms_create(config);
    bool fresh;
    if (!checkpoints_restore(checkpoints, again, &scene->recorder, BATCH, &fresh)) {
        fail_msg("%s", checkpoints->error);
    }
    assert_false(fresh);
    phantom_history_contents(history, scene->keeper.engine, again);
    phantoms_destroy(again);
}

static void run_scene(struct scene *scene, const struct phantom_config *config, uint64_t seed)
{
    pthread_t checkpointer;
    struct checkpoints none;
    struct engine *engine = phantoms_create(config);
    memset(scene, 0, sizeof(*scene));
    recorder_init(&scene->recorder);
    scene->sim = vfs_sim_create(seed);
    struct vfs *vfs = vfs_sim_vfs(scene->sim);
    assert_int_equal(vfs->functions->mkdir(vfs, DIRECTORY), 0);
    checkpoints_init(&scene->checkpoints, vfs, DIRECTORY);
    checkpoints_init(&none, vfs, DIRECTORY);
    row_set_log(engine->row, &scene->recorder.log);
    row_log_begin(engine->row);
    phantom_keeper_start(&scene->keeper, engine);
    start_writers(scene, seed);
    assert_int_equal(pthread_create(&checkpointer, NULL, take_checkpoints, scene), 0);
    struct phantom_history history = end_writers(scene);
    pthread_join(checkpointer, NULL);
    phantom_keeper_end(&scene->keeper);
    printf("%zu records, %llu images, %llu abandoned, %u tables\n", scene->recorder.count,
           (unsigned long long)scene->checkpoints.images,
           (unsigned long long)scene->checkpoints.gone, phantoms_tables(engine));
    compare(scene, &history, &scene->checkpoints, config);
    compare(scene, &history, &none, config);
    phantoms_destroy(engine);
    free(history.pairs);
    recorder_fini(&scene->recorder);
    vfs_sim_destroy(scene->sim);
}

static void test_checkpoints_under_writers(void **unused)
{
    (void)unused;
    static struct scene scene;
    uint64_t seed = test_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct phantom_config config = phantoms_config(true);
        config.row.tables = TABLES;
        config.row.recycle = round % 2 == 0;
        config.false_positives = WRONG;
        config.row.table_bytes <<= round; /* some pieces of pages */
        run_scene(&scene, &config, seed + round);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_checkpoints_under_writers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
