/* daemon_data.c: a daemon with a data directory: it loads, and may follow another one. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "daemon/daemon_private.h"
#include "daemon/process.h"
#include "data/data.h"
#include "net/net.h"

/* ---- taking the directory ---- */

bool daemon_open_data(struct daemon *daemon)
{
    char error[DATA_ERROR_MAX];

    if (daemon->now->data == NULL) {
        return true;
    }
    if (!process_as(daemon->now->user)) {
        return false;
    }
    daemon->data = data_open(daemon->now, error);
    process_as_root();
    if (daemon->data == NULL) {
        log_error("%s", error);
    } else if (daemon->cut_lsn != 0) {
        data_cut(daemon->data, daemon->cut_lsn);
        daemon->cut_lsn = 0;
    }
    return daemon->data != NULL;
}

/* ---- loading ---- */

static void log_loaded(const struct data *data)
{
    struct data_stats stats;

    data_stats(data, &stats);
    log_info("loaded tables=%llu records_replayed=%llu seconds=%.3f",
             (unsigned long long)stats.table_files, (unsigned long long)stats.recovered_records,
             (double)stats.recovery_us / 1e6);
}

static void *daemon_load(void *context)
{
    struct daemon *daemon = context;
    const uint64_t one = 1;
    char error[DATA_ERROR_MAX];

    if (!data_recover(daemon->data, daemon->server->spaces, &daemon->stop, error)) {
        daemon->failed = error[0] != '\0';
        if (daemon->failed) {
            log_error("%s", error);
        }
        daemon->stop = true;
    }
    (void)!write(daemon->loaded_fd, &one, sizeof(one));
    return NULL;
}

/* Waits until loading has ended, which a signal may hasten. */
static void await_loaded(struct daemon *daemon)
{
    struct pollfd fds[] = {{.fd = daemon->loaded_fd, .events = POLLIN},
                           {.fd = daemon->signal_fd, .events = POLLIN}};
    struct signalfd_siginfo signal;

    while (fds[0].revents == 0) {
        if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) > 0 && fds[1].revents != 0 &&
            read(daemon->signal_fd, &signal, sizeof(signal)) == sizeof(signal) &&
            !daemon_on_signal(daemon, &signal)) {
            daemon->stop = true;
        }
    }
}

/* Signals are held back: they are read while a thread loads. */
static bool daemon_recover(struct daemon *daemon)
{
    pthread_t loader;

    daemon->loaded_fd = eventfd(0, EFD_CLOEXEC);
    bool began = daemon->loaded_fd >= 0 && thread_start(&loader, daemon_load, daemon, "recovery");

    if (began) {
        await_loaded(daemon);
        pthread_join(loader, NULL);
    } else {
        log_error("cannot start a thread: %s", strerror(errno));
        daemon->failed = true;
    }
    close(daemon->loaded_fd);
    return began && !daemon->stop;
}

/* ---- what it is to others ---- */

/* Under the lock. Any thread. */
static void stop_for(struct daemon *daemon, bool *why)
{
    *why = true;
    if (!daemon->net_goes) {
        net_stop(daemon->net);
    }
}

/* An operator's word, which names the node to follow, holds before a receiver's, whichever comes
 * first; none does once the daemon is to end. */
static void on_again(void *context, uint64_t cut_lsn, const char *follow, bool led)
{
    struct daemon *daemon = context;

    pthread_mutex_lock(&daemon->lock);
    if (!daemon->ends && (!daemon->again || follow != NULL)) {
        daemon->led = led;
        daemon->cut_lsn = cut_lsn;
        free(daemon->follow);
        daemon->follow = follow != NULL ? memory_strdup(follow) : NULL;
        stop_for(daemon, &daemon->again);
    }
    pthread_mutex_unlock(&daemon->lock);
}

static void on_lost(void *context)
{
    struct daemon *daemon = context;

    pthread_mutex_lock(&daemon->lock);
    stop_for(daemon, &daemon->lost);
    pthread_mutex_unlock(&daemon->lock);
}

void daemon_end(struct daemon *daemon)
{
    pthread_mutex_lock(&daemon->lock);
    daemon->ends = true;
    daemon->again = false;
    pthread_mutex_unlock(&daemon->lock);
}

bool daemon_begins_anew(struct daemon *daemon)
{
    pthread_mutex_lock(&daemon->lock);
    bool again = daemon->again;

    daemon->ends = !again;
    pthread_mutex_unlock(&daemon->lock);
    return again;
}

static void exchange_text(char **next, char **started)
{
    char *text = *next;

    *next = *started;
    *started = text;
}

void daemon_keep_place(struct settings *next, struct settings *started)
{
    exchange_text(&next->data, &started->data);
    exchange_text(&next->replication.name, &started->replication.name);
    exchange_text(&next->replication.group, &started->replication.group);
    exchange_text(&next->replication.follow, &started->replication.follow);
    exchange_text(&next->replication.ack_by, &started->replication.ack_by);
    next->replication.ack = started->replication.ack;
    next->replication.ack_timeout_s = started->replication.ack_timeout_s;
}

void daemon_net_goes(struct daemon *daemon)
{
    pthread_mutex_lock(&daemon->lock);
    daemon->net_goes = true;
    pthread_mutex_unlock(&daemon->lock);
}

bool daemon_begin_data(struct daemon *daemon)
{
    struct server *server = daemon->server;
    const struct lead_owner owner = {
        .context = daemon, .counts = daemon->counts, .again = on_again, .fail = on_lost};

    if (!daemon_recover(daemon)) {
        return false;
    }
    server_loaded(server, daemon->data);
    daemon->lead = lead_create(server, daemon->data, &owner);
    if (!daemon_start_keeper(daemon)) {
        daemon->failed = true;
        return false;
    }
    daemon_populate(daemon);
    daemon->failed = !data_start(daemon->data, server->barrier, &server->spaces);
    if (daemon->failed) {
        log_error("cannot start a thread: %s", strerror(errno));
    } else {
        log_loaded(daemon->data);
    }
    return !daemon->failed;
}

bool daemon_begin_lead(struct daemon *daemon)
{
    daemon->failed = daemon->lead != NULL && !lead_begin(daemon->lead);
    if (daemon->failed) {
        log_error("cannot start a thread: %s", strerror(errno));
    }
    return !daemon->failed;
}
