/* log.c: what a line is; how many a place may write. log_queue.c writes them. */
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
#include "base/log_queue.h"

#define LOG_LEFT_OUT_BYTES 32

#define LOG_SITES      512 /* places that are told apart, a power of two; the rest share one */
#define LOG_SITE_STEPS 16  /* places looked at to find one */

enum log_stamping { STAMP_NOTHING, STAMP_TIME, STAMP_PRIORITY };

/* A place that logs: its format, which is in the program for good. */
struct log_site {
    _Atomic(const char *) format; /* NULL: free */
    _Atomic uint64_t full_us;     /* when all of LOG_BURST may be written at once again */
    _Atomic uint64_t left_out;    /* lines not written, and not yet told of */
    _Atomic(enum log_level) level;
};

/* The only writable state of the libraries: the places, counted by any thread, and what is set at
 * the start. */
static struct log_site sites[LOG_SITES + 1];
_Atomic(enum log_level) log_highest = LOG_LEVEL_INFO;
static struct {
    _Atomic(const char *) program;
    atomic_bool to_syslog;
    _Atomic(enum log_stamping) stamping;
} state = {.program = "rollcalld"};

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
    atomic_store(&log_highest, highest);
}

void log_to_syslog(void)
{
    openlog(atomic_load(&state.program), LOG_PID, LOG_DAEMON);
    atomic_store(&state.to_syslog, true);
    log_queue_wait();
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

/* ---- how many lines a place may write ---- */

static struct log_site *find_site(const char *format)
{
    size_t at = ((uintptr_t)format * 0x9e3779b97f4a7c15u) >> 40;

    for (size_t i = 0; i < LOG_SITE_STEPS; i++) {
        struct log_site *site = &sites[(at + i) % LOG_SITES];
        const char *known = NULL;
        if (atomic_compare_exchange_strong(&site->format, &known, format) || known == format) {
            return site;
        }
    }
    return &sites[LOG_SITES];
}

/* Returns whether one more line may be written now. */
static bool site_passes(struct log_site *site)
{
    uint64_t now_us = clock_monotonic_us();
    uint64_t full_us = atomic_load(&site->full_us);
    uint64_t from_us;
    do {
        from_us = full_us > now_us ? full_us : now_us;
        if (from_us - now_us > (LOG_BURST - 1) * LOG_INTERVAL_US) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&site->full_us, &full_us, from_us + LOG_INTERVAL_US));
    return true;
}

const char *log_quoted(const char *text, size_t length, char quoted[LOG_QUOTED_MAX])
{
    size_t at = 0;
    quoted[at++] = '"';
    for (size_t i = 0; i < length && at + sizeof("\\x\"") <= LOG_QUOTED_MAX; i++) {
        if (text[i] == '"' || text[i] == '\\') {
            quoted[at++] = '\\';
        }
        quoted[at++] = text[i] != '\0' ? text[i] : '?';
    }
    quoted[at++] = '"';
    quoted[at] = '\0';
    return quoted;
}

/* ---- a line ---- */

/* Returns the bytes that a snprintf into `room` bytes really wrote. */
static size_t written(int length, size_t room)
{
    if (length < 0) {
        return 0;
    }
    return (size_t)length < room ? (size_t)length : room - 1;
}

/* Writes what stands before the program's name. */
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

/* Returns the level as a word, where neither the reader nor the line's destination knows it. */
static size_t put_mark(enum log_level level, char *line, size_t room)
{
    bool told = atomic_load(&state.to_syslog) || atomic_load(&state.stamping) == STAMP_PRIORITY;
    if (told || (atomic_load(&state.stamping) == STAMP_NOTHING && !levels[level].marked)) {
        return 0;
    }
    return written(snprintf(line, room, "%s: ", levels[level].name), room);
}

/* Puts the line into `entry`. */
__attribute__((format(printf, 4, 0))) static void compose(struct log_entry *entry,
                                                          enum log_level level, uint64_t left_out,
                                                          const char *format, va_list arguments)
{
    char *line = entry->text, more[LOG_LEFT_OUT_BYTES] = "";
    if (left_out > 0) {
        snprintf(more, sizeof(more), " left_out=%llu", (unsigned long long)left_out);
    }
    size_t room = sizeof(entry->text) - 1 - strlen(more); /* and the newline */
    size_t start = stamp(level, line, room);
    start += written(snprintf(line + start, room - start, "%s: ", atomic_load(&state.program)),
                     room - start);
    size_t length = start + put_mark(level, line + start, room - start);
    length += written(vsnprintf(line + length, room - length, format, arguments), room - length);
    memcpy(line + length, more, strlen(more));
    length += strlen(more);
    for (size_t i = start; i < length; i++) {
        unsigned char byte = (unsigned char)line[i];
        if (byte < ' ' || byte == 0x7f) {
            line[i] = '?'; /* a key or a path cannot forge a line */
        }
    }
    line[length++] = '\n';
    entry->priority = levels[level].priority;
    entry->to_syslog = atomic_load(&state.to_syslog);
    entry->start = (uint16_t)start;
    entry->length = (uint16_t)length;
}

__attribute__((format(printf, 3, 0))) static void log_line(enum log_level level, uint64_t left_out,
                                                           const char *format, va_list arguments)
{
    struct log_entry entry;
    compose(&entry, level, left_out, format, arguments);
    log_queue_put(&entry);
}

__attribute__((format(printf, 3, 4))) static void
compose_text(struct log_entry *entry, enum log_level level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    compose(entry, level, 0, format, arguments);
    va_end(arguments);
}

static void compose_lost(struct log_entry *entry, uint64_t lost)
{
    compose_text(entry, LOG_LEVEL_WARNING,
                 "lines of the log were lost: what it is written to does not take them lost=%llu",
                 (unsigned long long)lost);
}

bool log_start(void)
{
    return log_queue_start(compose_lost);
}

void log_end(void)
{
    log_queue_end();
}

uint64_t log_lost(void)
{
    return log_queue_lost();
}

__attribute__((format(printf, 2, 0))) static void log_limited(enum log_level level,
                                                              const char *format, va_list arguments)
{
    if (level > log_level()) {
        return;
    }
    struct log_site *site = find_site(format);
    atomic_store_explicit(&site->level, level, memory_order_relaxed);
    if (site_passes(site)) {
        log_line(level, atomic_exchange(&site->left_out, 0), format, arguments);
    } else {
        atomic_fetch_add(&site->left_out, 1);
    }
}

/* Returns the bytes of a format up to the first value in it, without the blank and the key before
 * that value. */
static size_t sentence(const char *format)
{
    size_t length = strcspn(format, "%");
    while (length > 0 && format[length] != ' ' && format[length] != '\0') {
        length--;
    }
    return length;
}

void log_tick(void)
{
    for (size_t i = 0; i <= LOG_SITES; i++) {
        struct log_site *site = &sites[i];
        if (atomic_load_explicit(&site->left_out, memory_order_relaxed) == 0 ||
            !site_passes(site)) {
            continue;
        }
        uint64_t left_out = atomic_exchange(&site->left_out, 0);
        const char *format = atomic_load(&site->format);
        if (left_out > 0) {
            log_at(atomic_load(&site->level),
                   "lines like this were left out: \"%.*s\" left_out=%llu",
                   format != NULL ? (int)sentence(format) : 0, format != NULL ? format : "",
                   (unsigned long long)left_out);
        }
    }
}

void log_at(enum log_level level, const char *format, ...)
{
    va_list arguments;
    if (level > log_level()) {
        return;
    }
    va_start(arguments, format);
    log_line(level, 0, format, arguments);
    va_end(arguments);
}

void log_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_limited(LOG_LEVEL_ERROR, format, arguments);
    va_end(arguments);
}

void log_warning(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_limited(LOG_LEVEL_WARNING, format, arguments);
    va_end(arguments);
}

void log_info(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_limited(LOG_LEVEL_INFO, format, arguments);
    va_end(arguments);
}

void log_debug(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_limited(LOG_LEVEL_DEBUG, format, arguments);
    va_end(arguments);
}
