/* log.c: one line, one write. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/clock.h"

#define LOG_LINE_BYTES 1024 /* a longer line is cut */

/* The one writable state of the libraries: set at start, read by every thread. */
static struct {
    _Atomic(const char *) program;
    _Atomic(enum log_level) highest;
    atomic_bool to_syslog;
} state = {.program = "rollcalld", .highest = LOG_LEVEL_INFO};

static const struct {
    const char *mark;
    int priority;
} levels[] = {
    [LOG_LEVEL_ERROR] = {"", LOG_ERR},
    [LOG_LEVEL_WARNING] = {"warning: ", LOG_WARNING},
    [LOG_LEVEL_INFO] = {"", LOG_INFO},
    [LOG_LEVEL_DEBUG] = {"debug: ", LOG_DEBUG},
};

void log_setup(const char *program, enum log_level highest)
{
    atomic_store(&state.program, program);
    atomic_store(&state.highest, highest);
}

enum log_level log_level(void)
{
    return atomic_load_explicit(&state.highest, memory_order_relaxed);
}

void log_to_syslog(void)
{
    openlog(atomic_load(&state.program), LOG_PID, LOG_DAEMON);
    atomic_store(&state.to_syslog, true);
}

bool log_is_due(_Atomic uint64_t *last_us)
{
    uint64_t now_us = clock_monotonic_us();
    uint64_t before_us = atomic_load(last_us);
    return (before_us == 0 || now_us - before_us >= LOG_AGAIN_US) &&
           atomic_compare_exchange_strong(last_us, &before_us, now_us);
}

/* The window of a log_limit: the second above the lines. */
#define WINDOW_LINES_BITS 8
_Static_assert(LOG_LINES_PER_S < 1u << WINDOW_LINES_BITS, "a window counts its lines");

static uint64_t this_second(void)
{
    return clock_monotonic_us() / 1000000u;
}

bool log_limit_pass(struct log_limit *limit)
{
    uint64_t second = this_second();
    uint64_t before = atomic_load(&limit->window);
    uint64_t lines;
    do {
        bool same = before >> WINDOW_LINES_BITS == second;
        lines = same ? before & ((1u << WINDOW_LINES_BITS) - 1) : 0;
        if (lines == LOG_LINES_PER_S) {
            atomic_fetch_add(&limit->missed, 1);
            return false;
        }
    } while (!atomic_compare_exchange_weak(&limit->window, &before,
                                           second << WINDOW_LINES_BITS | (lines + 1)));
    return true;
}

uint64_t log_limit_missed(struct log_limit *limit)
{
    if (atomic_load(&limit->missed) == 0 ||
        atomic_load(&limit->window) >> WINDOW_LINES_BITS == this_second()) {
        return 0;
    }
    return atomic_exchange(&limit->missed, 0);
}

/* Bytes a snprintf into `room` bytes really wrote. */
static size_t written(int length, size_t room)
{
    if (length < 0) {
        return 0;
    }
    return (size_t)length < room ? (size_t)length : room - 1;
}

__attribute__((format(printf, 2, 0))) static void log_line(enum log_level level, const char *format,
                                                           va_list arguments)
{
    if (level > log_level()) {
        return;
    }
    char line[LOG_LINE_BYTES];
    size_t room = sizeof(line) - 1; /* and the newline */
    size_t start = written(snprintf(line, room, "%s: ", atomic_load(&state.program)), room);
    size_t length = start;
    length +=
        written(snprintf(line + length, room - length, "%s", levels[level].mark), room - length);
    length += written(vsnprintf(line + length, room - length, format, arguments), room - length);
    for (size_t i = start; i < length; i++) {
        unsigned char byte = (unsigned char)line[i];
        if (byte < ' ' || byte == 0x7f) {
            line[i] = '?'; /* a key or a path cannot forge a line */
        }
    }
    if (atomic_load(&state.to_syslog)) {
        line[length] = '\0';
        syslog(levels[level].priority, "%s", line + start);
        return;
    }
    line[length++] = '\n';
    ssize_t sent = write(STDERR_FILENO, line, length);
    (void)sent; /* nobody left to tell */
}

void log_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line(LOG_LEVEL_ERROR, format, arguments);
    va_end(arguments);
}

void log_warning(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line(LOG_LEVEL_WARNING, format, arguments);
    va_end(arguments);
}

void log_info(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line(LOG_LEVEL_INFO, format, arguments);
    va_end(arguments);
}

void log_debug(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line(LOG_LEVEL_DEBUG, format, arguments);
    va_end(arguments);
}
