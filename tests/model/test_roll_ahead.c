/*
 * test_roll_ahead.c: writers that run ahead of the stream, on both engines, in every shape of ids:
 * up to one id in three, at any distance, from any number of writers, one id at a time or in
 * bursts; few of them from the first id on, many once two tables have shown how dense ids are.
 *
 * An id of the stream is refused only when no table is free, so the stream goes on until it has
 * used most of what all tables hold. Every answer must be the plain map's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "row/row_data.h"
#include "tests/model/roll_stream.h"

#define TABLES          12u
#define TABLES_FEW      6u /* of those that leave, and of those that are recycled */
#define LAZY            3u
#define WRITERS_MAX     12u
#define TENTHS          10u
#define RECYCLED_PART   20u /* of a stream below tables for strays that none can be taken from */
#define RECYCLED_STRAYS 100u
#define SEED            1u
#define READ_ONE_IN     4u
#define UNLUCKY_MAX     8 /* of some 10^5 ids */
#define BITS_LEAST      4u
#define BITS_MOST       62u
#define FAR_BITS        50u

/* How strays lie ahead of the stream. */
enum ahead {
    AHEAD_WRITERS,   /* each writer at its own distance: 1, 2, 3 times that of the case */
    AHEAD_SCATTERED, /* anywhere up to the distance */
    AHEAD_ANY,       /* as likely near as far */
};

struct case_of {
    const char *name;
    enum ahead ahead;
    unsigned tenths; /* of what a table holds, the distance */
    unsigned writers;
    unsigned burst;   /* strays in a row */
    unsigned of_1000; /* ids that are strays */
    unsigned after;   /* tables' worth of the stream before the first stray */
    unsigned least;   /* percent of what all tables hold that the stream gets at least */
};

static const struct case_of cases[] = {
    {"a writer six tables ahead, 1 %", AHEAD_WRITERS, 60, 1, 1, 10, 0, 40},
    {"a writer six tables ahead, 1 in 3", AHEAD_WRITERS, 60, 1, 1, 333, 2, 35},
    {"a writer half a table ahead, 1 %", AHEAD_WRITERS, 5, 1, 1, 10, 0, 30},
    {"a writer half a table ahead, 1 in 3", AHEAD_WRITERS, 5, 1, 1, 333, 2, 30},
    {"a writer just within a table, 10 %", AHEAD_WRITERS, 9, 1, 1, 100, 0, 20},
    {"a writer just above a table, 10 %", AHEAD_WRITERS, 12, 1, 1, 100, 2, 15},
    {"six writers, a table apart, 1 in 3", AHEAD_WRITERS, 10, 6, 1, 333, 2, 20},
    {"twelve writers, a third of a table apart, 1 in 3", AHEAD_WRITERS, 3, 12, 1, 333, 2, 20},
    {"three writers in bursts, 1 in 3", AHEAD_WRITERS, 15, 3, 100, 333, 2, 20},
    {"scattered over a table, 1 %", AHEAD_SCATTERED, 9, 1, 1, 10, 0, 25},
    {"scattered over a table, 1 in 3", AHEAD_SCATTERED, 9, 1, 1, 333, 2, 20},
    {"scattered over four tables, 1 in 3", AHEAD_SCATTERED, 40, 1, 1, 333, 2, 20},
    {"scattered over a hundred tables, 1 in 3", AHEAD_SCATTERED, 1000, 1, 1, 333, 2, 20},
    {"at any distance, 1 %", AHEAD_ANY, 0, 1, 1, 10, 0, 45},
    {"at any distance, 1 in 3", AHEAD_ANY, 0, 1, 1, 333, 2, 15},
};
#define CASES (sizeof(cases) / sizeof(*cases))

struct run {
    struct roll_stream stream;
    const struct case_of *of;
    unsigned burst; /* strays still to come in a row */
    unsigned writer;
    bool recycle;
    bool wrong;
};

static uint64_t below(struct run *r, uint64_t bound)
{
    return test_random_below(&r->stream.random, bound);
}

/* The id that the stream reaches after so many more tables' worth, in tenths. */
static uint64_t reached_after(const struct run *r, uint64_t tenths)
{
    const struct roll_stream *s = &r->stream;
    return roll_stream_id(s, s->next + s->model.roll.capacity * tenths / TENTHS);
}

static uint64_t stray_id(struct run *r)
{
    const struct roll_stream *s = &r->stream;
    uint64_t distance;
    switch (r->of->ahead) {
    case AHEAD_WRITERS:
        return reached_after(r, (uint64_t)(r->writer + 1) * r->of->tenths);
    case AHEAD_SCATTERED:
        distance = below(r, s->model.roll.capacity * r->of->tenths / TENTHS);
        return roll_stream_id(s, s->next + distance);
    default:
        distance = 1ull << (BITS_LEAST + below(r, BITS_MOST - BITS_LEAST));
        return roll_stream_ahead(s, distance + below(r, distance));
    }
}

static void put_stray(struct run *r)
{
    struct roll_stream *s = &r->stream;
    if (r->burst == 0) {
        r->burst = r->of->burst;
        r->writer = (unsigned)below(r, r->of->writers);
    }
    r->burst--;
    s->model.may_refuse = true;
    roll_stream_put(s, stray_id(r) + (r->of->burst - 1 - r->burst), below(r, s->next + 1));
    s->model.may_refuse = false;
}

static bool is_stray(struct run *r)
{
    const struct roll_stream *s = &r->stream;
    if (s->next < r->of->after * s->model.roll.capacity) {
        return false;
    }
    return r->burst > 0 || below(r, 1000u * r->of->burst) < r->of->of_1000;
}

/* One of the stream: refused only when no table is free. True: it was. */
static bool put_stream(struct run *r)
{
    struct roll_stream *s = &r->stream;
    struct roll_model *m = &s->model;
    uint64_t unlucky = m->unlucky;
    uint64_t refused = m->refused;
    m->may_refuse = true;
    roll_stream_put(s, roll_stream_id(s, s->next), s->next);
    s->next++;
    m->may_refuse = false;
    bool is_refused = m->refused - refused > m->unlucky - unlucky;
    if (is_refused && !r->recycle && roll_figure(&m->roll, "spare") > 0) {
        printf("%s: id %" PRIu64 ", the %" PRIu64 "th of the stream (%.2f tables' worth), is "
               "refused with %" PRIu64 " tables free\n",
               s->name, roll_stream_id(s, s->next - 1), s->next,
               (double)s->next / (double)m->roll.capacity, roll_figure(&m->roll, "spare"));
        r->wrong = true;
    }
    if (test_random_once_in(&s->random, READ_ONE_IN)) {
        roll_model_do(m, ENGINE_READ, below(r, m->count), 0);
    }
    return is_refused;
}

/* A log that takes all, and forgets it. */
static bool reserve(struct change_log *log)
{
    (void)log;
    return true;
}

static void put(struct change_log *log, uint32_t space, enum change_event event, const void *bytes,
                size_t length)
{
    (void)log;
    (void)space;
    (void)event;
    (void)bytes;
    (void)length;
}

static void change(struct change_log *log, const struct change *made)
{
    (void)log;
    (void)made;
}

/* False: it is not as it should be. logged: as with a data directory. */
static bool run_case(const struct roll_kind *kind, const struct roll_shape *shape,
                     const struct case_of *of, bool recycle, bool logged, uint64_t seed)
{
    static struct run run;
    static struct change_log log = {.reserve = reserve, .put = put, .change = change};
    struct run *r = &run;
    struct roll_model *m = &r->stream.model;
    unsigned tables = recycle ? TABLES_FEW : TABLES;
    memset(r, 0, sizeof(*r));
    r->of = of;
    r->recycle = recycle;
    roll_stream_init(&r->stream, kind, shape, tables, recycle, seed, of->name);
    m->roll.lazy = LAZY;
    if (logged) {
        row_set_log(m->roll.engine->row, &log);
    }
    m->unlucky_max = UNLUCKY_MAX;
    uint64_t all = tables * m->roll.capacity;
    bool refused = false;
    uint64_t lost = 0;
    while ((!refused || recycle) && r->stream.next < all) {
        if (is_stray(r)) {
            put_stray(r);
        } else {
            refused = put_stream(r);
            lost += refused;
        }
    }
    uint64_t percent = 100 * r->stream.next / all;
    printf(
        "%s%s: %" PRIu64 " %% of all tables hold, %" PRIu64 " tables opened, %" PRIu64 " refused\n",
        r->stream.name, recycle ? ", recycling" : "", percent, roll_opened(&m->roll), m->refused);
    fflush(stdout);
    roll_stream_fini(&r->stream);
    return recycle ? lost * RECYCLED_PART <= all : !r->wrong && percent >= of->least;
}

/*
 * Of random seeds. The first two: the stream was refused between a table's end and the next one.
 * The others: where a table and its one layer were full.
 */
static const struct {
    uint64_t seed;
    size_t i;
} found_before[] = {
    {392831694, 83},   /* phantom, random: six writers */
    {1259626334, 83},  /* the same */
    {2610572076, 97},  /* counter, seconds: three writers in bursts */
    {553037617, 105},  /* phantom, seconds: the same */
    {2880359396, 105}, /* the same */
    {2985748035, 105}, /* the same */
    {553037617, 147},  /* counter, random: scattered over a hundred tables */
    {2540321601, 147}, /* the same */
};

static void test_found_before(void **unused)
{
    (void)unused;
    for (size_t at = 0; at < sizeof(found_before) / sizeof(found_before[0]); at++) {
        size_t i = found_before[at].i;
        assert_true(run_case(&roll_kinds[i / ROLL_SHAPES % ROLL_KINDS],
                             &roll_shapes[i % ROLL_SHAPES], &cases[i / ROLL_KINDS / ROLL_SHAPES],
                             false, false, found_before[at].seed + i));
        assert_true(run_case(&roll_kinds[i / ROLL_SHAPES % ROLL_KINDS],
                             &roll_shapes[i % ROLL_SHAPES], &cases[i / ROLL_KINDS / ROLL_SHAPES],
                             false, true, found_before[at].seed + i));
    }
}

static void run_all(bool recycle, bool logged)
{
    uint64_t seed = test_long() ? test_seed() : SEED;
    unsigned wrong = 0;
    for (size_t i = 0; i < CASES * ROLL_KINDS * ROLL_SHAPES; i++) {
        const struct case_of *of = &cases[i / ROLL_KINDS / ROLL_SHAPES];
        if (!test_chosen(i)) {
            continue;
        }
        if (recycle && (of->ahead == AHEAD_ANY || of->of_1000 > RECYCLED_STRAYS)) {
            continue; /* more would recycle all there is; or one that opened in the same round */
        }
        const struct roll_kind *kind = &roll_kinds[i / ROLL_SHAPES % ROLL_KINDS];
        wrong += !run_case(kind, &roll_shapes[i % ROLL_SHAPES], of, recycle, logged, seed + i);
    }
    assert_int_equal(wrong, 0);
}

static void test_refusing(void **unused)
{
    (void)unused;
    run_all(false, false);
}

static void test_refusing_logged(void **unused)
{
    (void)unused;
    run_all(false, true);
}

static void test_recycling(void **unused)
{
    (void)unused;
    run_all(true, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_before),
        cmocka_unit_test(test_refusing),
        cmocka_unit_test(test_refusing_logged),
        cmocka_unit_test(test_recycling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
