/* What a codec's table says is done for its connections alone, one dialect beside the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pages, setup_pages, teardown_pages),
        HARNESS_TEST(test_initial, &creating),
        HARNESS_TEST(test_meta_count, &creating),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
