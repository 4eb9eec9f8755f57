/* dumped_space.c: see dumped_space.h. */
#include "tests/unit/counter/dumped_space.h"

#include "row/row.h"

#include <string.h>

enum engine_status space_run(struct dumped_space *space, enum engine_verb verb, int slot,
                             uint64_t id, const char *text)
{
    struct dumps *d = &space->dumps;
    counters_call_init(&space->call, verb, slot, id, text);
    space->call.op.ticket = (struct ticket){woken_wake, &d->woken, ++space->serial};
    for (;;) {
        dumps_run(d, &space->call.op, &space->sink.sink);
        if (space->call.op.status != ENGINE_PENDING) {
            break;
        }
        row_maintain(d->engine->row, NULL);
        woken_await(&d->woken, &space->call.op);
    }
    space->call.value[space->call.op.value_length] = '\0';
    return space->call.op.status;
}

void space_expect(struct dumped_space *space, uint64_t id, const char *text)
{
    enum engine_status status = space_run(space, ENGINE_READ, ENGINE_SLOT_RECORD, id, NULL);
    assert_int_equal(status, text ? ENGINE_DONE : ENGINE_ABSENT);
    if (text) {
        assert_string_equal(space->call.value, text);
    }
}

uint64_t space_preads(const struct dumped_space *space)
{
    struct cold_stats stats;
    cold_stats(space->dumps.cold.cold, &stats);
    return stats.reads;
}

static int set_up(void **state, uint64_t overlay_bytes, uint64_t aux_bytes, unsigned every)
{
    static struct dumped_space fixture;
    struct dumped_space *space = &fixture;
    memset(space, 0, sizeof(*space));
    counters_config(&space->config, "a:20 b:20");
    space->config.row.tables = 4;
    space->config.aux_bytes = aux_bytes;
    space->config.row.dump = true;
    dumps_init(&space->dumps, overlay_bytes, 0, 7);
    dumps_create(&space->dumps, &space->config);
    recorder_sink_init(&space->sink, &space->dumps.recorder);
    for (uint64_t i = 0; i < IDS; i++) {
        const char *text = i % every == 0 ? "7," LARGE : "7,8";
        space_set(space, FIRST + i, text);
    }
    row_maintain(space->dumps.engine->row, NULL);
    assert_true(dumps_leave(&space->dumps, 0));
    space_round(space);
    assert_int_equal(dumps_cold(&space->dumps), 1);
    *state = space;
    return 0;
}

int space_create(void **state)
{
    return set_up(state, 1u << 20, AUX, 10);
}

int space_create_tight(void **state)
{
    return set_up(state, 4096, AUX, 10);
}

int space_create_small(void **state)
{
    return set_up(state, 4096, 4096, IDS);
}

int space_destroy(void **state)
{
    struct dumped_space *space = *state;
    counter_check(space->dumps.engine);
    dumps_fini(&space->dumps);
    return 0;
}

void space_set(struct dumped_space *space, uint64_t id, const char *text)
{
    assert_int_equal(space_run(space, ENGINE_SET, ENGINE_SLOT_RECORD, id, text), ENGINE_DONE);
}

void space_round(struct dumped_space *space)
{
    dumps_round(&space->dumps, NULL, NULL, false);
}

void space_restart(struct dumped_space *space)
{
    dumps_restart(&space->dumps, &space->config);
    recorder_sink_init(&space->sink, &space->dumps.recorder);
}

void space_begin_anew(struct dumped_space *space)
{
    dumps_fini(&space->dumps);
    memset(&space->dumps, 0, sizeof(space->dumps));
    space->config.row.tables = 8;
    dumps_init(&space->dumps, 1u << 20, 0, 7);
    dumps_create(&space->dumps, &space->config);
    recorder_sink_init(&space->sink, &space->dumps.recorder);
}

struct row *space_begin_dense(struct dumped_space *space)
{
    space_begin_anew(space);
    for (uint64_t id = FIRST; id < FIRST + 4 * SEEN; id++) {
        space_set(space, id, "1,2");
    }
    return space_row(space);
}
