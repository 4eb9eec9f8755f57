/*
 * Requests through real sockets and worker threads, with an engine that can answer PENDING: order
 * of replies, running again from routing, close and reset while suspended, blocks, a full output.
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

#include "base/buf.h"
#include "base/memory.h"
#include "harness.h"

#define LARGE_BYTES (64u << 20)

static struct harness harness;

static void let_flush(struct settings *settings)
{
    settings->flush_all = true;
}

/* Turns that end for nothing but a full output. */
static void be_greedy(struct settings *settings)
{
    settings->requests_per_turn = 1000000;
}

static struct harness_of usual = {&harness, 2, NULL};
static struct harness_of flushing = {&harness, 2, let_flush};
static struct harness_of greedy = {&harness, 2, be_greedy};

static void test_each_command(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "get f:1.a\r\n", "END\r\n");
    harness_ask(fd, "set f:1.a 7 0 2\r\n42\r\n", "STORED\r\n");
    harness_ask(fd, "get f:1.a\r\n", "VALUE f:1.a 0 2\r\n42\r\nEND\r\n");
    harness_ask(fd, "incr f:1.a 8\r\n", "50\r\n");
    harness_ask(fd, "decr f:1.a 60\r\n", "0\r\n");
    harness_ask(fd, "add f:1.a 0 0 1\r\n1\r\n", "NOT_STORED\r\n");
    harness_ask(fd, "add f:2.a 0 0 1\r\n1\r\n", "STORED\r\n");
    harness_ask(fd, "replace f:3.a 0 0 1\r\n1\r\n", "NOT_STORED\r\n");
    harness_ask(fd, "append f:3.a 0 0 1\r\n1\r\n", "NOT_STORED\r\n");
    harness_ask(fd, "append f:1.a 0 0 1\r\n1\r\n", "CLIENT_ERROR append not supported\r\n");
    harness_ask(fd, "prepend f:1.a 0 0 1\r\n1\r\n", "CLIENT_ERROR append not supported\r\n");
    harness_ask(fd, "cas f:1.a 0 0 1 999\r\n1\r\n", "EXISTS\r\n");
    harness_ask(fd, "cas f:9.a 0 0 1 999\r\n1\r\n", "NOT_FOUND\r\n");
    harness_ask(fd, "touch f:1.a 0\r\n", "TOUCHED\r\n");
    harness_ask(fd, "touch f:9.a 0\r\n", "NOT_FOUND\r\n");
    harness_ask(fd, "gat 0 f:1.a f:9.a\r\n", "VALUE f:1.a 0 1\r\n0\r\nEND\r\n");
    harness_ask(fd, "delete f:1.a\r\n", "DELETED\r\n");
    harness_ask(fd, "delete f:1.a\r\n", "NOT_FOUND\r\n");
    harness_ask(fd, "set f:1.a 0 0 1\r\nx\r\n", "CLIENT_ERROR value is not a number\r\n");
    harness_ask(fd, "incr f:1.a x\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n");
    harness_ask(fd, "set f:1 0 0 3\r\n1,2\r\n", "STORED\r\n");
    harness_ask(fd, "incr f:1 1\r\n", "CLIENT_ERROR needs 2 numbers: a,b, or name a slot\r\n");
    harness_ask(fd, "incr c:1.a 1\r\n", "NOT_FOUND\r\n");
    harness_ask(fd, "get nothing f:x f:1.z\r\n", "END\r\n");
    harness_ask(fd, "set nothing 0 0 1\r\n1\r\n", "CLIENT_ERROR no space for key\r\n");
    harness_ask(fd, "set f:x 0 0 1\r\n1\r\n", "CLIENT_ERROR bad key for space f\r\n");
    harness_ask(fd, "delete f:1.z\r\n", "CLIENT_ERROR bad key for space f: slots a,b\r\n");
    harness_ask(fd, "version\r\nmn\r\n", "VERSION 1.6.45\r\nMN\r\n");
    harness_ask(fd, "flush_all\r\n", "CLIENT_ERROR flush_all not allowed\r\n");
    harness_ask(fd, "nonsense\r\n", "ERROR\r\n");
    harness_say(fd, "quit\r\n");
    harness_expect_closed(fd);
    close(fd);
}

static void test_past_exptime_deletes(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "set f:1.a 0 -1 1\r\n5\r\nget f:1.a\r\n", "STORED\r\nEND\r\n");
    harness_ask(fd, "set f:1.a 0 3000000 1\r\n5\r\nget f:1.a\r\n", "STORED\r\nEND\r\n");
    harness_ask(fd, "set f:1.a 0 2592000 1\r\n5\r\nget f:1.a\r\n",
                "STORED\r\nVALUE f:1.a 0 1\r\n5\r\nEND\r\n");
    harness_ask(fd, "add f:1.a 0 -1 1\r\n6\r\nget f:1.a\r\n",
                "NOT_STORED\r\nVALUE f:1.a 0 1\r\n5\r\nEND\r\n");
    harness_ask(fd, "gat -1 f:1.a f:1.a\r\n", "VALUE f:1.a 0 1\r\n5\r\nEND\r\n");
    harness_ask(fd, "set f:1.a 0 0 1\r\n5\r\ntouch f:1.a -1\r\nget f:1.a\r\ntouch f:1.a -1\r\n",
                "STORED\r\nTOUCHED\r\nEND\r\nNOT_FOUND\r\n");
    close(fd);
}

/* It is one change: what was stored and could not be deleted would be a refusal that changed
 * something. */
static void test_past_exptime_is_one_change(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    fake_engine_jam(harness.store);
    harness_ask(fd, "add f:1.a 0 -1 1\r\n5\r\nget f:1.a\r\n", "STORED\r\nEND\r\n");
    harness_ask(fd, "set f:1.a 0 0 1\r\n5\r\nadd f:1.a 0 -1 1\r\n6\r\nget f:1.a\r\n",
                "STORED\r\nNOT_STORED\r\nVALUE f:1.a 0 1\r\n5\r\nEND\r\n");
    harness_ask(fd, "set f:1.a 0 -1 1\r\n5\r\nget f:1.a\r\n", "STORED\r\nEND\r\n");
    harness_ask(fd, "set f:1.a 0 0 1\r\n5\r\ntouch f:1.a -1\r\nget f:1.a\r\n",
                "STORED\r\nSERVER_ERROR busy\r\nVALUE f:1.a 0 1\r\n5\r\nEND\r\n");
    close(fd);
}

/* Every request sees all earlier ones, and neighbouring reads are one call. */
static void test_order_in_a_batch(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd,
                "set f:1.a 0 0 1\r\n5\r\nget f:1.a\r\nget f:2.a f:1.a\r\nincr f:1.a 2\r\n"
                "get f:1.a\r\ndelete f:1.a\r\nget f:1.a\r\nincr c:1.a 1\r\nget c:1.a f:1.a\r\n",
                "STORED\r\nVALUE f:1.a 0 1\r\n5\r\nEND\r\nVALUE f:1.a 0 1\r\n5\r\nEND\r\n7\r\n"
                "VALUE f:1.a 0 1\r\n7\r\nEND\r\nDELETED\r\nEND\r\nNOT_FOUND\r\nEND\r\n");
    assert_int_equal(fake_engine_reads_longest(harness.store), 3);
    close(fd);
}

/* Requests of one key are routed together as far as they ask for the same. */
static void test_neighbours_differ(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd,
                "set f:1.a 0 0 1\r\n5\r\nset f:1.a 0 -1 1\r\n6\r\nset f:2.a 0 0 1\r\n7\r\n"
                "get f:1.a f:2.a\r\n",
                "STORED\r\nSTORED\r\nSTORED\r\nVALUE f:2.a 0 1\r\n7\r\nEND\r\n");
    harness_ask(fd,
                "set f:3.a 0 0 1\r\n5\r\nreplace f:9.a 0 0 1\r\n1\r\nset f:4.a 0 0 1\r\n6\r\n"
                "get f:9.a f:4.a\r\n",
                "STORED\r\nNOT_STORED\r\nSTORED\r\nVALUE f:4.a 0 1\r\n6\r\nEND\r\n");
    harness_ask(fd,
                "set f:5.a 0 0 1 noreply\r\n5\r\nset f:5.a 0 -1 1\r\n6\r\n"
                "get f:5.a\r\n",
                "STORED\r\nEND\r\n");
    harness_ask(fd, "mg f:2.a v\r\nmg f:2.a v N0\r\nmg f:2.a v\r\n",
                "VA 1\r\n7\r\nCLIENT_ERROR invalid flag\r\nVA 1\r\n7\r\n");
    close(fd);
}

/* Asks with an id in place of each '@', in the answer too. */
static void ask_of(int fd, const char *ask, const char *id, const char *answer)
{
    const char *texts[] = {ask, answer};
    struct buf with_id[2];

    for (size_t i = 0; i < 2; i++) {
        buf_init(&with_id[i], LARGE_BYTES, NULL);
        for (const char *at = texts[i]; *at != '\0'; at++) {
            assert_true(*at == '@' ? buf_append(&with_id[i], id, strlen(id))
                                   : buf_append(&with_id[i], at, 1));
        }
    }
    harness_send(fd, with_id[0].data, with_id[0].length);
    harness_expect_bytes(fd, with_id[1].data, with_id[1].length);
    buf_fini(&with_id[0]);
    buf_fini(&with_id[1]);
}

/*
 * Increments that follow each other are carried out together, each as if it were alone: among them
 * what is not there, a refusal, another verb, one that is quiet, and one without a key. Ids of 19
 * digits are routed by what their keys begin with.
 */
static void test_increments_together(void **state)
{
    static const char *const ids[] = {"7", "1234567890123456789"};
    int fd = harness_connect(&harness);

    (void)state;
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        ask_of(fd, "set f:@.a 0 0 1\r\n5\r\nset c:@.a 0 0 1\r\n1\r\n", ids[i],
               "STORED\r\nSTORED\r\n");
        ask_of(fd,
               "incr f:@.a 1\r\nincr f:@.a 2\r\nincr f:@.a 3\r\nincr f:@.b 7\r\n"
               "incr f:@.a 10\r\nincr f:@.a x\r\nincr f:@ 1\r\nincr f:@.a 1\r\n",
               ids[i],
               "6\r\n8\r\n11\r\n7\r\n21\r\nCLIENT_ERROR invalid numeric delta argument\r\n"
               "CLIENT_ERROR needs 2 numbers: a,b, or name a slot\r\n22\r\n");
        ask_of(fd, "incr f:@.a 1\r\nversion\r\nincr f:@.a 1\r\nversion\r\n", ids[i],
               "23\r\nVERSION 1.6.45\r\n24\r\nVERSION 1.6.45\r\n");
        ask_of(fd, "incr f:@.a 1\r\nincr f:@.a 1 noreply\r\nincr f:@.a 1\r\n", ids[i],
               "25\r\n27\r\n");
        ask_of(fd,
               "incr f:@.a 1\r\nincr f:@.z 1\r\nincr nothing 1\r\nincr f:@.b 1\r\n"
               "incr c:@.a 1\r\nincr c:@.b 1\r\ndecr f:@.a 100\r\nincr f:@.a 1\r\n",
               ids[i],
               "28\r\nCLIENT_ERROR bad key for space f: slots a,b\r\n"
               "CLIENT_ERROR no space for key\r\n8\r\n2\r\nNOT_FOUND\r\n0\r\n1\r\n");
        ask_of(fd,
               "set f:@.a 0 0 2\r\n40\r\nset f:@ 0 0 3\r\n1,2\r\nincr f:@.a 2\r\n"
               "get f:@.a\r\n",
               ids[i], "STORED\r\nSTORED\r\n42\r\nVALUE f:@.a 0 2\r\n42\r\nEND\r\n");
        ask_of(fd, "ma f:@.a v\r\nma f:@.a v q\r\nincr f:@.a 1\r\nma f:@.a v\r\n", ids[i],
               "VA 2\r\n43\r\n45\r\nVA 2\r\n46\r\n");
    }
    assert_int_equal(fake_engine_adds_longest(harness.store), 4);
    assert_int_equal(harness_stat(&harness, "incr_hits"), 2 * 20);
    assert_int_equal(harness_stat(&harness, "decr_hits"), 2);
    assert_int_equal(harness_stat(&harness, "incr_misses"), 2);
    close(fd);
}

static void test_two_spaces_in_one_get(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "set f:1.a 0 0 1\r\n5\r\nset c:1.a 0 0 1\r\n6\r\nset c:2.a 0 0 1\r\n7\r\n",
                "STORED\r\nSTORED\r\nSTORED\r\n");
    harness_ask(fd, "get c:1.a f:1.a none c:2.a f:x f:1.a\r\n",
                "VALUE c:1.a 0 1\r\n6\r\nVALUE f:1.a 0 1\r\n5\r\nVALUE c:2.a 0 1\r\n7\r\n"
                "VALUE f:1.a 0 1\r\n5\r\nEND\r\n");
    assert_int_equal(harness_stat(&harness, "no_space"), 1);
    close(fd);
}

static void test_one_byte_at_a_time(void **state)
{
    static const char script[] = "set f:1.a 0 0 2\r\n42\r\nget f:1.a f:2.a\r\nbad\r\n"
                                 "incr f:1.a 1\r\nset f:1.a 0 0 9999\r\n";
    static const char answer[] = "STORED\r\nVALUE f:1.a 0 2\r\n42\r\nEND\r\nERROR\r\n43\r\n"
                                 "SERVER_ERROR object too large for cache\r\n";
    int fd = harness_connect(&harness);
    char *data = memory_zalloc(10002);

    (void)state;
    for (size_t i = 0; i < sizeof(script) - 1; i++) {
        harness_send(fd, &script[i], 1);
    }
    harness_expect(fd, answer);
    memset(data, 'x', 10001); /* 9999 bytes and CRLF, then whole lines */
    harness_send(fd, data, 10001);
    harness_ask(fd, "get f:1.a\r\n", "VALUE f:1.a 0 2\r\n43\r\nEND\r\n");
    free(data);
    close(fd);
}

/* What comes before is answered, what comes after waits, nothing of it has happened. */
static void test_pending_read_keeps_order(void **state)
{
    int fd = harness_connect(&harness);
    int other = harness_connect(&harness);

    (void)state;
    harness_ask(other, "set f:1.a 0 0 1\r\n1\r\nset f:7.a 0 0 1\r\n7\r\nset f:8.a 0 0 1\r\n8\r\n",
                "STORED\r\nSTORED\r\nSTORED\r\n");
    fake_engine_hold(harness.store, 7);
    harness_say(fd, "get f:1.a\r\nget f:8.a f:7.a f:1.a\r\nincr f:8.a 1\r\nget f:8.a\r\n");
    harness_expect(fd, "VALUE f:1.a 0 1\r\n1\r\nEND\r\n");
    fake_engine_await(harness.store, 1);
    harness_ask(other, "get f:8.a\r\n", "VALUE f:8.a 0 1\r\n8\r\nEND\r\n");
    harness_ask(other, "set f:1.a 0 0 1\r\n2\r\n", "STORED\r\n");
    harness_say(fd, "mn\r\n"); /* not even read */
    fake_engine_release(harness.store, 7);
    harness_expect(fd, "VALUE f:8.a 0 1\r\n8\r\nVALUE f:7.a 0 1\r\n7\r\nVALUE f:1.a 0 1\r\n2\r\n"
                       "END\r\n9\r\nVALUE f:8.a 0 1\r\n9\r\nEND\r\nMN\r\n");
    assert_int_equal(harness_stat(&harness, "suspensions"), 1);
    assert_int_equal(harness_stat(&harness, "cmd_get"), 6);
    harness_say(other, "stats spaces\r\n"); /* run twice, counted once */
    char *spaces = harness_until_end(other);

    assert_non_null(strstr(spaces, "STAT f:hits 6\r\n"));
    free(spaces);
    close(fd);
    close(other);
}

/* All other keys of the request are started: two held ids are both waited for at once. */
static void test_pending_starts_all_keys(void **state)
{
    int fd = harness_connect(&harness);
    struct buf keys;
    struct buf answer;

    (void)state;
    buf_init(&keys, LARGE_BYTES, NULL);
    buf_init(&answer, LARGE_BYTES, NULL);
    harness_ask(fd, "set f:0.a 0 0 1\r\n1\r\nset f:300.a 0 0 1\r\n2\r\n", "STORED\r\nSTORED\r\n");
    fake_engine_hold(harness.store, 0);
    fake_engine_hold(harness.store, 300);
    assert_true(buf_print(&keys, "get"));
    for (int i = 0; i <= 300; i++) {
        assert_true(buf_print(&keys, " f:%d.a", i));
    }
    assert_true(buf_print(&keys, "\r\n"));
    harness_send(fd, keys.data, keys.length);
    fake_engine_await(harness.store, 2);
    fake_engine_release(harness.store, 300);
    fake_engine_release(harness.store, 0);
    harness_expect(fd, "VALUE f:0.a 0 1\r\n1\r\nVALUE f:300.a 0 1\r\n2\r\nEND\r\n");
    buf_fini(&keys);
    buf_fini(&answer);
    close(fd);
}

static void test_pending_change(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    fake_engine_hold(harness.store, 7);
    harness_say(fd, "incr f:1.a 1\r\nincr f:7.a 3\r\nincr f:1.a 1\r\ntouch f:7.a 0\r\n");
    harness_expect(fd, "1\r\n");
    fake_engine_await(harness.store, 1);
    assert_int_equal(fake_engine_changes(harness.store), 1);
    fake_engine_release(harness.store, 7);
    harness_expect(fd, "3\r\n2\r\nTOUCHED\r\n");
    close(fd);
}

static void reset(int fd)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
}

static void test_gone_while_suspended(void **state)
{
    (void)state;
    fake_engine_hold(harness.store, 7);
    for (int i = 0; i < 20; i++) {
        int fd = harness_connect(&harness);

        harness_say(fd, "get f:7.a\r\nincr f:5.a 1\r\n");
        fake_engine_await(harness.store, (size_t)i + 1);
        if (i % 2 == 0) {
            close(fd);
        } else {
            reset(fd);
        }
    }
    fake_engine_release(harness.store, 7);
    int fd = harness_connect(&harness);

    harness_ask(fd, "get f:7.a\r\n", "END\r\n");
    close(fd);
}

/* The server goes away with connections suspended. */
static void test_stop_while_suspended(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    fake_engine_hold(harness.store, 7);
    harness_say(fd, "get f:7.a\r\n");
    fake_engine_await(harness.store, 1);
    close(fd);
}

static void ask_keys(struct buf *ask, struct buf *answer, int keys)
{
    assert_true(buf_print(ask, "get"));
    for (int i = 0; i < keys; i++) {
        assert_true(buf_print(ask, " f:%d.a", i));
        if (i % 2 == 0) {
            assert_true(buf_print(answer, "VALUE f:%d.a 0 1\r\n3\r\n", i));
        }
    }
    assert_true(buf_print(ask, "\r\n"));
}

static void store_even(int fd, int keys)
{
    struct buf ask;

    buf_init(&ask, LARGE_BYTES, NULL);
    for (int i = 0; i < keys; i += 2) {
        assert_true(buf_print(&ask, "set f:%d.a 0 0 1 noreply\r\n3\r\n", i));
    }
    assert_true(buf_print(&ask, "mn\r\n"));
    harness_send(fd, ask.data, ask.length);
    harness_expect(fd, "MN\r\n");
    buf_fini(&ask);
}

static void test_blocks_of_a_long_get(void **state)
{
    int fd = harness_connect(&harness);
    struct buf ask;
    struct buf answer;

    (void)state;
    buf_init(&ask, LARGE_BYTES, NULL);
    buf_init(&answer, LARGE_BYTES, NULL);
    store_even(fd, 10000);
    ask_keys(&ask, &answer, 10000);
    assert_true(buf_print(&answer, "END\r\n"));
    harness_send(fd, ask.data, ask.length);
    harness_expect_bytes(fd, answer.data, answer.length);
    assert_true(fake_engine_reads_longest(harness.store) > 64);

    /* a pending key in the second block holds back that block, not the first */
    fake_engine_hold(harness.store, 1500);
    harness_send(fd, ask.data, ask.length);
    size_t first_block =
        (size_t)((char *)memmem(answer.data, answer.length, "VALUE f:1024.a", 14) - answer.data);

    harness_expect_bytes(fd, answer.data, first_block);
    fake_engine_await(harness.store, 1);
    fake_engine_release(harness.store, 1500);
    harness_expect_bytes(fd, answer.data + first_block, answer.length - first_block);
    harness_ask(fd, "mn\r\n", "MN\r\n");
    buf_fini(&ask);
    buf_fini(&answer);
    close(fd);
}

static void test_failed_read(void **state)
{
    int fd = harness_connect(&harness);
    struct buf ask;
    struct buf answer;

    (void)state;
    buf_init(&ask, LARGE_BYTES, NULL);
    buf_init(&answer, LARGE_BYTES, NULL);
    store_even(fd, 3000);
    fake_engine_break(harness.store, 900);
    harness_ask(fd, "get f:2.a f:900.a f:4.a\r\nget f:2.a\r\n",
                "SERVER_ERROR disk read failed\r\nVALUE f:2.a 0 1\r\n3\r\nEND\r\n");
    ask_keys(&ask, &answer, 3000);
    harness_send(fd, ask.data, ask.length); /* in the first block: one line, the rest passed over */
    harness_ask(fd, "mn\r\n", "SERVER_ERROR disk read failed\r\nMN\r\n");
    close(fd);
    buf_fini(&ask);
    buf_fini(&answer);
}

static void test_failed_read_in_a_later_block(void **state)
{
    int fd = harness_connect(&harness);
    struct buf ask;
    struct buf answer;

    (void)state;
    buf_init(&ask, LARGE_BYTES, NULL);
    buf_init(&answer, LARGE_BYTES, NULL);
    store_even(fd, 3000);
    fake_engine_break(harness.store, 1500);
    ask_keys(&ask, &answer, 3000);
    assert_true(buf_print(&ask, "mn\r\n"));
    harness_send(fd, ask.data, ask.length);
    size_t first_block =
        (size_t)((char *)memmem(answer.data, answer.length, "VALUE f:1024.a", 14) - answer.data);

    harness_expect_bytes(fd, answer.data, first_block);
    harness_expect(fd, "SERVER_ERROR disk read failed\r\n");
    harness_expect_closed(fd);
    close(fd);
    buf_fini(&ask);
    buf_fini(&answer);
}

/* Many times the output's limit, in one packet stream, read only at the end. */
static void test_output_full(void **state)
{
    enum { TIMES = 12000 };
    int fd = harness_connect(&harness);
    char record[ENGINE_VALUE_MAX + 1];
    struct buf ask;
    struct buf answer;

    (void)state;
    memset(record, '1', ENGINE_VALUE_MAX);
    record[ENGINE_VALUE_MAX] = '\0';
    buf_init(&ask, LARGE_BYTES, NULL);
    buf_init(&answer, LARGE_BYTES, NULL);
    assert_true(buf_print(&ask, "set f:1 0 0 %d\r\n%s\r\n", ENGINE_VALUE_MAX, record));
    assert_true(buf_print(&answer, "STORED\r\n"));
    for (int i = 0; i < TIMES; i++) {
        assert_true(buf_print(&ask, "get f:1\r\n"));
        assert_true(
            buf_print(&answer, "VALUE f:1 0 %d\r\n%s\r\nEND\r\n", ENGINE_VALUE_MAX, record));
    }
    harness_send(fd, ask.data, ask.length);
    harness_expect_bytes(fd, answer.data, answer.length);
    buf_fini(&ask);
    buf_fini(&answer);
    close(fd);
}

static void test_many_pipelined(void **state)
{
    enum { TIMES = 100000 };
    int fd = harness_connect(&harness);
    struct buf ask;
    struct buf answer;

    (void)state;
    buf_init(&ask, LARGE_BYTES, NULL);
    buf_init(&answer, LARGE_BYTES, NULL);
    for (int i = 1; i <= TIMES; i++) {
        assert_true(buf_print(&ask, "incr f:1.a 1\r\n"));
        assert_true(buf_print(&answer, "%d\r\n", i));
    }
    harness_send(fd, ask.data, ask.length);
    harness_expect_bytes(fd, answer.data, answer.length);
    assert_int_equal(harness_stat(&harness, "incr_hits"), TIMES);
    buf_fini(&ask);
    buf_fini(&answer);
    close(fd);
}

static void test_closed_at_every_point(void **state)
{
    static const char script[] = "get f:1.a f:2.a\r\nset f:1.a 0 0 2\r\n42\r\nincr f:1.a 1\r\n"
                                 "set f:1.a 0 0 5000\r\nxxxxxxxxxxxx";

    (void)state;
    for (size_t length = 0; length < sizeof(script); length++) {
        int fd = harness_connect(&harness);

        harness_send(fd, script, length);
        if (length % 2 == 0) {
            close(fd);
        } else {
            reset(fd);
        }
    }
    int fd = harness_connect(&harness);

    harness_ask(fd, "mn\r\n", "MN\r\n");
    close(fd);
}

static void test_quiet(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd,
                "set f:1.a 0 0 1 noreply\r\n5\r\nincr f:1.a x noreply\r\nset none 0 0 1 noreply\r\n"
                "1\r\nincr f:1.a 1 noreply\r\ndelete f:3.a noreply\r\nflush_all noreply\r\n"
                "get f:1.a\r\n",
                "VALUE f:1.a 0 1\r\n6\r\nEND\r\n");
    assert_int_equal(harness_stat(&harness, "refused_noreply"), 3);
    close(fd);
}

/* Role cache: a write without room is dropped, and what it would have changed goes with it. */
static void test_cache_without_room(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "set c:1.a 0 0 1\r\n5\r\n", "STORED\r\n");
    fake_engine_fill(harness.cache, true);
    fake_engine_fill(harness.store, true);
    harness_ask(fd, "set c:1.a 0 0 1\r\n6\r\nget c:1.a\r\n", "STORED\r\nEND\r\n");
    harness_ask(fd, "incr c:2.a 1\r\n", "NOT_FOUND\r\n");
    harness_ask(fd, "set f:1.a 0 0 1\r\n6\r\n", "SERVER_ERROR out of memory storing object\r\n");
    harness_ask(fd, "incr f:1.a 6\r\n", "SERVER_ERROR out of memory storing object\r\n");
    assert_int_equal(harness_stat(&harness, "evictions"), 2);
    close(fd);
}

static void *flush_many(void *context)
{
    int fd = *(int *)context;

    for (int i = 0; i < 50; i++) {
        harness_ask(fd, "incr f:1.a 1 noreply\r\nflush_all\r\nmn\r\n", "OK\r\nMN\r\n");
    }
    return NULL;
}

/* Several at once: one clear may serve more than one, none is left out. */
static void test_flush_all_at_once(void **state)
{
    pthread_t threads[4];
    int fds[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        fds[i] = harness_connect(&harness);
        assert_int_equal(pthread_create(&threads[i], NULL, flush_many, &fds[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(harness_stat(&harness, "cmd_flush"), 200);
    assert_in_range(fake_engine_clears(harness.store), 50, 200);
    harness_ask(fds[0], "set f:1.a 0 0 1\r\n5\r\nget f:1.a\r\nflush_all 0\r\nget f:1.a\r\n",
                "STORED\r\nVALUE f:1.a 0 1\r\n5\r\nEND\r\nOK\r\nEND\r\n");
    harness_ask(fds[0], "flush_all 10\r\n", "CLIENT_ERROR flush_all delay not supported\r\n");
    for (int i = 0; i < 4; i++) {
        close(fds[i]);
    }
}

static void test_binary_is_closed(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_send(fd, "\x80\0\0\0", 4);
    char byte;

    assert_true(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
}

static void *count_many(void *context)
{
    int fd = *(int *)context;

    for (int i = 0; i < 200; i++) {
        harness_ask(fd, "incr f:1.a 1 noreply\r\nincr f:1.a 1 noreply\r\nmn\r\n", "MN\r\n");
    }
    return NULL;
}

static void test_two_workers(void **state)
{
    pthread_t threads[4];
    int fds[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        fds[i] = harness_connect(&harness);
        assert_int_equal(pthread_create(&threads[i], NULL, count_many, &fds[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    harness_ask(fds[0], "get f:1.a\r\n", "VALUE f:1.a 0 4\r\n1600\r\nEND\r\n");
    for (int i = 0; i < 4; i++) {
        close(fds[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HARNESS_TEST(test_each_command, &usual),
        HARNESS_TEST(test_past_exptime_deletes, &usual),
        HARNESS_TEST(test_past_exptime_is_one_change, &usual),
        HARNESS_TEST(test_order_in_a_batch, &usual),
        HARNESS_TEST(test_neighbours_differ, &usual),
        HARNESS_TEST(test_increments_together, &usual),
        HARNESS_TEST(test_two_spaces_in_one_get, &usual),
        HARNESS_TEST(test_one_byte_at_a_time, &usual),
        HARNESS_TEST(test_pending_read_keeps_order, &usual),
        HARNESS_TEST(test_pending_starts_all_keys, &usual),
        HARNESS_TEST(test_pending_change, &usual),
        HARNESS_TEST(test_gone_while_suspended, &usual),
        HARNESS_TEST(test_stop_while_suspended, &usual),
        HARNESS_TEST(test_blocks_of_a_long_get, &usual),
        HARNESS_TEST(test_failed_read, &usual),
        HARNESS_TEST(test_failed_read_in_a_later_block, &usual),
        HARNESS_TEST(test_output_full, &usual),
        HARNESS_TEST(test_output_full, &greedy),
        HARNESS_TEST(test_many_pipelined, &usual),
        HARNESS_TEST(test_many_pipelined, &greedy),
        HARNESS_TEST(test_closed_at_every_point, &usual),
        HARNESS_TEST(test_quiet, &usual),
        HARNESS_TEST(test_cache_without_room, &usual),
        HARNESS_TEST(test_flush_all_at_once, &flushing),
        HARNESS_TEST(test_binary_is_closed, &usual),
        HARNESS_TEST(test_two_workers, &usual),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
