/* worker.c: a worker thread: its event loop, its connections, the queue of new ones. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/direct.h"
#include "net/peer.h"
#include "net/private.h"
#include "net/tls.h"

/* The table of connections, by serial. */

static size_t worker_bucket_of(const struct net_worker *worker, uint64_t serial)
{
    return (size_t)hash_u64(serial) & (worker->bucket_count - 1);
}

static struct net_conn *worker_find(const struct net_worker *worker, uint64_t serial)
{
    struct net_conn *conn = worker->buckets[worker_bucket_of(worker, serial)];
    while (conn != NULL && conn->serial != serial) {
        conn = conn->bucket_next;
    }
    return conn;
}

/* Doubles the buckets. Without memory the chains just get longer. */
static void worker_grow(struct net_worker *worker)
{
    struct net_conn **old = worker->buckets;
    size_t old_count = worker->bucket_count;
    struct net_conn **buckets = calloc(old_count * 2, sizeof(struct net_conn *));
    if (buckets == NULL) {
        return;
    }
    worker->buckets = buckets;
    worker->bucket_count = old_count * 2;
    worker->sweep_next = worker->bucket_count; /* a sweep that was running begins again later */
    for (size_t i = 0; i < old_count; i++) {
        for (struct net_conn *conn = old[i], *next; conn != NULL; conn = next) {
            next = conn->bucket_next;
            struct net_conn **bucket = &buckets[worker_bucket_of(worker, conn->serial)];
            conn->bucket_next = *bucket;
            *bucket = conn;
        }
    }
    free(old);
}

void net_worker_enter(struct net_worker *worker, struct net_conn *conn)
{
    if (worker->conn_count >= worker->bucket_count) {
        worker_grow(worker);
    }
    struct net_conn **bucket = &worker->buckets[worker_bucket_of(worker, conn->serial)];
    conn->bucket_next = *bucket;
    *bucket = conn;
    worker->conn_count++;
}

void net_worker_leave(struct net_worker *worker, struct net_conn *conn)
{
    struct net_conn **link = &worker->buckets[worker_bucket_of(worker, conn->serial)];
    while (*link != conn) {
        CHECK(*link != NULL);
        link = &(*link)->bucket_next;
    }
    *link = conn->bucket_next;
    worker->conn_count--;
    if (conn->queued) {
        TAILQ_REMOVE(&worker->run_list, conn, run);
        worker->run_count--;
        conn->queued = false;
    }
    if (conn->hold == NET_HOLD_GATHERED) {
        net_gather_leave(conn);
    } else if (conn->hold != NET_HOLD_NONE) {
        net_hold_leave(conn);
    }
}

void net_worker_each(struct net_worker *worker, net_conn_visit *visit, void *context)
{
    for (size_t i = 0; i < worker->bucket_count; i++) {
        for (const struct net_conn *conn = worker->buckets[i]; conn != NULL;
             conn = conn->bucket_next) {
            visit(context, conn);
        }
    }
}

/* Wake-ups, turns, the run list. */

static void end_turns(struct net_worker *worker)
{
    if (worker->in_turns) {
        worker->in_turns = false;
        worker->common->service.turns_end(worker->state);
    }
}

void net_worker_queue(struct net_worker *worker, struct net_conn *conn)
{
    CHECK(!conn->queued);
    conn->queued = true;
    TAILQ_INSERT_TAIL(&worker->run_list, conn, run);
    worker->run_count++;
}

/* Runs one turn for each connection that was queued by now; one that queues again has its turn in
 * the next wake-up. */
static void run_queued(struct net_worker *worker)
{
    for (size_t n = worker->run_count; n > 0; n--) {
        struct net_conn *conn = TAILQ_FIRST(&worker->run_list);
        TAILQ_REMOVE(&worker->run_list, conn, run);
        worker->run_count--;
        conn->queued = false;
        net_conn_run(conn);
    }
}

static void sweep_some(struct net_worker *worker)
{
    for (size_t n = 0; n < NET_SWEEP_BUCKETS && worker->sweep_next < worker->bucket_count; n++) {
        struct net_conn *conn = worker->buckets[worker->sweep_next++];
        while (conn != NULL) {
            struct net_conn *next = conn->bucket_next;
            net_conn_sweep(conn);
            conn = next;
        }
    }
}

static void worker_tick(struct net_worker *worker)
{
    if (worker->sweep_next == worker->bucket_count) {
        worker->sweep_next = 0;
    }
    if (worker->out.capacity > NET_OUT_KEEP_BYTES) {
        buf_fini(&worker->out);
    }
    if (worker->hold.bytes.length == 0 && worker->hold.bytes.capacity > NET_OUT_KEEP_BYTES) {
        buf_fini(&worker->hold.bytes);
    }
    if (worker->index == 0) {
        log_tick();
        memory_purge(); /* what a herd of clients needed goes back to the system when it is gone */
    }
    if (worker->common->service.tick != NULL) {
        worker->common->service.tick(worker->state);
    }
}

/* Returns how long the worker may sleep, by the time of the last wake-up: a tick that comes a
 * little late does no harm. */
static int sleep_ms(const struct net_worker *worker)
{
    bool busy = worker->run_count > 0 || worker->sweep_next < worker->bucket_count;
    if (busy || worker->tick_us <= worker->now_us) {
        return 0;
    }
    return (int)((worker->tick_us - worker->now_us) / 1000 + 1);
}

static void wake_up(struct net_worker *worker)
{
    net_poll_wait(&worker->poll, sleep_ms(worker));
    worker->now_us = clock_monotonic_us();
    net_poll_deliver(&worker->poll);
    if (UNLIKELY(worker->now_us >= worker->tick_us)) {
        worker->tick_us = worker->now_us + NET_SWEEP_S * 1000000u;
        worker_tick(worker);
    }
    net_hold_awake(worker);
    run_queued(worker);
    if (worker->gathered.count > 0) {
        net_gather_send(worker);
    }
    if (worker->hold.uncommitted) {
        net_hold_commit(worker);
    }
    sweep_some(worker);
    net_hold_sleep(worker);
    end_turns(worker);
}

/* Mail from other threads. */

void net_worker_signal(struct net_worker *worker)
{
    const uint64_t one = 1;
    ssize_t written = direct_write(worker->mail_fd, &one, sizeof(one));
    CHECK(written == (ssize_t)sizeof(one) || errno == EAGAIN); /* EAGAIN: signalled enough */
}

static void letters_append(struct net_letters *letters, struct net_letter letter)
{
    letters->items =
        array_room(letters->items, letters->count, &letters->room, sizeof(*letters->items));
    letters->items[letters->count++] = letter;
}

static void post(struct net_worker *worker, struct net_letter letter)
{
    pthread_mutex_lock(&worker->mail_lock);
    bool first = worker->mail.count == 0;
    letters_append(&worker->mail, letter);
    atomic_store(&worker->has_mail, true);
    pthread_mutex_unlock(&worker->mail_lock);
    if (first) {
        net_worker_signal(worker);
    }
}

void net_worker_adopt(struct net_worker *worker, int fd, uint64_t serial,
                      struct net_tls_context *tls)
{
    CHECK(fd >= 0);
    post(worker, (struct net_letter){.serial = serial, .fd = fd, .tls = tls});
}

/*
 * The letter is read on the worker's thread after the turn that may be running: by then the
 * connection is suspended, or about to run again, or gone.
 */
void net_wake(void *worker, uint64_t serial)
{
    post(worker, (struct net_letter){.serial = serial, .fd = -1});
}

static void take_mail(struct net_worker *worker)
{
    pthread_mutex_lock(&worker->mail_lock);
    struct net_letters arrived = worker->mail;
    worker->mail = worker->mail_now;
    pthread_mutex_unlock(&worker->mail_lock);
    worker->mail_now = arrived;
}

static void on_mail(void *owner)
{
    struct net_worker *worker = owner;
    uint64_t count;
    (void)direct_read(worker->mail_fd, &count,
                      sizeof(count)); /* before the mail is taken: a later letter signals anew */
    if (UNLIKELY(atomic_exchange(&worker->has_mail, false))) {
        take_mail(worker);
    } /* else something is released, or the worker is to stop */
    for (size_t i = 0; i < worker->mail_now.count; i++) {
        const struct net_letter *letter = &worker->mail_now.items[i];
        struct net_conn *conn = letter->fd < 0 ? worker_find(worker, letter->serial) : NULL;
        if (letter->fd >= 0) {
            net_conn_open(worker, letter->fd, letter->serial, letter->tls);
        } else if (conn != NULL) {
            net_conn_woken(conn);
        }
    }
    worker->mail_now.count = 0;
    net_hold_release(worker);
}

/* The thread. */

static void close_all(struct net_worker *worker)
{
    for (size_t i = 0; i < worker->bucket_count; i++) {
        while (worker->buckets[i] != NULL) {
            net_conn_close(worker->buckets[i]);
        }
    }
    CHECK(worker->conn_count == 0 && worker->run_count == 0);
    take_mail(worker);
    for (size_t i = 0; i < worker->mail_now.count; i++) {
        if (worker->mail_now.items[i].fd >= 0) { /* accepted, but never opened */
            close(worker->mail_now.items[i].fd);
            net_tls_context_release(worker->mail_now.items[i].tls);
            atomic_fetch_sub(&worker->common->connections, 1);
        }
    }
    worker->mail_now.count = 0;
}

static void *worker_main(void *argument)
{
    struct net_worker *worker = argument;
    const struct net_service *service = &worker->common->service;
    worker->state = service->worker_open(service->context, worker);
    worker->now_us = clock_monotonic_us();
    worker->tick_us = worker->now_us + NET_SWEEP_S * 1000000u;
    sem_post(&worker->opened);
    while (!atomic_load(&worker->stopping)) {
        wake_up(worker);
    }
    worker->now_us = clock_monotonic_us();
    close_all(worker);
    end_turns(worker);
    service->worker_close(worker->state);
    return NULL;
}

bool net_worker_start(struct net_worker *worker)
{
    worker->started = thread_start(&worker->thread, worker_main, worker, "worker");
    if (!worker->started) {
        return false;
    }
    while (sem_wait(&worker->opened) != 0) {
        CHECK(errno == EINTR);
    }
    return true;
}

static bool worker_watch(struct net_worker *worker)
{
    worker->mail_watcher = (struct net_watcher){.ready = on_mail, .owner = worker};
    return net_poll_init(&worker->poll) &&
           net_poll_want(&worker->poll, &worker->mail_watcher, worker->mail_fd, EPOLLIN);
}

struct net_worker *net_worker_create(struct net_common *common, unsigned index)
{
    struct net_worker *worker = calloc(1, sizeof(*worker));
    if (worker == NULL) {
        return NULL;
    }
    worker->common = common;
    worker->index = index;
    worker->budget.budget = common->budget;
    worker->bucket_count = NET_TABLE_BUCKETS;
    worker->sweep_next = NET_TABLE_BUCKETS;
    TAILQ_INIT(&worker->run_list);
    /* The buffer is not in the budget: clients that fill the budget must not stop the others'
     * answers. */
    buf_init(&worker->out, NET_OUTPUT_MAX, NULL);
    net_gather_init(&worker->gathered);
    net_hold_init(&worker->hold);
    pthread_mutex_init(&worker->mail_lock, NULL);
    sem_init(&worker->opened, 0, 0);
    worker->mail_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    worker->read = malloc(NET_READ_BYTES);
    worker->buckets = calloc(worker->bucket_count, sizeof(struct net_conn *));
    worker->poll.fd = -1;
    if (worker->mail_fd < 0 || worker->read == NULL || worker->buckets == NULL ||
        !worker_watch(worker)) {
        int saved = errno;
        net_worker_destroy(worker);
        errno = saved;
        return NULL;
    }
    return worker;
}

void net_worker_stop(struct net_worker *worker)
{
    if (worker->started) {
        atomic_store(&worker->stopping, true);
        net_worker_signal(worker);
        pthread_join(worker->thread, NULL);
    }
    worker->started = false;
}

void net_worker_destroy(struct net_worker *worker)
{
    if (worker == NULL) {
        return;
    }
    net_worker_stop(worker);
    net_poll_fini(&worker->poll);
    if (worker->mail_fd >= 0) {
        close(worker->mail_fd);
    }
    free(worker->mail.items);
    free(worker->mail_now.items);
    free(worker->buckets);
    free(worker->read);
    buf_fini(&worker->out);
    net_gather_fini(&worker->gathered);
    net_hold_fini(&worker->hold);
    sem_destroy(&worker->opened);
    pthread_mutex_destroy(&worker->mail_lock);
    free(worker);
}

unsigned net_worker_index(const struct net_worker *worker)
{
    return worker->index;
}

uint64_t net_worker_now_us(const struct net_worker *worker)
{
    return worker->now_us;
}
