/* Phantoms on a row of tables: rolling, recycling, refusing, strays, layers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "row/row.h"
#include "row/row_data.h"
#include "tests/support/phantoms.h"
#include "tests/support/random.h"

#define MEMBERS         20u /* of an id that rolls by */
#define TABLES          5u
#define WORTH           10u /* tables' worth of pairs */
#define FOREIGN         1000000u
#define ALLOWED         1.1 /* times the target */
#define SHOWN_WITHIN    0.1
#define HOT_IDS         100u
#define HALF_WRONG      0.5
#define STRAY_MEMBERS   3u
#define STRAY_FOREIGN   200u
#define REACHED_MEMBERS 40u
#define RANDOM_STEPS    100000u
#define RANDOM_PAIRS    200u
#define RANDOM_WRONG    3 /* foreign pairs taken for there, of 200 at one in a million */
#define RECYCLED_WITHIN 0.99

struct space {
    struct engine *engine;
    uint64_t capacity; /* of one table */
    unsigned shift;    /* the n-th id is n << shift */
};

static struct phantom_config row_config(unsigned tables, double wrong)
{
    struct phantom_config config = phantoms_config(true);
    config.row.tables = tables;
    config.false_positives = wrong;
    return config;
}

static struct space open_space(const struct phantom_config *config)
{
    struct phantom_size size;
    phantom_config_size(config, &size);
    return (struct space){.engine = phantoms_create(config),
                          .capacity = size.members / size.tables};
}

static struct engine_op run(struct space *space, enum engine_verb verb, uint64_t id, char kind,
                            uint64_t number)
{
    char member[32];
    struct phantoms_call call;
    snprintf(member, sizeof(member), "%c%llu", kind, (unsigned long long)number);
    phantoms_call_init(&call, verb, id, member, "1");
    (void)phantoms_run(space->engine, &call, change_sink_null());
    call.op.member = call.op.text = call.op.value = NULL; /* they end here */
    return call.op;
}

static bool holds(struct space *space, uint64_t id, char kind, uint64_t number)
{
    return run(space, ENGINE_READ, id, kind, number).status == ENGINE_DONE;
}

static void add(struct space *space, uint64_t id, uint64_t number)
{
    assert_int_equal(run(space, ENGINE_SET, id, 'u', number).status, ENGINE_DONE);
}

/* Sets the members 0 .. MEMBERS - 1 of ids first .. end - 1, an id after the other. */
static void roll(struct space *space, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++) {
        for (unsigned m = 0; m < MEMBERS; m++) {
            add(space, i << space->shift, m);
        }
    }
}

/* All of them are there but those of a first part, which is recycled. Returns its end. */
static uint64_t check_rolled(struct space *space, uint64_t first, uint64_t end)
{
    uint64_t below = first;
    for (uint64_t i = first; i < end; i++) {
        for (unsigned m = 0; m < MEMBERS; m++) {
            struct engine_op op = run(space, ENGINE_READ, i << space->shift, 'u', m);
            if (op.status == ENGINE_DONE) {
                continue;
            }
            assert_int_equal(op.status, ENGINE_ABSENT);
            assert_int_equal(op.miss, ENGINE_MISS_BELOW);
            assert_true(i <= below);
            below = i + 1;
        }
    }
    return below;
}

/* The share of `asked` foreign members at ids first .. end - 1 that are said to be there. */
static double measure_wrong(struct space *space, uint64_t first, uint64_t end, uint64_t asked)
{
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < asked; i++) {
        wrong += holds(space, (first + i % (end - first)) << space->shift, 'x', i);
    }
    return (double)wrong / (double)asked;
}

static void test_roll_and_recycle(void **unused)
{
    (void)unused;
    static const unsigned shifts[] = {0, 22};
    for (size_t s = 0; s < sizeof(shifts) / sizeof(shifts[0]); s++) {
        struct phantom_config config = row_config(TABLES, 0.01);
        config.row.recycle = true;
        struct space space = open_space(&config);
        space.shift = shifts[s];
        uint64_t end = WORTH * space.capacity / MEMBERS;
        for (uint64_t at = 0; at < end; at += end / 50) {
            roll(&space, at, at + end / 50 < end ? at + end / 50 : end);
            phantom_check(space.engine);
        }
        uint64_t present = check_rolled(&space, 0, end);
        assert_true(present > end / 4 && present < end);
        assert_true(phantoms_tables(space.engine) == TABLES - 1);
        /* Adds of what was wrongly said to be there already are not counted. */
        uint64_t recycled = engine_recycled(space.engine);
        assert_true(recycled <= present * MEMBERS);
        assert_true((double)recycled > RECYCLED_WITHIN * (double)(present * MEMBERS));
        double wrong = measure_wrong(&space, present, end, test_scaled(FOREIGN));
        printf("ids << %u: %llu of %llu recycled, wrong %.5f\n", shifts[s],
               (unsigned long long)present, (unsigned long long)end, wrong);
        assert_true(wrong <= ALLOWED * config.false_positives);
        phantoms_destroy(space.engine);
    }
}

/* Half of all questions about foreign members are answered wrongly: still nothing is denied. */
static void test_nothing_is_denied(void **unused)
{
    (void)unused;
    struct phantom_config config = row_config(TABLES, HALF_WRONG);
    config.row.recycle = true;
    struct space space = open_space(&config);
    uint64_t end = WORTH * space.capacity / MEMBERS;
    /* Each id comes with one member now, and the others when the ids behind it have come. */
    for (uint64_t i = 0; i < end; i++) {
        add(&space, i, 0);
        for (unsigned m = 1; m < MEMBERS && i >= m * 3; m++) {
            struct engine_op op = run(&space, ENGINE_SET, i - m * 3, 'u', m);
            assert_true(op.status == ENGINE_DONE || op.error == ENGINE_E_ID_BELOW);
        }
    }
    phantom_check(space.engine);
    assert_true(check_rolled(&space, 0, end - MEMBERS * 3) < end);
    phantoms_destroy(space.engine);
}

static void test_below(void **unused)
{
    (void)unused;
    struct phantom_config config = row_config(3, 0.001);
    config.row.recycle = true;
    struct space space = open_space(&config);
    roll(&space, 0, 3 * space.capacity / MEMBERS);
    struct engine_op op = run(&space, ENGINE_READ, 0, 'u', 0);
    assert_true(op.status == ENGINE_ABSENT && op.miss == ENGINE_MISS_BELOW);
    op = run(&space, ENGINE_TOUCH, 0, 'u', 0);
    assert_true(op.status == ENGINE_ABSENT && op.miss == ENGINE_MISS_BELOW);
    assert_int_equal(run(&space, ENGINE_SET, 0, 'u', 0).error, ENGINE_E_ID_BELOW);
    assert_int_equal(run(&space, ENGINE_ADD, 0, 'u', 0).error, ENGINE_E_ID_BELOW);
    assert_int_equal(run(&space, ENGINE_REPLACE, 0, 'u', 0).status, ENGINE_ABSENT);
    assert_int_equal(run(&space, ENGINE_CAS, 0, 'u', 0).status, ENGINE_ABSENT);
    assert_int_equal(run(&space, ENGINE_DELETE, 0, 'u', 0).status, ENGINE_ABSENT);
    struct phantoms_call call;
    phantoms_call_init(&call, ENGINE_SET, 0, "u0", "1");
    call.op.expires = true; /* would leave nothing anyway */
    assert_int_equal(phantoms_run(space.engine, &call, change_sink_null()), ENGINE_DONE);
    phantoms_call_init(&call, ENGINE_SET, 0, "u0", "2");
    assert_int_equal(phantoms_run(space.engine, &call, change_sink_null()), ENGINE_ERROR);
    assert_int_equal(call.op.error, ENGINE_E_NOT_MEMBER);
    phantoms_destroy(space.engine);
}

/* One that waited too long for the row: others are told so, be there tables. */
static void test_waited(void **state)
{
    (void)state;
    struct phantom_config config = row_config(3, 0.001);
    struct space space = open_space(&config);
    struct engine *engine = space.engine;
    struct phantoms_call call;
    struct engine_op *op = &call.op;
    uint64_t id = 0;
    do {
        phantoms_call_init(&call, ENGINE_SET, id++, "u", "1");
    } while (phantoms_try(engine, &call, change_sink_null()) == ENGINE_DONE);
    assert_int_equal(op->status, ENGINE_PENDING);
    assert_true(op->wants_table);
    row_waited(engine->row);
    engine->functions->prepare(engine, &op, 1);
    engine->functions->change(engine, op, change_sink_null());
    assert_int_equal(op->status, ENGINE_ERROR); /* not pending: nobody would wake it */
    assert_int_equal(op->error, ENGINE_E_BUSY);
    assert_int_equal(phantoms_tables(engine), 1);
    row_maintain(engine->row, NULL);
    assert_int_equal(phantoms_run(engine, &call, change_sink_null()), ENGINE_DONE);
    phantoms_destroy(engine);
}

/* Without recycling: all tables fill, then what is new is refused and all else goes on. */
static void test_refuse(void **unused)
{
    (void)unused;
    struct phantom_config config = row_config(3, 0.001);
    struct space space = open_space(&config);
    uint64_t end = 0;
    enum engine_error error = ENGINE_E_NONE;
    for (; error == ENGINE_E_NONE; end++) {
        error = run(&space, ENGINE_SET, end, 'u', 0).error;
    }
    end--;
    assert_int_equal(error, ENGINE_E_NO_TABLE_FREE);
    assert_true(end > 2 * space.capacity * 9 / 10 && phantoms_tables(space.engine) == 3);
    phantom_check(space.engine);
    for (uint64_t i = 0; i < end; i++) {
        assert_true(holds(&space, i, 'u', 0));
    }
    add(&space, 0, 0);
    assert_int_equal(run(&space, ENGINE_DELETE, end / 2, 'u', 0).status, ENGINE_DONE);
    assert_false(holds(&space, end / 2, 'u', 0));
    assert_int_equal(run(&space, ENGINE_ADD, end / 2, 'u', 0).status, ENGINE_DONE);
    assert_true(holds(&space, end / 2, 'u', 0));
    phantoms_destroy(space.engine);
}

/* ---- strays ---- */

static const uint64_t strays[] = {10000000, 1000000000000, ROW_ID_MAX};
#define STRAYS (sizeof(strays) / sizeof(strays[0]))

/* Those of the ids are there and nothing else of them, whatever the filter says. */
static void check_strays(struct space *space)
{
    for (size_t s = 0; s < STRAYS; s++) {
        for (unsigned m = 0; m < STRAY_MEMBERS; m++) {
            assert_true(holds(space, strays[s], 'u', m));
        }
        for (unsigned m = 0; m < STRAY_FOREIGN; m++) {
            assert_false(holds(space, strays[s], 'x', m));
        }
    }
}

static void delete_and_add(struct space *space, uint64_t id)
{
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(run(space, ENGINE_DELETE, id, 'u', 1).status, ENGINE_DONE);
        assert_int_equal(run(space, ENGINE_DELETE, id, 'u', 1).status, ENGINE_ABSENT);
        assert_false(holds(space, id, 'u', 1));
        assert_true(holds(space, id, 'u', 0));
        assert_int_equal(run(space, ENGINE_ADD, id, 'u', 1).status, ENGINE_DONE);
        assert_int_equal(run(space, ENGINE_ADD, id, 'u', 1).status, ENGINE_EXISTS);
        assert_true(holds(space, id, 'u', 1));
    }
}

static void test_strays(void **unused)
{
    (void)unused;
    struct phantom_config config = row_config(TABLES, HALF_WRONG);
    config.row.late_room = 0.1;
    struct space space = open_space(&config);
    uint64_t end = space.capacity * 8 / 10 / MEMBERS;
    roll(&space, 0, end);
    for (size_t s = 0; s < STRAYS; s++) {
        for (unsigned m = 0; m < STRAY_MEMBERS; m++) {
            assert_int_equal(run(&space, ENGINE_ADD, strays[s], 'u', m).status, ENGINE_DONE);
        }
        delete_and_add(&space, strays[s]);
    }
    check_strays(&space);
    assert_int_equal(phantoms_tables(space.engine), 1);
    /* Normal ids go on; a table opens below the strays and takes them with it. */
    roll(&space, end, 2 * end);
    assert_int_equal(phantoms_tables(space.engine), 2);
    phantom_check(space.engine);
    check_strays(&space);
    /* The first of them were no typos: a table opens at it. */
    for (uint64_t i = 1; i <= 2 * ROW_CLUSTER; i++) {
        add(&space, strays[0] + i, 0);
    }
    assert_int_equal(phantoms_tables(space.engine), 3);
    uint64_t base = phantoms_table_number(space.engine, 2, "base");
    assert_true(base > strays[0] / 2 && base <= strays[0]);
    phantom_check(space.engine);
    for (unsigned m = 0; m < STRAY_MEMBERS; m++) {
        assert_true(holds(&space, strays[0], 'u', m));
    }
    for (uint64_t i = 1; i <= 2 * ROW_CLUSTER; i++) {
        assert_true(holds(&space, strays[0] + i, 'u', 0));
    }
    for (size_t s = 0; s < STRAYS; s++) {
        delete_and_add(&space, strays[s]);
    }
    check_rolled(&space, 0, 2 * end);
    phantoms_destroy(space.engine);
}

/* What is apart has more members than the next table's dict, which is smaller by then, has places.
 */
static void test_strays_outgrow_the_next_table(void **unused)
{
    (void)unused;
    char error[PHANTOM_ERROR_MAX];
    struct phantom_config config = row_config(TABLES, HALF_WRONG);
    config.row.table_bytes *= 4;
    struct space space = open_space(&config);
    roll(&space, 0, 100);
    uint64_t members = 0;
    while (run(&space, ENGINE_ADD, strays[1], 'u', members).status == ENGINE_DONE) {
        members++;
    }
    config.row.table_bytes /= 4;
    config.row.tables *= 4;
    assert_true(phantom_reconfigure(space.engine, &config, error));
    uint64_t end = 100;
    while (phantoms_tables(space.engine) < 3) { /* one of the old size, and one of the new */
        roll(&space, end, end + 10);
        end += 10;
    }
    phantom_check(space.engine);
    for (uint64_t m = 0; m < members; m++) {
        assert_int_equal(run(&space, ENGINE_ADD, strays[1], 'u', m).status, ENGINE_EXISTS);
    }
    check_rolled(&space, 0, end);
    phantoms_destroy(space.engine);
}

/* The frontier reaches an id that was kept apart: the filter takes some of its members for there.
 */
static void check_reached(bool deletes)
{
    struct phantom_config config = row_config(1, HALF_WRONG);
    config.deletes = deletes;
    config.row.late_room = 0.1;
    struct space space = open_space(&config);
    roll(&space, 0, 1000);
    uint64_t id = 7000; /* further than four times what the table spans */
    for (unsigned m = 0; m < REACHED_MEMBERS; m++) {
        add(&space, id, 1000 + m);
    }
    assert_false(holds(&space, id, 'u', 0));
    roll(&space, 1000, 9000);
    assert_int_equal(phantoms_tables(space.engine), 1);
    for (unsigned m = 0; m < REACHED_MEMBERS; m++) {
        assert_true(holds(&space, id, 'u', 1000 + m));
        for (unsigned again = 0; deletes && again < 2; again++) {
            assert_int_equal(run(&space, ENGINE_DELETE, id, 'u', 1000 + m).status, ENGINE_DONE);
            assert_false(holds(&space, id, 'u', 1000 + m));
            assert_int_equal(run(&space, ENGINE_ADD, id, 'u', 1000 + m).status, ENGINE_DONE);
            assert_true(holds(&space, id, 'u', 1000 + m));
        }
    }
    assert_true(strtoull(phantoms_space_figure(space.engine, "exceptions").text, NULL, 10) == 0);
    phantoms_destroy(space.engine);
}

static void test_reached(void **unused)
{
    (void)unused;
    check_reached(true);
    check_reached(false);
}

/* One far id with more members than find room apart: refused, and deletes make room again. */
static void test_too_far(void **unused)
{
    (void)unused;
    struct phantom_config config = row_config(TABLES, 0.001);
    struct space space = open_space(&config);
    roll(&space, 0, 100);
    uint64_t taken = 0;
    uint64_t before = phantoms_members(space.engine);
    enum engine_error error = ENGINE_E_NONE;
    for (; error == ENGINE_E_NONE; taken++) {
        error = run(&space, ENGINE_ADD, strays[1], 'u', taken).error;
    }
    taken--;
    assert_int_equal(error, ENGINE_E_ID_TOO_FAR);
    assert_int_equal(phantoms_members(space.engine), before + taken); /* not what was refused */
    assert_true(taken >= ROW_SAMPLE_MIN && phantoms_tables(space.engine) == 1);
    assert_false(holds(&space, strays[1], 'u', taken));
    phantom_check(space.engine);
    roll(&space, 100, 110);
    assert_int_equal(run(&space, ENGINE_DELETE, strays[1], 'u', 0).status, ENGINE_DONE);
    uint64_t last = taken; /* the place that is free now is not every member's */
    while (run(&space, ENGINE_ADD, strays[1], 'u', last).status != ENGINE_DONE) {
        last++;
        assert_true(last < taken + 1000);
    }
    for (uint64_t m = 1; m < taken; m++) {
        assert_true(holds(&space, strays[1], 'u', m));
    }
    assert_true(holds(&space, strays[1], 'u', last));
    assert_false(holds(&space, strays[1], 'u', 0));
    phantoms_destroy(space.engine);
}

/* ---- layers ---- */

/* New members in turn at ids 0 .. HOT_IDS - 1 until `pairs`. */
static void heat(struct space *space, uint64_t pairs)
{
    for (uint64_t i = 0; i < pairs; i++) {
        add(space, i % HOT_IDS, i);
    }
}

static void test_layer_rate(void **unused)
{
    (void)unused;
    struct phantom_config config = row_config(TABLES, 0.01);
    struct space space = open_space(&config);
    uint64_t pairs = space.capacity + space.capacity * 3 / 4;
    heat(&space, pairs);
    phantom_check(space.engine);
    assert_int_equal(phantoms_table_number(space.engine, 0, "layers"), 2);
    for (uint64_t i = 0; i < pairs; i++) {
        assert_true(holds(&space, i % HOT_IDS, 'u', i));
    }
    double shown = strtod(phantoms_table_figure(space.engine, 0, "false_positives").text, NULL);
    double wrong = measure_wrong(&space, 0, HOT_IDS, FOREIGN);
    printf("with a layer: shown %.5f, measured %.5f\n", shown, wrong);
    assert_true(shown > config.false_positives);
    assert_true(wrong > shown * (1 - SHOWN_WITHIN) && wrong < shown * (1 + SHOWN_WITHIN));
    phantoms_destroy(space.engine);
}

/* One id with more members than all tables take: the frontier has nowhere to go. */
static void test_hot_id(void **unused)
{
    (void)unused;
    struct phantom_config config = row_config(3, 0.001);
    struct space space = open_space(&config);
    uint64_t end = 0;
    enum engine_error error = ENGINE_E_NONE;
    for (; error == ENGINE_E_NONE; end++) {
        error = run(&space, ENGINE_SET, 7, 'u', end).error;
    }
    end--;
    assert_int_equal(error, ENGINE_E_NO_TABLE_FREE);
    assert_int_equal(phantoms_tables(space.engine), 2);
    assert_int_equal(phantoms_table_number(space.engine, 0, "layers"), 2);
    assert_int_equal(phantoms_table_number(space.engine, 0, "last_id"), 7);
    assert_true(end >= 2 * space.capacity);
    phantom_check(space.engine);
    for (uint64_t i = 0; i < end; i++) {
        assert_true(holds(&space, 7, 'u', i));
    }
    add(&space, 8, 0); /* others go on */
    assert_true(holds(&space, 8, 'u', 0));
    phantoms_destroy(space.engine);
}

/* Random changes of pairs in a root, in its layer, in a table above and apart. */
static void test_random(void **unused)
{
    (void)unused;
    static const uint64_t ids[] = {0,           7,           HOT_IDS - 1, HOT_IDS,
                                   HOT_IDS + 1, 10000000000, ROW_ID_MAX};
    static bool there[RANDOM_PAIRS];
    struct test_random random = {test_seed()};
    struct phantom_config config = row_config(TABLES, PHANTOM_FALSE_POSITIVES_MIN);
    config.exceptions_bytes = config.row.table_bytes;
    struct space space = open_space(&config);
    unsigned wrong = 0;
    memset(there, 0, sizeof(there));
    for (uint64_t i = 0, n = test_scaled(RANDOM_STEPS); i < n; i++) {
        if (i == n / 4 || i == n / 2) { /* its changes go on in a layer */
            heat(&space, space.capacity / 2 * (i == n / 4 ? 1 : 3));
        }
        uint64_t which = test_random_below(&random, RANDOM_PAIRS);
        uint64_t id = ids[which % (sizeof(ids) / sizeof(ids[0]))];
        if (!there[which] && holds(&space, id, 'r', which)) {
            there[which] = true;
            wrong++;
        }
        assert_true(holds(&space, id, 'r', which) == there[which]);
        bool deletes = test_random_below(&random, 2);
        enum engine_verb verb = deletes ? ENGINE_DELETE : ENGINE_ADD;
        enum engine_status is = deletes ? (there[which] ? ENGINE_DONE : ENGINE_ABSENT)
                                        : (there[which] ? ENGINE_EXISTS : ENGINE_DONE);
        assert_int_equal(run(&space, verb, id, 'r', which).status, is);
        there[which] = !deletes;
        if (i % 10000 == 0) {
            phantom_check(space.engine);
        }
    }
    assert_int_equal(phantoms_table_number(space.engine, 0, "layers"), 2);
    assert_true(wrong <= RANDOM_WRONG);
    phantoms_destroy(space.engine);
}

/* ---- configuration ---- */

/* A new rate and size hold from the next table on; a layer of an old one is as that is. */
static void test_reconfigure(void **unused)
{
    (void)unused;
    char error[PHANTOM_ERROR_MAX];
    struct phantom_config config = row_config(TABLES, 0.01);
    struct space space = open_space(&config);
    heat(&space, space.capacity * 3 / 4);
    uint64_t next = phantoms_table_number(space.engine, 0, "last_id") + 1;
    assert_int_equal(phantoms_tables(space.engine), 2);
    config.row.table_bytes *= 2;
    config.false_positives = 0.0001;
    config.row.tables++;
    assert_true(phantom_reconfigure(space.engine, &config, error));
    uint64_t end = next + space.capacity * 3 / 4 / MEMBERS;
    roll(&space, next, end); /* a third one opens; a fourth, as ids are sparser than they were */
    assert_in_range(phantoms_tables(space.engine), 3, 4);
    assert_int_equal(phantoms_table_number(space.engine, 1, "capacity"), space.capacity);
    assert_int_equal(phantoms_table_number(space.engine, 1, "bytes"), config.row.table_bytes / 2);
    assert_int_equal(phantoms_table_number(space.engine, 2, "bytes"), config.row.table_bytes);
    double wrong =
        strtod(phantoms_table_figure(space.engine, 2, "false_positives_at_capacity").text, NULL);
    assert_true(wrong > 0 && wrong <= config.false_positives);
    heat(&space, space.capacity * 3 / 2); /* the first takes a layer */
    assert_int_equal(phantoms_table_number(space.engine, 0, "layers"), 2);
    assert_int_equal(phantoms_table_number(space.engine, 0, "capacity"), 2 * space.capacity);
    phantom_check(space.engine);
    for (uint64_t i = 0; i < space.capacity * 3 / 2; i++) {
        assert_true(holds(&space, i % HOT_IDS, 'u', i));
    }
    check_rolled(&space, next, end);
    row_flush(space.engine->row);
    assert_int_equal(phantoms_members(space.engine), 0);
    assert_int_equal(phantoms_tables(space.engine), 1);
    phantoms_destroy(space.engine);
}

/* Deletes turned on while it runs hold in all tables. */
static void test_deletes_everywhere(void **unused)
{
    (void)unused;
    char error[PHANTOM_ERROR_MAX];
    struct phantom_config config = row_config(3, 0.001);
    config.deletes = false;
    struct space space = open_space(&config);
    uint64_t end = space.capacity / MEMBERS;
    roll(&space, 0, end);
    assert_int_equal(phantoms_tables(space.engine), 2);
    add(&space, strays[1], 0);
    assert_int_equal(run(&space, ENGINE_DELETE, strays[1], 'u', 0).error, ENGINE_E_DELETES_OFF);
    assert_true(holds(&space, strays[1], 'u', 0));
    config.deletes = true;
    assert_true(phantom_reconfigure(space.engine, &config, error));
    assert_int_equal(run(&space, ENGINE_DELETE, 0, 'u', 0).status, ENGINE_DONE);
    assert_int_equal(run(&space, ENGINE_DELETE, end - 1, 'u', 0).status, ENGINE_DONE);
    assert_int_equal(run(&space, ENGINE_DELETE, strays[1], 'u', 0).status, ENGINE_DONE);
    config.deletes = false;
    assert_true(phantom_reconfigure(space.engine, &config, error));
    assert_false(holds(&space, 0, 'u', 0));
    assert_false(holds(&space, end - 1, 'u', 0));
    assert_false(holds(&space, strays[1], 'u', 0));
    assert_int_equal(run(&space, ENGINE_DELETE, 0, 'u', 1).error, ENGINE_E_DELETES_OFF);
    phantoms_destroy(space.engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roll_and_recycle),
        cmocka_unit_test(test_nothing_is_denied),
        cmocka_unit_test(test_below),
        cmocka_unit_test(test_waited),
        cmocka_unit_test(test_refuse),
        cmocka_unit_test(test_strays),
        cmocka_unit_test(test_strays_outgrow_the_next_table),
        cmocka_unit_test(test_reached),
        cmocka_unit_test(test_too_far),
        cmocka_unit_test(test_layer_rate),
        cmocka_unit_test(test_hot_id),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_reconfigure),
        cmocka_unit_test(test_deletes_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
