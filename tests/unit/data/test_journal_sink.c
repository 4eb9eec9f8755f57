/* test_journal_sink.c: changes and events into a journal on a simulated disk, and back out of it.
 */
#include "data/journal_sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/change_record.h"
#include "sim_journal.h"

static struct sim_journal disk;
static struct journal_sink sink;

static int setup(void **state)
{
    (void)state;
    sim_journal_open(&disk, JOURNAL_SYNC_EVERYSEC);
    journal_sink_init(&sink, disk.journal);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    journal_sink_fini(&sink);
    sim_journal_close(&disk);
    return 0;
}

static bool reserve(void)
{
    return sink.sink.functions->reserve(&sink.sink);
}

static uint64_t put(const struct change *change)
{
    assert_true(reserve());
    return sink.sink.functions->put(&sink.sink, change);
}

/* What a scan finds. */
struct found {
    unsigned changes, events;
    uint64_t lsn; /* of the last */
    struct change change;
    struct change_record_event event;
    char bytes[CHANGE_EVENT_BYTES_MAX];
};

static bool take(void *context, const struct journal_record *record)
{
    struct found *found = context;
    enum change_record_kind kind =
        change_record_decode(record->type, record->a, record->b, record->payload, record->bytes,
                             &found->change, &found->event);

    found->lsn = record->lsn;
    assert_int_not_equal(kind, CHANGE_RECORD_IS_BAD);
    found->changes += kind == CHANGE_RECORD_IS_CHANGE;
    if (kind == CHANGE_RECORD_IS_EVENT) {
        found->events++;
        memcpy(found->bytes, found->event.bytes, found->event.length);
    }
    return true;
}

static void scan(struct found *found)
{
    struct journal_scan scan = {.from = JOURNAL_FROM_OLDEST};

    memset(found, 0, sizeof(*found));
    (void)journal_scan(vfs_sim_vfs(disk.sim), SIM_JOURNAL_DIRECTORY, &scan, take, found);
}

static const struct change one_slot = {.type = CHANGE_SLOTS,
                                       .space = 200,
                                       .place = CHANGE_INSIDE,
                                       .id = 1234567890123,
                                       .named = 1u << 5,
                                       .set = 1u << 5,
                                       .values[5] = 77};

/* By the journal's thread. False: it has failed. */
static bool commit(struct journal_sink *from)
{
    uint64_t lsn = journal_sink_submit(from);

    while (journal_written(disk.journal) < lsn && !journal_failed(disk.journal)) {
    }
    return journal_written(disk.journal) >= lsn;
}

/* The short way of a change of one slot is the same record. */
static void test_put_slot(void **state)
{
    struct change change = one_slot;
    struct found found;
    (void)state;
    change.place = CHANGE_THERE;
    uint64_t first = put(&change);

    assert_true(reserve());
    uint64_t lsn = change_sink_put_slot(&sink.sink, 200, change.id, 5, 77);

    assert_true(lsn == first + 3 * sizeof(uint64_t) && journal_sink_wrote(&sink));
    assert_true(commit(&sink));
    scan(&found);
    assert_int_equal(found.changes, 2);
    assert_true(found.lsn == lsn && found.change.type == CHANGE_SLOTS &&
                found.change.place == CHANGE_THERE && found.change.space == 200);
    assert_true(found.change.id == change.id && found.change.values[5] == 77);
    assert_true(found.change.named == change.named && found.change.set == change.set);
}

static void test_changes_come_back(void **state)
{
    struct found found;
    (void)state;
    uint64_t first = put(&one_slot);

    assert_true(journal_sink_wrote(&sink));
    scan(&found);
    assert_int_equal(found.changes, 0);
    assert_true(commit(&sink));
    assert_false(journal_sink_wrote(&sink));
    assert_true(journal_written(disk.journal) > first);
    scan(&found);
    assert_int_equal(found.changes, 1);
    assert_true(found.lsn == first);
    assert_true(found.change.type == CHANGE_SLOTS && found.change.place == CHANGE_INSIDE);
    assert_true(found.change.space == 200 && found.change.id == one_slot.id);
    assert_true(found.change.named == 1u << 5 && found.change.values[5] == 77);
}

/* The largest there is. */
static void test_all_slots(void **state)
{
    struct change change = {.type = CHANGE_SLOTS, .named = 0xffff, .set = 0xffff, .id = 3};
    struct found found;
    (void)state;
    for (unsigned i = 0; i < CHANGE_SLOTS_MAX; i++) {
        change.values[i] = UINT64_MAX - i;
    }
    for (unsigned i = 0; i < 1000; i++) { /* each time with just the room it needs */
        put(&change);
        assert_true(commit(&sink));
    }
    scan(&found);
    assert_int_equal(found.changes, 1000);
    assert_memory_equal(found.change.values, change.values, sizeof(change.values));
}

/* What is submitted covers what another sink has put, and its LSN says so. */
static void test_covers_others(void **state)
{
    struct journal_sink other;
    (void)state;
    journal_sink_init(&other, disk.journal);
    uint64_t put_at = put(&one_slot);

    assert_true(commit(&other));
    assert_true(journal_written(disk.journal) > put_at);
    journal_sink_fini(&other);
}

/* Room that is cancelled or left over is not lost. */
static void test_no_room_is_lost(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10000; i++) {
        assert_true(reserve());
        sink.sink.functions->cancel(&sink.sink);
        if (i % 100 == 0) {
            assert_true(commit(&sink));
        }
    }
}

static unsigned fill(void)
{
    unsigned count = 0;

    while (reserve()) {
        sink.sink.functions->put(&sink.sink, &one_slot);
        count++;
    }
    return count;
}

/* Nothing is made durable: the buffer fills, and has room when it is. */
static void test_full_buffer_refuses(void **state)
{
    struct found found;
    (void)state;
    sim_journal_gate(&disk, VFS_SIM_FDATASYNC);
    unsigned count = fill();

    assert_true(count > 1000);
    assert_true(commit(&sink));
    sim_journal_ungate(&disk);
    assert_true(journal_sync_now(disk.journal));
    while (!reserve()) { /* given back just after the sync */
    }
    scan(&found);
    assert_int_equal(found.changes, count);
}

static void put_event(unsigned char fill_byte, size_t length)
{
    unsigned char bytes[CHANGE_EVENT_BYTES_MAX];

    memset(bytes, fill_byte, length);
    disk.log.log.put(&disk.log.log, 7, CHANGE_EVENT_OPEN, bytes, length);
}

/* As many events as are promised: the largest, and the smallest that carry a state. */
static void test_events_come_back(void **state)
{
    static const size_t lengths[] = {CHANGE_EVENT_BYTES_MAX, 192, 201};
    struct found found;
    unsigned count = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        assert_true(disk.log.log.reserve(&disk.log.log));
        for (size_t left = CHANGE_EVENTS_BYTES_MAX; left >= lengths[i]; left -= lengths[i]) {
            put_event((unsigned char)i, lengths[i]);
            count++;
        }
        assert_true(journal_log_commit(&disk.log));
    }
    scan(&found);
    assert_int_equal(found.events, count);
    assert_true(found.event.space == 7 && found.event.event == CHANGE_EVENT_OPEN);
    assert_int_equal(found.event.length, 201);
    for (size_t i = 0; i < found.event.length; i++) {
        assert_int_equal(found.bytes[i], 2);
    }
}

/* What nobody has written does not keep the log from going on. */
static void test_log_writes_for_itself(void **state)
{
    struct found found;
    unsigned rounds = 3 * SIM_JOURNAL_BUFFER_BYTES / CHANGE_EVENT_BYTES_MAX;

    (void)state;
    for (unsigned i = 0; i < rounds; i++) {
        while (!disk.log.log.reserve(&disk.log.log)) {
            assert_true(journal_sync_now(disk.journal)); /* of what it has written */
        }
        put_event(1, CHANGE_EVENT_BYTES_MAX);
    }
    assert_true(journal_log_commit(&disk.log));
    scan(&found);
    assert_int_equal(found.events, rounds);
}

/* What was awaited is the log's, however fast the workers fill the buffer again. */
static void test_workers_leave_what_was_awaited(void **state)
{
    struct change_log *log = &disk.log.log;

    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        fill();
        log->await(log);
        sim_journal_gate(&disk, VFS_SIM_FDATASYNC);
        fill();
        assert_true(log->reserve(log));
        sim_journal_ungate(&disk);
        put_event(1, CHANGE_EVENT_BYTES_MAX);
    }
    assert_true(journal_log_commit(&disk.log));
}

/* It holds no more than one reserve needs, awaited or not. */
static void test_awaited_twice_is_held_once(void **state)
{
    struct change_log *log = &disk.log.log;

    (void)state;
    log->await(log);
    log->await(log);
    assert_true(log->reserve(log));
    uint64_t once = disk.log.writer.credit;

    log->await(log);
    assert_true(log->reserve(log));
    assert_true(disk.log.writer.credit == once);
    log->await(log); /* given back with the log */
}

/* Where there is no room it says so after so many tries. */
static void test_awaiting_ends(void **state)
{
    struct change_log *log = &disk.log.log;

    (void)state;
    fill();
    sim_journal_break(&disk);
    log->await(log);
    assert_false(log->reserve(log));
}

static void test_failure(void **state)
{
    (void)state;
    put(&one_slot);
    sim_journal_break(&disk);
    assert_false(commit(&sink));
    assert_false(reserve());
    assert_false(disk.log.log.reserve(&disk.log.log));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_put_slot),
        TEST(test_changes_come_back),
        TEST(test_all_slots),
        TEST(test_covers_others),
        TEST(test_no_room_is_lost),
        TEST(test_full_buffer_refuses),
        TEST(test_events_come_back),
        TEST(test_log_writes_for_itself),
        TEST(test_workers_leave_what_was_awaited),
        TEST(test_awaited_twice_is_held_once),
        TEST(test_awaiting_ends),
        TEST(test_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
