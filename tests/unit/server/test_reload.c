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

#include "base/log.h"
#include "harness.h"
#include "server/reload.h"

static struct harness harness;

static struct slot_settings slot(const char *name, unsigned bits)
{
    struct slot_settings slot = {.bits = bits};

    snprintf(slot.name, sizeof(slot.name), "%s", name);
    return slot;
}

static void make_space(struct space_settings *space, const char *name)
{
    *space = (struct space_settings){.kind = SPACE_COUNTER, .table_bytes = 1u << 20, .tables = 1};
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
    next.spaces[0].slot_count = 2; /* a is removed */
    struct settings fewer = next;

    assert_true(reload(&fewer));
    harness_ask(fd, "get f:1 f:1.a\r\n", "VALUE f:1 5 9\r\n5000008,3\r\nEND\r\n");
    assert_true(reload(&harness.settings)); /* what is there is the caller's */
    harness_ask(fd, "get f:1\r\n", "VALUE f:1 0 9\r\n7,5000008\r\nEND\r\n");
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

/* The last of several changes cannot be: nothing has changed. */
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

static void test_all_or_nothing(void **state)
{
    struct settings next = harness.settings;
    int fd = harness_connect(&harness);

    (void)state;
    log_setup("test_reload", LOG_LEVEL_ERROR);
    harness_ask(fd, "set f:1 0 0 3\r\n7,8\r\n", "STORED\r\n");
    next.spaces[0].slots[0] = slot("new", 20);
    next.spaces[1].slots[0] = slot("a", 99); /* no such width */
    make_space(&next.spaces[2], "d");
    next.space_count = 3;
    assert_false(reload(&next));
    harness_ask(fd, "get f:1 d:1\r\nincr d:1.a 1\r\n",
                "VALUE f:1 0 3\r\n7,8\r\nEND\r\nCLIENT_ERROR no space for key\r\n");
    strcpy(next.spaces[1].key, "f:{id}"); /* two owners of one key */
    next.spaces[1].slots[0] = slot("a", 20);
    assert_false(reload(&next));
    harness_ask(fd, "get f:1\r\n", "VALUE f:1 0 3\r\n7,8\r\nEND\r\n");
    next = harness.settings;
    next.spaces[1].kind = SPACE_PHANTOM;
    assert_false(reload(&next));
    harness_ask(fd, "incr c:1.a 1\r\n", "1\r\n");
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_slots_are_matched_by_name),
        TEST(test_spaces_come_and_go),
        TEST(test_key_and_role_change_at_once),
        TEST(test_phantom),
        TEST(test_all_or_nothing),
        TEST(test_under_load),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
