/* The one file that knows which engine a kind of space has. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/size.h"
#include "config/forecast.h"
#include "counter/counter.h"
#include "phantom/phantom.h"
#include "plain/plain.h"
#include "space/spaces.h"

#define WHY_MAX         COUNTER_ERROR_MAX /* room for the error of any engine */
#define TABLES_TEXT_MAX 96

_Static_assert(PHANTOM_ERROR_MAX <= WHY_MAX, "WHY_MAX: the largest");

static void spaces_engine_refuse(char error[SPACES_ERROR_MAX], const char *space, const char *why)
{
    snprintf(error, SPACES_ERROR_MAX, "space %s: %s", space, why);
}

/* ---- texts ---- */

/* "4 + 1 tables x 16 MiB": those that hold something at a time, and the spare. */
static void text_tables(unsigned tables, unsigned spare, uint64_t bytes, char text[TABLES_TEXT_MAX])
{
    char each[SIZE_TEXT_MAX];
    int length = snprintf(text, TABLES_TEXT_MAX, "%u", tables);

    if (spare > 0) {
        length += snprintf(text + length, TABLES_TEXT_MAX - (size_t)length, " + %u", spare);
    }
    size_text(each, bytes);
    snprintf(text + length, TABLES_TEXT_MAX - (size_t)length, " table%s x %s",
             tables + spare == 1 ? "" : "s", each);
}

static void text_count(uint64_t count, char *text, size_t size)
{
    if (count >= 1000000000) {
        snprintf(text, size, "%.1f billion", (double)count / 1e9);
    } else if (count >= 1000000) {
        snprintf(text, size, "%.1f million", (double)count / 1e6);
    } else if (count >= 10000) {
        snprintf(text, size, "%.0f thousand", (double)count / 1e3);
    } else {
        snprintf(text, size, "%llu", (unsigned long long)count);
    }
}

/* ---- by kind ---- */

union spaces_config {
    struct counter_config counter;
    struct phantom_config phantom;
    struct plain_config plain;
};

static void spaces_config_take(union spaces_config *config, const struct space_settings *settings,
                               uint32_t number)
{
    switch (settings->kind) {
    case SPACE_COUNTER:
        settings_counter_config(settings, number, &config->counter);
        return;
    case SPACE_PHANTOM:
        settings_phantom_config(settings, number, &config->phantom);
        return;
    case SPACE_PLAIN:
        config->plain = (struct plain_config){.memory_bytes = settings->memory_bytes,
                                              .item_bytes_max = settings->item_bytes_max};
        return;
    }
}

static struct engine *spaces_engine_make(const struct space_settings *settings, uint32_t number,
                                         char why[WHY_MAX])
{
    union spaces_config config;
    struct engine *engine = NULL;

    spaces_config_take(&config, settings, number);
    switch (settings->kind) {
    case SPACE_COUNTER:
        return counter_config_valid(&config.counter, why) ? counter_create(&config.counter, why)
                                                          : NULL;
    case SPACE_PHANTOM:
        return phantom_config_valid(&config.phantom, why) ? phantom_create(&config.phantom, why)
                                                          : NULL;
    case SPACE_PLAIN:
        engine = plain_create(&config.plain);
        if (engine == NULL) {
            snprintf(why, WHY_MAX, "no memory: %s", strerror(errno));
        }
    }
    return engine;
}

static bool spaces_engine_take(struct engine *engine, const struct space_settings *next,
                               uint32_t number, bool undo, char why[WHY_MAX])
{
    union spaces_config config;

    spaces_config_take(&config, next, number);
    switch (next->kind) {
    case SPACE_COUNTER:
        config.counter.undo = undo;
        return counter_config_valid(&config.counter, why) &&
               counter_reconfigure(engine, &config.counter, why);
    case SPACE_PHANTOM:
        return phantom_config_valid(&config.phantom, why) &&
               phantom_reconfigure(engine, &config.phantom, why);
    case SPACE_PLAIN:
        plain_reconfigure(engine, &config.plain);
    }
    return true;
}

struct engine *space_engine_create(const struct space_settings *settings, uint32_t number,
                                   char error[SPACES_ERROR_MAX])
{
    char why[WHY_MAX];
    struct engine *engine = spaces_engine_make(settings, number, why);

    if (engine == NULL) {
        spaces_engine_refuse(error, settings->name, why);
    }
    return engine;
}

static bool spaces_engine_reconfigure(struct space *space, const struct space_settings *next,
                                      bool undo, char error[SPACES_ERROR_MAX])
{
    struct space_settings taken;
    char why[WHY_MAX];

    CHECK(space->settings.kind == next->kind);
    settings_space_next(&space->settings, next, &taken);
    if (!spaces_engine_take(space->engine, &taken, space->index, undo, why)) {
        spaces_engine_refuse(error, space->name, why);
        return false;
    }
    space->settings = taken;
    space_words_make(space);
    return true;
}

bool space_reconfigure(struct space *space, const struct space_settings *next,
                       char error[SPACES_ERROR_MAX])
{
    return spaces_engine_reconfigure(space, next, false, error);
}

bool space_undo(struct space *space, const struct space_settings *before,
                char error[SPACES_ERROR_MAX])
{
    return spaces_engine_reconfigure(space, before, true, error);
}

size_t space_losses(const struct space *space, const struct space_settings *next,
                    struct engine_loss losses[ENGINE_LOSSES_MAX])
{
    struct space_settings taken;
    union spaces_config config;

    settings_space_next(&space->settings, next, &taken);
    spaces_config_take(&config, &taken, 0);
    switch (taken.kind) {
    case SPACE_COUNTER:
        return counter_losses(space->engine, &config.counter, losses);
    case SPACE_PHANTOM:
        return phantom_losses(space->engine, &config.phantom, losses);
    case SPACE_PLAIN: /* a cache forgets as it has to */
        break;
    }
    return 0;
}

void space_describe(const struct space_settings *settings, char *text, size_t size)
{
    struct forecast holds;
    char tables[TABLES_TEXT_MAX], memory[SIZE_TEXT_MAX], count[32];

    if (settings->kind == SPACE_PLAIN) {
        size_text(memory, settings->memory_bytes);
        snprintf(text, size, "%s: %s for all other keys", settings->name, memory);
        return;
    }
    forecast_space(settings, 0, &holds);
    text_tables(holds.tables, holds.spare, settings->row.table_bytes, tables);
    text_count(holds.holds, count, sizeof(count));
    if (settings->kind == SPACE_PHANTOM) {
        snprintf(text, size, "%s: %s, about %s members, %.1f bits each, 1 in %.0f wrong",
                 settings->name, tables, count, 8 * holds.bytes_each,
                 1 / settings->false_positives);
    } else if (settings->ids == SPACE_IDS_ANY) { /* what is there already is the engine's to tell */
        size_text(memory, settings->row.table_bytes);
        snprintf(text, size,
                 "%s: %s set aside, for about %s ids, %.1f bytes each; it grows as far as `memory` "
                 "allows",
                 settings->name, memory, count, holds.bytes_each);
    } else {
        snprintf(text, size, "%s: %s, about %s ids, %.1f bytes each", settings->name, tables, count,
                 holds.bytes_each);
    }
}
