/*
 * admin_chart.h: pictures of the status page, as inline SVG. Words stand beside them, as HTML: a
 * picture is stretched to the width there is, and letters must not be.
 */
#ifndef ROLLCALL_ADMIN_ADMIN_CHART_H
#define ROLLCALL_ADMIN_ADMIN_CHART_H

#include "admin/admin_private.h"

/* Draws the tables of a space in the order of their ids, `cells` at most: older tables share one.
 */
void admin_chart_tables(struct evbuffer *out, const struct admin_space *space, size_t cells);
/* Wrong answers of its newest `cells` filters, and the target. */
void admin_chart_filters(struct evbuffer *out, const struct admin_space *space, size_t cells);

struct admin_series {
    const char *name, *class;
    const double *rates; /* negative: none */
};
/* Draws lines over one time, from 0 to the highest of all, which is returned. */
double admin_chart_lines(struct evbuffer *out, const struct admin_series *series, size_t count,
                         size_t points, const char *label);

/* Draws how many requests took how long, memory and disk side by side, a bar an octave. */
void admin_chart_times(struct evbuffer *out, const struct watch_times *memory,
                       const struct watch_times *disk);

struct admin_part {
    const char *name, *class;
    double value;
};
/* Draws one bar of parts; what is left of `whole` stays empty. */
void admin_chart_bar(struct evbuffer *out, const struct admin_part *parts, size_t count,
                     double whole, const char *label);

#endif
