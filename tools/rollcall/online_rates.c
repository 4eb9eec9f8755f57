#include "tools/rollcall/online_rates.h"

#include <string.h>

#include "config/forecast.h"
#include "tools/rollcall/online_view.h"

#define MS_A_SECOND 1000.0

/* What is counted, as a sum of figures. */
static const char *const read_names[] = {"cmd_get", "cmd_touch", NULL};
static const char *const change_names[] = {"cmd_set",       "incr_hits",   "incr_misses",
                                           "decr_hits",     "decr_misses", "delete_hits",
                                           "delete_misses", NULL};
static const char *const hit_names[] = {"get_hits", NULL};
static const char *const disk_names[] = {"disk_reads", NULL};
static const char *const space_read_names[] = {
    "hits", "misses_absent", "misses_unset", "misses_incomplete", "misses_below", NULL};
static const char *const space_change_names[] = {"changes", NULL};
static const char *const added_names[] = {"held", "recycled", NULL};

static double rates_sum(const json_t *object, const char *const *names)
{
    double sum = 0;

    for (; *names != NULL; names++) {
        sum += (double)online_number(object, *names);
    }
    return sum;
}

/* Returns by how much a figure has grown; never negative: a reset begins anew. */
static double rates_grown(const json_t *then, const json_t *now, const char *const *names)
{
    double grown = rates_sum(now, names) - rates_sum(then, names);

    return grown > 0 ? grown : 0;
}

static void rates_set(json_t *into, const char *name, double grown, double seconds)
{
    json_object_set_new(into, name, json_real(grown / seconds));
}

/* Works out when a space is full, by the rate that was just set. */
static void rates_forecast(json_t *space)
{
    const json_t *newest = online_newest(space);
    struct forecast_room room = online_room(space, newest);
    double full_in_s = forecast_full_in_s(&room, online_real(space, "added_each_s"));

    if (newest != NULL) {
        json_object_set_new(space, "full_in_s",
                            full_in_s >= 0 ? json_real(full_in_s) : json_null());
    }
}

static void rates_of_spaces(const json_t *last, double seconds, const json_t *oldest,
                            double window_seconds, json_t *view)
{
    json_t *space;
    size_t i;

    json_array_foreach(json_object_get(view, "spaces"), i, space)
    {
        const json_t *then = online_find_space(last, online_text(space, "name"));
        const json_t *before = online_find_space(oldest, online_text(space, "name"));

        if (then == NULL) {
            continue;
        }
        rates_set(space, "reads_each_s", rates_grown(then, space, space_read_names), seconds);
        rates_set(space, "changes_each_s", rates_grown(then, space, space_change_names), seconds);
        if (before != NULL && window_seconds >= ONLINE_RATE_S_MIN) {
            rates_set(space, "added_each_s", rates_grown(before, space, added_names),
                      window_seconds);
            rates_forecast(space);
        }
    }
}

static void rates_of_daemon(const json_t *last, double seconds, json_t *view)
{
    const json_t *now = json_object_get(view, "commands");
    const json_t *then = json_object_get(last, "commands");
    double reads = rates_grown(then, now, read_names);

    rates_set(view, "reads_each_s", reads, seconds);
    rates_set(view, "changes_each_s", rates_grown(then, now, change_names), seconds);
    rates_set(view, "disk_reads_each_s",
              rates_grown(json_object_get(last, "disk"), json_object_get(view, "disk"), disk_names),
              seconds);
    if (reads > 0) {
        double share = rates_grown(then, now, hit_names) / reads;

        json_object_set_new(view, "hit_ratio", json_real(share < 1 ? share : 1));
    }
}

void online_rates_add(struct online_rates *rates, json_t *view, uint64_t now_ms)
{
    uint64_t kept = rates->taken < ONLINE_WINDOW ? rates->taken : ONLINE_WINDOW;

    if (kept > 0) {
        size_t last = (rates->taken - 1) % ONLINE_WINDOW;
        size_t oldest = rates->taken <= ONLINE_WINDOW ? 0 : rates->taken % ONLINE_WINDOW;
        double seconds = (double)(now_ms - rates->at_ms[last]) / MS_A_SECOND;
        bool anew = online_number(view, "uptime_s") < online_number(rates->views[last], "uptime_s");

        if (anew) {
            online_rates_free(rates);
        } else if (seconds > 0) {
            rates_of_daemon(rates->views[last], seconds, view);
            rates_of_spaces(rates->views[last], seconds, rates->views[oldest],
                            (double)(now_ms - rates->at_ms[oldest]) / MS_A_SECOND, view);
        }
    }
    size_t place = rates->taken++ % ONLINE_WINDOW;

    json_decref(rates->views[place]);
    rates->views[place] = json_incref(view);
    rates->at_ms[place] = now_ms;
}

void online_rates_free(struct online_rates *rates)
{
    for (size_t i = 0; i < ONLINE_WINDOW; i++) {
        json_decref(rates->views[i]);
    }
    memset(rates, 0, sizeof(*rates));
}
