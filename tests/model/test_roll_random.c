/*
 * test_roll_random.c: random operations on both engines while ids roll on, against a plain map:
 * set, changed, deleted and made again in groups, dicts, tables and layers, with and without
 * recycling.
 *
 * The tame run has few strays, and nothing may be refused. The wild one throws at the row whatever
 * ids can do, bursts of typos, gaps, other densities: there it may refuse what is new, but never
 * lose, alter or invent anything. While a table is free it refuses a stream that leaps no longer
 * than until it has seen so: where the room apart is full and the last tables are kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/model/roll_stream.h"

#define TABLES          24u
#define TABLES_FEW      5u  /* recycling */
#define RUNS            2u  /* of each kind and shape: without recycling, and with */
#define TABLES_WORTH    8u  /* of things a run goes through */
#define WORTH_REFUSING  14u /* at most, without recycling: they fit */
#define NORMAL_WORTH    3u  /* then tables' worth of normal ids */
#define STRAYS_MAX      14u
#define LAZY_MAX        50u
#define CHECK_EVERY     9973u
#define ANY_ONE_IN      50u /* changes that go to whatever was ever named */
#define WILD_EVENTS     40u
#define WILD_BURST      60u
#define WILD_STRIDE_MAX 10000u
/* Ids one after the other, refused while a table is free. A row remembers ROW_ARRIVALS of those
 * that come, each the fourth, and of a stream that leaps most are its own at latest then. */
#define VAIN_MAX (4u * ROW_ARRIVALS)

struct run {
    struct roll_stream stream;
    unsigned strays;
    bool wild, recycle;
};

static uint64_t below(struct run *r, uint64_t bound)
{
    return test_random_below(&r->stream.random, bound);
}

/* Any verb on something of the last two tables' worth, or of all there ever was. */
static void change(struct run *r)
{
    static const enum engine_verb counter_verbs[] = {
        ENGINE_READ, ENGINE_SET,  ENGINE_ADD,    ENGINE_REPLACE,
        ENGINE_INCR, ENGINE_DECR, ENGINE_DELETE, ENGINE_DELETE,
    };
    static const enum engine_verb phantom_verbs[] = {
        ENGINE_READ, ENGINE_SET,  ENGINE_ADD,    ENGINE_ADD,
        ENGINE_READ, ENGINE_READ, ENGINE_DELETE, ENGINE_DELETE,
    };
    struct roll_stream *s = &r->stream;
    uint64_t verb = below(r, sizeof(phantom_verbs) / sizeof(*phantom_verbs));
    uint64_t recent = 2 * s->model.roll.capacity;
    uint64_t n = s->next - 1 - below(r, below(r, 4) == 0 || s->next < recent ? s->next : recent);
    size_t item = below(r, s->model.count + 1);
    if (item == s->model.count || below(r, ANY_ONE_IN) > 0) {
        uint64_t id = roll_stream_id(s, n);
        item = roll_model_item(&s->model, id <= ROW_ID_MAX ? id : below(r, ROW_ID_MAX),
                               (uint32_t)(n % roll_stream_members(s)));
    }
    roll_model_do(&s->model, s->kind->phantom ? phantom_verbs[verb] : counter_verbs[verb], item,
                  roll_stream_value(s));
}

/* As likely near as far. */
static uint64_t any_distance(struct run *r)
{
    uint64_t distance = 1ull << below(r, 63);
    return distance + below(r, distance);
}

static void burst(struct run *r)
{
    uint64_t count = 1 + below(r, WILD_BURST);
    uint64_t distance = any_distance(r);
    uint64_t width = any_distance(r);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t id = roll_stream_ahead(&r->stream, distance);
        uint64_t more = below(r, width);
        roll_stream_put(&r->stream, more < ROW_ID_MAX - id ? id + more : id, i);
    }
}

/* The next id lies further on, but the largest there is stays far away. */
static void leap(struct run *r)
{
    uint64_t id = roll_stream_id(&r->stream, r->stream.next);
    r->stream.offset += any_distance(r) % ((ROW_ID_MAX - id) / WILD_EVENTS);
}

static void set_stride(struct run *r)
{
    static const uint64_t strides[] = {1, 1, 2, 30, 1000, WILD_STRIDE_MAX};
    roll_stream_set_stride(&r->stream, strides[below(r, sizeof(strides) / sizeof(*strides))]);
}

static void surprise(struct run *r)
{
    if (!r->wild) {
        if (r->strays++ < STRAYS_MAX) {
            roll_stream_stray(&r->stream, any_distance(r));
        }
        return;
    }
    switch (below(r, 4)) {
    case 0:
        leap(r);
        break;
    case 1:
        set_stride(r);
        break;
    default:
        burst(r);
    }
}

static void step(struct run *r)
{
    if (below(r, 2) == 0) {
        change(r);
    } else if (below(r, 4) == 0) {
        r->stream.next++; /* left out: it may come late */
    } else {
        roll_stream_one(&r->stream);
    }
}

static void steps(struct run *r)
{
    uint64_t most = r->recycle ? UINT64_MAX : WORTH_REFUSING * r->stream.model.roll.capacity;
    uint64_t end = test_scaled(TABLES_WORTH * r->stream.model.roll.capacity);
    end = end < most ? end : most;
    uint64_t surprises = r->wild ? WILD_EVENTS : STRAYS_MAX;
    r->stream.next = 1;
    while (r->stream.next < end) {
        step(r);
        if (below(r, 2 * end / surprises + 1) == 0) {
            surprise(r);
        }
        if (r->stream.model.done % CHECK_EVERY == 0) {
            roll_check(&r->stream.model.roll);
        }
    }
}

static void run_one(const struct roll_kind *kind, const struct roll_shape *shape, bool recycle,
                    bool wild, uint64_t seed)
{
    static struct run run;
    struct run *r = &run;
    struct roll_model *m = &r->stream.model;
    memset(r, 0, sizeof(*r));
    roll_stream_init(&r->stream, kind, shape, recycle ? TABLES_FEW : TABLES, recycle, seed,
                     recycle ? "recycling" : "refusing");
    r->wild = wild;
    r->recycle = recycle;
    m->may_refuse = wild;
    m->roll.lazy = 1 + (unsigned)below(r, LAZY_MAX);
    steps(r);
    uint64_t refused = m->refused;
    roll_stream_until(&r->stream, r->stream.next + NORMAL_WORTH * m->roll.capacity);
    printf("%s: %" PRIu64 " operations, %zu items, %" PRIu64 " tables opened, %" PRIu64
           " refused, %" PRIu64 " at the end\n",
           r->stream.name, m->done, m->count, roll_opened(&m->roll), refused, m->refused - refused);
    fflush(stdout);
    if (!recycle && m->vain_most > VAIN_MAX) {
        fail_msg("%s: seed %" PRIu64 ": %" PRIu64
                 " ids refused one after the other while tables were free",
                 r->stream.name, seed, m->vain_most);
    }
    roll_stream_fini(&r->stream);
}

static void run_all(bool wild)
{
    uint64_t seed = test_seed();
    for (unsigned i = 0; i < RUNS * ROLL_KINDS * ROLL_SHAPES; i++) {
        const struct roll_kind *kind = &roll_kinds[i / RUNS / ROLL_SHAPES];
        const struct roll_shape *shape = &roll_shapes[i / RUNS % ROLL_SHAPES];
        run_one(kind, shape, i % RUNS, wild, seed + i);
    }
}

static void test_tame(void **unused)
{
    (void)unused;
    run_all(false);
}

static void test_wild(void **unused)
{
    (void)unused;
    run_all(true);
}

/* A stream leaps while strays have all the room apart, and two tables are left. */
static void test_leap_refused(void **unused)
{
    (void)unused;
    run_one(&roll_kinds[2], &roll_shapes[3], false, true, 23);
}

/* Wild runs, recycling, in which the judge was wrong once about what is below. */
static void test_found(void **unused)
{
    static const struct {
        unsigned kind, shape;
        uint64_t seed;
    } found[] = {
        {1, 0, 112}, /* a table had opened there, and gone in turn */
        {2, 3, 141}, /* likewise */
        {1, 2, 116}, /* a delete says nothing of that */
        {0, 2, 123}, /* likewise */
    };
    (void)unused;
    for (size_t i = 0; i < sizeof(found) / sizeof(*found); i++) {
        run_one(&roll_kinds[found[i].kind], &roll_shapes[found[i].shape], true, true,
                found[i].seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tame),
        cmocka_unit_test(test_wild),
        cmocka_unit_test(test_leap_refused),
        cmocka_unit_test(test_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
