/*
 * phantom.c: the engine's life: creation, reconfiguration.
 */
#include "phantom/phantom.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "phantom/phantom_private.h"

/* ---- reconfiguration ---- */

struct deletes {
    bool on;
    uint64_t exceptions_bytes;
    bool refused;
};

static void turn_deletes(void *context, struct row_table *table, bool layer)
{
    struct deletes *deletes = context;
    if (!layer &&
        !phantom_table_deletes(phantom_table_of(table), deletes->on, deletes->exceptions_bytes)) {
        deletes->refused = true;
    }
}

/* What was made in vain is empty, and turning deletes off drops it. */
bool phantom_turn_deletes(const struct phantom *phantom, bool on, uint64_t exceptions_bytes)
{
    struct deletes next = {on, exceptions_bytes, false};
    struct deletes off = {false, 0, false};
    row_each(&phantom->row, turn_deletes, &next);
    if (next.refused) {
        row_each(&phantom->row, turn_deletes, &off);
    }
    return !next.refused;
}

/* The configuration that holds from now on: what needs a restart stays as it is. */
static void phantom_take_config(struct phantom *phantom, const struct phantom_config *config)
{
    struct phantom_config now = phantom->config;
    phantom->config = *config;
    phantom->config.space = now.space;
    phantom->config.max_id = now.max_id;
    if (now.row.any_ids || config->row.any_ids) { /* one of them says nothing of a row */
        phantom->config.row = now.row;
    }
    if (now.row.any_ids) {
        phantom->config.false_positives = now.false_positives;
    }
    phantom->engine.role_cache = config->role_cache;
    phantom->engine.flags = config->value_flags;
    phantom_shape_init(&phantom->shape, &phantom->config);
}

bool phantom_reconfigure(struct engine *engine, const struct phantom_config *config,
                         char error[PHANTOM_ERROR_MAX])
{
    struct phantom *phantom = (struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    if (!phantom_turn_deletes(phantom, config->deletes, config->exceptions_bytes)) {
        return fail_with(error, PHANTOM_ERROR_MAX, "the system refuses the memory for exceptions");
    }
    bool turned = config->deletes != phantom->config.deletes ||
                  config->exceptions_bytes != phantom->config.exceptions_bytes;
    phantom_take_config(phantom, config);
    if (turned) {
        row_log_space(&phantom->row);
    }
    struct row_config row = phantom_row_config(&phantom->config);
    row_reconfigure(&phantom->row, &row, false);
    return true;
}

size_t phantom_losses(const struct engine *engine, const struct phantom_config *config,
                      struct engine_loss losses[ENGINE_LOSSES_MAX])
{
    const struct phantom *phantom = (const struct phantom *)engine;
    struct row_config row = {.recycle = config->row.recycle,
                             .dumps_max = config->row.dumps_max,
                             .tables = config->row.tables,
                             .table_bytes = config->row.table_bytes};
    size_t count = 0;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    row_losses(&phantom->row, &row, losses, &count);
    return count;
}

/* ---- life ---- */

static void phantom_destroy(struct engine *engine)
{
    struct phantom *phantom = (struct phantom *)engine;
    if (!phantom) {
        return;
    }
    CHECK(phantom->magic == PHANTOM_MAGIC);
    row_fini(&phantom->row);
    phantom->magic = 0;
    free(phantom);
}

static const struct engine_functions phantom_functions = {
    .kind = "phantom",
    .prepare = phantom_prepare,
    .read = phantom_read,
    .change = phantom_change,
    .stats_space = phantom_stats_space,
    .stats_table = phantom_stats_table,
    .figures = phantom_figures,
    .destroy = phantom_destroy,
};

struct engine *phantom_create(const struct phantom_config *config, char error[PHANTOM_ERROR_MAX])
{
    CHECK(phantom_config_valid(config, error));
    struct phantom *phantom = memory_zalloc(sizeof(*phantom));
    phantom->magic = PHANTOM_MAGIC;
    phantom->engine.functions = &phantom_functions;
    phantom->engine.space = config->space;
    phantom->engine.only_value = PHANTOM_MEMBER_TEXT;
    phantom->secrets.first = clock_random();
    phantom->secrets.second = clock_random();
    phantom->config = *config;
    phantom_take_config(phantom, config);
    struct row_config row = phantom_row_config(&phantom->config);
    if (!row_init(&phantom->row, &row, &phantom_kind, &phantom->engine)) {
        snprintf(error, PHANTOM_ERROR_MAX, "the system refuses %llu bytes of memory for tables",
                 (unsigned long long)row.table_bytes * row.tables);
        free(phantom);
        return NULL;
    }
    phantom->engine.row = &phantom->row;
    return &phantom->engine;
}

static void phantom_check_table(void *context, struct row_table *table, bool layer)
{
    (void)context;
    if (!layer) {
        phantom_table_check(phantom_table_of(table));
    }
}

void phantom_check(const struct engine *engine)
{
    const struct phantom *phantom = (const struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    row_check(&phantom->row);
    row_each(&phantom->row, phantom_check_table, NULL);
}
