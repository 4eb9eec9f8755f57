/* test_feeds.c: the figures of feeds, while their threads go on, and how long they wait. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "data/data_private.h"
#include "repl/feed_private.h"
#include "store/journal_private.h"

#define BEGAN_US  1000000u
#define WRITTEN   4096u
#define SECOND_US 1000000u

static struct repl_feeds feeds;
static uint64_t now_us;
static uint64_t step_us = 1; /* from one look at the clock to the next */
static bool comes; /* a feed's sample, at the next moment at which its thread can note one */

/* In place of base/clock.c. The feed's thread gets its turn right after the clock was read. */
uint64_t clock_monotonic_us(void)
{
    struct repl_feed *feed = &feeds.feeds[0];
    uint64_t read_us = now_us;

    now_us += step_us;
    if (comes && pthread_mutex_trylock(&feeds.lock) == 0) {
        feed->samples[0] = (struct feed_sample){WRITTEN, now_us++};
        feed->sample_count = 1;
        comes = false;
        pthread_mutex_unlock(&feeds.lock);
    }
    return read_us;
}

uint64_t clock_wall_s(void)
{
    return 1;
}

/* A sample that comes while the figures are taken is not later than they are: none is 2^64 us
 * behind. */
static void test_lag(void **state)
{
    static struct data data;
    static struct journal journal;
    struct repl_feeds_stats stats;

    (void)state;
    now_us = BEGAN_US;
    feeds = (struct repl_feeds){.data = &data, .journal = &journal};
    assert_int_equal(pthread_mutex_init(&feeds.lock, NULL), 0);
    feeds.feeds[0].started = true;
    feeds.feeds[0].figures.state = REPL_FEED_STREAMING;
    comes = true;
    repl_feeds_stats(&feeds, &stats);
    assert_int_equal(stats.count, 1);
    assert_in_range(stats.feeds[0].lag_us, 0, 2);
    comes = true;
    (void)clock_monotonic_us();
    assert_false(comes);
    repl_feeds_stats(&feeds, &stats);
    assert_in_range(stats.feeds[0].lag_us, 1, 2);
    pthread_mutex_destroy(&feeds.lock);
}

/* The line of a copy's next file waits as long as its bytes for who stores the file before. The
 * wait for room in the socket ends at once: what wakes it can always be read. */
static void test_copy_waits(void **state)
{
    static struct repl_feed feed;
    const struct manifest_file file = {.name = "null"};
    const struct repl_line asked = {.kind = REPL_FILE_REQUEST, .file = "null"};
    struct data_pin pin = {.manifest = manifest_create()};
    struct manifest_space *space = manifest_add_space(pin.manifest, "feed", 1, "counter");
    char directory[] = "/dev", bytes[4096] = {0};
    int fds[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    while (write(fds[0], bytes, sizeof(bytes)) > 0) {
    }
    while (write(fds[0], bytes, 1) > 0) {
    }
    feed.feeds = &feeds;
    feed.link.fd = fds[0];
    feed.link.wake_fd = open("/dev/zero", O_RDONLY);
    assert_true(feed.link.wake_fd >= 0);
    assert_true(manifest_add_file(pin.manifest, space, &file));
    feed.copy = &pin;
    feeds.vfs = vfs_real();
    feeds.directory = directory;
    now_us = BEGAN_US;
    step_us = SECOND_US;
    assert_false(feed_copy_file(&feed, &asked));
    step_us = 1;
    assert_in_range(now_us - BEGAN_US, (REPL_PAUSE_S - 1) * SECOND_US,
                    (REPL_PAUSE_S + 5) * SECOND_US);
    manifest_destroy(pin.manifest);
    close(feed.link.wake_fd);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lag),
        cmocka_unit_test(test_copy_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
