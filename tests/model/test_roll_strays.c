/*
 * test_roll_strays.c: ids that are not where they should be, on both engines, in four shapes of
 * ids, with and without their spacing given.
 *
 * A dry run of three and a half tables' worth of ids says when the row rolls. Each case runs the
 * same stream with something odd in it: one id far ahead (as the very first, in the middle of a
 * table, just before a roll), typos, a gap, late ids. Every answer must be the plain map's, nothing
 * may be refused, every id must be exact after three tables' worth of normal ones, and no table
 * may have been opened for a stray.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/model/roll_stream.h"

#define TABLES      24u
#define ROLLS       3u /* of the dry run */
#define LAZY        3u
#define APART       (1ull << 52) /* of scattered typos: no reach is as long */
#define SPARSER     1000u
#define SCATTERED   16u
#define FIRST_TYPOS 8u  /* one in 13: below a tenth of the sample */
#define FIRST_EVERY 12u /* things between them */
#define BULK_TYPOS  300u
#define CHAIN       15u
#define MORE_TABLES 4u /* than twice as many, where a case is twice as long */
#define CLOCK_EVERY 50u
#define LATE_TABLES 4u /* tables' worth of ids, half of them late */

/* What the dry run showed. */
struct plan {
    uint64_t total;        /* things put: three tables' worth and half of one */
    uint64_t rolls[ROLLS]; /* how many things had been put when the row rolled */
    uint64_t opened;       /* tables */
    uint64_t span;         /* of ids, of a full table */
};

struct run {
    struct roll_stream stream;
    const struct plan *plan;
    uint64_t more; /* tables the case may open beyond the dry run's */
};

typedef void case_fn(struct run *run, uint64_t distance);

static void stream_until(struct run *r, uint64_t end)
{
    roll_stream_until(&r->stream, end);
}

/* As much again as the dry run put. */
static void stream_more(struct run *r)
{
    roll_stream_until(&r->stream, r->stream.next + r->plan->total);
    r->more = r->plan->opened + MORE_TABLES;
}

static void stray(struct run *r, uint64_t distance)
{
    roll_stream_stray(&r->stream, distance);
}

/* ---- cases ---- */

static void case_first(struct run *r, uint64_t distance)
{
    stray(r, distance);
    stream_until(r, r->plan->total);
}

static void case_middle(struct run *r, uint64_t distance)
{
    stream_until(r, r->plan->rolls[0] / 2);
    stray(r, distance);
    stream_until(r, r->plan->total);
}

/* The last things before the row rolls, and the first after it has. */
static void case_before_roll(struct run *r, uint64_t distance)
{
    stream_until(r, r->plan->rolls[1] - 2);
    stray(r, distance);
    roll_stream_one(&r->stream);
    stray(r, distance + 1);
    roll_stream_one(&r->stream);
    stray(r, distance + 2);
    stream_until(r, r->plan->total);
}

/* One in the middle of each table, then of its reach. */
static void case_each_table(struct run *r, uint64_t distance)
{
    for (unsigned i = 0; i < ROLLS; i++) {
        stream_until(r, r->plan->rolls[i] - r->plan->rolls[0] / 2);
        stray(r, distance);
    }
    stream_until(r, r->plan->total);
}

/* Typos far from each other and from all else, with things of the stream between. */
static void scatter(struct run *r, unsigned typos, uint64_t every)
{
    for (unsigned i = 1; i <= typos; i++) {
        stray(r, i * APART + test_random_below(&r->stream.random, APART / 4));
        stream_until(r, r->stream.next + every);
    }
}

static void case_scattered(struct run *r, uint64_t distance)
{
    (void)distance;
    stream_until(r, r->plan->rolls[0] / 2);
    scatter(r, SCATTERED, 100);
    stream_until(r, r->plan->total);
}

static void case_scattered_first(struct run *r, uint64_t distance)
{
    (void)distance;
    scatter(r, FIRST_TYPOS, FIRST_EVERY);
    stream_until(r, r->plan->total);
}

/* So many that the row believes them, if few others come between. */
static void case_bulk(struct run *r, uint64_t every)
{
    stream_until(r, r->plan->rolls[0] / 2);
    r->stream.model.may_refuse = true; /* there may be no room for so many */
    scatter(r, BULK_TYPOS, every);
    r->stream.model.may_refuse = false;
    stream_more(r);
}

/* Each believable after the one before: a table may be told to wait for more than it holds. */
static void case_chain(struct run *r, uint64_t times)
{
    uint64_t first = roll_stream_id(&r->stream, 0);
    r->stream.model.may_refuse = true;
    stream_until(r, r->plan->rolls[0] / 3);
    for (unsigned i = 0; i < CHAIN; i++) {
        uint64_t spanned = roll_figure(&r->stream.model.roll, "frontier") - first;
        stray(r, spanned < ROW_ID_MAX / times ? spanned * times : ROW_ID_MAX);
        stream_until(r, r->stream.next + 10);
    }
    stream_more(r);
}

/* One of many machines has its clock that far ahead. */
static void case_clock(struct run *r, uint64_t distance)
{
    r->stream.model.may_refuse = distance > r->plan->span; /* likewise */
    while (r->stream.next < 2 * r->plan->total) {
        stray(r, distance);
        stream_until(r, r->stream.next + CLOCK_EVERY);
    }
    /* Those it waits in; and what lies between two that it opened may take one more. */
    r->more = 2 * r->plan->opened + MORE_TABLES + distance / r->plan->span + 1;
}

static void cluster(struct run *r, uint64_t distance, uint64_t every)
{
    uint64_t first = roll_stream_ahead(&r->stream, distance);
    bool at_end = first > ROW_ID_MAX - ROW_CLUSTER;
    for (unsigned i = 0; i < ROW_CLUSTER; i++) {
        roll_stream_put(&r->stream, at_end ? ROW_ID_MAX - i : first + i, 0);
        stream_until(r, r->stream.next + every);
    }
}

static void case_clustered(struct run *r, uint64_t distance)
{
    stream_until(r, r->plan->rolls[0] / 2);
    cluster(r, distance, 1);
    stream_more(r);
}

static void case_clustered_first(struct run *r, uint64_t distance)
{
    cluster(r, distance, FIRST_EVERY);
    stream_until(r, r->plan->total);
    r->more = 2;
}

static void case_clustered_roll(struct run *r, uint64_t distance)
{
    stream_until(r, r->plan->rolls[1] - ROW_CLUSTER / 2);
    cluster(r, distance, 1);
    stream_more(r);
}

/* Nothing for a year, then on as before. */
static void case_gap(struct run *r, uint64_t part)
{
    stream_until(r, r->plan->rolls[0] / part);
    r->stream.offset = r->stream.shape->year;
    stream_more(r);
}

/* part: of the first table; 0: when the density of ids is known. */
static void case_sparser(struct run *r, uint64_t part)
{
    stream_until(r, part ? r->plan->rolls[0] / part : r->plan->rolls[1] + r->plan->rolls[0] / 2);
    roll_stream_set_stride(&r->stream, SPARSER);
    stream_more(r);
}

static void case_denser(struct run *r, uint64_t part)
{
    roll_stream_set_stride(&r->stream, SPARSER);
    stream_until(r, r->plan->rolls[0] / part);
    roll_stream_set_stride(&r->stream, 1);
    stream_more(r);
}

struct arrival {
    uint64_t at, n;
};

static int by_time(const void *a, const void *b)
{
    const struct arrival *x = a;
    const struct arrival *y = b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : (x->n < y->n ? -1 : x->n > y->n);
}

/* The order in which ids come when half of them are 1.0 to 1.5 tables' worth late. */
static struct arrival *make_arrivals(struct run *r, uint64_t count, uint64_t full)
{
    struct arrival *arrivals = memory_zalloc(count * sizeof(*arrivals));
    for (uint64_t i = 0; i < count; i++) {
        bool late = test_random_once_in(&r->stream.random, 2);
        uint64_t delay = late ? full + test_random_below(&r->stream.random, full / 2) : 0;
        arrivals[i] = (struct arrival){i + delay, i};
    }
    qsort(arrivals, count, sizeof(*arrivals), by_time);
    return arrivals;
}

static void case_late(struct run *r, uint64_t distance)
{
    struct roll_stream *s = &r->stream;
    unsigned members = roll_stream_members(s);
    uint64_t full = (r->plan->rolls[1] - r->plan->rolls[0]) / members; /* ids of a table */
    uint64_t count = LATE_TABLES * full;
    struct arrival *arrivals = make_arrivals(r, count, full);
    (void)distance;
    for (uint64_t i = 0; i < count * members; i++) {
        uint64_t n = arrivals[i / members].n * members + i % members;
        roll_stream_put(s, roll_stream_id(s, n), n);
    }
    free(arrivals);
    s->next = count * members;
    roll_model_compare(&s->model);
    stream_more(r);
}

/* distance: ids; or, with `spans`, tenths of a full table's span. */
static const struct {
    const char *name;
    case_fn *run;
    uint64_t distance;
    bool spans;
} cases[] = {
    {"the first, 10 ahead", case_first, 10, false},
    {"the first, 10^6 ahead", case_first, 1000000, false},
    {"the first, 10^12 ahead", case_first, 1000000000000, false},
    {"the first, the largest", case_first, INT64_MAX, false},
    {"in a table, 10 ahead", case_middle, 10, false},
    {"in a table, 10^6 ahead", case_middle, 1000000, false},
    {"in a table, 10^12 ahead", case_middle, 1000000000000, false},
    {"in a table, the largest", case_middle, INT64_MAX, false},
    {"before a roll, 10 ahead", case_before_roll, 10, false},
    {"before a roll, 10^6 ahead", case_before_roll, 1000000, false},
    {"before a roll, 10^12 ahead", case_before_roll, 1000000000000, false},
    {"before a roll, the largest", case_before_roll, INT64_MAX, false},
    {"in each table, half a table ahead", case_each_table, 5, true},
    {"in each table, most of a table ahead", case_each_table, 9, true},
    {"in each table, a table and a half ahead", case_each_table, 15, true},
    {"in each table, three and a half ahead", case_each_table, 35, true},
    {"in each table, eight ahead", case_each_table, 80, true},
    {"sixteen typos", case_scattered, 0, false},
    {"a typo in thirteen, first", case_scattered_first, 0, false},
    {"a chain of typos", case_chain, 1, false},
    {"a longer chain of typos", case_chain, 4, false},
    {"a clock half a table ahead", case_clock, 5, true},
    {"a clock most of a table ahead", case_clock, 9, true},
    {"a clock five tables ahead", case_clock, 50, true},
    {"three hundred typos", case_bulk, 10, false},
    {"three hundred typos, one in three", case_bulk, 2, false},
    {"a cluster, a table ahead", case_clustered, 20, true},
    {"a cluster, 10^12 ahead", case_clustered, 1000000000000, false},
    {"a cluster at the end", case_clustered, INT64_MAX, false},
    {"a cluster first", case_clustered_first, 1000000000000, false},
    {"a cluster before a roll", case_clustered_roll, 1000000000000, false},
    {"a year's gap", case_gap, 2, false},
    {"a year's gap in the first ids", case_gap, 100, false},
    {"a sparser stream", case_sparser, 2, false},
    {"a sparser stream from the first ids on", case_sparser, 100, false},
    {"a sparser stream after two rolls", case_sparser, 0, false},
    {"a denser stream", case_denser, 2, false},
    {"half of them late", case_late, 0, false},
};

#define CASES (sizeof(cases) / sizeof(*cases))

/* ---- run ---- */

static void start(struct run *r, const struct roll_kind *kind, const struct roll_shape *shape,
                  const struct plan *plan, uint64_t seed, const char *name)
{
    memset(r, 0, sizeof(*r));
    r->plan = plan;
    roll_stream_init(&r->stream, kind, shape, TABLES, false, seed, name);
    r->stream.model.roll.lazy = LAZY;
}

static void until_maintained(struct run *r)
{
    uint64_t maintained = r->stream.model.roll.maintained;
    uint64_t end = r->stream.next + 100 * r->stream.model.roll.capacity;
    while (r->stream.model.roll.maintained == maintained && r->stream.next < end) {
        roll_stream_one(&r->stream);
    }
}

static void make_plan(const struct roll_kind *kind, const struct roll_shape *shape,
                      struct plan *plan, uint64_t seed)
{
    static struct run run;
    struct run *r = &run;
    start(r, kind, shape, plan, seed, "nothing odd");
    for (unsigned i = 0; i < ROLLS; i++) {
        while (roll_opened(&r->stream.model.roll) < i + 2) {
            assert_true(r->stream.next < 100 * r->stream.model.roll.capacity);
            until_maintained(r);
        }
        plan->rolls[i] = r->stream.next;
    }
    plan->total = r->stream.next + r->stream.model.roll.capacity / 2;
    plan->span =
        roll_stream_id(&r->stream, plan->rolls[1]) - roll_stream_id(&r->stream, plan->rolls[0]);
    stream_until(r, plan->total);
    roll_model_compare(&r->stream.model);
    plan->opened = roll_opened(&r->stream.model.roll);
    printf("%s, %s: rolls after %" PRIu64 ", %" PRIu64 ", %" PRIu64 "; capacity %" PRIu64 "\n",
           kind->name, shape->name, plan->rolls[0], plan->rolls[1], plan->rolls[2],
           r->stream.model.roll.capacity);
    fflush(stdout);
    roll_stream_fini(&r->stream);
}

static void run_case(const struct roll_kind *kind, const struct roll_shape *shape,
                     const struct plan *plan, size_t number, uint64_t seed)
{
    static struct run run;
    struct run *r = &run;
    uint64_t distance = cases[number].distance;
    if (cases[number].spans) {
        distance = plan->span / 10 * distance;
    }
    start(r, kind, shape, plan, seed, cases[number].name);
    cases[number].run(r, distance);
    if (r->stream.model.refused) {
        printf("%s: %" PRIu64 " of %" PRIu64 " refused\n", r->stream.name, r->stream.model.refused,
               r->stream.model.done);
    }
    roll_settle(&r->stream.model.roll);
    uint64_t opened = roll_opened(&r->stream.model.roll);
    if (opened > plan->opened + r->more) {
        roll_print(&r->stream.model.roll);
        fail_msg("%s: %" PRIu64 " tables opened, without it %" PRIu64, r->stream.name, opened,
                 plan->opened);
    }
    roll_stream_fini(&r->stream);
}

static void test_strays(void **unused)
{
    (void)unused;
    uint64_t seed = test_seed();
    for (size_t k = 0; k < ROLL_KINDS; k++) {
        for (size_t s = 0; s < ROLL_SHAPES; s++) {
            struct plan plan;
            make_plan(&roll_kinds[k], &roll_shapes[s], &plan, seed);
            for (size_t i = 0; i < CASES; i++) {
                run_case(&roll_kinds[k], &roll_shapes[s], &plan, i, seed + i);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
