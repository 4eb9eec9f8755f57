/* test_descriptors.c: how a limit of descriptors is divided between the daemon, files and clients.
 */
#include "daemon/descriptors.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "admin/admin.h"
#include "daemon/process.h"
#include "data/data.h"
#include "repl/feed.h"

#define MIB  1048576ull
#define HARD 1000u /* a limit for this process */

static char data_path[] = "/x";

static struct settings settings_of(char *data, unsigned connections)
{
    struct settings settings = {
        .listen_count = 1, .threads = 4, .data = data, .max_connections = connections};

    settings.journal.segment_bytes = 64 * MIB;
    settings.journal.buffer_bytes = 16 * MIB;
    settings.cold.threads = 8;
    return settings;
}

static void check_shares(const struct settings *settings, uint64_t limit)
{
    uint64_t least = settings->data != NULL ? settings->cold.threads + DATA_OPEN_FILES_MORE : 0;
    struct descriptors shares;

    assert_int_equal(descriptors_divide(settings, limit, &shares),
                     limit >= descriptors_least(settings));
    if (limit < descriptors_least(settings)) {
        return;
    }
    assert_true(shares.own + shares.files + shares.connections <= limit);
    assert_true(shares.connections >= 1 && shares.connections <= settings->max_connections);
    assert_true(shares.files >= least && shares.files <= DESCRIPTORS_FILES_MOST);
    /* nothing is left lying while somebody has less than is wanted */
    bool all = shares.connections == settings->max_connections &&
               (settings->data == NULL || shares.files == DESCRIPTORS_FILES_MOST);
    assert_true(all || shares.own + shares.files + shares.connections == limit);
    /* files are not all that the limit is used for, nor a few where it is high */
    bool files_first = shares.connections < settings->max_connections && settings->data != NULL;
    assert_true(!files_first || shares.files >= limit / 8 || shares.files == least ||
                shares.files == DESCRIPTORS_FILES_MOST || shares.connections == 1);
}

static void test_any_limit(void **unused)
{
    static const unsigned connections[] = {1, 8, 500, 1024, 100000};

    (void)unused;
    for (size_t i = 0; i < sizeof(connections) / sizeof(connections[0]); i++) {
        for (uint64_t limit = 0; limit < 5000; limit++) {
            struct settings with = settings_of(data_path, connections[i]);
            struct settings without = settings_of(NULL, connections[i]);

            check_shares(&with, limit);
            check_shares(&without, limit);
            with.threads = 100; /* most of the limit is the daemon's own */
            check_shares(&with, limit);
        }
    }
}

static void test_usual(void **unused)
{
    struct settings settings = settings_of(data_path, 1024);
    struct descriptors wanted, shares;

    (void)unused;
    descriptors_wanted(&settings, &wanted);
    assert_int_equal(wanted.files, DESCRIPTORS_FILES_MOST);
    assert_int_equal(wanted.connections, 1024);
    uint64_t all = wanted.own + wanted.files + wanted.connections;
    assert_true(descriptors_divide(&settings, all, &shares));
    assert_memory_equal(&shares, &wanted, sizeof(shares));
    assert_true(descriptors_divide(&settings, 1024, &shares)); /* the usual limit of a shell */
    assert_int_equal(shares.files, 128);
    assert_true(shares.connections >= 800);
    settings.max_connections = 500;
    assert_true(descriptors_divide(&settings, 1024, &shares));
    assert_true(shares.connections == 500 && shares.files >= 400);
    assert_false(descriptors_divide(&settings, 40, &shares));
}

/* More loops, listeners and loaders, more descriptors of its own, and a journal's. */
static void test_own(void **unused)
{
    struct settings settings = settings_of(data_path, 10);
    struct descriptors few, more;

    (void)unused;
    descriptors_wanted(&settings, &few);
    settings.threads++;
    descriptors_wanted(&settings, &more);
    assert_int_equal(more.own, few.own + 5);
    settings.listen_count += 3;
    descriptors_wanted(&settings, &few);
    assert_int_equal(few.own, more.own + 3);
    settings.journal.segment_bytes = MIB; /* a journal of many segments has few of them open */
    descriptors_wanted(&settings, &more);
    assert_int_equal(more.own, few.own);
    settings.replication.name = data_path;
    descriptors_wanted(&settings, &few);
    assert_int_equal(few.own, more.own + 4 * REPL_FEEDS_MAX);
    settings.replication.name = NULL;
    settings.admin = data_path;
    descriptors_wanted(&settings, &few);
    assert_int_equal(few.own, more.own + ADMIN_CONNECTIONS_MAX + 5);
    settings.admin = NULL;
    settings.data = NULL;
    descriptors_wanted(&settings, &few);
    assert_int_equal(few.own, 32 + settings.listen_count + 4 * (settings.threads + 1));
    assert_int_equal(few.files, 0);
    assert_int_equal(more.own, few.own + JOURNAL_FILES_MAX + settings.threads);
}

/* ---- this process ---- */

/* Not even root raises it for as many connections as a number may say: no system has so many. */
static void limit_to(uint64_t most)
{
    struct rlimit limit = {.rlim_cur = most, .rlim_max = most};

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* A start with fewer than it would have: the shares are what it goes on with. */
static void test_provided(void **unused)
{
    struct settings settings = settings_of(data_path, UINT_MAX);
    struct descriptors shares;

    (void)unused;
    limit_to(HARD);
    assert_true(descriptors_provide(&settings));
    assert_true(descriptors_divide(&settings, HARD, &shares));
    assert_int_equal(shares.files, HARD / 8);
    assert_int_equal(settings.cold.open_files, HARD / 8);
    assert_int_equal(settings.max_connections, HARD - HARD / 8 - shares.own);
    settings = settings_of(NULL, 10); /* enough for these */
    assert_true(descriptors_provide(&settings));
    assert_int_equal(settings.max_connections, 10);
    assert_int_equal(settings.cold.open_files, 0);
}

/* A reload has what the start has left to connections, whatever else it says. */
static void test_provided_again(void **unused)
{
    struct settings now = settings_of(data_path, 10), next = settings_of(data_path, UINT_MAX);
    struct descriptors shares;

    (void)unused;
    limit_to(HARD);
    descriptors_wanted(&now, &shares);
    now.cold.open_files = 100;
    next.threads += 10;
    descriptors_provide_again(&next, &now);
    assert_int_equal(next.cold.open_files, 100);
    assert_int_equal(next.max_connections, HARD - 100 - shares.own);
    next.max_connections = 20; /* fewer than it might have */
    descriptors_provide_again(&next, &now);
    assert_int_equal(next.max_connections, 20);
    now.cold.open_files = (unsigned)(HARD - shares.own + 1); /* a limit that was lowered since */
    next.max_connections = UINT_MAX;
    descriptors_provide_again(&next, &now);
    assert_int_equal(next.max_connections, 1);
}

/* The last test: a process that is not root stays with it. */
static void test_too_few(void **unused)
{
    struct settings settings = settings_of(data_path, UINT_MAX);
    uint64_t least = descriptors_least(&settings);

    (void)unused;
    limit_to(least);
    assert_true(descriptors_provide(&settings));
    assert_int_equal(settings.max_connections, 1);
    settings = settings_of(data_path, UINT_MAX);
    limit_to(least - 1);
    assert_false(descriptors_provide(&settings));
    assert_int_equal(settings.max_connections, UINT_MAX);
    assert_int_equal(settings.cold.open_files, 0);
}

/* To the hard limit, which as root may be raised too; a billion of a container is not needed. */
static void test_raised(void **unused)
{
    struct rlimit limit;
    uint64_t allowed;

    (void)unused;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(process_raise_descriptors(200, &allowed));
    assert_true(allowed == (limit.rlim_max < PROCESS_DESCRIPTORS_MOST ? limit.rlim_max
                                                                      : PROCESS_DESCRIPTORS_MOST));
    limit.rlim_max = 300;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(process_raise_descriptors(200, &allowed));
    assert_int_equal(allowed, 300);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(limit.rlim_cur, 300);
    assert_true(process_raise_descriptors(400, &allowed));
    assert_true(allowed == 300 || allowed == 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_limit),
        cmocka_unit_test(test_usual),
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_provided),
        cmocka_unit_test(test_provided_again),
        cmocka_unit_test(test_raised),
        cmocka_unit_test(test_too_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
