/* test_dispatch_watch.c: each request is timed once, in the tier of what it waited for; slow ones
 * are kept with why. */
#include "request/dispatch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness.h"
#include "request/watch.h"

static struct harness harness;

static void set_slow(struct settings *settings)
{
    settings->slow_request_ms = 1;
}

static struct harness_of watched = {&harness, 1, set_slow};

static uint64_t timed(enum watch_class class, enum watch_tier tier)
{
    struct watch_times times;

    watch_times(harness.server->watches, harness.server->threads, class, tier, &times);
    return times.count;
}

static void test_once_each(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "set f:1.a 0 0 1\r\n1\r\nget f:1.a\r\nget f:1.a f:2.a\r\n",
                "STORED\r\nVALUE f:1.a 0 1\r\n1\r\nEND\r\nVALUE f:1.a 0 1\r\n1\r\nEND\r\n");
    harness_ask(fd, "incr f:1.a 1\r\nincr f:1.a 1\r\nincr f:1.a 1\r\n", "2\r\n3\r\n4\r\n");
    harness_ask(fd, "delete f:1.a\r\ntouch f:1.a 0\r\nmn\r\n", "DELETED\r\nNOT_FOUND\r\nMN\r\n");
    harness_ask(fd, "mn\r\n", "MN\r\n"); /* the turn before has ended */
    assert_int_equal(timed(WATCH_STORE, WATCH_MEMORY), 1);
    assert_int_equal(timed(WATCH_GET, WATCH_MEMORY), 2);
    assert_int_equal(timed(WATCH_INCR, WATCH_MEMORY), 3);
    assert_int_equal(timed(WATCH_DELETE, WATCH_MEMORY), 1);
    assert_int_equal(timed(WATCH_TOUCH, WATCH_MEMORY), 1);
    for (int tier = WATCH_MEMORY + 1; tier < WATCH_TIERS; tier++) {
        assert_int_equal(timed(WATCH_CLASSES, (enum watch_tier)tier), 0);
    }
    close(fd);
}

/* A get in blocks is one request. */
static void test_long_get(void **state)
{
    enum { KEYS = 3000 };
    int fd = harness_connect(&harness);
    char *line = malloc(8 * KEYS + 8);
    size_t used = 3;

    (void)state;
    assert_non_null(line);
    memcpy(line, "get", 3);
    for (int i = 0; i < KEYS; i++) {
        memcpy(line + used, " f:9.b", 6);
        used += 6;
    }
    memcpy(line + used, "\r\n", 2);
    harness_send(fd, line, used + 2);
    harness_expect(fd, "END\r\n");
    harness_ask(fd, "mn\r\n", "MN\r\n");
    assert_int_equal(timed(WATCH_GET, WATCH_MEMORY), 1);
    free(line);
    close(fd);
}

static void check_slow(const char *key, enum watch_class class, enum watch_tier tier)
{
    struct watch_request slow[WATCH_SLOW];
    size_t count = watch_slowest(harness.server->watches, harness.server->threads, slow);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(slow[i].key, key) == 0 && slow[i].class == class && slow[i].tier == tier) {
            assert_true(slow[i].took_us >= 1000);
            return;
        }
    }
    fail_msg("no slow request of %s among %zu", key, count);
}

/* The one that waited has its time from then on; those after it are not its fault. */
static void test_waited(void **state)
{
    const struct timespec some_ms = {.tv_nsec = 5000000};
    int fd = harness_connect(&harness);

    (void)state;
    fake_engine_hold(harness.store, 7);
    harness_say(fd, "get f:7.a\r\nget f:8.a\r\n");
    fake_engine_await(harness.store, 1);
    nanosleep(&some_ms, NULL); /* it is to be slow: no answer could come before */
    fake_engine_release(harness.store, 7);
    harness_expect(fd, "END\r\nEND\r\n");
    harness_ask(fd, "mn\r\n", "MN\r\n");
    assert_int_equal(timed(WATCH_GET, WATCH_DISK), 1);
    assert_int_equal(timed(WATCH_GET, WATCH_MEMORY), 1);
    check_slow("f:7.a", WATCH_GET, WATCH_DISK);
    fake_engine_need_table(harness.store, 9);
    harness_ask(fd, "set f:9.a 0 0 1\r\n1\r\n", "STORED\r\n");
    harness_ask(fd, "mn\r\n", "MN\r\n");
    assert_int_equal(timed(WATCH_STORE, WATCH_TABLE), 1);
    assert_int_equal(timed(WATCH_STORE, WATCH_MEMORY), 0);
    close(fd);
}

/* Of joined gets those before the one that waits are answered without it. */
static void test_joined_waited(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    fake_engine_hold(harness.store, 7);
    harness_say(fd, "mg f:6.a v\r\nmg f:7.a v\r\nmg f:8.a v\r\n");
    harness_expect(fd, "EN\r\n");
    fake_engine_await(harness.store, 1);
    fake_engine_release(harness.store, 7);
    harness_expect(fd, "EN\r\nEN\r\n");
    harness_ask(fd, "mn\r\n", "MN\r\n");
    assert_int_equal(timed(WATCH_GET, WATCH_DISK), 1);
    assert_int_equal(timed(WATCH_GET, WATCH_MEMORY), 2);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HARNESS_TEST(test_once_each, &watched),
        HARNESS_TEST(test_long_get, &watched),
        HARNESS_TEST(test_waited, &watched),
        HARNESS_TEST(test_joined_waited, &watched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
