#include "tools/rollcall/online_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/readable.h"
#include "tools/rollcall/online_view.h"

#define NAME_COLUMNS  12 /* of a space; longer ones take what they need */
#define TABLE_COLUMNS 8  /* likewise, before its tables */
#define ID_COLUMNS    17

char *online_text_daemon(char *line, const json_t *view)
{
    char up[READABLE_MAX], resident[READABLE_MAX], limit[READABLE_MAX];

    snprintf(
        line, ONLINE_LINE_MAX, "%.60s, up %s, %" PRIu64 " of %" PRIu64 " connections, %s of %s",
        online_text(view, "address"), readable_span(up, (double)online_number(view, "uptime_s")),
        online_number(json_object_get(view, "connections"), "curr_connections"),
        online_number(view, "max_connections"),
        readable_bytes(resident, (double)online_number(view, "resident_bytes")),
        readable_bytes(limit, (double)online_number(view, "memory_limit_bytes")));
    return line;
}

/* By its agent's word, if it has an agent, and for whom its answers wait. */
static void text_leader(char *line, const json_t *replication, const char *followers)
{
    const char *waits_for = online_text(replication, "waits_for");
    const json_t *lease = json_object_get(replication, "lease_us");
    char left[READABLE_MAX];
    size_t used = (size_t)snprintf(line, ONLINE_LINE_MAX, "leads, epoch %" PRIu64 "; %s",
                                   online_number(replication, "epoch"), followers);

    if (json_is_integer(lease) && json_integer_value(lease) == 0) {
        used += (size_t)snprintf(line + used, ONLINE_LINE_MAX - used, "; fenced: no changes");
    } else if (json_is_integer(lease)) {
        used += (size_t)snprintf(line + used, ONLINE_LINE_MAX - used, "; its agent's word: %s",
                                 readable_time(left, (double)json_integer_value(lease) / 1e6));
    }
    if (*waits_for != '\0' && strcmp(waits_for, "none") != 0) {
        snprintf(line + used, ONLINE_LINE_MAX - used, "; waits for %.140s%s", waits_for,
                 json_is_true(json_object_get(replication, "in_sync")) ? "" : ", not in sync");
    }
}

char *online_text_nodes(char *line, const json_t *view)
{
    const json_t *replication = json_object_get(view, "replication");
    const char *role = online_text(replication, "role");
    char bytes[READABLE_MAX], followers[READABLE_MAX];

    readable_many(followers, online_number(replication, "followers"), "follower");
    line[0] = '\0';
    if (strcmp(role, "follower") == 0) {
        snprintf(line, ONLINE_LINE_MAX, "follows %.60s: %.20s, %s behind; %s",
                 online_text(replication, "leader"), online_text(replication, "state"),
                 readable_bytes(bytes, (double)online_number(replication, "lag_bytes")), followers);
    } else if (strcmp(role, "leader") == 0) {
        text_leader(line, replication, followers);
    }
    return line;
}

double online_fill(const json_t *space)
{
    const json_t *newest = online_newest(space);
    uint64_t capacity = online_number(newest, "capacity");

    if (capacity == 0) {
        return -1;
    }
    return (double)(online_number(newest, "records") + online_number(newest, "members")) /
           (double)capacity;
}

char *online_text_bytes(char text[READABLE_MAX], uint64_t bytes)
{
    char *blank;

    readable_bytes(text, (double)bytes);
    blank = strchr(text, ' ');
    if (blank != NULL) {
        blank[0] = bytes < 1024 ? '\0' : blank[1];
        blank[1] = '\0';
    }
    return text;
}

static char *text_short_count(char text[READABLE_MAX], double count)
{
    char *blank;

    readable_count(text, count);
    blank = strchr(text, ' ');
    if (blank != NULL) {
        memmove(blank, blank + 1, strlen(blank));
    }
    return text;
}

char *online_text_full(char text[READABLE_MAX], const json_t *space)
{
    double full_in_s = online_real(space, "full_in_s");

    if (full_in_s < 0) {
        snprintf(text, READABLE_MAX, "-");
    } else if (full_in_s == 0) {
        snprintf(text, READABLE_MAX, "FULL");
    } else {
        readable_span(text, full_in_s);
    }
    return text;
}

char *online_text_heading(char *line)
{
    snprintf(line, ONLINE_LINE_MAX, "%-*s %-7s %7s %5s %6s %7s %7s %7s %s", NAME_COLUMNS, "SPACE",
             "KIND", "HELD", "OPEN%", "TABLES", "ON DISK", "MEMORY", "NEW/S", "FULL IN");
    return line;
}

char *online_text_space(char *line, const json_t *space)
{
    char held[READABLE_MAX], memory[READABLE_MAX], added[READABLE_MAX] = "-", full[READABLE_MAX];
    char fill[READABLE_MAX] = "-";
    double added_each_s = online_real(space, "added_each_s");

    if (online_fill(space) >= 0) {
        snprintf(fill, sizeof(fill), "%.0f", 100 * online_fill(space));
    }
    if (added_each_s >= 0) {
        text_short_count(added, added_each_s);
    }
    snprintf(line, ONLINE_LINE_MAX, "%-*s %-7s %7s %5s %6" PRIu64 " %7" PRIu64 " %7s %7s %s",
             NAME_COLUMNS, online_text(space, "name"), online_text(space, "kind"),
             text_short_count(held, (double)online_number(space, "held")), fill,
             online_number(space, "tables") - online_number(space, "cold_tables"),
             online_number(space, "dumped_tables"),
             online_text_bytes(memory, online_number(space, "held_bytes")), added,
             online_text_full(full, space));
    return line;
}

char *online_text_table_heading(char *line)
{
    snprintf(line, ONLINE_LINE_MAX, "%-*s %5s %-7s %*s %*s %7s %5s %s", TABLE_COLUMNS, "SPACE",
             "TABLE", "STATE", ID_COLUMNS, "FIRST ID", ID_COLUMNS, "LAST ID", "HELD", "FILL%",
             "WRONG");
    return line;
}

char *online_text_table(char *line, const json_t *space, const json_t *table)
{
    char held[READABLE_MAX], wrong[READABLE_MAX] = "", fill[READABLE_MAX] = "-";
    uint64_t count = online_number(table, "records") + online_number(table, "members");
    uint64_t capacity = online_number(table, "capacity");
    double rate = online_real(table, "false_positives");

    if (capacity > 0) {
        snprintf(fill, sizeof(fill), "%.0f", 100 * (double)count / (double)capacity);
    }
    if (rate >= 0) {
        readable_share(wrong, rate);
    }
    snprintf(line, ONLINE_LINE_MAX, "%-*s %5" PRIu64 " %-7s %*" PRIu64 " %*" PRIu64 " %7s %5s %s",
             TABLE_COLUMNS, online_text(space, "name"), online_number(table, "serial"),
             online_text(table, "state"), ID_COLUMNS, online_number(table, "first_id"), ID_COLUMNS,
             online_number(table, "last_id"), text_short_count(held, (double)count), fill, wrong);
    return line;
}
