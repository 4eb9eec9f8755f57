/* admin_page_nodes.c: of the status page: who follows whom, and how far behind. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "admin/admin_attention.h"
#include "admin/admin_chart.h"
#include "admin/admin_page.h"
#include "admin/admin_rows.h"
#include "base/readable.h"

#define LAG_TOLD_US  1000                    /* what is younger is on its way */
#define LAG_WHOLE_US (2.0 * ADMIN_BEHIND_US) /* a full bar */

/* A node of the tree: `words` says how it stands with the one above. */
static void put_node(struct evbuffer *out, const char *name, const char *peer, const char *words)
{
    char *escaped = evhttp_htmlescape(name);

    evbuffer_add_printf(out, "<ul class=k><li><b>%s</b> <span class=s>%s</span> %s",
                        escaped != NULL ? escaped : "", peer, words);
    free(escaped);
}

static void put_lag(struct evbuffer *out, uint64_t lag_bytes, uint64_t lag_us)
{
    struct admin_part part = {"behind", lag_us < ADMIN_BEHIND_US ? "o" : "bad", (double)lag_us};
    char bytes[READABLE_MAX], age[READABLE_MAX];

    if (lag_bytes == 0 && lag_us == 0) {
        evbuffer_add_printf(out, ", level");
        return;
    }
    readable_time(age, (double)lag_us / 1e6);
    if (lag_bytes == 0) { /* as far as is known: there is no word from the other one */
        evbuffer_add_printf(out, ", level <b>%s</b> ago", age);
    } else {
        evbuffer_add_printf(out, ", <b>%s</b> behind", readable_bytes(bytes, (double)lag_bytes));
    }
    if (lag_bytes > 0 && lag_us >= LAG_TOLD_US) {
        evbuffer_add_printf(out, ", the oldest for %s", age);
    }
    admin_chart_bar(out, &part, 1, LAG_WHOLE_US, "how far behind, up to ten seconds");
}

static void put_feed(const struct repl_feed_stats *feed, struct evbuffer *out)
{
    char bytes[READABLE_MAX];

    put_node(out, feed->name[0] != '\0' ? feed->name : "somebody", feed->peer,
             repl_feed_state_word(feed->state));
    if (feed->state == REPL_FEED_STREAMING) {
        put_lag(out, feed->lag_bytes, feed->lag_us);
    } else if (feed->state == REPL_FEED_COPYING) {
        evbuffer_add_printf(out, ", %s so far", readable_bytes(bytes, (double)feed->copied_bytes));
    }
    evbuffer_add_printf(out, "</ul>");
}

/* This node, as one that follows. */
static void put_self(const struct admin_replication *repl, const char *name, struct evbuffer *out)
{
    const struct repl_receiver_stats *receiver = &repl->receiver;
    char done[READABLE_MAX], whole[READABLE_MAX];

    put_node(out, name, "this node", admin_following_words[receiver->state]);
    if (receiver->state == REPL_RECEIVER_COPYING) {
        evbuffer_add_printf(out, ", %s of %s", readable_bytes(done, (double)receiver->copied_bytes),
                            readable_bytes(whole, (double)receiver->copy_bytes));
    } else if (receiver->state == REPL_RECEIVER_STREAMING || receiver->lag_us > 0) {
        put_lag(out, receiver->lag_bytes, receiver->lag_us);
    }
    evbuffer_add_printf(out, repl->readable ? "; reads are answered" : "; reads are refused");
}

/* What an agent has to do with it, and for whom answers wait. */
static void put_agreement(const struct admin_replication *repl, struct evbuffer *out)
{
    char left[READABLE_MAX];

    if (repl->leased) {
        evbuffer_add_printf(out, "<p>%s%s.</p>",
                            repl->fenced
                                ? "<b>Its agent's word has ended, and changes are refused</b>"
                                : "It leads by its agent's word, which holds for another ",
                            repl->fenced ? "" : readable_time(left, (double)repl->lease_us / 1e6));
    }
    if (repl->waits && repl->feeds.waits.count == 0) {
        evbuffer_add_printf(out, "<p>Answers to changes wait for %s.</p>",
                            repl->feeds.waits.lacks
                                ? "a follower, and <b>none is named yet: they are refused</b>"
                                : "no follower: its agent says that none has to have them");
    } else if (repl->waits) {
        evbuffer_add_printf(
            out, "<p>Answers to changes wait for <b>%s</b>: %s.</p>", repl->waits_for,
            repl->feeds.in_sync ? "level" : "<b>away or behind, and they are refused</b>");
    }
}

void admin_page_nodes(const struct admin_figures *figures, struct evbuffer *out)
{
    const struct admin_replication *repl = &figures->repl;
    bool follows = repl->role == ADMIN_ROLE_FOLLOWER;
    const char *name = repl->has_feeds ? repl->feeds.name : figures->address;
    char words[48];

    if (repl->role == ADMIN_ROLE_SINGLE) {
        return;
    }
    evbuffer_add_printf(out, "<section><h2>Nodes <span class=s>each below the one it follows"
                             "</span></h2>");
    if (follows) {
        put_node(out, repl->leader[0] != '\0' ? repl->leader : "nobody yet", "", "");
        put_self(repl, name, out);
    } else {
        snprintf(words, sizeof(words), "leads, epoch %" PRIu64, repl->epoch);
        put_node(out, name, "this node", words);
    }
    for (size_t i = 0; i < repl->feeds.count; i++) {
        put_feed(&repl->feeds.feeds[i], out);
    }
    if (!follows && repl->feeds.count == 0) {
        evbuffer_add_printf(out, "; nobody follows");
    }
    evbuffer_add_printf(out, follows ? "</ul></ul>" : "</ul>");
    put_agreement(repl, out);
    evbuffer_add_printf(out, "</section>\n");
}
