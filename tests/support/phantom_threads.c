/* phantom_threads.c: a keeper, and threads that take their turns. */
#include "tests/support/phantom_threads.h"

#include "base/check.h"
#include "row/row.h"

static void notify(void *context)
{
    sem_post(context);
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0) {
    }
}

static void *keep(void *context)
{
    struct phantom_keeper *keeper = context;
    for (;;) {
        wait_for(&keeper->asked);
        if (atomic_load(&keeper->stop)) {
            return NULL;
        }
        row_maintain(keeper->engine->row, keeper->barrier);
    }
}

void phantom_keeper_start(struct phantom_keeper *keeper, struct engine *engine)
{
    *keeper = (struct phantom_keeper){.engine = engine, .barrier = barrier_create()};
    CHECK(keeper->barrier != NULL);
    sem_init(&keeper->asked, 0, 0);
    engine->keeper = (struct engine_keeper){notify, &keeper->asked};
    CHECK(pthread_create(&keeper->thread, NULL, keep, keeper) == 0);
}

void phantom_keeper_end(struct phantom_keeper *keeper)
{
    atomic_store(&keeper->stop, true);
    sem_post(&keeper->asked);
    pthread_join(keeper->thread, NULL);
    keeper->engine->keeper = (struct engine_keeper){NULL, NULL};
    barrier_destroy(keeper->barrier);
    sem_destroy(&keeper->asked);
}

static void wake(void *target, uint64_t serial)
{
    (void)serial;
    sem_post(target);
}

void phantom_turn_init(struct phantom_turn *turn, struct phantom_keeper *keeper,
                       struct change_sink *sink)
{
    *turn = (struct phantom_turn){keeper, sink, barrier_join(keeper->barrier), {{0}}};
    CHECK(turn->member != NULL);
    sem_init(&turn->woken, 0, 0);
}

void phantom_turn_fini(struct phantom_turn *turn)
{
    barrier_resign(turn->member);
    sem_destroy(&turn->woken);
}

struct engine_op phantom_turn_run(struct phantom_turn *turn, enum engine_verb verb, uint64_t id,
                                  const char *member)
{
    struct phantoms_call call;
    for (;;) {
        phantoms_call_init(&call, verb, id, member, "1");
        call.op.ticket = (struct ticket){wake, &turn->woken, 0};
        barrier_enter(turn->member);
        enum engine_status status = phantoms_try(turn->keeper->engine, &call, turn->sink);
        barrier_leave(turn->member);
        if (status != ENGINE_PENDING) {
            call.op.member = call.op.text = call.op.value = NULL;
            return call.op;
        }
        wait_for(&turn->woken);
    }
}
