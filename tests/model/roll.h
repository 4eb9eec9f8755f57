/*
 * roll.h: what the tests of rolling ids share: ids as users make them, a space under load with its
 * keeper, requests that wait until the row has changed, and how long they waited.
 *
 * A request is run as the server runs it: inside the barrier all its operations are prepared, then
 * run in order, neighbouring reads together; the first that is pending ends the turn, and when its
 * ticket is woken the rest is prepared again. The keeper is a thread, or, in tests of one thread,
 * the worker itself: it maintains the row when something is pending, and `lazy` requests after the
 * row has asked.
 *
 * Thread rule: a worker belongs to one thread; figures and checks are for one thread alone there.
 */
#ifndef ROLLCALL_TESTS_MODEL_ROLL_H
#define ROLLCALL_TESTS_MODEL_ROLL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/barrier.h"
#include "row/row.h"
#include "tests/support/counters.h"
#include "tests/support/phantoms.h"

#define ROLL_SHAPES       4
#define ROLL_WAIT_BUCKETS 32 /* powers of two of microseconds */
#define ROLL_OPS_MAX      16 /* of a request */
#define ROLL_MEMBER_MAX   24

/* ---- ids ---- */

/* The ids of a service, by the order in which they are made; all differ. */
struct roll_shape {
    const char *name;
    uint64_t (*id)(uint64_t index);
    uint64_t spacing; /* what a user would give as id-spacing */
    uint64_t year;    /* how much larger an id is a year later */
};
extern const struct roll_shape roll_shapes[ROLL_SHAPES];

/* ---- a space ---- */

struct roll {
    struct engine *engine;
    bool phantom;
    uint64_t capacity; /* of one table: records or members */
    unsigned lazy;     /* requests from asking to maintaining, without a keeper thread */
    struct barrier *barrier;
    /* The keeper. */
    bool threaded;
    pthread_t keeper;
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    bool asked, stop; /* under `lock` */
    uint64_t maintained;
};

/* An engine of a valid configuration, growing ids. threaded: with a thread that keeps it. */
void roll_init_counter(struct roll *roll, const struct counter_config *config, bool threaded);
void roll_init_phantom(struct roll *roll, const struct phantom_config *config, bool threaded);
/* Checks the engine's invariants, then destroys it. */
void roll_fini(struct roll *roll);

/* Ends the keeper thread, when all workers are done, and does what is still asked for. */
void roll_settle(struct roll *roll);
/* The engine's invariants; the figures of the tables are what the row has. */
void roll_check(const struct roll *roll);

/* A figure of `stats spaces`. Fails the test if there is none of that name. */
uint64_t roll_figure(const struct roll *roll, const char *name);
/* The tables there are, in the order of their ranges: to `ranges`. Returns how many. */
struct roll_range {
    uint64_t serial, base, last, dropped;
};
size_t roll_ranges(const struct roll *roll, struct roll_range ranges[ROW_TABLES_MAX]);
uint64_t roll_recycled(const struct roll *roll); /* tables */
/* The ids that are apart, rising; to be freed. */
uint64_t *roll_apart(const struct roll *roll, size_t *count);
/* Tables opened so far, by the highest serial number there is; the first table's base. */
uint64_t roll_opened(const struct roll *roll);
uint64_t roll_oldest(const struct roll *roll);
/* Prints the figures of the space and of each table. */
void roll_print(const struct roll *roll);

/* ---- requests ---- */

/* With a keeper thread alone. */
struct roll_waits {
    uint64_t requests, pending;
    uint64_t longest_us;
    uint64_t buckets[ROLL_WAIT_BUCKETS]; /* i: below 2^i microseconds, and at least half of it */
};

struct roll_worker {
    struct roll *roll;
    struct barrier_member *member;
    struct change_sink *sink; /* of its changes: one that keeps nothing, unless it is set */
    struct roll_waits waits;
    unsigned since_asked; /* requests */
    /* Its ticket. */
    pthread_mutex_t lock;
    pthread_cond_t woken;
    uint64_t serial, woken_serial; /* under `lock` */
};

void roll_worker_init(struct roll_worker *worker, struct roll *roll);
void roll_worker_fini(struct roll_worker *worker);

/* Runs a request of n operations to its end, waiting where it must. */
void roll_run(struct roll_worker *worker, struct engine_op *const *ops, size_t n);

/* Adds what another one waited. */
void roll_waits_add(struct roll_waits *sum, const struct roll_waits *more);
void roll_waits_print(const struct roll_waits *waits, const char *name);
/* Is a time worth checking: asked for by ROLLCALL_TEST_WAITS=1, and no sanitizer slows this? */
bool roll_waits_matter(void);

#endif
