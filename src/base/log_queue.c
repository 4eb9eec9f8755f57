/* log_queue.c: a ring of lines under a mutex, and a thread that writes them. */
#include "base/log_queue.h"

#include <pthread.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

#define HEAD_BYTES offsetof(struct log_entry, text)

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work; /* the thread waits for it */
    pthread_cond_t done; /* lines were written, or the thread ended */
    pthread_t thread;
    log_lost_fn *tell_lost;
    bool running;
    bool ending;
    uint64_t put, written; /* entries, since the process began */
    uint64_t lost;
    uint64_t untold;   /* lost for a full ring; until a line says so nothing is put */
    uint64_t refused;  /* writes that failed, since the last one that did not */
    size_t from, used; /* of the ring */
    char ring[LOG_QUEUE_BYTES];
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns whether stderr took the line; of syslog nobody knows. */
static bool entry_write(const struct log_entry *entry)
{
    if (entry->to_syslog) {
        syslog(entry->priority, "%.*s", entry->length - entry->start - 1,
               entry->text + entry->start);
        return true;
    }
    return write(STDERR_FILENO, entry->text, entry->length) == (ssize_t)entry->length;
}

/* ---- the ring; all of it under the lock ---- */

/* Returns how many of `bytes` bytes lie before the ring's end, from a place in it. */
static size_t ring_first(size_t at, size_t bytes)
{
    return bytes < LOG_QUEUE_BYTES - at ? bytes : LOG_QUEUE_BYTES - at;
}

static void ring_append_entry(const struct log_entry *entry)
{
    size_t bytes = HEAD_BYTES + entry->length;
    size_t at = (queue.from + queue.used) % LOG_QUEUE_BYTES;
    size_t first = ring_first(at, bytes);

    memcpy(queue.ring + at, entry, first);
    memcpy(queue.ring, (const char *)entry + first, bytes - first);
    queue.used += bytes;
    queue.put++;
    pthread_cond_signal(&queue.work);
}

static void ring_move(void *to, size_t bytes)
{
    size_t first = ring_first(queue.from, bytes);

    memcpy(to, queue.ring + queue.from, first);
    memcpy((char *)to + first, queue.ring, bytes - first);
    queue.from = (queue.from + bytes) % LOG_QUEUE_BYTES;
    queue.used -= bytes;
}

static void ring_take_entry(struct log_entry *entry)
{
    ring_move(entry, HEAD_BYTES);
    ring_move(entry->text, entry->length);
}

void log_queue_put(const struct log_entry *entry)
{
    pthread_mutex_lock(&queue.lock);
    bool queued = queue.running;

    if (queued && queue.untold == 0 && HEAD_BYTES + entry->length <= LOG_QUEUE_BYTES - queue.used) {
        ring_append_entry(entry);
    } else if (queued) {
        queue.untold++;
        queue.lost++;
    }
    pthread_mutex_unlock(&queue.lock);
    if (!queued) {
        (void)entry_write(entry); /* nobody left to tell */
    }
}

uint64_t log_queue_lost(void)
{
    pthread_mutex_lock(&queue.lock);
    uint64_t lost = queue.lost;

    pthread_mutex_unlock(&queue.lock);
    return lost;
}

/* ---- the thread ---- */

/* Takes one line out of the ring and writes it, without the lock. */
static void write_next(void)
{
    struct log_entry entry;

    ring_take_entry(&entry);
    pthread_mutex_unlock(&queue.lock);
    bool taken = entry_write(&entry);

    pthread_mutex_lock(&queue.lock);
    queue.written++;
    if (taken) {
        queue.untold += queue.refused;
        queue.refused = 0;
    } else {
        queue.refused++;
        queue.lost++;
    }
}

static void tell_lost(void)
{
    struct log_entry entry;

    if (queue.untold > 0 && queue.used <= LOG_QUEUE_BYTES / 2) {
        queue.tell_lost(&entry, queue.untold);
        queue.untold = 0;
        ring_append_entry(&entry);
    }
}

static void *log_queue_run(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&queue.lock);
    while (queue.used > 0 || !queue.ending) {
        if (queue.used == 0) {
            pthread_cond_wait(&queue.work, &queue.lock);
            continue;
        }
        write_next();
        tell_lost();
        pthread_cond_broadcast(&queue.done);
    }
    queue.running = false;
    pthread_cond_broadcast(&queue.done);
    pthread_mutex_unlock(&queue.lock);
    return NULL;
}

bool log_queue_start(log_lost_fn *tell_lost_line)
{
    pthread_mutex_lock(&queue.lock);
    if (!queue.running) {
        thread_cond_init(&queue.work);
        thread_cond_init(&queue.done);
        queue.tell_lost = tell_lost_line;
        queue.ending = false;
        queue.running = thread_start(&queue.thread, log_queue_run, NULL, "log");
    }
    bool running = queue.running;

    pthread_mutex_unlock(&queue.lock);
    return running;
}

/* Waits until so many lines are written, or all and the thread has ended. False: not in time. Under
 * the lock. */
static bool await_written(uint64_t count)
{
    struct timespec until;
    int failed = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LOG_WAIT_S;
    while (queue.running && queue.written < count && failed == 0) {
        failed = pthread_cond_timedwait(&queue.done, &queue.lock, &until);
    }
    return !queue.running || queue.written >= count;
}

void log_queue_wait(void)
{
    pthread_mutex_lock(&queue.lock);
    (void)await_written(queue.put);
    pthread_mutex_unlock(&queue.lock);
}

void log_queue_end(void)
{
    pthread_mutex_lock(&queue.lock);
    bool running = queue.running;

    queue.ending = true;
    if (running) {
        pthread_cond_signal(&queue.work);
    }
    bool ended = await_written(UINT64_MAX);

    pthread_mutex_unlock(&queue.lock);
    if (running && ended) {
        pthread_join(queue.thread, NULL);
    } else if (running) {
        pthread_detach(queue.thread);
    }
}
