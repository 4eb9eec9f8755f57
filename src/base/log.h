/*
 * log.h: lines for changes of state, on stderr (or syslog when daemonised: see log_to_syslog).
 *
 * A line is "rollcalld: text" for errors and warnings ("rollcalld: warning: text"), so that a
 * refusal at start reads like any Unix tool's. Nothing on the request path logs: it bumps a metric.
 * Any thread; a line is written whole, cut at 1023 bytes; control bytes in it become '?'.
 */
#ifndef ROLLCALL_BASE_LOG_H
#define ROLLCALL_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Program: lives as long as the process. Any time; before it: "rollcalld" and LOG_LEVEL_INFO. */
void log_setup(const char *program, enum log_level highest);
enum log_level log_level(void);
void log_to_syslog(void); /* from now on to syslog(3), facility daemon */

#define LOG_AGAIN_US (10u * 1000000u)

/*
 * For lines of what may go wrong many times a second: has no line of its kind come in the last
 * LOG_AGAIN_US? *last_us: of the kind's last one (clock_monotonic_us), 0 at first; true takes it.
 */
bool log_is_due(_Atomic uint64_t *last_us);

__attribute__((format(printf, 1, 2))) void log_error(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_warning(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_info(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_debug(const char *format, ...);

#endif
