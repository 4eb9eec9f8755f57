#include "server/reload.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "server/populate.h"

/* The configuration of the space of that name, or NULL. */
static const struct space_settings *wanted_for(const struct settings *settings, const char *name)
{
    for (size_t i = 0; i < settings->space_count; i++) {
        if (strcmp(settings->spaces[i].name, name) == 0) {
            return &settings->spaces[i];
        }
    }
    return NULL;
}

static bool same(const struct space_settings *a, const struct space_settings *b)
{
    bool slots = a->slot_count == b->slot_count;

    for (size_t i = 0; slots && i < a->slot_count; i++) {
        slots =
            strcmp(a->slots[i].name, b->slots[i].name) == 0 && a->slots[i].bits == b->slots[i].bits;
    }
    return slots && a->role == b->role && a->value_flags == b->value_flags &&
           a->deletes == b->deletes && strcmp(a->key, b->key) == 0;
}

/* Which spaces of a set have to change, and what they were. */
struct changes {
    size_t count;
    struct space *spaces[SETTINGS_SPACES_MAX];
    struct space_settings before[SETTINGS_SPACES_MAX];
};

/* World stopped. Gives back their old configuration to the first `count`. */
static void undo(struct changes *changes, size_t count)
{
    char error[SPACES_ERROR_MAX];

    while (count-- > 0) {
        if (!space_reconfigure(changes->spaces[count], &changes->before[count], error)) {
            log_error("reload: %s; and it cannot be undone", error);
        }
    }
}

/* World stopped. */
static bool change_spaces(struct changes *changes, const struct settings *next,
                          char error[SPACES_ERROR_MAX])
{
    for (size_t i = 0; i < changes->count; i++) {
        struct space *space = changes->spaces[i];

        if (!space_reconfigure(space, wanted_for(next, space->name), error)) {
            undo(changes, i);
            return false;
        }
    }
    return true;
}

static void collect(struct changes *changes, const struct spaces *now, const struct settings *next)
{
    changes->count = 0;
    for (size_t i = 0; i < now->count; i++) {
        struct space *space = now->at[i];
        const struct space_settings *wanted = wanted_for(next, space->name);

        if (wanted != NULL && !same(&space->settings, wanted)) {
            changes->before[changes->count] = space->settings;
            changes->spaces[changes->count++] = space;
        }
    }
}

static void log_spaces(const struct spaces *before, const struct spaces *after,
                       const struct changes *changes)
{
    char line[256];

    for (size_t i = 0; i < after->count; i++) {
        if (spaces_find(before, after->at[i]->name) == NULL) {
            space_describe(&after->at[i]->settings, line, sizeof(line));
            log_info("reload: added %s", line);
        }
    }
    for (size_t i = 0; i < before->count; i++) {
        if (spaces_find(after, before->at[i]->name) == NULL) {
            log_warning("reload: removed %s, and what it counted is gone", before->at[i]->name);
        }
    }
    for (size_t i = 0; i < changes->count; i++) {
        log_info("reload: changed %s", changes->spaces[i]->name);
    }
}

/* Stops the world for the switch. False: as it was. */
static bool publish(struct server *server, const struct settings *next, struct spaces *spaces,
                    struct changes *changes)
{
    char error[SPACES_ERROR_MAX];

    barrier_stop(server->barrier);
    bool changed = change_spaces(changes, next, error);

    if (changed) {
        server_publish(server, next, spaces);
    }
    barrier_go(server->barrier);
    if (!changed) {
        log_error("reload: %s; nothing was changed", error);
    }
    return changed;
}

/* A name mistyped in the file must not cost what the space has counted. */
static bool keeps_stores(const struct spaces *before, const struct settings *next)
{
    for (size_t i = 0; i < before->count; i++) {
        const struct space *space = before->at[i];

        if (space->settings.role == SPACE_STORE && wanted_for(next, space->name) == NULL) {
            log_error("reload: space %s is not in the file, and what it counted is only in memory; "
                      "restart to remove it; nothing was changed",
                      space->name);
            return false;
        }
    }
    return true;
}

static bool apply(struct server *server, const struct settings *next, space_engine_fn *create)
{
    struct spaces *before = server->spaces;

    if (!keeps_stores(before, next)) {
        return false;
    }
    char error[SPACES_ERROR_MAX];
    struct changes changes;
    struct spaces *spaces = spaces_create(next, before, server->threads, create, error);

    if (spaces == NULL) {
        log_error("reload: %s; nothing was changed", error);
        return false;
    }
    collect(&changes, before, next);
    if (!publish(server, next, spaces, &changes)) {
        spaces_drop(spaces, before);
        return false;
    }
    log_spaces(before, spaces, &changes);
    spaces_drop(before, spaces);
    return true;
}

bool reload_apply(struct server *server, const struct settings *next, space_engine_fn *create)
{
    populate_stop(server->populate);
    bool applied = apply(server, next, create);

    populate_go(server->populate, server->spaces);
    if (applied) {
        net_reconfigure(server->net, next->max_connections, next->idle_timeout_s,
                        next->request_timeout_s);
        log_setup(SERVER_NAME, (enum log_level)next->log_level);
    }
    return applied;
}

static void log_one(void *context, const char *name, const char *what)
{
    (void)context;
    log_warning("reload: %s needs a restart to change: %s", name, what);
}

void reload_log_restart(const struct settings *started, const struct settings *next)
{
    (void)settings_need_restart(started, next, log_one, NULL);
}
