/* feed.c: one follower's connection: its requests, and what is answered by the two histories. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "repl/control.h"
#include "repl/feed_private.h"

#define SECOND_US 1000000u

/* ---- saying ---- */

/* Who has a copy come may sync or read a file meanwhile, and leave what is sent where it is. */
static unsigned feed_silence_s(const struct repl_feed *feed)
{
    return feed->copy != NULL ? REPL_PAUSE_S : REPL_SILENCE_S;
}

bool feed_say(struct repl_feed *feed, const struct repl_line *line)
{
    char text[REPL_LINE_MAX];
    size_t length = repl_compose(line, text);

    return repl_link_write(&feed->link, text, length, feed_silence_s(feed));
}

bool feed_refuse(struct repl_feed *feed, const char *format, ...)
{
    struct repl_line line = {.kind = REPL_ERROR};
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line.text, sizeof(line.text), format, arguments);
    va_end(arguments);
    log_warning("a follower was refused name=%s peer=%s reason=\"%s\"", feed->figures.name,
                feed->figures.peer, line.text);
    (void)feed_say(feed, &line);
    return false;
}

bool feed_say_busy(struct repl_feed *feed)
{
    const struct repl_line line = {.kind = REPL_BUSY, .seconds = FEED_BUSY_S};

    (void)feed_say(feed, &line);
    return false;
}

/* The next copy is to be asked for on this connection, or later. */
static bool feed_say_copy(struct repl_feed *feed, const char *why)
{
    struct repl_line line = {.kind = REPL_COPY};

    if (!feed_has_place(feed)) {
        return feed_say_busy(feed);
    }
    snprintf(line.text, sizeof(line.text), "%s", why);
    log_info("a follower needs a copy name=%s reason=\"%s\"", feed->figures.name, why);
    return feed_say(feed, &line);
}

/* ---- follow ---- */

/* What this node says of a follower's history. */
struct feed_verdict {
    enum { FEED_STREAM, FEED_REWIND, FEED_COPY } answer;
    uint64_t epoch; /* STREAM: the present one; REWIND: the follower's */
    uint64_t lsn;   /* REWIND: where that ended here */
    uint64_t stream[MANIFEST_STREAM_WORDS];
    struct journal_before before; /* STREAM: what the follower must have as well */
    char why[REPL_TEXT_MAX + 1];  /* COPY */
};

/* Says where the epoch ended here, by the list of reigns; the last epoch ends at `written`. False:
 * the epoch is not in the list. */
static bool feed_epoch_end(const struct manifest_reign *reigns, size_t count, uint64_t epoch,
                           uint64_t written, uint64_t *end)
{
    for (size_t i = 0; i < count; i++) {
        if (reigns[i].epoch == epoch) {
            *end = i + 1 < count ? reigns[i + 1].lsn : written;
            return true;
        }
    }
    return false;
}

static void feed_judge_history(const struct repl_line *asked, const struct manifest_reign *reigns,
                               size_t count, uint64_t written, struct feed_verdict *verdict)
{
    uint64_t end;

    if (memcmp(asked->stream, verdict->stream, sizeof(asked->stream)) != 0) {
        verdict->answer = FEED_COPY;
        snprintf(verdict->why, sizeof(verdict->why), "this is another stream: %016llx%016llx",
                 (unsigned long long)verdict->stream[0], (unsigned long long)verdict->stream[1]);
    } else if (!feed_epoch_end(reigns, count, asked->epoch, written, &end)) {
        verdict->answer = FEED_COPY;
        snprintf(verdict->why, sizeof(verdict->why), "epoch %llu is not in the history here",
                 (unsigned long long)asked->epoch);
    } else if (asked->lsn > end) {
        verdict->answer = FEED_REWIND;
        verdict->epoch = asked->epoch;
        verdict->lsn = end;
    }
}

/* Decides what a follower is told. One that has nothing yet may have the whole stream, if the
 * journal still has its beginning. */
static void feed_judge(struct repl_feed *feed, const struct repl_line *asked,
                       struct feed_verdict *verdict)
{
    struct repl_feeds *feeds = feed->feeds;
    struct manifest_reign *reigns = memory_zalloc(MANIFEST_HISTORY_MAX * sizeof(*reigns));
    uint64_t written = journal_written(feeds->journal); /* first: no reign begins above it */

    *verdict = (struct feed_verdict){.answer = FEED_STREAM};
    size_t count = feed_history(feeds, verdict->stream, reigns);

    verdict->epoch = count > 0 ? reigns[count - 1].epoch : 0;
    bool has = (asked->stream[0] | asked->stream[1]) != 0;

    if (has) {
        feed_judge_history(asked, reigns, count, written, verdict);
    }
    free(reigns);
    if (verdict->answer == FEED_STREAM && has) {
        feed_stream_before(feed, asked->lsn, &verdict->before);
    }
    if (verdict->answer == FEED_STREAM && !verdict->before.crosses &&
        !feed_stream_begins(feed, asked->lsn, verdict->why)) {
        verdict->answer = FEED_COPY;
    }
}

static bool feed_say_rewind(struct repl_feed *feed, const struct feed_verdict *verdict)
{
    const struct repl_line line = {
        .kind = REPL_REWIND, .epoch = verdict->epoch, .lsn = verdict->lsn};

    pthread_mutex_lock(&feed->feeds->lock);
    feed->feeds->rewinds++;
    pthread_mutex_unlock(&feed->feeds->lock);
    log_info("a follower is to go back name=%s epoch=%llu lsn=%llu", feed->figures.name,
             (unsigned long long)line.epoch, (unsigned long long)line.lsn);
    return feed_say(feed, &line);
}

static bool feed_say_sum(struct repl_feed *feed, uint64_t from, uint64_t lsn, uint64_t sum)
{
    const struct repl_line line = {.kind = REPL_SUM, .from = from, .lsn = lsn, .sum = sum};

    return sum == 0 || feed_say(feed, &line); /* 0: it is not known */
}

/*
 * Has the follower compare what stands before the records to come, while both have it: two may have
 * written under one epoch. The last record alone is for one that has little of its journal left.
 */
static bool feed_say_before(struct repl_feed *feed, uint64_t lsn,
                            const struct journal_before *before)
{
    if (!feed_say_sum(feed, before->from, lsn, before->sum) ||
        (before->last > before->from && !feed_say_sum(feed, before->last, lsn, before->last_sum))) {
        return false;
    }
    return !before->crosses ||
           feed_refuse(feed,
                       "replication: no record begins at LSN %llu here: two have led in one epoch",
                       (unsigned long long)lsn);
}

static bool feed_follow(struct repl_feed *feed, const struct repl_line *asked)
{
    struct feed_verdict verdict;

    feed_judge(feed, asked, &verdict);
    if (verdict.answer == FEED_COPY) {
        return feed_say_copy(feed, verdict.why);
    }
    if (verdict.answer == FEED_REWIND) {
        return feed_say_rewind(feed, &verdict);
    }
    struct repl_line line = {.kind = REPL_STREAM, .epoch = verdict.epoch, .lsn = asked->lsn};

    memcpy(line.stream, verdict.stream, sizeof(line.stream));
    feed_copy_end(feed);
    feed_give_place(feed);
    if (feed_say(feed, &line) && feed_say_before(feed, asked->lsn, &verdict.before)) {
        feed_stream(feed, asked->lsn, verdict.epoch);
    }
    return false;
}

/* ---- requests ---- */

static bool feed_greet(struct repl_feed *feed, const struct repl_line *asked)
{
    const struct repl_feeds *feeds = feed->feeds;

    if (strcmp(asked->group, feeds->group) != 0) {
        return feed_refuse(feed, "replication: group %s was asked for, this node is of group %s",
                           asked->group, feeds->group);
    }
    if (strcmp(asked->name, feeds->name) == 0) {
        return feed_refuse(feed,
                           "replication: %s is the name of this node, a follower needs one "
                           "of its own (replication.name)",
                           asked->name);
    }
    if (!feed_enter(feed, asked->name)) {
        return feed_refuse(feed, "replication: a new stream begins here; come again");
    }
    return asked->kind == REPL_FOLLOW ? feed_follow(feed, asked) : feed_copy_begin(feed);
}

/* What an operator asks for: always the end of the connection. */
static bool feed_control(struct repl_feed *feed, const char *text, size_t length)
{
    const struct repl_control *control = feed->feeds->control;
    char answer[REPL_LINE_MAX];
    bool again;
    size_t answer_length = repl_control_run(control, feed->link.fd, text, length, answer, &again);

    (void)repl_link_write(&feed->link, answer, answer_length, REPL_SILENCE_S);
    if (again) {
        control->again(control->context);
    }
    return false;
}

static bool feed_answer(struct repl_feed *feed, const char *text, size_t length)
{
    struct repl_line line;
    char error[REPL_TEXT_MAX + 1];

    if (repl_control_begins(text, length)) {
        return feed_control(feed, text, length);
    }
    if (!repl_parse(REPL_OF_FOLLOWER, text, length, &line, error)) {
        return feed_refuse(feed, "%s", error);
    }
    switch (line.kind) {
    case REPL_FOLLOW:
    case REPL_COPY_REQUEST:
        return feed_greet(feed, &line);
    case REPL_FILE_REQUEST:
        return feed_copy_file(feed, &line);
    default:
        return feed_refuse(feed, "replication: follow, copy or file is expected");
    }
}

/* The next line; NULL: it is over. */
static const char *feed_await_line(struct repl_feed *feed, size_t *length)
{
    struct repl_link *link = &feed->link;
    uint64_t until_us = clock_monotonic_us() + feed_silence_s(feed) * (uint64_t)SECOND_US;
    const char *line;

    while ((line = repl_link_line(link, length)) == NULL) {
        if (*length > REPL_LINE_MAX) {
            (void)feed_refuse(feed, "replication: a line is longer than %u bytes", REPL_LINE_MAX);
            return NULL;
        }
        if (!repl_link_fill(link) || clock_monotonic_us() >= until_us) {
            return NULL;
        }
        if (link->in_length == 0 || memchr(link->in, '\n', link->in_length) == NULL) {
            repl_link_wait(link, until_us);
        }
    }
    return line;
}

void feed_run(struct repl_feed *feed)
{
    size_t length;
    const char *line;

    do {
        line = feed_await_line(feed, &length);
    } while (line != NULL && feed_answer(feed, line, length));
}
