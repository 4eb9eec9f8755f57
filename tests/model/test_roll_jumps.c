/*
 * test_roll_jumps.c: strays in numbers, for as long as the ids roll: clusters of them that open
 * tables of their own, and single ones that never end. Normal ids go on, and no more is forgotten
 * than the tables for strays cost.
 *
 * Every answer must be the plain map's. What of a stream is exact at the end is compared with the
 * same stream without strays.
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

#define TABLES       5u /* four and a spare one */
#define TABLES_LEAST 3u
#define TABLES_KEPT  8u /* without recycling */
#define UNLUCKY_MAX  3  /* of some 10^5 ids */
#define LAZY         3u
#define WORTH        10u /* tables' worth of things: of a stream after clusters */
#define WORTH_LONG   30u /* of one with single strays */
#define CLUSTERS     4u
#define CLUSTER      17u
#define FAR_BITS     60u /* of the distance of the first cluster */
#define NEAR_BITS    46u /* single strays: no table spans so much */
#define MOST_BITS    62u
#define LOOKS        10u /* at what is exact, towards the end */
#define GAP_WORTH    6u
#define LATE         200u

struct run {
    struct roll_stream stream;
    uint64_t first; /* thing: of the stream that counts */
    uint64_t exact; /* of the newest, on average */
};

static void start(struct run *r, size_t kind, size_t shape, unsigned tables, bool recycle,
                  uint64_t seed, const char *name)
{
    memset(r, 0, sizeof(*r));
    roll_stream_init(&r->stream, &roll_kinds[kind], &roll_shapes[shape], tables, recycle, seed,
                     name);
    r->stream.model.roll.lazy = LAZY;
    r->stream.model.unlucky_max = UNLUCKY_MAX;
}

static uint64_t capacity(const struct run *r)
{
    return r->stream.model.roll.capacity;
}

/* A stray may be refused, for want of room apart; one of the stream never. */
static void put_stray(struct run *r, uint64_t id)
{
    r->stream.model.may_refuse = true;
    roll_stream_put(&r->stream, id, 0);
    r->stream.model.may_refuse = false;
}

/* Those of the stream's newest that are exact, without one that is not between them. */
static uint64_t newest_exact(struct run *r)
{
    struct roll_stream *s = &r->stream;
    uint64_t n = s->next;
    while (n > r->first) {
        uint64_t id = roll_stream_id(s, n - 1);
        unsigned member = (unsigned)((n - 1) % roll_stream_members(s));
        const struct roll_item *item = &s->model.items[roll_model_item(&s->model, id, member)];
        if (id < s->model.oldest || (!item->there && !item->unlucky)) {
            break;
        }
        n--;
    }
    return s->next - n;
}

/* Compares all, and says how much of the stream is exact. */
static uint64_t finish(struct run *r)
{
    struct roll_model *m = &r->stream.model;
    roll_settle(&m->roll);
    roll_model_compare(m);
    uint64_t exact = r->exact ? r->exact : newest_exact(r);
    printf("%s: %" PRIu64 " tables opened, %.2f tables' worth exact, %" PRIu64 " gone, %" PRIu64
           " strays refused\n",
           r->stream.name, roll_opened(&m->roll), (double)exact / (double)capacity(r), m->gone,
           m->refused);
    fflush(stdout);
    roll_stream_fini(&r->stream);
    return exact;
}

static void put_cluster(struct run *r, unsigned number)
{
    uint64_t first = roll_stream_ahead(&r->stream, (uint64_t)1 << (FAR_BITS - number));
    for (uint64_t i = 0; i < CLUSTER; i++) {
        put_stray(r, first + i);
    }
}

/* ---- clusters ---- */

/* between: things of the stream after each cluster of so many. */
static uint64_t run_clusters(size_t i, unsigned tables, unsigned clusters, uint64_t between,
                             uint64_t seed)
{
    static struct run run;
    struct run *r = &run;
    start(r, i % ROLL_KINDS, i / ROLL_KINDS, tables, true, seed,
          clusters ? "clusters" : "no clusters");
    roll_stream_until(&r->stream, capacity(r) / 2);
    for (unsigned c = 0; c < clusters; c++) {
        put_cluster(r, c);
        roll_stream_until(&r->stream, r->stream.next + between);
    }
    roll_stream_until(&r->stream, r->stream.next + WORTH * capacity(r));
    return finish(r);
}

static void test_clusters(void **unused)
{
    (void)unused;
    uint64_t seed = test_seed();
    uint64_t number = 0;
    for (size_t i = 0; i < ROLL_KINDS * ROLL_SHAPES; i++) {
        for (unsigned tables = TABLES_LEAST; tables <= TABLES; tables += 2) {
            if (!test_chosen(number++)) {
                continue;
            }
            uint64_t without = run_clusters(i, tables, 0, 0, seed + i);
            assert_true(run_clusters(i, tables, CLUSTERS, 0, seed + i) >= without / 2);
            assert_true(run_clusters(i, tables, CLUSTERS, 300, seed + i) >= without / 2);
        }
    }
}

/* ---- a gap, while tables for strays are there ---- */

static void run_gap(size_t kind, size_t shape, unsigned tables, bool below, uint64_t seed)
{
    static struct run run;
    struct run *r = &run;
    start(r, kind, shape, tables, true, seed, below ? "a gap below clusters" : "a gap above them");
    roll_stream_until(&r->stream, capacity(r) / 2);
    uint64_t year = r->stream.shape->year;
    for (unsigned i = 0; i < CLUSTERS; i++) {
        uint64_t ahead = below ? 2 * year + i * (year / 8) : year / 8 * (i + 1);
        for (uint64_t j = 0; j < CLUSTER; j++) {
            put_stray(r, roll_stream_ahead(&r->stream, ahead + j));
        }
    }
    r->stream.offset = year;
    r->first = r->stream.next;
    uint64_t opened = roll_opened(&r->stream.model.roll);
    roll_stream_until(&r->stream, r->stream.next + GAP_WORTH * capacity(r));
    assert_true(roll_opened(&r->stream.model.roll) >= opened + GAP_WORTH);
    assert_true(finish(r) >= (tables - 2) * capacity(r) / 2);
}

static void test_gap(void **unused)
{
    (void)unused;
    uint64_t seed = test_seed();
    uint64_t number = 0;
    for (size_t i = 0; i < ROLL_KINDS * ROLL_SHAPES; i++) {
        for (unsigned tables = TABLES_LEAST; tables <= TABLES; tables += 2) {
            if (test_chosen(number++)) {
                run_gap(i % ROLL_KINDS, i / ROLL_KINDS, tables, false, seed + i);
            }
            if (test_chosen(number++)) {
                run_gap(i % ROLL_KINDS, i / ROLL_KINDS, tables, true, seed + i);
            }
        }
    }
}

/* ---- single ones ---- */

enum far { FAR_NONE, FAR_UNIFORM, FAR_LOG, FAR_KINDS };
static const char *const far_names[FAR_KINDS] = {"no strays", "uniform strays",
                                                 "log-uniform strays"};

static void put_far(struct run *r, enum far far)
{
    struct test_random *random = &r->stream.random;
    unsigned bits = MOST_BITS;
    if (far == FAR_LOG) {
        bits = NEAR_BITS + (unsigned)test_random_below(random, MOST_BITS - NEAR_BITS + 1);
    }
    uint64_t distance = test_random_below(random, (uint64_t)1 << bits);
    put_stray(r, roll_stream_ahead(&r->stream, distance));
}

static void run_far(struct run *r, enum far far, unsigned every, uint64_t end)
{
    while (r->stream.next < end) {
        roll_stream_until(&r->stream, r->stream.next + every);
        if (far != FAR_NONE) {
            put_far(r, far);
        }
    }
}

static uint64_t run_single(size_t kind, size_t shape, enum far far, unsigned every, uint64_t seed)
{
    static struct run run;
    struct run *r = &run;
    char name[64];
    snprintf(name, sizeof(name), "%s, one in %u", far_names[far], every);
    start(r, kind, shape, TABLES, true, seed, name);
    run_far(r, far, every, (WORTH_LONG - LOOKS) * capacity(r));
    for (unsigned i = 0; i < LOOKS; i++) { /* as tables come and go */
        run_far(r, far, every, r->stream.next + capacity(r) / 7 * 6);
        r->exact += newest_exact(r) / LOOKS;
    }
    return finish(r);
}

static const unsigned EVERY[] = {100, 300};

static void test_single(void **unused)
{
    (void)unused;
    uint64_t seed = test_seed();
    for (size_t i = 0; i < ROLL_KINDS * ROLL_SHAPES; i++) {
        for (size_t e = 0; e < sizeof(EVERY) / sizeof(EVERY[0]); e++) {
            if (!test_chosen(2 * i + e)) {
                continue;
            }
            uint64_t without = run_single(i % ROLL_KINDS, i / ROLL_KINDS, FAR_NONE, EVERY[e], seed);
            for (enum far far = FAR_UNIFORM; far < FAR_KINDS; far++) {
                uint64_t exact = run_single(i % ROLL_KINDS, i / ROLL_KINDS, far, EVERY[e], seed);
                assert_true(exact >= without / 4 * 3);
            }
        }
    }
}

/* Without recycling: half of all there is room for is taken before anything is refused. */
static void test_single_refusing(void **unused)
{
    (void)unused;
    static struct run run;
    struct run *r = &run;
    uint64_t seed = test_seed();
    for (size_t i = 0; i < ROLL_KINDS * ROLL_SHAPES * FAR_KINDS; i++) {
        enum far far = (enum far)(i / ROLL_KINDS / ROLL_SHAPES);
        for (size_t e = 0; e < sizeof(EVERY) / sizeof(EVERY[0]); e++) {
            if (!test_chosen(2 * i + e)) {
                continue;
            }
            start(r, i % ROLL_KINDS, i / ROLL_KINDS % ROLL_SHAPES, TABLES_KEPT, false, seed,
                  far_names[far]);
            uint64_t end = TABLES_KEPT * capacity(r) / 2;
            run_far(r, far, EVERY[e], end);
            assert_true(finish(r) >= end);
        }
    }
}

/* Four clusters and more: at most half of the tables are for them. */
static void test_clusters_refusing(void **unused)
{
    (void)unused;
    static struct run run;
    struct run *r = &run;
    for (size_t i = 0; i < ROLL_KINDS * ROLL_SHAPES; i++) {
        start(r, i % ROLL_KINDS, i / ROLL_KINDS, TABLES_KEPT, false, test_seed(),
              "clusters, refusing");
        roll_stream_until(&r->stream, capacity(r) / 4);
        uint64_t opened = roll_opened(&r->stream.model.roll);
        for (unsigned c = 0; c < TABLES_KEPT - 1; c++) {
            put_cluster(r, c);
        }
        uint64_t more = roll_opened(&r->stream.model.roll) - opened;
        assert_in_range(more, TABLES_KEPT / 2 - 1, TABLES_KEPT / 2); /* a step is a jump as well */
        uint64_t end = TABLES_KEPT / 2 * capacity(r) / 2;
        roll_stream_until(&r->stream, end);
        assert_true(finish(r) >= end);
    }
}

/* Puts a thing of the stream that is not its next one. */
static void put_at(struct run *r, uint64_t n)
{
    roll_stream_put(&r->stream, roll_stream_id(&r->stream, n), n);
}

/*
 * A second stream, above a slow one, whose first ids are recycled. What still comes for those is
 * answered as below, though the table of the slow one reaches so far; they are created again when
 * that stream comes there.
 */
static void run_dropped(struct run *r)
{
    struct roll_stream *s = &r->stream;
    uint64_t from = 2 * capacity(r) + capacity(r) / 8; /* of the second one */
    uint64_t second = from;
    roll_stream_until(s, capacity(r) / 6);
    for (; second < from + capacity(r) / 2; second++) {
        put_at(r, second);
    }
    while (roll_opened(&s->model.roll) < 3) {
        roll_stream_one(s);
    }
    roll_stream_until(s, s->next + capacity(r) / 16);
    size_t item = roll_model_item(&s->model, roll_stream_id(s, from), 0);
    while (!s->model.items[item].dropped) {
        put_at(r, second++);
        assert_true(second < TABLES_KEPT * capacity(r));
    }
    uint64_t opened = roll_opened(&s->model.roll);
    for (unsigned i = 0; i < LATE; i++) {
        put_at(r, from + i);
        roll_stream_one(s);
    }
    assert_true(s->model.items[item].dropped);
    assert_int_equal(roll_opened(&s->model.roll), opened);
    roll_stream_until(s, from + LATE);
    assert_true(roll_model_item(&s->model, roll_stream_id(s, from), 0) == item);
    assert_true(s->model.items[item].there);
}

static void test_late_to_dropped(void **unused)
{
    (void)unused;
    static struct run run;
    struct run *r = &run;
    for (size_t i = 0; i < ROLL_KINDS; i++) { /* of dense ids: that table reaches so far */
        if (!roll_kinds[i].phantom) {
            start(r, i, 0, TABLES + 1, true, test_seed(), "late to dropped");
            run_dropped(r);
            (void)finish(r);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_single),
        cmocka_unit_test(test_single_refusing),
        cmocka_unit_test(test_clusters_refusing),
        cmocka_unit_test(test_late_to_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
