/*
 * test_row_streams.c: streams of ids of several shapes roll through a row, with what goes wrong in
 * life: strays, typos, gaps, late ids. Afterwards three tables' worth of normal ids are there, each
 * once and where its range says. What a stream used of tables is printed.
 */
#include "row/row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/fake_row.h"
#include "tests/support/random.h"

#define CAPACITY     4000
#define TABLES       128
#define BEFORE       (CAPACITY * 3 / 2) /* ids before something happens */
#define AFTER        (CAPACITY * 3)
#define SHUFFLED     500
#define SECONDS      1700000000u
#define YEAR_SECONDS 31536000u
#define SEQUENCE     22 /* bits behind the time */
#define MACHINES     8
#define TYPOS        16
#define NEVER_MADE   ((uint64_t)1 << (SEQUENCE - 1)) /* a bit that no stream sets so early */
#define LEAST_HELD   ROW_CLUSTER                     /* a table with less was opened for strays */

/* The n-th id of a stream that has been shifted by so many years. */
struct shape {
    const char *name;
    uint64_t (*id)(uint64_t n, uint64_t years);
};

static uint64_t by_second(uint64_t n, uint64_t years, uint64_t rate)
{
    return (SECONDS + years * YEAR_SECONDS + n / rate) << SEQUENCE | n % rate;
}

static uint64_t dense(uint64_t n, uint64_t years)
{
    return 1 + n + years * 1000000000u;
}

static uint64_t second_10(uint64_t n, uint64_t years)
{
    return by_second(n, years, 10);
}

static uint64_t second_1000(uint64_t n, uint64_t years)
{
    return by_second(n, years, 1000);
}

static uint64_t second_100000(uint64_t n, uint64_t years)
{
    return by_second(n, years, 100000);
}

/* 2,000 a second, from eight machines in turn. */
static uint64_t millisecond(uint64_t n, uint64_t years)
{
    uint64_t ms = (SECONDS + years * YEAR_SECONDS) * 1000 + n / 2;
    return ms << SEQUENCE | (n % MACHINES) << 12 | (n & 1);
}

static const struct shape SHAPES[] = {
    {"dense", dense},
    {"seconds<<22, 10/s", second_10},
    {"seconds<<22, 1,000/s", second_1000},
    {"seconds<<22, 100,000/s", second_100000},
    {"milliseconds<<22", millisecond},
    {"dense, shuffled", dense},
};
#define SHAPE_COUNT    (sizeof(SHAPES) / sizeof(SHAPES[0]))
#define SHAPE_SHUFFLED (SHAPE_COUNT - 1)

/* A stream in the order it arrives. */
struct stream {
    const struct shape *shape;
    bool shuffled;
    struct test_random random;
    uint64_t years;
    uint64_t *normal; /* what was added of it */
    size_t count;
    uint64_t highest;
    uint64_t at; /* ids taken */
    uint64_t block[2 * SHUFFLED];
};

static void shuffle(struct stream *stream)
{
    for (size_t i = 0; i < 2 * SHUFFLED; i++) {
        stream->block[i] = stream->shape->id(stream->at + i, stream->years);
    }
    for (size_t i = 2 * SHUFFLED - 1; i > 0; i--) {
        size_t other = test_random_below(&stream->random, i + 1);
        uint64_t id = stream->block[i];
        stream->block[i] = stream->block[other];
        stream->block[other] = id;
    }
}

/* The next of the stream: in blocks of 1,000 at random, if shuffled. */
static uint64_t next_id(struct stream *stream)
{
    uint64_t id;
    if (stream->shuffled) {
        if (stream->at % (2 * SHUFFLED) == 0) {
            shuffle(stream);
        }
        id = stream->block[stream->at % (2 * SHUFFLED)];
    } else {
        id = stream->shape->id(stream->at, stream->years);
    }
    stream->at++;
    return id;
}

/* With a keeper that comes at once. */
static void add_normal(struct fake *rows, struct stream *stream, uint64_t id)
{
    assert_int_equal(fake_add(rows, id), FAKE_ADDED);
    if (row_asked(&rows->row)) {
        fake_maintain(rows);
    }
    stream->normal[stream->count++] = id;
    stream->highest = id > stream->highest ? id : stream->highest;
}

static void run(struct fake *rows, struct stream *stream, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        add_normal(rows, stream, next_id(stream));
    }
}

static void begin(struct fake *rows, struct stream *stream, size_t shape, uint64_t seed)
{
    struct row_config config = fake_config(TABLES, false);
    config.ids_once = seed & 1;
    fake_init(rows, &config, CAPACITY);
    *stream = (struct stream){.shape = &SHAPES[shape], .shuffled = shape == SHAPE_SHUFFLED};
    stream->random.state = seed;
    stream->normal = malloc((size_t)64 * CAPACITY * sizeof(*stream->normal));
    assert_non_null(stream->normal);
}

static void verify(const struct fake *rows, const struct stream *stream)
{
    fake_check(rows);
    uint64_t held = 0;
    for (size_t i = 0; i < rows->row.count; i++) {
        const struct row_table *table = rows->row.tables[i];
        held += table->count + (table->further ? table->further->count : 0);
    }
    assert_true(held >= stream->count);
    for (size_t i = 0; i < stream->count; i++) {
        assert_true(fake_has(rows, stream->normal[i]));
    }
}

static size_t tables_with_little(const struct fake *rows)
{
    size_t n = 0;
    for (size_t i = 0; i + 1 < rows->row.count; i++) {
        n += rows->row.tables[i]->count < LEAST_HELD;
    }
    return n;
}

static void report(const struct fake *rows, const struct stream *stream, const char *what)
{
    double worth = (double)stream->count / CAPACITY;
    size_t layers = fake_layers(rows);
    printf("%-24s %-34s %4.1f worth in %2zu tables, %zu layers: %.2f; apart %" PRIu64
           ", late room %.2f\n",
           stream->shuffled ? "dense, shuffled" : stream->shape->name, what, worth, rows->row.count,
           layers, (double)(rows->row.count + layers) / worth,
           rows->row.tables[rows->row.count - 1]->apart, rows->row.late_room);
}

static void finish(struct fake *rows, struct stream *stream, const char *what)
{
    run(rows, stream, AFTER);
    verify(rows, stream);
    report(rows, stream, what);
    free(stream->normal);
    fake_fini(rows);
}

static void test_normal(void **state)
{
    uint64_t seed = *(uint64_t *)*state;
    for (size_t shape = 0; shape < SHAPE_COUNT; shape++) {
        struct fake rows;
        struct stream stream;
        begin(&rows, &stream, shape, seed);
        run(&rows, &stream, (size_t)20 * CAPACITY);
        finish(&rows, &stream, "normal");
    }
}

/* -- one stray -- */

static const uint64_t AHEAD[] = {10, 1000000, 1000000000000u, ROW_ID_MAX};

enum moment { AT_FIRST, MID_TABLE, BEFORE_ROLL, MOMENTS };
static const char *const MOMENT_NAMES[MOMENTS] = {"first of all", "mid-table", "before a roll"};

static uint64_t ahead_of(uint64_t id, uint64_t ahead)
{
    return ahead > ROW_ID_MAX - id ? ROW_ID_MAX : id + ahead;
}

static void run_to(struct fake *rows, struct stream *stream, enum moment moment)
{
    if (moment == AT_FIRST) {
        return;
    }
    run(rows, stream, BEFORE);
    if (moment == MID_TABLE) {
        return;
    }
    const struct row_table *newest = rows->row.tables[rows->row.count - 1];
    while (rows->row.tables[rows->row.count - 1] == newest && newest->count + 1 < newest->fill) {
        run(rows, stream, 1);
    }
}

static void try_stray(size_t shape, enum moment moment, uint64_t ahead, uint64_t seed)
{
    struct fake rows;
    struct stream stream;
    begin(&rows, &stream, shape, seed);
    run_to(&rows, &stream, moment);
    size_t tables = rows.row.count;
    uint64_t from = stream.highest ? stream.highest : stream.shape->id(0, 0);
    uint64_t stray = ahead_of(from, ahead);
    assert_int_equal(fake_add(&rows, stray), FAKE_ADDED);
    fake_maintain(&rows);
    bool near = stray - from <= 2 * (uint64_t)SHUFFLED; /* one the stream brings itself */
    assert_true(moment == BEFORE_ROLL || rows.row.count == tables);
    run(&rows, &stream, near ? 0 : AFTER);
    if (!near) {
        assert_true(fake_has(&rows, stray));
        verify(&rows, &stream);
        assert_int_equal(tables_with_little(&rows), 0);
        char what[64];
        snprintf(what, sizeof(what), "stray +%.0e %s", (double)ahead, MOMENT_NAMES[moment]);
        report(&rows, &stream, what);
    }
    free(stream.normal);
    fake_fini(&rows);
}

/* A stray the stream reaches later: the id is there then. */
static void try_near_stray(size_t shape, enum moment moment, uint64_t ahead, uint64_t seed)
{
    struct fake rows;
    struct stream stream;
    begin(&rows, &stream, shape, seed);
    run_to(&rows, &stream, moment);
    uint64_t from = stream.highest ? stream.highest : stream.shape->id(0, 0);
    assert_int_equal(fake_add(&rows, from + ahead), FAKE_ADDED);
    for (size_t i = 0; i < AFTER; i++) {
        uint64_t id = next_id(&stream);
        if (id == from + ahead || fake_has(&rows, id)) {
            assert_int_equal(fake_add(&rows, id), FAKE_THERE);
        } else {
            add_normal(&rows, &stream, id);
        }
    }
    verify(&rows, &stream);
    assert_int_equal(tables_with_little(&rows), 0);
    free(stream.normal);
    fake_fini(&rows);
}

static void test_strays(void **state)
{
    uint64_t seed = *(uint64_t *)*state;
    for (size_t shape = 0; shape < SHAPE_COUNT; shape++) {
        for (enum moment moment = 0; moment < MOMENTS; moment++) {
            try_near_stray(shape, moment, AHEAD[0], seed);
            for (size_t i = 1; i < sizeof(AHEAD) / sizeof(AHEAD[0]); i++) {
                try_stray(shape, moment, AHEAD[i], seed);
            }
        }
    }
}

/* -- more of them -- */

/* Each some times as far away as the one before, with normal ids between. */
static void try_scattered(size_t shape, size_t before, size_t between, uint64_t seed)
{
    struct fake rows;
    struct stream stream;
    begin(&rows, &stream, shape, seed);
    run(&rows, &stream, before);
    for (unsigned i = 0; i < TYPOS; i++) {
        run(&rows, &stream, between);
        uint64_t ahead = (uint64_t)1000000 << (2 * i);
        ahead += test_random_below(&stream.random, ahead);
        uint64_t typo = ahead_of(stream.highest, ahead) | NEVER_MADE;
        assert_int_equal(fake_add(&rows, typo), FAKE_ADDED);
    }
    run(&rows, &stream, AFTER);
    assert_int_equal(tables_with_little(&rows), 0);
    finish(&rows, &stream, "sixteen scattered typos");
}

static void test_scattered_typos(void **state)
{
    uint64_t seed = *(uint64_t *)*state;
    for (size_t shape = 0; shape < SHAPE_COUNT; shape++) {
        try_scattered(shape, BEFORE, CAPACITY / TYPOS, seed);
        try_scattered(shape, 2 * SHUFFLED, CAPACITY / TYPOS, seed);
        try_scattered(shape, 100, 20, seed);
    }
}

static void test_clustered_typos(void **state)
{
    uint64_t seed = *(uint64_t *)*state;
    for (size_t shape = 0; shape < SHAPE_COUNT; shape++) {
        struct fake rows;
        struct stream stream;
        begin(&rows, &stream, shape, seed);
        run(&rows, &stream, BEFORE);
        uint64_t from = ahead_of(stream.highest, AHEAD[2]);
        size_t tables = rows.row.count;
        for (unsigned i = 0; i < TYPOS; i++) {
            assert_int_equal(fake_add(&rows, from + (uint64_t)3 * i), FAKE_ADDED);
        }
        fake_maintain(&rows);
        assert_int_equal(rows.row.count, tables + 1);
        assert_false(fake_is_apart(&rows, from));
        finish(&rows, &stream, "sixteen clustered typos");
    }
}

static void test_year(void **state)
{
    uint64_t seed = *(uint64_t *)*state;
    for (size_t shape = 0; shape < SHAPE_COUNT; shape++) {
        struct fake rows;
        struct stream stream;
        begin(&rows, &stream, shape, seed);
        run(&rows, &stream, BEFORE);
        stream.years = 1;
        stream.at += 2 * SHUFFLED - stream.at % (2 * SHUFFLED);
        finish(&rows, &stream, "a gap of a year");
    }
}

/* -- late ids -- */

#define LATE_ROUNDS (12 * CAPACITY)

/* Every other id arrives one to two tables' worth later. */
static void try_late(size_t shape, uint64_t seed)
{
    struct fake rows;
    struct stream stream;
    begin(&rows, &stream, shape, seed);
    uint64_t *late = calloc((size_t)LATE_ROUNDS + 2 * CAPACITY, sizeof(*late));
    assert_non_null(late);
    for (size_t i = 0; i < (size_t)LATE_ROUNDS + 2 * CAPACITY; i++) {
        if (late[i] != 0) {
            add_normal(&rows, &stream, late[i]);
        }
        uint64_t id = i < LATE_ROUNDS ? next_id(&stream) : 0;
        if (i >= LATE_ROUNDS) {
            continue;
        }
        if (test_random_once_in(&stream.random, 2)) {
            add_normal(&rows, &stream, id);
            continue;
        }
        size_t at = i + CAPACITY + test_random_below(&stream.random, CAPACITY);
        while (at < (size_t)LATE_ROUNDS + 2 * CAPACITY && late[at] != 0) {
            at++;
        }
        if (at < (size_t)LATE_ROUNDS + 2 * CAPACITY) {
            late[at] = id;
        }
    }
    free(late);
    assert_true(rows.row.late_room > 0.3);
    finish(&rows, &stream, "50 % late");
}

static void test_late(void **state)
{
    uint64_t seed = *(uint64_t *)*state;
    for (size_t shape = 0; shape < SHAPE_COUNT; shape++) {
        try_late(shape, seed);
    }
}

/* The lowest bit of a seed says whether the row knows that an id counts once. */
int main(void)
{
    uint64_t seed = test_seed() & ~(uint64_t)1;
    int failed = 0;
    for (unsigned once = 0; once < 2; once++, seed++) {
        void *state = &seed;
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate(test_normal, state),
            cmocka_unit_test_prestate(test_strays, state),
            cmocka_unit_test_prestate(test_scattered_typos, state),
            cmocka_unit_test_prestate(test_clustered_typos, state),
            cmocka_unit_test_prestate(test_year, state),
            cmocka_unit_test_prestate(test_late, state),
        };
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
