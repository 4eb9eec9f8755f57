/* feeds.c: all feeds: their places, their threads, their figures. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "data/data.h"
#include "data/follow.h"
#include "net/peer.h"
#include "repl/feed_private.h"
#include "store/journal_reader.h"

_Static_assert(REPL_NAME_MAX == SETTINGS_NODE_NAME_MAX, "names of nodes");
_Static_assert(REPL_FEEDS_MAX == SETTINGS_FEEDS_MAX, "what memory is kept for");
_Static_assert(JOURNAL_READER_FRONT + JOURNAL_READER_BYTES + REPL_LINK_IN_BYTES +
                       FEED_PIECE_BYTES <=
                   SETTINGS_FEED_BYTES + JOURNAL_READER_FRONT,
               "of a feed");
_Static_assert(sizeof(((struct repl_feed_stats *)0)->peer) == NET_ADDRESS_TEXT_MAX, "of a peer");

static const char *const state_words[] = {[REPL_FEED_NONE] = "none",
                                          [REPL_FEED_GREETING] = "connecting",
                                          [REPL_FEED_COPYING] = "copying",
                                          [REPL_FEED_STREAMING] = "streaming"};

const char *repl_feed_state_word(enum repl_feed_state state)
{
    return state_words[state];
}

static bool feeds_settle(struct repl_feeds *feeds);

/* Has the figures say of which stream and reign the journal is. */
static void feeds_look(struct repl_feeds *feeds)
{
    struct manifest_reign *reigns = memory_zalloc(MANIFEST_HISTORY_MAX * sizeof(*reigns));
    uint64_t stream[MANIFEST_STREAM_WORDS];

    (void)feed_history(feeds, stream, reigns);
    free(reigns);
}

struct repl_feeds *repl_feeds_create(const struct settings *settings, struct data *data,
                                     repl_acked_fn *acked, void *context)
{
    if (settings->replication.name == NULL) {
        return NULL;
    }
    struct repl_feeds *feeds = memory_zalloc(sizeof(*feeds));

    feeds->data = data;
    feeds->journal = data_journal(data);
    feeds->vfs = data_vfs(data);
    feeds->directory = memory_strdup(settings->data);
    snprintf(feeds->name, sizeof(feeds->name), "%s", settings->replication.name);
    snprintf(feeds->group, sizeof(feeds->group), "%s", settings->replication.group);
    feeds->ack = settings->replication.ack == SETTINGS_ACK_REPLICA;
    if (feeds->ack && settings->replication.ack_by != NULL) {
        feeds->waited_count = 1;
        snprintf(feeds->waited[0].name, sizeof(feeds->waited[0].name), "%s",
                 settings->replication.ack_by);
    }
    feeds->waits_lack = feeds->ack && feeds->waited_count == 0;
    feeds_settle(feeds);
    feeds->ack_durable = settings->journal.sync == JOURNAL_SYNC_ALWAYS;
    feeds->acked_fn = acked;
    feeds->acked_context = context;
    CHECK(pthread_mutex_init(&feeds->lock, NULL) == 0);
    repl_feeds_reconfigure(feeds, settings);
    feeds_look(feeds);
    return feeds;
}

void repl_feeds_reconfigure(struct repl_feeds *feeds, const struct settings *settings)
{
    if (feeds != NULL) {
        atomic_store(&feeds->copies_max, settings->replication.copies);
        atomic_store(&feeds->copy_rate, settings->replication.copy_rate);
    }
}

void repl_feeds_control(struct repl_feeds *feeds, const struct repl_control *control)
{
    if (feeds != NULL) {
        feeds->control = control;
    }
}

/* ---- threads ---- */

static void *feeds_main(void *context)
{
    struct repl_feed *feed = context;
    struct repl_feeds *feeds = feed->feeds;

    feed_run(feed);
    feed_copy_end(feed);
    feed_give_place(feed);
    pthread_mutex_lock(&feeds->lock);
    repl_link_close(&feed->link);
    feed->figures.state = REPL_FEED_NONE;
    pthread_mutex_unlock(&feeds->lock);
    atomic_store(&feed->ended, true);
    return NULL;
}

/* Under the lock. */
static struct repl_feed *feeds_find_free(struct repl_feeds *feeds)
{
    for (size_t i = 0; i < REPL_FEEDS_MAX && !feeds->stopped; i++) {
        struct repl_feed *feed = &feeds->feeds[i];

        if (feed->started && atomic_load(&feed->ended)) {
            pthread_join(feed->thread, NULL); /* it has nothing to do any more */
            feed->started = false;
        }
        if (!feed->started) {
            return feed;
        }
    }
    return NULL;
}

/* No feed is free: says so if that does not block. */
static void feeds_turn_away(struct repl_feeds *feeds, int fd, struct net_tls *tls)
{
    const struct repl_line busy = {.kind = REPL_BUSY, .seconds = FEED_BUSY_S};
    char text[REPL_LINE_MAX];
    size_t length = repl_compose(&busy, text);

    feeds->refused_copies++;
    (void)!(tls != NULL ? net_tls_write(tls, text, length) : write(fd, text, length));
    net_tls_destroy(tls);
    close(fd);
}

/* Under the lock. */
static bool feeds_start(struct repl_feeds *feeds, struct repl_feed *feed)
{
    feed->feeds = feeds;
    feed->figures = (struct repl_feed_stats){.state = REPL_FEED_GREETING};
    feed->sample_count = 0;
    atomic_store(&feed->ended, false);
    atomic_store(&feed->sleeps, false);
    (void)net_peer_print(feed->link.fd, feed->figures.peer);
    feed->started = thread_start(&feed->thread, feeds_main, feed, "feed");
    return feed->started;
}

void repl_feeds_take(struct repl_feeds *feeds, int fd, struct net_tls *tls, const char *bytes,
                     size_t length)
{
    pthread_mutex_lock(&feeds->lock);
    struct repl_feed *feed = feeds_find_free(feeds);

    if (feed == NULL) {
        feeds_turn_away(feeds, fd, tls);
    } else if (!repl_link_open(&feed->link, fd, tls, bytes, length)) {
        log_warning("a follower is not served: it sent too much at once, or no descriptor is left");
    } else if (!feeds_start(feeds, feed)) {
        log_warning("a follower is not served: no thread can be had: %s", strerror(errno));
        repl_link_close(&feed->link);
    }
    pthread_mutex_unlock(&feeds->lock);
}

/* Under the lock: its link is open. */
static bool feeds_is_up(const struct repl_feed *feed)
{
    return feed->started && feed->figures.state != REPL_FEED_NONE;
}

void repl_feeds_stop(struct repl_feeds *feeds)
{
    if (feeds == NULL) {
        return;
    }
    pthread_mutex_lock(&feeds->lock);
    feeds->stopped = true;
    for (size_t i = 0; i < REPL_FEEDS_MAX; i++) {
        if (feeds_is_up(&feeds->feeds[i])) {
            repl_link_wake(&feeds->feeds[i].link, true);
        }
    }
    pthread_mutex_unlock(&feeds->lock);
    for (size_t i = 0; i < REPL_FEEDS_MAX; i++) {
        if (feeds->feeds[i].started) {
            pthread_join(feeds->feeds[i].thread, NULL);
            feeds->feeds[i].started = false;
        }
    }
}

void repl_feeds_destroy(struct repl_feeds *feeds)
{
    if (feeds == NULL) {
        return;
    }
    repl_feeds_stop(feeds);
    pthread_mutex_destroy(&feeds->lock);
    free(feeds->directory);
    free(feeds);
}

/*
 * A feed notes that it sleeps and then looks at what is written; the journal moves and then looks
 * at the notes. Both are of one order (seq_cst): one of the two sees the other.
 */
void repl_feeds_moved(struct repl_feeds *feeds)
{
    if (atomic_load(&feeds->sleeping) == 0) {
        return;
    }
    pthread_mutex_lock(&feeds->lock);
    for (size_t i = 0; i < REPL_FEEDS_MAX; i++) {
        struct repl_feed *feed = &feeds->feeds[i];

        if (feeds_is_up(feed) && atomic_exchange(&feed->sleeps, false)) {
            atomic_fetch_sub(&feeds->sleeping, 1);
            repl_link_wake(&feed->link, false);
        }
    }
    pthread_mutex_unlock(&feeds->lock);
}

/* ---- places ---- */

bool feed_enter(struct repl_feed *feed, const char *name)
{
    struct repl_feeds *feeds = feed->feeds;

    pthread_mutex_lock(&feeds->lock);
    bool enters = !feeds->shut;

    for (size_t i = 0; i < REPL_FEEDS_MAX && enters; i++) {
        struct repl_feed *other = &feeds->feeds[i];

        if (other != feed && feeds_is_up(other) && strcmp(other->figures.name, name) == 0) {
            log_info("a follower came again, its older connection is closed name=%s", name);
            repl_link_wake(&other->link, true);
        }
    }
    snprintf(feed->figures.name, sizeof(feed->figures.name), "%s", enters ? name : "");
    pthread_mutex_unlock(&feeds->lock);
    return enters;
}

bool repl_feeds_shut(struct repl_feeds *feeds, char name[REPL_NAME_MAX + 1])
{
    name[0] = '\0';
    pthread_mutex_lock(&feeds->lock);
    for (size_t i = 0; i < REPL_FEEDS_MAX && name[0] == '\0'; i++) {
        if (feeds_is_up(&feeds->feeds[i])) {
            snprintf(name, REPL_NAME_MAX + 1, "%s", feeds->feeds[i].figures.name);
        }
    }
    feeds->shut = name[0] == '\0';
    pthread_mutex_unlock(&feeds->lock);
    return name[0] == '\0';
}

void repl_feeds_open(struct repl_feeds *feeds)
{
    feeds_look(feeds);
    pthread_mutex_lock(&feeds->lock);
    feeds->shut = false;
    pthread_mutex_unlock(&feeds->lock);
}

void feed_set_state(struct repl_feed *feed, enum repl_feed_state state)
{
    pthread_mutex_lock(&feed->feeds->lock);
    feed->feeds->streams_begun += state == REPL_FEED_STREAMING;
    feed->feeds->copies_begun += state == REPL_FEED_COPYING;
    feed->figures.state = state;
    pthread_mutex_unlock(&feed->feeds->lock);
}

size_t feed_history(struct repl_feeds *feeds, uint64_t stream[MANIFEST_STREAM_WORDS],
                    struct manifest_reign reigns[MANIFEST_HISTORY_MAX])
{
    size_t count = data_history(feeds->data, stream, reigns);

    pthread_mutex_lock(&feeds->lock);
    memcpy(feeds->stream, stream, sizeof(feeds->stream));
    feeds->epoch = count > 0 ? reigns[count - 1].epoch : 0;
    pthread_mutex_unlock(&feeds->lock);
    return count;
}

bool feed_has_place(struct repl_feed *feed)
{
    struct repl_feeds *feeds = feed->feeds;

    pthread_mutex_lock(&feeds->lock);
    bool has = feed->copies || feeds->copies < atomic_load(&feeds->copies_max);

    feeds->refused_copies += !has;
    pthread_mutex_unlock(&feeds->lock);
    return has;
}

bool feed_take_place(struct repl_feed *feed)
{
    struct repl_feeds *feeds = feed->feeds;
    bool has = feed_has_place(feed);

    pthread_mutex_lock(&feeds->lock);
    has = has && (feed->copies || feeds->copies < atomic_load(&feeds->copies_max));
    feeds->copies += has && !feed->copies;
    feed->copies = feed->copies || has;
    pthread_mutex_unlock(&feeds->lock);
    return has;
}

void feed_give_place(struct repl_feed *feed)
{
    pthread_mutex_lock(&feed->feeds->lock);
    feed->feeds->copies -= feed->copies;
    feed->copies = false;
    pthread_mutex_unlock(&feed->feeds->lock);
}

/* ---- those that acknowledge ---- */

uint64_t repl_feeds_acked(const struct repl_feeds *feeds)
{
    return atomic_load(&feeds->acked);
}

bool repl_feeds_in_sync(const struct repl_feeds *feeds)
{
    return atomic_load(&feeds->in_sync);
}

/* Under the lock: what follows from those that are waited for. True: answers may leave that could
 * not before. */
static bool feeds_settle(struct repl_feeds *feeds)
{
    uint64_t acked = feeds->waits_lack ? 0 : UINT64_MAX;
    bool in_sync = !feeds->waits_lack;

    for (size_t i = 0; i < feeds->waited_count; i++) {
        const struct feeds_waited *waited = &feeds->waited[i];

        acked = waited->acked < acked ? waited->acked : acked;
        in_sync = in_sync && waited->feed != NULL;
    }
    atomic_store(&feeds->in_sync, in_sync);
    return atomic_exchange(&feeds->acked, acked) < acked;
}

/* Under the lock: a feed that streams now. */
static void feeds_take_word(struct repl_feeds *feeds, struct feeds_waited *waited,
                            struct repl_feed *feed)
{
    const struct repl_feed_stats *said = &feed->figures;
    uint64_t acked = feeds->ack_durable ? said->durable : said->written;

    /* No word of an older connection counts once a newer one is in sync. */
    if (feed->figures.caught_up && waited->feed != feed && !atomic_load(&feed->link.stop)) {
        waited->feed = feed;
        if (feeds->ack) {
            log_info("writes wait for a follower, which is in sync name=%s", waited->name);
        }
    }
    waited->acked = acked > waited->acked ? acked : waited->acked;
}

void feed_acked(struct repl_feed *feed)
{
    struct repl_feeds *feeds = feed->feeds;
    bool raised = false;

    pthread_mutex_lock(&feeds->lock);
    for (size_t i = 0; i < feeds->waited_count; i++) {
        if (strcmp(feeds->waited[i].name, feed->figures.name) == 0) {
            feeds_take_word(feeds, &feeds->waited[i], feed);
            raised = feeds_settle(feeds) || raised;
        }
    }
    pthread_mutex_unlock(&feeds->lock);
    if (raised) {
        feeds->acked_fn(feeds->acked_context);
    }
}

void feed_unsync(struct repl_feed *feed)
{
    struct repl_feeds *feeds = feed->feeds;

    pthread_mutex_lock(&feeds->lock);
    feed->figures.caught_up = false;
    for (size_t i = 0; i < feeds->waited_count; i++) {
        if (feeds->waited[i].feed != feed) {
            continue;
        }
        feeds->waited[i].feed = NULL;
        if (feeds->ack) {
            log_warning("writes are refused: the follower they wait for is gone name=%s",
                        feed->figures.name);
        }
    }
    (void)feeds_settle(feeds);
    pthread_mutex_unlock(&feeds->lock);
}

/* Under the lock: with the word of whoever has that name, or none yet. */
static void feeds_await(struct repl_feeds *feeds, const char *name, struct feeds_waited *waited)
{
    *waited = (struct feeds_waited){.feed = NULL};
    for (size_t i = 0; i < feeds->waited_count; i++) {
        if (strcmp(feeds->waited[i].name, name) == 0) {
            *waited = feeds->waited[i];
            return;
        }
    }
    snprintf(waited->name, sizeof(waited->name), "%s", name);
    for (size_t i = 0; i < REPL_FEEDS_MAX; i++) {
        struct repl_feed *feed = &feeds->feeds[i];

        if (feeds_is_up(feed) && feed->figures.state == REPL_FEED_STREAMING &&
            strcmp(feed->figures.name, name) == 0) {
            feeds_take_word(feeds, waited, feed);
        }
    }
}

void repl_feeds_wait_for(struct repl_feeds *feeds, const struct repl_waits *waits)
{
    struct feeds_waited waited[REPL_WAITS_MAX];

    CHECK(waits->count <= REPL_WAITS_MAX);
    pthread_mutex_lock(&feeds->lock);
    for (size_t i = 0; i < waits->count; i++) {
        feeds_await(feeds, waits->names[i], &waited[i]);
    }
    memcpy(feeds->waited, waited, waits->count * sizeof(*waited));
    feeds->waited_count = waits->count;
    feeds->waits_lack = waits->lacks;
    bool raised = feeds_settle(feeds);

    pthread_mutex_unlock(&feeds->lock);
    if (raised) {
        feeds->acked_fn(feeds->acked_context);
    }
}

uint64_t repl_feeds_acked_by(struct repl_feeds *feeds, size_t at)
{
    pthread_mutex_lock(&feeds->lock);
    uint64_t acked = at < feeds->waited_count ? feeds->waited[at].acked : 0;

    pthread_mutex_unlock(&feeds->lock);
    return acked;
}

/* ---- figures ---- */

static void feeds_figures(const struct repl_feed *feed, uint64_t written, uint64_t now_us,
                          struct repl_feed_stats *to)
{
    *to = feed->figures;
    to->lag_bytes = written > to->written ? written - to->written : 0;
    if (feed->sample_count > 0 && to->state == REPL_FEED_STREAMING) {
        to->lag_us = now_us - feed->samples[feed->sample_first].us;
    }
}

char *repl_waits_print(const struct repl_waits *waits, char text[REPL_WAITS_TEXT_MAX])
{
    size_t used = 0;

    for (size_t i = 0; i < waits->count; i++) {
        used += (size_t)snprintf(text + used, REPL_WAITS_TEXT_MAX - used, "%s%s", i > 0 ? "," : "",
                                 waits->names[i]);
    }
    if (waits->count == 0) {
        snprintf(text, REPL_WAITS_TEXT_MAX, waits->lacks ? "unnamed" : "none");
    }
    return text;
}

void repl_feeds_stats(struct repl_feeds *feeds, struct repl_feeds_stats *stats)
{
    uint64_t reign = data_reign(feeds->data); /* of a promotion that no follower has asked since */

    memset(stats, 0, sizeof(*stats));
    stats->name = feeds->name;
    stats->group = feeds->group;
    stats->written = journal_written(feeds->journal);
    stats->durable = journal_durable(feeds->journal);
    stats->in_sync = feeds->ack && repl_feeds_in_sync(feeds);
    pthread_mutex_lock(&feeds->lock);
    uint64_t now_us = clock_monotonic_us(); /* after all that is in the samples */

    stats->waits.count = feeds->waited_count;
    stats->waits.lacks = feeds->waits_lack;
    for (size_t i = 0; i < feeds->waited_count; i++) {
        memcpy(stats->waits.names[i], feeds->waited[i].name, sizeof(stats->waits.names[i]));
    }
    stats->acked = feeds->waited_count > 0 ? repl_feeds_acked(feeds) : 0;
    memcpy(stats->stream, feeds->stream, sizeof(stats->stream));
    stats->epoch = feeds->epoch > reign ? feeds->epoch : reign;
    stats->streams = feeds->streams_begun;
    stats->copies = feeds->copies_begun;
    stats->rewinds = feeds->rewinds;
    stats->refused_copies = feeds->refused_copies;
    for (size_t i = 0; i < REPL_FEEDS_MAX; i++) {
        const struct repl_feed *feed = &feeds->feeds[i];

        if (feeds_is_up(feed)) {
            feeds_figures(feed, stats->written, now_us, &stats->feeds[stats->count++]);
        }
    }
    pthread_mutex_unlock(&feeds->lock);
}
