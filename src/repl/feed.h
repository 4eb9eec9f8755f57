/*
 * feed.h: what a node gives to those that follow it: the stream of its journal, and copies of its
 * data directory. The lines are wire.h's.
 *
 * A feed is a thread with one follower's connection. It reads the journal from its files and holds
 * nothing for the follower, so one that is slow, or hangs, costs this node a thread for some
 * seconds and nothing else.
 *
 * Thread rule: create, stop, destroy on the main thread; the rest as said.
 */
#ifndef ROLLCALL_REPL_FEED_H
#define ROLLCALL_REPL_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/settings.h"
#include "repl/wire.h"

#define REPL_FEEDS_MAX      16
#define REPL_WAITS_MAX      2 /* followers that answers wait for at one time */
#define REPL_WAITS_TEXT_MAX (REPL_WAITS_MAX * (REPL_NAME_MAX + 2))

struct data;
struct repl_control;
struct net_tls;
struct repl_feeds;

/* What all of those have acknowledged that answers wait for has grown. By a feed's thread, or who
 * calls repl_feeds_wait_for. */
typedef void repl_acked_fn(void *context);

/* NULL: the settings give this node no name. After data_recover; data outlives it but for the call
 * of destroy. */
struct repl_feeds *repl_feeds_create(const struct settings *settings, struct data *data,
                                     repl_acked_fn *acked, void *context);
/* Ends all feeds and waits for them. While the journal is open. NULL, again: no-op. */
void repl_feeds_stop(struct repl_feeds *feeds);
/* After the journal was closed, which calls repl_feeds_moved until then. NULL: no-op. */
void repl_feeds_destroy(struct repl_feeds *feeds);
/* Sets what carries out promote and follow-to; before anybody connects. NULL feeds: no-op. */
void repl_feeds_control(struct repl_feeds *feeds, const struct repl_control *control);
/*
 * Has nobody follow: who comes from here on is told to come again. False, with the name of a
 * follower: one does follow, and nothing was changed. Any thread; repl_feeds_open ends it, and has
 * the figures say of which stream and reign the journal is now.
 */
bool repl_feeds_shut(struct repl_feeds *feeds, char name[REPL_NAME_MAX + 1]);
void repl_feeds_open(struct repl_feeds *feeds);
/* What may change while it runs: copies, copy-rate. Any thread. NULL: no-op. */
void repl_feeds_reconfigure(struct repl_feeds *feeds, const struct settings *settings);

/*
 * A connection whose first line is follow or copy, with what was read of it: socket and session are
 * the feeds' from here on, closed in the end. Any thread, and no wait.
 */
void repl_feeds_take(struct repl_feeds *feeds, int fd, struct net_tls *tls, const char *bytes,
                     size_t length);

/* What is written has grown: wakes those that wait for it. Any thread, under no lock of the
 * journal; no wait. */
void repl_feeds_moved(struct repl_feeds *feeds);

/*
 * The followers that answers wait for, at first that of replication.ack-by, if there is one. With
 * `lacks` answers also wait for one that is not named yet, so no change can be acknowledged. What a
 * follower that stays has acknowledged still counts. Any thread.
 */
struct repl_waits {
    size_t count;
    char names[REPL_WAITS_MAX][REPL_NAME_MAX + 1];
    bool lacks;
};
void repl_feeds_wait_for(struct repl_feeds *feeds, const struct repl_waits *waits);
/* Prints their names with commas between, or `unnamed`, or `none`; returns text. */
char *repl_waits_print(const struct repl_waits *waits, char text[REPL_WAITS_TEXT_MAX]);
/* Returns what the `at`-th of them has acknowledged, as below. */
uint64_t repl_feeds_acked_by(struct repl_feeds *feeds, size_t at);

/*
 * Returns up to where all followers that are waited for ever had the journal: as written, or under
 * sync: always as durable. UINT64_MAX: none is waited for. It falls only when another one is waited
 * for. And returns whether all of them stream now and have caught up since they came. Any thread,
 * no wait.
 */
uint64_t repl_feeds_acked(const struct repl_feeds *feeds);
bool repl_feeds_in_sync(const struct repl_feeds *feeds);

/* ---- figures ---- */

enum repl_feed_state {
    REPL_FEED_NONE,      /* no feed */
    REPL_FEED_GREETING,  /* connected: nothing was agreed on */
    REPL_FEED_COPYING,   /* gets files */
    REPL_FEED_STREAMING, /* gets records */
};

struct repl_feed_stats {
    enum repl_feed_state state;
    char name[REPL_NAME_MAX + 1];
    char peer[128];
    bool caught_up;                     /* it has what was written when its stream began */
    uint64_t sent;                      /* records below that */
    uint64_t written, durable, applied; /* as it said last */
    uint64_t copied_bytes;
    uint64_t lag_bytes; /* written here and not there */
    uint64_t lag_us;    /* how old the oldest of that is, about */
};

struct repl_feeds_stats {
    const char *name, *group; /* of this node; as long as the feeds */
    uint64_t stream[MANIFEST_STREAM_WORDS];
    uint64_t epoch;
    uint64_t written, durable;
    uint64_t streams, copies; /* begun since the start */
    uint64_t rewinds;         /* followers told so */
    uint64_t refused_copies;  /* told to come again */
    struct repl_waits waits;
    uint64_t acked; /* by all that are waited for; 0: nobody is */
    bool in_sync;   /* with ack: replica: they are there: writes are taken */
    size_t count;   /* of followers that are there */
    struct repl_feed_stats feeds[REPL_FEEDS_MAX];
};

/* Any thread. */
void repl_feeds_stats(struct repl_feeds *feeds, struct repl_feeds_stats *stats);
const char *repl_feed_state_word(enum repl_feed_state state);

#endif
