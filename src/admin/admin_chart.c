/* admin_chart.c: strips, bars and lines. */
#include "admin/admin_chart.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/readable.h"

#define IDS_MAX    64
#define CELL_WIDTH 20
#define CELL_BAR   16
#define CELL_TALL  40
#define WIDE       600
#define TALL       120

static const char *const state_words[ADMIN_STATES] = {"open", "full, in memory", "being dumped",
                                                      "on disk"};
static const char *const state_classes[ADMIN_STATES] = {"o", "f", "g", "d"};

/* What is drawn of a share: a figure that is wrong, or no number, does not leave the picture. */
static double chart_share(double share)
{
    return share > 0 ? (share < 1 ? share : 1) : 0;
}

/* One table, or several that share a cell. */
struct cell {
    uint64_t first_id, last_id, held, capacity, tables;
    bool layer;
    enum admin_state state;
};

static void add_to_cell(struct cell *cell, const struct admin_table *table)
{
    if (cell->tables == 0) {
        cell->first_id = table->first_id;
    }
    cell->last_id = table->last_id;
    cell->held += table->held;
    cell->capacity += table->capacity;
    cell->layer = table->layers > 1;
    cell->state = table->state;
    cell->tables++;
}

static const char *ids_words(char words[IDS_MAX], uint64_t held, uint64_t first_id,
                             uint64_t last_id)
{
    if (held == 0 && last_id == 0) {
        return "no ids yet";
    }
    snprintf(words, IDS_MAX, "ids %" PRIu64 " to %" PRIu64, first_id, last_id);
    return words;
}

static void put_cell(struct evbuffer *out, size_t place, const struct cell *cell)
{
    char held[READABLE_MAX], room[READABLE_MAX], many[READABLE_MAX] = "", ids[IDS_MAX];
    double full = chart_share(cell->capacity > 0 ? (double)cell->held / (double)cell->capacity : 0);
    size_t x = place * CELL_WIDTH;

    if (cell->tables > 1) {
        snprintf(many, sizeof(many), "%" PRIu64 " tables, ", cell->tables);
    }
    evbuffer_add_printf(
        out,
        "<g><title>%s%s%s: %s, %s of %s</title><rect class=e x=%zu y=0 width=%d height=%d />"
        "<rect class=%s x=%zu y=%.1f width=%d height=%.1f />",
        many, state_words[cell->state], cell->layer ? " with a layer" : "",
        ids_words(ids, cell->held, cell->first_id, cell->last_id),
        readable_count(held, (double)cell->held), readable_count(room, (double)cell->capacity), x,
        CELL_BAR, CELL_TALL, state_classes[cell->state], x, CELL_TALL * (1 - full), CELL_BAR,
        CELL_TALL * full);
    if (cell->layer) {
        evbuffer_add_printf(out, "<path class=y d=\"M%zu 2h%d\"/>", x, CELL_BAR);
    }
    evbuffer_add_printf(out, "</g>");
}

static void put_free(struct evbuffer *out, size_t place)
{
    evbuffer_add_printf(out,
                        "<rect class=n x=%zu y=.5 width=%d height=%d><title>free: memory for one "
                        "more table</title></rect>",
                        place * CELL_WIDTH, CELL_BAR, CELL_TALL - 1);
}

void admin_chart_tables(struct evbuffer *out, const struct admin_space *space, size_t cells)
{
    size_t spare = space->any_ids ? 0 : (size_t)space->spare;
    size_t count = space->table_count;
    size_t shared = 0; /* the oldest ones that share the first cell */
    size_t place = 0;

    spare = spare < cells / 4 ? spare : cells / 4;
    if (count > cells - spare) {
        shared = count - (cells - spare) + 1;
    }
    size_t shown = (shared > 0 ? count - shared + 1 : count) + spare;

    evbuffer_add_printf(out,
                        "<svg class=t viewBox=\"0 0 %zu %d\" preserveAspectRatio=none role=img "
                        "aria-label=\"%" PRIu64 " tables of %s\">",
                        (shown > 12 ? shown : 12) * CELL_WIDTH, CELL_TALL, space->tables,
                        space->name);
    for (size_t i = 0; i < count; place++) {
        struct cell cell = {.tables = 0};

        do {
            add_to_cell(&cell, &space->at[i++]);
        } while (i < shared);
        cell.tables += place == 0 ? space->tables_left_out : 0;
        put_cell(out, place, &cell);
    }
    for (size_t i = 0; i < spare; i++) {
        put_free(out, place++);
    }
    evbuffer_add_printf(out, "</svg>\n");
}

void admin_chart_filters(struct evbuffer *out, const struct admin_space *space, size_t cells)
{
    size_t count = space->table_count < cells ? space->table_count : cells;
    double most = space->target * 1.5;
    char rate[READABLE_MAX], ids[IDS_MAX];

    for (size_t i = space->table_count - count; i < space->table_count; i++) {
        most = space->at[i].rate > most ? space->at[i].rate : most;
    }
    evbuffer_add_printf(out,
                        "<svg class=t viewBox=\"0 0 %zu %d\" preserveAspectRatio=none role=img "
                        "aria-label=\"wrong answers of each filter\">",
                        (count > 12 ? count : 12) * CELL_WIDTH, CELL_TALL);
    for (size_t i = 0; i < count; i++) {
        const struct admin_table *table = &space->at[space->table_count - count + i];
        double tall = most > 0 ? CELL_TALL * chart_share(table->rate / most) : 0;

        evbuffer_add_printf(out,
                            "<rect class=%s x=%zu y=%.1f width=%d height=%.1f><title>%s: %s"
                            "</title></rect>",
                            table->rate > space->target ? "bad" : "v", i * CELL_WIDTH,
                            CELL_TALL - tall, CELL_BAR, tall,
                            ids_words(ids, table->held, table->first_id, table->last_id),
                            readable_share(rate, table->rate));
    }
    evbuffer_add_printf(out, "<path class=target d=\"M0 %.1fH%d\"/></svg>\n",
                        CELL_TALL * (1 - (most > 0 ? chart_share(space->target / most) : 1)),
                        (int)((count > 12 ? count : 12) * CELL_WIDTH));
}

double admin_chart_lines(struct evbuffer *out, const struct admin_series *series, size_t count,
                         size_t points, const char *label)
{
    double most = 1;

    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < points; k++) {
            most = series[i].rates[k] > most ? series[i].rates[k] : most;
        }
    }
    evbuffer_add_printf(out,
                        "<svg class=c viewBox=\"0 0 %d %d\" preserveAspectRatio=none role=img "
                        "aria-label=\"%s\">",
                        WIDE, TALL, label);
    for (size_t i = 0; i < count; i++) {
        bool begun = false;

        evbuffer_add_printf(out, "<path class=\"%s\" d=\"", series[i].class);
        for (size_t k = 0; k < points; k++) {
            double rate = series[i].rates[k];

            if (rate < 0) {
                begun = false;
                continue;
            }
            bool alone = !begun && (k + 1 == points || series[i].rates[k + 1] < 0);

            evbuffer_add_printf(
                out, "%s%.0f %.1f%s", begun ? " " : "M", (double)k * WIDE / (double)(points - 1),
                TALL - 1 - (TALL - 4) * chart_share(rate / most), alone ? "h0" : "");
            begun = true;
        }
        evbuffer_add_printf(out, "\"/>");
    }
    evbuffer_add_printf(out, "</svg>\n");
    return most;
}

#define POWERS 20 /* 1 us to a second */

static uint64_t in_octave(const struct watch_times *times, unsigned power)
{
    return watch_below(times, power + 1) - (power > 0 ? watch_below(times, power) : 0);
}

void admin_chart_times(struct evbuffer *out, const struct watch_times *memory,
                       const struct watch_times *disk)
{
    const struct watch_times *both[] = {memory, disk};
    static const char *const classes[] = {"r", "x"};
    double bar = (double)WIDE / POWERS / 2 - 2;

    evbuffer_add_printf(out,
                        "<svg class=c viewBox=\"0 0 %d %d\" preserveAspectRatio=none role=img "
                        "aria-label=\"requests by their time, 1 us to 1 s\">",
                        WIDE, TALL);
    for (unsigned power = 0; power < POWERS; power++) {
        for (size_t i = 0; i < 2; i++) {
            uint64_t count = in_octave(both[i], power);
            double share =
                chart_share(both[i]->count > 0 ? (double)count / (double)both[i]->count : 0);

            if (count > 0) {
                double tall = 1 + (TALL - 4) * share;

                evbuffer_add_printf(
                    out,
                    "<rect class=%s x=%.1f y=%.1f width=%.1f height=%.1f><title>%" PRIu64
                    "</title></rect>",
                    classes[i], (double)WIDE * power / POWERS + (double)i * (bar + 1), TALL - tall,
                    bar, tall, count);
            }
        }
    }
    evbuffer_add_printf(out, "</svg>\n");
}

void admin_chart_bar(struct evbuffer *out, const struct admin_part *parts, size_t count,
                     double whole, const char *label)
{
    double x = 0;

    evbuffer_add_printf(out,
                        "<svg class=b viewBox=\"0 0 %d 20\" preserveAspectRatio=none role=img "
                        "aria-label=\"%s\"><rect class=e x=0 y=0 width=%d height=20 />",
                        WIDE, label, WIDE);
    for (size_t i = 0; i < count; i++) {
        double left = WIDE - x;
        double wide = WIDE * chart_share(whole > 0 ? parts[i].value / whole : 0);

        wide = wide < left ? wide : left;
        if (wide > 0.05) {
            evbuffer_add_printf(out,
                                "<rect class=%s x=%.1f y=0 width=%.1f height=20><title>%s"
                                "</title></rect>",
                                parts[i].class, x, wide, parts[i].name);
        }
        x += wide;
    }
    evbuffer_add_printf(out, "</svg>\n");
}
