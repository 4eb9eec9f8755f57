/*
 * test_pair.c: histories of a leader and its follower, seed after seed (pair.h). A failing seed is
 * named, and does the same again: ROLLCALL_TEST_SEED=n runs it first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/log.h"
#include "tests/sim/pair.h"
#include "tests/sim/wires.h"
#include "tests/support/give_way.h"

#define SEEDS       24u
#define SEEDS_LONG  1000u /* of check-long */
#define ACTIONS_MAX 60u
#define BURST_MAX   400u
#define TURNS_MAX   120u
#define TURN_MAX    200000u /* bytes until one is turned */
#define ARM_WITHIN  400u

/* ---- what happens ---- */

static void work(struct pair *pair)
{
    for (unsigned i = 0; i < PAIR_NODES; i++) {
        struct pair_node *node = &pair->nodes[i];

        if (node->up && node->sim.leads && !node->sim.ended) {
            workers_do(&node->sim, 1 + (unsigned)test_random_below(&pair->random, BURST_MAX));
        }
    }
}

static struct pair_node *any_up(struct pair *pair)
{
    struct pair_node *node = &pair->nodes[test_random_below(&pair->random, PAIR_NODES)];

    return node->up && !node->sim.ended ? node : NULL;
}

static void store(struct pair *pair)
{
    struct pair_node *node = any_up(pair);

    if (node != NULL && test_random_once_in(&pair->random, 2)) {
        sim_meet(&node->sim); /* what is trimmed is known */
        sim_checkpoint(&node->sim);
    } else if (node != NULL) {
        sim_sync(&node->sim);
    }
}

static void change_weather(struct pair *pair)
{
    struct wires_weather *weather = wires_weather();

    switch (test_random_below(&pair->random, 6)) {
    case 0:
        wires_cut(&pair->random, false);
        break;
    case 1:
        wires_cut(&pair->random, true);
        break;
    case 2:
        weather->holds[test_random_below(&pair->random, 2)] = true;
        break;
    case 3:
        weather->turn_in = 1 + test_random_below(&pair->random, TURN_MAX);
        break;
    case 4:
        pair->parted = !pair->parted;
        break;
    default:
        wires_flow();
        break;
    }
}

static void end_one(struct pair *pair)
{
    struct pair_node *node = any_up(pair);
    bool cut = test_random_once_in(&pair->random, 2);

    if (node == NULL) {
        return;
    }
    switch (test_random_below(&pair->random, 5)) {
    case 0:
    case 1:
        sim_arm(&node->sim, SIM_POINT_ANY, ARM_WITHIN, cut);
        break;
    case 2:
    case 3:
        pair_crash(node, cut);
        break;
    default:
        pair_stop(node, true); /* by a signal */
        break;
    }
}

/* A leader whose time is over. */
static void end_old(struct pair *pair, struct pair_node *old)
{
    if (test_random_once_in(&pair->random, 2)) {
        pair_stop(old, test_random_once_in(&pair->random, 2));
    } else {
        pair_crash(old, test_random_once_in(&pair->random, 2));
    }
}

/*
 * With ack: replica the old leader may still be up, and go on: nothing it takes is acknowledged.
 * Without, an operator has stopped it first.
 */
static void promote(struct pair *pair)
{
    struct pair_node *old = pair_leader(pair), *new = pair_follower(pair);

    if (!new->up || new->sim.ended || new->again || !new->follows || !new->in_sync ||
        (old->up && old->sim.ended)) {
        return;
    }
    bool zombie = old->up && pair->acks && test_random_once_in(&pair->random, 2);

    if (old->up && !zombie) {
        end_old(pair, old);
    }

    bool promoted = pair_promote(pair);
    pair->figures.zombies += promoted && zombie;
}

/* An old leader that is still up ends one day, and follows. */
static void restart(struct pair *pair)
{
    for (unsigned i = 0; i < PAIR_NODES; i++) {
        struct pair_node *node = &pair->nodes[i];
        bool old = node->up && node->sim.leads && node != pair_leader(pair);

        if (old && test_random_once_in(&pair->random, 3)) {
            end_old(pair, node);
        }
        if (!node->up && test_random_once_in(&pair->random, 3)) {
            pair_bring_up(node);
        }
    }
}

static void act(struct pair *pair)
{
    uint64_t what = test_random_below(&pair->random, 100);

    if (what < 40) {
        work(pair);
    } else if (what < 52) {
        store(pair);
    } else if (what < 68) {
        change_weather(pair);
    } else if (what < 76) {
        end_one(pair);
    } else if (what < 82) {
        promote(pair);
    } else if (what < 88) {
        pair_compare(pair);
    }
    pair_tend(pair);
    pair_run(pair, (unsigned)test_random_below(&pair->random, TURNS_MAX));
    pair_tend(pair);
    restart(pair);
}

/* ---- seeds ---- */

static void run_seed(uint64_t seed, struct pair_figures *sum)
{
    static struct pair pair;
    const uint64_t *figure = (const uint64_t *)&pair.figures;

    pair_init(&pair, seed);
    for (uint64_t i = test_random_below(&pair.random, ACTIONS_MAX) + 1; i > 0; i--) {
        act(&pair);
    }
    pair_judge(&pair);
    pair_fini(&pair);
    for (size_t i = 0; i < sizeof(pair.figures) / sizeof(*figure); i++) {
        ((uint64_t *)sum)[i] += figure[i];
    }
    if (getenv("ROLLCALL_SIM_TRACE") != NULL) {
        printf("seed %llu: %llu turns, %llu promotions, end %llu\n", (unsigned long long)seed,
               (unsigned long long)pair.figures.steps, (unsigned long long)pair.figures.promotions,
               (unsigned long long)pair.promised);
    }
}

static void print(const struct pair_figures *f)
{
    printf("%llu turns, %llu connections, %llu comparisons, %llu bytes turned\n",
           (unsigned long long)f->steps, (unsigned long long)f->links,
           (unsigned long long)f->compared, (unsigned long long)f->turned);
    printf("%llu ends, %llu stops, %llu promotions (%llu refused, %llu beside the old leader), "
           "%llu copies, "
           "%llu rewinds, %llu times acknowledged, %llu times lost by both\n",
           (unsigned long long)f->crashes, (unsigned long long)f->stops,
           (unsigned long long)f->promotions, (unsigned long long)f->refused,
           (unsigned long long)f->zombies, (unsigned long long)f->copies,
           (unsigned long long)f->rewinds, (unsigned long long)f->promised,
           (unsigned long long)f->lost);
}

static void test_seeds(void **state)
{
    struct pair_figures sum = {0};
    uint64_t first = test_seed();
    uint64_t seeds = sim_seeds_wanted(SEEDS, SEEDS_LONG);

    (void)state;
    log_setup("test", LOG_LEVEL_ERROR);
    for (uint64_t i = 0; i < seeds; i++) {
        run_seed(first + i, &sum);
    }
    print(&sum);
    if (seeds >= SEEDS) { /* else by luck one of them may be none */
        assert_true(sum.promotions > 0 && sum.zombies > 0 && sum.copies > 0 && sum.rewinds > 0 &&
                    sum.turned > 0 && sum.promised > 0 && sum.compared > 0);
    }
}

int main(void)
{
    give_way_on_one_processor();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seeds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
