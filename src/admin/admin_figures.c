/* admin_figures.c: reads the figures of a running server. */
#include "admin/admin_figures.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ---- figures by name ---- */

struct field {
    const char *name;
    size_t offset;
};

static const struct field table_fields[] = {
#define ROW(name) {#name, offsetof(struct admin_table, name)},
    ADMIN_TABLE_FIGURES(ROW)
#undef ROW
};

static const struct field space_fields[] = {
#define ROW(name) {#name, offsetof(struct admin_space, name)},
    ADMIN_SPACE_FIGURES(ROW)
#undef ROW
};

/* Figures come roughly in the order of the fields, so the search begins after the last one found.
 */
static void figures_take(const struct field *fields, size_t count, size_t *last, void *into,
                         const char *name, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = (*last + 1 + i) % count;

        if (strcmp(fields[at].name, name) == 0) {
            *(uint64_t *)((char *)into + fields[at].offset) = strtoull(text, NULL, 10);
            *last = at;
            return;
        }
    }
}

struct reading {
    struct admin_space *space;
    struct admin_table *table;
    size_t last;
};

static void figures_take_space(void *context, const char *name, const char *text)
{
    struct reading *reading = context;

    figures_take(space_fields, LENGTH(space_fields), &reading->last, reading->space, name, text);
}

/* Their names are SERIAL:NAME. */
static void take_table(void *context, const char *name, const char *text)
{
    struct reading *reading = context;
    struct admin_table *table = reading->table;
    char *colon;

    table->serial = strtoull(name, &colon, 10);
    if (*colon != ':') {
        return;
    }
    if (strcmp(colon + 1, "state") == 0) {
        table->state = strcmp(text, "closed") == 0 ? ADMIN_FULL : ADMIN_OPEN;
    } else if (strcmp(colon + 1, "false_positives") == 0) {
        table->rate = strtod(text, NULL);
    } else {
        figures_take(table_fields, LENGTH(table_fields), &reading->last, table, colon + 1, text);
    }
}

/* ---- sums of workers ---- */

/* Adds the figures of each of n who count. Both structs have them in one order; the metric one has
 * one more in front, for what is not counted. */
static void sum_metrics(const void *metrics, size_t stride, size_t n, uint64_t *sum, size_t count)
{
    memset(sum, 0, count * sizeof(*sum));
    for (size_t i = 0; i < n; i++) {
        const metric *of = (const metric *)((const char *)metrics + i * stride) + 1;

        for (size_t k = 0; k < count; k++) {
            sum[k] += metric_read(&of[k]);
        }
    }
}

_Static_assert(offsetof(struct space_metrics, hits) == sizeof(metric), "none, then the others");
_Static_assert(offsetof(struct command_metrics, cmd_get) == sizeof(metric), "likewise");

void admin_commands_sum(const struct server *server, struct admin_command_counts *sum)
{
    sum_metrics(server->metrics, sizeof(server->metrics[0]), server_counting(server),
                (uint64_t *)sum, sizeof(*sum) / sizeof(uint64_t));
}

/* ---- a space ---- */

static void describe_slots(const struct space_settings *settings, struct admin_space *space)
{
    size_t used = 0;

    space->slots[0] = '\0';
    for (size_t i = 0; i < settings->slot_count; i++) {
        used +=
            (size_t)snprintf(space->slots + used, sizeof(space->slots) - used, "%s%s:%u",
                             i > 0 ? " " : "", settings->slots[i].name, settings->slots[i].bits);
        CHECK(used < sizeof(space->slots));
    }
}

static void read_space(const struct server *server, const struct space *from,
                       struct admin_space *space)
{
    const struct engine *engine = from->engine;
    const struct space_settings *settings = &from->settings;
    struct reading reading = {.space = space};
    struct engine_figures own = {0};

    memcpy(space->name, from->name, sizeof(space->name));
    space->kind = settings->kind;
    space->role = settings->role;
    space->oldest = settings->oldest;
    space->any_ids = settings->ids == SPACE_IDS_ANY;
    space->target = settings->kind == SPACE_PHANTOM ? settings->false_positives : 0;
    describe_slots(settings, space);
    engine->functions->stats_space(engine, figures_take_space, &reading);
    engine->functions->figures(engine, &own);
    memcpy(space->memory, own.memory, sizeof(own.memory));
    space->recycled = own.recycled;
    space->held = space->records + space->members + space->items;
    sum_metrics(from->metrics, sizeof(from->metrics[0]), server->threads,
                (uint64_t *)&space->counts, sizeof(space->counts) / sizeof(uint64_t));
}

/* Makes room for one more table, in place of the oldest one when there are as many as are held. */
static struct admin_table *next_table(struct admin_space *space)
{
    size_t count = space->table_count;
    size_t at = count;

    if (count == ADMIN_TABLES_MAX) {
        at = space->tables_left_out++ % ADMIN_TABLES_MAX;
    } else {
        if ((count & (count - 1)) == 0) {
            size_t room = count == 0 ? 1 : 2 * count;

            space->at = realloc(space->at, room * sizeof(space->at[0]));
            CHECK(space->at != NULL);
        }
        space->table_count++;
    }
    memset(&space->at[at], 0, sizeof(space->at[at]));
    return &space->at[at];
}

/* Puts the oldest one first again. */
static void order_tables(struct admin_space *space)
{
    size_t oldest = space->tables_left_out % ADMIN_TABLES_MAX;
    struct admin_table *ordered;

    if (oldest == 0) {
        return;
    }
    ordered = memory_zalloc(ADMIN_TABLES_MAX * sizeof(ordered[0]));
    for (size_t i = 0; i < ADMIN_TABLES_MAX; i++) {
        ordered[i] = space->at[(oldest + i) % ADMIN_TABLES_MAX];
    }
    free(space->at);
    space->at = ordered;
}

/* The next tables from that id on; 0: there are no more. */
static uint64_t read_tables(const struct engine *engine, struct admin_space *space, uint64_t from)
{
    for (unsigned i = 0; i < ADMIN_TABLES_STEP; i++) {
        struct reading reading = {.table = next_table(space), .last = 0};

        from = engine->functions->stats_table(engine, from, take_table, &reading);
        if (from == 0) {
            break;
        }
    }
    return from;
}

/* The space says how many tables are being dumped: they are the oldest full ones in memory. */
static void complete_states(struct admin_space *space)
{
    uint64_t leaving = space->leaving_tables;

    for (size_t i = 0; i < space->table_count; i++) {
        struct admin_table *table = &space->at[i];

        if (table->cold != 0) {
            table->state = ADMIN_DUMPED;
        } else if (table->state == ADMIN_FULL && leaving > 0) {
            table->state = ADMIN_DUMPING;
            leaving--;
        }
    }
}

/* The space as it is found in the present set: a reload may have come between two steps. */
static const struct space *present(const struct server *server, const struct admin_space *space)
{
    return spaces_find(server->spaces, space->name);
}

static void read_all_tables(const struct server *server, struct barrier_member *member,
                            struct admin_space *space)
{
    uint64_t from = 0;

    if (space->kind == SPACE_PLAIN) {
        return;
    }
    do {
        barrier_enter(member);
        const struct space *of = present(server, space);

        from = of != NULL && of->settings.kind == space->kind ? read_tables(of->engine, space, from)
                                                              : 0;
        barrier_leave(member);
    } while (from != 0);
    order_tables(space);
    complete_states(space);
}

static void read_spaces(struct admin_figures *figures, const struct server *server,
                        struct barrier_member *member, bool tables)
{
    bool more = true;

    while (more && figures->space_count < SETTINGS_SPACES_MAX) {
        struct admin_space *space = &figures->spaces[figures->space_count];

        barrier_enter(member);
        more = figures->space_count < server->spaces->count;
        if (more) {
            read_space(server, server->spaces->at[figures->space_count], space);
            figures->space_count++;
        }
        barrier_leave(member);
        if (more && tables) {
            read_all_tables(server, member, space);
        }
    }
}

/* ---- the rest ---- */

static void read_settings(struct admin_figures *figures, const struct server *server,
                          struct barrier_member *member)
{
    barrier_enter(member);
    const struct settings *settings = server->settings;

    figures->max_connections = settings->max_connections;
    figures->sync = settings->journal.sync;
    figures->overlay_bytes_max = settings->cold.overlay_bytes;
    barrier_leave(member);
}

static void read_process(struct admin_figures *figures, const struct server *server)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    figures->cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    figures->now_us = clock_monotonic_us();
    figures->now_s = clock_wall_s();
    figures->uptime_s = figures->now_us / 1000000 - server->started_s;
    figures->threads = server->threads;
    figures->memory_bytes = server->memory_bytes;
    figures->resident_bytes = memory_resident_bytes();
    figures->huge = huge_sums();
    figures->log_lost = log_lost();
    net_metrics_sum(server->net, &figures->net);
    snprintf(figures->address, sizeof(figures->address), "%s",
             net_address(server->net, 0) != NULL ? net_address(server->net, 0) : "");
}

static void read_data(struct admin_figures *figures, const struct server *server)
{
    if (server->journal != NULL) {
        figures->has_journal = true;
        journal_stats(server->journal, &figures->journal);
    }
    if (server->data != NULL) {
        figures->has_data = true;
        data_stats(server->data, &figures->data);
        data_files_stats(server->data, &figures->files);
    }
    if (server->cold != NULL) {
        figures->has_cold = true;
        cold_stats(server->cold, &figures->cold);
    }
}

void admin_times_sum(const struct server *server, struct watch_times times[WATCH_TIERS])
{
    for (int tier = 0; tier < WATCH_TIERS; tier++) {
        watch_times(server->watches, server->threads, WATCH_CLASSES, (enum watch_tier)tier,
                    &times[tier]);
    }
}

static void read_watches(struct admin_figures *figures, const struct server *server)
{
    admin_times_sum(server, figures->times);
    for (int class = 0; class < WATCH_CLASSES; class ++) {
        for (int tier = 0; tier < WATCH_TIERS; tier++) {
            watch_times(server->watches, server->threads, (enum watch_class) class,
                        (enum watch_tier)tier, &figures->of_class[class][tier]);
        }
    }
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        figures->hot[kind].count =
            watch_hottest(server->watches, server->threads, (enum watch_kind)kind,
                          figures->hot[kind].tops, ADMIN_HOT_MAX, &figures->hot[kind].worst);
    }
    figures->slow_count = watch_slowest(server->watches, server->threads, figures->slow);
}

/* ---- what follows from them ---- */

#define WORDS(name, words) words,
const char *const admin_refusal_words[ADMIN_REFUSALS_N] = {ADMIN_REFUSALS(WORDS)};

static void follow_bytes(struct admin_space *space)
{
    const struct admin_table *newest =
        space->table_count > 0 ? &space->at[space->table_count - 1] : NULL;
    uint64_t bytes = 0;
    uint64_t held = 0;

    for (size_t i = 0; i < space->table_count; i++) {
        const struct admin_table *table = &space->at[i];

        if (table->state == ADMIN_FULL || table->state == ADMIN_DUMPING) {
            bytes += table->bytes + table->aux_pool_bytes + table->extend_pool_bytes;
            held += table->held;
        }
    }
    if (held == 0 && newest != NULL) {
        bytes = newest->bytes + newest->aux_pool_bytes + newest->extend_pool_bytes;
        held = newest->capacity;
    }
    space->bytes_each = held > 0 ? (double)bytes / (double)held : 0;
}

static void follow_places(struct admin_space *space)
{
    const struct admin_table *newest =
        space->table_count > 0 ? &space->at[space->table_count - 1] : NULL;

    space->room = (struct forecast_room){
        .any_ids = space->any_ids,
        .refuses = space->kind != SPACE_PLAIN && space->oldest != SPACE_OLDEST_DUMP &&
                   (space->any_ids || space->oldest == SPACE_OLDEST_REFUSE),
    };
    if (newest != NULL) {
        space->room.capacity = newest->capacity;
        space->room.held = newest->held;
        space->room.free_tables = space->spare;
    }
    if (space->any_ids && space->kind == SPACE_COUNTER) {
        forecast_growing(&space->room, space->records, space->capacity, space->growth_left_bytes,
                         space->bytes_each);
    }
    space->places = forecast_places(&space->room);
}

static void follow_space(struct admin_space *space)
{
    space->misses = space->counts.misses_absent + space->counts.misses_unset +
                    space->counts.misses_incomplete + space->counts.misses_below;
#define REFUSED(name, words) space->refused[ADMIN_REASON_##name] = space->counts.refused_##name;
    ADMIN_REFUSALS(REFUSED)
#undef REFUSED
    for (size_t kind = 1; kind < ENGINE_MEMORY_KINDS; kind++) {
        space->held_bytes += space->memory[kind].held_bytes;
    }
    for (size_t i = 0; i < space->table_count; i++) {
        struct admin_table *table = &space->at[i];

        table->held = table->records + table->members;
        space->states[table->state]++;
    }
    space->states[ADMIN_DUMPED] += space->tables_left_out;
    space->states[ADMIN_FREE] = space->spare;
    follow_bytes(space);
    follow_places(space);
}

static void follow(struct admin_figures *figures)
{
    const struct admin_command_counts *commands = &figures->commands;

    figures->started_s = figures->now_s - figures->uptime_s;
    figures->keys_incr =
        commands->incr_hits + commands->incr_misses + commands->decr_hits + commands->decr_misses;
    figures->keys_delete = commands->delete_hits + commands->delete_misses;
    for (size_t i = 0; i < figures->space_count; i++) {
        follow_space(&figures->spaces[i]);
    }
}

/* ---- all of it ---- */

void admin_figures_free(struct admin_figures *figures)
{
    for (size_t i = 0; figures != NULL && i < figures->space_count; i++) {
        free(figures->spaces[i].at);
    }
}

void admin_figures_read(struct admin_figures *figures, struct server *server,
                        struct barrier_member *member, bool tables)
{
    admin_figures_free(figures);
    memset(figures, 0, sizeof(*figures));
    read_process(figures, server);
    admin_commands_sum(server, &figures->commands);
    read_settings(figures, server, member);
    read_data(figures, server);
    admin_replication_read(&figures->repl, server);
    read_watches(figures, server);
    read_spaces(figures, server, member, tables);
    follow(figures);
}
