/* admin.c: the listener's thread, its connections and their limits. */
#include "admin/admin.h"

#include <errno.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "admin/admin_private.h"
#include "admin/admin_survey.h"
#include "base/barrier.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/address.h"

#define TICK_S   1
#define PAUSE_US 5000 /* accepting rests for so long when all connections are taken */
#define NICE     5    /* workers go first */
#define BACKLOG  512

/* ---- connections ---- */

/* evhttp has done with it. */
static bool is_gone(struct bufferevent *bev)
{
    bufferevent_event_cb on_event = NULL;

    bufferevent_getcb(bev, NULL, NULL, &on_event, NULL);
    return on_event == NULL;
}

/* Forgets connections that are closed, ends those that have been there for deadline_s. */
static void sweep(struct admin *admin, unsigned deadline_s)
{
    uint64_t now_us = clock_monotonic_us();

    for (size_t i = admin->conn_count; i-- > 0;) {
        struct admin_conn *conn = &admin->conns[i];

        if (!is_gone(conn->bev) && now_us - conn->since_us >= deadline_s * 1000000ull) {
            bufferevent_trigger_event(conn->bev, BEV_EVENT_TIMEOUT | BEV_EVENT_READING, 0);
        }
        if (is_gone(conn->bev)) {
            bufferevent_decref(conn->bev);
            *conn = admin->conns[--admin->conn_count];
        }
    }
}

/* The listener takes no further connection until there is room for one. */
static void pause_accepting(struct admin *admin)
{
    const struct timeval pause = {.tv_usec = PAUSE_US};

    evconnlistener_disable(evhttp_bound_socket_get_listener(admin->bound));
    event_add(&admin->pause_event, &pause);
}

static void on_pause_over(int fd, short what, void *context)
{
    struct admin *admin = context;

    (void)fd;
    (void)what;
    sweep(admin, ADMIN_CROWDED_S); /* others may wait: slow ones make room for them */
    if (admin->conn_count == ADMIN_CONNECTIONS_MAX) {
        pause_accepting(admin);
    } else {
        evconnlistener_enable(evhttp_bound_socket_get_listener(admin->bound));
    }
}

/* evhttp has accepted a connection and wants its bufferevent. */
static struct bufferevent *admin_on_accepted(struct event_base *base, void *context)
{
    struct admin *admin = context;

    sweep(admin, ADMIN_DEADLINE_S);
    CHECK(admin->conn_count < ADMIN_CONNECTIONS_MAX); /* else it would be paused */
    struct bufferevent *bev = bufferevent_socket_new(base, -1, 0);

    CHECK(bev != NULL);
    bufferevent_incref(bev);
    admin->conns[admin->conn_count++] =
        (struct admin_conn){.bev = bev, .since_us = clock_monotonic_us()};
    if (admin->conn_count == ADMIN_CONNECTIONS_MAX) {
        pause_accepting(admin);
    }
    return bev;
}

/* ---- the thread ---- */

static void take_sample(struct admin *admin)
{
    struct admin_command_counts commands;
    struct admin_sample sample = {.at_us = clock_monotonic_us()};

    admin_commands_sum(admin->server, &commands);
    sample.counted[ADMIN_READS] = commands.cmd_get + commands.cmd_touch;
    sample.counted[ADMIN_CHANGES] = commands.cmd_set + commands.incr_hits + commands.incr_misses +
                                    commands.decr_hits + commands.decr_misses +
                                    commands.delete_hits + commands.delete_misses;
    if (admin->server->cold != NULL) {
        struct cold_stats cold;

        cold_stats(admin->server->cold, &cold);
        sample.counted[ADMIN_DISK_READS] = cold.reads;
    }
    admin_history_second(admin->history, &sample, clock_wall_s());
    if (admin_history_times_due(admin->history, sample.at_us)) {
        struct watch_times times[WATCH_TIERS];

        admin_times_sum(admin->server, times);
        admin_history_times(admin->history, sample.at_us, times);
    }
    if (admin_history_minute_due(admin->history, sample.at_us)) {
        admin_figures_read(admin->figures, admin->server, admin->member, false);
        admin->figures_us = 0; /* they lack the tables */
        admin_history_minute(admin->history, admin->figures);
    }
}

static void admin_on_tick(int fd, short what, void *context)
{
    struct admin *admin = context;

    (void)fd;
    (void)what;
    sweep(admin, ADMIN_DEADLINE_S);
    if (atomic_load(&admin->serving)) {
        take_sample(admin);
        admin_survey_go_on(admin->survey, admin->server, admin->member);
    }
}

static void admin_on_stop(int fd, short what, void *context)
{
    struct admin *admin = context;

    (void)fd;
    (void)what;
    event_base_loopbreak(admin->base);
}

static void *admin_run(void *context)
{
    struct admin *admin = context;

    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    event_base_dispatch(admin->base);
    return NULL;
}

/* ---- life ---- */

static bool listen_on(struct admin *admin, const char *address)
{
    struct net_address_parts parts;
    struct sockaddr_storage bound = {0};
    socklen_t length = sizeof(bound);

    if (!net_address_split(address, &parts) || parts.is_unix) {
        errno = EINVAL;
        return false;
    }
    admin->bound =
        evhttp_bind_socket_with_handle(admin->http, parts.host[0] != '\0' ? parts.host : NULL,
                                       (ev_uint16_t)strtoul(parts.port, NULL, 10));
    if (admin->bound == NULL) {
        return false;
    }
    (void)listen(evhttp_bound_socket_get_fd(admin->bound), BACKLOG); /* evhttp's are 128 */
    if (getsockname(evhttp_bound_socket_get_fd(admin->bound), (struct sockaddr *)&bound, &length) ==
        0) {
        net_address_print(&bound, length, admin->address);
    }
    return true;
}

static bool create_loop(struct admin *admin)
{
    const struct timeval second = {.tv_sec = TICK_S};

    admin->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    admin->base = event_base_new();
    admin->http = admin->base != NULL ? evhttp_new(admin->base) : NULL;
    if (admin->stop_fd < 0 || admin->http == NULL) {
        return false;
    }
    evhttp_set_allowed_methods(admin->http, ADMIN_ANSWERED | EVHTTP_REQ_POST | EVHTTP_REQ_PUT |
                                                EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS |
                                                EVHTTP_REQ_PATCH); /* what is refused with 405 */
    evhttp_set_max_headers_size(admin->http, ADMIN_HEADERS_MAX);
    evhttp_set_max_body_size(admin->http, 0);
    evhttp_set_timeout(admin->http, ADMIN_DEADLINE_S);
    evhttp_set_bevcb(admin->http, admin_on_accepted, admin);
    evhttp_set_gencb(admin->http, admin_http_request, admin);
    event_assign(&admin->stop_event, admin->base, admin->stop_fd, EV_READ, admin_on_stop, admin);
    event_assign(&admin->pause_event, admin->base, -1, 0, on_pause_over, admin);
    event_assign(&admin->tick_event, admin->base, -1, EV_PERSIST, admin_on_tick, admin);
    return event_add(&admin->stop_event, NULL) == 0 && event_add(&admin->tick_event, &second) == 0;
}

struct admin *admin_create(const char *address, struct server *server, struct data *data,
                           char error[ADMIN_ERROR_MAX], bool *in_use)
{
    struct admin *admin = memory_zalloc(sizeof(*admin));

    *in_use = false;
    admin->server = server;
    admin->data = data;
    admin->figures = memory_zalloc(sizeof(*admin->figures));
    admin->survey = admin_survey_create();
    admin->history = admin_history_create();
    admin->member = barrier_join(server->barrier);
    CHECK(admin->member != NULL);
    if (!create_loop(admin)) {
        snprintf(error, ADMIN_ERROR_MAX, "cannot start the admin listener: %s", strerror(errno));
        goto failed;
    }
    if (!listen_on(admin, address)) {
        *in_use = errno == EADDRINUSE;
        snprintf(error, ADMIN_ERROR_MAX, "%s (admin): %s", address,
                 errno != 0 ? strerror(errno) : "cannot be bound");
        goto failed;
    }
    return admin;
failed:
    admin_destroy(admin);
    return NULL;
}

bool admin_start(struct admin *admin)
{
    admin->started = thread_start(&admin->thread, admin_run, admin, "admin");
    return admin->started;
}

void admin_serving(struct admin *admin)
{
    if (admin != NULL) {
        atomic_store(&admin->serving, true);
    }
}

void admin_reloaded(struct admin *admin, bool well)
{
    if (admin != NULL) {
        atomic_store(&admin->reload_failed, !well);
    }
}

void admin_destroy(struct admin *admin)
{
    const uint64_t one = 1;

    if (admin == NULL) {
        return;
    }
    if (admin->started) {
        CHECK(write(admin->stop_fd, &one, sizeof(one)) == sizeof(one));
        pthread_join(admin->thread, NULL);
    }
    for (size_t i = 0; i < ADMIN_CACHED_MAX; i++) {
        if (admin->cached[i].bytes != NULL) {
            evbuffer_free(admin->cached[i].bytes);
        }
    }
    if (admin->http != NULL) {
        event_del(&admin->stop_event);
        event_del(&admin->tick_event);
        event_del(&admin->pause_event);
        evhttp_free(admin->http);
    }
    for (size_t i = 0; i < admin->conn_count; i++) {
        bufferevent_decref(admin->conns[i].bev);
    }
    if (admin->base != NULL) {
        event_base_free(admin->base);
    }
    if (admin->stop_fd >= 0) {
        close(admin->stop_fd);
    }
    barrier_resign(admin->member);
    admin_history_destroy(admin->history);
    admin_survey_destroy(admin->survey);
    admin_figures_free(admin->figures);
    free(admin->figures);
    free(admin);
}

const char *admin_address(const struct admin *admin)
{
    return admin->address;
}
