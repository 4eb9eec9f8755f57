/* test_loading.c: what a server answers while its data is being recovered, and from then on. */
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
#include "sim_journal.h"

#define REFUSED "SERVER_ERROR loading\r\n"

static struct harness harness;
static struct sim_journal disk;
static const struct engine_functions *functions; /* of the engines */

static void net_gone(struct harness *gone)
{
    (void)gone;
    sim_journal_close(&disk);
}

/* Nothing may reach the engines meanwhile: they have no functions. */
static void forbid(void)
{
    static const struct engine_functions none;

    functions = harness.store->functions;
    harness.store->functions = harness.cache->functions = &none;
}

static void allow(void)
{
    harness.store->functions = harness.cache->functions = functions;
}

static int setup(void **state)
{
    (void)state;
    sim_journal_open(&disk, JOURNAL_SYNC_EVERYSEC);
    harness_init(&harness, 2);
    harness.settings.flush_all = true;
    harness.loading = true;
    harness.keeper_later = true;
    harness.net_gone = net_gone;
    harness_start(&harness);
    forbid();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    allow();
    harness_fini(&harness);
    return 0;
}

static void loaded(void)
{
    allow();
    server_keep(harness.server, disk.journal, &disk.log.log);
}

static void test_refused(void **state)
{
    static const char *const commands[] = {
        "get f:1.a\r\n",
        "gets f:1.a f:2.a nothing\r\n",
        "gat 0 f:1.a f:2.a\r\n",
        "set f:1.a 0 0 1\r\n5\r\n",
        "add nothing 0 0 3\r\nget\r\n",
        "cas f:1.a 0 0 1 7\r\n5\r\n",
        "append f:1.a 0 0 1\r\n5\r\n",
        "incr f:1.a 1\r\n",
        "decr nothing 1\r\n",
        "delete f:1.a\r\n",
        "touch f:1.a 0\r\n",
        "flush_all\r\n",
        "stats spaces\r\n",
        "stats tables\r\n",
        "stats reset\r\n",
    };
    int fd = harness_connect(&harness);

    (void)state;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        harness_ask(fd, commands[i], REFUSED);
    }
    harness_ask(fd, "set f:1.a 0 0 1 noreply\r\n5\r\nincr f:1.a 1 noreply\r\nmn\r\n", "MN\r\n");
    assert_int_equal(harness_stat(&harness, "refused_noreply"), 2);
    assert_int_equal(harness_stat(&harness, "cmd_get"), 0);
    loaded();
    harness_ask(fd, "get f:1.a\r\n", "END\r\n");
    close(fd);
}

static void test_answered(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "version\r\nverbosity 0\r\nnonsense\r\nstats items\r\nstats slabs\r\nmn\r\n",
                "VERSION 1.6.45\r\nOK\r\nERROR\r\nEND\r\nEND\r\nMN\r\n");
    harness_ask(fd, "stats xyz\r\nset f:1.a 0 0 9999\r\n",
                "ERROR\r\n"
                "SERVER_ERROR object too large for cache\r\n");
    close(fd);
    fd = harness_connect(&harness);
    harness_say(fd, "stats\r\nstats settings\r\nstats conns\r\nquit\r\n");
    char *general = harness_until_end(fd);

    assert_non_null(strstr(general, "STAT curr_items 0\r\n"));
    assert_non_null(strstr(general, "STAT evictions 0\r\n"));
    free(general);
    close(fd);
}

/* So many keys that they are several blocks: one line, and nothing of the rest. */
static void test_long_get(void **state)
{
    enum { KEYS = 5000 };
    char *line = malloc(KEYS * 8);
    size_t length = (size_t)sprintf(line, "get");
    int fd = harness_connect(&harness);

    (void)state;
    for (int i = 0; i < KEYS; i++) {
        length += (size_t)sprintf(line + length, " f:%d", i % 1000);
    }
    strcpy(line + length, "\r\nincr f:1.a 1\r\n");
    harness_ask(fd, line, REFUSED REFUSED);
    loaded();
    harness_ask(fd, line, "END\r\n1\r\n");
    free(line);
    close(fd);
}

/* Who is connected meanwhile goes on, and its changes are kept. */
static void test_loaded(void **state)
{
    int fd = harness_connect(&harness);
    int half = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "incr f:1.a 1\r\n", REFUSED);
    harness_ask(half, "mn\r\nincr f:1", "MN\r\n");
    uint64_t before = journal_head(disk.journal);

    loaded();
    assert_true(keeper_start(harness.server->keeper, harness.server->spaces));
    harness_ask(fd, "incr f:1.a 1\r\nstats reset\r\n", "1\r\nRESET\r\n");
    harness_ask(half, ".a 1\r\n", "2\r\n");
    assert_true(journal_written(disk.journal) > before);
    close(half);
    close(fd);
}

static void *ask_for_ever(void *context)
{
    int fd = harness_connect(&harness);
    char line[64];
    size_t have;

    (void)context;
    do {
        harness_say(fd, "incr f:1.a 1\r\n");
        for (have = 0; have == 0 || line[have - 1] != '\n'; have++) {
            assert_int_equal(read(fd, &line[have], 1), 1);
        }
    } while (line[0] == 'S');
    close(fd);
    return NULL;
}

/* It ends while everybody asks. */
static void test_loaded_under_load(void **state)
{
    enum { CLIENTS = 8 };
    pthread_t threads[CLIENTS];
    int fd = harness_connect(&harness);

    (void)state;
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, ask_for_ever, NULL), 0);
    }
    harness_ask(fd, "incr f:1.a 1\r\n", REFUSED);
    loaded();
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
    }
    harness_ask(fd, "get f:1.a\r\n", "VALUE f:1.a 0 1\r\n8\r\nEND\r\n");
    close(fd);
}

/* The end may come first. */
static void test_never_loaded(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "get f:1.a\r\n", REFUSED);
    close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_refused), TEST(test_answered),          TEST(test_long_get),
        TEST(test_loaded),  TEST(test_loaded_under_load), TEST(test_never_loaded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
