/*
 * counter_row.c: what the row of tables needs of the engine: its configuration and its functions.
 */
#include "base/check.h"
#include "base/dict.h"
#include "counter/counter_private.h"

#define LATE_START   0.10 /* of a capacity, before the row knows how many come late */
#define SAMPLE_SHARE 4u   /* of the room of the extend dict, for the first table's sample */

void counter_row_config(const struct counter_config *config, struct row_config *row)
{
    struct counter_shape shape;
    counter_shape_init(&shape, config, 0);
    uint64_t sample = shape.extend_bytes / (SAMPLE_SHARE * (DICT_KEY_BYTES + shape.payload_bytes));
    if (sample < ROW_SAMPLE_MIN) {
        sample = ROW_SAMPLE_MIN;
    }
    if (sample > ROW_SAMPLE_MAX) {
        sample = ROW_SAMPLE_MAX;
    }
    *row = (struct row_config){
        .any_ids = config->any_ids,
        .ids_once = true,
        .recycle = config->recycle && !config->any_ids,
        .dump = config->dump && !config->any_ids,
        .dumps_max = config->dumps_max,
        .tables = config->any_ids ? 1 : config->tables,
        .table_bytes = config->table_bytes,
        .late_room = config->late_room,
        .late_start = LATE_START,
        .sample = (unsigned)sample,
    };
}

static struct row_table *row_create(void *engine, const struct row_want *want)
{
    struct counter *counter = engine;
    CHECK(counter->magic == COUNTER_MAGIC);
    struct counter_config config = counter->config;
    config.table_bytes = want->region_bytes;
    struct counter_table *table = counter_table_create(&config, want, &counter->row);
    return table ? counter_table_in_row(table) : NULL;
}

static void row_destroy(struct row_table *table)
{
    counter_table_destroy(counter_table_of(table));
}

/* With the spacing given a full table's range need not be shown by one. */
static uint64_t spaced_range(const struct row_table *table, uint64_t spacing)
{
    unsigned __int128 range = (unsigned __int128)table->capacity * spacing;
    return range > ROW_ID_MAX ? ROW_ID_MAX : (uint64_t)range;
}

static void row_settle(void *engine, struct row_table *table)
{
    const struct counter *counter = engine;
    struct counter_table *this = counter_table_of(table);
    table->range = spaced_range(table, counter->config.id_spacing);
    counter_table_settle(this);
    if (!counter_schema_is(counter_table_schema(this), &counter->config)) {
        /* The slots were changed while nobody knew where the next table would begin. */
        atomic_fetch_or(&table->wants, ROW_WANT_RENEW);
    }
}

static bool place_counters(void *engine, struct row_table *apart, struct row_table *to,
                           struct change_sink *sink)
{
    const struct counter *counter = engine;
    return counter_table_place(counter_table_of(apart), counter_table_of(to), counter->engine.space,
                               sink);
}

static uint64_t forget_counters(struct row_table *apart, uint64_t first, uint64_t last)
{
    return counter_table_forget(counter_table_of(apart), first, last);
}

static size_t row_describe_one(const struct row_table *table, unsigned char *bytes)
{
    return counter_table_describe(counter_table_of((struct row_table *)table), bytes);
}

static void each_counter_apart(const struct row_table *apart,
                               void (*visit)(void *context, uint64_t id), void *context)
{
    counter_table_each_apart(counter_table_of((struct row_table *)apart), visit, context);
}

static void row_reopened(void *engine)
{
    counter_forget_below(engine);
}

const struct row_functions counter_row_functions = {
    .create = row_create,
    .destroy = row_destroy,
    .settle = row_settle,
    .place = place_counters,
    .each_apart = each_counter_apart,
    .forget = forget_counters,
    .describe = row_describe_one,
    .described_bytes = counter_table_described_bytes,
    .reopened = row_reopened,
};
