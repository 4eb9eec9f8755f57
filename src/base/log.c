/* log.c: one line, one write. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LOG_LINE_BYTES 1024 /* a longer line is cut */

enum log_stamping { STAMP_NOTHING, STAMP_TIME, STAMP_PRIORITY };

/* The one writable state of the libraries: set at start, read by every thread. */
static struct {
    _Atomic(const char *) program;
    _Atomic(enum log_level) highest;
    atomic_bool to_syslog;
    _Atomic(enum log_stamping) stamping;
} state = {.program = "rollcalld", .highest = LOG_LEVEL_INFO};

static const struct {
    const char *name;
    bool marked; /* in every line, also of a tool's */
    int priority;
} levels[] = {
    [LOG_LEVEL_ERROR] = {"error", false, LOG_ERR},
    [LOG_LEVEL_WARNING] = {"warning", true, LOG_WARNING},
    [LOG_LEVEL_INFO] = {"info", false, LOG_INFO},
    [LOG_LEVEL_DEBUG] = {"debug", true, LOG_DEBUG},
    [LOG_LEVEL_COMMANDS] = {"debug", true, LOG_DEBUG},
    [LOG_LEVEL_STATES] = {"debug", true, LOG_DEBUG},
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

/* $JOURNAL_STREAM says which file the journal is: "device:inode". */
static bool log_is_journal(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char own[64];
    struct stat stat;
    if (stream == NULL || fstat(fd, &stat) != 0) {
        return false;
    }
    snprintf(own, sizeof(own), "%llu:%llu", (unsigned long long)stat.st_dev,
             (unsigned long long)stat.st_ino);
    return strcmp(own, stream) == 0;
}

void log_stamp(void)
{
    atomic_store(&state.stamping, log_is_journal(STDERR_FILENO) ? STAMP_PRIORITY : STAMP_TIME);
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

/* What stands in front of the program's name. */
static size_t stamp(enum log_level level, char *line, size_t room)
{
    enum log_stamping stamping = atomic_load(&state.stamping);
    struct timespec now;
    struct tm utc;
    if (atomic_load(&state.to_syslog) || stamping == STAMP_NOTHING) {
        return 0;
    }
    if (stamping == STAMP_PRIORITY) {
        return written(snprintf(line, room, "<%d>", levels[level].priority), room);
    }
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t length = strftime(line, room, "%Y-%m-%dT%H:%M:%S", &utc);
    return length +
           written(snprintf(line + length, room - length, ".%03ldZ ", now.tv_nsec / 1000000),
                   room - length);
}

/* The level in a word, where neither the reader nor the place the line goes to knows it. */
static size_t put_mark(enum log_level level, char *line, size_t room)
{
    bool told = atomic_load(&state.to_syslog) || atomic_load(&state.stamping) == STAMP_PRIORITY;
    if (told || (atomic_load(&state.stamping) == STAMP_NOTHING && !levels[level].marked)) {
        return 0;
    }
    return written(snprintf(line, room, "%s: ", levels[level].name), room);
}

__attribute__((format(printf, 2, 0))) static void log_line(enum log_level level, const char *format,
                                                           va_list arguments)
{
    if (level > log_level()) {
        return;
    }
    char line[LOG_LINE_BYTES];
    size_t room = sizeof(line) - 1; /* and the newline */
    size_t start = stamp(level, line, room);
    start += written(snprintf(line + start, room - start, "%s: ", atomic_load(&state.program)),
                     room - start);
    size_t length = start + put_mark(level, line + start, room - start);
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

void log_at(enum log_level level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line(level, format, arguments);
    va_end(arguments);
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
