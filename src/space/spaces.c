#include "space/spaces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "protocol/protocol.h"

static struct space_metrics *metrics_create(unsigned workers)
{
    size_t bytes = sizeof(struct space_metrics) * (workers + 1);
    struct space_metrics *metrics = aligned_alloc(MEMORY_LINE_BYTES, bytes);

    CHECK(metrics != NULL);
    memset(metrics, 0, bytes);
    return metrics;
}

static struct space *space_create(const struct space_settings *settings, uint32_t number,
                                  unsigned workers, space_engine_fn *create,
                                  char error[SPACES_ERROR_MAX])
{
    struct engine *engine = create(settings, number, error);

    if (engine == NULL) {
        return NULL;
    }
    struct space *space = memory_zalloc(sizeof(*space));

    space->engine = engine;
    space->index = number;
    space->settings = *settings;
    space->metrics = metrics_create(workers);
    snprintf(space->name, sizeof(space->name), "%s", settings->name);
    engine->name = space->name;
    space_words_make(space);
    return space;
}

static void space_destroy(struct space *space)
{
    space->engine->functions->destroy(space->engine);
    free(space->metrics);
    free(space);
}

struct space *spaces_find(const struct spaces *spaces, const char *name)
{
    for (size_t i = 0; spaces != NULL && i < spaces->count; i++) {
        if (strcmp(spaces->at[i]->name, name) == 0) {
            return spaces->at[i];
        }
    }
    return NULL;
}

static bool patterns_create(struct spaces *spaces, const struct settings *settings,
                            char error[SPACES_ERROR_MAX])
{
    const struct space_settings *owners[SETTINGS_SPACES_MAX];
    const char *texts[SETTINGS_SPACES_MAX];
    char why[PATTERN_ERROR_MAX];
    uint32_t first = 0;
    uint32_t second = 0;
    size_t count = 0;

    for (size_t i = 0; i < settings->space_count; i++) {
        if (settings->spaces[i].kind != SPACE_PLAIN) {
            owners[count] = &settings->spaces[i];
            texts[count++] = settings->spaces[i].key;
        }
    }
    spaces->patterns = pattern_set_create(texts, count, why, &first, &second);
    if (spaces->patterns == NULL) {
        snprintf(error, SPACES_ERROR_MAX, "spaces %s and %s: %s", owners[first]->name,
                 owners[second]->name, why);
    }
    return spaces->patterns != NULL;
}

static void spaces_add(struct spaces *spaces, struct space *space, size_t *patterns)
{
    uint64_t value_max = PROTOCOL_VALUE_MAX;

    spaces->at[spaces->count++] = space;
    if (space->settings.kind == SPACE_PLAIN) {
        spaces->plain = space;
        value_max = space->settings.item_bytes_max;
    } else {
        spaces->of_pattern[(*patterns)++] = space;
    }
    if (value_max > spaces->value_max) {
        spaces->value_max = (uint32_t)value_max;
    }
}

struct spaces *spaces_create(const struct settings *settings, const struct spaces *now,
                             unsigned workers, space_engine_fn *create,
                             char error[SPACES_ERROR_MAX])
{
    struct spaces *spaces = memory_zalloc(sizeof(*spaces));
    size_t patterns = 0;

    CHECK(settings->space_count <= SETTINGS_SPACES_MAX && workers > 0);
    if (!patterns_create(spaces, settings, error)) {
        goto fail;
    }
    for (size_t i = 0; i < settings->space_count; i++) {
        const struct space_settings *wanted = &settings->spaces[i];
        struct space *space = spaces_find(now, wanted->name);

        if (space == NULL) {
            space = space_create(wanted, (uint32_t)i, workers, create, error);
        } else if (space->settings.kind != wanted->kind) {
            snprintf(error, SPACES_ERROR_MAX, "space %s: its kind cannot change", wanted->name);
            space = NULL;
        }
        if (space == NULL) {
            goto fail;
        }
        spaces_add(spaces, space, &patterns);
    }
    return spaces;
fail:
    spaces_drop(spaces, now);
    return NULL;
}

void spaces_drop(struct spaces *spaces, const struct spaces *keep)
{
    if (spaces == NULL) {
        return;
    }
    for (size_t i = 0; i < spaces->count; i++) {
        if (spaces_find(keep, spaces->at[i]->name) != spaces->at[i]) {
            space_destroy(spaces->at[i]);
        }
    }
    pattern_set_destroy(spaces->patterns);
    free(spaces);
}

void spaces_number(struct spaces *spaces)
{
    for (size_t i = 0; i < spaces->count; i++) {
        spaces->at[i]->index = (uint32_t)i;
    }
}
