/* online_top_lines.c: what top shows, as lines. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/readable.h"
#include "tools/rollcall/online_top.h"
#include "tools/rollcall/online_view.h"

#define SPACES_MAX   64
#define HOT_SHOWN    3
#define FOOTER_LINES 3 /* hot keys, and the keys to press */
#define NEVER_S      1e300

__attribute__((format(printf, 2, 3))) static void top_line(struct online_lines *lines,
                                                           const char *format, ...)
{
    va_list arguments;

    if (lines->count < ONLINE_TOP_LINES_MAX) {
        va_start(arguments, format);
        vsnprintf(lines->at[lines->count++], ONLINE_LINE_MAX, format, arguments);
        va_end(arguments);
    }
}

/* "-" if it is not known. */
static char *top_rate(char text[READABLE_MAX], const json_t *object, const char *name)
{
    double rate = online_real(object, name);

    if (rate < 0) {
        snprintf(text, READABLE_MAX, "-");
        return text;
    }
    readable_count(text, rate < 10 ? rate : (double)(uint64_t)rate);
    char *blank = strchr(text, ' ');

    if (blank != NULL) {
        memmove(blank, blank + 1, strlen(blank));
    }
    return text;
}

/* The slowest of a hundred reads from memory: of the last minute, or since the start. */
static void top_put_latency(const json_t *view, char *text, size_t size)
{
    const json_t *lately = json_object_get(json_object_get(view, "latency"), "memory");
    const json_t *since =
        json_object_get(json_object_get(view, "latency_since_start"), "get_memory");
    const json_t *times = lately != NULL ? lately : since;

    text[0] = '\0';
    if (times != NULL) {
        snprintf(text, size, "  p99 %" PRIu64 " us%s", online_number(times, "p99_us"),
                 lately != NULL ? "" : " ever");
    }
}

static void top_put_daemon(const json_t *view, struct online_lines *lines)
{
    char line[ONLINE_LINE_MAX], reads[READABLE_MAX], changes[READABLE_MAX], disk[READABLE_MAX];
    char latency[64], hits[READABLE_MAX] = "";
    double ratio = online_real(view, "hit_ratio");

    top_line(lines, "%s", online_text_daemon(line, view));
    top_put_latency(view, latency, sizeof(latency));
    if (ratio >= 0) {
        snprintf(hits, sizeof(hits), " (%.0f%% hit)", 100 * ratio);
    }
    top_line(lines, "keys/s: %s read%s, %s changed; disk %s/s;%s",
             top_rate(reads, view, "reads_each_s"), hits, top_rate(changes, view, "changes_each_s"),
             top_rate(disk, view, "disk_reads_each_s"), latency);
}

/* ---- the order ---- */

static double top_sort_value(const json_t *space, enum online_sort sort)
{
    static const char *const names[ONLINE_SORTS] = {
        [ONLINE_BY_HELD] = "held",          [ONLINE_BY_MEMORY] = "held_bytes",
        [ONLINE_BY_READS] = "reads_each_s", [ONLINE_BY_CHANGES] = "changes_each_s",
        [ONLINE_BY_FULL] = "full_in_s",
    };
    double value = online_real(space, names[sort]);

    if (sort == ONLINE_BY_FULL) {
        return value >= 0 ? -value : -NEVER_S; /* the soonest first */
    }
    return value;
}

struct top_ranked {
    const json_t *space;
    double value;
};

static int top_compare(const void *left, const void *right)
{
    const struct top_ranked *a = left;
    const struct top_ranked *b = right;

    if (a->value != b->value) {
        return a->value > b->value ? -1 : 1;
    }
    return strcmp(online_text(a->space, "name"), online_text(b->space, "name"));
}

/* The largest first; names rise. */
static size_t top_rank(const json_t *view, enum online_sort sort,
                       struct top_ranked ranked[SPACES_MAX])
{
    const json_t *spaces = json_object_get(view, "spaces");
    size_t count = json_array_size(spaces) < SPACES_MAX ? json_array_size(spaces) : SPACES_MAX;

    for (size_t i = 0; i < count; i++) {
        ranked[i].space = json_array_get(spaces, i);
        ranked[i].value = sort == ONLINE_BY_NAME ? 0 : top_sort_value(ranked[i].space, sort);
    }
    qsort(ranked, count, sizeof(ranked[0]), top_compare);
    return count;
}

/* ---- spaces ---- */

static void top_put_space(const json_t *space, struct online_lines *lines)
{
    char held[READABLE_MAX], memory[READABLE_MAX], reads[READABLE_MAX], changes[READABLE_MAX];
    char added[READABLE_MAX], full[READABLE_MAX], fill[READABLE_MAX] = "-";

    if (online_fill(space) >= 0) {
        snprintf(fill, sizeof(fill), "%.0f", 100 * online_fill(space));
    }
    top_line(lines, "%-12s %-7s %7s %5s %7s %7s %8s %7s %s", online_text(space, "name"),
             online_text(space, "kind"), top_rate(held, space, "held"), fill,
             online_text_bytes(memory, online_number(space, "held_bytes")),
             top_rate(reads, space, "reads_each_s"), top_rate(changes, space, "changes_each_s"),
             top_rate(added, space, "added_each_s"), online_text_full(full, space));
}

static void top_put_spaces(const json_t *view, enum online_sort sort, size_t room,
                           struct online_lines *lines)
{
    struct top_ranked ranked[SPACES_MAX];
    size_t count = top_rank(view, sort, ranked);
    size_t shown = count <= room ? count : room - 1;

    lines->heading = lines->count;
    top_line(lines, "%-12s %-7s %7s %5s %7s %7s %8s %7s %s", "SPACE", "KIND", "HELD", "OPEN%",
             "MEMORY", "READS/S", "CHANGE/S", "NEW/S", "FULL IN");
    for (size_t i = 0; i < shown; i++) {
        top_put_space(ranked[i].space, lines);
    }
    if (shown < count) {
        top_line(lines, "and %zu more: rollcall status has all", count - shown);
    }
}

static void top_put_hot(const json_t *view, struct online_lines *lines)
{
    const json_t *ids = json_object_get(json_object_get(view, "hot"), "ids");
    char line[ONLINE_LINE_MAX] = "hot:", share[READABLE_MAX];
    size_t used = strlen(line);
    json_t *top;
    size_t i;

    json_array_foreach(ids, i, top)
    {
        if (i < HOT_SHOWN && used < sizeof(line)) {
            used += (size_t)snprintf(line + used, sizeof(line) - used, "  %.64s %s",
                                     online_text(top, "key"),
                                     readable_share(share, online_real(top, "share")));
        }
    }
    top_line(lines, "%s", json_array_size(ids) > 0 ? line : "");
}

void online_top_compose(const json_t *view, enum online_sort sort, const char *error, unsigned rows,
                        struct online_lines *lines)
{
    const json_t *attention = json_object_get(view, "attention");

    lines->count = 0;
    lines->wrong = *error != '\0';
    rows = rows < ONLINE_TOP_ROWS_MIN ? ONLINE_TOP_ROWS_MIN : rows;
    rows = rows > ONLINE_TOP_LINES_MAX ? ONLINE_TOP_LINES_MAX : rows;
    if (lines->wrong) {
        top_line(lines, "%s", error);
    }
    top_put_daemon(view, lines);
    if (json_array_size(attention) > 0) {
        top_line(lines, "Needs attention (%zu): %.180s", json_array_size(attention),
                 json_string_value(json_array_get(attention, 0)));
    }
    size_t taken = lines->count + 1 + FOOTER_LINES;

    top_put_spaces(view, sort, rows > taken ? rows - taken : 1, lines);
    top_put_hot(view, lines);
    top_line(lines, "sort: n name  h held  m memory  r reads  c changes  f full (%s);  q quit",
             online_sorts[sort]);
}
