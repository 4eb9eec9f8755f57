/* Reload with real counters and clients that never stop: what stays, what changes, all or nothing.
 */
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

#include "base/barrier.h"
#include "base/log.h"
#include "daemon/reload.h"
#include "tests/unit/request/harness.h"

#define ROLLING_IDS 20000u /* three tables of 64 KiB, and some */

static struct harness harness;

static struct slot_settings slot(const char *name, unsigned bits)
{
    struct slot_settings slot = {.bits = bits};

    snprintf(slot.name, sizeof(slot.name), "%s", name);
    return slot;
}

static void make_space(struct space_settings *space, const char *name)
{
    *space = (struct space_settings){
        .kind = SPACE_COUNTER, .row.table_bytes = 1u << 20, .row.tables = 1};
    snprintf(space->name, sizeof(space->name), "%s", name);
    snprintf(space->key, sizeof(space->key), "%s:{id}", name);
    space->slots[0] = slot("a", 20);
    space->slots[1] = slot("b", 20);
    space->slot_count = 2;
}

static int setup(void **state)
{
    (void)state;
    log_setup("test_reload", LOG_LEVEL_ERROR);
    harness_init(&harness, 2);
    harness.create = space_engine_create;
    make_space(&harness.settings.spaces[0], "f");
    make_space(&harness.settings.spaces[1], "c");
    harness_start(&harness);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    harness_fini(&harness);
    return 0;
}

static bool reload(const struct settings *next)
{
    return reload_apply(harness.server, next, space_engine_create);
}

/* The last of a test: the server has them until it ends. */
static void reload_last(const struct settings *settings)
{
    static struct settings last;

    last = *settings;
    assert_true(reload(&last));
}

static void let_go(struct space_settings *space, const char *name)
{
    strcpy(space->forget[space->forget_count++], name);
}

/* What is said does not say more than `says`, of a reload that changes nothing. */
static void expect_refusal(const struct settings *next, const char *says)
{
    char text[4096];
    FILE *log = tmpfile();
    int saved = dup(STDERR_FILENO);

    assert_true(log != NULL && saved >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
    bool taken = reload(next);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(log);
    text[fread(text, 1, sizeof(text) - 1, log)] = '\0';
    fclose(log);
    assert_false(taken);
    if (strstr(text, says) == NULL || strstr(text, "nothing was changed") == NULL) {
        fail_msg("'%s' does not say '%s'", text, says);
    }
}

static void test_slots_are_matched_by_name(void **state)
{
    struct settings next = harness.settings;
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "set f:1 0 0 3\r\n7,8\r\n", "STORED\r\n");
    next.spaces[0].slots[0] = slot("b", 40); /* reordered and widened */
    next.spaces[0].slots[1] = slot("new", 16);
    next.spaces[0].slots[2] = slot("a", 20);
    next.spaces[0].slot_count = 3;
    next.spaces[0].value_flags = 5;
    assert_true(reload(&next));
    harness_ask(fd, "get f:1 f:1.a f:1.new\r\n",
                "VALUE f:1 5 4\r\n8,,7\r\nVALUE f:1.a 5 1\r\n7\r\nEND\r\n");
    harness_ask(fd, "incr f:1.new 3\r\nincr f:1.b 5000000\r\n", "3\r\n5000008\r\n");
    struct settings fewer = harness.settings;

    let_go(&fewer.spaces[0], "new");
    reload_last(&fewer);
    harness_ask(fd, "get f:1\r\n", "VALUE f:1 0 9\r\n7,5000008\r\nEND\r\n");
    close(fd);
}

/* A mistyped name would cost what the slot has counted: refused, until it is to be let go. */
static void test_slots_are_let_go(void **state)
{
    struct settings next = harness.settings;
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "set f:1 0 0 3\r\n7,8\r\nset f:2.a 0 0 1\r\n9\r\nset f:3.b 0 0 1\r\n1\r\n",
                "STORED\r\nSTORED\r\nSTORED\r\n");
    next.spaces[0].slots[0] = slot("aa", 20);
    expect_refusal(&next,
                   "space f: slots: a is missing, 2 records have it; put it back as it was, or "
                   "write forget: [a] to let go of them for good");
    harness_ask(fd, "get f:1 f:1.aa\r\nincr f:2.a 1\r\n", "VALUE f:1 0 3\r\n7,8\r\nEND\r\n10\r\n");
    let_go(&next.spaces[0], "b");
    expect_refusal(&next, "slots: a is missing");
    let_go(&next.spaces[0], "a");
    assert_true(reload(&next));
    harness_ask(fd, "get f:1 f:2\r\n", "VALUE f:1 0 2\r\n,8\r\nEND\r\n");
    assert_true(reload(&harness.settings)); /* nothing has aa; what is there is the caller's */
    harness_ask(fd, "get f:1 f:2.a\r\nincr f:2.a 1\r\n", "VALUE f:1 0 2\r\n,8\r\nEND\r\n1\r\n");
    close(fd);
}

/* A promotion is over before the server says that it leads. */
static void test_a_node_just_promoted_lets_go_of_nothing(void **state)
{
    struct settings next = harness.settings;
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "set f:1 0 0 3\r\n7,8\r\n", "STORED\r\n");
    next.spaces[0].slots[0] = slot("aa", 20);
    barrier_stop(harness.server->barrier);
    harness.server->follows = true;
    barrier_go(harness.server->barrier);
    expect_refusal(&next, "slots: a is missing");
    barrier_stop(harness.server->barrier);
    harness.server->follows = false;
    barrier_go(harness.server->barrier);
    close(fd);
}

/* One that is let go in a reload that another space refuses is as it was. */
static void test_undone_slots_are_there(void **state)
{
    struct settings next = harness.settings;
    char error[SPACES_ERROR_MAX];
    struct space *space = harness.server->spaces->at[0];
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "set f:1 0 0 3\r\n7,8\r\n", "STORED\r\n");
    next.spaces[0].slots[0] = slot("aa", 20);
    barrier_stop(harness.server->barrier);
    assert_true(space_reconfigure(space, &next.spaces[0], error));
    assert_true(space_undo(space, &harness.settings.spaces[0], error));
    barrier_go(harness.server->barrier);
    harness_ask(fd, "get f:1\r\n", "VALUE f:1 0 3\r\n7,8\r\nEND\r\n");
    close(fd);
}

/* Tables that smaller ones have no room for. */
static void test_tables_are_let_go(void **state)
{
    struct settings rolling = harness.settings;
    struct settings next;
    char request[64], answer[32];
    int fd = harness_connect(&harness);

    (void)state;
    make_space(&rolling.spaces[2], "r");
    rolling.space_count = 3;
    rolling.spaces[2].row.table_bytes = 64u << 10;
    rolling.spaces[2].row.tables = 6;
    rolling.spaces[2].oldest = SPACE_OLDEST_RECYCLE;
    rolling.spaces[2].row.late_room = 0;
    assert_true(reload(&rolling));
    for (unsigned id = 1; id <= ROLLING_IDS; id++) {
        snprintf(request, sizeof(request), "incr r:%u.a 1\r\n", id);
        snprintf(answer, sizeof(answer), "1\r\n");
        harness_ask(fd, request, answer);
    }
    harness_ask(fd, "get r:1.a\r\n", "VALUE r:1.a 0 1\r\n1\r\nEND\r\n");
    next = rolling;
    next.spaces[2].row.tables = 3;
    expect_refusal(&next, "space r: tables: 3 of 64 KiB has no room for 1 table with ");
    next.spaces[2].row.tables = 6;
    assert_true(reload(&next)); /* as it is */
    next.spaces[2].oldest = SPACE_OLDEST_REFUSE;
    next.spaces[2].row.tables = 3;
    assert_true(reload(&next)); /* it refuses new ids */
    next.spaces[2].oldest = SPACE_OLDEST_RECYCLE;
    harness_ask(fd, "get r:1.a\r\n", "VALUE r:1.a 0 1\r\n1\r\nEND\r\n");
    next.spaces[2].row.tables = 2;
    let_go(&next.spaces[2], ENGINE_LOSS_TABLES);
    reload_last(&next);
    close(fd);
}

/* Caches come and go; a store that is missing in the file refuses the reload. */
static void test_spaces_come_and_go(void **state)
{
    struct settings next = harness.settings;
    struct settings cached = harness.settings;
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "incr f:1.a 7\r\nincr c:1.a 8\r\n", "7\r\n8\r\n");
    make_space(&next.spaces[0], "d"); /* f is gone, c has another place */
    next.spaces[0].role = SPACE_CACHE;
    assert_false(reload(&next));
    harness_ask(fd, "get f:1.a d:1.a\r\n", "VALUE f:1.a 0 1\r\n7\r\nEND\r\n");
    cached.spaces[0].role = SPACE_CACHE;
    assert_true(reload(&cached));
    assert_true(reload(&next));
    harness_ask(fd, "get f:1.a c:1.a d:1.a\r\nset d:1.a 0 0 1\r\n9\r\nincr f:1.a 1\r\n",
                "VALUE c:1.a 0 1\r\n8\r\nEND\r\nSTORED\r\nCLIENT_ERROR no space for key\r\n");
    assert_true(reload(&harness.settings));
    harness_ask(fd, "get f:1.a c:1.a d:1.a\r\n", "VALUE c:1.a 0 1\r\n8\r\nEND\r\n");
    close(fd);
}

static void test_key_and_role_change_at_once(void **state)
{
    struct settings next = harness.settings;
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "incr f:1.a 7\r\n", "7\r\n");
    strcpy(next.spaces[0].key, "count_{id}");
    next.spaces[0].role = SPACE_CACHE;
    assert_true(reload(&next));
    harness_ask(fd, "get count_1.a f:1.a\r\nincr count_2.a 1\r\n",
                "VALUE count_1.a 0 1\r\n7\r\nEND\r\nNOT_FOUND\r\n");
    assert_true(reload(&harness.settings));
    close(fd);
}

/* A space of another kind comes, learns deletes, and may not become a counter. */
static void test_phantom(void **state)
{
    struct settings next = harness.settings;
    struct space_settings *liked = &next.spaces[next.space_count++];
    int fd = harness_connect(&harness);

    (void)state;
    make_space(liked, "l");
    liked->kind = SPACE_PHANTOM;
    liked->false_positives = 0.001;
    strcpy(liked->key, "l:{id}:{member}");
    assert_true(reload(&next));
    harness_ask(fd, "add l:1:u 0 0 1\r\n1\r\nadd l:1:u 0 0 1\r\n1\r\ndelete l:1:u\r\n",
                "STORED\r\nNOT_STORED\r\nCLIENT_ERROR deletes are off for this space\r\n");
    struct settings deleting = next;

    deleting.spaces[next.space_count - 1].deletes = true;
    assert_true(reload(&deleting));
    harness_ask(fd, "get l:1:u\r\ndelete l:1:u\r\nget l:1:u\r\n",
                "VALUE l:1:u 0 1\r\n1\r\nEND\r\nDELETED\r\nEND\r\n");
    struct settings counting = deleting;

    make_space(&counting.spaces[next.space_count - 1], "l");
    assert_false(reload(&counting));
    harness_ask(fd, "add l:1:u 0 0 1\r\n1\r\n", "STORED\r\n");
    close(fd);
}

/* The last of several changes cannot be: nothing has changed. */
static void test_all_or_nothing(void **state)
{
    struct settings next = harness.settings;
    int fd = harness_connect(&harness);

    (void)state;
    log_setup("test_reload", LOG_LEVEL_ERROR);
    harness_ask(fd, "set f:1 0 0 3\r\n7,8\r\n", "STORED\r\n");
    next.spaces[0].slots[next.spaces[0].slot_count++] = slot("new", 20);
    next.spaces[1].slots[next.spaces[1].slot_count++] = slot("wide", 99); /* no such width */
    make_space(&next.spaces[2], "d");
    next.space_count = 3;
    assert_false(reload(&next));
    harness_ask(fd, "get f:1 d:1\r\nincr d:1.a 1\r\n",
                "VALUE f:1 0 3\r\n7,8\r\nEND\r\nCLIENT_ERROR no space for key\r\n");
    strcpy(next.spaces[1].key, "f:{id}"); /* two owners of one key */
    next.spaces[1].slot_count--;
    assert_false(reload(&next));
    harness_ask(fd, "get f:1\r\n", "VALUE f:1 0 3\r\n7,8\r\nEND\r\n");
    next = harness.settings;
    next.spaces[0].row.table_bytes =
        harness.settings.memory_bytes; /* and the limit cannot be raised */
    next.memory_bytes *= 4;
    assert_false(reload(&next));
    next.memory_bytes = 1u << 20; /* nor is it lowered before the restart */
    next.spaces[0].row.table_bytes = harness.settings.spaces[0].row.table_bytes;
    assert_true(reload(&next));
    assert_int_equal(harness_stat(&harness, "limit_maxbytes"), harness.settings.memory_bytes);
    assert_true(reload(&harness.settings));
    next = harness.settings;
    next.spaces[1].kind = SPACE_PHANTOM;
    next.spaces[1].false_positives = 0.001;
    assert_false(reload(&next));
    harness_ask(fd, "incr c:1.a 1\r\n", "1\r\n");
    close(fd);
}

/* ---- tables ---- */

#define TABLE_BYTES (64u << 10)
#define LINE_BYTES  64
#define WINDOW      500 /* requests sent together */

/* Asks the same of ids first to last; each must get this answer. */
__attribute__((format(printf, 4, 0))) static void each(int fd, unsigned first, unsigned last,
                                                       const char *format, const char *answer)
{
    static char ask[WINDOW * LINE_BYTES];
    static char answers[WINDOW * LINE_BYTES];

    for (unsigned id = first; id <= last;) {
        size_t asked = 0;
        size_t answered = 0;

        for (int i = 0; i < WINDOW && id <= last; i++, id++) {
            asked += (size_t)snprintf(ask + asked, LINE_BYTES, format, id);
            answered += (size_t)snprintf(answers + answered, LINE_BYTES, "%s", answer);
        }
        harness_send(fd, ask, asked);
        harness_expect_bytes(fd, answers, answered);
    }
}

/* A figure of `stats <group>`; -1: there is none. */
static double figure(int fd, const char *group, const char *name)
{
    char line[128];

    snprintf(line, sizeof(line), "stats %s\r\n", group);
    harness_say(fd, line);
    char *answer = harness_until_end(fd);

    snprintf(line, sizeof(line), "STAT %s ", name);
    const char *at = strstr(answer, line);
    double value = at != NULL ? atof(at + strlen(line)) : -1;

    free(answer);
    return value;
}

/* Until the keeper has done it; teardown's alarm ends a test that waits for nothing. */
static void await_figure(int fd, const char *group, const char *name, double value)
{
    while (figure(fd, group, name) != value) {
    }
}

static int setup_tables(void **state)
{
    (void)state;
    alarm(60);
    log_setup("test_reload", LOG_LEVEL_ERROR);
    harness_init(&harness, 2);
    harness.create = space_engine_create;
    make_space(&harness.settings.spaces[0], "f");
    make_space(&harness.settings.spaces[1], "c");
    harness.settings.spaces[0].row.table_bytes = TABLE_BYTES;
    harness.settings.spaces[0].row.tables = 3;
    harness.settings.spaces[0].oldest = SPACE_OLDEST_REFUSE;
    harness.settings.spaces[0].row.late_room = 0.1;
    harness_start(&harness);
    return 0;
}

static int teardown_tables(void **state)
{
    alarm(0);
    return teardown(state);
}

/* A table of the new slots is opened at once; ids of the older one have them, too. */
static void test_slots_open_a_table(void **state)
{
    struct settings next = harness.settings;
    int fd = harness_connect(&harness);

    (void)state;
    each(fd, 1, 2000, "incr f:%u.a 7\r\n", "7\r\n");
    assert_true(figure(fd, "spaces", "f:tables") == 1);
    next.spaces[0].slots[2] = slot("new", 12);
    next.spaces[0].slot_count = 3;
    assert_true(reload(&next));
    await_figure(fd, "spaces", "f:tables", 2);
    each(fd, 2001, 3000, "incr f:%u 7,,9\r\n", "7,,9\r\n");
    each(fd, 1, 3000, "incr f:%u.b 3\r\n", "3\r\n");
    each(fd, 1, 30, "incr f:%u.new 1\r\n", "1\r\n"); /* in the pool for large numbers */
    harness_ask(fd, "get f:1 f:2000 f:2001 f:3000\r\n",
                "VALUE f:1 0 5\r\n7,3,1\r\nVALUE f:2000 0 4\r\n7,3,\r\n"
                "VALUE f:2001 0 5\r\n7,3,9\r\nVALUE f:3000 0 5\r\n7,3,9\r\nEND\r\n");
    assert_true(figure(fd, "tables", "f:1:base") > 2000);
    struct settings fewer = harness.settings;

    /* in the pool of one table, in the records of the other */
    expect_refusal(&fewer, "slots: new is missing, 1030 records have it");
    let_go(&fewer.spaces[0], "new");
    reload_last(&fewer);
    harness_ask(fd, "get f:1 f:3000\r\n",
                "VALUE f:1 0 3\r\n7,3\r\nVALUE f:3000 0 3\r\n7,3\r\nEND\r\n");
    close(fd);
}

/* Sizes hold from the next table on: what stands keeps its own. */
static void test_table_size(void **state)
{
    struct settings next = harness.settings;
    int fd = harness_connect(&harness);

    (void)state;
    each(fd, 1, 2000, "incr f:%u.a 7\r\n", "7\r\n");
    next.spaces[0].row.table_bytes = 4 * TABLE_BYTES;
    next.spaces[0].row.late_room = 0.25;
    assert_true(reload(&next));
    assert_true(figure(fd, "tables", "f:0:bytes") == TABLE_BYTES);
    each(fd, 2001, 15000, "incr f:%u.a 7\r\n", "7\r\n");
    assert_true(figure(fd, "spaces", "f:tables") == 2);
    assert_true(figure(fd, "tables", "f:0:bytes") == TABLE_BYTES);
    assert_true(figure(fd, "tables", "f:1:bytes") == 4 * TABLE_BYTES);
    assert_true(figure(fd, "spaces", "f:late_room") == 0.25);
    each(fd, 1, 15000, "incr f:%u.a 1\r\n", "8\r\n");
    assert_true(reload(&harness.settings));
    close(fd);
}

/* Full and refusing; more tables, then recycling, make room; fewer tables let the oldest go. */
static void test_tables_and_oldest(void **state)
{
    struct settings next = harness.settings;
    int fd = harness_connect(&harness);

    (void)state;
    each(fd, 1, 50000, "incr f:%u.a 7 noreply\r\n", "");
    harness_ask(fd, "incr f:50001.a 1\r\n", "SERVER_ERROR no table free\r\n");
    next.spaces[0].row.tables = 5;
    assert_true(reload(&next));
    harness_ask(fd, "incr f:50001.a 1\r\nincr f:1.a 1\r\n", "1\r\n8\r\n");
    await_figure(fd, "spaces", "f:tables", 4);
    each(fd, 50002, 90000, "incr f:%u.a 7 noreply\r\n", "");
    harness_ask(fd, "incr f:90001.a 1\r\n", "SERVER_ERROR no table free\r\n");
    struct settings rolling = next;

    rolling.spaces[0].oldest = SPACE_OLDEST_RECYCLE;
    assert_true(reload(&rolling));
    each(fd, 90001, 99999, "incr f:%u.a 1\r\n", "1\r\n");
    harness_ask(fd, "get f:1.a\r\nincr f:1.a 1\r\n",
                "END\r\nCLIENT_ERROR id below the oldest table\r\n");
    struct settings fewer = rolling;

    fewer.spaces[0].row.tables = 2;
    expect_refusal(&fewer, "space f: tables: 2 of ");
    let_go(&fewer.spaces[0], ENGINE_LOSS_TABLES);
    assert_true(reload(&fewer));
    each(fd, 100000, 130000, "incr f:%u.a 1\r\n", "1\r\n");
    await_figure(fd, "spaces", "f:tables", 1);
    assert_true(reload(&harness.settings));
    close(fd);
}

struct load {
    int fd;
    unsigned id;
    _Atomic bool *stop;
    uint64_t count;
};

/* One id's counter rises by one each time, whatever else changes. */
static void *count(void *context)
{
    struct load *load = context;
    char ask[128];
    char answer[128];

    while (!*load->stop) {
        load->count++;
        snprintf(ask, sizeof(ask), "incr f:%u.a 1\r\nget f:%u.a\r\n", load->id, load->id);
        int length = snprintf(answer, sizeof(answer), "%llu", (unsigned long long)load->count);

        snprintf(answer, sizeof(answer), "%llu\r\nVALUE f:%u.a 0 %d\r\n%llu\r\nEND\r\n",
                 (unsigned long long)load->count, load->id, length,
                 (unsigned long long)load->count);
        harness_ask(load->fd, ask, answer);
    }
    return NULL;
}

static void test_under_load(void **state)
{
    enum { CLIENTS = 4, RELOADS = 60 };
    _Atomic bool stop = false;
    pthread_t threads[CLIENTS];
    struct load loads[CLIENTS];
    struct settings base = harness.settings;

    (void)state;
    base.spaces[1].role = SPACE_CACHE; /* a store would not be let go */
    struct settings other = base;
    make_space(&other.spaces[1], "d");
    other.spaces[1].role = SPACE_CACHE;
    other.spaces[0].slots[0] = slot("b", 40);
    other.spaces[0].slots[1] = slot("extra", 16);
    other.spaces[0].slots[2] = slot("a", 30);
    other.spaces[0].slot_count = 3;
    for (unsigned i = 0; i < CLIENTS; i++) {
        loads[i] = (struct load){harness_connect(&harness), i + 1, &stop, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, count, &loads[i]), 0);
    }
    assert_true(reload(&base));
    for (int i = 0; i < RELOADS; i++) {
        assert_true(reload(i % 2 == 0 ? &other : &base));
    }
    stop = true;
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        close(loads[i].fd);
    }
    assert_true(reload(&harness.settings));
}

int main(void)
{
#define TEST(name)        cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_TABLES(name) cmocka_unit_test_setup_teardown(name, setup_tables, teardown_tables)
    const struct CMUnitTest tests[] = {
        TEST(test_slots_are_matched_by_name),
        TEST(test_slots_are_let_go),
        TEST(test_a_node_just_promoted_lets_go_of_nothing),
        TEST(test_undone_slots_are_there),
        TEST(test_tables_are_let_go),
        TEST(test_spaces_come_and_go),
        TEST(test_key_and_role_change_at_once),
        TEST(test_phantom),
        TEST(test_all_or_nothing),
        TEST(test_under_load),
        TEST_TABLES(test_slots_open_a_table),
        TEST_TABLES(test_table_size),
        TEST_TABLES(test_tables_and_oldest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
