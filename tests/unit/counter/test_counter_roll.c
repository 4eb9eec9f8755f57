/*
 * test_counter_roll.c: the engine on the row of tables: settling, ten tables' worth of ids through
 * a row of five, refusal, late ids and layers, changed slots and tables.
 */
#include "counter/counter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "row/row_data.h"
#include "tests/support/random.h"
#include "tests/support/rows.h"
#include "tests/support/table_figures.h"

#define REC       ENGINE_SLOT_RECORD
#define SCATTERED 15000u /* ids: more than four tables of 64 KiB hold */

/* ---- settling ---- */

static uint64_t items(const struct engine *engine, enum engine_memory_kind kind)
{
    struct engine_figures figures = {0};
    engine->functions->figures(engine, &figures);
    return figures.memory[kind].items;
}

/* The first ids are in the extend dict until their table knows where they lie. */
static void test_settles(void **unused)
{
    (void)unused;
    struct counter_config config;
    counters_config(&config, ROWS_SLOTS);
    config.id_spacing = 1;
    struct engine *engine = counters_create(&config);
    struct counters_call call;
    counters_do(engine, &call, ENGINE_SET, 0, 1ull << 60, "no number");
    counters_do(engine, &call, ENGINE_SET, 0, 1ull << 60, "5"); /* a stray as the first */
    uint64_t id = 1000;
    for (; items(engine, ENGINE_MEMORY_TABLES) == 0; id++) {
        assert_true(id < 1000 + ROW_SAMPLE_MAX);
        assert_int_equal(items(engine, ENGINE_MEMORY_EXTEND), id - 1000 + 1);
        assert_int_equal(counters_do(engine, &call, ENGINE_SET, REC, id, "1,,3,99999999"),
                         ENGINE_DONE);
    }
    counter_check(engine);
    assert_int_equal(items(engine, ENGINE_MEMORY_EXTEND), 1);
    assert_int_equal(items(engine, ENGINE_MEMORY_TABLES), id - 1000);
    while (id-- > 1000) {
        counters_do(engine, &call, ENGINE_READ, REC, id, NULL);
        assert_string_equal(call.value, "1,,3,99999999");
    }
    counters_do(engine, &call, ENGINE_READ, 0, 1ull << 60, NULL);
    assert_string_equal(call.value, "5");
    row_flush(engine->row);
    counters_do(engine, &call, ENGINE_READ, 0, 1000, NULL);
    assert_int_equal(call.op.status, ENGINE_ABSENT);
    counters_do(engine, &call, ENGINE_SET, 0, 1000, "1");
    assert_int_equal(items(engine, ENGINE_MEMORY_TABLES), 0);
    rows_close(engine);
}

/* What waits for the row changes nothing, gives its room back and is woken. */
static void note_wake(void *target, uint64_t serial)
{
    *(uint64_t *)target += serial;
}

static void test_pending(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct engine *engine = rows_open(&config, 1, false);
    struct counters_sink sink;
    struct counters_call call;
    uint64_t woken = 0, id = 0;
    counters_sink_init(&sink);
    do {
        counters_call_init(&call, ENGINE_SET, REC, ++id, "1,2,3,99999999");
        call.op.ticket = (struct ticket){note_wake, &woken, 7};
        struct engine_op *op = &call.op;
        engine->functions->prepare(engine, &op, 1);
        engine->functions->change(engine, op, &sink.sink);
    } while (call.op.status == ENGINE_DONE);
    assert_int_equal(call.op.status, ENGINE_PENDING);
    assert_int_equal(sink.put, id - 1);
    assert_true(sink.cancelled >= 1);
    assert_int_equal(items(engine, ENGINE_MEMORY_EXTEND), id - 1);
    assert_int_equal(items(engine, ENGINE_MEMORY_AUX), id - 1);
    assert_int_equal(woken, 0);
    row_maintain(engine->row, NULL);
    assert_int_equal(woken, 7);
    assert_int_equal(counters_run(engine, &call, &sink.sink), ENGINE_DONE);
    assert_int_equal(items(engine, ENGINE_MEMORY_TABLES), id);
    rows_close(engine);
}

/* One that waited too long for the row: others are told so, be there tables. */
static void test_waited(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct engine *engine = rows_open(&config, 3, false);
    struct counters_call call;
    struct engine_op *op = &call.op;
    uint64_t id = 0;
    do {
        counters_call_init(&call, ENGINE_SET, REC, ++id, "1,2,3,4");
        engine->functions->prepare(engine, &op, 1);
        engine->functions->change(engine, op, change_sink_null());
    } while (op->status == ENGINE_DONE);
    assert_int_equal(op->status, ENGINE_PENDING);
    assert_true(op->wants_table);
    row_waited(engine->row);
    engine->functions->prepare(engine, &op, 1);
    engine->functions->change(engine, op, change_sink_null());
    assert_int_equal(op->status, ENGINE_ERROR);
    assert_int_equal(op->error, ENGINE_E_BUSY);
    assert_true(rows_figure(engine, "spare") == 2);
    row_maintain(engine->row, NULL);
    assert_int_equal(counters_run(engine, &call, change_sink_null()), ENGINE_DONE);
    rows_close(engine);
}

/* ---- rolling ---- */

/* The smallest base. */
static void note_base(void *context, const char *name, const char *text)
{
    uint64_t *least = context;
    const char *colon = strchr(name, ':');
    uint64_t base = strtoull(text, NULL, 10);
    if (strcmp(colon, ":base") == 0 && base < *least) {
        *least = base;
    }
}

/* All ids so far: those of recycled tables are absent and said to be, the others exact. */
static uint64_t expect_all(struct engine *engine, const struct rows_ids *ids, uint64_t count)
{
    uint64_t there = 0;
    uint64_t oldest = UINT64_MAX;
    stats_of_tables(engine, note_base, &oldest);
    for (uint64_t i = 0; i < count; i++) {
        bool found = rows_expect(engine, ids->id(i), i);
        assert_true(found == (ids->id(i) >= oldest));
        there += found;
    }
    counter_check(engine);
    assert_true(there + engine_recycled(engine) == count);
    assert_true((uint64_t)rows_figure(engine, "records") == there);
    return there;
}

/* Changes of what is gone: nothing is created there, and nothing else is said than that. */
static void expect_below(struct engine *engine, uint64_t id)
{
    static const struct {
        enum engine_verb verb;
        const char *text;
        enum engine_status status;
        enum engine_error error;
    } cases[] = {
        {ENGINE_SET, "1", ENGINE_ERROR, ENGINE_E_ID_BELOW},
        {ENGINE_ADD, "1", ENGINE_ERROR, ENGINE_E_ID_BELOW},
        {ENGINE_INCR, "1", ENGINE_ERROR, ENGINE_E_ID_BELOW},
        {ENGINE_DECR, "1", ENGINE_ERROR, ENGINE_E_ID_BELOW},
        {ENGINE_SET, "x", ENGINE_ERROR, ENGINE_E_NOT_A_NUMBER},
        {ENGINE_INCR, "x", ENGINE_ERROR, ENGINE_E_BAD_DELTA},
        {ENGINE_REPLACE, "1", ENGINE_ABSENT, ENGINE_E_NONE},
        {ENGINE_CAS, "1", ENGINE_ABSENT, ENGINE_E_NONE},
        {ENGINE_DELETE, NULL, ENGINE_ABSENT, ENGINE_E_NONE},
    };
    struct counters_call call;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        counters_do(engine, &call, cases[i].verb, 0, id, cases[i].text);
        assert_int_equal(call.op.status, cases[i].status);
        assert_int_equal(call.op.error, cases[i].error);
    }
    counters_call_init(&call, ENGINE_SET, 0, id, "1");
    call.op.expires = true; /* nothing is to come to be */
    assert_int_equal(counters_run(engine, &call, change_sink_null()), ENGINE_DONE);
    counters_call_init(&call, ENGINE_INCR, 0, id, "1");
    call.op.create_never = true;
    assert_int_equal(counters_run(engine, &call, change_sink_null()), ENGINE_ABSENT);
    engine->role_cache = true;
    assert_int_equal(counters_do(engine, &call, ENGINE_INCR, 0, id, "1"), ENGINE_ABSENT);
    counters_call_init(&call, ENGINE_INCR, 0, id, "1");
    call.op.create_initial = true;
    assert_int_equal(counters_run(engine, &call, change_sink_null()), ENGINE_ERROR);
    assert_int_equal(call.op.error, ENGINE_E_ID_BELOW);
    engine->role_cache = false;
    counters_do(engine, &call, ENGINE_TOUCH, REC, id, NULL);
    assert_true(rows_is_below(&call));
}

static void roll(const struct rows_ids *ids)
{
    struct counter_config config;
    struct counter_size size;
    struct engine *engine = rows_open(&config, 5, true);
    counter_config_size(&config, &size);
    uint64_t all = 10 * ROWS_TABLE_WORTH;
    for (uint64_t i = 0; i < all; i++) {
        rows_put_done(engine, ids->id(i), i);
        if (i % ROWS_TABLE_WORTH == ROWS_TABLE_WORTH / 2) {
            expect_all(engine, ids, i + 1);
        }
    }
    uint64_t there = expect_all(engine, ids, all);
    rows_print_tables(engine, ids);
    assert_true(rows_figure(engine, "tables") <= 4);
    assert_true(engine_recycled(engine) > 0);
    assert_true(!ids->two_bytes || there >= 3 * ROWS_TABLE_WORTH * 9 / 10);
    assert_true(rows_held_bytes(engine) <= size.bytes);
    expect_below(engine, ids->id(0));
    expect_below(engine, 0);
    rows_close(engine);
}

static void test_roll(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ROWS_SHAPES; i++) {
        roll(&rows_shapes[i]);
    }
}

/* ---- refusal ---- */

static void test_refuse(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct counters_call call;
    struct engine *engine = rows_open(&config, 3, false);
    uint64_t count = 0;
    for (rows_put(engine, &call, rows_dense(0), 0); call.op.status == ENGINE_DONE;) {
        count++;
        rows_put(engine, &call, rows_dense(count), count);
    }
    assert_int_equal(call.op.error, ENGINE_E_NO_TABLE_FREE);
    printf("three tables that are not recycled: %" PRIu64 " records\n", count);
    assert_true(count > 2 * ROWS_TABLE_WORTH);
    assert_true(rows_figure(engine, "tables") == 3);
    rows_expect_absent(engine, rows_dense(count));
    assert_true(expect_all(engine, &rows_shapes[0], count) == count);
    assert_int_equal(counters_do(engine, &call, ENGINE_INCR, 1, rows_dense(0), "5"), ENGINE_DONE);
    assert_int_equal(counters_do(engine, &call, ENGINE_INCR, 1, rows_dense(count - 1), "5"),
                     ENGINE_DONE);
    for (uint64_t i = count - 50; i < count; i++) { /* of the newest table: room again */
        assert_int_equal(counters_do(engine, &call, ENGINE_DELETE, REC, rows_dense(i), NULL),
                         ENGINE_DONE);
    }
    for (uint64_t i = 0; i < 50; i++) {
        rows_put_done(engine, rows_dense(count + i), count + i);
    }
    rows_put(engine, &call, rows_dense(count + 50), 0);
    assert_int_equal(call.op.error, ENGINE_E_NO_TABLE_FREE);
    row_flush(engine->row);
    rows_expect_absent(engine, rows_dense(0));
    rows_put_done(engine, rows_dense(0), 0);
    rows_close(engine);
}

/* ---- late ids, layers ---- */

#define LATE_TABLES 8u
#define LATE_ALL    (10 * ROWS_TABLE_WORTH)
#define LATE_BY     (ROWS_TABLE_WORTH + ROWS_TABLE_WORTH / 2) /* new ids meanwhile */

/* Even indices come in order, odd ones so much later. Those of recycled tables are refused. */
static void put_late(struct engine *engine, uint64_t *below)
{
    for (uint64_t i = 0; i < LATE_ALL / 2; i++) {
        rows_put_done(engine, rows_dense(2 * i), 2 * i);
        if (i < LATE_BY / 2) {
            continue;
        }
        uint64_t late = 2 * (i - LATE_BY / 2) + 1;
        struct counters_call call;
        rows_put(engine, &call, rows_dense(late), late);
        *below += call.op.status != ENGINE_DONE;
        assert_true(call.op.status == ENGINE_DONE || call.op.error == ENGINE_E_ID_BELOW);
    }
}

/* ---- tables that go before older ones ---- */

#define JUMP         1000000000000u
#define JUMP_IDS     20u
#define JUMPS        14u
#define JUMP_TABLES  5u
#define SLOW_AT_ONCE 3u

/* Jumps above a slow stream: of each that was recycled every id is below, and none counts from 1.
 */
static void test_dropped(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct engine *engine = rows_open(&config, JUMP_TABLES, true);
    struct counters_call call;
    uint64_t slow = 0;
    while (slow < 2000) {
        rows_put_done(engine, rows_dense(slow), slow);
        slow++;
    }
    for (uint64_t jump = 1; jump <= JUMPS; jump++) {
        for (uint64_t i = 0; i < JUMP_IDS; i++) {
            rows_put_done(engine, jump * JUMP + i, i);
        }
        for (uint64_t i = 0; i < SLOW_AT_ONCE; i++, slow++) {
            rows_put_done(engine, rows_dense(slow), slow);
        }
    }
    assert_int_equal((uint64_t)rows_figure(engine, "recycled_tables"), JUMPS - 2);
    uint64_t recycled = (uint64_t)rows_figure(engine, "recycled_ids");
    assert_int_equal(recycled, (JUMPS - 2) * JUMP_IDS);
    for (uint64_t jump = 1; jump <= JUMPS - 2; jump++) {
        for (uint64_t i = 0; i < JUMP_IDS; i++) {
            assert_false(rows_expect(engine, jump * JUMP + i, i));
            expect_below(engine, jump * JUMP + i);
        }
        rows_expect_absent(engine, jump * JUMP + JUMP / 2);
        counters_do(engine, &call, ENGINE_INCR, 0, jump * JUMP + JUMP / 2, "1");
        assert_int_equal(call.op.status, ENGINE_DONE);
    }
    for (uint64_t i = 0; i < slow; i++) {
        assert_true(rows_expect(engine, rows_dense(i), i));
    }
    rows_close(engine);
}

/* Deletes and creates ids again; where there are layers, they lie in another table afterwards. */
static void delete_and_create(struct engine *engine, struct test_random *random, uint64_t oldest,
                              uint64_t newest)
{
    struct counters_call call;
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t index = oldest + test_random_below(random, newest - oldest);
        if (!rows_expect(engine, rows_dense(index), index)) {
            continue;
        }
        assert_int_equal(counters_do(engine, &call, ENGINE_DELETE, REC, rows_dense(index), NULL),
                         ENGINE_DONE);
        rows_expect_absent(engine, rows_dense(index));
        assert_int_equal(counters_do(engine, &call, ENGINE_REPLACE, REC, rows_dense(index), ",1,,"),
                         ENGINE_ABSENT);
        rows_put_done(engine, rows_dense(index), index);
        rows_expect(engine, rows_dense(index), index);
    }
}

/* A batch of reads of one id and its neighbours, in a table with a layer. */
static void read_together(struct engine *engine, uint64_t first)
{
    static struct counters_call calls[64];
    struct engine_op *ops[64];
    char text[ENGINE_VALUE_MAX + 1];
    for (uint64_t i = 0; i < 64; i++) {
        counters_call_init(&calls[i], ENGINE_READ, REC, rows_dense(first + i % 40), NULL);
        ops[i] = &calls[i].op;
    }
    engine->functions->prepare(engine, ops, 64);
    engine->functions->read(engine, ops, 64);
    for (uint64_t i = 0; i < 64; i++) {
        const char *expected = rows_value(first + i % 40, text);
        assert_int_equal(ops[i]->status, ENGINE_DONE);
        assert_int_equal(ops[i]->value_length, strlen(expected));
        assert_memory_equal(ops[i]->value, expected, strlen(expected));
    }
}

static void test_half_late(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    struct counter_config config;
    struct counter_size size;
    struct engine *engine = rows_open(&config, LATE_TABLES, true);
    uint64_t below = 0, there = 0, oldest = 0;
    put_late(engine, &below);
    assert_true(below == 0); /* they are not so late that their table is gone */
    assert_true(rows_figure(engine, "layers") > 0);
    const uint64_t end = LATE_ALL - LATE_BY; /* all of both kinds up to there */
    for (uint64_t i = 0; i < end; i++) {
        bool found = rows_expect(engine, rows_dense(i), i);
        oldest = found || there > 0 ? oldest : i + 1;
        there += found;
    }
    counter_config_size(&config, &size);
    assert_true(rows_held_bytes(engine) <= size.bytes);
    uint64_t serial = rows_tables_made(engine) - (uint64_t)rows_figure(engine, "tables") + 1;
    printf("half late: %" PRIu64 " of %" PRIu64 " there, %.0f tables, %.0f layers, late share of "
           "table %" PRIu64 " %.2f\n",
           there, end, rows_figure(engine, "tables"), rows_figure(engine, "layers"), serial,
           rows_table_figure(engine, serial, "late_share"));
    assert_true(rows_table_figure(engine, serial, "late_share") > 0.3);
    counter_check(engine);
    for (uint64_t i = oldest; i + 64 < end; i += 64) {
        read_together(engine, i);
    }
    delete_and_create(engine, &random, oldest, end);
    counter_check(engine);
    rows_close(engine);
}

/* One closed table, filled until it has a layer and that is full too. */
/* Ids in random order over an empty row: all of them, while there is memory for layers. */
static void test_scattered(void **unused)
{
    (void)unused;
    struct test_random random = {17};
    struct counter_config config;
    struct counters_call call;
    struct engine *engine = rows_open(&config, 8, false);
    uint64_t *ids = calloc(SCATTERED, sizeof(*ids));
    assert_non_null(ids);
    for (uint64_t i = 0; i < SCATTERED; i++) {
        uint64_t with = test_random_below(&random, i + 1);
        ids[i] = ids[with];
        ids[with] = i;
    }
    for (uint64_t i = 0; i < SCATTERED; i++) {
        rows_put_done(engine, rows_dense(ids[i]), ids[i]);
    }
    assert_true(rows_figure(engine, "layers") >= 2);
    counter_check(engine);
    for (uint64_t i = 0; i < SCATTERED; i += 2) {
        counters_do(engine, &call, ENGINE_DELETE, REC, rows_dense(ids[i]), NULL);
        assert_int_equal(call.op.status, ENGINE_DONE);
    }
    for (uint64_t i = 0; i < SCATTERED; i++) {
        if (i % 2 == 0) {
            rows_expect_absent(engine, rows_dense(ids[i]));
        } else {
            assert_true(rows_expect(engine, rows_dense(ids[i]), ids[i]));
        }
    }
    assert_true(rows_figure(engine, "records") == SCATTERED / 2);
    rows_close(engine);
    free(ids);
}

/* A layer has no room for what a record of its table is to become: none is made for that. */
static void test_no_layer_beside(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct counters_call call;
    struct engine *engine = rows_open(&config, 8, false);
    uint64_t i = 0;
    for (; rows_figure(engine, "tables") < 2; i++) {
        rows_put_done(engine, rows_dense(i), i);
    }
    uint64_t k = 0;
    while (k < i && counters_do(engine, &call, ENGINE_SET, 0, rows_dense(k),
                                "18446744073709551615") == ENGINE_DONE) {
        k++;
    }
    assert_true(k < i);
    assert_int_equal(call.op.error, ENGINE_E_OUT_OF_MEMORY);
    assert_true(rows_figure(engine, "layers") == 0);
    assert_true(rows_expect(engine, rows_dense(k), k));
    rows_close(engine);
}

static void test_layers(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    struct counter_config config;
    struct counters_call call;
    struct engine *engine = rows_open(&config, 4, false);
    uint64_t i = 0;
    for (; rows_figure(engine, "tables") < 2; i += 4) {
        rows_put_done(engine, rows_dense(i), i);
    }
    const uint64_t last = (uint64_t)rows_table_figure(engine, 0, "range_last") - rows_dense(0);
    uint64_t late = 0;
    for (uint64_t k = 1; k < last; k += k % 4 == 3 ? 2 : 1) { /* all others of its range */
        rows_put(engine, &call, rows_dense(k), k);
        if (call.op.status != ENGINE_DONE) {
            assert_int_equal(call.op.error, ENGINE_E_NO_TABLE_FREE);
            break;
        }
        late++;
    }
    assert_true(rows_figure(engine, "layers") == 2);
    assert_true(rows_table_figure(engine, 0, "layers") == 3);
    assert_true(rows_figure(engine, "spare") == 0);
    printf("two layers: %" PRIu64 " in order, %" PRIu64 " late\n", i / 4, late);
    counter_check(engine);
    for (unsigned round = 0; round < 20000; round++) {
        uint64_t k = test_random_below(&random, last);
        counters_do(engine, &call, ENGINE_READ, REC, rows_dense(k), NULL);
        if (call.op.status == ENGINE_DONE) {
            assert_true(rows_expect(engine, rows_dense(k), k));
            counters_do(engine, &call, ENGINE_DELETE, REC, rows_dense(k), NULL);
            assert_int_equal(call.op.status, ENGINE_DONE);
        }
        rows_expect_absent(engine, rows_dense(k));
        rows_put(engine, &call, rows_dense(k), k); /* into the layer, if that has room */
        bool done = call.op.status == ENGINE_DONE;
        assert_true(done || call.op.error == ENGINE_E_NO_TABLE_FREE);
    }
    rows_close(engine);
}

/* ---- changed slots ---- */

static void expect_text(struct engine *engine, uint64_t id, const char *text)
{
    struct counters_call call;
    counters_do(engine, &call, ENGINE_READ, REC, id, NULL);
    assert_string_equal(call.value, text);
}

static void set_text(struct engine *engine, uint64_t id, const char *text)
{
    struct counters_call call;
    assert_int_equal(counters_do(engine, &call, ENGINE_SET, REC, id, text), ENGINE_DONE);
}

/* As many ids before the slots change; `settled` says whether that is enough to settle. */
static void change_slots(uint64_t before, bool settled)
{
    struct counter_config config;
    struct counters_call call;
    struct engine *engine = rows_open(&config, 4, true);
    for (uint64_t i = 0; i < before; i++) {
        set_text(engine, rows_dense(i), "1,2,3,99999999");
    }
    counters_config_slots(&config, "d:20 e:10 a:20");
    counters_reconfigure(engine, &config);
    row_maintain(engine->row, NULL);
    assert_true(rows_figure(engine, "tables") == (settled ? 2 : 1));
    for (uint64_t i = 0; i < before; i++) { /* what was there is read by name */
        expect_text(engine, rows_dense(i), "99999999,,1");
    }
    assert_int_equal(counters_do(engine, &call, ENGINE_INCR, 1, rows_dense(0), "5"), ENGINE_DONE);
    expect_text(engine, rows_dense(0), "99999999,5,1");
    for (uint64_t i = before; i < before + 1000; i++) {
        set_text(engine, rows_dense(i), "7,8,9");
    }
    assert_true(rows_figure(engine, "tables") == 2);
    assert_true(rows_table_figure(engine, 0, "records") < (double)before + 200);
    assert_true(rows_table_figure(engine, 1, "aux") == 0); /* the new slots lie in the new table */
    expect_text(engine, rows_dense(before + 999), "7,8,9");
    counter_check(engine);
    config.role_cache = true; /* another order, another role: no table for that */
    counters_config_slots(&config, "a:20 d:20 e:10");
    counters_reconfigure(engine, &config);
    row_maintain(engine->row, NULL);
    assert_true(rows_figure(engine, "tables") == 2);
    expect_text(engine, rows_dense(before), "9,7,8");
    expect_text(engine, rows_dense(0), "1,99999999,5");
    rows_close(engine);
}

static void test_slots_changed(void **unused)
{
    (void)unused;
    change_slots(500, true);
    change_slots(10, false);
}

/* Other tables from the next one on, and another number of them. */
static void test_tables_changed(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct engine *engine = rows_open(&config, 3, true);
    uint64_t i = 0;
    for (; i < 3 * ROWS_TABLE_WORTH; i++) {
        rows_put_done(engine, rows_dense(i), i);
    }
    config.row.table_bytes *= 4;
    config.row.tables = 4;
    counters_reconfigure(engine, &config);
    for (; i < 20 * ROWS_TABLE_WORTH; i++) {
        rows_put_done(engine, rows_dense(i), i);
    }
    uint64_t there = expect_all(engine, &rows_shapes[0], i);
    printf("four times as large, one more: %" PRIu64 " there\n", there);
    assert_true(there >= 2 * 4 * ROWS_TABLE_WORTH * 9 / 10);
    config.row.table_bytes /= 4;
    config.row.tables = 8;
    counters_reconfigure(engine, &config);
    for (; i < 40 * ROWS_TABLE_WORTH; i++) {
        rows_put_done(engine, rows_dense(i), i);
    }
    expect_all(engine, &rows_shapes[0], i);
    struct counter_size size;
    counter_config_size(&config, &size);
    assert_true(rows_held_bytes(engine) <= size.bytes);
    rows_close(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settles),        cmocka_unit_test(test_pending),
        cmocka_unit_test(test_waited),         cmocka_unit_test(test_roll),
        cmocka_unit_test(test_refuse),         cmocka_unit_test(test_half_late),
        cmocka_unit_test(test_layers),         cmocka_unit_test(test_slots_changed),
        cmocka_unit_test(test_tables_changed), cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_scattered),      cmocka_unit_test(test_no_layer_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
