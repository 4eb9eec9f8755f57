/*
 * online_rates.h: rates from views (online_view.h) that were taken one after another.
 *
 * A rate of reads and changes is of the time since the last view; one of new ids, and from it when
 * a space is full, since the oldest of the last ONLINE_WINDOW views. One thread.
 */
#ifndef ROLLCALL_TOOLS_ONLINE_RATES_H
#define ROLLCALL_TOOLS_ONLINE_RATES_H

#include <jansson.h>
#include <stdint.h>

#define ONLINE_WINDOW 60

struct online_rates {
    json_t *views[ONLINE_WINDOW]; /* held; a ring */
    uint64_t at_ms[ONLINE_WINDOW];
    uint64_t taken;
};

/*
 * Sets in the view reads_each_s, changes_each_s, disk_reads_each_s, hit_ratio, and in each of its
 * spaces reads_each_s, changes_each_s, and, if it lasted long enough, added_each_s and full_in_s. A
 * first view, and one of a daemon that was started anew, has none.
 */
void online_rates_add(struct online_rates *rates, json_t *view, uint64_t now_ms);
void online_rates_free(struct online_rates *rates);

#endif
