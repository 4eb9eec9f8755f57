/* admin_page_watch.c: latency, hot keys and slow requests on the status page. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_chart.h"
#include "admin/admin_page.h"
#include "base/readable.h"

#define SLOW_SHOWN 8

static const char *const tier_words[WATCH_TIERS] = {"nothing", "disk", "table", "journal"};

static const struct {
    const char *name;
    size_t at; /* in struct admin_latency */
} quantiles[] = {
    {"p50", offsetof(struct admin_latency, p50_us)},
    {"p90", offsetof(struct admin_latency, p90_us)},
    {"p99", offsetof(struct admin_latency, p99_us)},
    {"p99.9", offsetof(struct admin_latency, p999_us)},
    {"p99.99", offsetof(struct admin_latency, p9999_us)},
};

/* A column for each tier: a row for each would be too wide for a phone. */
static void put_quantiles(const struct admin_latency lately[WATCH_TIERS], struct evbuffer *out)
{
    char text[READABLE_MAX];

    evbuffer_add_printf(out, "<tr><th>requests");
    for (int tier = 0; tier < WATCH_TIERS; tier++) {
        evbuffer_add_printf(out, "<td>%s", readable_count(text, (double)lately[tier].requests));
    }
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        evbuffer_add_printf(out, "<tr><th>%s", quantiles[i].name);
        for (int tier = 0; tier < WATCH_TIERS; tier++) {
            uint64_t us;

            memcpy(&us, (const char *)&lately[tier] + quantiles[i].at, sizeof(us));
            evbuffer_add_printf(out, lately[tier].requests > 0 ? "<td>%s" : "<td>-",
                                readable_time(text, (double)us / 1e6));
        }
    }
}

void admin_page_latency(const struct admin_view *view, struct evbuffer *out)
{
    struct watch_times memory, disk;

    evbuffer_add_printf(out, "<section><h2>Latency in the daemon, last minute</h2><div class=l>");
    admin_page_key(out, "r", "memory");
    admin_page_key(out, "x", "disk");
    evbuffer_add_printf(out, "</div>");
    admin_history_lately(view->history, WATCH_MEMORY, view->figures, &memory);
    admin_history_lately(view->history, WATCH_DISK, view->figures, &disk);
    admin_chart_times(out, &memory, &disk);
    evbuffer_add_printf(out,
                        "<div class=l><span class=s>1 µs</span><span class=s style="
                        "\"margin:auto\">1 ms</span><span class=s>1 s</span></div><table class=w>"
                        "<tr><th>waited for");
    for (int tier = 0; tier < WATCH_TIERS; tier++) {
        evbuffer_add_printf(out, "<th>%s", tier_words[tier]);
    }
    put_quantiles(view->figures->lately, out);
    evbuffer_add_printf(out, "</table></section>\n");
}

/* A key may hold what is markup. */
static void put_escaped(struct evbuffer *out, const char *text)
{
    char *escaped = evhttp_htmlescape(text);

    evbuffer_add_printf(out, "<code>%s</code>", escaped != NULL ? escaped : "");
    free(escaped);
}

void admin_page_hot(const struct admin_figures *figures, struct evbuffer *out)
{
    static const char *const words[WATCH_KINDS] = {"id", "member"};
    char share[READABLE_MAX];
    size_t shown = 0;

    evbuffer_add_printf(out, "<section><h2>Hot keys <span class=s>of about the last million</span>"
                             "</h2><table class=w>");
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        for (size_t i = 0; i < figures->hot[kind].count; i++, shown++) {
            evbuffer_add_printf(out, "<tr><th>%s<td>", words[kind]);
            put_escaped(out, figures->hot[kind].tops[i].key);
            evbuffer_add_printf(out, "<td>%s",
                                readable_share(share, figures->hot[kind].tops[i].share));
        }
    }
    evbuffer_add_printf(out, "%s</table></section>\n", shown == 0 ? "<tr><td>None so far." : "");
}

void admin_page_slow(const struct admin_figures *figures, struct evbuffer *out)
{
    size_t count = figures->slow_count < SLOW_SHOWN ? figures->slow_count : SLOW_SHOWN;
    char took[READABLE_MAX], ago[READABLE_MAX];

    if (count == 0) {
        return;
    }
    evbuffer_add_printf(out,
                        "<section><h2>Slow requests <span class=s>the newest; all: stats slow"
                        "</span></h2><table class=w><tr><th>ago<th>request<th>took<th>waited for");
    for (size_t i = 0; i < count; i++) {
        const struct watch_request *slow = &figures->slow[i];
        uint64_t now_s = figures->now_us / 1000000;

        evbuffer_add_printf(
            out, "<tr><td>%s<td>%s ",
            readable_span(ago, (double)(now_s > slow->at_s ? now_s - slow->at_s : 0)),
            watch_class_names[slow->class]);
        put_escaped(out, slow->key);
        evbuffer_add_printf(out, "<td>%s<td>%s", readable_time(took, (double)slow->took_us / 1e6),
                            tier_words[slow->tier]);
    }
    evbuffer_add_printf(out, "</table></section>\n");
}
