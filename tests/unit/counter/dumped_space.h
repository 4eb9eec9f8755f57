/*
 * dumped_space.h: a small counter space of which a table is dumped, for tests: operations that wait
 * for the disk as a client does, records that are expected, rounds, restarts. Engine and files are
 * tests/support/dumps.h.
 *
 * Expectations that do not hold end the test. Thread rule: one thread.
 */
#ifndef ROLLCALL_TESTS_UNIT_COUNTER_DUMPED_SPACE_H
#define ROLLCALL_TESTS_UNIT_COUNTER_DUMPED_SPACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "counter/counter_private.h"
#include "counter/table_private.h"
#include "tests/support/counters.h"
#include "tests/support/dumps.h"

#define FIRST  1000u
#define IDS    7000u /* more than a table takes */
#define AUX    (64u << 10)
#define LARGE  "1000000000000"
#define SEEN   300u /* ids that are looked at one by one */
#define FAR    (1ull << 40)
#define BEYOND (FIRST + 2 * IDS)

struct dumped_space {
    struct dumps dumps;
    struct counter_config config; /* slots a and b of 20 bits, 4 tables of 64 KiB */
    struct recorder_sink sink;
    struct counters_call call; /* the last operation */
    uint64_t serial;
};

/*
 * For cmocka: a space of IDS ids from FIRST with the record "7,8", every so manyth with a value
 * beside: "7," LARGE. The first of its two tables is dumped.
 */
int space_create(void **state);       /* every 10th; an overlay of a MiB */
int space_create_tight(void **state); /* of 4 KiB */
int space_create_small(void **state); /* and as much beside; but the first none has a large value */
int space_destroy(void **state);      /* checks it, too */

/* Another space of that configuration with 8 tables and nothing in it, in its place. */
void space_begin_anew(struct dumped_space *space);
/* Likewise, of one table to which 4 x SEEN ids from FIRST came in their order, each "1,2". */
struct row *space_begin_dense(struct dumped_space *space);

/* Runs it until it ends. */
enum engine_status space_run(struct dumped_space *space, enum engine_verb verb, int slot,
                             uint64_t id, const char *text);
void space_expect(struct dumped_space *space, uint64_t id, const char *text); /* NULL: absent */
void space_set(struct dumped_space *space, uint64_t id, const char *text);    /* the record */
void space_round(struct dumped_space *space);
void space_restart(struct dumped_space *space);
uint64_t space_preads(const struct dumped_space *space); /* pages so far */

static inline struct row *space_row(const struct dumped_space *space)
{
    return &((struct counter *)space->dumps.engine)->row;
}

#endif
