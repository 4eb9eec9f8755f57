/* table_figures.h: the figures of all tables of a space, oldest first. Thread rule: inside. */
#ifndef ROLLCALL_TESTS_SUPPORT_TABLE_FIGURES_H
#define ROLLCALL_TESTS_SUPPORT_TABLE_FIGURES_H

#include "engine/engine.h"

static inline void stats_of_tables(const struct engine *engine, engine_stat_fn *emit, void *context)
{
    uint64_t from = 0;
    do {
        from = engine->functions->stats_table(engine, from, emit, context);
    } while (from != 0);
}

#endif
