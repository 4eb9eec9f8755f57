/*
 * How long a list waits for its batch, over real sockets and workers: as long as the lister goes
 * on, and no longer. Here the lister collects as the test says (counter_collect is wrapped).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "counter/counter.h"
#include "tests/unit/request/harness.h"

#define LOOK_US 1000
#define TICK_US 1000000u /* a worker's */
#define SLOW_US 2000000u /* a machine that is busy */
#define LIST    "lru_crawler export f\r\n"
#define HEAD    "EXPORT f a,b\r\n"

static struct harness harness;
static _Atomic bool goes_on; /* the lister makes steps */
static _Atomic bool ended;   /* there is nothing more to list */
static _Atomic bool stepped; /* it has made one */
static _Atomic bool one;     /* all there is to list is a record of id 1, read by the worker */

enum engine_collect_end __wrap_counter_collect(struct engine *engine, struct engine_collect *to);
enum engine_collect_end __wrap_counter_collect(struct engine *engine, struct engine_collect *to)
{
    (void)engine;
    engine_collect_begin(to, UINT64_MAX);
    while (!*to->stop && !ended) {
        if (goes_on) {
            atomic_fetch_add(&to->steps, 1);
            stepped = true;
        }
        usleep(LOOK_US);
    }
    if (one) {
        engine_collect_make_room(to);
        engine_collect_add(to, 1);
        engine_collect_settle(to, true);
    }
    to->ended = true;
    return *to->stop ? ENGINE_COLLECT_STOPPED : ENGINE_COLLECT_DONE;
}

static void start(uint64_t wait_us)
{
    goes_on = ended = stepped = one = false;
    harness_init(&harness, 1);
    harness.wait_us = wait_us;
    harness.settings.list_keys = true;
    harness_start(&harness);
}

/* One step in the midst of the wait: from then on the lister hangs. */
static void test_hangs(void **state)
{
    (void)state;
    start(SERVER_WAIT_US);
    int fd = harness_connect(&harness);

    harness_ask(fd, LIST, HEAD);
    goes_on = true;
    while (!stepped) {
        usleep(LOOK_US);
    }
    goes_on = false;
    uint64_t since_us = clock_monotonic_us();

    harness_expect(fd, "SERVER_ERROR disk read failed\r\n");
    uint64_t took_us = clock_monotonic_us() - since_us;

    harness_expect_closed(fd);
    assert_in_range(took_us, SERVER_WAIT_US, SERVER_WAIT_US + 2 * TICK_US + SLOW_US);
    close(fd);
    harness_fini(&harness);
}

/* Others of the worker have waited too long at two ticks, and the list has not. */
static void test_goes_on(void **state)
{
    (void)state;
    start(1);
    int fd = harness_connect(&harness);
    int other = harness_connect(&harness);

    goes_on = true;
    harness_ask(fd, LIST, HEAD);
    fake_engine_hold(harness.store, 8);
    for (int i = 0; i < 2; i++) {
        harness_ask(other, "get f:8.a\r\n", "SERVER_ERROR disk read failed\r\n");
    }
    ended = true;
    harness_expect(fd, "END\r\n");
    close(other);
    close(fd);
    harness_fini(&harness);
}

/* There is no room for the reads of a list: it asks once a tick, as long as any may wait. */
static void test_crowded(void **state)
{
    (void)state;
    start(1);
    int fd = harness_connect(&harness);

    ended = one = true;
    fake_engine_crowd(harness.store, true);
    harness_ask(fd, LIST, HEAD "SERVER_ERROR disk read failed\r\n");
    harness_expect_closed(fd);
    assert_in_range(fake_engine_crowded_out(harness.store), 2, 3); /* and one for a tick at once */
    close(fd);
    harness_fini(&harness);
}

static void test_room_comes(void **state)
{
    (void)state;
    start(SERVER_WAIT_US);
    int fd = harness_connect(&harness);

    harness_ask(fd, "set f:1 0 0 3\r\n1,2\r\n", "STORED\r\n");
    ended = one = true;
    fake_engine_crowd(harness.store, true);
    harness_ask(fd, LIST, HEAD);
    while (fake_engine_crowded_out(harness.store) == 0) {
        usleep(LOOK_US);
    }
    fake_engine_crowd(harness.store, false);
    harness_expect(fd, "1 1,2\r\nEND\r\n");
    assert_in_range(fake_engine_crowded_out(harness.store), 1, 3);
    close(fd);
    harness_fini(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hangs),
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_crowded),
        cmocka_unit_test(test_room_comes),
    };

    log_setup("test_lister", LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
