/* What a codec's table says is done for its connections alone, one dialect beside the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "fake_engine.h"
#include "harness.h"
#include "tests/support/random.h"

#define HEADER_BYTES 24
#define EXTRAS_BYTES 20 /* delta, initial, expiration */
#define KEY_BYTES    5
#define ABSENT       "\x81\x05\0\0\0\0\0\x01"
#define INITIAL      "\x81\x05\0\0\0\0\0\0"

static struct harness harness;

static void set_create(struct settings *settings)
{
    settings->spaces[0].binary_create = false; /* f */
    settings->spaces[1].binary_create = true;  /* c */
}

static struct harness_of creating = {&harness, 1, set_create};

/* incr by 1, or else 7. The opaque is no zeros, as a pointer of meta would be. */
static void binary_incr(int fd, const char *key)
{
    char packet[HEADER_BYTES + EXTRAS_BYTES + KEY_BYTES] = "\x80\x05\0\x05\x14";

    packet[11] = EXTRAS_BYTES + KEY_BYTES;
    memcpy(packet + 12, "oPaq", 4);
    packet[HEADER_BYTES + 7] = 1;
    packet[HEADER_BYTES + 15] = 7;
    memcpy(packet + HEADER_BYTES + EXTRAS_BYTES, key, KEY_BYTES);
    harness_send(fd, packet, sizeof(packet));
}

static void pass_over(int fd, size_t length)
{
    char bytes[64];

    assert_true(length <= sizeof(bytes));
    while (length > 0) {
        ssize_t got = read(fd, bytes, length);

        assert_true(got > 0);
        length -= (size_t)got;
    }
}

/* A space may decline the initial value of binary; that of meta was asked for. */
static void test_initial(void **state)
{
    (void)state;
    int binary = harness_connect(&harness);
    int text = harness_connect(&harness);

    binary_incr(binary, "f:1.a");
    harness_expect_bytes(binary, ABSENT, sizeof(ABSENT) - 1);
    pass_over(binary, HEADER_BYTES - (sizeof(ABSENT) - 1) + strlen("Not found"));
    harness_ask(text, "ma f:1.a N0 J7 v\r\n", "VA 1\r\n7\r\n");
    binary_incr(binary, "c:1.a");
    harness_expect_bytes(binary, INITIAL, sizeof(INITIAL) - 1);
    pass_over(binary, HEADER_BYTES - (sizeof(INITIAL) - 1));
    harness_expect_bytes(binary, "\0\0\0\0\0\0\0\x07", 8);
    close(binary);
    close(text);
}

/* Only a codec with meta has meta commands to count. */
static void test_meta_count(void **state)
{
    (void)state;
    int binary = harness_connect(&harness);
    int text = harness_connect(&harness);

    binary_incr(binary, "c:1.a");
    pass_over(binary, HEADER_BYTES + 8);
    harness_ask(text, "mg f:1.a\r\nget f:1.a\r\nmg f:1.b\r\n", "EN\r\nEND\r\nEN\r\n");
    assert_int_equal(harness_stat(&harness, "cmd_meta"), 2);
    close(binary);
    close(text);
}

/* Real engines, with members as well. */
static int setup_pages(void **state)
{
    (void)state;
    harness_init(&harness, 1);
    struct space_settings *likes = &harness.settings.spaces[harness.settings.space_count++];

    harness.create = space_engine_create;
    *likes = (struct space_settings){.kind = SPACE_PHANTOM,
                                     .name = "l",
                                     .key = "l:{id}:{member}",
                                     .row = {.table_bytes = 1u << 20, .tables = 1},
                                     .false_positives = 0.001};
    harness_start(&harness);
    return 0;
}

static int teardown_pages(void **state)
{
    (void)state;
    harness_fini(&harness);
    return 0;
}

#define PAGE_KEYS_MAX 30
#define ROUNDS        500

/* Keys that begin alike, and go on or end in another way. */
static const char *const page_keys[] = {
    "f:1234567890123456701",
    "f:1234567890123456702",
    "f:1234567890123456703",
    "f:1234567890123456704",
    "f:1234567890123456702.a",
    "f:1234567890123456702.",
    "f:1234567890123456702.x",
    "f:1234567890123456702b",
    "f:12345678901234567020",
    "f:12",
    "f:",
    "f:1234567890x23456702",
    "f:9934567890123456702",
    "c:1234567890123456701",
    "nothing",
    "l:1234567890123456701:u",
    "l:1234567890123456702:u7",
    "l:1234567890123456703:u7",
    "l:1234567890123456703:",
    "l:1234567890123456703",
    "l:1234567890123456702:a member of 16",
    "{f:1234567890123456702}",
    "l:1234567890123456702:one of more than 16",
};
#define PAGE_KEYS (sizeof(page_keys) / sizeof(page_keys[0]))

static char *get(int fd, const char *keys)
{
    char line[PAGE_KEYS_MAX * 64];

    snprintf(line, sizeof(line), "get%s\r\n", keys);
    harness_say(fd, line);
    return harness_until_end(fd);
}

/* A page says of each key what a get of it alone says. */
static void test_pages(void **state)
{
    (void)state;
    static const char end[] = "END\r\n";
    int fd = harness_connect(&harness);
    struct test_random random = {test_seed()};

    harness_ask(fd, "set f:1234567890123456701 0 0 3\r\n1,2\r\n", "STORED\r\n");
    harness_ask(fd, "set f:1234567890123456702 0 0 5\r\n777,8\r\n", "STORED\r\n");
    harness_ask(fd, "set c:1234567890123456701 0 0 3\r\n3,4\r\n", "STORED\r\n");
    for (size_t i = 0; i < PAGE_KEYS; i++) {
        char line[128];

        snprintf(line, sizeof(line), "add %s 0 0 1\r\n1\r\n", page_keys[i]);
        if (page_keys[i][0] == 'l' && page_keys[i][21] == ':' && page_keys[i][22] != '\0' &&
            i % 2) {
            harness_ask(fd, line, "STORED\r\n");
        }
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t count = 2 + test_random_below(&random, PAGE_KEYS_MAX - 1);
        char keys[PAGE_KEYS_MAX * 64] = "";
        char each[PAGE_KEYS_MAX * 128] = "";

        for (size_t i = 0; i < count; i++) {
            char key[64];

            snprintf(key, sizeof(key), " %s", page_keys[test_random_below(&random, PAGE_KEYS)]);
            strcat(keys, key);
            char *one = get(fd, key);
            strncat(each, one, strlen(one) - strlen(end));
            free(one);
        }
        strcat(each, end);
        char *page = get(fd, keys);
        assert_string_equal(page, each);
        free(page);
    }
    close(fd);
}

/* Gets that are joined in one are apart to their client: one that fails, and those around it. */
static void test_joined_fails(void **state)
{
    (void)state;
    int fd = harness_connect(&harness);

    harness_ask(fd, "set f:1.a 0 0 1\r\n1\r\nset f:3.a 0 0 1\r\n3\r\n", "STORED\r\nSTORED\r\n");
    fake_engine_break(harness.store, 2);
    harness_ask(fd,
                "mg f:1.a v k q\r\nmg f:2.a v k q\r\nmg f:3.a v k q\r\nmg f:4.a v k q\r\nmn\r\n",
                "VA 1 kf:1.a\r\n1\r\nSERVER_ERROR disk read failed\r\nVA 1 kf:3.a\r\n3\r\nMN\r\n");
    harness_ask(fd, "mg f:2.a s\r\nmg f:1.a s\r\nmg g:1.a s\r\n",
                "SERVER_ERROR disk read failed\r\nHD s1\r\nEN\r\n");
    assert_int_equal(harness_stat(&harness, "cmd_get"), 5);
    assert_int_equal(harness_stat(&harness, "get_hits"), 3);
    assert_int_equal(harness_stat(&harness, "cmd_meta"), 7);
    close(fd);
}

/* The answers to those before one that waits do not wait; nothing is counted twice. */
static void test_joined_waits(void **state)
{
    (void)state;
    int fd = harness_connect(&harness);
    int other = harness_connect(&harness);

    harness_ask(other, "set f:1.a 0 0 1\r\n1\r\nset f:7.a 0 0 1\r\n7\r\n", "STORED\r\nSTORED\r\n");
    fake_engine_hold(harness.store, 7);
    harness_say(fd, "mg f:1.a v\r\nmg f:7.a v\r\nmg f:1.a v\r\n");
    harness_expect(fd, "VA 1\r\n1\r\n");
    fake_engine_await(harness.store, 1);
    harness_ask(other, "set f:1.a 0 0 1\r\n2\r\n", "STORED\r\n");
    fake_engine_release(harness.store, 7);
    harness_expect(fd, "VA 1\r\n7\r\nVA 1\r\n2\r\n");
    assert_int_equal(harness_stat(&harness, "cmd_get"), 3);
    assert_int_equal(harness_stat(&harness, "cmd_meta"), 3);
    close(fd);
    close(other);
}

/* One answer of so many bytes after its header, of that status and with that opaque. */
static void expect_answer(int fd, unsigned char status, const char *opaque, size_t body)
{
    char header[HEADER_BYTES];

    for (size_t have = 0; have < sizeof(header);) {
        ssize_t got = read(fd, header + have, sizeof(header) - have);

        assert_true(got > 0);
        have += (size_t)got;
    }
    assert_int_equal((unsigned char)header[7], status);
    assert_int_equal((unsigned char)header[11], body);
    assert_memory_equal(header + 12, opaque, 4);
    pass_over(fd, body);
}

/* getk or getkq of f:1.a, f:2.a and a third key, with opaques of their own. */
static void binary_gets(int fd, bool quiet, const char *third)
{
    char packets[3][HEADER_BYTES + KEY_BYTES];

    for (int i = 0; i < 3; i++) {
        memcpy(packets[i], "\x80\x0c\0\x05\0\0\0\0\0\0\0\x05op_1\0\0\0\0\0\0\0\0f:1.a", 29);
        packets[i][1] = quiet ? 0x0d : 0x0c;
        packets[i][15] = packets[i][HEADER_BYTES + 2] = (char)('1' + i);
    }
    memcpy(packets[2] + HEADER_BYTES, third, KEY_BYTES);
    harness_send(fd, packets, sizeof(packets));
}

/* Each packet has its own opaque back, whether its keys are of one space, and errors when quiet. */
static void test_joined_opaques(void **state)
{
    (void)state;
    int fd = harness_connect(&harness);
    int text = harness_connect(&harness);
    const size_t hit = 4 + KEY_BYTES + 1;

    harness_ask(text, "set f:1.a 0 0 1\r\n1\r\nset f:3.a 0 0 1\r\n3\r\n", "STORED\r\nSTORED\r\n");
    fake_engine_break(harness.store, 2);
    for (int quiet = 0; quiet < 2; quiet++) {
        binary_gets(fd, quiet, "f:3.a");
        expect_answer(fd, 0, "op_1", hit);
        expect_answer(fd, 0x84, "op_2", strlen("disk read failed"));
        expect_answer(fd, 0, "op_3", hit);
    }
    binary_gets(fd, false, "c:3.a");
    expect_answer(fd, 0, "op_1", hit);
    expect_answer(fd, 0x84, "op_2", strlen("disk read failed"));
    expect_answer(fd, 1, "op_3", KEY_BYTES);
    close(fd);
    close(text);
}

/* Where the log has each command, each has its line. */
static void test_joined_logged(void **state)
{
    (void)state;
    int fd = harness_connect(&harness);
    int log = memfd_create("log", MFD_CLOEXEC);
    int err = dup(STDERR_FILENO);
    char text[4096] = "";

    assert_true(log >= 0 && err >= 0 && dup2(log, STDERR_FILENO) >= 0);
    log_setup("test", LOG_LEVEL_COMMANDS);
    harness_ask(fd, "mg f:1.a v q\r\nmg f:2.a v q\r\nmn\r\n", "MN\r\n");
    log_setup("test", LOG_LEVEL_INFO);
    assert_true(dup2(err, STDERR_FILENO) >= 0);
    assert_true(pread(log, text, sizeof(text) - 1, 0) > 0);
    assert_non_null(strstr(text, " mg f:1.a v q\n"));
    assert_non_null(strstr(text, " mg f:2.a v q\n"));
    close(log);
    close(err);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pages, setup_pages, teardown_pages),
        HARNESS_TEST(test_initial, &creating),        HARNESS_TEST(test_meta_count, &creating),
        HARNESS_TEST(test_joined_fails, &creating),   HARNESS_TEST(test_joined_waits, &creating),
        HARNESS_TEST(test_joined_opaques, &creating), HARNESS_TEST(test_joined_logged, &creating),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
