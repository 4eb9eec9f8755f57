/* cold_space.c: a phantom space whose tables leave memory. */
#include "tests/unit/phantom/cold_space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "row/row_data.h"
#include "store/cold.h"
#include "tests/support/random.h"

#define TWIN_TABLES   64u
#define FOREIGN       1000000u /* numbers from here on were never added */
#define FOREIGN_TRIES 20u      /* an id */
#define CHANGED_IDS   8u       /* those below have what tests change, and are compared always */

struct phantom_config cold_config(void)
{
    struct phantom_config config = phantoms_config(true);
    config.row.tables = 3;
    config.row.dump = true;
    config.false_positives = 0.01;
    return config;
}

void cold_begin(struct cold_space *space, const struct phantom_config *config, uint64_t cache_bytes,
                uint64_t overlay_max)
{
    memset(space, 0, sizeof(*space));
    space->config = *config;
    recorder_init(&space->recorder);
    recorder_sink_init(&space->sink, &space->recorder);
    space->sim = vfs_sim_create(1);
    struct vfs *vfs = vfs_sim_vfs(space->sim);
    assert_int_equal(vfs->functions->mkdir(vfs, COLD_DIRECTORY), 0);
    phantom_dumps_init(&space->dumps, vfs, COLD_DIRECTORY, &space->recorder, cache_bytes,
                       overlay_max);
    space->engine = phantoms_create(config);
    row_set_cold(space->engine->row, &space->dumps.cold);
    row_set_log(space->engine->row, &space->recorder.log);
    row_log_begin(space->engine->row);
}

void cold_end(struct cold_space *space)
{
    phantoms_destroy(space->engine);
    phantom_dumps_fini(&space->dumps);
    recorder_fini(&space->recorder);
    vfs_sim_destroy(space->sim);
}

struct engine_op cold_op(struct cold_space *space, struct engine *engine, enum engine_verb verb,
                         uint64_t id, uint64_t number)
{
    char member[32];
    struct phantoms_call call;
    snprintf(member, sizeof(member), "u%llu", (unsigned long long)number);
    phantoms_call_init(&call, verb, id, member, "1");
    (void)phantom_dumps_run(&space->dumps, engine, &call, &space->sink.sink);
    call.op.member = call.op.text = call.op.value = NULL;
    return call.op;
}

enum engine_status cold_run(struct cold_space *space, enum engine_verb verb, uint64_t id,
                            uint64_t number)
{
    return cold_op(space, space->engine, verb, id, number).status;
}

bool cold_holds(struct cold_space *space, struct engine *engine, uint64_t id, uint64_t number)
{
    enum engine_status status = cold_op(space, engine, ENGINE_READ, id, number).status;
    assert_true(status == ENGINE_DONE || status == ENGINE_ABSENT);
    return status == ENGINE_DONE;
}

static void count_cold(void *context, struct row_table *table, bool layer)
{
    *(unsigned *)context += table->cold && !layer;
}

unsigned cold_tables(const struct engine *engine)
{
    unsigned count = 0;
    row_each(&((const struct phantom *)engine)->row, count_cold, &count);
    return count;
}

struct phantom_table *cold_oldest(const struct engine *engine)
{
    return phantom_table_of(((const struct phantom *)engine)->row.tables[0]);
}

uint64_t cold_roll(struct cold_space *space, unsigned tables)
{
    uint64_t id = 0;
    for (; cold_tables(space->engine) < tables; id++) {
        for (unsigned m = 0; m < COLD_MEMBERS; m++) {
            assert_int_equal(cold_run(space, ENGINE_SET, id, m), ENGINE_DONE);
        }
        if (row_images_wanted(space->engine->row)) {
            cold_round(space);
        }
    }
    return id;
}

void cold_round(struct cold_space *space)
{
    assert_true(phantom_dumps_round(&space->dumps, space->engine));
    row_maintain(space->engine->row, NULL);
    phantom_check(space->engine);
}

struct engine *cold_restore(struct cold_space *space)
{
    struct engine *engine = phantoms_create(&space->config);
    row_set_cold(engine->row, &space->dumps.cold);
    if (phantom_dumps_restore(&space->dumps, engine, COLD_BATCH)) {
        phantom_check(engine);
        return engine;
    }
    assert_true(space->dumps.error[0] != '\0');
    engine->functions->destroy(engine);
    return NULL;
}

struct engine *cold_twin(struct cold_space *space)
{
    struct phantom_config config = space->config;
    config.row.dump = false;
    config.row.tables = TWIN_TABLES;
    struct engine *engine = phantoms_create(&config);
    char error[ENGINE_ERROR_MAX];
    assert_true(row_restore_begin(engine->row, NULL, 0, error));
    assert_true(recorder_replay(&space->recorder, engine, 0, 0, COLD_BATCH));
    assert_true(row_restore_end(engine->row));
    return engine;
}

void cold_compare(struct cold_space *space, struct engine *a, struct engine *b, uint64_t ids)
{
    for (uint64_t id = 0; id < ids; id++) {
        if (id >= CHANGED_IDS && !test_chosen(id)) {
            continue;
        }
        for (uint64_t m = 0; m < COLD_MEMBERS; m++) {
            assert_true(cold_holds(space, a, id, m) == cold_holds(space, b, id, m));
        }
        for (uint64_t i = 0; i < FOREIGN_TRIES; i++) {
            uint64_t m = FOREIGN + id * FOREIGN_TRIES + i;
            assert_true(cold_holds(space, a, id, m) == cold_holds(space, b, id, m));
        }
    }
    assert_int_equal(phantoms_members(a), phantoms_members(b));
}
