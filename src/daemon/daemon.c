#include "daemon/daemon.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/clock.h"
#include "base/exit_status.h"
#include "base/huge.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/thread.h"
#include "daemon/daemon_private.h"
#include "daemon/descriptors.h"
#include "daemon/process.h"
#include "daemon/reload.h"
#include "data/follow.h"
#include "repl/feed.h"
#include "repl/receiver.h"
#include "request/lister.h"
#include "request/server.h"
#include "space/populate.h"

/* Without data the port opens when memory is resident, or after so long, about 3 GiB of it; what is
 * left is done in the background. */
#define POPULATE_WAIT_MS 1000

static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGUSR2};

/* What a reload found wrong, a line at a time: in the background nobody reads stderr. */
static void log_mistakes(char *text)
{
    static const char own_name[] = SERVER_NAME ": ";
    char *rest = text;
    const char *line;

    while ((line = strsep(&rest, "\n")) != NULL) {
        if (strncmp(line, own_name, sizeof(own_name) - 1) == 0) {
            line += sizeof(own_name) - 1; /* the log puts it there itself */
        }
        if (line[0] != '\0') {
            log_at(LOG_LEVEL_ERROR, "%s", line);
        }
    }
}

static struct settings *read_again(struct daemon *daemon)
{
    char *text = NULL;
    size_t size = 0;
    FILE *err = open_memstream(&text, &size);

    if (err == NULL) {
        return NULL;
    }
    struct settings *next = settings_reload(daemon->argc, daemon->argv, err);

    fclose(err);
    log_mistakes(text); /* with a good one: warnings, if any */
    free(text);
    return next;
}

static void reload(struct daemon *daemon)
{
    struct settings *next = read_again(daemon);

    if (next == NULL) {
        log_error("reload: nothing was changed");
        admin_reloaded(daemon->admin, false);
        return;
    }
    char state[64];

    descriptors_provide_again(next, daemon->now);
    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu",
             (unsigned long long)clock_monotonic_us());
    notify_manager(state);
    bool applied = reload_apply(daemon->server, next, space_engine_create);

    admin_reloaded(daemon->admin, applied);
    if (applied) {
        reload_log_changes(daemon->started, daemon->now, next);
        if (daemon->now != daemon->started) {
            settings_destroy(daemon->now);
        }
        daemon->now = next;
        log_info("reload: done");
    } else {
        settings_destroy(next);
    }
    notify_manager("READY=1");
}

/*
 * A reload waits for the checkpoint's bracket and, with new spaces, for the disk: not on the main
 * thread, which accepts clients. All reloads asked for meanwhile become one more reload.
 */
static void *run_reloads(void *context)
{
    struct daemon *daemon = context;
    unsigned asked;

    do {
        asked = atomic_load(&daemon->reloads);
        reload(daemon);
    } while (atomic_fetch_sub(&daemon->reloads, asked) > asked);
    return NULL;
}

static void join_reloader(struct daemon *daemon)
{
    if (daemon->reloader_started) {
        pthread_join(daemon->reloader, NULL);
        daemon->reloader_started = false;
    }
}

static void ask_reload(struct daemon *daemon)
{
    if (!daemon->serving) {
        log_error("reload: not while loading");
        return;
    }
    if (atomic_fetch_add(&daemon->reloads, 1) > 0) {
        return;
    }
    join_reloader(daemon); /* it has done its last */
    daemon->reloader_started = thread_start(&daemon->reloader, run_reloads, daemon, "reload");
    if (!daemon->reloader_started) {
        log_error("reload: cannot start a thread: %s; nothing was changed", strerror(errno));
        atomic_store(&daemon->reloads, 0);
    }
}

static void checkpoint(struct daemon *daemon)
{
    if (daemon->data == NULL) {
        log_info("no checkpoint without data");
    } else if (!daemon->serving) {
        log_info("no checkpoint while loading");
    } else {
        data_checkpoint(daemon->data);
    }
}

/* Who sent it: a process, or the kernel for a terminal's key. One of another pid name space has 0.
 */
static void log_signal(const struct signalfd_siginfo *signal, const char *asks)
{
    const char *name = sigabbrev_np((int)signal->ssi_signo);

    if (signal->ssi_code == SI_KERNEL) {
        log_info("%s signal=SIG%s by=terminal", asks, name);
    } else {
        log_info("%s signal=SIG%s pid=%u uid=%u", asks, name, signal->ssi_pid, signal->ssi_uid);
    }
}

bool daemon_on_signal(struct daemon *daemon, const struct signalfd_siginfo *signal)
{
    switch (signal->ssi_signo) {
    case SIGHUP:
        log_signal(signal, "asked to reload");
        ask_reload(daemon);
        return true;
    case SIGUSR2:
        log_signal(signal, "asked for a checkpoint");
        checkpoint(daemon);
        return true;
    default:
        log_signal(signal, "stopping");
        daemon_end(daemon);
        return false;
    }
}

static bool prepare_process(struct daemon *daemon)
{
    const struct settings *settings = daemon->now;

    process_refuse_privileges();
    if (!process_user_allowed(settings->user) || (settings->core_files && !process_allow_core()) ||
        !descriptors_provide(daemon->now) ||
        (settings->daemonize && !process_background(&daemon->ready_fd))) {
        return false;
    }
    if (settings->lock_memory) {
        process_lock_memory();
    }
    return true;
}

static void daemon_log_spaces(const struct spaces *spaces, const struct settings *settings)
{
    char line[256];
    bool warned = false;

    for (size_t i = 0; i < spaces->count; i++) {
        space_describe(&spaces->at[i]->settings, line, sizeof(line));
        log_at(LOG_LEVEL_INFO, "%s", line);
    }
    for (size_t i = 0; i < spaces->count && !warned; i++) {
        if (settings->data == NULL && spaces->at[i]->settings.role == SPACE_STORE &&
            spaces->at[i]->settings.kind != SPACE_PLAIN) {
            log_warning("role store without a data directory: empty after a restart space=%s",
                        spaces->at[i]->name);
            warned = true;
        }
    }
}

static bool signalled(void *context, const struct signalfd_siginfo *signal)
{
    return daemon_on_signal(context, signal);
}

static bool create_server(struct daemon *daemon)
{
    char error[SPACES_ERROR_MAX];
    struct spaces *spaces =
        spaces_create(daemon->now, NULL, daemon->now->threads, space_engine_create, error);

    if (spaces == NULL) {
        log_error("%s", error);
        return false;
    }
    daemon->server = server_create(daemon->now, spaces);
    daemon->server->signalled = signalled;
    daemon->server->signalled_context = daemon;
    return true;
}

/* Logs what net says of an address. */
static void log_address_error(char error[NET_ERROR_MAX], bool in_use)
{
    if (in_use) { /* it begins with the address, and ends with that */
        log_error("%s by another program, as memcached or another rollcalld: stop that, or choose "
                  "another address with %s or listen",
                  error, error[0] == '/' ? "-s" : "-l, -p");
    } else {
        log_error("%s", error);
    }
}

/* The addresses are taken, but nobody can connect. */
static bool open_net(struct daemon *daemon)
{
    const struct settings *settings = daemon->now;
    struct net_owner owner;
    bool is_owned = process_becomes(settings->user, &owner.user, &owner.group);
    const struct net_options options = {
        .addresses = (const char *const *)settings->listen,
        .address_count = settings->listen_count,
        .unix_mode = settings->unix_mode,
        .unix_owner = is_owned ? &owner : NULL,
        .threads = settings->threads,
        .max_connections = settings->max_connections,
        .backlog = settings->backlog,
        .idle_timeout_s = settings->idle_timeout_s,
        .request_timeout_s = settings->request_timeout_s,
        .hold_stall_s = settings->replication.ack == SETTINGS_ACK_REPLICA
                            ? settings->replication.ack_timeout_s
                            : 0,
        .budget = &daemon->budget,
        .tls = settings->tls.context,
    };
    struct net_service service;
    char error[NET_ERROR_MAX];
    bool in_use;

    daemon->budget.bytes_max = settings_buffer_bytes(settings);
    server_service(daemon->server, &service);
    daemon->net = net_create(&options, &service, error, &in_use);
    if (daemon->net == NULL) {
        log_address_error(error, in_use);
        return false;
    }
    server_attach(daemon->server, daemon->net);
    return true;
}

/* The status page's address is taken, too. */
static bool open_admin(struct daemon *daemon)
{
    char error[ADMIN_ERROR_MAX];
    bool in_use;

    if (daemon->now->admin == NULL) {
        return true;
    }
    daemon->admin = admin_create(daemon->now->admin, daemon->server, daemon->data, error, &in_use);
    if (daemon->admin == NULL) {
        log_error("%s%s", error, in_use ? "; choose another address for `admin`" : "");
    }
    return daemon->admin != NULL;
}

static bool start_admin(struct daemon *daemon)
{
    if (daemon->admin == NULL) {
        return true;
    }
    daemon->failed = !admin_start(daemon->admin);
    if (daemon->failed) {
        log_error("cannot start a thread: %s", strerror(errno));
    } else {
        log_info("status page on http://%s/", admin_address(daemon->admin));
    }
    return !daemon->failed;
}

static void log_addresses(const struct net *net)
{
    const char *address;

    for (size_t i = 0; (address = net_address(net, i)) != NULL; i++) {
        log_at(LOG_LEVEL_INFO, "listening on %s tls=%s", address,
               net_address_tls(net, i) ? "yes" : "no");
    }
}

static sigset_t daemon_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        sigaddset(&set, signals[i]);
    }
    return set;
}

/* Holds signals back before anything can be seen from outside: they are only read, while loading
 * and then by net_run(). */
static bool hold_signals(struct daemon *daemon)
{
    const sigset_t set = daemon_signals();

    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (daemon->signal_fd < 0) {
        daemon->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    }
    if (daemon->signal_fd < 0) {
        log_error("cannot take signals: %s", strerror(errno));
    }
    return daemon->signal_fd >= 0;
}

/* A second one while it stops ends it at once; what was already sent says nothing new. */
static void let_signals_go(struct daemon *daemon)
{
    const sigset_t set = daemon_signals();
    struct signalfd_siginfo signal;

    while (read(daemon->signal_fd, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
    }
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

bool daemon_start_keeper(const struct daemon *daemon)
{
    bool started = keeper_start(daemon->server->keeper, daemon->server->spaces);

    if (!started) {
        log_error("cannot start a thread: %s", strerror(errno));
    }
    return started;
}

/* Everything that can fail, in an order that lets nothing half done be seen from outside. */
static bool start(struct daemon *daemon)
{
    const struct settings *settings = daemon->now;

    if (!daemon->prepared && !prepare_process(daemon)) {
        return false;
    }
    if (!hold_signals(daemon) || !daemon_open_data(daemon) || !create_server(daemon) ||
        !open_net(daemon) || !open_admin(daemon)) {
        return false;
    }
    if (daemon->prepared) {
        return true;
    }
    if (settings->pidfile != NULL && !process_write_pidfile(settings->pidfile)) {
        return false;
    }
    if (!process_drop_to(settings->user)) {
        process_remove_pidfile(settings->pidfile);
        return false;
    }
    daemon->prepared = true;
    return true;
}

void daemon_populate(const struct daemon *daemon)
{
    populate_stop(daemon->server->populate);
    populate_go(daemon->server->populate, daemon->server->spaces);
}

/* ---- the whole ---- */

static bool begin_in_memory(struct daemon *daemon)
{
    daemon->failed = !daemon_start_keeper(daemon);
    if (!daemon->failed) {
        daemon_populate(daemon);
        populate_wait(daemon->server->populate, POPULATE_WAIT_MS);
    }
    return !daemon->failed;
}

/* From here on clients are served, and nobody waits for the log. */
static bool begin_serving(struct daemon *daemon)
{
    char error[NET_ERROR_MAX];
    bool in_use;

    if (!net_listen(daemon->net, error, &in_use)) {
        log_address_error(error, in_use);
        daemon->failed = true;
        return false;
    }
    log_addresses(daemon->net);
    if (!log_start()) {
        log_error("cannot start a thread: %s", strerror(errno));
        daemon->failed = true;
        return false;
    }
    daemon->serving = true;
    admin_serving(daemon->admin);
    process_background_ready(daemon->ready_fd);
    notify_manager("READY=1\nSTATUS=serving");
    return true;
}

static void daemon_serve(struct daemon *daemon)
{
    bool begun = start_admin(daemon);

    daemon_log_spaces(daemon->server->spaces, daemon->now);
    if (begun) {
        begun = daemon->data != NULL ? daemon_begin_data(daemon) : begin_in_memory(daemon);
    }
    if (begun && !huge_start()) {
        log_warning("cannot start a thread: %s; huge pages are not looked at", strerror(errno));
    }
    if (begun && begin_serving(daemon) && daemon_begin_lead(daemon)) {
        net_run(daemon->net, daemon->signal_fd);
    }
    if (daemon_begins_anew(daemon)) {
        notify_manager("STATUS=beginning anew");
    } else {
        let_signals_go(daemon);
        notify_manager("STOPPING=1");
    }
}

/* The threads that use the spaces end first; the data directory sees the spaces a last time. */
static void daemon_finish(struct daemon *daemon)
{
    struct spaces *spaces = daemon->server != NULL ? daemon->server->spaces : NULL;

    huge_end();
    lead_end(daemon->lead);
    daemon_net_goes(daemon);
    join_reloader(daemon);
    admin_destroy(daemon->admin);
    if (daemon->server != NULL) {
        keeper_end(daemon->server->keeper); /* both wake connections, which go now */
        lister_end(daemon->server->lister);
    }
    if (daemon->data != NULL) {
        data_stop(daemon->data);
    }
    net_destroy(daemon->net);
    if (daemon->server != NULL) {
        daemon->server->data = NULL;
        repl_feeds_stop(daemon->server->feeds);
        populate_stop(daemon->server->populate);
        populate_go(daemon->server->populate, NULL);
    }
    /* A last checkpoint may be of what the next start is to cut off, or whom it follows then. */
    bool clean = !daemon->failed && !daemon->lost && daemon->cut_lsn == 0 && !daemon->led &&
                 daemon->follow == NULL;

    bool closed = data_close(daemon->data, spaces, clean);

    /* A start that comes at once recovers what could not be closed well, as on a full disk. */
    daemon->failed = (!closed && !daemon->again) || daemon->failed || daemon->lost;
    lead_destroy(daemon->lead);
    server_destroy(daemon->server);
    spaces_drop(spaces, NULL);
    data_destroy(daemon->data);
}

/* The configuration of the moment is that of the next start, but for its place. */
static void begin_anew(struct daemon *daemon)
{
    struct daemon next = {.argc = daemon->argc,
                          .argv = daemon->argv,
                          .started = daemon->now,
                          .now = daemon->now,
                          .counts = daemon->counts,
                          .ready_fd = -1,
                          .signal_fd = daemon->signal_fd,
                          .prepared = true,
                          .cut_lsn = daemon->cut_lsn};

    if (daemon->now != daemon->started) {
        daemon_keep_place(daemon->now, daemon->started);
        settings_destroy(daemon->started);
    }
    if (daemon->follow != NULL) {
        free(daemon->now->replication.follow);
        daemon->now->replication.follow = daemon->follow;
    }
    pthread_mutex_destroy(&daemon->lock);
    *daemon = next;
    pthread_mutex_init(&daemon->lock, NULL);
}

static bool run_once(struct daemon *daemon)
{
    bool started = start(daemon);

    if (started) {
        daemon_serve(daemon);
    }
    daemon_finish(daemon);
    return started;
}

int daemon_run(int argc, char **argv)
{
    struct repl_receiver_counts counts = {0};
    struct daemon daemon = {
        .argc = argc, .argv = argv, .counts = &counts, .ready_fd = -1, .signal_fd = -1};
    enum settings_action action = settings_load(argc, argv, stdout, stderr, &daemon.started);

    if (action != SETTINGS_RUN) {
        return action == SETTINGS_EXIT_OK ? EXIT_STATUS_DONE : EXIT_STATUS_USAGE;
    }
    daemon.now = daemon.started;
    signal(SIGHUP,
           SIG_IGN); /* before they are held back and after, these must not end the daemon */
    signal(SIGUSR2, SIG_IGN);
    log_setup(SERVER_NAME, (enum log_level)daemon.now->log_level);
    log_stamp();
    pthread_mutex_init(&daemon.lock, NULL);
    bool started = run_once(&daemon);

    while (started && daemon.again && !daemon.failed) {
        begin_anew(&daemon);
        started = run_once(&daemon);
    }
    if (daemon.prepared) {
        process_remove_pidfile(daemon.started->pidfile);
    }
    if (daemon.now != daemon.started) {
        settings_destroy(daemon.now);
    }
    settings_destroy(daemon.started);
    if (daemon.signal_fd >= 0) {
        close(daemon.signal_fd);
    }
    free(daemon.follow);
    pthread_mutex_destroy(&daemon.lock);
    log_end();
    return started && !daemon.failed ? EXIT_STATUS_DONE : EXIT_STATUS_FAILED;
}
