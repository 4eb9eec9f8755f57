/* A directory that follows, with real tables: what its applier does where a file cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/barrier.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "data/data.h"
#include "data/follow.h"
#include "data/follow_private.h"
#include "data/journal_sink.h"
#include "engine/change_record.h"
#include "row/row_data.h"
#include "row/row_follow.h"
#include "space/keeper.h"
#include "store/journal_format.h"
#include "tests/support/counters.h"
#include "tests/support/give_way.h"
#include "tests/support/vfs_sim.h"

#define FIRST       1000u
#define IDS         30000u /* more than the tables in memory take */
#define BATCH       100u   /* ids of a commit */
#define PATIENCE_US 60000000u
#define EVENT_WORDS (CHANGE_EVENT_BYTES_MAX / 8 + 2)
#define UNNAMED     7u   /* a space that no record names */
#define NO_TYPE     255u /* of no record */

static struct process {
    struct vfs_sim *disk;
    struct settings settings;
    struct data *data;
    struct spaces *spaces;
    struct barrier *barrier;
    struct keeper *keeper;
    char error[DATA_ERROR_MAX];
} process;

static void set_up(void)
{
    static char directory[] = "/data";
    struct settings *settings = &process.settings;
    struct space_settings *space = &settings->spaces[0];

    process.disk = vfs_sim_create(1);
    settings->data = directory;
    settings->threads = 1;
    settings->memory_bytes = 1ull << 40;
    settings->journal.sync = JOURNAL_SYNC_NEVER;
    settings->journal.segment_bytes = 1u << 20;
    settings->journal.buffer_bytes = 1u << 20;
    settings->cold.threads = 1;
    settings->cold.queue = 16;
    settings->cold.overlay_bytes = 16u << 20;
    settings->space_count = 1;
    strcpy(space->name, "a");
    strcpy(space->key, "a:{id}");
    space->kind = SPACE_COUNTER;
    space->ids = SPACE_IDS_GROWING;
    space->oldest = SPACE_OLDEST_DUMP;
    space->row.table_bytes = 64u << 10;
    space->row.tables = 2;
    space->row.late_room = -1;
    space->slot_count = 2;
    for (unsigned i = 0; i < 2; i++) {
        snprintf(space->slots[i].name, sizeof(space->slots[i].name), "s%u", i);
        space->slots[i].bits = 20;
    }
}

/* False: the start is refused. */
static bool try(bool follows)
{
    static char leader[] = "127.0.0.1:1";
    static const _Atomic bool never = false;
    char error[SPACES_ERROR_MAX];

    process.settings.replication.follow = follows ? leader : NULL;
    process.data = data_open_with(vfs_sim_vfs(process.disk), &process.settings, process.error);
    assert_non_null(process.data);
    process.spaces = spaces_create(&process.settings, NULL, 1, space_engine_create, error);
    assert_non_null(process.spaces);
    process.barrier = barrier_create();
    process.keeper = keeper_create(process.barrier, NULL, NULL);
    keeper_attach(process.keeper, process.spaces);
    return data_recover(process.data, process.spaces, &never, process.error);
}

static void begin(bool follows)
{
    if (!try(follows)) {
        fail_msg("%s", process.error);
    }
}

static void end(void)
{
    keeper_end(process.keeper);
    data_stop(process.data);
    assert_true(data_close(process.data, process.spaces, true));
    keeper_destroy(process.keeper);
    spaces_drop(process.spaces, NULL);
    data_destroy(process.data);
    barrier_destroy(process.barrier);
}

/* Fails the test once it takes too long. */
static void await(uint64_t since_us)
{
    assert_true(clock_monotonic_us() < since_us + PATIENCE_US);
    give_way();
}

#define WAIT_FOR(what)                                                                             \
    for (uint64_t since_us_ = clock_monotonic_us(); !(what); await(since_us_)) {                   \
    }

static struct engine *engine_of(void)
{
    return process.spaces->at[0]->engine;
}

static void no_wake(void *target, uint64_t serial)
{
    (void)target;
    (void)serial;
}

/* Until it does not wait any more, for tables or pages. */
static enum engine_status run_until_done(struct counters_call *call, struct change_sink *sink)
{
    struct engine *engine = engine_of();
    struct barrier_member *member = barrier_join(process.barrier);
    struct engine_op *op = &call->op;

    op->ticket = (struct ticket){no_wake, &process, 1};
    op->status = ENGINE_PENDING;
    for (uint64_t since_us = clock_monotonic_us(); op->status == ENGINE_PENDING; await(since_us)) {
        op->value_length = 0;
        barrier_enter(member);
        engine->functions->prepare(engine, &op, 1);
        if (op->verb == ENGINE_READ) {
            engine->functions->read(engine, &op, 1);
        } else {
            engine->functions->change(engine, op, sink);
        }
        barrier_leave(member);
    }
    barrier_resign(member);
    cold_release(data_cold(process.data), &op->ticket);
    call->value[op->value_length] = '\0';
    return op->status;
}

/* Leaves a directory; with IDS its oldest table is dumped. */
static void fill(uint64_t ids)
{
    struct counters_call call;
    struct journal_sink sink;

    begin(false);
    journal_sink_init(&sink, data_journal(process.data));
    assert_true(keeper_start(process.keeper, process.spaces));
    assert_true(data_start(process.data, process.barrier, &process.spaces));
    for (uint64_t i = 0; i < ids; i++) {
        counters_call_init(&call, ENGINE_SET, ENGINE_SLOT_RECORD, FIRST + i, "7,8");
        assert_int_equal(run_until_done(&call, &sink.sink), ENGINE_DONE);
        assert_true(i % BATCH != 0 || journal_commit(&sink.writer));
    }
    assert_true(journal_commit(&sink.writer));
    journal_sink_fini(&sink);
    assert_true(ids < IDS || row_follow_dumped(engine_of()->row));
    end();
}

static enum data_taken try_payload(uint8_t type, uint8_t a, uint8_t b, const uint64_t *payload,
                                   size_t length)
{
    uint64_t words[1 + EVENT_WORDS];
    uint64_t lsn = journal_head(data_journal(process.data));
    size_t bytes = JOURNAL_HEADER_BYTES + length;
    size_t taken;

    memcpy(words + 1, payload, length);
    words[0] = journal_record_word(0, type, (uint8_t)(bytes / JOURNAL_UNIT), a, b);
    words[0] |= journal_record_checksum(words, lsn);
    enum data_taken result = data_take(process.data, lsn, words, bytes, &taken, process.error);

    assert_int_equal(taken, bytes);
    return result;
}

static void take_payload(uint8_t type, uint8_t a, uint8_t b, const uint64_t *payload, size_t length)
{
    assert_int_equal(try_payload(type, a, b, payload, length), DATA_TAKEN);
}

static void take(const struct change_record *record)
{
    take_payload(record->type, record->a, record->b, record->words, record->bytes);
}

/* The leader's space gets another slot in the place of one. */
static void take_space(const char *slot, const char *other)
{
    struct engine *engine = engine_of();
    struct change_space_head head;
    unsigned char bytes[CHANGE_SPACE_HEAD_BYTES + ENGINE_STATE_MAX];
    uint64_t words[EVENT_WORDS];
    size_t length = CHANGE_SPACE_HEAD_BYTES +
                    row_state_write(engine->row, bytes + CHANGE_SPACE_HEAD_BYTES) - ROW_SPACE_BYTES;
    size_t at = CHANGE_SPACE_HEAD_BYTES;

    change_space_head_init(&head, process.spaces->at[0]->name, engine->functions->kind);
    change_space_head_encode(&head, bytes);
    while (memcmp(bytes + at, slot, strlen(slot)) != 0) {
        at++;
    }
    memcpy(bytes + at, other, strlen(slot));
    length = change_record_encode_event(words, bytes, length);
    take_payload(CHANGE_RECORD_EVENT, (uint8_t)engine->space, CHANGE_EVENT_SPACE, words, length);
}

/* As the leader says it: one slot of a record that is there. */
static void encode_slot(uint32_t space, uint64_t id, uint64_t value, struct change_record *record)
{
    const struct change change = {.space = space,
                                  .type = CHANGE_SLOTS,
                                  .place = CHANGE_THERE,
                                  .id = id,
                                  .named = 1,
                                  .set = 1,
                                  .values = {value}};

    change_record_encode(&change, record);
}

static void moved(void *context)
{
    (void)context;
}

static bool is_in_trouble(void)
{
    data_follow_trouble(process.data, process.error);
    return process.error[0] != '\0';
}

/* The applier waits for a page that cannot be read, and says so; once it can it goes on. */
static void test_unread(void **state)
{
    const struct vfs_sim_fault fault = {.op = VFS_SIM_PREAD, .path = ".table"};
    struct counters_call call;
    struct change_record record;

    (void)state;
    set_up();
    fill(IDS);
    begin(true);
    assert_true(data_follow(process.data, process.barrier, &process.spaces, moved, NULL));
    uint64_t before = data_applied(process.data);
    unsigned number = vfs_sim_fault(process.disk, &fault);

    encode_slot(engine_of()->space, FIRST + 1, 9, &record);
    take(&record);
    WAIT_FOR(is_in_trouble());
    assert_non_null(strstr(process.error, "cannot be read"));
    assert_true(data_applied(process.data) == before);
    vfs_sim_fault_end(process.disk, number);
    WAIT_FOR(data_applied(process.data) == journal_head(data_journal(process.data)));
    WAIT_FOR(!is_in_trouble());
    counters_call_init(&call, ENGINE_READ, ENGINE_SLOT_RECORD, FIRST + 1, NULL);
    assert_int_equal(run_until_done(&call, NULL), ENGINE_DONE);
    assert_string_equal(call.value, "9,8");
    end();
    vfs_sim_destroy(process.disk);
}

/* What cannot be carried out says what helps a follower, now and at the next start: not to give it
 * up, as it would come again. */
static void check_advice(const struct change_record *record, const char *wants, bool copy)
{
    set_up();
    fill(BATCH);
    begin(true);
    assert_true(data_follow(process.data, process.barrier, &process.spaces, moved, NULL));
    take(record);
    WAIT_FOR(is_in_trouble());
    for (unsigned i = 0; i < 2; i++) {
        if (strstr(process.error, wants) == NULL || strstr(process.error, "repair") != NULL ||
            (strstr(process.error, "a new copy") != NULL) != copy) {
            fail_msg("unexpected: %s", process.error);
        }
        if (i == 0) {
            assert_false(data_may_store(process.data));
            assert_true(data_applied(process.data) < journal_head(data_journal(process.data)));
            end();
            assert_false(try(true));
        }
    }
    end();
    vfs_sim_destroy(process.disk);
}

static void test_advice(void **state)
{
    struct change_record record;

    (void)state;
    encode_slot(UNNAMED, FIRST, 1, &record);
    check_advice(&record, "empty /data, start it again", true);
    record.type = NO_TYPE;
    check_advice(&record, "a newer one may be needed", false);
}

/* A copy's tables hold what the leader of the next reign has not: the journal alone does not say so
 * to that leader, so this node must. What it then asks has it go back, and so take a copy. */
static void test_parted(void **state)
{
    (void)state;
    for (unsigned parts = 0; parts < 2; parts++) {
        struct data_position before, after;

        set_up();
        fill(BATCH);
        begin(true);
        struct follow *follow = process.data->follow;
        uint64_t head = journal_head(data_journal(process.data));

        follow->recovery.needed_lsn = parts ? head + JOURNAL_UNIT : head;
        follow->readable_lsn = follow->recovery.needed_lsn;
        data_position(process.data, &before);
        const uint64_t reign[] = {process.data->manifest->epoch + 1, 1, 1};
        enum data_taken taken = try_payload(JOURNAL_REIGN, 0, 0, reign, sizeof(reign));

        assert_int_equal(taken, parts ? DATA_BAD : DATA_TAKEN);
        data_position(process.data, &after);
        assert_int_equal(after.epoch, parts ? before.epoch : reign[0]);
        assert_true(after.lsn > head);
        assert_int_equal(data_can_rewind(process.data, head), DATA_REWIND);
        assert_true(data_follow(process.data, process.barrier, &process.spaces, moved, NULL));
        WAIT_FOR(data_applied(process.data) == after.lsn);
        assert_int_equal(data_readable(process.data), parts == 0);
        end();
        vfs_sim_destroy(process.disk);
    }
}

static bool is_unlike(const char *what)
{
    data_follow_unlike(process.data, process.error);
    return strstr(process.error, what) != NULL && (what[0] != '\0' || process.error[0] == '\0');
}

/* Where its slots are not those of its own configuration, from its start on and as they change. */
static void test_slots(void **state)
{
    (void)state;
    set_up();
    fill(BATCH);
    strcpy(process.settings.spaces[0].slots[1].name, "t1");
    begin(true);
    if (!is_unlike("space a: the other node has the slots s0,s1, the configuration here s0,t1")) {
        fail_msg("unexpected: %s", process.error);
    }
    assert_true(data_follow(process.data, process.barrier, &process.spaces, moved, NULL));
    take_space("s1", "t1");
    WAIT_FOR(is_unlike(""));
    take_space("t1", "u1");
    WAIT_FOR(is_unlike("the slots s0,u1,"));
    barrier_stop(process.barrier);
    strcpy(process.spaces->at[0]->settings.slots[1].name, "u1"); /* as a reload does */
    data_follow_reloaded(process.data);
    barrier_go(process.barrier);
    WAIT_FOR(is_unlike(""));
    end();
    vfs_sim_destroy(process.disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_advice),
        cmocka_unit_test(test_parted),
        cmocka_unit_test(test_unread),
    };

    log_setup("test", LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
