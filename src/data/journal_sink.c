#include "data/journal_sink.h"

#include <string.h>

#include "base/check.h"
#include "row/row_log.h"

#define CHANGE_ROOM (JOURNAL_HEADER_BYTES + CHANGE_RECORD_BYTES_MAX)
/* Each event has a header, its length and up to 7 zeroes besides, and a state of 192 bytes. */
#define EVENTS_ROOM (CHANGE_EVENTS_BYTES_MAX + CHANGE_EVENTS_BYTES_MAX / 8)
#define EVENT_WORDS (CHANGE_EVENT_BYTES_MAX / 8 + 2)

_Static_assert(EVENT_WORDS * 8 <= JOURNAL_PAYLOAD_MAX, "an event is one record");
_Static_assert(ROW_KIND_SPACE_MAX + CHANGE_SPACE_HEAD_BYTES <= CHANGE_EVENT_BYTES_MAX,
               "SPACE has room for its head");
_Static_assert(CHANGE_STOPPED_MAX *CHANGE_ROOM <= EVENTS_ROOM, "changes fit in their place");
_Static_assert(2 * EVENTS_ROOM < JOURNAL_BUFFER_BYTES_MIN, "there is such room");

/* ---- a worker's sink ---- */

static struct journal_sink *sink_of(struct change_sink *sink)
{
    return (struct journal_sink *)sink;
}

static bool sink_reserve(struct change_sink *sink)
{
    return journal_reserve(&sink_of(sink)->writer, CHANGE_ROOM);
}

static uint64_t put_change(struct journal_writer *writer, const struct change *change)
{
    struct change_record record;

    change_record_encode(change, &record);
    return journal_put(writer, record.type, record.a, record.b, record.words, record.bytes);
}

static uint64_t sink_put(struct change_sink *sink, const struct change *change)
{
    return put_change(&sink_of(sink)->writer, change);
}

static uint64_t sink_put_slot(struct change_sink *sink, uint32_t space, uint64_t id, unsigned slot,
                              uint64_t value)
{
    CHECK(space <= CHANGE_SPACE_MAX);
    return journal_put_two(&sink_of(sink)->writer, CHANGE_RECORD_SLOT, (uint8_t)space,
                           change_record_slot(slot), id, value);
}

/* The room stays the writer's until its next commit. */
static void sink_cancel(struct change_sink *sink)
{
    (void)sink;
}

static const struct change_sink_functions sink_functions = {
    .reserve = sink_reserve,
    .put = sink_put,
    .put_slot = sink_put_slot,
    .cancel = sink_cancel,
};

void journal_sink_init(struct journal_sink *sink, struct journal *journal)
{
    sink->sink.functions = &sink_functions;
    journal_writer_init(&sink->writer, journal);
}

void journal_sink_fini(struct journal_sink *sink)
{
    journal_writer_fini(&sink->writer);
}

bool journal_sink_wrote(const struct journal_sink *sink)
{
    return sink->writer.wrote;
}

uint64_t journal_sink_submit(struct journal_sink *sink)
{
    return journal_submit(&sink->writer);
}

void journal_sink_want_room(struct journal_sink *sink)
{
    journal_want_room(sink->writer.journal, CHANGE_ROOM);
}

/* ---- the log of events ---- */

static struct journal_log *log_of(struct change_log *log)
{
    return (struct journal_log *)log;
}

/* If there is no room it may be because nobody has submitted what was put. */
static bool log_take(struct journal_log *log, size_t bytes)
{
    struct journal_writer *writer = &log->writer;

    writer->credit += atomic_exchange(&log->ahead, 0);
    bool room = journal_reserve(writer, bytes);

    if (room) {
        journal_give_back(writer, bytes);
    } else {
        (void)journal_submit(writer);
    }
    return room;
}

/* What is not used is kept, so mostly little is asked for. */
static bool log_reserve(struct change_log *log)
{
    return log_take(log_of(log), EVENTS_ROOM);
}

/* Waits for room with a writer of its own: the log's writer belongs to the thread that has stopped
 * the world. */
static void log_await(struct change_log *log)
{
    _Atomic uint64_t *ahead = &log_of(log)->ahead;
    struct journal_writer writer;
    uint64_t none = 0;

    if (atomic_load(ahead) >= EVENTS_ROOM) {
        return;
    }
    journal_writer_init(&writer, log_of(log)->writer.journal);
    (void)journal_await_room(&writer, EVENTS_ROOM);
    if (atomic_compare_exchange_strong(ahead, &none, writer.credit)) {
        writer.credit = 0;
    }
    journal_writer_fini(&writer);
}

bool journal_log_room(struct journal_log *log, size_t events)
{
    return log_take(log, events * JOURNAL_RECORD_MAX);
}

/* Writes the head of the event SPACE before the engine's part. */
static size_t with_head(const struct change_space_head *head, const void *bytes, size_t length,
                        unsigned char whole[CHANGE_EVENT_BYTES_MAX])
{
    CHECK(head->name[0] != '\0' && length <= CHANGE_EVENT_BYTES_MAX - CHANGE_SPACE_HEAD_BYTES);
    change_space_head_encode(head, whole);
    memcpy(whole + CHANGE_SPACE_HEAD_BYTES, bytes, length);
    return CHANGE_SPACE_HEAD_BYTES + length;
}

static void log_put(struct change_log *log, uint32_t space, enum change_event event,
                    const void *bytes, size_t length)
{
    uint64_t words[EVENT_WORDS];
    unsigned char headed[CHANGE_EVENT_BYTES_MAX];

    if (event == CHANGE_EVENT_SPACE) {
        CHECK(space <= CHANGE_SPACE_MAX);
        length = with_head(&log_of(log)->heads[space], bytes, length, headed);
        bytes = headed;
    }
    size_t whole = change_record_encode_event(words, bytes, length);

    (void)journal_put(&log_of(log)->writer, CHANGE_RECORD_EVENT, (uint8_t)space, (uint8_t)event,
                      words, whole);
}

static void log_change(struct change_log *log, const struct change *change)
{
    (void)put_change(&log_of(log)->writer, change);
}

void journal_log_init(struct journal_log *log, struct journal *journal)
{
    log->log = (struct change_log){
        .reserve = log_reserve, .await = log_await, .put = log_put, .change = log_change};
    memset(log->heads, 0, sizeof(log->heads));
    atomic_init(&log->ahead, 0);
    journal_writer_init(&log->writer, journal);
}

void journal_log_name(struct journal_log *log, uint32_t number, const char *name, const char *kind)
{
    CHECK(number <= CHANGE_SPACE_MAX);
    change_space_head_init(&log->heads[number], name, kind);
}

void journal_log_fini(struct journal_log *log)
{
    log->writer.credit += atomic_exchange(&log->ahead, 0);
    journal_writer_fini(&log->writer);
}

void journal_log_submit(struct journal_log *log)
{
    (void)journal_submit(&log->writer);
}

bool journal_log_commit(struct journal_log *log)
{
    return journal_commit(&log->writer);
}
