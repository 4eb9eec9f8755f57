/* stats replication: what this node is to others, and how far each is that follows it. */
#include <stdio.h>

#include "repl/feed.h"
#include "request/stats_private.h"

/* NAME:figure; of one that has not said its name: its address. */
static void emit_follower(struct stats_out *out, const struct repl_feed_stats *feed)
{
    const char *before = out->prefix;

    out->prefix = feed->name[0] != '\0' ? feed->name : feed->peer;
    stats_text(out, "state", repl_feed_state_word(feed->state));
    stats_text(out, "peer", feed->peer);
    stats_number(out, "sent", feed->sent);
    stats_number(out, "written", feed->written);
    stats_number(out, "durable", feed->durable);
    stats_number(out, "applied", feed->applied);
    stats_number(out, "copied_bytes", feed->copied_bytes);
    stats_number(out, "lag_bytes", feed->lag_bytes);
    stats_number(out, "lag_us", feed->lag_us);
    out->prefix = before;
}

static void emit_leader(struct stats_out *out, const struct repl_feeds_stats *stats)
{
    char stream[REPL_STREAM_DIGITS + 1];

    snprintf(stream, sizeof(stream), "%016llx%016llx", (unsigned long long)stats->stream[0],
             (unsigned long long)stats->stream[1]);
    stats_text(out, "stream", stream);
    stats_number(out, "epoch", stats->epoch);
    stats_number(out, "written", stats->written);
    stats_number(out, "durable", stats->durable);
    stats_number(out, "acked", stats->acked);
    stats_number(out, "in_sync", stats->in_sync);
    stats_number(out, "streams", stats->streams);
    stats_number(out, "copies", stats->copies);
    stats_number(out, "rewinds", stats->rewinds);
    stats_number(out, "refused_copies", stats->refused_copies);
    stats_number(out, "followers", stats->count);
}

void stats_replication(struct stats_out *out)
{
    struct repl_feeds *feeds = out->worker->server->feeds;
    struct repl_feeds_stats stats;

    stats_text(out, "role", feeds != NULL ? "leader" : "single");
    if (feeds == NULL) {
        return;
    }
    repl_feeds_stats(feeds, &stats);
    emit_leader(out, &stats);
    for (size_t i = 0; i < stats.count; i++) {
        emit_follower(out, &stats.feeds[i]);
    }
}
