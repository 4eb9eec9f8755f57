/* admin_page_watch.c: latency, hot keys and slow requests on the status page. */
#include <stdlib.h>

#include "admin/admin_chart.h"
#include "admin/admin_page.h"
#include "base/readable.h"

#define SLOW_SHOWN 8

static void put_quantiles(const struct admin_latency *times, const char *name, struct evbuffer *out)
{
    const uint64_t us[] = {times->p50_us, times->p90_us, times->p99_us, times->p999_us,
                           times->p9999_us};
    char text[READABLE_MAX];

    evbuffer_add_printf(out, "<tr><th>%s<td>%s", name,
                        readable_count(text, (double)times->requests));
    for (size_t i = 0; i < sizeof(us) / sizeof(us[0]); i++) {
        evbuffer_add_printf(out, times->requests > 0 ? "<td>%s" : "<td>-",
                            readable_time(text, (double)us[i] / 1e6));
    }
}

void admin_page_latency(const struct admin_view *view, struct evbuffer *out)
{
    static const char *const words[WATCH_TIERS] = {"memory", "disk", "for a table",
                                                   "for the journal"};
    struct watch_times memory, disk;

    evbuffer_add_printf(out, "<section><h2>Latency in the daemon, last minute</h2><div class=l>");
    admin_page_key(out, "r", "memory");
    admin_page_key(out, "x", "disk");
    evbuffer_add_printf(out, "</div>");
    admin_history_lately(view->history, WATCH_MEMORY, view->figures, &memory);
    admin_history_lately(view->history, WATCH_DISK, view->figures, &disk);
    admin_chart_times(out, &memory, &disk);
    evbuffer_add_printf(out, "<div class=l><span class=s>1 µs</span><span class=s style="
                             "\"margin:auto\">1 ms</span><span class=s>1 s</span></div><table>"
                             "<tr><th>waited<th>requests<th>p50<th>p90<th>p99<th>p99.9<th>p99.99");
    for (int tier = 0; tier < WATCH_TIERS; tier++) {
        put_quantiles(&view->figures->lately[tier], words[tier], out);
    }
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

    evbuffer_add_printf(out, "<section><h2>Hot keys <span class=s>of about the last million</span>"
                             "</h2><table>");
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        for (size_t i = 0; i < figures->hot[kind].count; i++) {
            evbuffer_add_printf(out, "<tr><th>%s<td>", words[kind]);
            put_escaped(out, figures->hot[kind].tops[i].key);
            evbuffer_add_printf(out, "<td>%s",
                                readable_share(share, figures->hot[kind].tops[i].share));
        }
    }
    evbuffer_add_printf(out, "</table></section>\n");
}

void admin_page_slow(const struct admin_figures *figures, struct evbuffer *out)
{
    size_t count = figures->slow_count < SLOW_SHOWN ? figures->slow_count : SLOW_SHOWN;
    char took[READABLE_MAX], ago[READABLE_MAX];

    if (count == 0) {
        return;
    }
    evbuffer_add_printf(out, "<section><h2>Slow requests <span class=s>the newest; all: stats slow"
                             "</span></h2><table><tr><th>ago<th>command<th>key<th>took<th>waited "
                             "for");
    for (size_t i = 0; i < count; i++) {
        const struct watch_request *slow = &figures->slow[i];
        uint64_t now_s = figures->now_us / 1000000;

        evbuffer_add_printf(
            out, "<tr><td>%s<td>%s<td>",
            readable_span(ago, (double)(now_s > slow->at_s ? now_s - slow->at_s : 0)),
            watch_class_names[slow->class]);
        put_escaped(out, slow->key);
        evbuffer_add_printf(out, "<td>%s<td>%s", readable_time(took, (double)slow->took_us / 1e6),
                            slow->tier == WATCH_MEMORY ? "its worker"
                                                       : watch_tier_names[slow->tier]);
    }
    evbuffer_add_printf(out, "</table></section>\n");
}
