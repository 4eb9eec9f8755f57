/* admin_replication.c: the node that this one follows, and its followers. */
#include <stdio.h>

#include "admin/admin_figures.h"
#include "data/follow.h"

static void read_followed(struct admin_replication *repl, const struct server *server)
{
    struct repl_receiver_stats *stats = &repl->receiver;
    char trouble[DATA_ERROR_MAX];

    repl_receiver_stats(server->receiver, stats);
    repl->state = stats->state;
    for (unsigned i = 0; i < REPL_RECEIVER_STATES; i++) {
        repl->state_is[i] = stats->state == i;
    }
    repl->readable = data_readable(server->data) && !repl_receiver_is_stale(server->receiver);
    snprintf(repl->leader, sizeof(repl->leader), "%s", stats->leader);
    data_follow_trouble(server->data, trouble);
    repl->applies = trouble[0] == '\0';
    if (repl->applies && stats->trouble[0] == '\0') {
        data_follow_grown(server->data, trouble);
        repl->grown = trouble[0] != '\0';
    }
    snprintf(repl->trouble, sizeof(repl->trouble), "%.*s", (int)sizeof(repl->trouble) - 1,
             trouble[0] == '\0' ? stats->trouble : trouble);
}

void admin_replication_read(struct admin_replication *repl, const struct server *server)
{
    bool follows = server->data != NULL && server->receiver != NULL && data_follows(server->data);

    repl->role = follows                 ? ADMIN_ROLE_FOLLOWER
                 : server->feeds != NULL ? ADMIN_ROLE_LEADER
                                         : ADMIN_ROLE_SINGLE;
    for (unsigned i = 0; i < ADMIN_ROLES; i++) {
        repl->role_is[i] = repl->role == i;
    }
    if (follows) {
        read_followed(repl, server);
        repl->epoch = repl->receiver.epoch;
    }
    if (server->data != NULL) {
        repl->reign = data_reign(server->data);
    }
    if (server->feeds != NULL) {
        repl_feeds_stats(server->feeds, &repl->feeds);
        repl->has_feeds = true;
        repl->waits = server->ack_replica && !follows;
        repl->leased = !follows && server->leased;
        repl->lease_us = server_lease_left_us(server);
        repl->fenced = repl->leased && repl->lease_us == 0;
        repl->followers = repl->feeds.count;
        repl->epoch = follows ? repl->epoch : repl->feeds.epoch;
        (void)repl_waits_print(&repl->feeds.waits, repl->waits_for);
    }
}
