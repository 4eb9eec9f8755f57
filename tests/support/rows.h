/*
 * rows.h: rows of counter tables for tests: ids of several shapes, records whose numbers follow
 * from the index of their id, so that the map to compare with is a formula, and the engine's
 * figures by name. Expectations that do not hold fail the cmocka test that runs. Not for several
 * threads.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_ROWS_H
#define ROLLCALL_TESTS_SUPPORT_ROWS_H

#include "tests/support/counters.h"

#define ROWS_SLOTS        "a:20 b:20 c:20 d:20"
#define ROWS_TABLE_WORTH  4700u /* ids of a table of 64 KiB with two bytes of remainder, about */
#define ROWS_LARGE_ONE_IN 16u   /* records that have a number in the aux dict */
#define ROWS_BYTES_MOST   15.0  /* a record, where two bytes of remainder are enough */

struct rows_ids {
    const char *name;
    uint64_t (*id)(uint64_t index); /* even ones: an odd stray is no other's id */
    uint64_t a_year;                /* so much further are the ids of next year */
    bool two_bytes;                 /* of remainder, as soon as the range is known */
};
#define ROWS_SHAPES 3u
extern const struct rows_ids rows_shapes[ROWS_SHAPES]; /* dense, by second, by millisecond */
uint64_t rows_dense(uint64_t index);

/* Tables of 64 KiB, aux dicts large enough. */
struct engine *rows_open(struct counter_config *config, unsigned tables, bool recycle);
void rows_close(struct engine *engine); /* checked before */

/* What the record of a number holds. Returns text. */
const char *rows_value(uint64_t number, char text[ENGINE_VALUE_MAX + 1]);
/* Sets the record of an id to what a number says; the keeper comes at once. */
void rows_put(struct engine *engine, struct counters_call *call, uint64_t id, uint64_t number);
void rows_put_done(struct engine *engine, uint64_t id, uint64_t number); /* it must not fail */

/* True: it is there with its number's value. False: it is below the oldest table. Else fails. */
bool rows_expect(struct engine *engine, uint64_t id, uint64_t number);
void rows_expect_absent(struct engine *engine, uint64_t id); /* but not below */
bool rows_is_below(const struct counters_call *call);        /* a read that was run */

/* A figure of the space, or of a table; fails if there is none, or more than one, of the name. */
double rows_figure(const struct engine *engine, const char *name);
double rows_table_figure(const struct engine *engine, uint64_t serial, const char *name);
uint64_t rows_tables_made(const struct engine *engine);
uint64_t rows_held_bytes(const struct engine *engine);
/* Prints the tables there are, and expects those after the first to be as small as they can be. */
void rows_print_tables(const struct engine *engine, const struct rows_ids *ids);

#endif
