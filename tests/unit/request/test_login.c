/*
 * Who is let in, through real sockets: what is answered before a login, a login after a login, and
 * what wrong passwords cost. The clock is the test's: it runs, and jumps with pass().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <poll.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "config/auth.h"
#include "harness.h"
#include "net/peer.h"
#include "protocol/binary.h"
#include "request/auth_delay.h"

#define SECOND_US     1000000u
#define WAIT_S        20u   /* after which a login is refused unseen */
#define WAITING_BYTES 4096u /* that may wait with one */

#define RIGHT "set x 0 0 10\r\njoe secret\r\n"
#define WRONG "set x 0 0 9\r\njoe wrong\r\n"
#define NO    "CLIENT_ERROR authentication failure\r\n"
#define LATER "SERVER_ERROR too many wrong passwords, try again later\r\n"

/* ---- base's clock ---- */

static _Atomic uint64_t passed_us;
static _Atomic uint64_t drawn;

uint64_t clock_monotonic_us(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (uint64_t)now.tv_sec * SECOND_US + (uint64_t)now.tv_nsec / 1000u + passed_us;
}

uint64_t clock_wall_s(void)
{
    return 1700000000;
}

uint64_t clock_random(void)
{
    return hash_u64(++drawn);
}

static void pass(unsigned seconds)
{
    passed_us += (uint64_t)seconds * SECOND_US;
}

/* ---- a server ---- */

static struct harness harness;

static int setup(void **state)
{
    static const char users[] = "joe:secret\nann:words\n";
    char error[AUTH_ERROR_MAX];

    (void)state;
    log_setup("test", LOG_LEVEL_ERROR);
    harness_init(&harness, 1);
    harness.settings.auth = auth_parse_text(users, strlen(users), error);
    assert_non_null(harness.settings.auth);
    harness_start(&harness);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    harness_fini(&harness);
    auth_destroy(harness.settings.auth);
    return 0;
}

static int log_in(void)
{
    int fd = harness_connect(&harness);

    harness_ask(fd, RIGHT, "STORED\r\n");
    return fd;
}

/* A figure, asked on a connection that is in. */
static unsigned long long figure(int fd, const char *name)
{
    char line[64];
    unsigned long long number = 0;

    harness_say(fd, "stats\r\n");
    char *text = harness_until_end(fd);

    snprintf(line, sizeof(line), "STAT %s ", name);
    const char *at = strstr(text, line);

    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(line), "%llu", &number), 1);
    free(text);
    return number;
}

static bool says_nothing(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    return poll(&poll_fd, 1, 0) == 0;
}

static void await(int fd, const char *name, unsigned long long least)
{
    for (int i = 0; figure(fd, name) < least; i++) {
        assert_true(i < 1000);
        poll(NULL, 0, 10);
    }
}

/* Wrong passwords on connections of their own, as many as do not wait; then some more, `later_s`
 * from now, so that the next one waits as long as any: until the time that is returned. */
static uint64_t guess_wrong(unsigned later_s)
{
    struct auth_delay *delay = harness.server->auth_delay;
    uint64_t origin = 0;

    for (unsigned i = 0; i < AUTH_DELAY_FREE + 1; i++) {
        int fd = harness_connect(&harness);

        harness_ask(fd, WRONG, NO);
        origin = net_peer_origin(fd); /* ours is the same */
        close(fd);
    }
    uint64_t time_us = clock_monotonic_us() + (uint64_t)later_s * SECOND_US;

    for (unsigned s = AUTH_DELAY_FIRST_S; s < AUTH_DELAY_MAX_S; s *= 2) {
        time_us += s * SECOND_US;
        assert_true(auth_delay_begin(delay, origin, 0, time_us));
        auth_delay_end(delay, origin, time_us, false);
    }
    return time_us + AUTH_DELAY_MAX_S * SECOND_US;
}

/* ---- the binary dialect ---- */

static void say_packet(int fd, unsigned char opcode, unsigned char extras, const char *key,
                       const char *value, size_t value_length)
{
    char bytes[2048] = {0};
    size_t key_length = strlen(key);
    size_t body = extras + key_length + value_length;

    bytes[0] = (char)BINARY_MAGIC;
    bytes[1] = (char)opcode;
    bytes[3] = (char)key_length;
    bytes[4] = (char)extras;
    bytes[10] = (char)(body >> 8);
    bytes[11] = (char)body;
    memcpy(bytes + BINARY_HEADER_BYTES + extras, key, key_length);
    memcpy(bytes + BINARY_HEADER_BYTES + extras + key_length, value, value_length);
    harness_send(fd, bytes, BINARY_HEADER_BYTES + body);
}

/* The status of the next answer, whose body is read, too. */
static unsigned status_of_answer(int fd, unsigned char opcode)
{
    unsigned char header[BINARY_HEADER_BYTES];
    char body[256];

    assert_int_equal(recv(fd, header, sizeof(header), MSG_WAITALL), sizeof(header));
    assert_int_equal(header[0], 0x81);
    assert_int_equal(header[1], opcode);
    size_t length = (size_t)header[10] << 8 | header[11];

    assert_true(length <= sizeof(body));
    assert_true(length == 0 || recv(fd, body, length, MSG_WAITALL) == (ssize_t)length);
    return (unsigned)header[6] << 8 | header[7];
}

#define SASL_RIGHT "\0joe\0secret"
#define SASL_WRONG "\0joe\0wrong"

static int log_in_binary(void)
{
    int fd = harness_connect(&harness);

    say_packet(fd, 0x21, 0, "PLAIN", SASL_RIGHT, sizeof(SASL_RIGHT) - 1);
    assert_int_equal(status_of_answer(fd, 0x21), 0);
    return fd;
}

/* ---- the tests ---- */

/* Not even the version; the list of mechanisms is part of the login. */
static void test_nothing_else(void **state)
{
    int text = harness_connect(&harness), binary = harness_connect(&harness);

    (void)state;
    harness_ask(text, "version\r\n", "CLIENT_ERROR unauthenticated\r\n");
    say_packet(binary, 0x20, 0, "", "", 0);
    assert_int_equal(status_of_answer(binary, 0x20), 0);
    for (int i = 0; i < 3; i++) {
        say_packet(binary, 0x0b, 0, "", "", 0);
        assert_int_equal(status_of_answer(binary, 0x0b), 0x20);
    }
    harness_expect_closed(binary);
    close(text);
    int in = log_in();

    assert_int_equal(figure(in, "unauthenticated"), 4);
    assert_int_equal(figure(in, "auth_errors"), 0);
    assert_int_equal(figure(in, "auth_cmds"), 1);
    close(in);
}

/* A wrong one after a right one, in any shape: the connection is out, until a right one comes. */
static void test_login_again(void **state)
{
    static const struct {
        unsigned char opcode, extras;
        const char *key;
        const char *value;
        size_t length;
    } wrong[] = {
        {0x21, 0, "PLAIN", SASL_WRONG, sizeof(SASL_WRONG) - 1},
        {0x22, 0, "PLAIN", SASL_WRONG, sizeof(SASL_WRONG) - 1},
        {0x21, 0, "PLAIN", "", 0},
        {0x21, 0, "CRAM-MD5", SASL_RIGHT, sizeof(SASL_RIGHT) - 1},
        {0x21, 0, "", SASL_RIGHT, sizeof(SASL_RIGHT) - 1}, /* no key */
        {0x21, 4, "PLAIN", SASL_WRONG, sizeof(SASL_WRONG) - 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        int fd = log_in_binary();

        say_packet(fd, 0x0a, 0, "", "", 0);
        assert_int_equal(status_of_answer(fd, 0x0a), 0);
        say_packet(fd, wrong[i].opcode, wrong[i].extras, wrong[i].key, wrong[i].value,
                   wrong[i].length);
        say_packet(fd, 0x0a, 0, "", "", 0);
        assert_int_equal(status_of_answer(fd, wrong[i].opcode), 0x20);
        assert_int_equal(status_of_answer(fd, 0x0a), 0x20);
        say_packet(fd, 0x21, 0, "PLAIN", SASL_RIGHT, sizeof(SASL_RIGHT) - 1);
        assert_int_equal(status_of_answer(fd, 0x21), 0);
        say_packet(fd, 0x0a, 0, "", "", 0);
        assert_int_equal(status_of_answer(fd, 0x0a), 0);
        close(fd);
    }
}

/* Requests before and after a second login, in one piece, are answered in order. */
static void test_login_again_in_a_pipe(void **state)
{
    int fd = log_in_binary();

    (void)state;
    for (int i = 0; i < 20; i++) {
        say_packet(fd, 0x0a, 0, "", "", 0);
        say_packet(fd, 0x21, 0, "PLAIN", SASL_RIGHT, sizeof(SASL_RIGHT) - 1);
    }
    for (int i = 0; i < 20; i++) {
        assert_int_equal(status_of_answer(fd, 0x0a), 0);
        assert_int_equal(status_of_answer(fd, 0x21), 0);
    }
    close(fd);
}

/* Whoever waits is not looked at before its time, whatever it says and on which connection, and
 * nobody else waits for it. */
static void test_delay(void **state)
{
    int in = log_in();

    (void)state;
    (void)guess_wrong(0);
    int wrong = harness_connect(&harness), right = harness_connect(&harness);

    harness_say(wrong, WRONG);
    await(in, "auth_delayed", 1);
    harness_say(right, RIGHT "get f:1.a\r\n");
    await(in, "auth_delayed", 2);
    assert_int_equal(figure(in, "auth_errors"), AUTH_DELAY_FREE + 1);
    assert_true(says_nothing(wrong) && says_nothing(right));
    pass(2 * AUTH_DELAY_MAX_S);
    await(in, "auth_cmds",
          1 + AUTH_DELAY_FREE + 2); /* one has its turn; if that is the wrong one … */
    pass(2 * AUTH_DELAY_MAX_S);
    harness_expect(right, "STORED\r\nEND\r\n");
    harness_expect(wrong, NO);
    close(wrong);
    close(right);
    close(in);
}

/* Wrong passwords of before: the next is looked at in a second, the one after it as late as any. */
static void guess_before(uint64_t origin)
{
    struct auth_delay *delay = harness.server->auth_delay;
    unsigned sum_s = 0;

    pass(2 * AUTH_DELAY_MAX_S); /* the clock has come so far */
    uint64_t time_us = clock_monotonic_us() - (2 * AUTH_DELAY_MAX_S - 2) * SECOND_US;

    for (unsigned i = 0, s = 0; s < AUTH_DELAY_MAX_S; i++) {
        assert_true(auth_delay_begin(delay, origin, 0, time_us + sum_s * SECOND_US));
        auth_delay_end(delay, origin, time_us + sum_s * SECOND_US, false);
        s = i < AUTH_DELAY_FREE ? 0 : s == 0 ? AUTH_DELAY_FIRST_S : 2 * s;
        sum_s += s;
    }
}

/* Turns come in the order of waiting, not in that of the connections. */
static void test_line(void **state)
{
    int in = log_in(), early = harness_connect(&harness), late = harness_connect(&harness);

    (void)state;
    harness_ask(early, "x\r\n", "CLIENT_ERROR unauthenticated\r\n"); /* it is known first */
    guess_before(net_peer_origin(in));
    harness_say(late, WRONG);
    await(in, "auth_delayed", 1);
    harness_say(early, RIGHT);
    await(in, "auth_delayed", 2);
    harness_expect(late, NO);
    assert_true(says_nothing(early));
    pass(AUTH_DELAY_MAX_S);
    harness_expect(early, "STORED\r\n");
    close(early);
    close(late);
    close(in);
}

/* The bound of the wait: then the answer is no, though the password was right. */
static void test_wait_ends(void **state)
{
    int in = log_in();

    (void)state;
    (void)guess_wrong(10 * WAIT_S);
    int fd = harness_connect(&harness);

    harness_say(fd, RIGHT);
    await(in, "auth_delayed", 1);
    pass(WAIT_S);
    harness_expect(fd, LATER);
    harness_expect_closed(fd);
    assert_int_equal(figure(in, "auth_refused"), 1);
    close(in);
}

/* With a long pipeline after it nobody waits: many would fill the buffers of all. */
static void test_long_waits(void **state)
{
    static char many[WAITING_BYTES + sizeof(RIGHT)];
    int in = log_in();

    (void)state;
    (void)guess_wrong(0);
    int fd = harness_connect(&harness);

    memset(many, 'x', sizeof(many));
    memcpy(many, RIGHT, strlen(RIGHT));
    harness_send(fd, many, sizeof(many));
    harness_expect(fd, LATER);
    harness_expect_closed(fd);
    assert_int_equal(figure(in, "auth_refused"), 1);
    close(in);
}

/* A delayed login whose client has gone, also with something unread, is no guess and holds nobody
 * up: one that came after it has its turn at the first moment there is one. */
static void test_gone(void **state)
{
    struct auth_delay *delay = harness.server->auth_delay;
    int in = log_in();

    (void)state;
    uint64_t origin = net_peer_origin(in), free_us = guess_wrong(0);

    for (unsigned i = 1; i <= 2; i++) {
        int fd = harness_connect(&harness);

        harness_say(fd, WRONG);
        await(in, "auth_delayed", i);
        harness_say(fd, i == 1 ? "" : "x\r\n");
        close(fd);
    }
    await(in, "auth_refused", 2);
    assert_true(auth_delay_begin(delay, origin, free_us, free_us));
    auth_delay_end(delay, origin, free_us, false);
    int right = harness_connect(&harness);

    harness_say(right, RIGHT);
    await(in, "auth_delayed", 3);
    pass(3 * AUTH_DELAY_MAX_S);
    harness_expect(right, "STORED\r\n");
    assert_int_equal(figure(in, "auth_errors"), AUTH_DELAY_FREE + 1);
    close(right);
    close(in);
}

/* One who only says no more is answered: by what its password is worth, or, if it would have to
 * wait, that it was not looked at. */
static void test_half_closed(void **state)
{
    int in = log_in();

    (void)state;
    for (int i = 0; i < 2; i++) {
        if (i > 0) {
            (void)guess_wrong(0);
        }
        int fd = harness_connect(&harness);

        /* Its end comes with it, in one packet. */
        assert_int_equal(send(fd, RIGHT, strlen(RIGHT), MSG_MORE), strlen(RIGHT));
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        harness_expect(fd, i == 0 ? "STORED\r\n" : LATER);
        harness_expect_closed(fd);
        close(fd);
    }
    close(in);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_else), TEST(test_login_again), TEST(test_login_again_in_a_pipe),
        TEST(test_delay),        TEST(test_line),        TEST(test_wait_ends),
        TEST(test_long_waits),   TEST(test_gone),        TEST(test_half_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
