/*
 * admin_history.h: samples of the counted figures of the last ten minutes and the last day, from
 * which rates and forecasts come.
 *
 * Counting figures are kept as they are; a rate is the difference of two samples by their time. A
 * space is known by its name, so a reload that changes their order changes nothing here.
 *
 * Memory: about 1.1 MiB at most. Thread rule: the admin's thread.
 */
#ifndef ROLLCALL_ADMIN_ADMIN_HISTORY_H
#define ROLLCALL_ADMIN_ADMIN_HISTORY_H

#include "admin/admin_figures.h"

#define ADMIN_SECONDS      600 /* samples a second apart … */
#define ADMIN_MINUTES      (24 * 60)
#define ADMIN_SPACE_STEPS  144 /* … and ten minutes apart: the day of a space */
#define ADMIN_STEP_MINUTES 10
#define ADMIN_TIMES_S      10
#define ADMIN_TIMES        6  /* this many are a minute */
#define ADMIN_RATE_S_MIN   60 /* what is shorter says nothing of a day */
#define ADMIN_JUMP_S       2  /* the wall clock was set by as much, or more */

struct admin_sample {
    uint64_t at_us; /* 0: there is none */
    uint64_t counted[ADMIN_LINES];
};

struct admin_history;

struct admin_history *admin_history_create(void); /* never NULL */
void admin_history_destroy(struct admin_history *history);

/* Called once a second with now_us, the wall clock, and what was counted until now. */
void admin_history_second(struct admin_history *history, const struct admin_sample *sample,
                          uint64_t wall_s);
/* Returns whether it is time for the next minute. */
bool admin_history_minute_due(const struct admin_history *history, uint64_t now_us);
/* With figures just read, tables not needed. */
void admin_history_minute(struct admin_history *history, const struct admin_figures *figures);

/*
 * Writes rates of a line for `points` equal parts of the ten minutes, or of the day, oldest first;
 * negative: nobody looked then. Returns the newest one, 0 if there is none.
 */
double admin_history_rates(const struct admin_history *history, bool day, enum admin_line line,
                           double *rates, size_t points);
/* Every ADMIN_TIMES_S: the times of requests until now. */
bool admin_history_times_due(const struct admin_history *history, uint64_t now_us);
void admin_history_times(struct admin_history *history, uint64_t now_us,
                         const struct watch_times times[WATCH_TIERS]);
/* The times of a tier in the last minute, or since the start. */
void admin_history_lately(const struct admin_history *history, enum watch_tier tier,
                          const struct admin_figures *figures, struct watch_times *lately);

/* Sets in `figures` all that comes from the past: trends, events, rates, latency of the last
 * minute. */
void admin_history_tell(const struct admin_history *history, struct admin_figures *figures);

/* Tells by how much each figure has grown in the last ten minutes. */
void admin_history_events(const struct admin_history *history, const struct admin_figures *figures,
                          struct admin_events *grown);
void admin_history_trend(const struct admin_history *history, const struct admin_figures *figures,
                         const struct admin_space *space, struct admin_trend *trend);

/* Tells the last jump of the wall clock: by how many seconds, and how long ago. False: there was
 * none in the last day. */
bool admin_history_jump(const struct admin_history *history, uint64_t now_us, int64_t *by_s,
                        uint64_t *ago_s);

#endif
