/* What a codec's table says is done for its connections alone, one dialect beside the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        HARNESS_TEST(test_initial, &creating),
        HARNESS_TEST(test_meta_count, &creating),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
