/* admin_page_spaces.c: of the status page: a section for each space, by how soon it is full. */
#include <inttypes.h>
#include <stdlib.h>

#include "admin/admin_chart.h"
#include "admin/admin_page.h"
#include "base/readable.h"

#define SPACES_SHOWN 24 /* beyond this, only the names of those that fill last */
#define CELLS_ALL    96 /* of all strips together … */
#define CELLS_MOST   48 /* … and of one */
#define SLOTS_SHOWN  8
/* Of those that are not shown: their names, with commas, and what is around them. */
#define NAMES_BYTES (SETTINGS_SPACES_MAX * (ENGINE_SPACE_NAME_MAX + 2) + 64)

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
    evbuffer_add_printf(out, "<p>Largest at the last look:");
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

static void page_rank_spaces(const struct admin_figures *figures,
                             struct rank ranks[SETTINGS_SPACES_MAX])
{
    for (size_t i = 0; i < figures->space_count; i++) {
        ranks[i].space = &figures->spaces[i];
        ranks[i].full_in_s = ranks[i].space->full_in_s;
        if (ranks[i].full_in_s < 0) {
            ranks[i].full_in_s = NEVER_S;
        } else if (!ranks[i].space->room.refuses) {
            ranks[i].full_in_s += ROLLS_S;
        }
    }
    qsort(ranks, figures->space_count, sizeof(ranks[0]), compare_ranks);
}

static void page_put_names(const struct rank *ranks, size_t count, struct evbuffer *out)
{
    evbuffer_add_printf(out, "<section><h2>Further spaces</h2><p>");
    for (size_t i = 0; i < count; i++) {
        evbuffer_add_printf(out, "%s%s", i > 0 ? ", " : "", ranks[i].space->name);
    }
    evbuffer_add_printf(out, "</p></section>\n");
}

void admin_page_spaces(const struct admin_figures *figures, size_t bytes, struct evbuffer *out)
{
    struct rank ranks[SETTINGS_SPACES_MAX];
    size_t count = figures->space_count;
    size_t most = count < SPACES_SHOWN ? count : SPACES_SHOWN;
    size_t cells = CELLS_ALL / (most > 0 ? most : 1);
    size_t shown = 0;
    struct evbuffer *section = evbuffer_new();

    page_rank_spaces(figures, ranks);
    bytes -= bytes < NAMES_BYTES ? bytes : NAMES_BYTES;
    for (; shown < most; shown++) {
        page_put_space(ranks[shown].space, cells < CELLS_MOST ? cells : CELLS_MOST, section);
        if (evbuffer_get_length(section) > bytes) {
            break;
        }
        bytes -= evbuffer_get_length(section);
        evbuffer_add_buffer(out, section);
    }
    evbuffer_free(section);
    if (shown < count) {
        page_put_names(ranks + shown, count - shown, out);
    }
}
