/* admin_metrics.c: /metrics, in Prometheus' text format, from the rows of admin_rows.h. */
#include <inttypes.h>
#include <string.h>

#include "admin/admin_private.h"
#include "admin/admin_rows.h"
#include "net/net.h"

#ifdef HAVE_JEMALLOC
#define ALLOCATOR "jemalloc"
#else
#define ALLOCATOR "libc"
#endif

#define US_PER_S     1e6
#define TIMES_POWERS 21  /* buckets to 2^20 us, about a second */
#define LABELS_MAX   160 /* bytes */

static void family(struct evbuffer *out, const char *name, const char *type, const char *help)
{
    evbuffer_add_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* ---- rows ---- */

/* Prints a value. printf is slow with reals, and most are whole. False: there is no value. */
static bool metrics_print_value(char text[40], const struct admin_row *row, const void *object)
{
    const char *at = (const char *)object + row->offset;
    uint64_t whole = 0;

    switch (row->form) {
    case ADMIN_REAL:
        snprintf(text, 40, "%.9g", *(const double *)at);
        return *(const double *)at >= 0;
    case ADMIN_UNSIGNED:
        whole = *(const unsigned *)at;
        break;
    case ADMIN_BOOL:
        whole = *(const bool *)at;
        break;
    default:
        whole = *(const uint64_t *)at;
        break;
    }
    if (row->us) {
        snprintf(text, 40, "%.9g", (double)whole / US_PER_S);
        return true;
    }
    snprintf(text, 40, "%" PRIu64, whole);
    return whole > 0 || row->when != ADMIN_NOT_ZERO;
}

static void put_sample(struct evbuffer *out, const struct admin_row *row, const void *object,
                       const char *labels)
{
    char value[40];

    if (metrics_print_value(value, row, object)) {
        evbuffer_add_printf(out, "%s%s%s%s %s\n", row->metric, *labels != '\0' ? "{" : "", labels,
                            *labels != '\0' ? "}" : "", value);
    }
}

/*
 * Labels are the serial modulo ADMIN_TABLES_MAX, so that they do not grow without end; of two
 * tables with one label the newer is shown.
 */
static void put_tables(struct evbuffer *out, const struct admin_row *row,
                       const struct admin_space *space)
{
    bool taken[ADMIN_TABLES_MAX] = {false};
    char labels[LABELS_MAX];

    for (size_t k = space->table_count; k-- > 0;) {
        unsigned label = (unsigned)(space->at[k].serial % ADMIN_TABLES_MAX);

        if (!taken[label]) {
            snprintf(labels, sizeof(labels), "space=\"%s\",table=\"%u\"", space->name, label);
            put_sample(out, row, &space->at[k], labels);
        }
        taken[label] = true;
    }
}

static void metrics_put_slots(struct evbuffer *out, const struct admin_row *row,
                              const struct admin_space *space)
{
    char labels[LABELS_MAX];

    for (size_t i = 0; i < space->slot_count; i++) {
        const struct admin_slot *slot = &space->slot_list[i];

        snprintf(labels, sizeof(labels), "space=\"%s\",slot=\"%s\"", space->name, slot->name);
        put_sample(out, row, slot, labels);
    }
}

static void put_spaces(struct evbuffer *out, const struct admin_row *row,
                       const struct admin_figures *figures)
{
    char labels[LABELS_MAX];

    for (size_t i = 0; i < figures->space_count; i++) {
        const struct admin_space *space = &figures->spaces[i];

        if (!admin_row_applies(row, figures, space)) {
            continue;
        }
        if (row->of == ADMIN_TABLE) {
            put_tables(out, row, space);
        } else if (row->of == ADMIN_SLOT) {
            metrics_put_slots(out, row, space);
        } else {
            snprintf(labels, sizeof(labels), "space=\"%s\"%s%s", space->name,
                     row->labels != NULL ? "," : "", row->labels != NULL ? row->labels : "");
            put_sample(out, row, space, labels);
        }
    }
}

static void put_rows(const struct admin_figures *figures, struct evbuffer *out)
{
    for (size_t i = 0; i < admin_row_count; i++) {
        const struct admin_row *row = &admin_rows[i];

        if (row->metric == NULL || !admin_row_applies(row, figures, NULL)) {
            continue;
        }
        if (row->help != NULL) {
            family(out, row->metric, row->type, row->help);
        }
        if (row->form != ADMIN_HEAD && row->of == ADMIN_DAEMON) {
            put_sample(out, row, figures, row->labels != NULL ? row->labels : "");
        } else if (row->form != ADMIN_HEAD) {
            put_spaces(out, row, figures);
        }
    }
}

/* ---- what is no row ---- */

static void put_build(struct evbuffer *out)
{
    family(out, "rollcall_build_info", "gauge", "Always 1; the labels tell the build.");
    evbuffer_add_printf(out,
                        "rollcall_build_info{version=\"%s\",libevent=\"%s\",allocator=\"%s\"} 1\n",
                        PACKAGE_VERSION, net_library_version(), ALLOCATOR);
}

static void put_times(const struct watch_times *times, const char *class, const char *tier,
                      struct evbuffer *out)
{
    static const char name[] = "rollcall_command_duration_seconds";

    for (unsigned power = 0; power < TIMES_POWERS; power++) {
        evbuffer_add_printf(out, "%s_bucket{command=\"%s\",tier=\"%s\",le=\"%.6f\"} %" PRIu64 "\n",
                            name, class, tier, (double)(1u << power) / US_PER_S,
                            watch_below(times, power));
    }
    evbuffer_add_printf(out,
                        "%s_bucket{command=\"%s\",tier=\"%s\",le=\"+Inf\"} %" PRIu64
                        "\n%s_sum{command=\"%s\",tier=\"%s\"} %.6f\n"
                        "%s_count{command=\"%s\",tier=\"%s\"} %" PRIu64 "\n",
                        name, class, tier, times->count, name, class, tier,
                        (double)times->sum_us / US_PER_S, name, class, tier, times->count);
}

static void put_watches(const struct admin_figures *figures, struct evbuffer *out)
{
    family(out, "rollcall_command_duration_seconds", "histogram",
           "Time of requests from the wake-up that found them to their answer, by what they waited "
           "for.");
    for (int class = 0; class < WATCH_CLASSES; class ++) {
        for (int tier = 0; tier < WATCH_TIERS; tier++) {
            put_times(&figures->of_class[class][tier], watch_class_names[class],
                      watch_tier_names[tier], out);
        }
    }
}

/* A name is letters, digits and `_-.`. A follower that has not told its name is left out. */
static void metrics_put_followers(const struct repl_feeds_stats *feeds, struct evbuffer *out)
{
    family(out, "rollcall_replication_follower_lag_bytes", "gauge",
           "Journal that is written here and not at the follower.");
    for (size_t i = 0; i < feeds->count; i++) {
        if (feeds->feeds[i].name[0] != '\0') {
            evbuffer_add_printf(
                out, "rollcall_replication_follower_lag_bytes{follower=\"%s\"} %" PRIu64 "\n",
                feeds->feeds[i].name, feeds->feeds[i].lag_bytes);
        }
    }
    family(out, "rollcall_replication_follower_lag_seconds", "gauge", "How old that is.");
    for (size_t i = 0; i < feeds->count; i++) {
        if (feeds->feeds[i].name[0] != '\0') {
            evbuffer_add_printf(out,
                                "rollcall_replication_follower_lag_seconds{follower=\"%s\"} %.6f\n",
                                feeds->feeds[i].name, (double)feeds->feeds[i].lag_us / US_PER_S);
        }
    }
}

void admin_make_metrics(const struct admin_view *view, struct evbuffer *out)
{
    put_build(out);
    put_rows(view->figures, out);
    if (view->figures->serving) {
        put_watches(view->figures, out);
    }
    if (view->figures->serving && view->figures->repl.has_feeds) {
        metrics_put_followers(&view->figures->repl.feeds, out);
    }
}
