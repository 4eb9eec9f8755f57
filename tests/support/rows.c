/* rows.c: rows of counter tables for tests. */
#include "tests/support/rows.h"
#include "row/row.h"
#include "tests/support/table_figures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REC           ENGINE_SLOT_RECORD
#define AUX_BYTES     (64u << 10)
#define FIRST_SECOND  1700000000ull
#define FIRST_MS      (FIRST_SECOND * 1000)
#define SECOND_SHIFT  22
#define A_SECOND      1000u
#define A_YEAR_S      (365ull * 86400)
#define LARGE         (1ull << 40)
#define STAT_NAME_MAX 64

/* Even ones, so that no odd stray is met later. */
uint64_t rows_dense(uint64_t index)
{
    return 1000000 + 2 * index;
}

static uint64_t seconds(uint64_t index)
{
    return (FIRST_SECOND + index / A_SECOND) << SECOND_SHIFT | index % A_SECOND * 2;
}

/* Two ids a millisecond and machine, three machines. */
static uint64_t milliseconds(uint64_t index)
{
    return (FIRST_MS + index / 6) << SECOND_SHIFT | index % 3 << 12 | index % 2 * 2;
}

const struct rows_ids rows_shapes[ROWS_SHAPES] = {
    {"dense", rows_dense, 1ull << 40, true},
    {"seconds<<22", seconds, A_YEAR_S << SECOND_SHIFT, true},
    {"milliseconds<<22", milliseconds, (A_YEAR_S * 1000) << SECOND_SHIFT, false},
};

/* What an id holds follows from a number of its own: every sixteenth has a slot in the aux dict. */
const char *rows_value(uint64_t number, char text[ENGINE_VALUE_MAX + 1])
{
    uint64_t c = number % ROWS_LARGE_ONE_IN == 0 ? LARGE + number : number % 1000;
    snprintf(text, ENGINE_VALUE_MAX + 1, "%" PRIu64 ",,%" PRIu64 ",", number % 1000000, c);
    return text;
}

/* The keeper comes at once. */
void rows_put(struct engine *engine, struct counters_call *call, uint64_t id, uint64_t number)
{
    char text[ENGINE_VALUE_MAX + 1];
    counters_do(engine, call, ENGINE_SET, REC, id, rows_value(number, text));
    row_maintain(engine->row, NULL);
}

void rows_put_done(struct engine *engine, uint64_t id, uint64_t number)
{
    struct counters_call call;
    rows_put(engine, &call, id, number);
    if (call.op.status != ENGINE_DONE) {
        fail_msg("id %" PRIu64 " (%" PRIu64 "): status %d error %d", id, number,
                 (int)call.op.status, (int)call.op.error);
    }
}

bool rows_is_below(const struct counters_call *call)
{
    return call->op.status == ENGINE_ABSENT && call->op.miss == ENGINE_MISS_BELOW;
}

/* True: it is there, with its number's value. False: it is below the oldest table. */
bool rows_expect(struct engine *engine, uint64_t id, uint64_t number)
{
    struct counters_call call;
    char text[ENGINE_VALUE_MAX + 1];
    counters_do(engine, &call, ENGINE_READ, REC, id, NULL);
    if (rows_is_below(&call)) {
        return false;
    }
    if (call.op.status != ENGINE_DONE || strcmp(call.value, rows_value(number, text)) != 0) {
        fail_msg("id %" PRIu64 " (%" PRIu64 "): status %d '%s', not '%s'", id, number,
                 (int)call.op.status, call.value, text);
    }
    return true;
}

void rows_expect_absent(struct engine *engine, uint64_t id)
{
    struct counters_call call;
    assert_int_equal(counters_do(engine, &call, ENGINE_READ, REC, id, NULL), ENGINE_ABSENT);
    assert_int_equal(call.op.miss, ENGINE_MISS_ABSENT);
}

struct wanted {
    const char *name;
    bool found;
    char text[ENGINE_STAT_TEXT_MAX];
};

static void look_for(void *context, const char *name, const char *text)
{
    struct wanted *wanted = context;
    if (strcmp(name, wanted->name) == 0) {
        assert_false(wanted->found); /* each figure once */
        wanted->found = true;
        snprintf(wanted->text, sizeof(wanted->text), "%s", text);
    }
}

double rows_figure(const struct engine *engine, const char *name)
{
    struct wanted wanted = {.name = name};
    engine->functions->stats_space(engine, look_for, &wanted);
    stats_of_tables(engine, look_for, &wanted);
    if (!wanted.found) {
        fail_msg("no figure %s", name);
    }
    return strtod(wanted.text, NULL);
}

double rows_table_figure(const struct engine *engine, uint64_t serial, const char *name)
{
    char full[STAT_NAME_MAX];
    snprintf(full, sizeof(full), "%" PRIu64 ":%s", serial, name);
    return rows_figure(engine, full);
}

uint64_t rows_tables_made(const struct engine *engine)
{
    return (uint64_t)rows_figure(engine, "tables") +
           (uint64_t)rows_figure(engine, "recycled_tables");
}

uint64_t rows_held_bytes(const struct engine *engine)
{
    struct engine_figures figures = {0};
    uint64_t bytes = 0;
    engine->functions->figures(engine, &figures);
    for (size_t i = 0; i < ENGINE_MEMORY_KINDS; i++) {
        bytes += figures.memory[i].held_bytes;
    }
    return bytes;
}

struct engine *rows_open(struct counter_config *config, unsigned tables, bool recycle)
{
    counters_config(config, ROWS_SLOTS);
    config->aux_bytes = AUX_BYTES;
    config->row.tables = tables;
    config->row.recycle = recycle;
    return counters_create(config);
}

void rows_close(struct engine *engine)
{
    counter_check(engine);
    engine->functions->destroy(engine);
}

void rows_print_tables(const struct engine *engine, const struct rows_ids *ids)
{
    uint64_t made = rows_tables_made(engine);
    for (uint64_t serial = made - (uint64_t)rows_figure(engine, "tables"); serial < made;
         serial++) {
        double capacity = rows_table_figure(engine, serial, "capacity");
        double each = rows_table_figure(engine, serial, "bytes") / capacity;
        printf("%-16s table %2" PRIu64
               ": %5.0f of %5.0f records, window 2^%.0f, %5.2f bytes each\n",
               ids->name, serial, rows_table_figure(engine, serial, "records"), capacity,
               rows_table_figure(engine, serial, "window_bits"), each);
        assert_true(serial == 0 || !ids->two_bytes || each <= ROWS_BYTES_MOST);
    }
}
