/*
 * counter.c: the engine's life: creation, reconfiguration.
 */
#include "counter/counter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "counter/counter_private.h"

static bool same_slots(const struct counter_config *a, const struct counter_config *b)
{
    bool same = a->slot_count == b->slot_count;
    for (size_t i = 0; same && i < a->slot_count; i++) {
        same = a->slots[i].bits == b->slots[i].bits && a->slots[i].number == b->slots[i].number &&
               strcmp(a->slots[i].name, b->slots[i].name) == 0;
    }
    return same;
}

static const struct counter_slot *slot_of_name(const struct counter_slot *slots, size_t count,
                                               const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(slots[i].name, name) == 0) {
            return &slots[i];
        }
    }
    return NULL;
}

/* Returns a slot of this name that is there, or was: the same slot goes on. NULL: the slot is new.
 */
static const struct counter_slot *known_slot(const struct counter *counter, const char *name,
                                             bool undo)
{
    const struct counter_config *is = &counter->config;
    const struct counter_slots *before = &counter->before;
    const struct counter_slot *known = slot_of_name(is->slots, is->slot_count, name);
    if (known == NULL && undo) {
        known = slot_of_name(before->at, before->count, name);
    }
    return known ? known : slot_of_name(counter->left.at, counter->left.count, name);
}

/* Slots that are known keep their numbers, others get new ones. False: none is left. */
static bool number_slots(const struct counter *counter, struct counter_config *config,
                         unsigned *numbers)
{
    *numbers = counter->slot_numbers;
    for (size_t i = 0; i < config->slot_count; i++) {
        struct counter_slot *slot = &config->slots[i];
        const struct counter_slot *known = known_slot(counter, slot->name, config->undo);
        slot->number = known ? known->number : ++*numbers;
    }
    return *numbers <= COUNTER_SLOT_NUMBER_MAX;
}

static bool is_forgotten(const struct counter_config *config, const char *name)
{
    bool forgotten = false;
    for (size_t i = 0; i < config->forget_count; i++) {
        forgotten = forgotten || strcmp(config->forget[i], name) == 0;
    }
    return forgotten;
}

static void leave_slot(struct counter_slots *left, const struct counter_config *next,
                       const struct counter_slot *slot)
{
    bool named = slot_of_name(next->slots, next->slot_count, slot->name) != NULL;
    if (named || is_forgotten(next, slot->name)) {
        return;
    }
    if (left->count == ENGINE_SLOTS_MAX) {
        memmove(left->at, left->at + 1, --left->count * sizeof(left->at[0]));
    }
    left->at[left->count++] = *slot;
}

/* Takes the slots that `next` does not name. Returns whether they are others than before. */
static bool leave_slots(struct counter *counter, const struct counter_config *next)
{
    struct counter_slots left = {.count = 0};
    for (size_t i = 0; i < counter->left.count; i++) {
        leave_slot(&left, next, &counter->left.at[i]);
    }
    for (size_t i = 0; i < counter->config.slot_count; i++) {
        leave_slot(&left, next, &counter->config.slots[i]);
    }
    bool other = left.count != counter->left.count ||
                 memcmp(left.at, counter->left.at, left.count * sizeof(left.at[0])) != 0;
    counter->left = left;
    return other;
}

void counter_forget_below(struct counter *counter)
{
    if (counter->below) {
        counter_below_reset(counter->below, counter->names.count);
    }
}

void counter_take_slots(struct counter *counter, const struct counter_config *config)
{
    bool same = same_slots(&counter->config, config);
    memmove(counter->config.slots, config->slots, sizeof(config->slots));
    counter->config.slot_count = config->slot_count;
    memset(&counter->names, 0, sizeof(counter->names));
    for (size_t i = 0; i < config->slot_count; i++) {
        engine_slots_add(&counter->names, config->slots[i].name);
    }
    if (!same) {
        counter_forget_below(counter);
    }
}

static void take_role(struct counter *counter, const struct counter_config *config)
{
    counter->engine.role_cache = config->role_cache;
    counter->engine.flags = config->value_flags;
    counter->config.role_cache = config->role_cache;
    counter->config.keep_empty = config->keep_empty;
    counter->config.value_flags = config->value_flags;
}

/* What holds from the next table on. */
static void take_row(struct counter *counter, const struct counter_config *config, bool renew)
{
    struct row_config row;
    if (!config->row.any_ids) { /* `ids` is a restart's to change */
        counter->config.row = config->row;
    }
    counter->config.extend_bytes = config->extend_bytes;
    counter->config.aux_bytes = config->aux_bytes;
    counter_row_config(&counter->config, &row);
    row_reconfigure(&counter->row, &row, renew);
}

struct viewing {
    const struct counter_config *config;
    bool can;
};

static void ask_view(void *context, struct row_table *table, bool layer)
{
    struct viewing *viewing = context;
    (void)layer;
    viewing->can = viewing->can && counter_table_can_view(counter_table_of(table), viewing->config);
}

static void set_view(void *context, struct row_table *table, bool layer)
{
    struct viewing *viewing = context;
    (void)layer;
    counter_table_set_view(counter_table_of(table), viewing->config);
}

/* Has a cache of records below the oldest table, or none; one that stays keeps its size. */
static bool take_below(struct counter *counter)
{
    uint64_t bytes = counter_below_bytes(&counter->config);
    if (bytes == 0) {
        counter->below_evicted = counter_below_figures(counter).evicted;
        counter_below_destroy(counter->below);
        counter->below = NULL;
    } else if (!counter->below) {
        counter->below = counter_below_create(bytes, counter->names.count);
    }
    return bytes == 0 || counter->below != NULL;
}

static bool reconfigure(struct counter *counter, const struct counter_config *config,
                        unsigned numbers, char error[COUNTER_ERROR_MAX])
{
    struct viewing viewing = {config, true};
    row_each(&counter->row, ask_view, &viewing);
    if (!viewing.can) {
        snprintf(error, COUNTER_ERROR_MAX,
                 "a table has learned %d new slot names already; it takes no more",
                 SCHEMA_EXTRAS_MAX);
        return false;
    }
    row_each(&counter->row, set_view, &viewing);
    bool same = same_slots(&counter->config, config);
    take_role(counter, config);
    same = !leave_slots(counter, config) && same;
    memcpy(counter->before.at, counter->config.slots, sizeof(counter->before.at));
    counter->before.count = counter->config.slot_count;
    counter->slot_numbers = numbers;
    counter_take_slots(counter, config);
    if (!same) {
        row_log_space(&counter->row);
    }
    if (!counter->config.row.any_ids) {
        struct row_table *newest = counter->row.tables[counter->row.count - 1];
        bool renew = !counter_schema_is(counter_table_schema(counter_table_of(newest)), config);
        take_row(counter, config, renew);
    }
    counter->config.below_bytes = config->below_bytes;
    if (!take_below(counter)) {
        log_warning("no memory for ids below the oldest table: what is written there is dropped");
    }
    return true;
}

bool counter_reconfigure(struct engine *engine, const struct counter_config *config,
                         char error[COUNTER_ERROR_MAX])
{
    struct counter *counter = (struct counter *)engine;
    struct counter_config numbered = *config;
    unsigned numbers;
    CHECK(counter->magic == COUNTER_MAGIC);
    if (!counter_slots_valid(config, error)) {
        return false;
    }
    if (!number_slots(counter, &numbered, &numbers)) {
        return fail_with(error, COUNTER_ERROR_MAX,
                         "the space has had %d slots, and takes no new one",
                         COUNTER_SLOT_NUMBER_MAX);
    }
    return reconfigure(counter, &numbered, numbers, error);
}

static void counter_destroy(struct engine *engine)
{
    struct counter *counter = (struct counter *)engine;
    if (!counter) {
        return;
    }
    CHECK(counter->magic == COUNTER_MAGIC);
    row_fini(&counter->row);
    counter_below_destroy(counter->below);
    counter->magic = 0;
    free(counter);
}

static const struct engine_functions counter_functions = {
    .kind = "counter",
    .prepare = counter_prepare,
    .read = counter_read,
    .change = counter_change,
    .stats_space = counter_stats_space,
    .stats_table = counter_stats_table,
    .figures = counter_figures,
    .destroy = counter_destroy,
};

struct engine *counter_create(const struct counter_config *config, char error[COUNTER_ERROR_MAX])
{
    CHECK(counter_config_valid(config, error));
    struct counter *counter = memory_zalloc(sizeof(*counter));
    struct row_config row;
    counter->magic = COUNTER_MAGIC;
    counter->config = *config;
    counter->config.slot_count = 0;
    struct counter_config numbered = *config;
    CHECK(number_slots(counter, &numbered, &counter->slot_numbers));
    counter->engine.functions = &counter_functions;
    counter->engine.slots = &counter->names;
    counter->engine.space = config->space;
    take_role(counter, config);
    counter_take_slots(counter, &numbered);
    counter_row_config(config, &row);
    if (!row_init(&counter->row, &row, &counter_kind, &counter->engine)) {
        snprintf(error, COUNTER_ERROR_MAX,
                 "the system refuses memory for %u tables of %llu bytes with their pools",
                 row.tables, (unsigned long long)config->row.table_bytes);
        free(counter);
        return NULL;
    }
    counter->engine.row = &counter->row;
    if (!take_below(counter)) {
        snprintf(error, COUNTER_ERROR_MAX, "the system refuses memory for ids below the oldest");
        counter_destroy(&counter->engine);
        return NULL;
    }
    return &counter->engine;
}

static void counter_check_table(void *context, struct row_table *table, bool layer)
{
    const struct counter *counter = context;
    (void)layer;
    const struct counter_table *this = counter_table_of(table);
    CHECK(counter_table_view(this)->slot_count == counter->names.count);
    counter_table_check(this);
}

static void check_below(const void *context, uint64_t id)
{
    const struct counter *counter = context;
    CHECK(row_route(&counter->row, id) == NULL);
}

void counter_check(const struct engine *engine)
{
    const struct counter *counter = (const struct counter *)engine;
    CHECK(counter->magic == COUNTER_MAGIC);
    CHECK(counter->names.count == counter->config.slot_count);
    row_check(&counter->row);
    row_each(&counter->row, counter_check_table, (void *)counter);
    if (counter->below) {
        counter_below_check(counter->below, ROW_ID_MAX + 1);
        counter_below_each(counter->below, check_below, counter);
    }
}
