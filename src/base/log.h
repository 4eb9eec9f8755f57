/*
 * log.h: lines for changes of state, on stderr (or syslog when daemonised: see log_to_syslog).
 *
 * A line is an event: a sentence, then what a program may want to take out of it as key=value, text
 * with blanks in it in quotes (log_quoted). It is "rollcalld: text" or "rollcalld: warning: text",
 * as any Unix tool's; a daemon's has a time and a level, too (log_stamp). Nothing on the request
 * path logs below LOG_LEVEL_COMMANDS, which somebody asked for, but for what is refused or ended.
 *
 * A place in the code, known by its format, writes at most LOG_BURST lines at once and then one
 * each LOG_INTERVAL_US. What it could not write is counted: its next line ends with left_out=N, or
 * log_tick() says so. So no client and no broken disk can fill the log, or keep a thread busy with
 * it.
 *
 * From log_start() to log_end() a thread of its own writes the lines: nobody who logs waits for it
 * (log_queue.h has what is lost then). Before and after each is written by who logs.
 *
 * Any thread; a line is written whole, cut at 1023 bytes; control bytes in it become '?'.
 */
#ifndef ROLLCALL_BASE_LOG_H
#define ROLLCALL_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_COMMANDS, /* what clients say and are told */
    LOG_LEVEL_STATES,   /* and what becomes of a connection */
};

/* `program` lives as long as the process. May be called at any time; before the first call:
 * "rollcalld" and LOG_LEVEL_INFO. */
void log_setup(const char *program, enum log_level highest);
extern _Atomic(enum log_level) log_highest; /* log_setup()'s; for log_level() alone */

static inline enum log_level log_level(void)
{
    return atomic_load_explicit(&log_highest, memory_order_relaxed);
}

/* From now on to syslog(3), facility daemon. What was logged before is on stderr when it returns;
 * see LOG_WAIT_S of log_queue.h. */
void log_to_syslog(void);

/* Starts the thread, if it does not run; the process does not fork after that. False with errno:
 * there is none. */
bool log_start(void);
void log_end(void); /* waits until all is written, for LOG_WAIT_S at most; not started: no-op */
uint64_t log_lost(void); /* lines, since the process began */

/*
 * From now on each line on stderr begins with the time (UTC) and its level; where stderr is the
 * journal of systemd, which notes the time, with the number of the level as it reads it.
 */
void log_stamp(void);

#define LOG_AGAIN_US (10u * 1000000u)

/*
 * Returns whether no line of its kind came in the last LOG_AGAIN_US: for what may go wrong many
 * times a second. *last_us: the time of the last line (clock_monotonic_us), 0 at first; it becomes
 * now if true.
 */
bool log_is_due(_Atomic uint64_t *last_us);

#define LOG_BURST       20u
#define LOG_INTERVAL_US 1000000u

/* Logs how many lines were left out by places that have been quiet since. Called once a second. */
void log_tick(void);

#define LOG_QUOTED_MAX 256

/* Writes somebody's text as a value: in double quotes, with quotes and backslashes escaped, cut if
 * it is long. Returns `quoted`. */
const char *log_quoted(const char *text, size_t length, char quoted[LOG_QUOTED_MAX]);

/* Logs without the limit of a place: for lists that are as long as the configuration, and for what
 * was asked for. */
__attribute__((format(printf, 2, 3))) void log_at(enum log_level level, const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_error(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_warning(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_info(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_debug(const char *format, ...);

#endif
