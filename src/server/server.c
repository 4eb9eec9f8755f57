#include "server/server.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "server/dispatch.h"
#include "server/populate.h"

struct server *server_create(const struct settings *settings, struct spaces *spaces)
{
    struct server *server = memory_zalloc(sizeof(*server));
    size_t bytes = sizeof(struct command_metrics) * (settings->threads + 1);

    CHECK(settings->threads > 0 && settings->threads <= NET_THREADS_MAX);
    server->threads = settings->threads;
    server->memory_bytes = settings->memory_bytes;
    server->metrics = aligned_alloc(MEMORY_LINE_BYTES, bytes);
    CHECK(server->metrics != NULL);
    memset(server->metrics, 0, bytes);
    server->barrier = barrier_create();
    CHECK(server->barrier != NULL);
    server->sink = change_sink_null();
    server->populate = populate_create();
    server->keeper = keeper_create(server->barrier);
    keeper_attach(server->keeper, spaces);
    server->started_s = clock_monotonic_us() / 1000000;
    server_publish(server, settings, spaces);
    return server;
}

void server_destroy(struct server *server)
{
    if (server == NULL) {
        return;
    }
    keeper_destroy(server->keeper);
    populate_destroy(server->populate);
    barrier_destroy(server->barrier);
    free(server->metrics);
    free(server);
}

static bool on_signal(void *context, int signal_number)
{
    struct server *server = context;

    return server->signalled != NULL && server->signalled(server->signalled_context, signal_number);
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

void server_clear(struct server *server, struct barrier_member *member)
{
    barrier_leave(member);
    keeper_stop(server->keeper); /* it may be at work between two stops of its own */
    populate_stop(server->populate);
    barrier_stop(server->barrier);
    for (size_t i = 0; i < server->spaces->count; i++) {
        struct engine *engine = server->spaces->at[i]->engine;

        engine->functions->clear(engine);
    }
    barrier_go(server->barrier);
    populate_go(server->populate, NULL); /* what was resident may be so no more: as it is used */
    keeper_go(server->keeper, NULL);
    barrier_enter(member);
}
