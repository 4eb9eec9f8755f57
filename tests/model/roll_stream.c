/* roll_stream.c: things put into a space in the order of their ids. */
#include "tests/model/roll_stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MEMBERS      4u /* of an id */
#define POOL_BYTES   (256u << 10)
#define LARGE        (1ull << 40) /* in the aux dict */
#define LARGE_ONE_IN 32u
#define TOUCH_ONE_IN 4u

const struct roll_kind roll_kinds[ROLL_KINDS] = {
    {"counter", false, false},
    {"counter, spacing given", false, true},
    {"phantom", true, false},
};

static void init_phantom(struct roll_stream *s, unsigned tables, bool recycle)
{
    struct phantom_config config = phantoms_config(true);
    config.false_positives = PHANTOM_FALSE_POSITIVES_MIN;
    config.exceptions_bytes = POOL_BYTES;
    config.row.tables = tables;
    config.row.recycle = recycle;
    config.row.late_room = ROW_LATE_AUTO;
    roll_model_init_phantom(&s->model, s->name, &config);
}

static void init_counter(struct roll_stream *s, unsigned tables, bool recycle)
{
    struct counter_config config;
    counters_config(&config, "a:20 b:20 c:20 d:20");
    config.id_spacing = s->kind->spacing ? s->shape->spacing : 0;
    config.aux_bytes = POOL_BYTES;
    config.row.tables = tables;
    config.row.recycle = recycle;
    config.row.late_room = ROW_LATE_AUTO;
    roll_model_init_counter(&s->model, s->name, &config);
}

void roll_stream_init(struct roll_stream *s, const struct roll_kind *kind,
                      const struct roll_shape *shape, unsigned tables, bool recycle, uint64_t seed,
                      const char *name)
{
    memset(s, 0, sizeof(*s));
    s->kind = kind;
    s->shape = shape;
    s->random.state = seed;
    s->stride = 1;
    snprintf(s->name, sizeof(s->name), "%s, %s: %s", kind->name, shape->name, name);
    if (kind->phantom) {
        init_phantom(s, tables, recycle);
    } else {
        init_counter(s, tables, recycle);
    }
}

void roll_stream_fini(struct roll_stream *s)
{
    roll_model_fini(&s->model);
}

unsigned roll_stream_members(const struct roll_stream *s)
{
    return s->kind->phantom ? MEMBERS : 1;
}

uint64_t roll_stream_id(const struct roll_stream *s, uint64_t n)
{
    return s->shape->id(n / roll_stream_members(s) * s->stride) + s->offset;
}

uint64_t roll_stream_value(struct roll_stream *s)
{
    uint64_t value = test_random_below(&s->random, 1000);
    return test_random_once_in(&s->random, LARGE_ONE_IN) ? LARGE + value : value;
}

uint64_t roll_stream_ahead(const struct roll_stream *s, uint64_t distance)
{
    uint64_t id = roll_stream_id(s, s->next);
    return distance < ROW_ID_MAX - id ? id + distance : ROW_ID_MAX;
}

void roll_stream_put(struct roll_stream *s, uint64_t id, uint64_t n)
{
    static const enum engine_verb verbs[] = {ENGINE_SET, ENGINE_ADD, ENGINE_INCR};
    size_t item = roll_model_item(&s->model, id, (uint32_t)(n % roll_stream_members(s)));
    enum engine_verb verb = verbs[n % (s->kind->phantom ? 2 : 3)];
    roll_model_do(&s->model, verb, item, roll_stream_value(s));
}

static void touch_any(struct roll_stream *s)
{
    size_t item = test_random_below(&s->random, s->model.count);
    bool reads = s->kind->phantom || test_random_once_in(&s->random, 2);
    roll_model_do(&s->model, reads ? ENGINE_READ : ENGINE_INCR, item, 1);
}

void roll_stream_one(struct roll_stream *s)
{
    roll_stream_put(s, roll_stream_id(s, s->next), s->next);
    s->next++;
    if (test_random_once_in(&s->random, TOUCH_ONE_IN)) {
        touch_any(s);
    }
}

void roll_stream_until(struct roll_stream *s, uint64_t end)
{
    while (s->next < end) {
        roll_stream_one(s);
    }
}

void roll_stream_stray(struct roll_stream *s, uint64_t distance)
{
    roll_stream_put(s, roll_stream_ahead(s, distance), 0);
}

void roll_stream_set_stride(struct roll_stream *s, uint64_t stride)
{
    uint64_t id = roll_stream_id(s, s->next);
    s->stride = stride;
    s->offset += id - roll_stream_id(s, s->next);
}
