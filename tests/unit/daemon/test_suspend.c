/*
 * Requests that wait for the keeper, over real sockets and workers: they are run again when a table
 * has been opened, and resets, flush_all, reload and the end of the server do them no harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "daemon/reload.h"
#include "tests/unit/request/harness.h"

static struct harness harness;

static int start(bool keeper_later)
{
    harness_init(&harness, 2);
    harness.settings.flush_all = true;
    harness.keeper_later = keeper_later;
    harness_start(&harness);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return start(false);
}

/* Whoever waits is refused by the next tick of its worker. */
static int setup_impatient(void **state)
{
    (void)state;
    harness_init(&harness, 2);
    harness.settings.flush_all = true;
    harness.keeper_later = true;
    harness.wait_us = 1;
    harness_start(&harness);
    return 0;
}

/* Nobody maintains before the test says so: what waits goes on waiting. */
static int setup_later(void **state)
{
    (void)state;
    return start(true);
}

static int teardown(void **state)
{
    (void)state;
    harness_fini(&harness);
    return 0;
}

static void start_keeper(void)
{
    assert_true(keeper_start(harness.server->keeper, harness.server->spaces));
}

static void test_run_again(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    fake_engine_need_table(harness.store, 7);
    fake_engine_need_table(harness.store, 8);
    fake_engine_need_table(harness.store, 9);
    harness_ask(fd,
                "incr f:1.a 1\r\nincr f:7.a 3\r\nincr f:7.a 1\r\nget f:7.a f:8.a\r\n"
                "set f:8.a 0 0 1\r\n5\r\nadd f:8.a 0 0 1\r\n6\r\nadd f:9.a 0 0 1\r\n6\r\n"
                "get f:8.a f:9.a\r\n",
                "1\r\n3\r\n4\r\nVALUE f:7.a 0 1\r\n4\r\nEND\r\nSTORED\r\nNOT_STORED\r\nSTORED\r\n"
                "VALUE f:8.a 0 1\r\n5\r\nVALUE f:9.a 0 1\r\n6\r\nEND\r\n");
    assert_int_equal(harness_stat(&harness, "suspensions"), 3);
    assert_int_equal(harness_stat(&harness, "incr_hits"), 3); /* run twice, counted once */
    assert_int_equal(harness_stat(&harness, "total_items"), 2);
    assert_int_equal(harness_stat(&harness, "cmd_set"), 3);
    close(fd);
}

/* While it waits all that came before is answered, and nothing that came after has happened. */
static void test_order(void **state)
{
    int fd = harness_connect(&harness);
    int other = harness_connect(&harness);

    (void)state;
    fake_engine_need_table(harness.store, 7);
    harness_say(fd, "incr f:1.a 1\r\nset f:7.a 0 0 1\r\n5\r\nincr f:1.a 1\r\nget f:7.a\r\n");
    harness_expect(fd, "1\r\n");
    fake_engine_await(harness.store, 1);
    harness_ask(other, "get f:1.a f:7.a\r\nreplace f:7.a 0 0 1\r\n1\r\ndelete f:7.a\r\n",
                "VALUE f:1.a 0 1\r\n1\r\nEND\r\nNOT_STORED\r\nNOT_FOUND\r\n");
    start_keeper();
    harness_expect(fd, "STORED\r\n2\r\nVALUE f:7.a 0 1\r\n5\r\nEND\r\n");
    close(fd);
    close(other);
}

static void test_noreply(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    fake_engine_need_table(harness.store, 7);
    fake_engine_need_table(harness.store, 8);
    fake_engine_need_table(harness.store, 9);
    harness_ask(fd,
                "incr f:7.a 3 noreply\r\nset f:8.a 0 0 1 noreply\r\n5\r\n"
                "set f:9.a 0 0 1 noreply\r\nx\r\nincr f:7.a 1\r\nget f:8.a f:9.a\r\n",
                "4\r\nVALUE f:8.a 0 1\r\n5\r\nEND\r\n");
    assert_int_equal(harness_stat(&harness, "refused_noreply"), 1);
    close(fd);
}

/* A past exptime: stored when there is a table, and deleted after it. */
static void test_past_exptime(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    fake_engine_need_table(harness.store, 7);
    fake_engine_need_table(harness.store, 8);
    harness_ask(fd, "set f:7.a 0 -1 1\r\n5\r\nget f:7.a\r\nadd f:8.a 0 -1 1\r\n5\r\nget f:8.a\r\n",
                "STORED\r\nEND\r\nSTORED\r\nEND\r\n");
    harness_ask(fd, "incr f:7.a 2\r\ngat -1 f:7.a f:8.a f:7.a\r\n",
                "2\r\nVALUE f:7.a 0 1\r\n2\r\nEND\r\n");
    /* a key that begins like one before it is another */
    harness_ask(fd, "set f:71 0 0 1\r\n5\r\nset f:7 0 0 1\r\n6\r\ngat -1 f:71 f:7\r\n",
                "STORED\r\nSTORED\r\nVALUE f:71 0 1\r\n5\r\nVALUE f:7 0 1\r\n6\r\nEND\r\n");
    close(fd);
}

/* Many connections wait for one id: all go on, and exactly one of them made it. */
static void test_many_wait_for_one(void **state)
{
    enum { CLIENTS = 40 };
    int fds[CLIENTS];
    int stored = 0;

    (void)state;
    fake_engine_need_table(harness.store, 7);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = harness_connect(&harness);
        harness_say(fds[i], "add f:7.a 0 0 1\r\n5\r\nmn\r\n");
    }
    fake_engine_await(harness.store, CLIENTS);
    start_keeper();
    for (int i = 0; i < CLIENTS; i++) {
        char first;

        assert_int_equal(read(fds[i], &first, 1), 1);
        stored += first == 'S';
        harness_expect(fds[i], first == 'S' ? "TORED\r\nMN\r\n" : "OT_STORED\r\nMN\r\n");
        close(fds[i]);
    }
    assert_int_equal(stored, 1);
}

static void reset(int fd)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
}

/* Of those that are gone nothing is run; who only says no more is still served. */
static void test_gone_while_waiting(void **state)
{
    int last = harness_connect(&harness);

    (void)state;
    fake_engine_need_table(harness.store, 7);
    for (size_t i = 0; i < 10; i++) {
        int fd = harness_connect(&harness);

        harness_say(fd, "add f:7.a 0 0 1\r\n5\r\nset f:1.a 0 0 1\r\n1\r\n");
        fake_engine_await(harness.store, i + 1);
        reset(fd);
    }
    while (harness_stat(&harness, "curr_connections") > 2) { /* and the one that asks */
    }
    start_keeper();
    harness_ask(last, "add f:7.a 0 0 1\r\n6\r\nget f:7.a f:1.a\r\n",
                "STORED\r\nVALUE f:7.a 0 1\r\n6\r\nEND\r\n");
    close(last);
}

/* The server ends with requests that wait … */
static void test_end_while_waiting(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    fake_engine_need_table(harness.store, 7);
    harness_say(fd, "incr f:7.a 3\r\n");
    fake_engine_await(harness.store, 1);
    close(fd);
}

/* … and with the keeper at work for them. */
static void test_end_while_maintained(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    fake_engine_need_table(harness.store, 7);
    fake_engine_gate(harness.store, true);
    harness_say(fd, "incr f:7.a 3\r\n");
    fake_engine_gate_await(harness.store);
    fake_engine_gate(harness.store, false);
    close(fd);
}

static void *flush(void *context)
{
    harness_ask(*(int *)context, "flush_all\r\nget f:1.a\r\n", "OK\r\nEND\r\n");
    return NULL;
}

/* flush_all waits for what is maintained, and what is maintained does not wait for it. */
static void test_flush_all_meanwhile(void **state)
{
    int fd = harness_connect(&harness);
    int other = harness_connect(&harness);
    pthread_t thread;

    (void)state;
    fake_engine_need_table(harness.store, 7);
    fake_engine_gate(harness.store, true);
    harness_say(fd, "incr f:1.a 1\r\nincr f:7.a 3\r\n");
    fake_engine_gate_await(harness.store);
    assert_int_equal(pthread_create(&thread, NULL, flush, &other), 0);
    fake_engine_gate(harness.store, false);
    pthread_join(thread, NULL);
    harness_expect(fd, "1\r\n3\r\n");
    assert_int_equal(fake_engine_maintained(harness.store), 1);
    close(fd);
    close(other);
}

/* A checkpoint stores its manifest, a reload waits for one: no worker waits with them. */
static void test_flush_all_in_a_bracket(void **state)
{
    enum { CLIENTS = 4 }; /* of two workers */
    int fds[CLIENTS];
    int flushing = harness_connect(&harness);

    (void)state;
    harness_ask(flushing, "incr f:1.a 1\r\n", "1\r\n");
    keeper_stop(harness.server->keeper);
    harness_say(flushing, "flush_all\r\nget f:1.a\r\n");
    while (harness_stat(&harness, "cmd_flush") == 0) {
    }
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = harness_connect(&harness);
        harness_ask(fds[i], "get f:1.a\r\n", "VALUE f:1.a 0 1\r\n1\r\nEND\r\n");
        close(fds[i]);
    }
    assert_int_equal(fake_engine_clears(harness.store), 0);
    keeper_go(harness.server->keeper, NULL);
    harness_expect(flushing, "OK\r\nEND\r\n");
    assert_int_equal(harness_stat(&harness, "cmd_flush"), 1); /* run twice, counted once */
    close(flushing);
}

/* One that is refused is not done later. */
static void test_flush_all_too_long(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "incr f:1.a 1\r\n", "1\r\n");
    harness_ask(fd, "flush_all\r\nget f:1.a\r\n",
                "SERVER_ERROR busy\r\nVALUE f:1.a 0 1\r\n1\r\nEND\r\n");
    start_keeper();
    harness_ask(fd, "flush_all noreply\r\nget f:1.a\r\n", "END\r\n");
    assert_int_equal(fake_engine_clears(harness.store), 1);
    close(fd);
}

/* Nor is one whose client is gone forgotten: it may have been told nothing, or not have listened.
 */
static void test_flush_all_and_gone(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "incr f:1.a 1\r\n", "1\r\n");
    harness_say(fd, "flush_all\r\n");
    while (harness_stat(&harness, "cmd_flush") == 0) {
    }
    reset(fd);
    while (harness_stat(&harness, "curr_connections") > 1) { /* the one that asks */
    }
    start_keeper();
    while (fake_engine_clears(harness.store) == 0) {
    }
}

/* For a table, a page, a merge: each request of a connection for itself, and others go on. */
static void test_too_long(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    fake_engine_need_table(harness.store, 7);
    fake_engine_hold(harness.store, 8);
    fake_engine_hold_busy(harness.store, 9);
    harness_ask(fd, "incr f:7.a 3\r\nget f:1.a f:8.a\r\nincr f:1.a 1\r\nincr f:9.a 1\r\n",
                "SERVER_ERROR busy\r\nSERVER_ERROR disk read failed\r\n1\r\n"
                "SERVER_ERROR busy\r\n");
    assert_int_equal(fake_engine_waited(harness.store), 1); /* nobody else is refused for a merge */
    harness_ask(fd, "delete f:8.a\r\ngat -1 f:8.a\r\nmn\r\n",
                "SERVER_ERROR disk read failed\r\nSERVER_ERROR disk read failed\r\nMN\r\n");
    start_keeper();
    fake_engine_release(harness.store, 8);
    harness_ask(fd, "incr f:7.a 3\r\nget f:8.a\r\n", "3\r\nEND\r\n");
    close(fd);
}

/* One that waits is not refused before its time, though its connection has waited before. */
static void test_not_too_long(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    for (uint64_t id = 7; id < 10; id++) {
        char line[64];

        snprintf(line, sizeof(line), "get f:%u.a\r\n", (unsigned)id);
        fake_engine_hold(harness.store, id);
        harness_say(fd, line);
        fake_engine_await(harness.store, 1);
        fake_engine_release(harness.store, id);
        harness_expect(fd, "END\r\n");
    }
    close(fd);
}

/* The space is dropped: who waited for its table is told that there is none. */
static void test_reload_drops_the_space(void **state)
{
    struct settings next = harness.settings;
    int fd = harness_connect(&harness);

    (void)state;
    fake_engine_need_table(harness.cache, 7);
    harness_say(fd, "set c:7.a 0 0 1\r\n3\r\nset c:7.a 0 0 1 noreply\r\n3\r\nmn\r\n");
    fake_engine_await(harness.cache, 1);
    next.space_count = 1;
    assert_true(reload_apply(harness.server, &next, harness.create));
    harness_expect(fd, "CLIENT_ERROR no space for key\r\nMN\r\n");
    assert_true(reload_apply(harness.server, &harness.settings, harness.create));
    harness_ask(fd, "set c:7.a 0 0 1\r\n3\r\n", "STORED\r\n");
    close(fd);
}

/* The space stays: it goes on waiting, and the keeper knows the space still. */
static void test_reload_keeps_the_space(void **state)
{
    struct settings next = harness.settings;
    int fd = harness_connect(&harness);

    (void)state;
    fake_engine_need_table(harness.store, 7);
    harness_say(fd, "incr f:7.a 3\r\n");
    fake_engine_await(harness.store, 1);
    next.max_connections++;
    assert_true(reload_apply(harness.server, &next, harness.create));
    start_keeper();
    harness_expect(fd, "3\r\n");
    assert_true(reload_apply(harness.server, &harness.settings, harness.create));
    fake_engine_need_table(harness.store, 8);
    harness_ask(fd, "incr f:8.a 3\r\n", "3\r\n");
    close(fd);
}

/* A space that a reload adds is the keeper's, too. */
static void test_reload_adds_a_space(void **state)
{
    struct settings next = harness.settings;
    int fd = harness_connect(&harness);

    (void)state;
    next.space_count = 1;
    assert_true(reload_apply(harness.server, &next, harness.create));
    assert_true(reload_apply(harness.server, &harness.settings, harness.create));
    fake_engine_need_table(spaces_find(harness.server->spaces, "c")->engine, 7);
    harness_ask(fd, "set c:7.a 0 0 1\r\n3\r\nget c:7.a\r\n",
                "STORED\r\nVALUE c:7.a 0 1\r\n3\r\nEND\r\n");
    close(fd);
}

struct load {
    int fd;
    struct engine *engine;
    unsigned first;
    uint64_t flushes;
};

static void *create_many(void *context)
{
    struct load *load = context;
    char line[64];

    for (unsigned i = 0; i < 300; i++) {
        fake_engine_need_table(load->engine, load->first + i);
        snprintf(line, sizeof(line), "incr f:%u.a 1\r\n", load->first + i);
        harness_ask(load->fd, line, "1\r\n");
    }
    return NULL;
}

static void *flush_many(void *context)
{
    struct load *load = context;

    for (int i = 0; i < 50; i++) {
        harness_ask(load->fd, "flush_all\r\nmn\r\n", "OK\r\nMN\r\n");
    }
    return NULL;
}

/* Requests that wait, two that stop the world, and reloads, all at once. */
static void test_all_at_once(void **state)
{
    enum { THREADS = 4, RELOADS = 30 };
    struct settings other = harness.settings;
    struct load loads[THREADS];
    pthread_t threads[THREADS];

    (void)state;
    other.space_count = 1; /* c comes and goes */
    for (unsigned i = 0; i < THREADS; i++) {
        loads[i] = (struct load){harness_connect(&harness), harness.store, 1000 * i, 0};
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < 2 ? create_many : flush_many, &loads[i]), 0);
    }
    for (int i = 0; i < RELOADS; i++) {
        const struct settings *next = i % 2 == 0 ? &other : &harness.settings;

        assert_true(reload_apply(harness.server, next, harness.create));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        close(loads[i].fd);
    }
}

static void need_and_incr(int fd, struct engine *engine, const char *line, unsigned id)
{
    fake_engine_need_table(engine, id);
    harness_ask(fd, line, "STORED\r\n");
}

/* What was recycled counts as evicted, since the last reset, and also when its space is gone. */
static void test_recycled_is_evicted(void **state)
{
    struct settings next = harness.settings;
    int fd = harness_connect(&harness);

    (void)state;
    fake_engine_recycle(harness.store, 100);
    fake_engine_recycle(harness.cache, 7);
    need_and_incr(fd, harness.store, "set f:1.a 0 0 1\r\n1\r\n", 1);
    need_and_incr(fd, harness.cache, "set c:1.a 0 0 1\r\n1\r\n", 1);
    assert_int_equal(harness_stat(&harness, "evictions"), 107);
    harness_ask(fd, "stats reset\r\n", "RESET\r\n");
    assert_int_equal(harness_stat(&harness, "evictions"), 0);
    need_and_incr(fd, harness.store, "set f:2.a 0 0 1\r\n1\r\n", 2);
    need_and_incr(fd, harness.cache, "set c:2.a 0 0 1\r\n1\r\n", 2);
    fake_engine_fill(harness.cache, true);
    harness_ask(fd, "set c:3.a 0 0 1\r\n1\r\n", "STORED\r\n");
    assert_int_equal(harness_stat(&harness, "evictions"), 108);
    next.space_count = 1;
    assert_true(reload_apply(harness.server, &next, harness.create));
    assert_int_equal(harness_stat(&harness, "evictions"), 108);
    assert_true(reload_apply(harness.server, &harness.settings, harness.create));
    close(fd);
}

int main(void)
{
#define TEST(name)           cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_LATER(name)     cmocka_unit_test_setup_teardown(name, setup_later, teardown)
#define TEST_IMPATIENT(name) cmocka_unit_test_setup_teardown(name, setup_impatient, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_run_again),
        TEST_LATER(test_order),
        TEST(test_noreply),
        TEST(test_past_exptime),
        TEST_LATER(test_many_wait_for_one),
        TEST_LATER(test_gone_while_waiting),
        TEST_LATER(test_end_while_waiting),
        TEST(test_end_while_maintained),
        TEST(test_flush_all_meanwhile),
        TEST(test_flush_all_in_a_bracket),
        TEST_IMPATIENT(test_flush_all_too_long),
        TEST_IMPATIENT(test_flush_all_and_gone),
        TEST_IMPATIENT(test_too_long),
        TEST(test_not_too_long),
        TEST_LATER(test_reload_drops_the_space),
        TEST_LATER(test_reload_keeps_the_space),
        TEST(test_reload_adds_a_space),
        TEST(test_all_at_once),
        TEST(test_recycled_is_evicted),
    };

    log_setup("test_suspend", LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
