/* stats replication: what this node is to others, and how far each is that follows it. */
#include <stdio.h>
#include <string.h>

#include "data/follow.h"
#include "repl/feed.h"
#include "repl/receiver.h"
#include "request/stats_private.h"

/* NAME:figure; of one that has not said its name: its address. */
static void emit_follower(struct stats_out *out, const struct repl_feed_stats *feed)
{
    const char *before = out->prefix;

    out->prefix = feed->name[0] != '\0' ? feed->name : feed->peer;
    stats_text(out, "state", repl_feed_state_word(feed->state));
    stats_text(out, "peer", feed->peer);
    stats_number(out, "caught_up", feed->caught_up);
    stats_number(out, "sent", feed->sent);
    stats_number(out, "written", feed->written);
    stats_number(out, "durable", feed->durable);
    stats_number(out, "applied", feed->applied);
    stats_number(out, "copied_bytes", feed->copied_bytes);
    stats_number(out, "lag_bytes", feed->lag_bytes);
    stats_number(out, "lag_us", feed->lag_us);
    out->prefix = before;
}

/* Of the journal here. */
static void emit_place(struct stats_out *out, const uint64_t stream[MANIFEST_STREAM_WORDS],
                       uint64_t epoch, uint64_t written, uint64_t durable)
{
    char text[REPL_STREAM_DIGITS + 1];

    snprintf(text, sizeof(text), "%016llx%016llx", (unsigned long long)stream[0],
             (unsigned long long)stream[1]);
    stats_text(out, "stream", text);
    snprintf(text, sizeof(text), "%016llx",
             (unsigned long long)data_identity(out->worker->server->data));
    stats_text(out, "identity", text);
    stats_number(out, "epoch", epoch);
    stats_number(out, "reign", data_reign(out->worker->server->data));
    stats_number(out, "written", written);
    stats_number(out, "durable", durable);
}

static void emit_feeds(struct stats_out *out, const struct repl_feeds_stats *stats)
{
    char waits_for[REPL_WAITS_TEXT_MAX];

    stats_text(out, "waits_for", repl_waits_print(&stats->waits, waits_for));
    stats_number(out, "acked", stats->acked);
    stats_number(out, "in_sync", stats->in_sync);
    stats_number(out, "streams", stats->streams);
    stats_number(out, "copies", stats->copies);
    stats_number(out, "rewinds", stats->rewinds);
    stats_number(out, "refused_copies", stats->refused_copies);
    stats_number(out, "followers", stats->count);
    for (size_t i = 0; i < stats->count; i++) {
        emit_follower(out, &stats->feeds[i]);
    }
}

/* What ails it: that nothing comes, or that what has come cannot be carried out. */
static void emit_trouble(struct stats_out *out, const struct repl_receiver_stats *stats)
{
    char trouble[DATA_ERROR_MAX];

    data_follow_trouble(out->worker->server->data, trouble);
    if (trouble[0] == '\0' && stats->trouble[0] == '\0') {
        data_follow_grown(out->worker->server->data, trouble);
        if (trouble[0] == '\0') {
            data_follow_unlike(out->worker->server->data, trouble);
        }
    }
    if (trouble[0] == '\0') {
        snprintf(trouble, sizeof(trouble), "%s",
                 stats->trouble[0] != '\0' ? stats->trouble : "none");
    }
    stats_text(out, "trouble", trouble);
}

/* Of a node that follows. */
static void emit_receiver(struct stats_out *out)
{
    const struct server *server = out->worker->server;
    struct repl_receiver_stats stats;

    repl_receiver_stats(server->receiver, &stats);
    stats_text(out, "state", repl_receiver_state_word(stats.state));
    stats_text(out, "leader", stats.leader[0] != '\0' ? stats.leader : "none");
    emit_place(out, stats.stream, stats.epoch, stats.written, stats.durable);
    stats_number(out, "applied", stats.applied);
    stats_number(out, "leader_written", stats.leader_written);
    stats_number(out, "lag_bytes", stats.lag_bytes);
    stats_number(out, "lag_us", stats.lag_us);
    stats_number(out, "readable", data_readable(server->data));
    stats_number(out, "stale", repl_receiver_is_stale(server->receiver));
    stats_number(out, "caught_up", stats.caught_up);
    stats_number(out, "can_lead", data_can_lead(server->data));
    stats_number(out, "full", stats.full);
    stats_number(out, "connects", stats.connects);
    stats_number(out, "copied_bytes", stats.copied_bytes);
    stats_number(out, "copy_bytes", stats.copy_bytes);
    stats_number(out, "fetched_copies", stats.copies);
    stats_number(out, "rewound", stats.rewinds);
    stats_number(out, "lost_bytes", stats.lost_bytes);
    emit_trouble(out, &stats);
}

/* Of a node that leads: how long its agent has said that it may take changes. */
static void emit_lease(struct stats_out *out, const struct server *server)
{
    if (server->leased) {
        stats_number(out, "lease_us", server_lease_left_us(server));
    } else {
        stats_text(out, "lease_us", "none");
    }
}

/* Of a node that leads. */
static void emit_full(struct stats_out *out, const struct journal *journal)
{
    struct journal_stats stats;

    journal_stats(journal, &stats);
    stats_number(out, "full", stats.full);
}

void stats_replication(struct stats_out *out)
{
    const struct server *server = out->worker->server;
    struct repl_feeds_stats stats;
    bool follows = server->data != NULL && server->receiver != NULL && data_follows(server->data);

    stats_text(out, "role", follows ? "follower" : server->feeds != NULL ? "leader" : "single");
    if (follows) {
        emit_receiver(out);
    }
    if (server->feeds == NULL) {
        return;
    }
    repl_feeds_stats(server->feeds, &stats);
    stats_text(out, "name", stats.name);
    stats_text(out, "group", stats.group);
    if (!follows) {
        stats_text(out, "state", server_is_fenced(server) ? "leader-fenced" : "leader");
        emit_lease(out, server);
        emit_place(out, stats.stream, stats.epoch, stats.written, stats.durable);
        emit_full(out, server->journal);
        stats_number(out, "stale", out->worker->stale);
    }
    emit_feeds(out, &stats);
}
