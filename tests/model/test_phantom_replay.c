/*
 * Phantom spaces live at random while their journal is kept in memory and images of their tables
 * are written between the operations; then they are made again, from the beginning or from the
 * images, whole or cut off anywhere, and must be the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "row/row.h"
#include "tests/model/phantom_history.h"
#include "tests/support/checkpoints.h"
#include "tests/support/fake_barrier.h"
#include "tests/support/vfs_sim.h"

#define DIRECTORY     "data"
#define STEPS         400000u
#define CHECKPOINTS   3u
#define PIECE_STEPS   300u /* operations between two pieces of an image */
#define PIECES_MAX    60u  /* with such; then it is left in peace */
#define TABLES        6u
#define WRONG         0.05
#define BLURRED_BYTES (2u << 20)
#define BLURRED_WRONG 0.5
#define BLURRED_LATE  0.9
#define CUTS          6u
#define BATCH         64u
#define LIVES         8u
#define RESTARTS      4u

struct life {
    struct recorder recorder;
    struct vfs_sim *sim;
    struct checkpoints checkpoints;
    struct phantom_history history;
    unsigned pieces;
};

/* Tables that fill fast, and ones that often say yes to foreign pairs. */
static const double wrong[] = {0.00001, 0.01, 0.5};

static struct phantom_config config_of(struct test_random *random)
{
    struct phantom_config config = phantoms_config(!test_random_once_in(random, 4));
    config.row.tables = TABLES;
    config.false_positives = wrong[test_random_below(random, sizeof(wrong) / sizeof(wrong[0]))];
    config.row.recycle = test_random_once_in(random, 2);
    config.exceptions_bytes = test_random_once_in(random, 2) ? 0 : 1u << 18;
    config.row.late_room = test_random_once_in(random, 2) ? ROW_LATE_AUTO : 0.1;
    config.row.any_ids = test_random_once_in(random, 5);
    config.max_id = INT64_MAX;
    return config;
}

static void life_begin(struct life *life, const struct phantom_config *config, uint64_t seed)
{
    memset(life, 0, sizeof(*life));
    recorder_init(&life->recorder);
    life->sim = vfs_sim_create(seed);
    struct vfs *vfs = vfs_sim_vfs(life->sim);
    assert_int_equal(vfs->functions->mkdir(vfs, DIRECTORY), 0);
    checkpoints_init(&life->checkpoints, vfs, DIRECTORY);
    phantom_history_init(&life->history, phantoms_create(config), config, &life->recorder, seed);
    life->history.clears = true;
}

static void life_end(struct life *life)
{
    phantoms_destroy(life->history.engine);
    phantom_history_fini(&life->history);
    recorder_fini(&life->recorder);
    vfs_sim_destroy(life->sim);
}

/* ---- checkpoints ---- */

static void go_on_between(void *context)
{
    struct life *life = context;
    if (life->pieces++ < PIECES_MAX) {
        phantom_history_go_on(&life->history, PIECE_STEPS);
    }
}

/* Operations happen between all pieces of it. */
static void take_checkpoint(struct life *life)
{
    static const _Atomic bool never = false;
    struct engine *engine = life->history.engine;
    struct barrier_member member = {.left = go_on_between, .context = life};
    life->pieces = 0;
    checkpoints_begin(&life->checkpoints, engine, life->recorder.head);
    while (checkpoints_next(&life->checkpoints, engine, life->recorder.head)) {
        enum engine_image result = checkpoints_write(&life->checkpoints, engine, &member, &never);
        checkpoints_wrote(&life->checkpoints, engine, result);
        assert_true(result == ENGINE_IMAGE_DONE || result == ENGINE_IMAGE_GONE);
    }
}

/* ---- made again ---- */

/* A new engine of the first configuration, which says other things than the last by now. */
static struct engine *restore(struct life *life, struct checkpoints *checkpoints)
{
    struct phantom_config config = life->history.config;
    config.deletes = true;
    struct engine *engine = phantoms_create(&config);
    bool fresh;
    if (!checkpoints_restore(checkpoints, engine, &life->recorder, BATCH, &fresh)) {
        fail_msg("%s", checkpoints->error);
    }
    assert_false(fresh);
    return engine;
}

static struct engine *restore_from_beginning(struct life *life)
{
    struct checkpoints none;
    checkpoints_init(&none, vfs_sim_vfs(life->sim), DIRECTORY);
    return restore(life, &none);
}

static void compare_with_beginning(struct life *life)
{
    struct engine *again = restore_from_beginning(life);
    phantom_history_compare(&life->history, life->history.engine, again);
    phantoms_destroy(again);
}

static void compare_with_images(struct life *life)
{
    struct engine *again = restore(life, &life->checkpoints);
    phantom_history_compare(&life->history, life->history.engine, again);
    phantoms_destroy(again);
}

/* Cut off at the same place, both ways lead to the same. */
static void compare_cut(struct life *life, struct test_random *random)
{
    uint64_t least = life->checkpoints.last.m;
    for (unsigned i = 0; i < CUTS; i++) {
        uint64_t length = life->recorder.head - least;
        recorder_cut(&life->recorder,
                     life->recorder.head - test_random_below(random, length / 2 + 1));
        struct engine *whole = restore_from_beginning(life);
        struct engine *again = restore(life, &life->checkpoints);
        phantom_history_compare(&life->history, whole, again);
        phantoms_destroy(whole);
        phantoms_destroy(again);
    }
}

static void live(struct life *life, uint64_t steps)
{
    for (unsigned i = 0; i < CHECKPOINTS; i++) {
        phantom_history_go_on(&life->history, steps / (CHECKPOINTS + 1));
        take_checkpoint(life);
    }
    phantom_history_go_on(&life->history, steps / (CHECKPOINTS + 1));
}

/* What happened in all lives, so that nothing is left out unseen. */
struct happened {
    uint64_t events[CHANGE_EVENT_DROP + 1];
    uint64_t adds[CHANGE_BOTH + 1], deletes[CHANGE_BOTH + 1];
};

static void count_records(const struct recorder *recorder, struct happened *happened)
{
    for (size_t i = 0; i < recorder->count; i++) {
        const struct recorder_record *record = &recorder->records[i];
        struct change_record_event event;
        struct change change;
        if (change_record_decode(record->type, record->a, record->b, record->words, record->bytes,
                                 &change, &event) == CHANGE_RECORD_IS_EVENT) {
            happened->events[event.event]++;
        } else if (change.type == CHANGE_MEMBER_ADD) {
            happened->adds[change.place]++;
        } else {
            happened->deletes[change.place]++;
        }
    }
}

static void tell(const struct life *life)
{
    printf(
        "%zu records of %zu pairs, %llu foreign ones deleted; %llu images, %llu abandoned\n",
        life->recorder.count, life->history.count, (unsigned long long)life->history.false_deletes,
        (unsigned long long)life->checkpoints.images, (unsigned long long)life->checkpoints.gone);
}

static void tell_happened(const struct happened *h)
{
    static const char *const events[] = {"", "SPACE", "FIRST", "SETTLE", "OPEN", "LAYER", "DROP"};
    static const char *const places[] = {"there", "inside", "apart", "both"};
    for (unsigned i = CHANGE_EVENT_SPACE; i <= CHANGE_EVENT_DROP; i++) {
        printf("%s %llu, ", events[i], (unsigned long long)h->events[i]);
    }
    for (unsigned i = 0; i <= CHANGE_BOTH; i++) {
        printf("%s: added %llu, deleted %llu%s", places[i], (unsigned long long)h->adds[i],
               (unsigned long long)h->deletes[i], i < CHANGE_BOTH ? "; " : "\n");
    }
    assert_true(h->adds[CHANGE_INSIDE] > 0 && h->adds[CHANGE_APART] > 0);
    assert_true(h->adds[CHANGE_BOTH] == 0 && h->deletes[CHANGE_THERE] == 0);
}

static void test_lives(void **unused)
{
    (void)unused;
    static struct life life;
    uint64_t seed = test_seed();
    struct test_random random = {seed};
    struct happened happened = {0};
    for (unsigned i = 0; i < LIVES; i++) {
        struct phantom_config config = config_of(&random);
        life_begin(&life, &config, test_random_next(&random));
        live(&life, test_scaled(STEPS));
        tell(&life);
        count_records(&life.recorder, &happened);
        compare_with_beginning(&life);
        compare_with_images(&life);
        compare_cut(&life, &random);
        life_end(&life);
    }
    tell_happened(&happened);
}

/* Images in many pieces, with many answers that are wrong, and operations between all of them. */
static void test_blurred(void **unused)
{
    (void)unused;
    static struct life life;
    uint64_t seed = test_seed();
    struct test_random random = {seed};
    struct phantom_config config = config_of(&random);
    config.deletes = true;
    config.row.table_bytes = BLURRED_BYTES;
    config.false_positives = BLURRED_WRONG;
    config.row.late_room = BLURRED_LATE;
    life_begin(&life, &config, seed);
    live(&life, test_scaled(STEPS));
    tell(&life);
    compare_with_beginning(&life);
    compare_with_images(&life);
    compare_cut(&life, &random);
    life_end(&life);
}

/* What was made again lives on, is kept again, and so on. */
static void test_restarts(void **unused)
{
    (void)unused;
    static struct life life;
    uint64_t seed = test_seed();
    struct test_random random = {seed};
    struct phantom_config config = config_of(&random);
    life_begin(&life, &config, seed);
    for (unsigned i = 0; i < RESTARTS; i++) {
        phantom_history_go_on(&life.history, test_scaled(STEPS) / RESTARTS);
        if (i % 2 == 0) {
            take_checkpoint(&life);
        }
        struct engine *again = restore(&life, &life.checkpoints);
        phantom_history_compare(&life.history, life.history.engine, again);
        phantoms_destroy(life.history.engine);
        phantom_history_move(&life.history, again);
    }
    tell(&life);
    life_end(&life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lives),
        cmocka_unit_test(test_blurred),
        cmocka_unit_test(test_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
