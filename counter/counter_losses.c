/* counter_losses.c: what another configuration would lose, counted. */
#include <string.h>

#include "base/check.h"
#include "counter/counter_private.h"

struct losing {
    const struct counter_slot *slot;
    struct engine_loss *loss;
};

static void count_in(void *context, struct row_table *table, bool layer)
{
    struct losing *losing = context;
    struct counter_table *this = counter_table_of(table);
    (void)layer;
    if (!table->cold) {
        losing->loss->records += counter_table_count_slot(this, losing->slot);
    } else if (counter_schema_sub(counter_table_schema(this), losing->slot) >= 0) {
        losing->loss->dumped += atomic_load(&table->count); /* without reading their files */
    }
}

static bool names(const struct counter_config *config, const char *name)
{
    for (size_t i = 0; i < config->slot_count; i++) {
        if (strcmp(config->slots[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

size_t counter_losses(const struct engine *engine, const struct counter_config *config,
                      struct engine_loss losses[ENGINE_LOSSES_MAX])
{
    const struct counter *counter = (const struct counter *)engine;
    struct row_config row;
    size_t count = 0;
    CHECK(counter->magic == COUNTER_MAGIC);
    for (size_t i = 0; i < counter->config.slot_count; i++) {
        const struct counter_slot *slot = &counter->config.slots[i];
        if (names(config, slot->name)) {
            continue;
        }
        struct losing losing = {slot, &losses[count]};
        losses[count] = (struct engine_loss){.slot = true};
        strcpy(losses[count].name, slot->name);
        row_each(&counter->row, count_in, &losing);
        count += losses[count].records + losses[count].dumped > 0;
    }
    counter_row_config(config, &row);
    row_losses(&counter->row, &row, losses, &count);
    return count;
}
