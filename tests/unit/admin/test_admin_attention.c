/* test_admin_attention.c: each trouble has its sentence with the next step, and a good day has
 * none. */
#include "admin/admin_attention.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"

#define GIB       (1ull << 30)
#define SECOND_US 1000000ull
#define COUNTERS  0 /* places of the spaces */
#define FILTERS   1

struct day {
    struct admin_figures *figures;
    struct admin_history *history;
    struct admin_table tables[2];
};

/* Figures of a daemon that has nothing to complain of. */
static void begin_day(struct day *day)
{
    struct admin_figures *figures = memory_zalloc(sizeof(*figures));

    memset(day, 0, sizeof(*day));
    day->figures = figures;
    day->history = admin_history_create();
    figures->serving = figures->reload_well = figures->has_data = figures->has_journal = true;
    figures->repl.applies = figures->repl.readable = true;
    figures->now_us = 100 * SECOND_US;
    figures->max_connections = 100;
    figures->memory_bytes = 2 * GIB;
    figures->resident_bytes = GIB;
    figures->data.disk_bytes = 100 * GIB;
    figures->data.disk_free_bytes = 50 * GIB;
    figures->sync = JOURNAL_SYNC_EVERYSEC;
    figures->space_count = 2;
    for (size_t i = 0; i < 2; i++) {
        struct admin_space *space = &figures->spaces[i];

        snprintf(space->name, sizeof(space->name), "%s", i == COUNTERS ? "feed" : "liked");
        space->kind = i == COUNTERS ? SPACE_COUNTER : SPACE_PHANTOM;
        space->target = i == COUNTERS ? 0 : 0.001;
        space->full_in_s = -1;
        space->reach[ENGINE_REACH_HOME] = 10000;
        space->table_count = 1;
        space->at = &day->tables[i];
        space->at->aux_pool_bytes = 1000;
    }
    figures->spaces[COUNTERS].slot_count = 2;
    figures->spaces[COUNTERS].slot_list[0] = (struct admin_slot){.name = "like", .bits = 8};
    figures->spaces[COUNTERS].slot_list[1] =
        (struct admin_slot){.name = "read", .bits = 9, .beside = 7, .enough_bits = 11};
}

static void end_day(struct day *day)
{
    admin_history_destroy(day->history);
    free(day->figures);
}

/* ---- troubles ---- */

#define TROUBLE(name, ...)                                                                         \
    static void name(struct day *day)                                                              \
    {                                                                                              \
        struct admin_figures *figures = day->figures;                                              \
        __VA_ARGS__                                                                                \
    }

TROUBLE(journal_lost, figures->journal.failed = true;
        snprintf(figures->journal.error, sizeof(figures->journal.error), "no device");)
TROUBLE(journal_full, figures->journal.full = true;)
TROUBLE(journal_behind, figures->journal.unsynced_us = ADMIN_JOURNAL_LAG_US;)
TROUBLE(checkpoints_fail, figures->events.checkpoint_failures = 3;)
TROUBLE(dumps_fail, figures->events.dump_failures = 3;)
TROUBLE(damaged_pages, figures->cold.bad_pages = 3;)
TROUBLE(reads_fail, figures->events.cold_failed = 1;)
TROUBLE(journal_crowded, figures->events.journal_refusals = 3;)
TROUBLE(disk_queue_full, figures->events.cold_busy = 3;)
TROUBLE(little_disk, figures->data.disk_free_bytes = 9 * GIB;)
TROUBLE(connections_refused, figures->events.rejected_connections = 3;)
TROUBLE(connections_near, metric_add(&figures->net.curr_connections, 80);)
TROUBLE(logins_fail, figures->events.failed_logins = 3;)
TROUBLE(hot_id, figures->hot[WATCH_IDS].worst = 0.06; figures->hot[WATCH_IDS].count = 1;
        snprintf(figures->hot[WATCH_IDS].tops[0].key, WATCH_KEY_MAX, "feed:77");)
TROUBLE(too_much_memory, figures->resident_bytes = 3 * GIB;)
TROUBLE(few_huge_pages, figures->huge.resident = GIB;)
TROUBLE(reload_failed, figures->reload_well = false;)
TROUBLE(refusals, figures->spaces[COUNTERS].trend.refused[ADMIN_REASON_id_far] = 4;)
TROUBLE(no_table, figures->spaces[COUNTERS].trend.refused[ADMIN_REASON_no_table] = 4;)
TROUBLE(no_further_table, figures->spaces[COUNTERS].trend.refused[ADMIN_REASON_no_table] = 4;
        figures->spaces[COUNTERS].tables = ROW_ROUTES_MAX;)
TROUBLE(filter_over, (void)figures; day->tables[FILTERS].rate = 0.002;
        day->tables[FILTERS].members = 118; day->tables[FILTERS].capacity = 100;)
TROUBLE(slot_overflows, figures->spaces[COUNTERS].slot_list[1].beside = 101;
        figures->spaces[COUNTERS].slot_list[1].enough_for = 100;)
TROUBLE(pool_fills, (void)figures; day->tables[COUNTERS].aux_bytes = 800;)
TROUBLE(pool_fills_unseen, figures->spaces[COUNTERS].slot_count = 0;
        day->tables[COUNTERS].aux_bytes = 800;)

static void clock_jumps(struct day *day)
{
    struct admin_sample first = {.at_us = SECOND_US}, second = {.at_us = 2 * SECOND_US};

    admin_history_second(day->history, &first, 1000);
    admin_history_second(day->history, &second, 901);
}

static void fills(struct day *day, double full_in_s)
{
    day->figures->spaces[COUNTERS].room.refuses = true;
    day->figures->spaces[COUNTERS].full_in_s = full_in_s;
}

static void full(struct day *day)
{
    fills(day, 0);
}

static void full_soon(struct day *day)
{
    fills(day, ADMIN_SOON_S - 1);
}

static struct admin_replication *followed(struct day *day)
{
    struct admin_replication *repl = &day->figures->repl;

    repl->role = ADMIN_ROLE_FOLLOWER;
    repl->receiver.state = REPL_RECEIVER_STREAMING;
    snprintf(repl->leader, sizeof(repl->leader), "10.0.0.1:11211");
    return repl;
}

TROUBLE(diverged, (void)figures; followed(day)->receiver.state = REPL_RECEIVER_DIVERGED;)
TROUBLE(applies_not, followed(day)->applies = false;
        snprintf(figures->repl.trouble, sizeof(figures->repl.trouble), "space x is missing");)
TROUBLE(memory_grown, followed(day)->grown = true;
        snprintf(figures->repl.trouble, sizeof(figures->repl.trouble), "1 MiB is missing");)
TROUBLE(no_leader, followed(day)->receiver.state = REPL_RECEIVER_CONNECTING;
        snprintf(figures->repl.trouble, sizeof(figures->repl.trouble), "refused");)
TROUBLE(behind, (void)figures; followed(day)->receiver.lag_us = ADMIN_BEHIND_US;)
TROUBLE(stale, (void)figures; followed(day)->readable = false;)
TROUBLE(no_replica, figures->repl.has_feeds = figures->repl.waits = true;
        snprintf(figures->repl.waits_for, sizeof(figures->repl.waits_for), "two");)
TROUBLE(none_named, figures->repl.has_feeds = figures->repl.waits = true;
        figures->repl.feeds.waits.lacks = true;)
TROUBLE(fenced, figures->repl.has_feeds = figures->repl.fenced = true;)
TROUBLE(follower_behind, figures->repl.has_feeds = true; figures->repl.feeds.count = 1;
        figures->repl.feeds.feeds[0] = (struct repl_feed_stats){
            .state = REPL_FEED_STREAMING, .name = "two", .lag_us = ADMIN_BEHIND_US};)

static const struct {
    void (*make)(struct day *day);
    const char *wanted, *step; /* what the sentence says is wrong, and what to do */
} troubles[] = {
    {journal_lost, "The journal has failed, and every change is refused: no device", "restart"},
    {journal_full, "The disk is full", "Free some space"},
    {journal_behind, "The journal is behind: its oldest change has waited 5", "iostat"},
    {checkpoints_fail, "3 checkpoints failed in the last ten minutes", "The log says why"},
    {dumps_fail, "3 dumps of tables failed", "The log says why"},
    {damaged_pages, "met 3 pages of dumped tables that the disk has damaged", "rollcall verify"},
    {reads_fail, "1 read of dumped tables failed", "dmesg"},
    {journal_crowded, "no room for a change 3 times", "Raise journal.buffer"},
    {disk_queue_full, "3 reads of dumped tables were refused", "Raise cold.threads"},
    {little_disk, "has only 9.00 GiB free", "Free some"},
    {connections_refused, "3 connections were refused", "Raise max-connections (now 100)"},
    {connections_near, "80 of at most 100 connections are open", "Raise max-connections"},
    {logins_fail, "3 logins failed", "The log names the addresses"},
    {hot_id, "One id takes 6.0 % of a worker's keys; the hottest is `feed:77`", "spread"},
    {too_much_memory, "takes 3.00 GiB of memory, more than its limit of 2.00 GiB", "stats"},
    {few_huge_pages, "lie in huge pages", "transparent_hugepage"},
    {reload_failed, "The last reload (SIGHUP) changed nothing", "--check-config"},
    {refusals, "feed refused 4 operations in the last ten minutes: id too far ahead", "who makes"},
    {no_table, "feed refused 4 operations in the last ten minutes: no table free", "`tables`"},
    {no_further_table, "feed refused 4 operations in the last ten minutes: no table free",
     "set `dumps-max`"},
    {filter_over, "liked: 1 of its filters answer wrong more often than their target of 0.10 %",
     "Raise late-room"},
    {slot_overflows,
     "feed: 101 numbers are too large for slot `read` of 9 bits; 11 bits would "
     "hold 100 of them",
     "Give it more bits"},
    {pool_fills,
     "feed: 7 numbers are too large for slot `read` of 9 bits, and the memory for them "
     "is 80 % used",
     "raise `aux-memory`"},
    {pool_fills_unseen, "feed: the memory for numbers that lie beside a table is 80 % used",
     "Raise `aux-memory`"},
    {clock_jumps, "The wall clock was set by -100 seconds", "NTP"},
    {full, "feed is full: new ids are refused", "Raise its `tables`"},
    {full_soon, "feed is full in 24 hours", "Raise its `tables`"},
    {diverged, "and 10.0.0.1:11211, which it follows, have other records", "Decide which"},
    {applies_not, "is stored and not carried out: space x is missing", "."},
    {memory_grown, "are larger than `memory` here: 1 MiB is missing", "raise `memory`"},
    {no_leader, "There is no connection to 10.0.0.1:11211", "refused"},
    {behind, "of journal behind 10.0.0.1:11211", "Look at the link"},
    {stale, "This node refuses reads", "stale-after"},
    {no_replica, "Answers wait for two, which is away", "Look at that node"},
    {none_named, "the agent has named none yet", "start a follower"},
    {fenced, "The word of this leader's agent has ended", "rollcall agent status"},
    {follower_behind, "The follower two is 5", "Look at the link"},
};

static void collect(const struct day *day, struct admin_attention *attention)
{
    const struct admin_view view = {day->figures, day->history};

    admin_attention_collect(&view, attention);
}

static void test_each(void **unused)
{
    struct admin_attention *attention = memory_zalloc(sizeof(*attention));
    struct day day;

    (void)unused;
    for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++) {
        begin_day(&day);
        collect(&day, attention);
        assert_int_equal(attention->count, 0);
        troubles[i].make(&day);
        collect(&day, attention);
        if (attention->count != 1 || strstr(attention->sentences[0], troubles[i].wanted) == NULL ||
            strstr(attention->sentences[0], troubles[i].step) == NULL) {
            fail_msg("%zu sentences, \"%s\", not: %s", attention->count,
                     attention->count > 0 ? attention->sentences[0] : "", troubles[i].wanted);
        }
        assert_true(strlen(attention->sentences[0]) < ADMIN_SENTENCE_MAX - 1);
        end_day(&day);
    }
    free(attention);
}

/* All at once: the first ones are told, and how many more there are. */
static void test_many(void **unused)
{
    struct admin_attention *attention = memory_zalloc(sizeof(*attention));
    struct day day;

    (void)unused;
    begin_day(&day);
    for (unsigned reason = 0; reason < ADMIN_REFUSALS_N; reason++) {
        for (size_t i = 0; i < 10; i++) {
            day.figures->spaces[i].trend.refused[reason] = 1;
        }
    }
    day.figures->space_count = 10;
    day.figures->journal.full = true;
    collect(&day, attention);
    assert_int_equal(attention->count, ADMIN_ATTENTION_MAX);
    assert_int_equal(attention->count + attention->more, 1 + 10 * ADMIN_REFUSALS_N);
    assert_non_null(strstr(attention->sentences[0], "The disk is full"));
    end_day(&day);
    free(attention);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
