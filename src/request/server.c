#include "request/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/notify.h"
#include "data/data.h"
#include "data/follow.h"
#include "data/journal_sink.h"
#include "repl/feed.h"
#include "request/auth_delay.h"
#include "request/dispatch.h"
#include "request/flush.h"
#include "request/lister.h"
#include "request/watch.h"
#include "space/populate.h"

#define SECOND_US 1000000ull

static struct server_waker *create_wakers(unsigned threads)
{
    struct server_waker *wakers = memory_zalloc(threads * sizeof(wakers[0]));

    for (unsigned i = 0; i < threads; i++) {
        CHECK(pthread_mutex_init(&wakers[i].lock, NULL) == 0);
    }
    return wakers;
}

static void destroy_wakers(struct server_waker *wakers, unsigned threads)
{
    for (unsigned i = 0; i < threads; i++) {
        CHECK(wakers[i].net == NULL);
        pthread_mutex_destroy(&wakers[i].lock);
        free(wakers[i].serials);
    }
    free(wakers);
}

/* One part more than it holds, while records go to it. */
#define GROWTH_SPARE_BYTES row_part_with_pools(ROW_PART_BYTES_MAX)

void server_share_memory(struct server *server, const struct settings *settings,
                         const struct spaces *spaces)
{
    uint64_t sum = settings_memory_sum(settings, NULL) + GROWTH_SPARE_BYTES;

    atomic_store(&server->growth.most, sum < server->memory_bytes ? server->memory_bytes - sum : 0);
    for (size_t i = 0; i < spaces->count; i++) {
        data_share_memory(spaces->at[i]->engine, &server->growth);
    }
}

struct server *server_create(const struct settings *settings, struct spaces *spaces)
{
    struct server *server = memory_zalloc(sizeof(*server));

    CHECK(settings->threads > 0 && settings->threads <= NET_THREADS_MAX);
    server->threads = settings->threads;
    size_t bytes = sizeof(struct command_metrics) * (server_counting(server) + 1);

    server->memory_bytes = settings->memory_bytes;
    server->metrics = aligned_alloc(MEMORY_LINE_BYTES, bytes);
    CHECK(server->metrics != NULL);
    memset(server->metrics, 0, bytes);
    server->watches = watch_create(server->threads);
    server->barrier = barrier_create();
    CHECK(server->barrier != NULL);
    server->sync = settings->journal.sync;
    server->wakers = create_wakers(server->threads);
    server->auth_delay = auth_delay_create();
    server->populate = populate_create();
    server->flush = flush_create(server);
    server->lister = lister_create(server);
    server->keeper = keeper_create(server->barrier, flush_run, server->flush);
    server->wait_us = SERVER_WAIT_US;
    keeper_attach(server->keeper, spaces);
    server_share_memory(server, settings, spaces);
    server->started_s = clock_monotonic_us() / 1000000;
    server->watchdog_us = notify_watchdog_us();
    server->rounds_us = memory_zalloc(server->threads * sizeof(server->rounds_us[0]));
    server_publish(server, settings, spaces);
    return server;
}

void server_destroy(struct server *server)
{
    if (server == NULL) {
        return;
    }
    repl_feeds_destroy(server->feeds);
    keeper_destroy(server->keeper);
    for (size_t i = 0; server->spaces != NULL && i < server->spaces->count; i++) {
        data_share_memory(server->spaces->at[i]->engine, NULL); /* they outlive it */
    }
    lister_destroy(server->lister);
    flush_destroy(server->flush);
    populate_destroy(server->populate);
    auth_delay_destroy(server->auth_delay);
    barrier_destroy(server->barrier);
    destroy_wakers(server->wakers, server->threads);
    watch_destroy(server->watches, server->threads);
    free((void *)server->rounds_us);
    free(server->metrics);
    free(server);
}

/* ---- data ---- */

void server_keep(struct server *server, struct journal *journal, struct change_log *log)
{
    CHECK(server->journal == NULL && journal != NULL && log != NULL);
    server->journal = journal;
    server->log = log;
    server->listener = (struct journal_listener){
        .moved = dispatch_journal_moved, .room = dispatch_journal_room, .context = server};
    journal_listen(journal, &server->listener);
}

void server_set_leader(struct server *server, const char *address)
{
    size_t prefix = strlen(NET_PLAIN_PREFIX);

    address += strncmp(address, NET_PLAIN_PREFIX, prefix) == 0 ? prefix : 0;
    snprintf(server->not_leader, sizeof(server->not_leader), "not the leader%s%s",
             address[0] != '\0' ? "; it is " : "", address);
}

bool server_is_fenced(const struct server *server)
{
    return server->leased && server_lease_left_us(server) == 0;
}

uint64_t server_lease_left_us(const struct server *server)
{
    uint64_t now_us = clock_boot_us();
    uint64_t until_us = server->leased ? atomic_load(&server->lease_us) : 0;

    return until_us > now_us ? until_us - now_us : 0;
}

bool server_is_stale(const struct server *server, unsigned after_s)
{
    uint64_t led_us = atomic_load(&server->lease_us);

    led_us = led_us > server->promoted_us ? led_us : server->promoted_us;
    return after_s > 0 && server->leased && clock_boot_us() > led_us + after_s * SECOND_US;
}

void server_loaded(struct server *server, struct data *data)
{
    server->data = data;
    server->cold = data_cold(data);
    server->follows = data_follows(data);
    server->leased = settings_follows_agent(server->settings);
    if (server->follows) {
        server->followed = data;
        server_set_leader(server, server->leased ? "" : server->settings->replication.follow);
    }
    server->feeds = repl_feeds_create(server->settings, data, dispatch_journal_moved, server);
    server->ack_replica = server->settings->replication.ack == SETTINGS_ACK_REPLICA;
    server_keep(server, data_journal(data), &data_log(data)->log);
}

void server_complain(struct server *server, const char *text)
{
    if (log_is_due(&server->complained_us)) {
        log_error("%s", text);
    }
}

/* ---- the watchdog ---- */

#define WATCHDOG_ROUND 2 /* a worker goes round within this part of the watchdog's time … */
#define WATCHDOG_TELL  4 /* … which is told of so often in it */

/* Its agent says when it takes changes again. Worker 0. */
static void server_say_fenced(struct server *server)
{
    bool fenced = atomic_load(&server->lease_us) > 0 && server_is_fenced(server);

    if (fenced && !server->fenced_said) {
        log_warning("changes are refused: the word of this node's agent has ended");
    }
    server->fenced_said = fenced;
}

void server_round(struct server *server, unsigned worker)
{
    uint64_t now_us = clock_monotonic_us();

    if (worker == 0) {
        server_say_fenced(server);
    }

    atomic_store(&server->rounds_us[worker], now_us);
    if (worker != 0 || server->watchdog_us == 0 ||
        now_us - server->watched_us < server->watchdog_us / WATCHDOG_TELL) {
        return;
    }
    for (unsigned i = 0; i < server->threads; i++) {
        uint64_t round_us = atomic_load(&server->rounds_us[i]);

        if (now_us > round_us && now_us - round_us > server->watchdog_us / WATCHDOG_ROUND) {
            log_error("a worker hangs worker=%u seconds=%llu", i,
                      (unsigned long long)((now_us - round_us) / 1000000));
            return;
        }
    }
    server->watched_us = now_us;
    notify_manager("WATCHDOG=1");
}

/* ---- net ---- */

static bool on_signal(void *context, const struct signalfd_siginfo *signal)
{
    struct server *server = context;

    return server->signalled != NULL && server->signalled(server->signalled_context, signal);
}

void server_service(struct server *server, struct net_service *service)
{
    *service = (struct net_service){
        .context = server,
        .worker_open = dispatch_open,
        .worker_close = dispatch_close,
        .turns_begin = dispatch_turns_begin,
        .turns_end = dispatch_turns_end,
        .turn = dispatch_turn,
        .commit = dispatch_commit,
        .may_leave = dispatch_may_leave,
        .tick = dispatch_tick,
        .left = dispatch_left,
        .closed = dispatch_closed,
        .signalled = on_signal,
        .state_bytes = dispatch_state_bytes(),
    };
}

void server_attach(struct server *server, struct net *net)
{
    server->net = net;
}

void server_publish(struct server *server, const struct settings *settings, struct spaces *spaces)
{
    server->settings = settings;
    server->spaces = spaces;
    spaces_number(spaces);
}
