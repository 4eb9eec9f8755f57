/*
 * sim_cold.c: tables that leave memory, in a simulation: whoever waits for a page waits until the
 * thread that reads it has come back, so that one seed does the same again.
 */
#include "counter/counter_private.h"
#include "data/data_private.h"
#include "phantom/phantom_private.h"
#include "row/row_data.h"
#include "store/cold_private.h"
#include "tests/sim/sim.h"
#include "tests/support/give_way.h"

#define RUNS_MAX 100u /* of one operation that waits for pages */

/* ---- one operation ---- */

static void wake(void *target, uint64_t serial)
{
    struct sim *sim = target;

    if (serial == sim->ticket) {
        sim->woken++;
    }
}

/* Not by cold_stats(): with each of its parts the cache would take longer than the operation. */
static uint64_t misses_of(struct cold *cold)
{
    uint64_t misses = 0;

    if (cold != NULL) {
        pthread_mutex_lock(&cold->lock);
        misses = cold->stats.misses;
        pthread_mutex_unlock(&cold->lock);
    }
    return misses;
}

static void run(struct engine *engine, struct engine_op *op, struct change_sink *sink)
{
    op->value_length = 0;
    engine->functions->prepare(engine, &op, 1);
    if (op->verb == ENGINE_READ) {
        engine->functions->read(engine, &op, 1);
    } else {
        engine->functions->change(engine, op, sink);
    }
}

void sim_run(struct sim *sim, unsigned space, struct engine_op *op, struct change_sink *sink)
{
    struct cold *cold = data_cold(sim->data);
    const struct ticket ticket = {wake, sim, ++sim->ticket};
    bool reads = true;

    op->ticket = (struct ticket){wake, sim, sim->ticket};
    for (unsigned i = 0; i < RUNS_MAX && reads; i++) {
        uint64_t woken = sim->woken;
        uint64_t misses = misses_of(cold);

        run(sim_engine(sim, space), op, sink);
        reads = op->status == ENGINE_PENDING && misses_of(cold) != misses;
        while (reads && sim->woken == woken) {
            give_way();
        }
        sim->figures.cold_waits += reads;
    }
    if (cold != NULL) {
        cold_release(cold, &ticket);
    }
}

static bool reads_any(struct cold *cold)
{
    pthread_mutex_lock(&cold->lock);
    bool reads = cold->stats.depth > 0;

    pthread_mutex_unlock(&cold->lock);
    return reads;
}

void sim_cold_calm(struct sim *sim)
{
    struct cold *cold = sim->stage > SIM_RECOVERING ? data_cold(sim->data) : NULL;

    while (cold != NULL && !sim->ended && reads_any(cold)) {
        give_way();
    }
}

/* ---- where reads take place ---- */

static uint64_t cold_now_us(struct vfs *vfs)
{
    struct sim *sim = ((struct sim_cold_clock *)vfs)->sim;

    return ++sim->cold_clock.us;
}

/* The threads that read look at a clock of their own, which goes on: the disk's stands still. */
void sim_cold_open(struct sim *sim)
{
    struct sim_cold_clock *clock = &sim->cold_clock;

    clock->functions = *vfs_sim_vfs(sim->disk)->functions;
    clock->functions.now_us = cold_now_us;
    clock->vfs.functions = &clock->functions;
    clock->sim = sim;
    sim->data->cold_config.vfs = &clock->vfs;
}

void sim_cold_count(struct sim *sim)
{
    const struct data *data = sim->data;
    struct cold_stats stats = {0};

    if (data_cold(data) != NULL) {
        cold_stats(data_cold(data), &stats);
    }
    sim->figures.cold_reads += stats.reads;
    sim->figures.dumps += data->figures.dumps;
    sim->figures.merges += data->figures.merges;
}

/* ---- when ---- */

static bool has_states(struct data *data)
{
    bool all = true;

    for (size_t i = 0; i < data->manifest->spaces_count; i++) {
        all = all && manifest_find_data(&data->manifest->spaces[i], DATA_LABEL_STATE) != NULL;
    }
    return all;
}

/* As the thread of checkpoints decides it. */
static bool wants_images(const struct sim *sim)
{
    bool wanted = false;

    if (sim->ended || sim->stage != SIM_RUNNING || data_cold(sim->data) == NULL) {
        return false;
    }
    for (unsigned i = 0; i < SIM_SPACES && !wanted; i++) {
        const struct engine *engine = sim_engine(sim, i);

        wanted = row_images_wanted(engine->row);
    }
    return wanted;
}

bool sim_wants_dump(struct sim *sim)
{
    return wants_images(sim) && has_states(sim->data);
}

bool sim_wants_checkpoint(struct sim *sim)
{
    return wants_images(sim) && !has_states(sim->data);
}

/* ---- rows ---- */

static const struct row *row_of(const struct sim *sim, unsigned space)
{
    struct engine *engine = sim_engine(sim, space);

    return sim->settings.spaces[space].kind == SPACE_COUNTER ? &((struct counter *)engine)->row
                                                             : &((struct phantom *)engine)->row;
}

void sim_check_rows(const struct sim *sim)
{
    for (unsigned i = 0; i < SIM_SPACES; i++) {
        row_check(row_of(sim, i));
    }
}
