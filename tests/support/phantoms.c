/* phantoms.c: phantom spaces for tests. */
#include "tests/support/phantoms.h"
#include "tests/support/table_figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "phantom/phantom_private.h"
#include "row/row.h"

#define PENDING_MAX 100 /* times in a row: the keeper does nothing about it */

struct phantom_config phantoms_config(bool deletes)
{
    return (struct phantom_config){
        .row.table_bytes = ROW_REGION_BYTES_MIN,
        .false_positives = 0.001,
        .deletes = deletes,
        .row.tables = 1,
        .row.late_room = ROW_LATE_AUTO,
    };
}

struct engine *phantoms_create(const struct phantom_config *config)
{
    char error[PHANTOM_ERROR_MAX] = "";
    CHECK(phantom_config_valid(config, error));
    struct engine *engine = phantom_create(config, error);
    CHECK(engine != NULL);
    return engine;
}

void phantoms_call_init(struct phantoms_call *call, enum engine_verb verb, uint64_t id,
                        const char *member, const char *text)
{
    memset(call, 0, sizeof(*call));
    call->op.verb = verb;
    call->op.slot = ENGINE_SLOT_RECORD;
    call->op.id = id;
    call->op.member = member;
    call->op.member_length = (uint32_t)strlen(member);
    call->op.text = text;
    call->op.text_length = (uint32_t)strlen(text);
    call->op.value = call->value;
}

enum engine_status phantoms_try(struct engine *engine, struct phantoms_call *call,
                                struct change_sink *sink)
{
    struct engine_op *op = &call->op;
    engine->functions->prepare(engine, &op, 1);
    if (op->verb == ENGINE_READ || op->verb == ENGINE_TOUCH) {
        engine->functions->read(engine, &op, 1);
    } else {
        engine->functions->change(engine, op, sink);
    }
    if (op->status == ENGINE_PENDING && op->error == ENGINE_E_BUSY) {
        op->status = ENGINE_ERROR; /* as when a merge takes too long */
    }
    return op->status;
}

enum engine_status phantoms_run(struct engine *engine, struct phantoms_call *call,
                                struct change_sink *sink)
{
    enum engine_status status = ENGINE_PENDING;
    for (unsigned i = 0; status == ENGINE_PENDING; i++) {
        CHECK(i < PENDING_MAX);
        status = phantoms_try(engine, call, sink);
        if (call->op.verb != ENGINE_READ && call->op.verb != ENGINE_TOUCH) {
            row_maintain(engine->row, NULL);
        }
    }
    return status;
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

void phantoms_settle(struct engine *engine, uint64_t id)
{
    char member[32];
    struct phantoms_call call;
    for (unsigned i = 0;; i++) {
        CHECK(i <= ROW_SAMPLE_MAX);
        snprintf(member, sizeof(member), "settler %u", i);
        phantoms_call_init(&call, ENGINE_SET, id, member, "1");
        if (phantoms_try(engine, &call, change_sink_null()) == ENGINE_PENDING) {
            row_maintain(engine->row, NULL);
            return;
        }
    }
}

/* ---- figures ---- */

struct search {
    const char *name;
    unsigned place, seen; /* of a table: how many have been begun */
    bool of_table;
    char serial[ENGINE_STAT_TEXT_MAX];
    struct phantoms_figure figure;
};

static void see(void *context, const char *name, const char *text)
{
    struct search *search = context;
    const char *colon = strchr(name, ':');
    CHECK((colon != NULL) == search->of_table);
    size_t length = colon ? (size_t)(colon - name) : 0;
    if (colon && (strncmp(search->serial, name, length) != 0 || search->serial[length] != '\0')) {
        snprintf(search->serial, sizeof(search->serial), "%.*s", (int)length, name);
        search->seen++;
    }
    const char *own = colon ? colon + 1 : name;
    bool here = !colon || search->seen == search->place + 1;
    if (here && search->name && strcmp(own, search->name) == 0) {
        snprintf(search->figure.text, sizeof(search->figure.text), "%s", text);
    }
}

struct phantoms_figure phantoms_space_figure(const struct engine *engine, const char *name)
{
    struct search search = {.name = name};
    engine->functions->stats_space(engine, see, &search);
    return search.figure;
}

struct phantoms_figure phantoms_table_figure(const struct engine *engine, unsigned place,
                                             const char *name)
{
    struct search search = {.name = name, .place = place, .of_table = true};
    stats_of_tables(engine, see, &search);
    return search.figure;
}

uint64_t phantoms_table_number(const struct engine *engine, unsigned place, const char *name)
{
    struct phantoms_figure figure = phantoms_table_figure(engine, place, name);
    CHECK(figure.text[0] != '\0');
    return strtoull(figure.text, NULL, 10);
}

void phantoms_destroy(struct engine *engine)
{
    struct search search = {.of_table = true};
    stats_of_tables(engine, see, &search);
    CHECK(search.seen == phantoms_tables(engine));
    phantom_check(engine);
    engine->functions->destroy(engine);
}

/* By the row, not by its figures: those of a table count the bits of its filter. */
unsigned phantoms_tables(const struct engine *engine)
{
    return (unsigned)((const struct phantom *)engine)->row.count;
}

uint64_t phantoms_members(const struct engine *engine)
{
    struct phantoms_figure figure = phantoms_space_figure(engine, "members");
    CHECK(figure.text[0] != '\0');
    return strtoull(figure.text, NULL, 10);
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
