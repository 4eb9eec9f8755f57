/* Reload: the memory it may take and leaves to be shared, what stays counted, what it says, the
 * spaces of kind plain. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/barrier.h"
#include "base/log.h"
#include "daemon/reload.h"
#include "tests/unit/request/harness.h"

#define MIB           (1ull << 20)
#define TABLE_BYTES   (64u << 10)
#define STARTED_BYTES (1ull << 30) /* the daemon's limit, of the harness */
#define ROLLING_IDS   60000u
#define LINE_BYTES    64
#define WINDOW        500 /* requests sent together */
#define SAID_BYTES    4096

static struct harness harness;

static int setup(void **state)
{
    (void)state;
    log_setup("test_reload_figures", LOG_LEVEL_ERROR);
    harness_init(&harness, 2);
    harness.create = space_engine_create;
    harness_start(&harness);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    harness_fini(&harness);
    return 0;
}

static struct space_settings *add_space(struct settings *settings, const char *name,
                                        enum space_role role)
{
    struct space_settings *space = &settings->spaces[settings->space_count++];

    *space = settings->spaces[0];
    snprintf(space->name, sizeof(space->name), "%s", name);
    snprintf(space->key, sizeof(space->key), "%s:{id}", name);
    space->role = role;
    return space;
}

static struct space_settings *add_rolling(struct settings *settings)
{
    struct space_settings *space = add_space(settings, "r", SPACE_CACHE);

    space->row.table_bytes = TABLE_BYTES;
    space->row.tables = 2;
    space->oldest = SPACE_OLDEST_RECYCLE;
    return space;
}

static void add_plain(struct settings *settings)
{
    struct space_settings *space = &settings->spaces[settings->space_count++];

    *space = (struct space_settings){
        .kind = SPACE_PLAIN, .memory_bytes = 4 * MIB, .item_bytes_max = MIB};
    strcpy(space->name, "rest");
}

static bool reload(const struct settings *next)
{
    return reload_apply(harness.server, next, space_engine_create);
}

/* What goes to stderr from log_catch() to log_caught(). */
struct caught {
    FILE *file;
    int saved;
    char text[SAID_BYTES];
};

static void log_catch(struct caught *caught)
{
    caught->file = tmpfile();
    caught->saved = dup(STDERR_FILENO);
    assert_true(caught->file != NULL && caught->saved >= 0);
    assert_true(dup2(fileno(caught->file), STDERR_FILENO) >= 0);
}

static const char *log_caught(struct caught *caught)
{
    fflush(stderr);
    dup2(caught->saved, STDERR_FILENO);
    close(caught->saved);
    rewind(caught->file);
    caught->text[fread(caught->text, 1, sizeof(caught->text) - 1, caught->file)] = '\0';
    fclose(caught->file);
    return caught->text;
}

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' does not say '%s'", text, part);
    }
}

static void lacks(const char *text, const char *part)
{
    if (strstr(text, part) != NULL) {
        fail_msg("'%s' says '%s'", text, part);
    }
}

static void refused(const struct settings *next, const char *says)
{
    struct caught said;

    log_catch(&said);
    bool taken = reload(next);
    const char *text = log_caught(&said);

    assert_false(taken);
    has(text, says);
    has(text, "nothing was changed");
}

/* New ids of a space, each answered with 1. */
static void count_up(const char *space, unsigned first, unsigned last)
{
    static char ask[WINDOW * LINE_BYTES], answers[WINDOW * LINE_BYTES];
    int fd = harness_connect(&harness);

    for (unsigned id = first; id <= last;) {
        size_t asked = 0, answered = 0;

        for (int i = 0; i < WINDOW && id <= last; i++, id++) {
            asked +=
                (size_t)snprintf(ask + asked, LINE_BYTES, "set %s:%u.a 0 0 1\r\n1\r\n", space, id);
            answered += (size_t)snprintf(answers + answered, LINE_BYTES, "STORED\r\n");
        }
        harness_send(fd, ask, asked);
        harness_expect_bytes(fd, answers, answered);
    }
    close(fd);
}

/* ---- what stays counted ---- */

/* Ids that a space has recycled are evictions after it is gone, and those of one that stays are not
 * counted twice. */
static void test_recycled_ids_stay_counted(void **state)
{
    struct settings both = harness.settings;

    (void)state;
    struct space_settings *stays = add_rolling(&both);
    strcpy(stays->name, "s");
    strcpy(stays->key, "s:{id}");
    struct settings one = both;
    add_rolling(&both);
    assert_true(reload(&both));
    count_up("s", 1, ROLLING_IDS);
    count_up("r", 1, ROLLING_IDS / 2);
    unsigned long long evictions = harness_stat(&harness, "evictions");
    assert_true(evictions > ROLLING_IDS / 2);
    assert_true(reload(&one));
    assert_int_equal(harness_stat(&harness, "evictions"), evictions);
    assert_true(metric_read(&harness.server->recycled_gone) > 0);
    assert_true(reload(&harness.settings));
    assert_int_equal(harness_stat(&harness, "evictions"), evictions);
}

/* ---- memory ---- */

static uint64_t growth_left(void)
{
    return atomic_load(&harness.server->growth.most);
}

/* Spaces of any ids may grow into what the settings of now leave, not those of the start. */
static void test_what_is_left_is_shared(void **state)
{
    struct settings more = harness.settings;
    uint64_t left = growth_left();

    (void)state;
    assert_true(left > 0 && left < STARTED_BYTES);
    struct space_settings *added = add_space(&more, "d", SPACE_CACHE);
    assert_true(reload(&more));
    assert_int_equal(growth_left(), left - settings_space_bytes(added));
    assert_true(reload(&harness.settings));
    assert_int_equal(growth_left(), left);
}

/* Where the switch fails, the old settings leave what they left. */
static void test_a_refusal_shares_as_before(void **state)
{
    struct settings next = harness.settings;
    uint64_t left = growth_left();

    (void)state;
    add_space(&next, "d", SPACE_STORE);
    next.spaces[0].slots[0].bits = 99; /* no such width: found with the world stopped */
    refused(&next, "reload: ");
    assert_int_equal(growth_left(), left);
}

/* A space of any ids that a reload brings grows beyond what it begins with. */
static void test_an_added_space_grows(void **state)
{
    static struct settings next; /* of the server until it ends: a store is not let go */

    (void)state;
    next = harness.settings;
    struct space_settings *added = add_space(&next, "any", SPACE_STORE);
    added->ids = SPACE_IDS_ANY;
    added->max_id = UINT32_MAX;
    added->row.table_bytes = TABLE_BYTES;
    added->row.tables = 1;
    assert_true(reload(&next));
    count_up("any", 1, ROLLING_IDS);
}

/* The limit to the byte: that of the start, of its memory and its workers, whatever the file says
 * of them now. */
static void test_what_fits_in_memory(void **state)
{
    struct settings next = harness.settings;

    (void)state;
    add_space(&next, "d", SPACE_CACHE)->row.table_bytes = 4 * MIB;
    struct settings like = next;
    like.memory_bytes = 64 * MIB;
    uint64_t sum = settings_memory_sum(&like, NULL);
    assert_true(sum < like.memory_bytes);
    next.threads = 60;
    harness.server->memory_bytes = sum - 1;
    refused(&next, "reload: this holds up to ");
    harness.server->memory_bytes = sum;
    assert_true(reload(&next));
    harness.server->memory_bytes = STARTED_BYTES;
    assert_true(reload(&harness.settings));
}

/* Tables that are there count until they are gone, though the file has fewer. */
static void test_what_is_held_counts(void **state)
{
    struct settings next = harness.settings;
    struct settings fewer;

    (void)state;
    struct space_settings *space = add_rolling(&next);
    space->row.tables = 40;
    space->row.late_room = 0;
    space->oldest = SPACE_OLDEST_REFUSE;
    assert_true(reload(&next));
    count_up("r", 1, 8 * ROLLING_IDS);
    fewer = next;
    fewer.spaces[2].row.tables = 2;
    fewer.memory_bytes = 64 * MIB;
    harness.server->memory_bytes = settings_memory_sum(&fewer, NULL);
    refused(&fewer, "reload: this holds up to ");
    harness.server->memory_bytes = STARTED_BYTES;
    assert_true(reload(&fewer));
    assert_true(reload(&harness.settings));
}

/* Tables on disk need what a daemon with data has from the start. */
static void test_dumps_without_data(void **state)
{
    static char directory[] = "/data";
    struct settings next = harness.settings;

    (void)state;
    next.data = directory;
    next.spaces[0].oldest = SPACE_OLDEST_DUMP;
    refused(&next, "reload: oldest: dump, where no space had it, needs a restart");
    next.spaces[0].oldest = SPACE_OLDEST_REFUSE;
    assert_true(reload(&next));
    assert_true(reload(&harness.settings));
}

/* ---- kind plain ---- */

/* What it has is a cache's, so it may go; a key that nobody owns is answered so again. */
static void test_a_plain_space_comes_and_goes(void **state)
{
    struct settings next = harness.settings;
    int fd = harness_connect(&harness);

    (void)state;
    add_plain(&next);
    assert_true(reload(&next));
    harness_ask(fd, "set k 0 0 1\r\nv\r\nget k\r\n", "STORED\r\nVALUE k 0 1\r\nv\r\nEND\r\n");
    assert_true(reload(&harness.settings));
    harness_ask(fd, "set k 0 0 1\r\nv\r\n", "CLIENT_ERROR no space for key\r\n");
    close(fd);
}

/* ---- what else changes ---- */

static void test_connections(void **state)
{
    struct settings next = harness.settings;
    int first = harness_connect(&harness);

    (void)state;
    harness_ask(first, "get f:1.a\r\n", "END\r\n");
    next.max_connections = 1;
    assert_true(reload(&next));
    int second = harness_connect(&harness);
    harness_expect(second, "ERROR Too many open connections\r\n");
    close(second);
    assert_true(reload(&harness.settings));
    second = harness_connect(&harness);
    harness_ask(second, "get f:1.a\r\n", "END\r\n");
    close(second);
    close(first);
}

/* What came, what went, what is another now: at the level of the settings that were taken last. */
static void test_what_is_said(void **state)
{
    struct settings same = harness.settings;
    struct caught said;

    (void)state;
    same.log_level = LOG_LEVEL_INFO;
    log_catch(&said);
    assert_true(reload(&same));
    lacks(log_caught(&said), "reload: ");
    struct settings more = same;
    add_space(&more, "d", SPACE_CACHE);
    more.spaces[0].value_flags = 5;
    log_catch(&said);
    assert_true(reload(&more));
    const char *text = log_caught(&said);
    has(text, "reload: added d: ");
    has(text, "reload: an option changed space=f option=");
    lacks(text, "removed");
    struct settings fewer = more;
    fewer.space_count--;
    fewer.log_level = LOG_LEVEL_ERROR; /* from the next on */
    log_catch(&said);
    assert_true(reload(&fewer));
    text = log_caught(&said);
    has(text, "reload: removed a space, and what it counted is gone space=d");
    lacks(text, "added");
    lacks(text, "changed");
    log_catch(&said);
    assert_true(reload(&harness.settings));
    lacks(log_caught(&said), "reload: ");
}

/* What a start compares with its data directory is to be put back, where there is one. */
static void test_what_needs_a_restart(void **state)
{
    static char directory[] = "/data";
    struct settings started = harness.settings;
    struct settings next = harness.settings;
    struct caught said;

    (void)state;
    log_setup("test_reload_figures", LOG_LEVEL_INFO);
    next.max_connections++;
    next.threads++;
    started.spaces[0].ids = next.spaces[0].ids = SPACE_IDS_ANY;
    next.spaces[0].max_id = 77;
    log_catch(&said);
    reload_log_changes(&started, &started, &next);
    const char *text = log_caught(&said);
    has(text, "reload: an option changed option=max-connections ");
    has(text, "reload: an option needs a restart option=threads ");
    has(text, "reload: an option needs a restart option=spaces.f.max-id ");
    started.data = next.data = directory;
    log_catch(&said);
    reload_log_changes(&started, &started, &next);
    text = log_caught(&said);
    has(text, "reload: an option needs a restart option=threads ");
    has(text, "put it back option=spaces.f.max-id ");
    log_setup("test_reload_figures", LOG_LEVEL_ERROR);
}

/* ---- stops of others ---- */

static struct {
    const struct engine_functions *engine;
    atomic_bool stopped, met, end;
    atomic_uint asked;
    sem_t wanted;
} stops;

enum { STOP_LOOKS = 1000 };

/* One whenever figures are asked for. */
static void *stop_and_go(void *barrier)
{
    while (sem_wait(&stops.wanted) == 0 && !stops.end) {
        barrier_stop(barrier);
        stops.stopped = true;
        for (int i = 0; i < STOP_LOOKS && !stops.met; i++) {
            sched_yield();
        }
        stops.stopped = false;
        barrier_go(barrier);
    }
    return NULL;
}

static void figures_between_stops(const struct engine *engine, struct engine_figures *figures)
{
    stops.asked++;
    sem_post(&stops.wanted);
    for (int i = 0; i < STOP_LOOKS && !stops.met; i++) {
        stops.met = stops.stopped;
        sched_yield();
    }
    stops.engine->figures(engine, figures);
}

/* What is counted may be freed in a stop. */
static void test_memory_is_counted_between_stops(void **state)
{
    struct barrier *barrier = harness.server->barrier;
    struct engine *engine = harness.server->spaces->at[0]->engine;
    struct engine_functions functions = *engine->functions;
    struct settings next = harness.settings;
    pthread_t thread;

    (void)state;
    stops.engine = engine->functions;
    functions.figures = figures_between_stops;
    barrier_stop(barrier);
    engine->functions = &functions;
    barrier_go(barrier);
    assert_int_equal(sem_init(&stops.wanted, 0, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, stop_and_go, barrier), 0);
    bool there = reload_apply(harness.server, &next, space_engine_create);
    bool back = reload_apply(harness.server, &harness.settings, space_engine_create);

    stops.end = true;
    sem_post(&stops.wanted);
    pthread_join(thread, NULL);
    sem_destroy(&stops.wanted);
    barrier_stop(barrier);
    engine->functions = stops.engine;
    barrier_go(barrier);
    assert_true(there && back);
    assert_int_equal(stops.asked, 2);
    assert_false(stops.met);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_recycled_ids_stay_counted),
        TEST(test_what_is_left_is_shared),
        TEST(test_a_refusal_shares_as_before),
        TEST(test_an_added_space_grows),
        TEST(test_what_fits_in_memory),
        TEST(test_what_is_held_counts),
        TEST(test_memory_is_counted_between_stops),
        TEST(test_dumps_without_data),
        TEST(test_a_plain_space_comes_and_goes),
        TEST(test_connections),
        TEST(test_what_is_said),
        TEST(test_what_needs_a_restart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
