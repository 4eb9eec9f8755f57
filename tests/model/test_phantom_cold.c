/*
 * Phantom spaces live at random while their tables leave memory: rounds are taken between the
 * operations and with operations between their pieces, some images fail, small overlays are merged
 * again and again. Then they are compared with ones that were made again, of the journal alone (all
 * in memory) and of the last round, whole or cut off anywhere: all answers are the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "phantom/phantom_private.h"
#include "row/row_data.h"
#include "row/row_private.h"
#include "tests/support/fake_barrier.h"
#include "tests/support/phantom_dumps.h"
#include "tests/support/random.h"
#include "tests/support/vfs_sim.h"

#define DIRECTORY        "data"
#define STEPS            120000u
#define ROUND_ONCE       6000u /* operations */
#define PIECE_STEPS      60u
#define PIECES_MAX       12u
#define FAIL_ONCE        6u
#define TABLES           4u
#define TWIN_TABLES      256u
#define CACHE            (256u << 10)
#define OVERLAYS         (512u * PHANTOM_OVERLAY_LINE_BYTES)
#define LIVES            4u
#define CUTS             3u
#define BATCH            64u
#define FOREIGN          4000u
#define FOREIGN_FROM     1000000000u
#define ADDS_AN_ID       150u
#define BACK             700u
#define STRETCHED_TABLES 8u
#define STRETCHED_AHEAD  300u /* ids */
#define STRAYS           120u
#define STRAYS_APART     5u

struct pair {
    uint64_t id, member;
};

struct life {
    struct recorder recorder;
    struct recorder_sink sink;
    struct vfs_sim *sim;
    struct phantom_dumps dumps;
    struct phantom_config config;
    struct engine *engine;
    struct test_random random;
    uint64_t top, adds;
    size_t count, room;
    struct pair *pairs;
    unsigned pieces;
    uint64_t busy, refused;
};

/* No table is free, or the filter has left memory and cannot grow. */
static bool may_refuse(const struct engine *engine, uint64_t id)
{
    const struct row *row = engine->row;
    const struct row_table *table = row_find(row, id);
    return row_regions_free(row) == 0 || table->cold || table->leaving;
}

static enum engine_status run(struct life *life, struct engine *engine, enum engine_verb verb,
                              const struct pair *pair)
{
    char member[32];
    struct phantoms_call call;
    snprintf(member, sizeof(member), "m%llu", (unsigned long long)pair->member);
    phantoms_call_init(&call, verb, pair->id, member, "1");
    enum engine_status status = phantom_dumps_run(&life->dumps, engine, &call, &life->sink.sink);
    if (status == ENGINE_ERROR) {
        life->busy += call.op.error == ENGINE_E_BUSY;
        life->refused += call.op.error != ENGINE_E_BUSY;
        assert_true(call.op.error != ENGINE_E_NO_TABLE_FREE || may_refuse(engine, pair->id));
        assert_int_not_equal(call.op.error, ENGINE_E_READ_FAILED);
    }
    return status;
}

static bool holds(struct life *life, struct engine *engine, const struct pair *pair)
{
    enum engine_status status = run(life, engine, ENGINE_READ, pair);
    assert_true(status == ENGINE_DONE || status == ENGINE_ABSENT);
    return status == ENGINE_DONE;
}

static uint64_t below(struct life *life, uint64_t bound)
{
    return test_random_below(&life->random, bound);
}

/* ---- living ---- */

static void add(struct life *life)
{
    life->top += life->adds++ % ADDS_AN_ID == 0;
    uint64_t back = life->top < BACK ? life->top : BACK;
    struct pair pair = {life->top - (below(life, 3) ? 0 : below(life, back + 1)), life->adds};
    if (life->count == life->room) {
        life->room = life->room ? 2 * life->room : 1024;
        life->pairs = realloc(life->pairs, life->room * sizeof(*life->pairs));
        assert_non_null(life->pairs);
    }
    life->pairs[life->count++] = pair;
    (void)run(life, life->engine, ENGINE_ADD, &pair);
}

/* What was done is plain to see, wherever the table is. */
static void change(struct life *life)
{
    if (life->count == 0) {
        return;
    }
    struct pair pair = life->pairs[below(life, life->count)];
    bool remove = below(life, 2);
    enum engine_status status = run(life, life->engine, remove ? ENGINE_DELETE : ENGINE_SET, &pair);
    if (status == ENGINE_DONE || (remove && status == ENGINE_ABSENT)) {
        assert_true(holds(life, life->engine, &pair) != remove);
    }
}

static void step(struct life *life)
{
    if (below(life, 4)) {
        add(life);
    } else {
        change(life);
    }
}

static void go_on_between(void *context)
{
    struct life *life = context;
    if (life->pieces++ < PIECES_MAX) {
        for (unsigned i = 0; i < PIECE_STEPS; i++) {
            step(life);
        }
    }
}

static void take_round(struct life *life)
{
    life->pieces = 0;
    for (unsigned kind = 0; kind < PHANTOM_DUMPS_KINDS; kind++) {
        life->dumps.fails[kind] = test_random_once_in(&life->random, FAIL_ONCE);
    }
    (void)phantom_dumps_round(&life->dumps, life->engine);
    row_maintain(life->engine->row, NULL);
    phantom_check(life->engine);
}

static void begin_engine(struct life *life)
{
    life->engine = phantoms_create(&life->config);
    row_set_cold(life->engine->row, &life->dumps.cold);
    row_set_log(life->engine->row, &life->recorder.log);
    row_log_begin(life->engine->row);
}

static void begin_with(struct life *life, uint64_t seed, unsigned tables)
{
    static struct barrier_member member;
    memset(life, 0, sizeof(*life));
    life->random = (struct test_random){seed};
    life->config = phantoms_config(true);
    life->config.row.tables = tables;
    life->config.row.dump = true;
    life->config.false_positives = below(life, 2) ? 0.00001 : 0.0001;
    life->config.exceptions_bytes = 1u << 17;
    life->config.row.late_room = below(life, 2) ? 0.3 : ROW_LATE_AUTO;
    recorder_init(&life->recorder);
    recorder_sink_init(&life->sink, &life->recorder);
    life->sim = vfs_sim_create(seed);
    struct vfs *vfs = vfs_sim_vfs(life->sim);
    assert_int_equal(vfs->functions->mkdir(vfs, DIRECTORY), 0);
    phantom_dumps_init(&life->dumps, vfs, DIRECTORY, &life->recorder, CACHE, OVERLAYS);
    member = (struct barrier_member){.left = go_on_between, .context = life};
    life->dumps.member = &member;
    begin_engine(life);
}

static void begin(struct life *life, uint64_t seed)
{
    begin_with(life, seed, TABLES);
}

static void end(struct life *life)
{
    phantoms_destroy(life->engine);
    phantom_dumps_fini(&life->dumps);
    free(life->pairs);
    recorder_fini(&life->recorder);
    vfs_sim_destroy(life->sim);
}

static void live(struct life *life, uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++) {
        step(life);
        if (test_random_once_in(&life->random, ROUND_ONCE)) {
            take_round(life);
        }
    }
}

/* ---- made again ---- */

static struct engine *restore(struct life *life)
{
    struct engine *engine = phantoms_create(&life->config);
    row_set_cold(engine->row, &life->dumps.cold);
    if (!phantom_dumps_restore(&life->dumps, engine, BATCH)) {
        fail_msg("%s", life->dumps.error);
    }
    phantom_check(engine);
    return engine;
}

static struct engine *twin(struct life *life)
{
    struct phantom_config config = life->config;
    char error[ENGINE_ERROR_MAX];
    config.row.dump = false;
    config.row.tables = TWIN_TABLES;
    struct engine *engine = phantoms_create(&config);
    assert_true(row_restore_begin(engine->row, NULL, 0, error));
    assert_true(recorder_replay(&life->recorder, engine, 0, 0, BATCH));
    assert_true(row_restore_end(engine->row));
    return engine;
}

struct shape {
    size_t count;
    struct shape_table {
        uint64_t serial, base, last, members, layer;
    } tables[TWIN_TABLES];
};

static void see_table(void *context, struct row_table *table, bool layer)
{
    struct shape *shape = context;
    assert_true(shape->count < TWIN_TABLES);
    shape->tables[shape->count++] =
        (struct shape_table){table->serial, table->base, table->last, table->count, layer};
}

/* All that follows from the journal; frontiers may differ: ids that found no place moved them. */
static void compare_tables(const struct engine *a, const struct engine *b)
{
    static struct shape shapes[2];
    memset(shapes, 0, sizeof(shapes));
    row_each(&((const struct phantom *)a)->row, see_table, &shapes[0]);
    row_each(&((const struct phantom *)b)->row, see_table, &shapes[1]);
    assert_int_equal(shapes[0].count, shapes[1].count);
    assert_memory_equal(shapes[0].tables, shapes[1].tables,
                        shapes[0].count * sizeof(shapes[0].tables[0]));
    assert_int_equal(phantoms_members(a), phantoms_members(b));
}

/*
 * Their tables first: with the reads their keepers work, and open what one has the memory for and
 * the other has to wait for.
 */
static void compare(struct life *life, struct engine *a, struct engine *b)
{
    compare_tables(a, b);
    for (size_t i = 0; i < life->count; i++) {
        if (holds(life, a, &life->pairs[i]) != holds(life, b, &life->pairs[i])) {
            fail_msg("m%llu of id %llu", (unsigned long long)life->pairs[i].member,
                     (unsigned long long)life->pairs[i].id);
        }
    }
    for (uint64_t i = 0; i < FOREIGN; i++) {
        struct pair pair = {below(life, life->top + 1), FOREIGN_FROM + i};
        assert_true(holds(life, a, &pair) == holds(life, b, &pair));
    }
    assert_int_equal(phantoms_members(a), phantoms_members(b));
}

/* Each time with another twin, as comparing goes on with it. */
static void compare_twin(struct life *life, struct engine *engine)
{
    struct engine *whole = twin(life);
    compare(life, engine, whole);
    phantoms_destroy(whole);
}

static void compare_restored(struct life *life)
{
    struct engine *again = restore(life);
    compare_twin(life, again);
    phantoms_destroy(again);
}

static void count_cold(void *context, struct row_table *table, bool layer)
{
    (void)layer;
    *(unsigned *)context += table->cold;
}

static void tell(const struct life *life)
{
    static const char *const kinds[] = {"table", "dump", "overlay", "merge"};
    unsigned cold = 0;
    row_each(&((const struct phantom *)life->engine)->row, count_cold, &cold);
    printf("%zu pairs, %u cold, %llu busy, %llu refused", life->count, cold,
           (unsigned long long)life->busy, (unsigned long long)life->refused);
    for (unsigned i = 0; i < PHANTOM_DUMPS_KINDS; i++) {
        printf(", %s %llu/%llu", kinds[i], (unsigned long long)life->dumps.images[i],
               (unsigned long long)life->dumps.gone[i]);
    }
    printf("\n");
}

static void test_lives(void **unused)
{
    (void)unused;
    static struct life life;
    uint64_t seed = test_seed();
    uint64_t dumps = 0;
    uint64_t merges = 0;
    for (unsigned i = 0; i < LIVES; i++) {
        begin(&life, seed + i);
        live(&life, test_scaled(STEPS));
        tell(&life);
        merges += life.dumps.images[ROW_IMAGE_MERGE];
        dumps += life.dumps.images[ROW_IMAGE_DUMP]; /* of one life the only one may have failed */
        assert_true(life.dumps.images[ROW_IMAGE_DUMP] + life.dumps.gone[ROW_IMAGE_DUMP] > 0 ||
                    test_scaled(100) < 100); /* a short run may not get there */
        compare_twin(&life, life.engine);
        compare_restored(&life);
        end(&life);
    }
    assert_true((dumps > 0 && merges > 0) || test_scaled(100) < 100);
}

/* Cut off at the same place, both ways lead to the same. */
static void test_cut(void **unused)
{
    (void)unused;
    static struct life life;
    uint64_t seed = test_seed();
    begin(&life, seed);
    live(&life, test_scaled(STEPS));
    phantom_dumps_cut_round(&life.dumps, life.engine, 3);
    for (unsigned i = 0; i < CUTS; i++) {
        uint64_t length = life.recorder.head - life.dumps.last.m;
        recorder_cut(&life.recorder, life.recorder.head - below(&life, length / 2 + 1));
        compare_restored(&life);
    }
    end(&life);
}

static void count_layers(void *context, struct row_table *table, bool layer)
{
    (void)layer;
    *(unsigned *)context += table->cold && table->layer > 1;
}

/*
 * Strays move the frontier of a table over more than it holds, before it is known how dense ids
 * are: it takes them in layers, and leaves memory with these.
 */
static void test_stretched(void **unused)
{
    (void)unused;
    static struct life life;
    unsigned layers = 0;
    begin_with(&life, test_seed(), STRETCHED_TABLES);
    live(&life, 2 * ROUND_ONCE);
    uint64_t far = life.top + STRETCHED_AHEAD;
    for (uint64_t i = 0; i < STRAYS; i++) {
        struct pair pair = {far + (i < 2 * ROW_CLUSTER ? i % 4 : i * STRAYS_APART), i};
        (void)run(&life, life.engine, ENGINE_ADD, &pair);
    }
    live(&life, test_scaled(2 * STEPS));
    row_each(life.engine->row, count_layers, &layers);
    tell(&life);
    assert_true(layers > 0 || test_scaled(100) < 100);
    compare_twin(&life, life.engine);
    compare_restored(&life);
    end(&life);
}

/* What was made again lives on, and leaves memory, and is made again. */
static void test_restarts(void **unused)
{
    (void)unused;
    static struct life life;
    uint64_t seed = test_seed();
    char error[PHANTOM_ERROR_MAX];
    begin(&life, seed);
    for (unsigned i = 0; i < LIVES; i++) {
        live(&life, test_scaled(STEPS) / LIVES);
        struct engine *again = restore(&life);
        compare(&life, life.engine, again);
        phantoms_destroy(life.engine);
        life.engine = again;
        row_set_log(again->row, &life.recorder.log);
        assert_true(life.recorder.log.reserve(&life.recorder.log));
        assert_true(phantom_reconfigure(again, &life.config, error));
    }
    compare_twin(&life, life.engine);
    tell(&life);
    end(&life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lives),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_stretched),
        cmocka_unit_test(test_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
