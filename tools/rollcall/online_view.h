/*
 * online_view.h: what a daemon tells of itself, in the schema of /status.json
 * (src/admin/README.md).
 *
 * Over HTTP it is that very answer. Over the memcached protocol it is put together from stats,
 * stats spaces, tables, hot, latency, settings and replication, which have the same figures by the
 * same names; what only the status page knows (attention, rates, latency of the last minute) is not
 * there then, and added_each_s is of the time since the newest table was opened.
 *
 * A view is a jansson object, the caller's to json_decref(). One thread.
 */
#ifndef ROLLCALL_TOOLS_ONLINE_VIEW_H
#define ROLLCALL_TOOLS_ONLINE_VIEW_H

#include <jansson.h>
#include <stdint.h>

#include "config/forecast.h"
#include "tools/rollcall/online_link.h"

enum online_depth {
    ONLINE_NEWEST, /* of each space the newest table alone */
    ONLINE_TABLES, /* all of them */
};

#define ONLINE_RATE_S_MIN 10 /* a table that is younger says nothing of a rate */

/* NULL: told, or with `quiet` kept in error; *status says why. */
json_t *online_view(const struct online_target *target, enum online_depth depth, bool quiet,
                    enum exit_status *status, char error[ONLINE_ERROR_MAX]);

/* Returns the figures of one `stats` command by their names, numbers as numbers. NULL: an error was
 * printed. */
json_t *online_stats(struct online_link *link, const char *command);

/* ---- reading one ---- */

uint64_t online_number(const json_t *object, const char *name);  /* 0: there is none */
double online_real(const json_t *object, const char *name);      /* negative: none, or null */
const char *online_text(const json_t *object, const char *name); /* "": none */
json_t *online_find_space(const json_t *view, const char *name); /* NULL: none */
/* The newest table of a space; NULL: none. */
json_t *online_newest(const json_t *space);

/* The room of a space by its newest table (NULL: none). One of counters of any ids has that of all
 * its parts, and of what they may grow by. */
struct forecast_room online_room(const json_t *space, const json_t *newest);

#endif
