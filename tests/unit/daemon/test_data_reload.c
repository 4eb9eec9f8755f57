/* Reload of a server with data, with real engines on a simulated disk: what it changes is kept. */
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

#include <errno.h>

#include "base/log.h"
#include "daemon/reload.h"
#include "data/data.h"
#include "data/journal_sink.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/request/harness.h"

static struct vfs_sim *sim;
static struct harness harness;
static struct data *data;

static void make_space(struct space_settings *space, const char *name, enum space_kind kind)
{
    *space = (struct space_settings){
        .kind = kind, .row.table_bytes = 64u << 10, .row.tables = 2, .false_positives = 0.001};
    snprintf(space->name, sizeof(space->name), "%s", name);
    snprintf(space->key, sizeof(space->key), kind == SPACE_PHANTOM ? "%s:{id}:{member}" : "%s:{id}",
             name);
    if (kind == SPACE_COUNTER) {
        space->slot_count = 2;
        strcpy(space->slots[0].name, "a");
        strcpy(space->slots[1].name, "b");
        space->slots[0].bits = space->slots[1].bits = 20;
    }
}

/* Power goes, not the process's own memory: it is wound up after it. */
static void kill_server(struct harness *gone)
{
    vfs_sim_kill(sim);
    data_stop(data);
    gone->server->data = NULL;
    data_close(data, gone->server->spaces, false);
    data_destroy(data); /* nothing is dumped: the engines hold none of its files */
}

/* A process that has these settings beyond the usual. */
static void configure(void)
{
    static char directory[] = "/data";

    harness_init(&harness, 2);
    harness.create = space_engine_create;
    harness.listen_later = true;
    harness.keeper_later = true;
    harness.net_gone = kill_server;
    harness.settings.data = directory;
    harness.settings.journal.segment_bytes = JOURNAL_SEGMENT_BYTES_MIN;
    harness.settings.journal.buffer_bytes = JOURNAL_BUFFER_BYTES_MIN;
    make_space(&harness.settings.spaces[0], "f", SPACE_COUNTER);
    make_space(&harness.settings.spaces[1], "c", SPACE_COUNTER);
    harness.settings.spaces[1].role = SPACE_CACHE;
}

static bool recover(char error[DATA_ERROR_MAX])
{
    static const _Atomic bool never = false;

    data = data_open_with(vfs_sim_vfs(sim), &harness.settings, error);
    assert_non_null(data);
    harness_start(&harness);
    return data_recover(data, harness.spaces, &never, error);
}

static void start(void)
{
    char error[DATA_ERROR_MAX];

    if (!recover(error)) {
        fail_msg("%s", error);
    }
    assert_true(keeper_start(harness.server->keeper, harness.spaces));
    assert_true(data_start(data, harness.server->barrier, &harness.server->spaces));
    harness.server->data = data;
    server_keep(harness.server, data_journal(data), &data_log(data)->log);
    harness_listen(&harness);
}

static int setup(void **state)
{
    (void)state;
    log_setup("test_data_reload", LOG_LEVEL_ERROR);
    sim = vfs_sim_create(1);
    configure();
    start();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    harness_fini(&harness);
    vfs_sim_destroy(sim);
    return 0;
}

static void configure_with(const struct settings *with)
{
    struct settings next = *with;

    harness_fini(&harness);
    configure();
    next.version_shown = harness.settings.version_shown;
    harness.settings = next;
}

/* Killed and started again with these settings. */
static void restart(const struct settings *with)
{
    configure_with(with);
    start();
}

/* The start is refused, and says so; another may follow. */
static void restart_refused(const struct settings *with, const char *says)
{
    char error[DATA_ERROR_MAX];

    configure_with(with);
    assert_false(recover(error));
    if (strstr(error, says) == NULL) {
        fail_msg("'%s' does not say '%s'", error, says);
    }
}

static bool reload(const struct settings *next)
{
    return reload_apply(harness.server, next, space_engine_create);
}

/* Of a reload that is to change nothing: it says why. */
static void refused(const struct settings *next, const char *says)
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
    if (strstr(text, says) == NULL) {
        fail_msg("'%s' does not say '%s'", text, says);
    }
}

static void ask(const char *text, const char *answer)
{
    int fd = harness_connect(&harness);

    harness_ask(fd, text, answer);
    close(fd);
}

static void test_an_added_space_is_kept(void **state)
{
    struct settings next = harness.settings;

    (void)state;
    make_space(&next.spaces[2], "p", SPACE_PHANTOM);
    make_space(&next.spaces[3], "n", SPACE_COUNTER);
    next.space_count = 4;
    ask("incr f:1.a 5\r\n", "5\r\n");
    assert_true(reload(&next));
    ask("add p:1:u 0 0 1\r\n1\r\nincr n:9.b 8\r\nincr f:1.a 1\r\n", "STORED\r\n8\r\n6\r\n");
    restart(&next);
    ask("get p:1:u p:1:v n:9.b f:1.a\r\n",
        "VALUE p:1:u 0 1\r\n1\r\nVALUE n:9.b 0 1\r\n8\r\nVALUE f:1.a 0 1\r\n6\r\nEND\r\n");
}

/* The next start would refuse it, and what it counted would be in the way for ever. */
static void test_no_space_is_removed(void **state)
{
    struct settings next = harness.settings;

    (void)state;
    next.space_count = 1; /* without c, a cache */
    assert_false(reload(&next));
    ask("incr c:1.a 5\r\nset c:1.a 0 0 1\r\n4\r\n", "NOT_FOUND\r\nSTORED\r\n");
    restart(&harness.settings);
    ask("get c:1.a\r\n", "VALUE c:1.a 0 1\r\n4\r\nEND\r\n");
}

static void test_changed_slots_are_kept(void **state)
{
    struct settings next = harness.settings;
    struct settings before = harness.settings;

    (void)state;
    before.spaces[0].slots[1].bits = 40;
    ask("set f:1 0 0 3\r\n7,8\r\n", "STORED\r\n");
    strcpy(next.spaces[0].slots[0].name, "b");
    strcpy(next.spaces[0].slots[1].name, "new");
    next.spaces[0].slots[0].bits = 40;
    assert_false(reload(&next)); /* a is missing */
    strcpy(next.spaces[0].forget[next.spaces[0].forget_count++], "a");
    assert_true(reload(&next));
    ask("incr f:1.new 3\r\nincr f:1.b 5000000\r\n", "3\r\n5000008\r\n");
    restart(&next);
    ask("get f:1\r\n", "VALUE f:1 0 9\r\n5000008,3\r\nEND\r\n");
    restart_refused(&before, "slots: new is missing, 1 record has it");
    strcpy(before.spaces[0].forget[before.spaces[0].forget_count++], "new");
    restart(&before); /* others than those the journal knows; a is not what it was */
    ask("get f:1\r\n", "VALUE f:1 0 8\r\n,5000008\r\nEND\r\n");
    ask("incr f:1.a 4\r\n", "4\r\n");
    restart(&before);
    ask("get f:1\r\n", "VALUE f:1 0 9\r\n4,5000008\r\nEND\r\n");
}

static bool journal_has_failed(void)
{
    struct journal_stats stats;

    (void)journal_sync_now(data_journal(data));
    journal_stats(data_journal(data), &stats);
    return stats.failed;
}

static void fail_journal(void)
{
    vfs_sim_fault(
        sim, &(struct vfs_sim_fault){.op = VFS_SIM_FDATASYNC, .path = "journal-", .error = EIO});
    assert_true(journal_has_failed());
    vfs_sim_faults_end(sim);
}

/* Nothing is changed, and the number of the space that was to come is taken back. */
static void test_no_room_in_the_journal(void **state)
{
    struct settings next = harness.settings;

    (void)state;
    make_space(&next.spaces[2], "n", SPACE_COUNTER);
    next.space_count = 3;
    ask("set f:1.a 0 0 1\r\n4\r\n", "STORED\r\n");
    fail_journal();
    assert_false(reload(&next));
    ask("get f:1.a n:1.a\r\nset n:1.a 0 0 1\r\n4\r\n",
        "VALUE f:1.a 0 1\r\n4\r\nEND\r\nCLIENT_ERROR no space for key\r\n");
    restart(&harness.settings); /* without n */
    ask("get f:1.a\r\n", "VALUE f:1.a 0 1\r\n4\r\nEND\r\n");
}

/* A space that is there may not change either: its new slots would be nowhere. Of one that changes
 * and two that come it says how many events there are. */
static void test_no_room_for_a_change(void **state)
{
    struct settings next = harness.settings;

    (void)state;
    ask("set f:1 0 0 3\r\n7,8\r\n", "STORED\r\n");
    next.spaces[0].slots[0].bits = 40;
    fail_journal();
    refused(&next, "the journal has no room for 4 events");
    make_space(&next.spaces[2], "n", SPACE_COUNTER);
    make_space(&next.spaces[3], "o", SPACE_COUNTER);
    next.space_count = 4;
    refused(&next, "the journal has no room for 8 events");
    ask("get f:1\r\n", "VALUE f:1 0 3\r\n7,8\r\nEND\r\n");
    assert_int_equal(harness.server->spaces->at[0]->settings.slots[0].bits, 20);
    restart(&harness.settings);
    ask("get f:1\r\n", "VALUE f:1 0 3\r\n7,8\r\nEND\r\n");
}

/* The room that a reload has asked for in the journal is the workers' again after it. */
static void test_room_is_given_back(void **state)
{
    struct settings next = harness.settings;

    (void)state;
    make_space(&next.spaces[2], "n", SPACE_COUNTER);
    next.space_count = 3;
    next.spaces[0].slots[0].bits = 40;
    keeper_hold(harness.server->keeper); /* which asks for room of its own */
    bool taken = reload(&next);
    uint64_t kept = data_log(data)->writer.credit;
    keeper_release(harness.server->keeper);
    assert_true(taken);
    assert_int_equal(kept, 0);
    restart(&next);
}

/* Of two numbers the second cannot be made durable: the first is taken back, too. */
static void test_no_room_for_the_second_number(void **state)
{
    struct settings next = harness.settings;

    (void)state;
    make_space(&next.spaces[2], "n", SPACE_COUNTER);
    make_space(&next.spaces[3], "o", SPACE_COUNTER);
    next.space_count = 4;
    unsigned fault = vfs_sim_fault(
        sim,
        &(struct vfs_sim_fault){
            .op = VFS_SIM_PWRITE, .path = "MANIFEST", .first = 2, .times = 1, .error = ENOSPC});
    assert_false(reload(&next));
    assert_int_equal(vfs_sim_fault_hits(sim, fault), 1);
    vfs_sim_faults_end(sim);
    ask("set n:1.a 0 0 1\r\n4\r\n", "CLIENT_ERROR no space for key\r\n");
    restart(&harness.settings); /* which neither n nor o is in the way of */
    ask("set f:1.a 0 0 1\r\n4\r\n", "STORED\r\n");
}

/* A space of kind plain is not stored: it has no number, and may go. */
static void test_a_plain_space_comes_and_goes(void **state)
{
    struct settings next = harness.settings;

    (void)state;
    next.spaces[2] = (struct space_settings){
        .kind = SPACE_PLAIN, .memory_bytes = 4u << 20, .item_bytes_max = 1u << 20};
    strcpy(next.spaces[2].name, "rest");
    next.space_count = 3;
    assert_true(reload(&next));
    ask("set k 0 0 1\r\nv\r\nget k\r\n", "STORED\r\nVALUE k 0 1\r\nv\r\nEND\r\n");
    assert_true(reload(&harness.settings));
    ask("set k 0 0 1\r\nv\r\nset f:1.a 0 0 1\r\n4\r\n",
        "CLIENT_ERROR no space for key\r\nSTORED\r\n");
    restart(&harness.settings);
    ask("get f:1.a\r\n", "VALUE f:1.a 0 1\r\n4\r\nEND\r\n");
}

/* What reads dumped tables, their cache and their overlays are had at the start or not at all. */
static void test_dumps(void **state)
{
    struct settings dumps = harness.settings;
    struct settings both;

    (void)state;
    dumps.spaces[0].oldest = SPACE_OLDEST_DUMP;
    dumps.cold.threads = 1;
    dumps.cold.queue = 16;
    dumps.cold.cache_bytes = 8u << 20;
    dumps.cold.overlay_bytes = 8u << 20;
    refused(&dumps, "oldest: dump, where no space had it, needs a restart");
    restart(&dumps);
    both = dumps;
    both.spaces[1].oldest = SPACE_OLDEST_DUMP;
    struct settings like = both;
    like.memory_bytes = 64u << 20;
    harness.server->memory_bytes = settings_memory_sum(&like, NULL) - 1;
    refused(&both, "this holds up to ");
    harness.server->memory_bytes++;
    assert_true(reload(&both));
    restart(&dumps);
}

/* Its number cannot be made durable: it does not come. */
static void test_no_room_for_the_manifest(void **state)
{
    struct settings next = harness.settings;

    (void)state;
    make_space(&next.spaces[2], "n", SPACE_COUNTER);
    next.space_count = 3;
    vfs_sim_fault(
        sim, &(struct vfs_sim_fault){.op = VFS_SIM_PWRITE, .path = "MANIFEST", .error = ENOSPC});
    assert_false(reload(&next));
    vfs_sim_faults_end(sim);
    ask("set n:1.a 0 0 1\r\n4\r\n", "CLIENT_ERROR no space for key\r\n");
    assert_true(reload(&next));
    ask("set n:1.a 0 0 1\r\n4\r\n", "STORED\r\n");
    restart(&next);
    ask("get n:1.a\r\n", "VALUE n:1.a 0 1\r\n4\r\nEND\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_added_space_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_space_is_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changed_slots_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_room_in_the_journal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_room_for_a_change, setup, teardown),
        cmocka_unit_test_setup_teardown(test_room_is_given_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_room_for_the_manifest, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_room_for_the_second_number, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_plain_space_comes_and_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dumps, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
