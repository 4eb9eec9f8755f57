#include "daemon/reload.h"

#include <stdio.h>
#include <string.h>

#include "base/barrier.h"
#include "base/check.h"
#include "base/log.h"
#include "data/data.h"
#include "data/follow.h"
#include "data/forget.h"
#include "data/journal_sink.h"
#include "repl/feed.h"
#include "repl/receiver.h"
#include "row/row.h"
#include "space/populate.h"

#define MIB               1048576.0
#define EVENTS_OF_ADDED   2 /* the space and its first table */
#define EVENTS_OF_CHANGED 4 /* the space and a table, and both again if it is changed back */

/* The configuration of the space of that name, or NULL. */
static const struct space_settings *reload_wanted_for(const struct settings *settings,
                                                      const char *name)
{
    for (size_t i = 0; i < settings->space_count; i++) {
        if (strcmp(settings->spaces[i].name, name) == 0) {
            return &settings->spaces[i];
        }
    }
    return NULL;
}

/* Which spaces of a set have to change, and what they were. */
struct changes {
    size_t count;
    struct space *spaces[SETTINGS_SPACES_MAX];
    struct space_settings before[SETTINGS_SPACES_MAX];
};

/* Gives the first `count` spaces their old configuration back. World stopped. */
static void undo(struct changes *changes, size_t count)
{
    char error[SPACES_ERROR_MAX];

    while (count-- > 0) {
        if (!space_undo(changes->spaces[count], &changes->before[count], error)) {
            log_error("reload: %s; and it cannot be undone", error);
        }
    }
}

/*
 * A follower's engines have the slots and tables that the leader gives them: what its own file says
 * holds once it leads.
 */
static void note_spaces(struct changes *changes, const struct settings *next)
{
    for (size_t i = 0; i < changes->count; i++) {
        struct space *space = changes->spaces[i];

        settings_space_next(&changes->before[i], reload_wanted_for(next, space->name),
                            &space->settings);
        space_words_make(space);
    }
}

/* World stopped. */
static bool change_spaces(struct changes *changes, const struct settings *next,
                          char error[SPACES_ERROR_MAX])
{
    for (size_t i = 0; i < changes->count; i++) {
        struct space *space = changes->spaces[i];

        if (!space_reconfigure(space, reload_wanted_for(next, space->name), error)) {
            undo(changes, i);
            return false;
        }
    }
    return true;
}

static void reload_collect(struct changes *changes, const struct spaces *now,
                           const struct settings *next)
{
    changes->count = 0;
    for (size_t i = 0; i < now->count; i++) {
        struct space *space = now->at[i];
        const struct space_settings *wanted = reload_wanted_for(next, space->name);

        if (wanted != NULL && settings_space_changes(&space->settings, wanted, NULL, NULL) > 0) {
            changes->before[changes->count] = space->settings;
            changes->spaces[changes->count++] = space;
        }
    }
}

static void reload_log_change(void *context, const char *name, const char *what)
{
    const struct space *space = context;

    log_at(LOG_LEVEL_INFO, "reload: an option changed space=%s option=%s %s", space->name, name,
           what);
}

static void reload_log_spaces(const struct spaces *before, const struct spaces *after,
                              const struct changes *changes)
{
    char line[256];

    for (size_t i = 0; i < after->count; i++) {
        if (spaces_find(before, after->at[i]->name) == NULL) {
            space_describe(&after->at[i]->settings, line, sizeof(line));
            log_at(LOG_LEVEL_INFO, "reload: added %s", line);
        }
    }
    for (size_t i = 0; i < before->count; i++) {
        if (spaces_find(after, before->at[i]->name) == NULL) {
            log_at(LOG_LEVEL_WARNING,
                   "reload: removed a space, and what it counted is gone space=%s",
                   before->at[i]->name);
        }
    }
    for (size_t i = 0; i < changes->count; i++) {
        struct space *space = changes->spaces[i];

        settings_space_changes(&changes->before[i], &space->settings, reload_log_change, space);
    }
}

/* World stopped. What spaces that go have recycled stays counted. */
static void keep_counted(struct server *server, const struct spaces *after)
{
    for (size_t i = 0; i < server->spaces->count; i++) {
        const struct space *space = server->spaces->at[i];

        if (spaces_find(after, space->name) == NULL) {
            metric_add(&server->recycled_gone, engine_recycled(space->engine));
        }
    }
}

/* ---- with data ---- */

/* Returns whether a space is new, and stored. */
static bool is_added(const struct server *server, const struct space *space)
{
    return data_stores(&space->settings) && spaces_find(server->spaces, space->name) == NULL;
}

/* A promotion has the keeper's bracket, too: what it makes of the data holds until the reload's is
 * over. The server's own word comes later. */
static bool reload_follows(const struct server *server)
{
    return server->data != NULL && data_follows(server->data);
}

/* The numbers of a follower's spaces come from the leader. */
static bool gives_numbers(const struct server *server)
{
    return server->data != NULL && !reload_follows(server);
}

static void take_numbers_back(struct server *server, const struct spaces *spaces)
{
    for (size_t i = 0; gives_numbers(server) && i < spaces->count; i++) {
        if (is_added(server, spaces->at[i])) {
            data_number_undo(server->data, spaces->at[i]->name);
        }
    }
}

/* Gives new spaces their numbers, durable before a record names one. False: logged, and no number
 * is given. */
static bool reload_give_numbers(struct server *server, const struct spaces *spaces)
{
    char error[DATA_ERROR_MAX];

    for (size_t i = 0; gives_numbers(server) && i < spaces->count; i++) {
        struct space *space = spaces->at[i];
        struct engine *engine = space->engine;

        if (is_added(server, space) &&
            !data_number(server->data, space->name, engine->functions->kind, &engine->space,
                         error)) {
            log_error("reload: %s; nothing was changed", error);
            take_numbers_back(server, spaces);
            return false;
        }
    }
    return true;
}

/* Whatever is changed, or changed back, finds room for its events. World stopped. */
static bool log_has_room(struct server *server, const struct spaces *spaces,
                         const struct changes *changes, char error[SPACES_ERROR_MAX])
{
    size_t events = EVENTS_OF_CHANGED * changes->count;

    for (size_t i = 0; i < spaces->count; i++) {
        events += is_added(server, spaces->at[i]) ? EVENTS_OF_ADDED : 0;
    }
    if (!gives_numbers(server) || data_log_room(server->data, events)) {
        return true;
    }
    snprintf(error, SPACES_ERROR_MAX,
             "the journal has no room for %zu events; try again, or fewer spaces at once", events);
    return false;
}

/* World stopped. */
static void begin_added(struct server *server, const struct spaces *spaces)
{
    if (!gives_numbers(server)) {
        return;
    }
    for (size_t i = 0; i < spaces->count; i++) {
        struct engine *engine = spaces->at[i]->engine;

        if (is_added(server, spaces->at[i])) {
            data_begin_space(server->data, engine);
        }
    }
    journal_log_submit(data_log(server->data));
}

/* ---- the switch ---- */

/* Stops the world for it. False: as it was. */
static bool publish(struct server *server, const struct settings *next, struct spaces *spaces,
                    struct changes *changes)
{
    char error[SPACES_ERROR_MAX];

    change_log_await(server->log);
    barrier_stop(server->barrier);
    bool changed = log_has_room(server, spaces, changes, error) &&
                   (reload_follows(server) || change_spaces(changes, next, error));

    if (changed && reload_follows(server)) {
        note_spaces(changes, next);
        data_follow_reloaded(server->data);
    }
    if (changed) {
        begin_added(server, spaces);
        keep_counted(server, spaces);
        server_publish(server, next, spaces);
    }
    barrier_go(server->barrier);
    if (!changed) {
        log_error("reload: %s; nothing was changed", error);
    }
    return changed;
}

/*
 * A name mistyped in the file must not cost what the space has counted. With data the next start
 * would refuse what the directory has and the file has not.
 */
static bool keeps_stores(const struct server *server, const struct settings *next)
{
    const struct spaces *before = server->spaces;

    for (size_t i = 0; i < before->count; i++) {
        const struct space *space = before->at[i];

        if (reload_wanted_for(next, space->name) != NULL ||
            (space->settings.role != SPACE_STORE && server->data == NULL) ||
            space->settings.kind == SPACE_PLAIN) {
            continue;
        }
        log_error("reload: space %s is not in the file, and what it counted is %s; nothing was "
                  "changed",
                  space->name,
                  server->data == NULL ? "only in memory; restart to remove it"
                                       : "in the data directory; put it back");
        return false;
    }
    return true;
}

/*
 * After the switch nobody reaches the spaces that `after` lacks. Requests that wait for one of
 * their tables are woken: they run again, and find no space.
 */
static void wake_waiting(const struct spaces *before, const struct spaces *after)
{
    for (size_t i = 0; i < before->count; i++) {
        const struct space *space = before->at[i];

        if (space != before->plain && spaces_find(after, space->name) == NULL) {
            row_maintain(space->engine->row, NULL);
        }
    }
}

/* A checkpoint may be in a hold of the keeper, and what it folds frees what is counted here. */
static uint64_t reload_held_bytes(const struct server *server, const struct space *space)
{
    struct barrier_member *member = barrier_join(server->barrier);

    CHECK(member != NULL);
    barrier_enter(member);
    uint64_t bytes = engine_held_bytes(space->engine);

    barrier_leave(member);
    barrier_resign(member);
    return bytes;
}

/* Returns what a space that stays will hold: what it takes of `next`, or for a while what it has
 * now. */
static uint64_t space_will_hold(const struct server *server, const struct space *space,
                                const struct space_settings *next)
{
    struct space_settings taken;
    uint64_t now = reload_held_bytes(server, space);

    settings_space_next(&space->settings, next, &taken);
    uint64_t then = settings_space_bytes(&taken);
    return then > now ? then : now;
}

/* What reads dumped tables has its threads and memory from the start. */
static bool can_dump(const struct server *server, const struct settings *next)
{
    if (!settings_dumps(next) || (server->data != NULL && data_cold(server->data) != NULL)) {
        return true;
    }
    log_error("reload: oldest: dump, where no space had it, needs a restart; nothing was changed");
    return false;
}

/* Tables may be more and larger, but the memory is that of the start. */
static bool reload_fits(const struct server *server, const struct settings *next)
{
    struct settings others = *next; /* borrowed: but for the spaces */

    others.memory_bytes = server->memory_bytes;
    others.threads = server->threads;
    others.space_count = 0;
    uint64_t sum = settings_memory_sum(&others, NULL) + settings_cold_bytes(next);

    for (size_t i = 0; i < next->space_count; i++) {
        const struct space_settings *wanted = &next->spaces[i];
        const struct space *space = spaces_find(server->spaces, wanted->name);

        sum += space == NULL || space->settings.kind != wanted->kind
                   ? settings_space_bytes(wanted)
                   : space_will_hold(server, space, wanted);
    }

    if (sum > server->memory_bytes) {
        log_error("reload: this holds up to %.1f MiB, and the daemon was started with memory of "
                  "%.1f MiB; nothing was changed",
                  (double)sum / MIB, (double)server->memory_bytes / MIB);
        return false;
    }
    return true;
}

/* Nothing is lost that the file does not let go. */
static bool loses_nothing(const struct changes *changes, const struct settings *next)
{
    char error[SPACES_ERROR_MAX];

    for (size_t i = 0; i < changes->count; i++) {
        const struct space *space = changes->spaces[i];

        if (!forget_allowed(space, reload_wanted_for(next, space->name), error)) {
            log_error("reload: %s; nothing was changed", error);
            return false;
        }
    }
    return true;
}

static bool reload_carry_out(struct server *server, const struct settings *next,
                             space_engine_fn *create)
{
    struct spaces *before = server->spaces;

    struct changes changes;

    reload_collect(&changes, before, next);
    if (!keeps_stores(server, next) || !can_dump(server, next) || !reload_fits(server, next) ||
        (!reload_follows(server) && !loses_nothing(&changes, next))) {
        return false;
    }
    char error[SPACES_ERROR_MAX];
    struct spaces *spaces = spaces_create(next, before, server->threads, create, error);

    if (spaces == NULL) {
        log_error("reload: %s; nothing was changed", error);
        return false;
    }
    if (!reload_give_numbers(server, spaces)) {
        spaces_drop(spaces, before);
        return false;
    }
    keeper_attach(server->keeper, spaces);
    server_share_memory(server, next, spaces);
    if (!publish(server, next, spaces, &changes)) {
        server_share_memory(server, server->settings, before);
        take_numbers_back(server, spaces);
        spaces_drop(spaces, before);
        return false;
    }
    reload_log_spaces(before, spaces, &changes);
    wake_waiting(before, spaces);
    spaces_drop(before, spaces);
    return true;
}

bool reload_apply(struct server *server, const struct settings *next, space_engine_fn *create)
{
    keeper_stop(server->keeper);
    populate_stop(server->populate);
    bool applied = reload_carry_out(server, next, create);

    populate_go(server->populate, server->spaces);
    keeper_go(server->keeper, server->spaces);
    if (applied && server->data != NULL) {
        data_reconfigure(server->data, next);
        repl_feeds_reconfigure(server->feeds, next);
        repl_receiver_reconfigure(server->receiver, next);
    }
    if (applied) {
        net_reconfigure(server->net, next->max_connections, next->idle_timeout_s,
                        next->request_timeout_s);
        net_renew_tls(server->net, next->tls.context);
        log_setup(SERVER_NAME, (enum log_level)next->log_level);
    }
    return applied;
}

/* Returns whether a start compares this key of a space with what is stored, and refuses another
 * value. */
static bool is_stored(const char *name)
{
    static const char *const options[] = {".kind", ".ids", ".max-id"};
    size_t length = strlen(name);

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        size_t end = strlen(options[i]);

        if (length > end && strcmp(name + length - end, options[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void log_one(void *context, const char *name, const char *what)
{
    const struct settings *started = context;

    if (started->data != NULL && is_stored(name)) {
        log_at(LOG_LEVEL_WARNING,
               "reload: an option cannot change where the data directory has the space, and a "
               "restart would refuse it: put it back option=%s %s",
               name, what);
        return;
    }
    log_at(LOG_LEVEL_WARNING, "reload: an option needs a restart option=%s %s", name, what);
}

static void log_changed(void *context, const char *name, const char *what)
{
    (void)context;
    log_at(LOG_LEVEL_INFO, "reload: an option changed option=%s %s", name, what);
}

void reload_log_changes(const struct settings *started, const struct settings *before,
                        const struct settings *next)
{
    (void)settings_changes(before, next, log_changed, NULL);
    (void)settings_need_restart(started, next, log_one, (void *)(uintptr_t)started);
}
