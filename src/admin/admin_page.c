/* admin_page.c: the status page. */
#include <inttypes.h>
#include <stdlib.h>

#include "admin/admin_attention.h"
#include "admin/admin_chart.h"
#include "admin/admin_page.h"
#include "admin/admin_rows.h"
#include "base/memory.h"
#include "base/readable.h"

#define SPACES_SHOWN 24 /* beyond this, only the names of those that fill last */
#define CELLS_ALL    96 /* of all strips together … */
#define CELLS_MOST   48 /* … and of one */
#define SLOTS_SHOWN  8
#define POINTS       60

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
    "min-width:0;break-inside:avoid}.a{margin-bottom:1rem}.a.y{border-color:var(--bad)}"
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
    evbuffer_add_printf(out, ", %u workers, %" PRIu64 " of %u connections</p></header>\n",
                        figures->threads, metric_read(&figures->net.curr_connections),
                        figures->max_connections);
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
    evbuffer_add_printf(out, "<section class=\"a%s\"><h2>Needs attention</h2>\n",
                        attention->count > 0 ? " y" : "");
    if (attention->count == 0) {
        evbuffer_add_printf(out, "<p class=s>Nothing: all is within its limits.</p>");
    } else {
        evbuffer_add_printf(out, "<ol>");
        for (size_t i = 0; i < attention->count; i++) {
            evbuffer_add_printf(out, "<li>");
            put_sentence(out, attention->sentences[i]);
        }
        evbuffer_add_printf(out, "</ol>");
    }
    if (attention->more > 0) {
        evbuffer_add_printf(out, "<p>And %zu more: /status.json has all figures.</p>",
                            attention->more);
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
    evbuffer_add_printf(out, "<section><h2>Operations a second, last %s</h2><div class=l>",
                        day ? "day" : "ten minutes");
    for (size_t i = 0; i < lines; i++) {
        snprintf(words, sizeof(words), "%s %s/s", names[i], readable_count(rate, newest[i]));
        admin_page_key(out, classes[i], words);
    }
    evbuffer_add_printf(out, "</div>");
    double most = admin_chart_lines(out, series, lines, POINTS, "operations a second");

    evbuffer_add_printf(out,
                        "<div class=l><span class=s>%s ago</span><span class=s>highest %s/s"
                        "</span><span class=s style=\"margin-left:auto\">now</span></div>"
                        "</section>\n",
                        day ? "a day" : "ten minutes", readable_count(rate, most));
}

/* ---- memory ---- */

static void page_put_memory(const struct admin_figures *figures, struct evbuffer *out)
{
    struct admin_part parts[] = {{"tables", "f", 0}, {"filters", "v", 0}, {"aux", "g", 0},
                                 {"extend", "z", 0}, {"cold", "x", 0},    {"plain", "d", 0}};
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
                        readable_bytes(left, (double)figures->disk_free_bytes),
                        readable_bytes(whole, (double)figures->disk_bytes));
}

/* ---- spaces ---- */

static void put_forecast(const struct admin_space *space, struct evbuffer *out)
{
    const struct admin_trend *trend = &space->trend;
    double full_in_s = space->full_in_s;
    char span[READABLE_MAX], rate[READABLE_MAX], watched[READABLE_MAX];

    if (space->kind == SPACE_PLAIN) {
        evbuffer_add_printf(out, "<p>%" PRIu64 " evicted since the start.</p>", space->recycled);
    } else if (full_in_s == 0) {
        evbuffer_add_printf(out, "<p><b>Full</b>: new ids are refused.</p>");
    } else if (!trend->known) {
        evbuffer_add_printf(out, "<p class=s>When it is full is known a minute after the "
                                 "start.</p>");
    } else if (full_in_s < 0) {
        evbuffer_add_printf(out, "<p>It does not fill: no new ids in the last %s.</p>",
                            readable_span(watched, trend->watched_s));
    } else {
        readable_span(span, full_in_s);
        if (space->room.refuses) {
            evbuffer_add_printf(out, "<p><b>Full in %s</b>, then new ids are refused", span);
        } else {
            evbuffer_add_printf(out, "<p>%s is %s in <b>%s</b>",
                                space->any_ids ? "A part" : "The oldest table",
                                space->oldest == SPACE_OLDEST_DUMP ? "dumped" : "recycled", span);
        }
        evbuffer_add_printf(out, ": %s new ids a second in the last %s.</p>",
                            readable_count(rate, trend->added_each_s),
                            readable_span(watched, trend->watched_s));
    }
}

static void page_put_refusals(const struct admin_space *space, struct evbuffer *out)
{
    const char *between = "Refused since the start (in the last ten minutes): ";
    char count[READABLE_MAX], lately[READABLE_MAX];

    for (unsigned i = 0; i < ADMIN_REFUSALS_N; i++) {
        if (space->refused[i] > 0) {
            evbuffer_add_printf(out, "%s%s %s (%s)", *between == 'R' ? "<p>" : "", between,
                                readable_count(count, (double)space->refused[i]),
                                readable_count(lately, (double)space->trend.refused[i]));
            evbuffer_add_printf(out, " %s", admin_refusal_words[i]);
            between = ", ";
        }
    }
    if (*between == ',') {
        evbuffer_add_printf(out, ".</p>");
    }
}

static void put_summary(const struct admin_space *space, struct evbuffer *out)
{
    static const char *const nouns[] = {"ids", "members", "items"};
    char held[READABLE_MAX], bytes[READABLE_MAX], many[READABLE_MAX];
    double each = space->bytes_each;

    evbuffer_add_printf(out, "<p>%s %s", readable_count(held, (double)space->held),
                        nouns[space->kind]);
    if (space->kind == SPACE_COUNTER) {
        evbuffer_add_printf(out, ", %.1f bytes each", each);
    } else if (space->kind == SPACE_PHANTOM) {
        evbuffer_add_printf(out, ", %.1f bits each", 8 * each);
    }
    evbuffer_add_printf(out, ", %s of memory", readable_bytes(bytes, (double)space->held_bytes));
    if (space->kind != SPACE_PLAIN) {
        evbuffer_add_printf(out, "; %s", readable_many(many, space->tables, "table"));
    }
    if (space->dumped_tables > 0) {
        evbuffer_add_printf(out, ", %" PRIu64 " on disk (%s)", space->dumped_tables,
                            readable_bytes(bytes, (double)space->dumped_bytes));
    }
    evbuffer_add_printf(out, "</p>");
}

/* Its largest numbers, and those too large for their slots. */
static void page_put_slots(const struct admin_space *space, struct evbuffer *out)
{
    char largest[READABLE_MAX], beside[READABLE_MAX];

    if (space->slot_count == 0) {
        return;
    }
    evbuffer_add_printf(out, "<p>Largest now:");
    for (size_t i = 0; i < space->slot_count && i < SLOTS_SHOWN; i++) {
        const struct admin_slot *slot = &space->slot_list[i];

        evbuffer_add_printf(out, "%s %s %s", i > 0 ? "," : "", slot->name,
                            readable_count(largest, (double)slot->largest));
        if (slot->beside > 0) {
            evbuffer_add_printf(out, " (%s too large for %u bits)",
                                readable_count(beside, (double)slot->beside), slot->bits);
        }
    }
    evbuffer_add_printf(out, space->slot_count > SLOTS_SHOWN ? ", …</p>" : ".</p>");
}

static void page_put_space(const struct admin_space *space, size_t cells, struct evbuffer *out)
{
    static const char *const kinds[] = {"counters", "existence keys", "all other keys"};
    char target[READABLE_MAX], rate[READABLE_MAX];

    evbuffer_add_printf(out, "<section><h2>%s <span class=s>%s%s%s</span></h2>", space->name,
                        kinds[space->kind], space->slots[0] != '\0' ? ", bits " : "", space->slots);
    put_summary(space, out);
    page_put_slots(space, out);
    if (space->kind != SPACE_PLAIN) {
        admin_chart_tables(out, space, cells);
    }
    put_forecast(space, out);
    if (space->kind == SPACE_PHANTOM && space->table_count > 0) {
        const struct admin_table *newest = &space->at[space->table_count - 1];

        evbuffer_add_printf(out, "<p>Wrong answers now, newest filter: %s; target %s.</p>",
                            readable_share(rate, newest->rate),
                            readable_share(target, space->target));
        admin_chart_filters(out, space, cells);
    }
    page_put_refusals(space, out);
    evbuffer_add_printf(out, "</section>\n");
}

/* ---- the order of spaces ---- */

#define NEVER_S 1e300
#define ROLLS_S 1e12 /* rolling is no trouble: it comes after what refuses */

struct rank {
    const struct admin_space *space;
    double full_in_s; /* what does not fill comes last, the largest first, and plain keys after all
                         others */
};

static int compare_ranks(const void *left, const void *right)
{
    const struct rank *a = left;
    const struct rank *b = right;
    int plain = (a->space->kind == SPACE_PLAIN) - (b->space->kind == SPACE_PLAIN);

    if (a->full_in_s != b->full_in_s) {
        return a->full_in_s < b->full_in_s ? -1 : 1;
    }
    if (plain != 0) {
        return plain;
    }
    return a->space->held_bytes > b->space->held_bytes
               ? -1
               : a->space->held_bytes < b->space->held_bytes;
}

static void page_put_spaces(const struct admin_figures *figures, struct evbuffer *out)
{
    struct rank ranks[SETTINGS_SPACES_MAX];
    size_t count = figures->space_count;
    size_t shown = count < SPACES_SHOWN ? count : SPACES_SHOWN;

    for (size_t i = 0; i < count; i++) {
        ranks[i].space = &figures->spaces[i];
        ranks[i].full_in_s = ranks[i].space->full_in_s;
        if (ranks[i].full_in_s < 0) {
            ranks[i].full_in_s = NEVER_S;
        } else if (!ranks[i].space->room.refuses) {
            ranks[i].full_in_s += ROLLS_S;
        }
    }
    qsort(ranks, count, sizeof(ranks[0]), compare_ranks);
    for (size_t i = 0; i < shown; i++) {
        size_t cells = CELLS_ALL / shown;

        page_put_space(ranks[i].space, cells < CELLS_MOST ? cells : CELLS_MOST, out);
    }
    if (shown < count) {
        evbuffer_add_printf(out, "<section><h2>Further spaces</h2><p>");
        for (size_t i = shown; i < count; i++) {
            evbuffer_add_printf(out, "%s%s", i > shown ? ", " : "", ranks[i].space->name);
        }
        evbuffer_add_printf(out, "</p></section>\n");
    }
}

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

/* ---- the page ---- */

static void put_loading(const struct admin_view *view, struct evbuffer *out)
{
    put_begin(out, "rollcalld is loading");
    evbuffer_add_printf(out,
                        "<header><h1>rollcalld is loading: %.0f %%</h1><p>Requests are served "
                        "once the data directory is read.</p></header>\n",
                        100 * view->figures->loaded);
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
    page_put_spaces(view->figures, out);
    put_rates(view, false, out);
    put_rates(view, true, out);
    admin_page_latency(view, out);
    admin_page_hot(view->figures, out);
    admin_page_slow(view->figures, out);
    page_put_memory(view->figures, out);
    put_disk(view->figures, out);
    evbuffer_add_printf(out, "</div>\n");
    put_end(out);
    free(attention);
}
