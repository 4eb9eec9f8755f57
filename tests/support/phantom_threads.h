/*
 * phantom_threads.h: several threads on one phantom space for tests: a keeper that changes the row
 * under them, and turns in which each of them runs operations.
 * Thread rule: start and end by one thread; a turn belongs to one.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_PHANTOM_THREADS_H
#define ROLLCALL_TESTS_SUPPORT_PHANTOM_THREADS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/barrier.h"
#include "tests/support/phantoms.h"

struct phantom_keeper {
    struct engine *engine;
    struct barrier *barrier;
    pthread_t thread;
    sem_t asked;
    _Atomic bool stop;
};

/* A thread that does what the engine asks for, with a barrier of its own. */
void phantom_keeper_start(struct phantom_keeper *keeper, struct engine *engine);
void phantom_keeper_end(struct phantom_keeper *keeper); /* all turns have ended */

struct phantom_turn {
    struct phantom_keeper *keeper;
    struct change_sink *sink; /* the thread's own */
    struct barrier_member *member;
    sem_t woken;
};

void phantom_turn_init(struct phantom_turn *turn, struct phantom_keeper *keeper,
                       struct change_sink *sink);
void phantom_turn_fini(struct phantom_turn *turn);
/* An operation inside the barrier, again for as long as it is pending. Its texts end here. */
struct engine_op phantom_turn_run(struct phantom_turn *turn, enum engine_verb verb, uint64_t id,
                                  const char *member);

#endif
