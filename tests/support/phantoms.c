/* phantoms.c: phantom spaces for tests. */
#include "tests/support/phantoms.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

struct phantom_config phantoms_config(bool deletes)
{
    return (struct phantom_config){
        .table_bytes = PHANTOM_TABLE_BYTES_MIN, .false_positives = 0.001, .deletes = deletes};
}

struct engine *phantoms_create(const struct phantom_config *config)
{
    char error[PHANTOM_ERROR_MAX] = "";
    CHECK(phantom_config_valid(config, error));
    struct engine *engine = phantom_create(config, error);
    CHECK(engine != NULL);
    return engine;
}

void phantoms_destroy(struct engine *engine)
{
    phantom_check(engine);
    engine->functions->destroy(engine);
}

void phantoms_call_init(struct phantoms_call *call, enum engine_verb verb, uint64_t id,
                        const char *member, const char *text)
{
    memset(call, 0, sizeof *call);
    call->op.verb = verb;
    call->op.slot = ENGINE_SLOT_RECORD;
    call->op.id = id;
    call->op.member = member;
    call->op.member_length = (uint32_t)strlen(member);
    call->op.text = text;
    call->op.text_length = (uint32_t)strlen(text);
    call->op.value = call->value;
}

enum engine_status phantoms_run(struct engine *engine, struct phantoms_call *call,
                                struct change_sink *sink)
{
    struct engine_op *op = &call->op;
    engine->functions->prepare(engine, &op, 1);
    if (op->verb == ENGINE_READ || op->verb == ENGINE_TOUCH) {
        engine->functions->read(engine, &op, 1);
    } else {
        engine->functions->change(engine, op, sink);
    }
    return op->status;
}

enum engine_status phantoms_do(struct engine *engine, enum engine_verb verb, uint64_t id,
                               const char *member)
{
    struct phantoms_call call;
    phantoms_call_init(&call, verb, id, member, "1");
    return phantoms_run(engine, &call, change_sink_null());
}

bool phantoms_hold(struct engine *engine, uint64_t id, const char *member)
{
    return phantoms_do(engine, ENGINE_READ, id, member) == ENGINE_DONE;
}

static void see_members(void *context, const char *name, const char *text)
{
    if (strcmp(name, "members") == 0) {
        *(uint64_t *)context = strtoull(text, NULL, 10);
    }
}

uint64_t phantoms_members(const struct engine *engine)
{
    uint64_t members = UINT64_MAX;
    engine->functions->stats_space(engine, see_members, &members);
    return members;
}

static bool sink_reserve(struct change_sink *sink)
{
    struct phantoms_sink *counting = (struct phantoms_sink *)sink;
    counting->reserved += !counting->full;
    return !counting->full;
}

static uint64_t sink_put(struct change_sink *sink, const struct change *change)
{
    struct phantoms_sink *counting = (struct phantoms_sink *)sink;
    counting->last = *change;
    return counting->put++;
}

static void sink_cancel(struct change_sink *sink)
{
    ((struct phantoms_sink *)sink)->cancelled++;
}

static const struct change_sink_functions sink_functions = {
    .reserve = sink_reserve,
    .put = sink_put,
    .cancel = sink_cancel,
};

void phantoms_sink_init(struct phantoms_sink *sink)
{
    *sink = (struct phantoms_sink){.sink = {&sink_functions}};
}
