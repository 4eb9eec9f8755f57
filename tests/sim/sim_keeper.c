/* sim_keeper.c: a keeper that is told to wait, and notes it. */
#include "tests/sim/sim_keeper.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"

struct keeper {
    bool bracketed;
    unsigned holders;
};

struct keeper *keeper_create(struct barrier *barrier, keeper_errand_fn *errand, void *context)
{
    (void)barrier;
    (void)errand;
    (void)context;
    return memory_zalloc(sizeof(struct keeper));
}

void keeper_destroy(struct keeper *keeper)
{
    CHECK(keeper == NULL || (!keeper->bracketed && keeper->holders == 0));
    free(keeper);
}

void keeper_attach(struct keeper *keeper, struct spaces *spaces)
{
    (void)keeper;
    (void)spaces;
}

bool keeper_start(struct keeper *keeper, const struct spaces *spaces)
{
    (void)keeper;
    (void)spaces;
    return true;
}

void keeper_end(struct keeper *keeper)
{
    (void)keeper;
}

void keeper_hold(struct keeper *keeper)
{
    keeper->holders++;
}

void keeper_release(struct keeper *keeper)
{
    CHECK(keeper->holders > 0);
    keeper->holders--;
}

void keeper_stop(struct keeper *keeper)
{
    CHECK(!keeper->bracketed);
    keeper->bracketed = true;
}

void keeper_go(struct keeper *keeper, const struct spaces *spaces)
{
    (void)spaces;
    CHECK(keeper->bracketed);
    keeper->bracketed = false;
}

bool sim_keeper_is_held(const struct keeper *keeper)
{
    return keeper->bracketed || keeper->holders > 0;
}

bool sim_keeper_is_bracketed(const struct keeper *keeper)
{
    return keeper->bracketed;
}
