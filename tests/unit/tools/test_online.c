/* test_online.c: what the online verbs print of a view, rates of two views, and plans. */
#include "tools/rollcall/online.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/rollcall/online_plan.h"
#include "tools/rollcall/online_rates.h"
#include "tools/rollcall/online_text.h"
#include "tools/rollcall/online_top.h"
#include "tools/rollcall/online_view.h"
#include "tools/rollcall/verb.h"

#define SPACE                                                                                      \
    "{\"name\":\"%s\",\"kind\":\"counter\",\"held\":%d,\"recycled\":0,\"hits\":%d,\"changes\":%d," \
    "\"tables\":3,\"cold_tables\":1,\"dumped_tables\":1,\"spare\":2,\"oldest\":\"refuse\","        \
    "\"held_bytes\":%d,\"added_each_s\":null,\"full_in_s\":%s,\"table_list\":[{\"serial\":7,"      \
    "\"state\":\"open\",\"first_id\":1,\"last_id\":9000,\"records\":250,\"capacity\":1000}]}"

static json_t *view_of(int uptime_s, int reads, int feed_held, int feed_hits)
{
    char text[4096];

    snprintf(text, sizeof(text),
             "{\"address\":\"127.0.0.1:11211\",\"uptime_s\":%d,\"resident_bytes\":1048576,"
             "\"memory_limit_bytes\":1073741824,\"max_connections\":1024,\"connections\":"
             "{\"curr_connections\":3},\"commands\":{\"cmd_get\":%d,\"get_hits\":%d},"
             "\"hot\":{\"ids\":[{\"key\":\"feed:77\",\"share\":0.1}]},\"spaces\":[" SPACE "," SPACE
             "]}",
             uptime_s, reads, reads / 2, "feed", feed_held, feed_hits, 7, 9 << 20, "267840", "aaa",
             10, 0, 0, 1 << 20, "0");
    json_t *view = json_loads(text, 0, NULL);

    assert_non_null(view);
    return view;
}

static void test_lines(void **unused)
{
    json_t *view = view_of(300, 100, 41234, 0);
    const json_t *feed = online_find_space(view, "feed");
    char line[ONLINE_LINE_MAX], heading[ONLINE_LINE_MAX];

    (void)unused;
    assert_string_equal(online_text_daemon(line, view),
                        "127.0.0.1:11211, up 5.0 minutes, 3 of 1024 connections, 1.00 MiB "
                        "of 1.00 GiB");
    online_text_heading(heading);
    online_text_space(line, feed);
    assert_string_equal(
        line, "feed         counter   41.2k    25      2       1   9.00M       - 3.1 days");
    assert_true(strstr(line, "3.1 days") - line == strstr(heading, "FULL IN") - heading);
    online_text_space(line, online_find_space(view, "aaa"));
    assert_non_null(strstr(line, " FULL"));
    online_text_table(line, feed, online_newest(feed));
    assert_string_equal(
        line, "feed         7 open                    1              9000     250    25 ");
    assert_null(online_find_space(view, "nosuch"));
    assert_int_equal(online_number(feed, "nosuch"), 0);
    assert_true(online_real(feed, "added_each_s") < 0);
    assert_string_equal(online_text(feed, "held"), "");
    json_decref(view);
}

static void test_rates(void **unused)
{
    struct online_rates rates = {0};
    json_t *first = view_of(10, 1000, 500, 100);
    json_t *second = view_of(12, 1500, 900, 300);
    json_t *later = view_of(30, 1500, 2500, 300);
    json_t *anew = view_of(1, 10, 0, 0);
    const json_t *feed;

    (void)unused;
    online_rates_add(&rates, first, 1000);
    assert_null(json_object_get(first, "reads_each_s"));
    online_rates_add(&rates, second, 3000);
    assert_true(online_real(second, "reads_each_s") == 250);
    assert_true(online_real(second, "hit_ratio") == 0.5);
    feed = online_find_space(second, "feed");
    assert_true(online_real(feed, "reads_each_s") == 100);
    assert_true(online_real(feed, "changes_each_s") == 0);
    assert_true(online_real(feed, "added_each_s") < 0); /* too short to tell */
    online_rates_add(&rates, later, 21000);
    feed = online_find_space(later, "feed");
    assert_true(online_real(feed, "added_each_s") == 100); /* since the first */
    assert_true(online_real(feed, "full_in_s") == 27.5);   /* 750 + 2 tables */
    assert_null(json_object_get(later, "hit_ratio"));      /* nobody read */
    online_rates_add(&rates, anew, 22000);                 /* started anew: no rate of it */
    assert_null(json_object_get(anew, "reads_each_s"));
    assert_int_equal(rates.taken, 1);
    for (uint64_t i = 0; i < 3 * ONLINE_WINDOW; i++) { /* the ring goes round */
        json_t *view = view_of(100, 0, (int)(10 * i), 0);

        online_rates_add(&rates, view, 23000 + 1000 * i);
        if (i >= 2 * ONLINE_WINDOW) {
            feed = online_find_space(view, "feed");
            assert_true(online_real(feed, "added_each_s") == 10);
        }
        json_decref(view);
    }
    online_rates_free(&rates);
    json_decref(first);
    json_decref(second);
    json_decref(later);
    json_decref(anew);
}

static void test_top(void **unused)
{
    static struct online_lines lines;
    json_t *view = view_of(300, 100, 41234, 0);

    (void)unused;
    online_top_compose(view, ONLINE_BY_HELD, "", 24, &lines);
    assert_false(lines.wrong);
    assert_memory_equal(lines.at[lines.heading], "SPACE ", 6);
    assert_memory_equal(lines.at[lines.heading + 1], "feed ", 5);
    assert_memory_equal(lines.at[lines.heading + 2], "aaa ", 4);
    assert_string_equal(lines.at[lines.count - 2], "hot:  feed:77 10 %");
    assert_non_null(strstr(lines.at[lines.count - 1], "(held);"));
    for (size_t i = 0; i < lines.count; i++) {
        assert_true(strlen(lines.at[i]) <= 80);
    }
    online_top_compose(view, ONLINE_BY_NAME, "", 24, &lines);
    assert_memory_equal(lines.at[lines.heading + 1], "aaa ", 4);
    online_top_compose(view, ONLINE_BY_FULL, "", 24, &lines); /* it is full now */
    assert_memory_equal(lines.at[lines.heading + 1], "aaa ", 4);
    /* what does not fit is said */
    online_top_compose(view, ONLINE_BY_HELD, "it is gone", ONLINE_TOP_ROWS_MIN, &lines);
    assert_true(lines.wrong && lines.count <= ONLINE_TOP_ROWS_MIN);
    assert_string_equal(lines.at[0], "it is gone");
    assert_string_equal(lines.at[lines.heading + 1], "and 2 more: rollcall status has all");
    json_decref(view);
}

/* ---- plans ---- */

static struct plan *planned(const struct online_options *options, double ids, double pairs,
                            char error[PLAN_ERROR_MAX])
{
    struct plan *plan = calloc(1, sizeof(*plan));

    assert_non_null(plan);
    strcpy(plan->slots, "{repost: 14, like: 18}");
    if (ids > 0) {
        plan->spaces[plan->space_count++] = (struct plan_space){.name = "feed",
                                                                .kind = SPACE_COUNTER,
                                                                .each_day = ids,
                                                                .days = 90,
                                                                .table_bytes = 64 << 20,
                                                                .tables = 8};
    }
    if (pairs > 0) {
        plan->spaces[plan->space_count++] = (struct plan_space){.name = "liked",
                                                                .kind = SPACE_PHANTOM,
                                                                .each_day = pairs,
                                                                .days = 7,
                                                                .table_bytes = 64 << 20,
                                                                .tables = 8};
    }
    if (!plan_make(options, plan, error)) {
        free(plan);
        return NULL;
    }
    return plan;
}

static void test_plan(void **unused)
{
    struct online_options options = {.false_positives = 0.001};
    char error[PLAN_ERROR_MAX] = "";

    (void)unused;
    for (double ids = 1; ids < 1e12; ids *= 1000) {
        struct plan *plan = planned(&options, ids, 10 * ids, error);

        assert_non_null(plan);
        for (size_t i = 0; i < plan->space_count; i++) {
            const struct plan_space *space = &plan->spaces[i];

            /* all days fit without the table that is dropped next, and not twice */
            assert_true(space->table_takes * (space->tables - 2) >= space->each_day * space->days);
            assert_true(space->tables <= 2 * PLAN_TABLES_WANTED + 3);
        }
        assert_true(plan->sum_bytes <= plan->memory_bytes);
        assert_true(plan->memory_bytes - plan->sum_bytes < plan->sum_bytes / 8 + (256ull << 20));
        for (size_t i = 1; i < plan->date_count; i++) {
            assert_true(plan->dates[i].disk_bytes >= plan->dates[i - 1].disk_bytes);
        }
        assert_int_equal(plan->dates[plan->date_count - 1].day, 90);
        assert_true(plan->dates[plan->date_count - 1].held[0] == 90 * ids);
        free(plan);
    }
}

/* The day; 0: it is never full. */
static double disk_is_full_on(const struct plan *plan)
{
    for (size_t i = 0; i < plan->fail_count; i++) {
        assert_true(i == 0 || plan->fails[i].day >= plan->fails[i - 1].day);
        if (strncmp(plan->fails[i].words, "the disk: ", 10) == 0) {
            return plan->fails[i].day;
        }
    }
    return 0;
}

/* A smaller machine keeps fewer tables in memory and the others on the disk; all days are there. */
static void test_plan_fits(void **unused)
{
    struct online_options options = {.false_positives = 0.001, .disk_bytes = 100ull << 30};
    char error[PLAN_ERROR_MAX] = "";

    (void)unused;
    for (uint64_t gib = 4; gib <= 512; gib *= 2) {
        options.memory_bytes = gib << 30;
        struct plan *plan = planned(&options, 200e6, 2e9, error);

        assert_non_null(plan);
        assert_int_equal(plan->memory_bytes, gib << 30);
        assert_true(plan->sum_bytes <= plan->memory_bytes);
        for (size_t i = 0; i < plan->space_count; i++) {
            const struct plan_space *space = &plan->spaces[i];
            double tables = space->tables - 1 + space->dumps_max;

            assert_true(space->table_takes * (tables - 1) >= space->each_day * space->days);
            assert_true(gib < 256 ? space->dumps_max > 0 : true);
        }
        assert_true(disk_is_full_on(plan) > 0 && disk_is_full_on(plan) < 90);
        free(plan);
    }
    options.memory_bytes = 1 << 20;
    assert_null(planned(&options, 200e6, 0, error));
    assert_string_equal(error, "--memory must be at least 256MiB");
    options.memory_bytes = 0;
    assert_null(planned(&options, 1e16, 0, error));
    assert_non_null(strstr(error, "feed: "));
}

static void test_verbs(void **unused)
{
    (void)unused;
    assert_string_equal(verb_nearest("stauts"), "status");
    assert_string_equal(verb_nearest("tpo"), "top");
    assert_null(verb_nearest("xyzzy"));
    for (size_t i = 0; i < verb_count; i++) {
        assert_null(strpbrk(verbs[i].help, "'")); /* completions have it in quotes */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),     cmocka_unit_test(test_rates),
        cmocka_unit_test(test_top),       cmocka_unit_test(test_plan),
        cmocka_unit_test(test_plan_fits), cmocka_unit_test(test_verbs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
