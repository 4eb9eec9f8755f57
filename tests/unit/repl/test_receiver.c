/* The side that follows: what it takes, says and answers, against a leader that the test plays. */
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "receiver_rig.h"

/* ---- the tests: a stream ---- */

static void test_stream(void **state)
{
    (void)state;
    rig_go();
    assert_int_equal(rig_figures().state, REPL_RECEIVER_CONNECTING);
    rig_agree(RIG_LSN);
    rig_say("T %u %u 3 1", RIG_LSN + 80, RIG_LSN);
    rig_expect_progress(RIG_LSN, RIG_LSN, RIG_LSN);
    rig_send_data(RIG_LSN, 80);
    rig_expect_taken(80);
    assert_int_equal(rig_figures().lag_bytes, 80);
    assert_true(rig_figures().lag_us > 0);
    atomic_store(&fake.written, RIG_LSN + 80);
    repl_receiver_moved(rig.receiver);
    rig_expect_progress(RIG_LSN + 80, RIG_LSN, RIG_LSN);
    atomic_store(&fake.durable, RIG_LSN + 80);
    atomic_store(&fake.applied, RIG_LSN + 40);
    repl_receiver_moved(rig.receiver);
    rig_expect_progress(RIG_LSN + 80, RIG_LSN + 80, RIG_LSN + 40);
    assert_int_equal(rig_figures().lag_bytes, 40);
    atomic_store(&fake.applied, RIG_LSN + 80);
    repl_receiver_moved(rig.receiver);
    rig_expect_progress(RIG_LSN + 80, RIG_LSN + 80, RIG_LSN + 80);
    rig_say("T %u %u 3 1", RIG_LSN + 80, RIG_LSN + 80);
    RIG_AWAIT(rig_figures().state == REPL_RECEIVER_STREAMING);
    assert_int_equal(rig_figures().lag_bytes, 0);
    assert_int_equal(rig_figures().lag_us, 0);
    assert_int_equal(rig_figures().epoch, 3);
    assert_string_equal(rig_figures().trouble, "");
}

/* What it says stands in this order, whatever the journal says meanwhile. */
static void test_clamped(void **state)
{
    (void)state;
    atomic_store(&fake.durable, RIG_LSN + 8);
    atomic_store(&fake.applied, RIG_LSN + 8);
    rig_go();
    rig_agree(RIG_LSN);
    rig_expect_progress(RIG_LSN, RIG_LSN, RIG_LSN);
    atomic_store(&fake.durable, RIG_LSN - 8);
    atomic_store(&fake.written, RIG_LSN + 16);
    repl_receiver_moved(rig.receiver);
    rig_expect_progress(RIG_LSN + 16, RIG_LSN, RIG_LSN + 8);
}

/* What was taken is lost with the process until it is written: no leader may count on it. */
static void test_taken_is_not_written(void **state)
{
    (void)state;
    rig_go();
    rig_agree(RIG_LSN);
    rig_send_data(RIG_LSN, 80);
    rig_expect_taken(80);
    atomic_store(&fake.written, RIG_LSN + 40);
    repl_receiver_moved(rig.receiver);
    rig_expect_progress(RIG_LSN + 40, RIG_LSN, RIG_LSN);
}

/* A D that comes in pieces, and one for which there is no room for a while. */
static void test_no_room(void **state)
{
    (void)state;
    fake.no_room = 6;
    rig_go();
    rig_agree(RIG_LSN);
    rig_say("D %u 64", RIG_LSN);
    char bytes[64];

    for (size_t i = 0; i < 64; i++) {
        bytes[i] = (char)(RIG_LSN + i);
    }
    rig_say_bytes(bytes, 10);
    rig_expect_progress(RIG_LSN, RIG_LSN, RIG_LSN);
    rig_say_bytes(bytes + 10, 54);
    rig_send_data(RIG_LSN + 64, 8);
    rig_expect_taken(72);
    assert_int_equal(fake.takes, 6 + 3 + 1);
}

static void set_no_room(unsigned times)
{
    pthread_mutex_lock(&fake.lock);
    fake.no_room = times;
    pthread_mutex_unlock(&fake.lock);
}

/* What is said of a full disk stays until there is room, whatever the other side does meanwhile. */
static void test_full_disk(void **state)
{
    (void)state;
    strcpy(fake.why, "the journal has no room");
    set_no_room(UINT_MAX);
    rig_go();
    for (unsigned times = 0; times < 2; times++) {
        rig_agree(RIG_LSN);
        rig_send_data(RIG_LSN, 16);
        rig_await_trouble(fake.why);
        rig_hang_up();
        RIG_AWAIT(rig_figures().state == REPL_RECEIVER_CONNECTING);
        assert_string_equal(rig_figures().trouble, fake.why);
    }
    rig_agree(RIG_LSN);
    assert_string_equal(rig_figures().trouble, fake.why);
    rig_send_data(RIG_LSN, 16);
    set_no_room(0);
    rig_expect_taken(16);
    RIG_AWAIT(rig_figures().trouble[0] == '\0');
}

static void test_bad(void **state)
{
    (void)state;
    fake.result = DATA_BAD;
    rig_go();
    rig_agree(RIG_LSN);
    rig_send_data(RIG_LSN, 16);
    rig_expect_hung_up();
    rig_await_trouble("what it sent is not sound: the record at LSN 4096 has another checksum");
    fake.result = DATA_TAKEN;
    rig_agree(RIG_LSN); /* from there again */
    rig_send_data(RIG_LSN, 16);
    RIG_AWAIT(rig_head() >= RIG_LSN + 16);
    rig_hang_up();
    rig_agree(RIG_LSN + 16);
    rig_expect_progress(RIG_LSN, RIG_LSN, RIG_LSN);
    assert_string_equal(rig_figures().trouble, "");
    rig_send_data(RIG_LSN + 24, 16); /* not the next */
    rig_expect_hung_up();
    rig_await_trouble("it sent LSN 4120 where LSN 4112 is the next");
}

static void test_sums(void **state)
{
    (void)state;
    fake.has_sum = true;
    fake.sum = 0xabc;
    rig_go();
    rig_agree(RIG_LSN);
    rig_say("V 0 %u 0000000000000abc", RIG_LSN);
    rig_expect_progress(RIG_LSN, RIG_LSN, RIG_LSN);
    rig_send_data(RIG_LSN, 8);
    rig_say("V %u %u 0000000000000def", RIG_LSN, RIG_LSN + 8); /* not until it is written */
    RIG_AWAIT(rig_head() >= RIG_LSN + 8);
    rig_expect_progress(RIG_LSN, RIG_LSN, RIG_LSN);
    assert_int_not_equal(rig_figures().state, REPL_RECEIVER_DIVERGED);
    atomic_store(&fake.written, RIG_LSN + 8);
    repl_receiver_moved(rig.receiver);
    rig_expect_hung_up();
    RIG_AWAIT(rig_figures().state == REPL_RECEIVER_DIVERGED);
    rig_await_trouble("it has other records than this node from LSN 4096 to 4104");
    assert_false(atomic_load(&fake.again));
}

/* Before anything is taken: what was written here under one epoch with the other. */
static void test_sum_before(void **state)
{
    (void)state;
    fake.has_sum = true;
    fake.sum = 0xabc;
    rig_go();
    rig_agree(RIG_LSN);
    rig_say("V 8 %u 0000000000000abc", RIG_LSN);
    rig_say("V 4088 %u 0000000000000abd", RIG_LSN);
    rig_expect_hung_up();
    RIG_AWAIT(rig_figures().state == REPL_RECEIVER_DIVERGED);
    rig_await_trouble("it has other records than this node from LSN 4088 to 4096");
    assert_int_equal(fake.takes, 0);
}

/* Of a segment whose beginning is not here: nothing can be said. */
static void test_sum_unknown(void **state)
{
    (void)state;
    rig_go();
    rig_agree(RIG_LSN);
    rig_say("V 0 %u 0000000000000abc", RIG_LSN);
    rig_send_data(RIG_LSN, 8);
    RIG_AWAIT(rig_head() >= RIG_LSN + 8);
    assert_int_not_equal(rig_figures().state, REPL_RECEIVER_DIVERGED);
}

/* ---- other answers ---- */

static void test_rewind(void **state)
{
    (void)state;
    rig_go();
    rig_pick_up();
    rig_expect("follow 1 rollcall two " RIG_STREAM " 3 4096");
    rig_say("REWIND 3 4000");
    RIG_AWAIT(atomic_load(&fake.again));
    assert_int_equal(fake.cut_lsn, 4000);
    assert_false(fake.copied);
    assert_int_equal(rig_figures().state, REPL_RECEIVER_REWINDING);
    assert_int_equal(rig_figures().lost_bytes, 96);
    assert_int_equal(rig_figures().rewinds, 1);
}

/* It answers reads until there is room for the start that cuts its journal. */
static void test_rewind_on_full_disk(void **state)
{
    (void)state;
    fake.full = true;
    rig_go();
    rig_pick_up();
    rig_expect("follow 1 rollcall two " RIG_STREAM " 3 4096");
    rig_say("REWIND 3 4000");
    rig_expect_hung_up();
    rig_await_trouble("it cannot begin anew yet: the disk is full");
    assert_false(atomic_load(&fake.again));
    assert_int_equal(rig_figures().rewinds, 0);
    fake.full = false;
    rig_pick_up();
    rig_expect("follow 1 rollcall two " RIG_STREAM " 3 4096");
    rig_say("REWIND 3 4000");
    RIG_AWAIT(atomic_load(&fake.again));
    assert_int_equal(rig_figures().lost_bytes, 96);
}

/* A disk that hangs has less than came: that is no reason for a copy. */
static void test_rewind_to_what_is_not_written(void **state)
{
    (void)state;
    atomic_store(&fake.written, 3992);
    rig_go();
    rig_pick_up();
    rig_expect("follow 1 rollcall two " RIG_STREAM " 3 4096");
    rig_say("REWIND 3 4000");
    rig_expect_hung_up();
    rig_await_trouble("what this node is to go back to is not written yet");
    assert_false(atomic_load(&fake.again));
}

static void test_rewind_by_copy(void **state)
{
    (void)state;
    fake.rewind = DATA_REWIND_COPY;
    rig_go();
    rig_pick_up();
    rig_expect("follow 1 rollcall two " RIG_STREAM " 3 4096");
    rig_say("REWIND 3 4000");
    rig_expect("copy 1 rollcall two");
    rig_say("SERVER_ERROR no copy here");
    rig_await_trouble("it says: no copy here");
    assert_false(atomic_load(&fake.again));
}

/* Nothing of what this node alone has is cut off before an operator has looked. */
static void test_rewind_of_two_leaders(void **state)
{
    (void)state;
    fake.rewind = DATA_REWIND_PARTED;
    rig_go();
    rig_pick_up();
    rig_expect("follow 1 rollcall two " RIG_STREAM " 3 4096");
    rig_say("REWIND 3 4000");
    rig_await_trouble("it has other records than this node from LSN 4000 to 4096: two have led");
    RIG_AWAIT(rig_figures().state == REPL_RECEIVER_DIVERGED);
    assert_false(atomic_load(&fake.again));
    assert_int_equal(rig_figures().rewinds, 0);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *answer, *trouble;
    } rows[] = {
        {"BUSY 0", "it is busy"},
        {"SERVER_ERROR replication: group a was asked for", "it says: replication: group a was"},
        {"CLIENT_ERROR unauthenticated", "it answers \"CLIENT_ERROR unauthenticated\": "},
        {"REWIND 3 4096", "it says to go back to LSN 4096, and this node is at 4096"},
        {"STREAM 00000000000000070000000000000009 3 4096", "it streams what was not asked for"},
        {"STREAM " RIG_STREAM " 3 4088", "it streams what was not asked for"},
        {"T 1 1 1 1", "it sent a line that does not belong there"},
    };

    (void)state;
    rig_go();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        rig_pick_up();
        rig_expect("follow 1 rollcall two " RIG_STREAM " 3 4096");
        rig_say("%s", rows[i].answer);
        rig_await_trouble(rows[i].trouble);
        rig_expect_hung_up();
    }
}

static void test_login(void **state)
{
    (void)state;
    rig.settings->replication.login = (char *)"two secret";
    rig_go();
    rig_pick_up();
    rig_expect("set auth 0 0 10");
    rig_expect("two secret");
    rig_say("CLIENT_ERROR authentication failure");
    rig_await_trouble("the user of replication.credentials is not let in");
    rig_expect_hung_up();
    rig_pick_up();
    rig_expect("set auth 0 0 10");
    rig_expect("two secret");
    rig_say("STORED");
    rig_expect("follow 1 rollcall two " RIG_STREAM " 3 4096");
    rig.settings->replication.login = NULL;
}

/* One that has nothing yet may have all of it. */
static void test_nothing_yet(void **state)
{
    (void)state;
    fake.position = (struct data_position){{0}, 0, 0};
    fake.written = fake.durable = fake.applied = 0;
    rig_go();
    rig_pick_up();
    rig_expect("follow 1 rollcall two - 0 0");
    rig_say("STREAM " RIG_STREAM " 3 0");
    rig_expect_progress(0, 0, 0);
    assert_int_equal(fake.position.stream[1], 11);
}

/* From another place, or of another stream. */
static void test_not_asked_for(void **state)
{
    static const char *const answers[] = {"STREAM " RIG_STREAM " 3 4088",
                                          "STREAM 00000000000000070000000000000aaa 3 4096"};

    (void)state;
    assert_int_equal(RIG_LSN, 4096);
    rig_go();
    for (size_t i = 0; i < 2; i++) {
        rig_pick_up();
        rig_expect("follow 1 rollcall two " RIG_STREAM " 3 4096");
        rig_say("%s", answers[i]);
        rig_expect_hung_up();
        rig_await_trouble("it streams what was not asked for");
    }
    assert_int_equal(fake.takes, 0);
}

static void test_unreachable(void **state)
{
    (void)state;
    close(rig.listener);
    rig_go();
    rig_await_trouble("it cannot be reached: Connection refused");
    rig.listener = socket(AF_INET, SOCK_STREAM, 0);
}

static void test_stale(void **state)
{
    (void)state;
    rig.settings->replication.stale_after_s = 1;
    rig_go();
    assert_true(repl_receiver_is_stale(rig.receiver)); /* never level since the start */
    rig_agree(RIG_LSN);
    rig_say("T %u %u 3 1", RIG_LSN, RIG_LSN);
    RIG_AWAIT(!repl_receiver_is_stale(rig.receiver));
    rig_hang_up();
    RIG_AWAIT(repl_receiver_is_stale(rig.receiver));
    assert_true(rig_figures().lag_us >= 1000000u);
    assert_false(repl_receiver_is_stale(NULL));
}

/* Stopped, and let go again: it goes on where it was. */
static void test_stop_and_go(void **state)
{
    (void)state;
    rig_go();
    rig_agree(RIG_LSN);
    rig_send_data(RIG_LSN, 16);
    rig_expect_taken(16);
    repl_receiver_stop(rig.receiver);
    rig_expect_hung_up();
    assert_true(repl_receiver_start(rig.receiver));
    rig_agree(RIG_LSN + 16);
    rig_send_data(RIG_LSN + 16, 16);
    rig_expect_taken(32);
}

static void test_pauses(void **state)
{
    (void)state;
    assert_int_equal(receiver_pause_us(1), 200000);
    assert_int_equal(receiver_pause_us(2), 400000);
    assert_int_equal(receiver_pause_us(8), 25600000);
    assert_int_equal(receiver_pause_us(9), 30000000);
    assert_int_equal(receiver_pause_us(4000000000u), 30000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stream, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_clamped, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_taken_is_not_written, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_no_room, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_full_disk, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_bad, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_sums, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_sum_before, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_sum_unknown, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_rewind, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_rewind_on_full_disk, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_rewind_to_what_is_not_written, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_rewind_by_copy, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_rewind_of_two_leaders, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_refusals, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_login, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_nothing_yet, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_not_asked_for, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_unreachable, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_stale, rig_begin, rig_end),
        cmocka_unit_test_setup_teardown(test_stop_and_go, rig_begin, rig_end),
        cmocka_unit_test(test_pauses),
    };

    log_setup("test_receiver", LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
