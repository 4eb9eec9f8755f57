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

/* ---- kind counter ---- */

static struct engine *create_counter(const struct space_settings *settings, uint32_t number,
                                     char why[WHY_MAX])
{
    struct counter_config config;

    settings_counter_config(settings, number, &config);
    return counter_config_valid(&config, why) ? counter_create(&config, why) : NULL;
}

static bool reconfigure_counter(struct engine *engine, const struct space_settings *next,
                                uint32_t number, bool undo, char why[WHY_MAX])
{
    struct counter_config config;

    settings_counter_config(next, number, &config);
    config.undo = undo;
    return counter_config_valid(&config, why) && counter_reconfigure(engine, &config, why);
}

static size_t losses_counter(const struct engine *engine, const struct space_settings *next,
                             struct engine_loss losses[ENGINE_LOSSES_MAX])
{
    struct counter_config config;

    settings_counter_config(next, 0, &config);
    return counter_losses(engine, &config, losses);
}

static void describe_counter(const struct space_settings *settings, char *text, size_t size)
{
    struct forecast holds;
    char tables[TABLES_TEXT_MAX];
    char ids[32];

    forecast_space(settings, 0, &holds);
    text_count(holds.holds, ids, sizeof(ids));
    if (settings->ids == SPACE_IDS_ANY) { /* what is there already is the engine's to tell */
        size_text(tables, settings->row.table_bytes);
        snprintf(text, size,
                 "%s: %s set aside, for about %s ids, %.1f bytes each; it grows as far as `memory` "
                 "allows",
                 settings->name, tables, ids, holds.bytes_each);
        return;
    }
    text_tables(holds.tables, holds.spare, settings->row.table_bytes, tables);
    snprintf(text, size, "%s: %s, about %s ids, %.1f bytes each", settings->name, tables, ids,
             holds.bytes_each);
}

/* ---- kind phantom ---- */

static struct engine *create_phantom(const struct space_settings *settings, uint32_t number,
                                     char why[WHY_MAX])
{
    struct phantom_config config;

    settings_phantom_config(settings, number, &config);
    return phantom_config_valid(&config, why) ? phantom_create(&config, why) : NULL;
}

static bool reconfigure_phantom(struct engine *engine, const struct space_settings *next,
                                uint32_t number, bool undo, char why[WHY_MAX])
{
    struct phantom_config config;

    (void)undo;
    settings_phantom_config(next, number, &config);
    return phantom_config_valid(&config, why) && phantom_reconfigure(engine, &config, why);
}

static size_t losses_phantom(const struct engine *engine, const struct space_settings *next,
                             struct engine_loss losses[ENGINE_LOSSES_MAX])
{
    struct phantom_config config;

    settings_phantom_config(next, 0, &config);
    return phantom_losses(engine, &config, losses);
}

static void describe_phantom(const struct space_settings *settings, char *text, size_t size)
{
    struct forecast holds;
    char tables[TABLES_TEXT_MAX];
    char members[32];

    forecast_space(settings, 0, &holds);
    text_tables(holds.tables, holds.spare, settings->row.table_bytes, tables);
    text_count(holds.holds, members, sizeof(members));
    snprintf(text, size, "%s: %s, about %s members, %.1f bits each, 1 in %.0f wrong",
             settings->name, tables, members, 8 * holds.bytes_each, 1 / settings->false_positives);
}

/* ---- kind plain ---- */

static void settings_plain_config(const struct space_settings *settings,
                                  struct plain_config *config)
{
    *config = (struct plain_config){.memory_bytes = settings->memory_bytes,
                                    .item_bytes_max = settings->item_bytes_max};
}

static struct engine *create_plain(const struct space_settings *settings, uint32_t number,
                                   char why[WHY_MAX])
{
    struct plain_config config;

    (void)number;
    settings_plain_config(settings, &config);
    struct engine *engine = plain_create(&config);

    if (engine == NULL) {
        snprintf(why, WHY_MAX, "no memory: %s", strerror(errno));
    }
    return engine;
}

static bool reconfigure_plain(struct engine *engine, const struct space_settings *next,
                              uint32_t number, bool undo, char why[WHY_MAX])
{
    struct plain_config config;

    (void)number;
    (void)undo;
    (void)why;
    settings_plain_config(next, &config);
    plain_reconfigure(engine, &config);
    return true;
}

static size_t losses_plain(const struct engine *engine, const struct space_settings *next,
                           struct engine_loss losses[ENGINE_LOSSES_MAX])
{
    (void)engine;
    (void)next;
    (void)losses;
    return 0; /* a cache forgets as it has to */
}

static void describe_plain(const struct space_settings *settings, char *text, size_t size)
{
    char memory[SIZE_TEXT_MAX];

    size_text(memory, settings->memory_bytes);
    snprintf(text, size, "%s: %s for all other keys", settings->name, memory);
}

/* ---- by kind ---- */

static const struct kind {
    struct engine *(*create)(const struct space_settings *settings, uint32_t number,
                             char why[WHY_MAX]);
    bool (*reconfigure)(struct engine *engine, const struct space_settings *next, uint32_t number,
                        bool undo, char why[WHY_MAX]);
    size_t (*losses)(const struct engine *engine, const struct space_settings *next,
                     struct engine_loss losses[ENGINE_LOSSES_MAX]);
    void (*describe)(const struct space_settings *settings, char *text, size_t size);
} kinds[] = {
    [SPACE_COUNTER] = {create_counter, reconfigure_counter, losses_counter, describe_counter},
    [SPACE_PHANTOM] = {create_phantom, reconfigure_phantom, losses_phantom, describe_phantom},
    [SPACE_PLAIN] = {create_plain, reconfigure_plain, losses_plain, describe_plain},
};

static const struct kind *spaces_engine_kind_of(const struct space_settings *settings)
{
    CHECK(settings->kind < sizeof(kinds) / sizeof(kinds[0]));
    return &kinds[settings->kind];
}

struct engine *space_engine_create(const struct space_settings *settings, uint32_t number,
                                   char error[SPACES_ERROR_MAX])
{
    char why[WHY_MAX];
    struct engine *engine = spaces_engine_kind_of(settings)->create(settings, number, why);

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
    if (!spaces_engine_kind_of(&taken)->reconfigure(space->engine, &taken, space->index, undo,
                                                    why)) {
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

    settings_space_next(&space->settings, next, &taken);
    return spaces_engine_kind_of(&taken)->losses(space->engine, &taken, losses);
}

void space_describe(const struct space_settings *settings, char *text, size_t size)
{
    spaces_engine_kind_of(settings)->describe(settings, text, size);
}
