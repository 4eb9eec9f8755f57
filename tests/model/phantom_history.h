/*
 * phantom_history.h: a random life of a phantom space that is recorded, and two spaces compared:
 * one that lived and one that was made again.
 *
 * A life goes in phases: a stream of rising ids; many late members, until tables get layers;
 * deletes and adds again, of foreign pairs too that the filter wrongly says are there; strays far
 * ahead, and streams that jump to them. In between deletes are turned off and on, and all is
 * cleared, if it is told to.
 *
 * Expectations that do not hold fail the cmocka test that runs. Thread rule: one thread.
 */
#ifndef ROLLCALL_TESTS_MODEL_PHANTOM_HISTORY_H
#define ROLLCALL_TESTS_MODEL_PHANTOM_HISTORY_H

#include "tests/support/phantoms.h"
#include "tests/support/random.h"
#include "tests/support/recorder.h"

struct phantom_pair {
    uint64_t id, member;
};

struct phantom_history {
    struct engine *engine; /* the caller's */
    struct recorder *recorder;
    struct recorder_sink sink;
    struct phantom_config config;
    struct test_random random;
    bool clears; /* may it be cleared? */
    unsigned phase;
    uint64_t steps;
    uint64_t top;     /* of the stream */
    uint64_t members; /* names given so far */
    size_t count, room;
    struct phantom_pair *pairs; /* ever used */
    uint64_t false_deletes;     /* foreign pairs deleted */
};

/* The engine has just been created of this configuration: it is begun, with the recorder as its
 * log. */
void phantom_history_init(struct phantom_history *history, struct engine *engine,
                          const struct phantom_config *config, struct recorder *recorder,
                          uint64_t seed);
void phantom_history_fini(struct phantom_history *history);
/* Goes on with another engine, which was made again from the recorder. */
void phantom_history_move(struct phantom_history *history, struct engine *engine);

/* So many operations more. */
void phantom_history_go_on(struct phantom_history *history, uint64_t steps);

bool phantom_history_holds(struct engine *engine, const struct phantom_pair *pair);

/*
 * Are both the same: filters bit by bit, counts, exceptions and what is apart in number, answers to
 * all pairs of the history and to many foreign ones?
 */
void phantom_history_contents(const struct phantom_history *history, struct engine *live,
                              struct engine *again);
/*
 * And the rows: what one thread did comes to the same again. (Not the span of ids: one that was
 * refused counts for it, but is no change.)
 */
void phantom_history_compare(const struct phantom_history *history, struct engine *live,
                             struct engine *again);

#endif
