/* stats: the rules that keep existing tools alive, and the figures. */
#include <ctype.h>
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

static struct harness harness;

static struct harness_of usual = {&harness, 2, NULL};

static char *stats(const char *argument)
{
    int fd = harness_connect(&harness);
    char line[64];

    snprintf(line, sizeof(line), "stats%s%s\r\n", argument[0] != '\0' ? " " : "", argument);
    harness_say(fd, line);
    char *answer = harness_until_end(fd);

    close(fd);
    return answer;
}

/* Is there a line "STAT name …"? With text: exactly that one. */
static bool has(const char *answer, const char *name, const char *text)
{
    char line[256];

    snprintf(line, sizeof(line), "STAT %s %s%s", name, text != NULL ? text : "",
             text != NULL ? "\r\n" : "");
    return strstr(answer, line) != NULL;
}

static void test_names_that_tools_need(void **state)
{
    static const char *const names[] = {"pid",
                                        "uptime",
                                        "time",
                                        "version",
                                        "libevent",
                                        "pointer_size",
                                        "rusage_user",
                                        "rusage_system",
                                        "max_connections",
                                        "curr_connections",
                                        "total_connections",
                                        "rejected_connections",
                                        "connection_structures",
                                        "cmd_get",
                                        "cmd_set",
                                        "cmd_flush",
                                        "cmd_touch",
                                        "get_hits",
                                        "get_misses",
                                        "delete_hits",
                                        "delete_misses",
                                        "incr_hits",
                                        "incr_misses",
                                        "decr_hits",
                                        "decr_misses",
                                        "cas_hits",
                                        "cas_misses",
                                        "cas_badval",
                                        "touch_hits",
                                        "touch_misses",
                                        "auth_cmds",
                                        "auth_errors",
                                        "bytes_read",
                                        "bytes_written",
                                        "limit_maxbytes",
                                        "accepting_conns",
                                        "listen_disabled_num",
                                        "threads",
                                        "bytes",
                                        "curr_items",
                                        "total_items",
                                        "evictions",
                                        "reclaimed",
                                        "get_expired",
                                        "get_flushed",
                                        "store_too_large",
                                        "store_no_memory",
                                        "idle_kicks",
                                        "conn_yields",
                                        "time_in_listen_disabled_us",
                                        "hash_power_level",
                                        "hash_bytes",
                                        "hash_is_expanding",
                                        "slab_reassign_busy_nomem",
                                        "slab_reassign_running",
                                        "slabs_moved",
                                        "lru_crawler_running",
                                        "lru_crawler_starts",
                                        "lru_maintainer_juggles",
                                        "malloc_fails",
                                        "log_worker_dropped",
                                        "slab_global_page_pool",
                                        "expired_unfetched",
                                        "evicted_unfetched",
                                        "evicted_active",
                                        "crawler_reclaimed",
                                        "crawler_items_checked",
                                        "lrutail_reflocked",
                                        "moves_to_cold",
                                        "moves_to_warm",
                                        "moves_within_lru",
                                        "direct_reclaims",
                                        "lru_bumps_dropped",
                                        "response_obj_oom",
                                        "read_buf_count",
                                        "read_buf_oom",
                                        "reserved_fds",
                                        "cmd_meta",
                                        "server_name",
                                        "server_version"};
    char *answer = stats("");

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!has(answer, names[i], NULL)) {
            print_error("no %s\n", names[i]);
        }
        assert_true(has(answer, names[i], NULL));
    }
    assert_true(has(answer, "version", "1.6.45"));
    assert_true(has(answer, "curr_items", "10"));
    assert_true(has(answer, "threads", "2"));
    assert_true(has(answer, "slab_reassign_last_busy_status", "none"));
    free(answer);
}

/* Every line: a known shape of name, each name once. `classes`: a numeric class may stand before
 * ':'. */
static void check_names(char *answer, bool classes)
{
    char *rest = answer;
    char *line;
    char *seen = calloc(1, strlen(answer) * 2 + 2);

    while ((line = strsep(&rest, "\n")) != NULL && strcmp(line, "END\r") != 0) {
        char name[128];
        char quoted[132];

        assert_int_equal(sscanf(line, "STAT %127s", name), 1);
        for (const char *c = name; *c != '\0'; c++) {
            assert_true(isalnum((unsigned char)*c) || *c == '_' || (classes && *c == ':'));
        }
        snprintf(quoted, sizeof(quoted), "<%s>", name);
        assert_null(strstr(seen, quoted));
        strcat(seen, quoted);
    }
    assert_non_null(line);
    free(seen);
    free(answer);
}

static void test_names_are_plain(void **state)
{
    (void)state;
    check_names(stats(""), false);
    check_names(stats("items"), true);
    check_names(stats("slabs"), true);
    check_names(stats("conns"), true);
    check_names(stats("spaces"), true);
    check_names(stats("tables"), true);
}

static void test_classes_are_kinds_of_memory(void **state)
{
    char *items = stats("items");
    char *slabs = stats("slabs");

    (void)state;
    assert_true(has(items, "items:1:number", "10"));
    assert_true(has(items, "items:2:number", "4"));
    assert_false(has(items, "items:3:number", NULL));
    assert_true(has(slabs, "1:chunk_size", "14"));
    assert_true(has(slabs, "1:total_pages", "2"));
    assert_true(has(slabs, "1:used_chunks", "10"));
    assert_true(has(slabs, "active_slabs", "2"));
    free(items);
    free(slabs);
}

static void test_spaces_and_tables(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "set f:1.a 0 0 1\r\n5\r\nget f:1.a f:1.a f:2.a f:x\r\nset f:1.a 0 0 1\r\nx\r\n",
                "STORED\r\nVALUE f:1.a 0 1\r\n5\r\nVALUE f:1.a 0 1\r\n5\r\nEND\r\n"
                "CLIENT_ERROR value is not a number\r\n");
    char *spaces = stats("spaces");
    char *tables = stats("tables");

    assert_true(has(spaces, "f:hits", "2"));
    assert_true(has(spaces, "f:misses_absent", "1"));
    assert_true(has(spaces, "f:bad_keys", "1"));
    assert_true(has(spaces, "f:refused_value", "1"));
    assert_true(has(spaces, "f:changes", "1"));
    assert_true(has(spaces, "c:hits", "0"));
    assert_true(has(spaces, "f:frontier", "17"));
    assert_true(has(spaces, "c:key", "c:{id}"));
    assert_true(has(tables, "f:0:records", "5"));
    free(spaces);
    free(tables);
    close(fd);
}

static unsigned lines_of(const char *answer, const char *part)
{
    unsigned n = 0;

    for (const char *at = strstr(answer, part); at != NULL; at = strstr(at + 1, part)) {
        n++;
    }
    return n;
}

/* More tables than one answer shows: it says where to go on, and of which space. */
static void test_many_tables(void **state)
{
    char argument[64];
    unsigned shown = 0, pages = 0;
    uint64_t from = 0;

    (void)state;
    fake_engine_tables(harness.store, 1000);
    char *answer = stats("tables");
    assert_true(has(answer, "f:more", NULL));
    assert_true(has(answer, "c:more", "0"));
    free(answer);
    do {
        snprintf(argument, sizeof(argument), "tables f %llu", (unsigned long long)from);
        answer = stats(argument);
        assert_int_equal(lines_of(answer, "c:"), 0);
        shown += lines_of(answer, ":records 5");
        const char *more = strstr(answer, "f:more ");

        from = more != NULL ? strtoull(more + strlen("f:more "), NULL, 10) : 0;
        free(answer);
        pages++;
    } while (from != 0);
    assert_int_equal(shown, 1000);
    assert_int_equal(pages, 4);
    answer = stats("tables f 999001");
    assert_int_equal(lines_of(answer, ":records"), 1);
    assert_true(has(answer, "f:999:records", "5"));
    free(answer);
    fake_engine_tables(harness.store, 0);
}

static void test_words_behind(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd,
                "stats tables nosuch\r\nstats tables f x\r\nstats tables f -1\r\n"
                "stats tables f 1 2\r\nstats spaces f\r\nstats tables c 0\r\n",
                "CLIENT_ERROR no space of that name: stats tables [SPACE [ID]]\r\n"
                "CLIENT_ERROR that is no id: stats tables [SPACE [ID]]\r\n"
                "CLIENT_ERROR that is no id: stats tables [SPACE [ID]]\r\n"
                "CLIENT_ERROR that is no id: stats tables [SPACE [ID]]\r\n"
                "ERROR\r\nSTAT c:0:records 5\r\nEND\r\n");
    close(fd);
}

static void test_reset(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "incr f:1.a 5\r\nget f:1.a\r\n", "5\r\nVALUE f:1.a 0 1\r\n5\r\nEND\r\n");
    assert_int_equal(harness_stat(&harness, "get_hits"), 1);
    harness_ask(fd, "stats reset\r\n", "RESET\r\n");
    assert_int_equal(harness_stat(&harness, "get_hits"), 0);
    assert_int_equal(harness_stat(&harness, "incr_hits"), 0);
    harness_ask(fd, "get f:1.a\r\n", "VALUE f:1.a 0 1\r\n5\r\nEND\r\n");
    assert_int_equal(harness_stat(&harness, "get_hits"), 1);
    assert_true(harness_stat(&harness, "curr_connections") >= 2);
    char *spaces = stats("spaces");

    assert_true(has(spaces, "f:hits", "1"));
    assert_true(has(spaces, "f:changes", "0"));
    free(spaces);
    close(fd);
}

/* A space of many tables is long to walk: one answer walks each once, for both of its figures. */
static void test_each_engine_is_asked_once(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    fake_engine_recycle(harness.store, 7);
    fake_engine_need_table(harness.store, 9);
    harness_ask(fd, "incr f:9.a 1\r\n", "1\r\n");
    uint64_t before = fake_engine_figures(harness.store);
    char *answer = stats("");

    assert_int_equal(fake_engine_figures(harness.store), before + 1);
    assert_true(has(answer, "evictions", "7"));
    assert_true(has(answer, "curr_items", "10"));
    free(answer);
    harness_ask(fd, "stats reset\r\n", "RESET\r\n");
    assert_int_equal(harness_stat(&harness, "evictions"), 0);
    close(fd);
}

static void test_others(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "stats extstore\r\n", "END\r\n");
    harness_ask(fd, "stats xyz\r\nstats sizes\r\nstats reset now\r\n",
                "ERROR\r\nSTAT sizes_status disabled\r\nEND\r\nERROR\r\n");
    char *conns = stats("conns");

    assert_non_null(strstr(conns, ":addr "));
    free(conns);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HARNESS_TEST(test_names_that_tools_need, &usual),
        HARNESS_TEST(test_names_are_plain, &usual),
        HARNESS_TEST(test_classes_are_kinds_of_memory, &usual),
        HARNESS_TEST(test_spaces_and_tables, &usual),
        HARNESS_TEST(test_many_tables, &usual),
        HARNESS_TEST(test_words_behind, &usual),
        HARNESS_TEST(test_reset, &usual),
        HARNESS_TEST(test_each_engine_is_asked_once, &usual),
        HARNESS_TEST(test_others, &usual),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
