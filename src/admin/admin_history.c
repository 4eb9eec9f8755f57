/* admin_history.c: rings of samples. */
#include "admin/admin_history.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "config/forecast.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define SECOND_US     1000000ull
#define MINUTE_US     (60 * SECOND_US)
#define EVENT_MINUTES 10
#define DAY_S         86400ull

/* A space's refusals up to each of the last minutes, and ids added up to each step. */
struct past {
    char name[ENGINE_SPACE_NAME_MAX + 1];
    uint64_t refused_us[EVENT_MINUTES];
    uint64_t refused[EVENT_MINUTES][ADMIN_REFUSALS_N];
    uint64_t added_us[ADMIN_SPACE_STEPS];
    uint64_t added[ADMIN_SPACE_STEPS];
    size_t steps; /* taken so far: the next one's place, modulo */
};

struct admin_history {
    struct admin_sample seconds[ADMIN_SECONDS + 1];
    struct admin_sample minutes[ADMIN_MINUTES + 1];
    size_t second, minute; /* taken so far */
    uint64_t minute_us;    /* the last one; 0: none yet */
    struct admin_events events[EVENT_MINUTES];
    struct watch_times times[ADMIN_TIMES][WATCH_TIERS];
    size_t times_taken;
    uint64_t times_us; /* the last of them */
    struct past past[SETTINGS_SPACES_MAX];
    size_t past_count;
    int64_t wall_off_s; /* wall clock less monotonic, at the last second */
    int64_t jumped_s;
    uint64_t jumped_us, jumps;
};

/* A new space of the same name counts from nothing. */
static uint64_t grown(uint64_t now, uint64_t then)
{
    return now >= then ? now - then : now;
}

struct admin_history *admin_history_create(void)
{
    return memory_zalloc(sizeof(struct admin_history));
}

void admin_history_destroy(struct admin_history *history)
{
    free(history);
}

/* ---- taking ---- */

void admin_history_second(struct admin_history *history, const struct admin_sample *sample,
                          uint64_t wall_s)
{
    int64_t off_s = (int64_t)wall_s - (int64_t)(sample->at_us / SECOND_US);
    int64_t by_s = off_s - history->wall_off_s;

    if (history->second > 0 && (by_s >= ADMIN_JUMP_S || by_s <= -ADMIN_JUMP_S)) {
        history->jumped_s = by_s;
        history->jumped_us = sample->at_us;
        history->jumps++;
    }
    history->wall_off_s = off_s;
    history->seconds[history->second++ % LENGTH(history->seconds)] = *sample;
}

bool admin_history_minute_due(const struct admin_history *history, uint64_t now_us)
{
    return history->minute_us == 0 || now_us - history->minute_us >= MINUTE_US;
}

static struct past *history_find(const struct admin_history *history, const char *name)
{
    for (size_t i = 0; i < history->past_count; i++) {
        if (strcmp(history->past[i].name, name) == 0) {
            return (struct past *)&history->past[i];
        }
    }
    return NULL;
}

static bool history_is_there(const struct admin_figures *figures, const char *name)
{
    for (size_t i = 0; i < figures->space_count; i++) {
        if (strcmp(figures->spaces[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Forgets spaces that a reload has dropped: there is room for as many as there can be. */
static void history_forget_dropped(struct admin_history *history,
                                   const struct admin_figures *figures)
{
    for (size_t i = history->past_count; i-- > 0;) {
        if (!history_is_there(figures, history->past[i].name)) {
            history->past[i] = history->past[--history->past_count];
        }
    }
}

static void history_add_space(struct admin_history *history, const struct admin_space *space,
                              uint64_t now_us)
{
    struct past *past = history_find(history, space->name);
    size_t place = history->minute % EVENT_MINUTES;

    if (past == NULL) {
        past = &history->past[history->past_count++];
        memset(past, 0, sizeof(*past));
        memcpy(past->name, space->name, sizeof(past->name));
    }
    past->refused_us[place] = now_us;
    for (unsigned i = 0; i < ADMIN_REFUSALS_N; i++) {
        past->refused[place][i] = space->refused[i];
    }
    size_t last = (past->steps + ADMIN_SPACE_STEPS - 1) % ADMIN_SPACE_STEPS;

    if (past->steps == 0 || now_us - past->added_us[last] >= ADMIN_STEP_MINUTES * MINUTE_US) {
        past->added_us[past->steps % ADMIN_SPACE_STEPS] = now_us;
        past->added[past->steps % ADMIN_SPACE_STEPS] = space->held + space->recycled;
        past->steps++;
    }
}

static struct admin_events events_of(const struct admin_figures *figures)
{
    return (struct admin_events){
        .rejected_connections = metric_read(&figures->net.rejected_connections),
        .checkpoint_failures = figures->data.checkpoint_failures,
        .dump_failures = figures->data.dump_failures,
        .cold_failed = figures->cold.failed,
        .cold_busy = figures->cold.busy,
        .journal_refusals = figures->journal.reserve_failures,
        .failed_logins = figures->commands.auth_errors,
    };
}

void admin_history_minute(struct admin_history *history, const struct admin_figures *figures)
{
    size_t last = history->second;

    history->minute_us = figures->now_us;
    history->events[history->minute % EVENT_MINUTES] = events_of(figures);
    history_forget_dropped(history, figures);
    for (size_t i = 0; i < figures->space_count; i++) {
        history_add_space(history, &figures->spaces[i], figures->now_us);
    }
    if (last > 0) {
        history->minutes[history->minute % LENGTH(history->minutes)] =
            history->seconds[(last - 1) % LENGTH(history->seconds)];
    }
    history->minute++;
}

/* ---- looking ---- */

struct ring {
    const struct admin_sample *at;
    size_t room, taken;
};

/* Returns the sample `back` places before the newest; NULL: there is none. */
static const struct admin_sample *sample_back(const struct ring *ring, size_t back)
{
    if (back >= ring->taken || back >= ring->room) {
        return NULL;
    }
    return &ring->at[(ring->taken - 1 - back) % ring->room];
}

/* Negative: one of them is not there. */
static double rate_between(const struct admin_sample *from, const struct admin_sample *to,
                           enum admin_line line)
{
    if (from == NULL || to == NULL || to->at_us <= from->at_us) {
        return -1;
    }
    uint64_t grown = to->counted[line] - from->counted[line];

    return (double)grown * 1e6 / (double)(to->at_us - from->at_us);
}

double admin_history_rates(const struct admin_history *history, bool day, enum admin_line line,
                           double *rates, size_t points)
{
    const struct ring ring =
        day ? (struct ring){history->minutes, LENGTH(history->minutes), history->minute}
            : (struct ring){history->seconds, LENGTH(history->seconds), history->second};
    size_t step = (ring.room - 1) / points;

    for (size_t i = 0; i < points; i++) {
        size_t back = (points - 1 - i) * step;

        rates[i] = rate_between(sample_back(&ring, back + step), sample_back(&ring, back), line);
    }
    double newest = rates[points - 1];

    if (newest < 0) { /* a short life: what there is */
        newest = rate_between(sample_back(&ring, ring.taken > 0 ? ring.taken - 1 : 0),
                              sample_back(&ring, 0), line);
    }
    return newest < 0 ? 0 : newest;
}

bool admin_history_times_due(const struct admin_history *history, uint64_t now_us)
{
    return history->times_taken == 0 || now_us - history->times_us >= ADMIN_TIMES_S * SECOND_US;
}

void admin_history_times(struct admin_history *history, uint64_t now_us,
                         const struct watch_times times[WATCH_TIERS])
{
    memcpy(history->times[history->times_taken++ % ADMIN_TIMES], times, sizeof(history->times[0]));
    history->times_us = now_us;
}

void admin_history_lately(const struct admin_history *history, enum watch_tier tier,
                          const struct admin_figures *figures, struct watch_times *lately)
{
    *lately = figures->times[tier];
    if (history->times_taken < ADMIN_TIMES) {
        return;
    }
    const struct watch_times *then = &history->times[history->times_taken % ADMIN_TIMES][tier];

    for (size_t i = 0; i < WATCH_BUCKETS; i++) {
        lately->counts[i] -= then->counts[i];
    }
    lately->count -= then->count;
    lately->sum_us -= then->sum_us;
}

/* The place of the oldest of the last minutes. */
static size_t oldest_minute(const struct admin_history *history)
{
    return history->minute < EVENT_MINUTES ? 0 : history->minute % EVENT_MINUTES;
}

void admin_history_events(const struct admin_history *history, const struct admin_figures *figures,
                          struct admin_events *grown)
{
    *grown = (struct admin_events){0};
    if (history->minute == 0) {
        return;
    }
    const struct admin_events *then = &history->events[oldest_minute(history)];
    struct admin_events now = events_of(figures);

#define GROWN(name) grown->name = now.name - then->name;
    ADMIN_EVENTS(GROWN)
#undef GROWN
}

/* The first of the last ten minutes that has seen the space. */
static size_t oldest_refused(const struct admin_history *history, const struct past *past)
{
    size_t place = oldest_minute(history);

    for (size_t i = 0; i < EVENT_MINUTES && past->refused_us[place] == 0; i++) {
        place = (place + 1) % EVENT_MINUTES;
    }
    return place;
}

void admin_history_trend(const struct admin_history *history, const struct admin_figures *figures,
                         const struct admin_space *space, struct admin_trend *trend)
{
    const struct past *past = history_find(history, space->name);

    memset(trend, 0, sizeof(*trend));
    trend->added_each_s = -1;
    if (past == NULL || past->steps == 0) {
        return;
    }
    size_t place = oldest_refused(history, past);
    size_t first = past->steps < ADMIN_SPACE_STEPS ? 0 : past->steps % ADMIN_SPACE_STEPS;
    uint64_t added = space->held + space->recycled;

    for (unsigned i = 0; i < ADMIN_REFUSALS_N; i++) {
        trend->refused[i] = grown(space->refused[i], past->refused[place][i]);
    }
    trend->watched_s = (double)(figures->now_us - past->added_us[first]) / 1e6;
    trend->known = trend->watched_s >= ADMIN_RATE_S_MIN;
    if (trend->known) { /* fewer: more was deleted than added */
        uint64_t more = added > past->added[first] ? added - past->added[first] : 0;

        trend->added_each_s = (double)more / trend->watched_s;
    }
}

bool admin_history_jump(const struct admin_history *history, uint64_t now_us, int64_t *by_s,
                        uint64_t *ago_s)
{
    if (history->jumps == 0) {
        return false;
    }
    *by_s = history->jumped_s;
    *ago_s = (now_us - history->jumped_us) / SECOND_US;
    return *ago_s < DAY_S;
}

/* ---- all of it ---- */

void admin_history_tell(const struct admin_history *history, struct admin_figures *figures)
{
    double last[ADMIN_SECONDS / 10]; /* the newest covers ten seconds */
    struct watch_times times;

    admin_history_events(history, figures, &figures->events);
    figures->clock_jumps = history->jumps;
    for (size_t i = 0; i < figures->space_count; i++) {
        struct admin_space *space = &figures->spaces[i];

        admin_history_trend(history, figures, space, &space->trend);
        space->full_in_s = space->kind != SPACE_PLAIN
                               ? forecast_full_in_s(&space->room, space->trend.added_each_s)
                               : -1;
    }
    for (int line = 0; line < ADMIN_LINES; line++) {
        figures->rates[line] = admin_history_rates(history, false, (enum admin_line)line, last,
                                                   sizeof(last) / sizeof(last[0]));
    }
    for (int tier = 0; tier < WATCH_TIERS; tier++) {
        admin_history_lately(history, (enum watch_tier)tier, figures, &times);
        figures->lately[tier] = (struct admin_latency){
            .requests = times.count,
            .p50_us = watch_quantile(&times, 0.5),
            .p90_us = watch_quantile(&times, 0.9),
            .p99_us = watch_quantile(&times, 0.99),
            .p999_us = watch_quantile(&times, 0.999),
            .p9999_us = watch_quantile(&times, 0.9999),
        };
    }
}
