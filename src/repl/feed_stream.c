/* feed_stream.c: records as they are written, the time each 200 ms, a sum where a segment ends. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "repl/feed_private.h"
#include "store/journal_reader.h"

_Static_assert(JOURNAL_READER_BYTES == REPL_DATA_MAX, "a read is a D");

#define TICK_US    (REPL_TICK_MS * 1000u)
#define SILENCE_US (REPL_SILENCE_S * 1000000u)
#define SAMPLE_US  1000u /* between two */

struct stream {
    struct repl_feed *feed;
    struct journal_reader reader;
    uint64_t epoch;
    uint64_t tick_us; /* when the next T is due */
    uint64_t goal;    /* what was written when it came: from there on it has caught up */
    const char *why;  /* it ended */
};

static bool stream_end(struct stream *stream, const char *why)
{
    stream->why = why;
    return false;
}

/* ---- what it says ---- */

static uint64_t wall_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000;
}

static bool stream_say(struct stream *stream, const struct repl_line *line)
{
    return feed_say(stream->feed, line) || stream_end(stream, "it does not read");
}

/* `durable` first: it is never above what is written. */
static bool stream_tick(struct stream *stream, uint64_t now_us)
{
    struct journal *journal = stream->feed->feeds->journal;

    if (now_us < stream->tick_us) {
        return true;
    }
    stream->tick_us = now_us + TICK_US;
    uint64_t durable = journal_durable(journal);
    const struct repl_line line = {.kind = REPL_TIME,
                                   .durable = durable,
                                   .written = journal_written(journal),
                                   .epoch = stream->epoch,
                                   .unix_us = wall_us()};

    if (journal_room(journal) != JOURNAL_ROOM && journal_reader_is_last(&stream->reader)) {
        return stream_end(stream, "the disk is full, and it reads what was given up");
    }
    return stream_say(stream, &line);
}

static bool stream_sum(struct stream *stream)
{
    const struct journal_link *previous = &stream->reader.header.previous;
    const struct repl_line line = {.kind = REPL_SUM,
                                   .from = previous->start,
                                   .lsn = stream->reader.header.start,
                                   .sum = previous->sum};

    if (!stream->reader.began || previous->start > line.lsn) {
        return true;
    }
    return stream_say(stream, &line);
}

/* The line goes right before the records, so that both are one write. */
static bool stream_records(struct stream *stream)
{
    struct repl_feed *feed = stream->feed;
    struct journal_reader *reader = &stream->reader;
    const struct repl_line line = {
        .kind = REPL_DATA, .lsn = reader->at - reader->length, .bytes = reader->length};
    char text[REPL_LINE_MAX];
    size_t length = repl_compose(&line, text);
    char *from = (char *)reader->records - length;

    CHECK(length <= JOURNAL_READER_FRONT);
    memcpy(from, text, length);
    if (!stream_sum(stream)) {
        return false;
    }
    if (!repl_link_write(&feed->link, from, length + reader->length, REPL_SILENCE_S)) {
        return stream_end(stream, "it does not read");
    }
    pthread_mutex_lock(&feed->feeds->lock);
    feed->figures.sent = reader->at;
    pthread_mutex_unlock(&feed->feeds->lock);
    return true;
}

/* ---- what it hears ---- */

/* Under the lock. */
static void stream_reached(struct repl_feed *feed, const struct repl_line *said)
{
    feed->figures.written = said->written;
    feed->figures.durable = said->durable;
    feed->figures.applied = said->applied;
    while (feed->sample_count > 0 && feed->samples[feed->sample_first].written <= said->written) {
        feed->sample_first = (feed->sample_first + 1) % FEED_SAMPLES;
        feed->sample_count--;
    }
}

/* Samples that come when there is no place are later than one that is there. */
static void stream_sample(struct repl_feed *feed, uint64_t written, uint64_t now_us)
{
    size_t last = (feed->sample_first + feed->sample_count + FEED_SAMPLES - 1) % FEED_SAMPLES;

    pthread_mutex_lock(&feed->feeds->lock);
    if (feed->sample_count == 0
            ? written > feed->figures.written
            : feed->sample_count < FEED_SAMPLES && now_us - feed->samples[last].us >= SAMPLE_US &&
                  feed->samples[last].written < written) {
        size_t at = (feed->sample_first + feed->sample_count++) % FEED_SAMPLES;

        feed->samples[at] = (struct feed_sample){written, now_us};
    }
    pthread_mutex_unlock(&feed->feeds->lock);
}

static bool stream_hear_line(struct stream *stream, const char *text, size_t length)
{
    struct repl_feed *feed = stream->feed;
    const struct repl_feed_stats *before = &feed->figures;
    struct repl_line line;
    char error[REPL_TEXT_MAX + 1];

    if (!repl_parse(REPL_OF_FOLLOWER, text, length, &line, error)) {
        (void)feed_refuse(feed, "%s", error);
        return stream_end(stream, "it sent what is no line");
    }
    if (line.kind != REPL_ACK) {
        (void)feed_refuse(feed, "replication: only A is expected in a stream");
        return stream_end(stream, "it sent another line than A");
    }
    if (line.written < before->written || line.durable < before->durable ||
        line.applied < before->applied || line.written > stream->reader.at) {
        (void)feed_refuse(feed, "replication: A fell, or is above what was sent");
        return stream_end(stream, "it acknowledged what cannot be");
    }
    pthread_mutex_lock(&feed->feeds->lock);
    stream_reached(feed, &line);
    feed->figures.caught_up = feed->figures.caught_up || line.written >= stream->goal;
    pthread_mutex_unlock(&feed->feeds->lock);
    feed_acked(feed);
    return true;
}

static bool stream_hear(struct stream *stream, uint64_t now_us)
{
    struct repl_link *link = &stream->feed->link;
    size_t length;
    const char *line;

    if (!repl_link_fill(link)) {
        return stream_end(stream, "it is gone");
    }
    while ((line = repl_link_line(link, &length)) != NULL) {
        if (!stream_hear_line(stream, line, length)) {
            return false;
        }
    }
    if (length > REPL_LINE_MAX) {
        return stream_end(stream, "it sent a line without an end");
    }
    return now_us < link->heard_us + SILENCE_US || stream_end(stream, "it is silent");
}

/* ---- the stream ---- */

/* Sleeps until more is written, the follower says something, or the next T is due. */
static void stream_sleep(struct stream *stream)
{
    struct repl_feed *feed = stream->feed;
    struct repl_feeds *feeds = feed->feeds;

    atomic_fetch_add(&feeds->sleeping, 1);
    atomic_store(&feed->sleeps, true);
    if (journal_written(feeds->journal) <= stream->reader.at) {
        repl_link_wait(&feed->link, stream->tick_us);
    }
    if (atomic_exchange(&feed->sleeps, false)) {
        atomic_fetch_sub(&feeds->sleeping, 1);
    }
}

static bool stream_gone(struct stream *stream)
{
    struct repl_line line = {.kind = REPL_COPY};

    snprintf(line.text, sizeof(line.text), "the journal before LSN %llu is gone",
             (unsigned long long)stream->reader.at);
    (void)stream_say(stream, &line);
    return stream_end(stream, "it was further behind than replication.keep");
}

static bool stream_bad(struct stream *stream)
{
    log_error("journal of a feed: %s", stream->reader.error);
    (void)feed_refuse(stream->feed, "replication: the journal cannot be read here");
    return stream_end(stream, "the journal cannot be read");
}

static bool stream_once(struct stream *stream)
{
    struct journal *journal = stream->feed->feeds->journal;
    uint64_t now_us = clock_monotonic_us();
    uint64_t written = journal_written(journal);

    if (!stream_tick(stream, now_us) || !stream_hear(stream, now_us)) {
        return false;
    }
    stream_sample(stream->feed, written, now_us);
    switch (journal_reader_next(&stream->reader, written)) {
    case JOURNAL_READ_RECORDS:
        return stream_records(stream);
    case JOURNAL_READ_NOTHING:
        stream_sleep(stream);
        return true;
    case JOURNAL_READ_GONE:
        return stream_gone(stream);
    case JOURNAL_READ_BAD:
        break;
    }
    return stream_bad(stream);
}

void feed_stream(struct repl_feed *feed, uint64_t lsn, uint64_t epoch)
{
    struct stream stream = {
        .feed = feed, .epoch = epoch, .goal = journal_written(feed->feeds->journal)};

    journal_reader_init(&stream.reader, feed->feeds->vfs, feed->feeds->directory, lsn);
    feed_set_state(feed, REPL_FEED_STREAMING);
    log_info("a follower streams name=%s peer=%s lsn=%llu", feed->figures.name, feed->figures.peer,
             (unsigned long long)lsn);
    feed->link.heard_us = clock_monotonic_us();
    while (stream_once(&stream)) {
    }
    feed_unsync(feed);
    log_info("a follower's stream ended name=%s lsn=%llu reason=\"%s\"", feed->figures.name,
             (unsigned long long)stream.reader.at, stream.why);
    journal_reader_fini(&stream.reader);
}

bool feed_stream_begins(struct repl_feed *feed, uint64_t lsn, char why[REPL_TEXT_MAX + 1])
{
    struct journal_reader reader;

    journal_reader_init(&reader, feed->feeds->vfs, feed->feeds->directory, lsn);
    enum journal_read found = journal_reader_next(&reader, journal_written(feed->feeds->journal));

    if (found == JOURNAL_READ_GONE) {
        snprintf(why, REPL_TEXT_MAX + 1, "the journal before LSN %llu is gone",
                 (unsigned long long)reader.at);
    } else if (found == JOURNAL_READ_BAD) {
        snprintf(why, REPL_TEXT_MAX + 1, "no record begins at LSN %llu here",
                 (unsigned long long)reader.at);
    }
    journal_reader_fini(&reader);
    return found == JOURNAL_READ_RECORDS || found == JOURNAL_READ_NOTHING;
}

void feed_stream_before(struct repl_feed *feed, uint64_t lsn, struct journal_before *before)
{
    struct repl_feeds *feeds = feed->feeds;
    enum journal_read found = journal_reader_before(feeds->vfs, feeds->directory, lsn,
                                                    journal_written(feeds->journal), before);

    if (found == JOURNAL_READ_BAD) {
        log_warning("the journal before LSN %llu cannot be read: a follower does not compare it "
                    "name=%s",
                    (unsigned long long)lsn, feed->figures.name);
    }
    if (found != JOURNAL_READ_RECORDS) {
        *before = (struct journal_before){.sum = 0};
    }
}
