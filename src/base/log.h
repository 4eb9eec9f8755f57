/*
 * log.h: lines for changes of state, on stderr (or syslog when daemonised: see log_to_syslog).
 *
 * A line is "rollcalld: text" or "rollcalld: warning: text", as any Unix tool's; a daemon's has a
 * time and a level, too (log_stamp). Nothing on the request path logs below LOG_LEVEL_COMMANDS,
 * which somebody asked for: it bumps a metric.
 * Any thread; a line is written whole, cut at 1023 bytes; control bytes in it become '?'.
 */
#ifndef ROLLCALL_BASE_LOG_H
#define ROLLCALL_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_COMMANDS, /* what clients say and are told */
    LOG_LEVEL_STATES,   /* and what becomes of a connection */
};

/* Program: lives as long as the process. Any time; before it: "rollcalld" and LOG_LEVEL_INFO. */
void log_setup(const char *program, enum log_level highest);
enum log_level log_level(void);
void log_to_syslog(void); /* from now on to syslog(3), facility daemon */
/*
 * From now on each line on stderr begins with the time (UTC) and its level; where stderr is the
 * journal of systemd, which notes the time, with the number of the level as it reads it.
 */
void log_stamp(void);

#define LOG_AGAIN_US (10u * 1000000u)

/*
 * For lines of what may go wrong many times a second: has no line of its kind come in the last
 * LOG_AGAIN_US? *last_us: of the kind's last one (clock_monotonic_us), 0 at first; true takes it.
 */
bool log_is_due(_Atomic uint64_t *last_us);

#define LOG_LINES_PER_S 5

/*
 * For lines that a client can cause, each of which tells something: at most LOG_LINES_PER_S a
 * second are let through, the others are counted. All zero at first. Any thread.
 */
struct log_limit {
    _Atomic uint64_t window; /* the second (clock_monotonic_us) and the lines let through in it */
    _Atomic uint64_t missed; /* lines not let through, and not yet told of */
};

/* May one more line be written now? */
bool log_limit_pass(struct log_limit *limit);
/*
 * How many lines were not let through since the last call that said so: to be told in a line of
 * its own, by whoever comes by once a second. 0 while the second still runs that they belong to.
 */
uint64_t log_limit_missed(struct log_limit *limit);

__attribute__((format(printf, 2, 3))) void log_at(enum log_level level, const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_error(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_warning(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_info(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_debug(const char *format, ...);

#endif
