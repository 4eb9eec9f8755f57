/*
 * follow.c: takes another node's journal, and carries it out.
 *
 * The applier reads the journal's files, as a feed does: what is written is in the system's memory.
 * Replay wants nobody else there, so it goes in slices with the world stopped, none longer than
 * SLICE_US but for one event, and at least as long without, so that readers have half of the time
 * even where it is far behind.
 */
#include "data/follow.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/wait.h"
#include "data/follow_private.h"
#include "row/row_follow.h"

#define SLICE_US      1000u /* with the world stopped */
#define SLICE_RECORDS 64u   /* from one look at the clock to the next */
#define GAP_US        200u  /* without, at least */
#define AGAIN_MS      100u  /* what cannot be carried out yet */
#define READ_MS       1u    /* pages that were asked for */
#define SEE_US        100000u
#define US_A_MS       1000u

/* ---- its life ---- */

void follow_create(struct data *data, const struct settings *settings)
{
    struct follow *follow = memory_zalloc(sizeof(*follow));

    CHECK(pthread_mutex_init(&follow->lock, NULL) == 0);
    thread_cond_init(&follow->work);
    follow->memory = follow_memory_create(settings);
    atomic_store(&follow->has_room, true); /* a start had some */
    data->follow = follow;
}

void follow_destroy(struct data *data)
{
    struct follow *follow = data->follow;

    if (follow == NULL) {
        return;
    }
    CHECK(!follow->started);
    recovery_fini(&follow->recovery);
    pthread_mutex_destroy(&follow->lock);
    pthread_cond_destroy(&follow->work);
    free(follow->memory);
    free(follow);
    data->follow = NULL;
}

void data_cut(struct data *data, uint64_t lsn)
{
    CHECK(data->follow != NULL && data->journal == NULL);
    data->follow->recovery.cut_lsn = lsn;
}

bool data_follows(const struct data *data)
{
    return data->follow != NULL && !atomic_load(&data->follow->over);
}

uint64_t data_applied(const struct data *data)
{
    return atomic_load(&data->follow->applied);
}

uint64_t data_head(const struct data *data)
{
    return data_follows(data) ? data_applied(data) : journal_head(data->journal);
}

bool data_readable(const struct data *data)
{
    uint64_t applied = data_applied(data);

    return applied > 0 && applied >= data->follow->readable_lsn;
}

bool data_may_store(const struct data *data)
{
    return !data_follows(data) || (data_readable(data) && !atomic_load(&data->follow->failed));
}

/* ---- taking ---- */

uint64_t data_reign(const struct data *data)
{
    return atomic_load(&data->reign);
}

void data_position(struct data *data, struct data_position *position)
{
    *position = (struct data_position){.lsn = journal_head(data->journal)};
    if (position->lsn == 0) {
        return;
    }
    pthread_mutex_lock(&data->lock);
    const struct manifest *manifest = data->manifest;

    memcpy(position->stream, manifest->stream, sizeof(manifest->stream));
    for (size_t i = 0; i < manifest->history_count; i++) {
        if (manifest->history[i].lsn < position->lsn) {
            position->epoch = manifest->history[i].epoch;
        }
    }
    pthread_mutex_unlock(&data->lock);
}

bool data_take_stream(struct data *data, const uint64_t stream[MANIFEST_STREAM_WORDS],
                      char error[DATA_ERROR_MAX])
{
    CHECK(journal_head(data->journal) == 0);
    pthread_mutex_lock(&data->lock);
    memcpy(data->manifest->stream, stream, sizeof(data->manifest->stream));
    bool stored = data_store(data, error);

    pthread_mutex_unlock(&data->lock);
    return stored;
}

/*
 * The manifest's history may be ahead of the journal: a copy's is. But where tables are ahead, too,
 * a reign that the copy's leader had not heard of begins above what they hold: else another node
 * leads than the one they are of, which had come further. Then they are of no moment of this one.
 */
static bool follow_note_reign(struct data *data, uint64_t epoch, uint64_t lsn)
{
    bool noted = false;

    pthread_mutex_lock(&data->lock);
    struct manifest *manifest = data->manifest;

    for (size_t i = 0; i < manifest->history_count && !noted; i++) {
        noted = manifest->history[i].lsn == lsn && manifest->history[i].epoch == epoch;
    }
    if (!noted && recovery_parts(&data->follow->recovery, epoch, lsn)) {
        atomic_store(&data->follow->readable_lsn, UINT64_MAX);
    } else {
        noted = noted || manifest_add_reign(manifest, epoch, lsn);
    }
    pthread_mutex_unlock(&data->lock);
    if (noted) {
        atomic_store(&data->reign, epoch);
    }
    return noted;
}

/* Notes the reigns in what was taken. False: the two histories contradict each other. */
static bool follow_note_reigns(struct data *data, uint64_t lsn, const uint64_t *records,
                               size_t length, char error[DATA_ERROR_MAX])
{
    for (size_t at = 0; at < length;) {
        const uint64_t *record = records + at / JOURNAL_UNIT;

        if (journal_word_type(record[0]) == JOURNAL_REIGN &&
            !follow_note_reign(data, record[1], lsn + at)) {
            return data_refuse(error,
                               "epoch %llu begins at LSN %llu, and the history in %s/" MANIFEST_NAME
                               " says otherwise",
                               (unsigned long long)record[1], (unsigned long long)(lsn + at),
                               data->directory);
        }
        at += journal_word_bytes(record[0]);
    }
    return true;
}

static enum data_taken follow_no_room(struct data *data, char error[DATA_ERROR_MAX])
{
    struct journal_stats stats;

    error[0] = '\0';
    journal_stats(data->journal, &stats);
    if (stats.failed) {
        data_refuse(error, "the journal cannot be written: %s", stats.error);
        return DATA_FAILED;
    }
    if (stats.full) {
        data_refuse(error, "the journal has no room: %s; make room on the disk", stats.error);
    }
    return DATA_NO_ROOM;
}

enum data_taken data_take(struct data *data, uint64_t lsn, const void *bytes, size_t length,
                          size_t *taken, char error[DATA_ERROR_MAX])
{
    struct journal_writer *writer = &data->follow->writer;
    char why[JOURNAL_ERROR_MAX];

    *taken = 0;
    if (writer->journal == NULL) {
        journal_writer_init(writer, data->journal);
    }
    if (lsn != journal_head(data->journal)) {
        data_refuse(error, "records from LSN %llu on came where those from %llu on belong",
                    (unsigned long long)lsn, (unsigned long long)journal_head(data->journal));
        return DATA_BAD;
    }
    enum journal_appended appended = journal_append(writer, bytes, length, taken, why);

    if (!follow_note_reigns(data, lsn, bytes, *taken, error)) {
        return DATA_BAD;
    }
    if (appended == JOURNAL_APPENDED || *taken > 0) {
        return DATA_TAKEN;
    }
    if (appended == JOURNAL_APPEND_BAD) {
        data_refuse(error, "%s", why);
        return DATA_BAD;
    }
    return follow_no_room(data, error);
}

/* ---- one record ---- */

void follow_record(const uint64_t *words, uint64_t lsn, struct journal_record *record)
{
    *record = (struct journal_record){
        .lsn = lsn,
        .type = journal_word_type(words[0]),
        .a = (uint8_t)(words[0] >> 48),
        .b = (uint8_t)(words[0] >> 56),
        .payload = words + 1,
        .bytes = journal_word_bytes(words[0]) - JOURNAL_HEADER_BYTES,
    };
}

bool follow_event(const struct journal_record *record, struct change_record_event *event)
{
    struct change change;

    return record->type == CHANGE_RECORD_EVENT &&
           change_record_decode(record->type, record->a, record->b, record->payload, record->bytes,
                                &change, event) == CHANGE_RECORD_IS_EVENT &&
           event->space <= CHANGE_SPACE_MAX;
}

/* Spaces that a reload has added since the start. */
void follow_see_spaces(struct follow *follow)
{
    struct recovery *recovery = &follow->recovery;

    pthread_mutex_lock(&recovery->data->lock); /* a checkpoint replaces the manifest */
    barrier_stop(follow->barrier);
    const struct spaces *spaces = *follow->spaces;

    for (size_t i = 0; i < spaces->count; i++) {
        bool there = !data_stores(&spaces->at[i]->settings);

        for (size_t k = 0; k < recovery->count && !there; k++) {
            there = recovery->spaces[k]->space == spaces->at[i];
        }
        if (!there) {
            recovery_add_space(recovery, spaces->at[i]);
            recovery->spaces[recovery->count - 1]->known = NULL;
        }
    }
    barrier_go(follow->barrier);
    pthread_mutex_unlock(&recovery->data->lock);
}

/*
 * Prepares for the record that a slice begins with: a space that begins is named in the manifest,
 * whose lock nobody waits for with the world stopped. False: the configuration lacks it.
 */
static bool follow_prepare(struct data *data, const struct journal_record *record)
{
    struct recovery *recovery = &data->follow->recovery;
    struct change_record_event event;
    struct change_space_head head;

    if (!follow_event(record, &event) || event.event != CHANGE_EVENT_SPACE ||
        recovery->by_number[event.space] != NULL ||
        !change_space_head_decode(event.bytes, event.length, &head)) {
        return true;
    }
    follow_see_spaces(data->follow);
    pthread_mutex_lock(&data->lock);
    bool named = recovery_replay_name(recovery, record->lsn, event.space, &head);

    pthread_mutex_unlock(&data->lock);
    return named;
}

/* Returns whether a record may be carried out in this slice. World stopped. */
static bool follow_is_ready(const struct recovery *recovery, const struct journal_record *record)
{
    struct change_record_event event;

    if (LIKELY(!follow_event(record, &event))) {
        return true;
    }
    const struct recovery_space *space = recovery->by_number[event.space];

    if (space == NULL) {
        return event.event != CHANGE_EVENT_SPACE; /* the next slice prepares it */
    }
    return !space->begun || row_follow_ready(space->space->engine->row, event.event, event.bytes,
                                             event.length, data_may_store(recovery->data));
}

/* ---- a slice ---- */

static enum sliced follow_take(struct data *data, const struct journal_record *record)
{
    struct recovery *recovery = &data->follow->recovery;
    enum sliced sliced;

    if (!follow_is_ready(recovery, record)) {
        return SLICED_WAITS;
    }
    if (follow_pages_take(data, record, &sliced)) {
        return sliced;
    }
    return recovery_replay_take(recovery, record) ? SLICED : SLICED_FAILED;
}

/* World stopped. *at: bytes of what was read that were carried out before, and now. */
static enum sliced follow_slice(struct data *data, uint64_t lsn, size_t *at)
{
    struct follow *follow = data->follow;
    const struct journal_reader *reader = &follow->reader;
    uint64_t until_us = clock_monotonic_us() + SLICE_US;
    enum sliced sliced = SLICED;

    follow_pages_see(follow);
    for (unsigned n = 1; *at < reader->length && sliced == SLICED; n++) {
        const uint64_t *words = reader->records + *at / JOURNAL_UNIT;
        struct journal_record record;

        follow_record(words, lsn + *at, &record);
        if (record.type >= JOURNAL_TYPES_RESERVED) {
            sliced = follow_take(data, &record);
        }
        *at += sliced == SLICED ? journal_word_bytes(words[0]) : 0;
        if (n % SLICE_RECORDS == 0 && clock_monotonic_us() >= until_us) {
            break;
        }
    }
    if (!recovery_replay_flush_all(&follow->recovery)) {
        return SLICED_FAILED;
    }
    if (sliced == SLICED_READS) {
        follow_pages_ask(data, *at);
    }
    return sliced;
}

/* True: it was due. grown: what follow_memory_look says. */
static bool follow_see(struct follow *follow, uint64_t now_us, char grown[DATA_ERROR_MAX])
{
    if (now_us - follow->seen_us < SEE_US) {
        return false;
    }
    follow->seen_us = now_us;
    for (size_t i = 0; i < follow->recovery.count; i++) {
        struct row *row = follow->recovery.spaces[i]->space->engine->row;

        if (row_follows(row)) {
            row_follow_see(row);
        }
    }
    follow_memory_look(follow, grown);
    return true;
}

static enum sliced follow_stop_and_slice(struct data *data, uint64_t lsn, size_t *at)
{
    struct follow *follow = data->follow;
    char grown[DATA_ERROR_MAX];

    barrier_stop(follow->barrier);
    uint64_t began_us = clock_monotonic_us();
    enum sliced sliced = follow_slice(data, lsn, at);
    bool seen = follow_see(follow, began_us, grown);

    if (sliced == SLICED_FAILED) { /* only a start can carry on */
        atomic_store(&follow->failed, true);
    } else {
        atomic_store(&follow->applied, lsn + *at); /* before anybody can image what it did */
    }
    barrier_go(follow->barrier);
    uint64_t took_us = clock_monotonic_us() - began_us;

    follow->moved(follow->context);
    if (seen) {
        follow_memory_tell(follow, grown);
    }
    if (sliced == SLICED) {
        wait_us(took_us > GAP_US ? took_us : GAP_US);
    }
    return sliced;
}

/* ---- the applier ---- */

/* Says it once, and has figures say it. "": it is over. */
static void follow_tell(struct follow *follow, const char *why)
{
    enum follow_news news = follow_say(follow, follow->trouble, why);

    if (news == FOLLOW_BEGINS || news == FOLLOW_OTHERWISE) {
        log_error("what is received is not carried out: %s", why);
    } else if (news == FOLLOW_OVER) {
        log_info("what is received is carried out again");
    }
}

/* False: it is to end. */
static bool follow_wait(struct follow *follow, unsigned ms, bool for_more)
{
    uint64_t until_us = clock_monotonic_us() + ms * US_A_MS;
    bool waits = true;

    pthread_mutex_lock(&follow->lock);
    while (!follow->ending && !(for_more && follow->more) && waits) {
        waits = wait_until(&follow->work, &follow->lock, until_us);
    }
    follow->more = false;
    bool goes_on = !follow->ending;

    pthread_mutex_unlock(&follow->lock);
    return goes_on;
}

/* Until the next slice, beside what the last one left readers. */
static unsigned pause_ms(enum sliced sliced, bool again)
{
    return sliced == SLICED_READS && !again                   ? READ_MS
           : sliced == SLICED_READS || sliced == SLICED_WAITS ? AGAIN_MS / 10
                                                              : 0;
}

/* What was read. False: it is to end. */
static bool follow_carry_out(struct data *data)
{
    struct follow *follow = data->follow;
    uint64_t lsn = follow->reader.at - follow->reader.length;

    for (size_t at = 0; at < follow->reader.length;) {
        struct journal_record record;

        promote_look(data);
        follow_record(follow->reader.records + at / JOURNAL_UNIT, lsn + at, &record);
        follow->error[0] = '\0';
        bool prepared = follow_prepare(data, &record);
        uint64_t asked_lsn = follow->asked_lsn;
        enum sliced sliced = prepared ? follow_stop_and_slice(data, lsn, &at) : SLICED_WAITS;
        bool again = asked_lsn == lsn + at;

        if (sliced == SLICED_WAITS) { /* for no page: clients' are read meanwhile */
            follow_pages_release(data);
        }
        if (sliced == SLICED || follow->error[0] != '\0') { /* who waits may be in trouble still */
            follow_tell(follow, follow->error);
        }
        if (sliced == SLICED_FAILED) {
            while (follow_wait(follow, 1000, false)) {
            }
        }
        if (!follow_wait(follow, pause_ms(sliced, again), false)) {
            return false;
        }
    }
    follow_pages_release(data);
    return true;
}

static void *follow_main(void *context)
{
    struct data *data = context;
    struct follow *follow = data->follow;
    bool goes_on = true;

    while (goes_on) {
        promote_look(data);
        switch (journal_reader_next(&follow->reader, journal_written(data->journal))) {
        case JOURNAL_READ_RECORDS:
            goes_on = follow_carry_out(data);
            break;
        case JOURNAL_READ_NOTHING:
            follow_slots_see(data);
            goes_on = follow_wait(follow, AGAIN_MS, true);
            break;
        default:
            follow_tell(follow, follow->reader.error);
            goes_on = follow_wait(follow, AGAIN_MS, false);
            break;
        }
    }
    return NULL;
}

bool data_follow(struct data *data, struct barrier *barrier, struct spaces *const *spaces,
                 void (*moved)(void *context), void *context)
{
    struct follow *follow = data->follow;

    follow->barrier = barrier;
    follow->spaces = spaces;
    follow->moved = moved;
    follow->context = context;
    follow->recovery.error = follow->error;
    follow->ending = false; /* it began before, if a promotion was refused */
    journal_reader_init(&follow->reader, data->vfs, data->directory, data_applied(data));
    follow->started = thread_start(&follow->thread, follow_main, data, "applier");
    if (!follow->started) {
        journal_reader_fini(&follow->reader);
    }
    return follow->started;
}

void data_follow_moved(struct data *data)
{
    struct follow *follow = data->follow;

    if (follow == NULL) {
        return;
    }
    pthread_mutex_lock(&follow->lock);
    follow->more = true;
    pthread_cond_signal(&follow->work);
    pthread_mutex_unlock(&follow->lock);
}

void follow_end(struct data *data)
{
    struct follow *follow = data->follow;

    if (follow == NULL || !follow->started) {
        return;
    }
    pthread_mutex_lock(&follow->lock);
    follow->ending = true;
    pthread_cond_signal(&follow->work);
    pthread_mutex_unlock(&follow->lock);
    pthread_join(follow->thread, NULL);
    follow->started = false;
    follow_pages_release(data);
    journal_reader_fini(&follow->reader);
}
