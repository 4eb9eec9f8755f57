/* The command table: what each command answers to what an engine says, and the words of refusals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "request/command.h"

static struct engine engine;
static struct space_metrics own;
static struct command_metrics metrics;
static struct space space = {.engine = &engine,
                             .name = "feed",
                             .bad_key_words = "bad key for space feed",
                             .id_large_words = "id above max-id of space feed",
                             .record_words = "record needs 4 numbers",
                             .slot_words = "bad key for space feed: slots like,read"};
static struct command_result result;

static void finish(enum verb verb, enum key_kind kind, struct engine_op *op)
{
    memset(&own, 0, sizeof(own));
    memset(&metrics, 0, sizeof(metrics));
    command_finish(command_find(verb, kind, false), kind == KEY_NONE ? NULL : &space, op, &metrics,
                   kind == KEY_NONE ? NULL : &own, &result);
}

static void expect(enum verb verb, enum key_kind kind, enum engine_status status,
                   enum reply_status reply)
{
    struct engine_op op = {.status = status};

    finish(verb, kind, &op);
    if (result.reply.status != reply) {
        print_error("verb %d, kind %d, engine %d\n", verb, kind, status);
    }
    assert_int_equal(result.reply.status, reply);
}

static void expect_words(enum reply_status status, const char *words)
{
    assert_int_equal(result.reply.status, status);
    assert_int_equal(result.reply.value_length, strlen(words));
    assert_memory_equal(result.reply.value, words, strlen(words));
    assert_true(result.refused);
}

static void test_answers(void **state)
{
    static const struct {
        enum verb verb;
        enum engine_verb engine;
        enum reply_status done, absent, exists;
    } rows[] = {
        {VERB_SET, ENGINE_SET, REPLY_STORED, REPLY_STORED, REPLY_STORED},
        {VERB_ADD, ENGINE_ADD, REPLY_STORED, REPLY_NOT_STORED, REPLY_NOT_STORED},
        {VERB_REPLACE, ENGINE_REPLACE, REPLY_STORED, REPLY_NOT_STORED, REPLY_NOT_STORED},
        {VERB_CAS, ENGINE_CAS, REPLY_STORED, REPLY_NOT_FOUND, REPLY_EXISTS},
        {VERB_INCR, ENGINE_INCR, REPLY_NUMBER, REPLY_NOT_FOUND, REPLY_EXISTS},
        {VERB_DECR, ENGINE_DECR, REPLY_NUMBER, REPLY_NOT_FOUND, REPLY_EXISTS},
        {VERB_DELETE, ENGINE_DELETE, REPLY_DELETED, REPLY_NOT_FOUND, REPLY_EXISTS},
        {VERB_TOUCH, ENGINE_TOUCH, REPLY_TOUCHED, REPLY_NOT_FOUND, REPLY_OK},
        {VERB_APPEND, ENGINE_TOUCH, REPLY_CLIENT_ERROR, REPLY_NOT_STORED, REPLY_OK},
        {VERB_PREPEND, ENGINE_TOUCH, REPLY_CLIENT_ERROR, REPLY_NOT_STORED, REPLY_OK},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (enum key_kind kind = KEY_SLOT; kind <= KEY_RECORD; kind++) {
            assert_int_equal(command_find(rows[i].verb, kind, false)->verb, rows[i].engine);
            expect(rows[i].verb, kind, ENGINE_DONE, rows[i].done);
            expect(rows[i].verb, kind, ENGINE_ABSENT, rows[i].absent);
            expect(rows[i].verb, kind, ENGINE_EXISTS, rows[i].exists);
        }
    }
}

/* Every verb with keys has a row for every kind; the others have none. */
static void test_table_is_whole(void **state)
{
    (void)state;
    for (enum verb verb = 0; verb < VERB_COUNT; verb++) {
        bool keyed = verb >= VERB_GET && verb <= VERB_DELETE;

        assert_int_equal(command_has_keys(verb), keyed);
        for (enum key_kind kind = 0; keyed && kind < KEY_KINDS; kind++) {
            const struct command *command = command_find(verb, kind, false);

            assert_non_null(command);
            bool alone = kind <= KEY_BAD || kind == KEY_SLOT_UNKNOWN || kind == KEY_SIMILAR ||
                         (kind == KEY_LARGE && verb != VERB_DELETE);

            assert_int_equal(command->call == COMMAND_CALL_NONE, alone);
        }
    }
}

static void test_keys_of_nothing(void **state)
{
    struct engine_op op = {0};

    (void)state;
    for (enum verb verb = VERB_SET; verb <= VERB_DELETE; verb++) {
        finish(verb, KEY_NONE, &op);
        expect_words(REPLY_CLIENT_ERROR, "no space for key");
        assert_int_equal(metrics.no_space, 1);
        finish(verb, KEY_BAD, &op);
        expect_words(REPLY_CLIENT_ERROR, "bad key for space feed");
        assert_int_equal(own.bad_keys, 1);
        finish(verb, KEY_SLOT_UNKNOWN, &op);
        expect_words(REPLY_CLIENT_ERROR, "bad key for space feed: slots like,read");
        assert_int_equal(own.bad_keys, 1);
    }
    expect(VERB_TOUCH, KEY_NONE, ENGINE_DONE, REPLY_NOT_FOUND);
    expect(VERB_TOUCH, KEY_BAD, ENGINE_DONE, REPLY_NOT_FOUND);
}

static void test_too_large(void **state)
{
    struct engine_op op = {0};

    (void)state;
    for (enum verb verb = VERB_SET; verb <= VERB_CAS; verb++) {
        finish(verb, KEY_LARGE, &op);
        expect_words(REPLY_SERVER_ERROR, "object too large for cache");
        assert_int_equal(result.reply.detail, DETAIL_TOO_LARGE);
        assert_int_equal(own.refused_value, 1);
        assert_int_equal(own.bad_keys, 0);
    }
}

static void test_members_are_no_numbers(void **state)
{
    struct engine_op op = {.status = ENGINE_DONE, .text = "1", .text_length = 1};

    (void)state;
    finish(VERB_INCR, KEY_MEMBER, &op);
    expect_words(REPLY_CLIENT_ERROR, "cannot increment or decrement non-numeric value");
    op.status = ENGINE_ABSENT;
    finish(VERB_INCR, KEY_MEMBER, &op);
    assert_int_equal(result.reply.status, REPLY_NOT_FOUND);
    expect(VERB_ADD, KEY_MEMBER, ENGINE_EXISTS, REPLY_NOT_STORED);
}

static void test_bad_delta_comes_first(void **state)
{
    static const enum engine_status statuses[] = {ENGINE_DONE, ENGINE_ABSENT};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct engine_op op = {.status = statuses[i], .text = "-1", .text_length = 2};

        finish(VERB_INCR, KEY_MEMBER, &op);
        expect_words(REPLY_CLIENT_ERROR, "invalid numeric delta argument");
        finish(VERB_DECR, KEY_MEMBER, &op);
        expect_words(REPLY_CLIENT_ERROR, "invalid numeric delta argument");
        assert_int_equal(own.refused_delta, 1);
        assert_int_equal(metrics.decr_misses, 0);
    }
}

static void test_words_of_refusals(void **state)
{
    static const struct {
        enum engine_error error;
        enum reply_status status;
        const char *words;
    } rows[] = {
        {ENGINE_E_NOT_A_NUMBER, REPLY_CLIENT_ERROR, "value is not a number"},
        {ENGINE_E_RECORD_FIELDS, REPLY_CLIENT_ERROR, "record needs 4 numbers"},
        {ENGINE_E_NON_NUMERIC, REPLY_CLIENT_ERROR,
         "cannot increment or decrement non-numeric value"},
        {ENGINE_E_BAD_DELTA, REPLY_CLIENT_ERROR, "invalid numeric delta argument"},
        {ENGINE_E_DELETES_OFF, REPLY_CLIENT_ERROR, "deletes are off for this space"},
        {ENGINE_E_OUT_OF_MEMORY, REPLY_SERVER_ERROR, "out of memory storing object"},
        {ENGINE_E_NO_TABLE_FREE, REPLY_SERVER_ERROR, "no table free"},
        {ENGINE_E_ID_TOO_LARGE, REPLY_CLIENT_ERROR, "id above max-id of space feed"},
        {ENGINE_E_ID_TOO_FAR, REPLY_CLIENT_ERROR, "id too far ahead"},
        {ENGINE_E_ID_BELOW, REPLY_CLIENT_ERROR, "id below the oldest table"},
        {ENGINE_E_BUSY, REPLY_SERVER_ERROR, "busy"},
        {ENGINE_E_JOURNAL_BUSY, REPLY_SERVER_ERROR, "journal busy"},
        {ENGINE_E_READ_FAILED, REPLY_SERVER_ERROR, "disk read failed"},
    };

    (void)state;
    engine.role_cache = false;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct engine_op op = {.status = ENGINE_ERROR, .error = rows[i].error};

        finish(VERB_SET, KEY_RECORD, &op);
        expect_words(rows[i].status, rows[i].words);
        assert_true(strlen(rows[i].words) + strlen("CLIENT_ERROR \r\n") < PROTOCOL_ERROR_MAX);
    }
}

static void test_cache_drops_what_has_no_room(void **state)
{
    static const enum engine_error no_room[] = {ENGINE_E_OUT_OF_MEMORY, ENGINE_E_NO_TABLE_FREE,
                                                ENGINE_E_ID_BELOW};

    (void)state;
    engine.role_cache = true;
    for (size_t i = 0; i < 3; i++) {
        struct engine_op op = {.status = ENGINE_ERROR, .error = no_room[i]};

        for (enum verb verb = VERB_SET; verb <= VERB_REPLACE; verb++) {
            finish(verb, KEY_SLOT, &op);
            assert_int_equal(result.reply.status, REPLY_STORED);
            assert_true(result.dropped && !result.refused);
            assert_int_equal(own.evictions, 1);
            assert_int_equal(metrics.total_items, 0);
        }
        finish(VERB_INCR, KEY_SLOT, &op);
        assert_int_equal(result.reply.status, REPLY_NOT_FOUND);
        assert_int_equal(metrics.incr_misses, 1);
        finish(VERB_DELETE, KEY_SLOT, &op);
        assert_true(result.refused);
    }
    engine.role_cache = false;
}

static void test_figures(void **state)
{
    (void)state;
    expect(VERB_CAS, KEY_SLOT, ENGINE_EXISTS, REPLY_EXISTS);
    assert_int_equal(metrics.cas_badval, 1);
    assert_int_equal(metrics.cmd_set, 1);
    expect(VERB_CAS, KEY_SLOT, ENGINE_DONE, REPLY_STORED);
    assert_int_equal(metrics.cas_hits, 1);
    assert_int_equal(metrics.total_items, 1);
    assert_int_equal(own.changes, 1);
    expect(VERB_DELETE, KEY_SLOT, ENGINE_ABSENT, REPLY_NOT_FOUND);
    assert_int_equal(metrics.delete_misses, 1);
    memset(&metrics, 0, sizeof(metrics));
    command_count_reads(VERB_GAT, 3, 2, &metrics);
    assert_int_equal(metrics.cmd_get, 0);
    assert_int_equal(metrics.cmd_touch, 5);
    assert_int_equal(metrics.touch_hits, 3);
    assert_int_equal(metrics.touch_misses, 2);
    assert_int_equal(metrics.get_hits, 0);
}

static void test_exptime(void **state)
{
    int64_t now = (int64_t)time(NULL);

    (void)state;
    assert_false(command_exptime_past(0));
    assert_false(command_exptime_past(1));
    assert_false(command_exptime_past(COMMAND_EXPTIME_RELATIVE_MAX));
    assert_true(command_exptime_past(COMMAND_EXPTIME_RELATIVE_MAX + 1));
    assert_true(command_exptime_past(-1));
    assert_true(command_exptime_past(now - 10));
    assert_false(command_exptime_past(now + 1000));
    assert_int_equal(command_find(VERB_TOUCH, KEY_SLOT, true)->verb, ENGINE_DELETE);
    assert_int_equal(command_find(VERB_SET, KEY_SLOT, true)->verb, ENGINE_SET);
    assert_false(command_deletes_after(VERB_SET, KEY_SLOT));
    assert_false(command_deletes_after(VERB_GAT, KEY_PLAIN));
    assert_true(command_deletes_after(VERB_GAT, KEY_MEMBER));
    assert_false(command_deletes_after(VERB_TOUCH, KEY_SLOT));
    assert_false(command_deletes_after(VERB_GET, KEY_SLOT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_table_is_whole),
        cmocka_unit_test(test_keys_of_nothing),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_bad_delta_comes_first),
        cmocka_unit_test(test_members_are_no_numbers),
        cmocka_unit_test(test_words_of_refusals),
        cmocka_unit_test(test_cache_drops_what_has_no_room),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_exptime),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
