/* counters.c: counter spaces for tests. */
#include "tests/support/counters.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "row/row.h"

#define TABLE_BYTES (64u << 10)
#define PENDING_MAX 8 /* changes of the row one operation may wait for */

void counters_config_slots(struct counter_config *config, const char *slots)
{
    char error[COUNTER_ERROR_MAX];
    int used = 0;
    config->slot_count = 0;
    memset(config->slots, 0, sizeof(config->slots));
    for (; *slots; slots += used) {
        struct counter_slot *slot = &config->slots[config->slot_count++];
        CHECK(config->slot_count <= ENGINE_SLOTS_MAX);
        CHECK(sscanf(slots, " %32[a-z0-9_-]:%u%n", slot->name, &slot->bits, &used) == 2);
    }
    CHECK(counter_config_valid(config, error));
}

void counters_config(struct counter_config *config, const char *slots)
{
    memset(config, 0, sizeof(*config));
    config->row.table_bytes = TABLE_BYTES;
    config->max_id = COUNTER_MAX_ID_DEFAULT;
    config->row.tables = 1;
    config->row.late_room = ROW_LATE_AUTO;
    counters_config_slots(config, slots);
}

struct engine *counters_create(const struct counter_config *config)
{
    char error[COUNTER_ERROR_MAX];
    struct engine *engine = counter_create(config, error);
    CHECK(engine);
    return engine;
}

void counters_reconfigure(struct engine *engine, const struct counter_config *config)
{
    char error[COUNTER_ERROR_MAX];
    CHECK(counter_reconfigure(engine, config, error));
}

void counters_call_init(struct counters_call *call, enum engine_verb verb, int slot, uint64_t id,
                        const char *text)
{
    memset(&call->op, 0, sizeof(call->op));
    call->op.verb = verb;
    call->op.slot = slot;
    call->op.id = id;
    call->op.text = text;
    call->op.text_length = text ? (uint32_t)strlen(text) : 0;
    call->op.value = call->value;
    call->value[0] = '\0';
}

static void run_once(struct engine *engine, struct engine_op *op, struct change_sink *sink)
{
    op->value_length = 0;
    engine->functions->prepare(engine, &op, 1);
    if (op->verb == ENGINE_READ || op->verb == ENGINE_TOUCH) {
        engine->functions->read(engine, &op, 1);
    } else {
        engine->functions->change(engine, op, sink);
    }
}

enum engine_status counters_run(struct engine *engine, struct counters_call *call,
                                struct change_sink *sink)
{
    struct engine_op *op = &call->op;
    run_once(engine, op, sink);
    for (unsigned i = 0; op->status == ENGINE_PENDING; i++) {
        CHECK(i < PENDING_MAX);
        row_maintain(engine->row, NULL);
        run_once(engine, op, sink);
    }
    CHECK(op->value_length < sizeof(call->value));
    call->value[op->value_length] = '\0';
    return op->status;
}

enum engine_status counters_do(struct engine *engine, struct counters_call *call,
                               enum engine_verb verb, int slot, uint64_t id, const char *text)
{
    counters_call_init(call, verb, slot, id, text);
    return counters_run(engine, call, change_sink_null());
}

void counters_table_open(struct counters_table *opened, const struct counter_config *config,
                         uint64_t first_id)
{
    memset(opened, 0, sizeof(*opened));
    opened->bytes = config->row.table_bytes;
    opened->region = memory_region_create(opened->bytes);
    CHECK(opened->region);
    struct row_want want = {.first = true, .region = opened->region, .region_bytes = opened->bytes};
    opened->table = counter_table_create(config, &want, NULL);
    CHECK(opened->table);
    counter_table_in_row(opened->table)->last = ROW_ID_MAX;
    if (!config->row.any_ids && first_id != COUNTERS_UNSETTLED) {
        counters_table_settle(opened, first_id, first_id);
    }
}

void counters_apart_open(struct counters_table *opened, const struct counter_config *config)
{
    struct row_want want = {.apart = true, .region_bytes = config->row.table_bytes};
    memset(opened, 0, sizeof(*opened));
    opened->table = counter_table_create(config, &want, NULL);
    CHECK(opened->table);
    counter_table_in_row(opened->table)->last = ROW_ID_MAX;
}

void counters_table_settle(struct counters_table *opened, uint64_t low, uint64_t frontier)
{
    struct row_table *row = counter_table_in_row(opened->table);
    row->low = low;
    atomic_store(&row->frontier, frontier);
    row->settled = true;
    counter_table_settle(opened->table);
}

void counters_table_close(struct counters_table *opened)
{
    counter_table_destroy(opened->table);
    if (opened->region) {
        memory_region_destroy(opened->region, opened->bytes);
    }
}

static bool sink_reserve(struct change_sink *base)
{
    struct counters_sink *sink = (struct counters_sink *)base;
    sink->reserved++;
    return !sink->full;
}

static uint64_t sink_put(struct change_sink *base, const struct change *change)
{
    struct counters_sink *sink = (struct counters_sink *)base;
    CHECK(!sink->full);
    CHECK(sink->put + sink->cancelled < sink->reserved); /* room was asked for before */
    sink->last = *change;
    return ++sink->put;
}

static void sink_cancel(struct change_sink *base)
{
    struct counters_sink *sink = (struct counters_sink *)base;
    CHECK(sink->put + sink->cancelled < sink->reserved);
    sink->cancelled++;
}

static const struct change_sink_functions sink_functions = {
    .reserve = sink_reserve,
    .put = sink_put,
    .cancel = sink_cancel,
};

void counters_sink_init(struct counters_sink *sink)
{
    memset(sink, 0, sizeof(*sink));
    sink->sink.functions = &sink_functions;
}
