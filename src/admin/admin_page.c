/* admin_page.c: the status page. */
#include <inttypes.h>
#include <stdlib.h>

#include "admin/admin_attention.h"
#include "admin/admin_chart.h"
#include "admin/admin_page.h"
#include "admin/admin_rows.h"
#include "base/memory.h"
#include "base/readable.h"

#define POINTS          60
#define PAGE_BYTES      (60u << 10) /* at most */
#define ATTENTION_BYTES (12u << 10) /* of them, for the sentences */

static const char style[] =
    ":root{--p:#fbfbfa;--k:#fff;--i:#1f2933;--s:#52606d;--w:#d5dbe1;--o:#2f7d4f;--f:#5b84b1;"
    "--g:#c26d3a;--d:#aab4be;--e:#eef1f4;--v:#8a6fb0;--bad:#b0302f;--r:#2f6fb0;--x:#b0562f;"
    "--n:#b9a24a}\n"
    "@media(prefers-color-scheme:dark){:root{--p:#14181c;--k:#1c2228;--i:#e4e9ee;--s:#9fb0c0;"
    "--w:#36414b;--o:#4fae76;--f:#6f9fd0;--g:#dd8a55;--d:#66727d;--e:#2a323a;--v:#a98fd0;"
    "--bad:#ef6b6a;--r:#63a4e6;--x:#e08a5f;--n:#d0ba62}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--p);color:var(--i);font:15px/1.45 "
    "system-ui,'DejaVu Sans',sans-serif}main{max-width:1240px;margin:auto;padding:1rem}\n"
    "h1{font-size:1.25rem;margin:0;overflow-wrap:anywhere}h2{font-size:1rem;margin:0 0 "
    ".4rem;overflow-wrap:anywhere}h2 .s{font-weight:400}"
    "p{margin:.2rem 0}footer{margin-top:1rem}.s{color:var(--s)}header{margin-bottom:1rem}\n"
    ".m{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr))}"
    "section{background:var(--k);border:1px solid var(--w);border-radius:6px;padding:.8rem 1rem;"
    "min-width:0;break-inside:avoid}.q{grid-column-start:1}.a{margin-bottom:1rem}.a.y{border-color:"
    "var(--bad)}"
    "a{color:var(--r)}code{font-family:'DejaVu Sans Mono',monospace;font-size:.9em}ol{margin:.2rem "
    "0;padding-left:1.5rem}li{margin:.2rem 0;overflow-wrap:anywhere}\n"
    "svg{display:block;width:100%;margin:.4rem 0}.t{height:44px}.c{height:120px;background:"
    "var(--p);border:1px solid var(--w)}.b{height:22px}\n"
    ".o{fill:var(--o)}.f{fill:var(--f)}.g{fill:var(--g)}.d{fill:var(--d)}.e{fill:var(--e)}"
    ".v{fill:var(--v)}.bad{fill:var(--bad)}.x{fill:var(--x)}.r{fill:var(--r)}.z{fill:var(--n)}"
    ".n{fill:none;stroke:var(--d);stroke-dasharray:3 2}\n"
    ".c "
    "path,.target,.y{fill:none;stroke-linecap:round;stroke-width:1.8;vector-effect:non-scaling-"
    "stroke}.c .r{stroke:"
    "var(--r)}.c .o{stroke:var(--o)}.c .x{stroke:var(--x)}.target{stroke:var(--bad);"
    "stroke-dasharray:4 3}.y{stroke:var(--i)}\n"
    ".l{display:flex;flex-wrap:wrap;gap:.1rem 1rem;font-size:.85rem}.l svg{display:inline-block;"
    "width:.8em;height:.8em;margin:0 .35em 0 0}\n"
    "table{border-collapse:collapse;width:100%;font-size:.9rem}td,th{text-align:left;padding:"
    ".1rem .8rem .1rem 0;vertical-align:top;font-weight:400}th{color:var(--s)}td{"
    "font-variant-numeric:tabular-nums;overflow-wrap:anywhere}\n"
    ".w td,.w th{white-space:nowrap;padding-right:.6rem}.w code{white-space:normal;overflow-wrap:"
    "anywhere}\n"
    ".k{list-style:none;margin:0;padding:0}.k .k{padding-left:.8rem;border-left:2px solid "
    "var(--w)}.k .b{height:6px;max-width:20rem}\n"
    "@media print{:root{--p:#fff;--k:#fff}body{font-size:11px}.m{display:block}section{"
    "margin-bottom:.6rem}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n";

/* Every five seconds, in place, as long as somebody looks. */
static const char script[] =
    "setInterval(async()=>{if(document.hidden)return;try{const r=await fetch(location.href,"
    "{cache:'no-store'});if(!r.ok)throw 0;const d=new DOMParser().parseFromString(await r.text(),"
    "'text/html');document.title=d.title;document.querySelector('main').replaceWith("
    "d.querySelector('main'))}catch(e){document.title='no answer: '+location.host}},5000)\n";

void admin_make_script(const struct admin_view *view, struct evbuffer *out)
{
    (void)view;
    evbuffer_add(out, script, sizeof(script) - 1);
}

static void put_begin(struct evbuffer *out, const char *title)
{
    evbuffer_add_printf(
        out,
        "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport "
        "content=\"width=device-width,initial-scale=1\"><title>%s</title>\n<link rel=icon "
        "href=\"data:,\"><noscript><meta http-equiv=refresh content=5></noscript>\n"
        "<style>%s</style><script src=\"/status.js\" defer></script></head>\n<body><main>\n",
        title, style);
}

static void put_end(struct evbuffer *out)
{
    evbuffer_add_printf(out, "<footer class=s>For programs: <a href=\"/metrics\">/metrics</a>, "
                             "<a href=\"/status.json\">/status.json</a></footer>\n"
                             "</main></body></html>\n");
}

void admin_page_key(struct evbuffer *out, const char *class, const char *words)
{
    evbuffer_add_printf(out,
                        "<span><svg viewBox=\"0 0 8 8\" aria-hidden=true><rect class=%s width=8 "
                        "height=8 /></svg>%s</span>",
                        class, words);
}

/* ---- the whole daemon ---- */

static void put_header(const struct admin_view *view, struct evbuffer *out)
{
    const struct admin_figures *figures = view->figures;
    char up[READABLE_MAX], lag[READABLE_MAX];

    evbuffer_add_printf(out, "<header><h1>rollcalld %s</h1><p class=s>%s, up %s, version %s",
                        figures->address, admin_role_words[figures->repl.role],
                        readable_span(up, (double)figures->uptime_s), PACKAGE_VERSION);
    if (figures->has_journal && figures->journal.unsynced_us > 0) {
        evbuffer_add_printf(out, ", oldest change not yet durable: %s",
                            readable_time(lag, (double)figures->journal.unsynced_us / 1e6));
    } else {
        evbuffer_add_printf(out, figures->has_journal ? ", all changes durable"
                                                      : ", no data "
                                                        "directory");
    }
    evbuffer_add_printf(out, ", %u worker%s, %" PRIu64 " of %u connections</p></header>\n",
                        figures->threads, figures->threads == 1 ? "" : "s",
                        metric_read(&figures->net.curr_connections), figures->max_connections);
}

/* A sentence as HTML: nothing that it quotes is markup, and `words` become code. */
static void put_sentence(struct evbuffer *out, const char *sentence)
{
    char *escaped = evhttp_htmlescape(sentence);
    bool is_code = false;

    for (const char *at = escaped; at != NULL && *at != '\0'; at++) {
        if (*at == '`') {
            evbuffer_add_printf(out, is_code ? "</code>" : "<code>");
            is_code = !is_code;
        } else {
            evbuffer_add(out, at, 1);
        }
    }
    free(escaped);
}

static void put_attention(const struct admin_attention *attention, struct evbuffer *out)
{
    size_t bytes = evbuffer_get_length(out) + ATTENTION_BYTES;
    size_t shown = 0;

    evbuffer_add_printf(out, "<section class=\"a%s\"><h2>Needs attention</h2>\n",
                        attention->count > 0 ? " y" : "");
    if (attention->count == 0) {
        evbuffer_add_printf(out, "<p class=s>Nothing: all is within its limits.</p>");
    } else {
        evbuffer_add_printf(out, "<ol>");
        for (; shown < attention->count && evbuffer_get_length(out) < bytes; shown++) {
            evbuffer_add_printf(out, "<li>");
            put_sentence(out, attention->sentences[shown]);
        }
        evbuffer_add_printf(out, "</ol>");
    }
    if (attention->more + attention->count > shown) {
        evbuffer_add_printf(out, "<p>And %zu more: /status.json has all figures.</p>",
                            attention->more + attention->count - shown);
    }
    evbuffer_add_printf(out, "</section>\n");
}

/* ---- operations ---- */

static void put_rates(const struct admin_view *view, bool day, struct evbuffer *out)
{
    static const char *const names[ADMIN_LINES] = {"keys read", "changes", "disk reads"};
    static const char *const classes[ADMIN_LINES] = {"r", "o", "x"};
    double rates[ADMIN_LINES][POINTS];
    struct admin_series series[ADMIN_LINES];
    char rate[READABLE_MAX], words[READABLE_MAX + 40];
    double newest[ADMIN_LINES];
    size_t lines = view->figures->has_cold ? ADMIN_LINES : ADMIN_DISK_READS;

    for (size_t i = 0; i < lines; i++) {
        newest[i] = admin_history_rates(view->history, day, (enum admin_line)i, rates[i], POINTS);
        rates[i][POINTS - 1] = newest[i]; /* of less than a part of the time, too */
        series[i] = (struct admin_series){names[i], classes[i], rates[i]};
    }
    evbuffer_add_printf(out, "<section%s><h2>Operations a second, last %s</h2><div class=l>",
                        day ? "" : " class=q", day ? "day" : "ten minutes");
    for (size_t i = 0; i < lines; i++) {
        snprintf(words, sizeof(words), "%s %s/s", names[i], readable_count(rate, newest[i]));
        admin_page_key(out, classes[i], words);
    }
    evbuffer_add_printf(out, "</div>");
    double most = admin_chart_lines(out, series, lines, POINTS, "operations a second");

    evbuffer_add_printf(out,
                        "<div class=l><span class=s>%s ago</span><span class=s>up to %s/s"
                        "</span><span class=s style=\"margin-left:auto\">now</span></div>"
                        "</section>\n",
                        day ? "a day" : "ten minutes", readable_count(rate, most));
}

/* ---- memory ---- */

static void page_put_memory(const struct admin_figures *figures, struct evbuffer *out)
{
    struct admin_part parts[] = {{"tables", "f", 0}, {"filters", "v", 0}, {"aux", "g", 0},
                                 {"extend", "z", 0}, {"cold", "o", 0},    {"plain", "d", 0}};
    static const size_t kinds[] = {ENGINE_MEMORY_TABLES, ENGINE_MEMORY_FILTERS,
                                   ENGINE_MEMORY_AUX,    ENGINE_MEMORY_EXTEND,
                                   ENGINE_MEMORY_COLD,   ENGINE_MEMORY_PLAIN};
    char bytes[READABLE_MAX], limit[READABLE_MAX], resident[READABLE_MAX];
    char words[READABLE_MAX + 40];
    double held = 0;
    size_t count = sizeof(parts) / sizeof(parts[0]);

    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < figures->space_count; k++) {
            parts[i].value += (double)figures->spaces[k].memory[kinds[i]].held_bytes;
        }
        held += parts[i].value;
    }
    evbuffer_add_printf(
        out, "<section><h2>Memory by kind</h2><p class=s>%s of %s held for spaces; %s resident</p>",
        readable_bytes(bytes, held), readable_bytes(limit, (double)figures->memory_bytes),
        readable_bytes(resident, (double)figures->resident_bytes));
    admin_chart_bar(out, parts, count, (double)figures->memory_bytes, "memory up to the limit");
    evbuffer_add_printf(out, "<div class=l>");
    for (size_t i = 0; i < count; i++) {
        if (parts[i].value > 0) {
            snprintf(words, sizeof(words), "%s %s", parts[i].name,
                     readable_bytes(bytes, parts[i].value));
            admin_page_key(out, parts[i].class, words);
        }
    }
    admin_page_key(out, "e", "free");
    evbuffer_add_printf(out, "</div></section>\n");
}

/* ---- the disk ---- */

static const char *sync_word(enum journal_sync sync)
{
    static const char *const words[] = {"never", "everysec", "always"};

    return words[sync];
}

static void put_cold_row(const struct cold_stats *cold, struct evbuffer *out)
{
    char reads[READABLE_MAX];
    uint64_t looked = cold->hits + cold->misses;

    evbuffer_add_printf(
        out,
        "<tr><th>Reads of dumped tables<td>%s pages read, %.0f %% of those asked for found in "
        "memory; %" PRIu64 " queued now, at most %" PRIu64 " so far; %" PRIu64 " failed, %" PRIu64
        " damaged",
        readable_count(reads, (double)cold->reads),
        looked > 0 ? 100 * (double)cold->hits / (double)looked : 0.0, cold->depth,
        cold->depth_highest, cold->failed, cold->bad_pages);
}

static void put_checkpoint_row(const struct admin_figures *figures, struct evbuffer *out)
{
    const struct data_stats *data = &figures->data;
    char ago[READABLE_MAX];
    uint64_t ago_s =
        figures->now_s > data->last_checkpoint_s ? figures->now_s - data->last_checkpoint_s : 0;

    evbuffer_add_printf(out, "<tr><th>Checkpoints<td>");
    if (data->last_checkpoint_s > 0) {
        evbuffer_add_printf(out, "the last one %s ago, it took %.1f s; ",
                            readable_span(ago, (double)ago_s),
                            (double)data->last_checkpoint_us / 1e6);
    }
    evbuffer_add_printf(out, "%" PRIu64 " made, %" PRIu64 " failed%s", data->checkpoints,
                        data->checkpoint_failures, data->checkpoint_running ? "; running" : "");
}

/* As Needs attention has it. */
static bool page_disk_keeps_up(const struct admin_figures *figures)
{
    const struct journal_stats *journal = &figures->journal;
    const struct admin_events *lately = &figures->events;
    bool journals =
        !journal->failed && !journal->full &&
        (journal->unsynced_us < ADMIN_JOURNAL_LAG_US || figures->sync == JOURNAL_SYNC_NEVER);

    return journals && lately->checkpoint_failures + lately->dump_failures + lately->cold_busy +
                               lately->journal_refusals + lately->cold_failed ==
                           0;
}

static void put_disk(const struct admin_figures *figures, struct evbuffer *out)
{
    const struct journal_stats *journal = &figures->journal;
    const struct data_stats *data = &figures->data;
    char size[READABLE_MAX], waiting[READABLE_MAX], lag[READABLE_MAX];
    char files[READABLE_MAX], segments[READABLE_MAX], left[READABLE_MAX], whole[READABLE_MAX];
    char dumps[READABLE_MAX], count[READABLE_MAX];

    if (!figures->has_data) {
        return;
    }
    evbuffer_add_printf(
        out,
        "<section><h2>Disk <span class=s>%s</span></h2><table><tr><th>Journal<td>%s in %s, sync "
        "%s; %s not yet written, ",
        page_disk_keeps_up(figures) ? "it keeps up" : "it does not keep up",
        readable_bytes(size, (double)journal->segment_bytes),
        readable_many(segments, journal->segments, "file"), sync_word(figures->sync),
        readable_bytes(waiting, (double)journal->buffer_used_bytes));
    if (journal->unsynced_us > 0) {
        evbuffer_add_printf(out, "oldest change not durable for %s",
                            readable_time(lag, (double)journal->unsynced_us / 1e6));
    } else {
        evbuffer_add_printf(out, "all durable");
    }
    evbuffer_add_printf(out, "%s%s", journal->full ? "; <b>disk full</b>" : "",
                        journal->failed ? "; <b>failed</b>" : "");
    put_checkpoint_row(figures, out);
    evbuffer_add_printf(out,
                        "<tr><th>Dumps<td>%s dumped, %" PRIu64 " merged, %" PRIu64
                        " failed since the start; %s of %s",
                        readable_many(dumps, data->dumps, "table"), data->merges,
                        data->dump_failures, readable_many(count, data->dump_files, "file"),
                        readable_bytes(files, (double)data->dump_file_bytes));
    if (figures->has_cold) {
        put_cold_row(&figures->cold, out);
    }
    evbuffer_add_printf(out, "<tr><th>File system<td>%s of %s free</table></section>\n",
                        readable_bytes(left, (double)figures->data.disk_free_bytes),
                        readable_bytes(whole, (double)figures->data.disk_bytes));
}

/* ---- the page ---- */

static void put_legend(struct evbuffer *out)
{
    evbuffer_add_printf(out, "<div class=l style=\"margin:0 0 .6rem\"><span class=s>Tables, older "
                             "to newer ids, filled as high as they are full:</span>");
    admin_page_key(out, "o", "open");
    admin_page_key(out, "f", "full, in memory");
    admin_page_key(out, "g", "being dumped");
    admin_page_key(out, "d", "on disk");
    admin_page_key(out, "n", "free");
    evbuffer_add_printf(out, "<span class=s>a line on top: with a layer</span></div>\n");
}

static void put_loading(const struct admin_view *view, struct evbuffer *out)
{
    put_begin(out, "rollcalld is loading");
    evbuffer_add_printf(out,
                        "<header><h1>rollcalld is loading: %.0f %%</h1><p>Requests are served "
                        "once the data directory is read.</p></header>\n",
                        100 * view->figures->loaded);
    put_end(out);
}

/* What comes after the spaces, which have the bytes that it leaves. */
static void put_rest(const struct admin_view *view, struct evbuffer *out)
{
    put_rates(view, false, out);
    put_rates(view, true, out);
    admin_page_latency(view, out);
    admin_page_hot(view->figures, out);
    admin_page_slow(view->figures, out);
    page_put_memory(view->figures, out);
    put_disk(view->figures, out);
    evbuffer_add_printf(out, "</div>\n");
    put_end(out);
}

void admin_make_page(const struct admin_view *view, struct evbuffer *out)
{
    struct admin_attention *attention;
    char title[256];

    if (!view->figures->serving) {
        put_loading(view, out);
        return;
    }
    struct evbuffer *rest = evbuffer_new();

    attention = memory_zalloc(sizeof(*attention));
    admin_attention_collect(view, attention);
    snprintf(title, sizeof(title), "rollcalld %s%s", view->figures->address,
             attention->count > 0 ? ": needs attention" : "");
    put_begin(out, title);
    put_header(view, out);
    put_attention(attention, out);
    put_legend(out);
    evbuffer_add_printf(out, "<div class=m>\n");
    admin_page_nodes(view->figures, out);
    put_rest(view, rest);
    size_t used = evbuffer_get_length(out) + evbuffer_get_length(rest);

    admin_page_spaces(view->figures, PAGE_BYTES > used ? PAGE_BYTES - used : 0, out);
    evbuffer_add_buffer(out, rest);
    evbuffer_free(rest);
    free(attention);
}
