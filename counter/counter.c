/*
 * counter.c: the engine's life: configuration, creation, reconfiguration.
 */
#include "counter/counter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "counter/counter_private.h"

static bool refuse(char error[COUNTER_ERROR_MAX], const char *text)
{
    snprintf(error, COUNTER_ERROR_MAX, "%s", text);
    return false;
}

static bool slots_valid(const struct counter_config *config, char error[COUNTER_ERROR_MAX])
{
    unsigned bits = 0;
    if (config->slot_count < 1 || config->slot_count > ENGINE_SLOTS_MAX) {
        return refuse(error, "a counter space needs 1 to 16 slots");
    }
    for (size_t i = 0; i < config->slot_count; i++) {
        const struct counter_slot *slot = &config->slots[i];
        if (slot->bits < COUNTER_SLOT_BITS_MIN || slot->bits > COUNTER_SLOT_BITS_MAX) {
            snprintf(error, COUNTER_ERROR_MAX, "slot %s has %u bits; a slot has %d to %d bits",
                     slot->name, slot->bits, COUNTER_SLOT_BITS_MIN, COUNTER_SLOT_BITS_MAX);
            return false;
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(slot->name, config->slots[j].name) == 0) {
                snprintf(error, COUNTER_ERROR_MAX, "slot %s is given twice", slot->name);
                return false;
            }
        }
        bits += slot->bits;
    }
    if (bits > COUNTER_RECORD_BITS_MAX) {
        snprintf(error, COUNTER_ERROR_MAX,
                 "the slots have %u bits together; a record has at most %d", bits,
                 COUNTER_RECORD_BITS_MAX);
        return false;
    }
    return true;
}

bool counter_config_valid(const struct counter_config *config, char error[COUNTER_ERROR_MAX])
{
    uint64_t bytes = config->table_bytes;
    if (bytes < COUNTER_TABLE_BYTES_MIN || bytes > COUNTER_TABLE_BYTES_MAX ||
        (bytes & (bytes - 1)) != 0) {
        return refuse(error, "table-size is a power of two from 64 KiB to 1 TiB");
    }
    if (config->any_ids && (config->max_id < 1 || config->max_id > INT64_MAX)) {
        return refuse(error, "max-id is 1 to 9223372036854775807");
    }
    if (!config->any_ids && config->id_spacing > INT64_MAX) {
        return refuse(error, "id-spacing is at most 9223372036854775807");
    }
    return slots_valid(config, error);
}

void counter_config_size(const struct counter_config *config, struct counter_size *size)
{
    struct counter_shape shape;
    counter_shape_init(&shape, config);
    size->bytes = shape.table_bytes + shape.extend_bytes + shape.aux_bytes;
    size->records = shape.capacity;
    size->bytes_per_record = (double)shape.table_bytes / (double)shape.capacity;
}

static void take_small_settings(struct counter *counter, const struct counter_config *config)
{
    counter->engine.role_cache = config->role_cache;
    counter->engine.flags = config->value_flags;
    counter->config.role_cache = config->role_cache;
    counter->config.value_flags = config->value_flags;
    memcpy(counter->config.slots, config->slots, sizeof config->slots);
    counter->config.slot_count = config->slot_count;
}

bool counter_reconfigure(struct engine *engine, const struct counter_config *config,
                         char error[COUNTER_ERROR_MAX])
{
    struct counter *counter = (struct counter *)engine;
    CHECK(counter->magic == COUNTER_MAGIC);
    if (!slots_valid(config, error)) {
        return false;
    }
    struct counter_view view;
    if (!counter_view_make(&view, counter_table_schema(counter->table), config)) {
        return refuse(error,
                      "the table has learned 32 new slot names already; restart to add more");
    }
    counter->view = view;
    take_small_settings(counter, config);
    return true;
}

static void counter_clear(struct engine *engine)
{
    struct counter *counter = (struct counter *)engine;
    counter_table_clear(counter->table);
    counter->opened_s = clock_wall_s();
}

static void counter_populate(struct engine *engine, const _Atomic bool *stop)
{
    counter_table_populate(((struct counter *)engine)->table, stop);
}

static void counter_destroy(struct engine *engine)
{
    struct counter *counter = (struct counter *)engine;
    if (!counter) {
        return;
    }
    CHECK(counter->magic == COUNTER_MAGIC);
    counter_table_destroy(counter->table);
    counter->magic = 0;
    free(counter);
}

static const struct engine_functions counter_functions = {
    .kind = "counter",
    .slot = counter_slot_of,
    .prepare = counter_prepare,
    .read = counter_read,
    .change = counter_change,
    .clear = counter_clear,
    .stats_space = counter_stats_space,
    .stats_tables = counter_stats_tables,
    .memory = counter_memory,
    .populate = counter_populate,
    .destroy = counter_destroy,
};

struct engine *counter_create(const struct counter_config *config, char error[COUNTER_ERROR_MAX])
{
    CHECK(counter_config_valid(config, error));
    struct counter *counter = memory_zalloc(sizeof *counter);
    counter->magic = COUNTER_MAGIC;
    counter->config = *config;
    counter->engine.functions = &counter_functions;
    counter->engine.space = config->space;
    counter->opened_s = clock_wall_s();
    counter->table = counter_table_create(config);
    if (!counter->table) {
        snprintf(error, COUNTER_ERROR_MAX, "the system refuses %llu bytes of memory for a table",
                 (unsigned long long)config->table_bytes);
        free(counter);
        return NULL;
    }
    bool viewed = counter_view_make(&counter->view, counter_table_schema(counter->table), config);
    CHECK(viewed); /* every slot is a physical one */
    take_small_settings(counter, config);
    return &counter->engine;
}

void counter_check(const struct engine *engine)
{
    const struct counter *counter = (const struct counter *)engine;
    CHECK(counter->magic == COUNTER_MAGIC);
    CHECK(counter->view.slot_count == counter->config.slot_count);
    counter_table_check(counter->table);
}
