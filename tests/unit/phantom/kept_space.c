/* kept_space.c: a phantom space that is kept. */
#include "tests/unit/phantom/kept_space.h"
#include "row/row_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void kept_begin(struct kept_space *space, const struct phantom_config *config)
{
    memset(space, 0, sizeof(*space));
    space->config = *config;
    recorder_init(&space->recorder);
    recorder_sink_init(&space->sink, &space->recorder);
    space->sim = vfs_sim_create(1);
    struct vfs *vfs = vfs_sim_vfs(space->sim);
    assert_int_equal(vfs->functions->mkdir(vfs, KEPT_DIRECTORY), 0);
    checkpoints_init(&space->checkpoints, vfs, KEPT_DIRECTORY);
    space->engine = phantoms_create(config);
    row_set_log(space->engine->row, &space->recorder.log);
    row_log_begin(space->engine->row);
}

void kept_end(struct kept_space *space)
{
    phantoms_destroy(space->engine);
    recorder_fini(&space->recorder);
    vfs_sim_destroy(space->sim);
}

enum engine_status kept_run(struct kept_space *space, enum engine_verb verb, uint64_t id,
                            uint64_t number)
{
    char member[32];
    struct phantoms_call call;
    snprintf(member, sizeof(member), "u%llu", (unsigned long long)number);
    phantoms_call_init(&call, verb, id, member, "1");
    return phantoms_run(space->engine, &call, &space->sink.sink);
}

bool kept_holds(struct engine *engine, uint64_t id, uint64_t number)
{
    char member[32];
    snprintf(member, sizeof(member), "u%llu", (unsigned long long)number);
    return phantoms_hold(engine, id, member);
}

void kept_roll(struct kept_space *space, uint64_t first, uint64_t end)
{
    for (uint64_t id = first; id < end; id++) {
        for (unsigned m = 0; m < KEPT_MEMBERS; m++) {
            assert_int_equal(kept_run(space, ENGINE_SET, id, m), ENGINE_DONE);
        }
    }
}

void kept_checkpoint(struct kept_space *space)
{
    static const _Atomic bool never = false;
    checkpoints_begin(&space->checkpoints, space->engine, space->recorder.head);
    while (checkpoints_next(&space->checkpoints, space->engine, space->recorder.head)) {
        enum engine_image result =
            checkpoints_write(&space->checkpoints, space->engine, NULL, &never);
        checkpoints_wrote(&space->checkpoints, space->engine, result);
        assert_int_equal(result, ENGINE_IMAGE_DONE);
    }
}

struct engine *kept_restore(struct kept_space *space)
{
    bool fresh;
    struct engine *engine = phantoms_create(&space->config);
    if (checkpoints_restore(&space->checkpoints, engine, &space->recorder, KEPT_BATCH, &fresh)) {
        return engine;
    }
    assert_true(space->checkpoints.error[0] != '\0');
    engine->functions->destroy(engine);
    return NULL;
}
