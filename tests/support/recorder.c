/* recorder.c: a list of records under one lock. */
#include "tests/support/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "row/row_data.h"

#define RECORD_HEADER_BYTES 8 /* as the journal's: LSNs are as far apart */
#define RECORDS_FIRST       1024

/* Under the lock. Returns its LSN. */
static uint64_t append(struct recorder *recorder, uint8_t type, uint8_t a, uint8_t b,
                       const uint64_t *words, size_t bytes)
{
    if (recorder->count == recorder->room) {
        recorder->room = recorder->room ? recorder->room * 2 : RECORDS_FIRST;
        recorder->records =
            realloc(recorder->records, recorder->room * sizeof(recorder->records[0]));
        CHECK(recorder->records != NULL);
    }
    uint64_t lsn = recorder->head;
    uint64_t *copy = memory_zalloc(bytes);
    memcpy(copy, words, bytes);
    recorder->records[recorder->count++] = (struct recorder_record){lsn, type, a, b, copy, bytes};
    recorder->head += RECORD_HEADER_BYTES + bytes;
    return lsn;
}

/* ---- changes ---- */

static bool sink_reserve(struct change_sink *sink)
{
    struct recorder_sink *mine = (struct recorder_sink *)sink;
    if (mine->recorder->refuse) {
        return false;
    }
    mine->reserved++;
    return true;
}

static uint64_t append_change(struct recorder *recorder, const struct change *change)
{
    struct change_record record;
    change_record_encode(change, &record);
    pthread_mutex_lock(&recorder->lock);
    uint64_t lsn = append(recorder, record.type, record.a, record.b, record.words, record.bytes);
    pthread_mutex_unlock(&recorder->lock);
    return lsn;
}

static uint64_t sink_put(struct change_sink *sink, const struct change *change)
{
    struct recorder_sink *mine = (struct recorder_sink *)sink;
    CHECK(mine->reserved > 0);
    mine->reserved--;
    return append_change(mine->recorder, change);
}

static void sink_cancel(struct change_sink *sink)
{
    struct recorder_sink *mine = (struct recorder_sink *)sink;
    CHECK(mine->reserved > 0);
    mine->reserved--;
}

static const struct change_sink_functions SINK_FUNCTIONS = {
    .reserve = sink_reserve, .put = sink_put, .cancel = sink_cancel};

void recorder_sink_init(struct recorder_sink *sink, struct recorder *recorder)
{
    *sink = (struct recorder_sink){{&SINK_FUNCTIONS}, recorder, 0};
}

/* ---- events ---- */

static bool log_reserve(struct change_log *log)
{
    struct recorder *recorder = (struct recorder *)log;
    recorder->events_room++;
    bool whole = recorder->event_bytes == CHANGE_EVENTS_BYTES_MAX;
    if (recorder->refuse || (recorder->narrow && !recorder->awaited && !whole)) {
        return false;
    }
    recorder->awaited = false;
    recorder->event_bytes = CHANGE_EVENTS_BYTES_MAX;
    return true;
}

static void log_await(struct change_log *log)
{
    ((struct recorder *)log)->awaited = true;
}

static void log_put(struct change_log *log, uint32_t space, enum change_event event,
                    const void *bytes, size_t length)
{
    struct recorder *recorder = (struct recorder *)log;
    uint64_t words[CHANGE_EVENT_BYTES_MAX / sizeof(uint64_t) + 2];
    CHECK(space <= CHANGE_SPACE_MAX);
    size_t payload = change_record_encode_event(words, bytes, length);
    CHECK(recorder->event_bytes >= RECORD_HEADER_BYTES + payload);
    recorder->event_bytes -= RECORD_HEADER_BYTES + payload;
    pthread_mutex_lock(&recorder->lock);
    append(recorder, CHANGE_RECORD_EVENT, (uint8_t)space, (uint8_t)event, words, payload);
    pthread_mutex_unlock(&recorder->lock);
}

static void log_change(struct change_log *log, const struct change *change)
{
    struct recorder *recorder = (struct recorder *)log;
    size_t room = CHANGE_EVENTS_BYTES_MAX / CHANGE_STOPPED_MAX;
    CHECK(recorder->event_bytes >= room);
    recorder->event_bytes -= room;
    append_change(recorder, change);
}

/* ---- life ---- */

void recorder_init(struct recorder *recorder)
{
    memset(recorder, 0, sizeof(*recorder));
    recorder->log = (struct change_log){
        .reserve = log_reserve, .await = log_await, .put = log_put, .change = log_change};
    recorder->event_bytes = CHANGE_EVENTS_BYTES_MAX; /* begin() is called with nothing asked */
    CHECK(pthread_mutex_init(&recorder->lock, NULL) == 0);
}

void recorder_cut(struct recorder *recorder, uint64_t lsn)
{
    while (recorder->count > 0 && recorder->records[recorder->count - 1].lsn >= lsn) {
        struct recorder_record *last = &recorder->records[--recorder->count];
        recorder->head = last->lsn;
        free(last->words);
    }
}

void recorder_fini(struct recorder *recorder)
{
    recorder_cut(recorder, 0);
    free(recorder->records);
    pthread_mutex_destroy(&recorder->lock);
}

/* ---- replay ---- */

struct replaying {
    struct recorder *recorder;
    struct engine *engine;
    uint64_t rows_from;
    struct engine_replay *changes;
    size_t count, batch;
};

static bool flush(struct replaying *replaying)
{
    size_t count = replaying->count;
    replaying->count = 0;
    return count == 0 || row_replay(replaying->engine->row, replaying->changes, count,
                                    replaying->recorder->error);
}

static bool replay_event(struct replaying *replaying, uint64_t lsn,
                         const struct change_record_event *event)
{
    bool rows = lsn >= replaying->rows_from;
    return event->space != replaying->engine->space ||
           (flush(replaying) &&
            row_replay_event(replaying->engine->row, event->event, lsn, rows, event->bytes,
                             event->length, replaying->recorder->error));
}

static bool replay_record(struct replaying *replaying, const struct recorder_record *record)
{
    struct engine_replay *next = &replaying->changes[replaying->count];
    struct change_record_event event;
    switch (change_record_decode(record->type, record->a, record->b, record->words, record->bytes,
                                 &next->change, &event)) {
    case CHANGE_RECORD_IS_EVENT:
        return replay_event(replaying, record->lsn, &event);
    case CHANGE_RECORD_IS_CHANGE:
        next->lsn = record->lsn;
        replaying->count += next->change.space == replaying->engine->space;
        return replaying->count < replaying->batch || flush(replaying);
    default:
        snprintf(replaying->recorder->error, ENGINE_ERROR_MAX, "a bad record");
        return false;
    }
}

bool recorder_replay(struct recorder *recorder, struct engine *engine, uint64_t from_lsn,
                     uint64_t rows_from_lsn, size_t batch)
{
    struct replaying replaying = {.recorder = recorder,
                                  .engine = engine,
                                  .rows_from = rows_from_lsn,
                                  .changes = memory_zalloc(batch * sizeof(*replaying.changes)),
                                  .batch = batch};
    bool done = true;
    recorder->error[0] = '\0';
    for (size_t i = 0; done && i < recorder->count; i++) {
        if (recorder->records[i].lsn >= from_lsn) {
            done = replay_record(&replaying, &recorder->records[i]);
        }
    }
    done = done && flush(&replaying);
    free(replaying.changes);
    return done;
}
