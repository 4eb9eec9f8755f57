/*
 * feed_private.h: what the files of feeds share. Included by feed*.c only.
 *
 *     feeds.c         all of them: slots, threads, figures
 *     feed.c          one: its lines, and what it answers to follow
 *     feed_stream.c   records, times and sums, for as long as both are there
 *     feed_copy.c     a manifest and its files
 */
#ifndef ROLLCALL_REPL_FEED_PRIVATE_H
#define ROLLCALL_REPL_FEED_PRIVATE_H

#include <pthread.h>

#include "data/pins.h"
#include "repl/feed.h"
#include "repl/link.h"
#include "store/journal.h"
#include "store/journal_reader.h"
#include "store/vfs.h"

#define FEED_PIECE_BYTES (256u << 10) /* of a file of a copy, at a time */
#define FEED_BUSY_S      5            /* when those come again that find no place */
#define FEED_SAMPLES     64           /* of what was written when: how far behind a follower is */

/* When the journal was how far: the oldest of those that the follower has not reached. */
struct feed_sample {
    uint64_t written, us;
};

struct repl_feed {
    struct repl_feeds *feeds;
    struct repl_link link;
    pthread_t thread;
    bool started; /* under the lock: to be joined */
    _Atomic bool ended;
    _Atomic bool sleeps;   /* it waits for what is written to grow */
    struct data_pin *copy; /* its files; NULL: it has begun none */
    bool copies;           /* under the lock: it has one of the places for copies */
    /* figures, under the lock */
    struct repl_feed_stats figures;
    struct feed_sample samples[FEED_SAMPLES];
    size_t sample_first, sample_count;
};

/* One that is waited for. */
struct feeds_waited {
    char name[REPL_NAME_MAX + 1];
    uint64_t acked;
    struct repl_feed *feed; /* NULL: it is away, or behind */
};

struct repl_feeds {
    struct data *data;
    const struct repl_control *control; /* NULL: nobody does */
    struct journal *journal;
    struct vfs *vfs;
    char *directory;
    char name[REPL_NAME_MAX + 1], group[REPL_NAME_MAX + 1];
    _Atomic unsigned copies_max;
    _Atomic uint64_t copy_rate;
    bool ack, ack_durable;
    repl_acked_fn *acked_fn;
    void *acked_context;
    _Atomic uint64_t acked;
    _Atomic bool in_sync;
    _Atomic unsigned sleeping; /* feeds that do: more or fewer for a moment */

    pthread_mutex_t lock;
    bool stopped, shut;
    struct feeds_waited waited[REPL_WAITS_MAX];
    size_t waited_count;
    bool waits_lack;                               /* for somebody who is not named yet */
    unsigned copies;                               /* being served */
    uint64_t stream[MANIFEST_STREAM_WORDS], epoch; /* at the last look */
    uint64_t streams_begun, copies_begun, rewinds, refused_copies;
    struct repl_feed feeds[REPL_FEEDS_MAX];
};

/* ---- feeds.c ---- */

/* data_history; the figures have it from then on. */
size_t feed_history(struct repl_feeds *feeds, uint64_t stream[MANIFEST_STREAM_WORDS],
                    struct manifest_reign reigns[MANIFEST_HISTORY_MAX]);
/* The feed is NAME's from now on: an older feed of that name ends, as its follower has come again.
 * False: nobody may follow now. */
bool feed_enter(struct repl_feed *feed, const char *name);
void feed_set_state(struct repl_feed *feed, enum repl_feed_state state);
/* Takes one of the places for copies, until the feed ends or gives it back. False: none is left. */
bool feed_take_place(struct repl_feed *feed);
void feed_give_place(struct repl_feed *feed);
/* Returns whether a follower would get a copy now. */
bool feed_has_place(struct repl_feed *feed);

/* Its figures have grown. */
void feed_acked(struct repl_feed *feed);
/* Its stream has ended: its word is not to be had any more. */
void feed_unsync(struct repl_feed *feed);

/* ---- feed.c ---- */

void feed_run(struct repl_feed *feed); /* the thread, from its first line to its end */
/* False: it is over. */
bool feed_say(struct repl_feed *feed, const struct repl_line *line);
/* Says SERVER_ERROR with that text, and logs it. Always false. */
__attribute__((format(printf, 2, 3))) bool feed_refuse(struct repl_feed *feed, const char *format,
                                                       ...);
bool feed_say_busy(struct repl_feed *feed);

/* ---- feed_stream.c ---- */

/* After STREAM was said. Returns when it is over. */
void feed_stream(struct repl_feed *feed, uint64_t lsn, uint64_t epoch);
/* Returns whether a sound record begins there, or the journal ends there. False: say COPY. */
bool feed_stream_begins(struct repl_feed *feed, uint64_t lsn, char why[REPL_TEXT_MAX + 1]);
/* What stands before that here; nothing (`sum` is 0) if that is gone or cannot be read. */
void feed_stream_before(struct repl_feed *feed, uint64_t lsn, struct journal_before *before);

/* ---- feed_copy.c; false: it is over ---- */

bool feed_copy_begin(struct repl_feed *feed);
bool feed_copy_file(struct repl_feed *feed, const struct repl_line *line);
void feed_copy_end(struct repl_feed *feed); /* also if none began */

#endif
