/*
 * test_dispatch_journal.c: a whole server whose changes go to a journal on a simulated disk: when
 * answers leave, what a full buffer, a full disk and a failed one do to them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/memory.h"
#include "harness.h"
#include "tests/support/give_way.h"
#include "tests/unit/data/sim_journal.h"

#define MANY      3000         /* increments: more than the journal's buffer takes … */
#define HOG_BYTES (200u << 10) /* … when somebody has so much of it */
#define POLL_US   1000
#define WORKERS   16 /* many, for a small buffer */

static struct harness harness;
static struct sim_journal disk;

static void net_gone(struct harness *gone)
{
    (void)gone;
    sim_journal_close(&disk); /* wakes who waits, and there is nobody any more */
}

static int start(enum journal_sync sync, unsigned threads)
{
    log_setup("test_dispatch_journal", LOG_LEVEL_ERROR);
    sim_journal_open(&disk, sync);
    harness_init(&harness, threads);
    harness.settings.journal.sync = sync;
    harness.settings.flush_all = true;
    harness.journal = disk.journal;
    harness.log = &disk.log.log;
    harness.net_gone = net_gone;
    harness_start(&harness);
    return 0;
}

static int setup_never(void **state)
{
    (void)state;
    return start(JOURNAL_SYNC_NEVER, 1);
}

static int setup_everysec(void **state)
{
    (void)state;
    return start(JOURNAL_SYNC_EVERYSEC, 2);
}

static int setup_workers(void **state)
{
    (void)state;
    return start(JOURNAL_SYNC_NEVER, WORKERS);
}

static int setup_always(void **state)
{
    (void)state;
    return start(JOURNAL_SYNC_ALWAYS, 1);
}

static int teardown(void **state)
{
    (void)state;
    sim_journal_ungate(&disk);
    harness_fini(&harness);
    return 0;
}

static void expect_nothing(int fd)
{
    char byte;

    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
}

static bool all_written(void)
{
    return journal_written(disk.journal) == journal_head(disk.journal);
}

/* ---- when answers leave ---- */

static void test_writes(void **state)
{
    int fd = harness_connect(&harness);
    uint64_t before = journal_head(disk.journal);

    (void)state;
    harness_ask(fd,
                "incr f:1.a 1\r\nset f:2.b 0 0 1\r\n5\r\nget f:1.a\r\ndelete f:2.b\r\n"
                "add f:1.a 0 0 1\r\n7\r\nincr f:1.a x\r\n",
                "1\r\nSTORED\r\nVALUE f:1.a 0 1\r\n1\r\nEND\r\nDELETED\r\nNOT_STORED\r\n"
                "CLIENT_ERROR invalid numeric delta argument\r\n");
    assert_true(journal_head(disk.journal) > before);
    assert_true(all_written());
    assert_int_equal(harness_stat(&harness, "journal_head"), journal_head(disk.journal));
    assert_int_equal(harness_stat(&harness, "journal_records"), 3);
    close(fd);
}

/* What changes nothing waits for nobody. */
static void test_reads(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    sim_journal_gate(&disk, VFS_SIM_PWRITE);
    harness_ask(fd, "get f:1.a\r\ndelete f:1.a\r\ntouch f:1.a 0\r\n",
                "END\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
    close(fd);
}

/* Two connections, one on each worker. */
static void connect_two(int fds[2])
{
    for (int i = 0; i < 2; i++) {
        fds[i] = harness_connect(&harness);
        harness_ask(fds[i], "mn\r\n", "MN\r\n");
    }
}

/* No answer before its change is written; nor one that rests on it, by another worker. */
static void test_held_until_written(void **state)
{
    int fds[2];

    (void)state;
    connect_two(fds);
    sim_journal_gate(&disk, VFS_SIM_PWRITE);
    harness_say(fds[0], "add f:1.a 0 0 1\r\n5\r\n");
    sim_journal_await(&disk);
    harness_ask(fds[1], "get f:1.a\r\n", "VALUE f:1.a 0 1\r\n5\r\nEND\r\n");
    harness_say(fds[1], "add f:1.a 0 0 1\r\n6\r\n");
    expect_nothing(fds[0]);
    expect_nothing(fds[1]);
    sim_journal_ungate(&disk);
    harness_expect(fds[0], "STORED\r\n");
    harness_expect(fds[1], "NOT_STORED\r\n");
    assert_true(all_written());
    close(fds[0]);
    close(fds[1]);
}

/* What was held until after the lease of a leader is not answered: another may lead. */
static void test_held_beyond_the_lease(void **state)
{
    int fds[2];

    (void)state;
    connect_two(fds);
    atomic_store(&harness.server->lease_us, UINT64_MAX);
    harness.server->leased = true;
    sim_journal_gate(&disk, VFS_SIM_PWRITE);
    harness_say(fds[0], "incr f:1.a 1\r\n");
    sim_journal_await(&disk);
    expect_nothing(fds[0]);
    atomic_store(&harness.server->lease_us, 1);
    sim_journal_ungate(&disk);
    harness_expect_closed(fds[0]);
    harness_ask(fds[1], "incr f:1.a 1\r\n", "SERVER_ERROR \r\n"); /* nobody said who leads */
    harness_ask(fds[1], "get f:1.a\r\n", "VALUE f:1.a 0 1\r\n1\r\nEND\r\n");
    atomic_store(&harness.server->lease_us, UINT64_MAX);
    harness_ask(fds[1], "incr f:1.a 1\r\n", "2\r\n");
    close(fds[0]);
    close(fds[1]);
}

/* The answer of an add that finds what nobody has written yet: it waits for that. */
static void test_not_stored_is_kept(void **state)
{
    struct journal_sink other;
    const struct change change = {.type = CHANGE_DELETE, .id = 9};
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "add f:1.a 0 0 1\r\n5\r\n", "STORED\r\n");
    sim_journal_gate(&disk, VFS_SIM_PWRITE);
    journal_sink_init(&other, disk.journal);
    assert_true(other.sink.functions->reserve(&other.sink));
    other.sink.functions->put(&other.sink, &change);
    harness_ask(fd, "get f:1.a\r\n", "VALUE f:1.a 0 1\r\n5\r\nEND\r\n");
    assert_false(all_written());
    harness_say(fd, "add f:1.a 0 0 1\r\n6\r\n");
    sim_journal_await(&disk);
    expect_nothing(fd);
    sim_journal_ungate(&disk);
    harness_expect(fd, "NOT_STORED\r\n");
    assert_true(all_written());
    journal_sink_fini(&other);
    close(fd);
}

/* Asks until it is absent. */
static void await_absent(int fd, const char *get)
{
    char line[128];
    bool absent;
    FILE *in = fdopen(dup(fd), "r");

    assert_non_null(in);
    do {
        harness_say(fd, get);
        assert_non_null(fgets(line, sizeof(line), in));
        absent = strcmp(line, "END\r\n") == 0;
        while (strcmp(line, "END\r\n") != 0) {
            assert_non_null(fgets(line, sizeof(line), in));
        }
    } while (!absent);
    fclose(in);
}

/*
 * A write hangs: nobody reads later for it, on no worker, not the one that waits for it either; nor
 * is the world stopped for longer. Figures are shown.
 */
static void test_write_hangs(void **state)
{
    int writer = harness_connect(&harness);
    int flusher = harness_connect(&harness);
    int fds[2];

    (void)state;
    connect_two(fds);
    harness_ask(fds[0], "incr f:2.a 7\r\n", "7\r\n");
    sim_journal_gate(&disk, VFS_SIM_PWRITE);
    harness_say(writer, "incr f:1.a 1\r\n");
    sim_journal_await(&disk);
    for (int i = 0; i < 200; i++) {
        harness_ask(fds[i % 2], "get f:1.a f:2.a\r\n",
                    "VALUE f:1.a 0 1\r\n1\r\nVALUE f:2.a 0 1\r\n7\r\nEND\r\n");
    }
    assert_true(harness_stat(&harness, "journal_head") > harness_stat(&harness, "journal_written"));
    barrier_stop(harness.server->barrier);
    barrier_go(harness.server->barrier);
    harness_say(flusher, "flush_all\r\n");
    await_absent(fds[0], "get f:1.a\r\n"); /* the keeper does it */
    expect_nothing(writer);
    expect_nothing(flusher);
    sim_journal_ungate(&disk);
    harness_expect(writer, "1\r\n");
    harness_expect(flusher, "OK\r\n");
    close(writer);
    close(flusher);
    close(fds[0]);
    close(fds[1]);
}

/* It hangs for longer: who writes is refused, soon and then at once, until it goes on. */
static void test_hanging_write_refuses(void **state)
{
    int writer = harness_connect(&harness);
    int quiet = harness_connect(&harness);
    int other = harness_connect(&harness);

    (void)state;
    sim_journal_gate(&disk, VFS_SIM_PWRITE);
    harness_say(writer, "incr f:1.a 1\r\n");
    sim_journal_await(&disk);
    while (harness_stat(&harness, "refused_noreply") == 0) {
        harness_say(quiet, "incr f:9.a 1 noreply\r\n");
        usleep(POLL_US); /* not to fill the buffer first */
    }
    /* not for want of room */
    assert_in_range(harness_stat(&harness, "journal_buffer_used_bytes"), 1,
                    SIM_JOURNAL_BUFFER_BYTES / 2);
    for (int i = 0; i < 3; i++) {
        harness_ask(other, "incr f:2.a 1\r\nget f:1.a\r\n",
                    "SERVER_ERROR journal busy\r\nVALUE f:1.a 0 1\r\n1\r\nEND\r\n");
    }
    harness_ask(other, "set f:2.a 0 0 1\r\n1\r\ndelete f:1.a\r\n",
                "SERVER_ERROR journal busy\r\nSERVER_ERROR journal busy\r\n");
    sim_journal_ungate(&disk);
    harness_expect(writer, "1\r\n");
    harness_ask(other, "incr f:2.a 1\r\n", "1\r\n");
    close(writer);
    close(quiet);
    close(other);
}

/* always: until it is durable. Other connections of the worker go on, reads and all. */
static void test_held_until_durable(void **state)
{
    int fd = harness_connect(&harness);
    int other = harness_connect(&harness);

    (void)state;
    sim_journal_gate(&disk, VFS_SIM_FDATASYNC);
    harness_say(fd, "incr f:1.a 1\r\nget f:1.a\r\n");
    sim_journal_await(&disk);
    harness_ask(other, "get f:1.a\r\n", "VALUE f:1.a 0 1\r\n1\r\nEND\r\n");
    harness_say(other, "incr f:1.a 1\r\n");
    expect_nothing(fd);
    sim_journal_ungate(&disk);
    harness_expect(fd, "1\r\nVALUE f:1.a 0 1\r\n1\r\nEND\r\n");
    harness_expect(other, "2\r\n");
    assert_true(journal_durable(disk.journal) == journal_head(disk.journal));
    close(fd);
    close(other);
}

/* always: what others have put and is not durable yet is nothing to answer by, either. */
static void test_not_stored_until_durable(void **state)
{
    int fd = harness_connect(&harness);
    int other = harness_connect(&harness);

    (void)state;
    sim_journal_gate(&disk, VFS_SIM_FDATASYNC);
    harness_say(fd, "add f:1.a 0 0 1\r\n5\r\n");
    sim_journal_await(&disk);
    assert_true(all_written());
    harness_say(other, "add f:1.a 0 0 1\r\n6\r\n");
    for (int i = 0; i < 3; i++) { /* the worker has been through it */
        int third = harness_connect(&harness);

        harness_ask(third, "get f:1.a\r\n", "VALUE f:1.a 0 1\r\n5\r\nEND\r\n");
        close(third);
    }
    expect_nothing(other);
    sim_journal_ungate(&disk);
    harness_expect(fd, "STORED\r\n");
    harness_expect(other, "NOT_STORED\r\n");
    close(fd);
    close(other);
}

static void test_many_always(void **state)
{
    int fd = harness_connect(&harness);
    char answer[16];

    (void)state;
    for (int i = 1; i <= 200; i++) {
        snprintf(answer, sizeof(answer), "%d\r\n", i);
        harness_ask(fd, "incr f:1.a 1\r\n", answer);
        assert_true(journal_durable(disk.journal) == journal_head(disk.journal));
    }
    close(fd);
}

/* The server ends while answers wait: they are never said, and nobody is woken who is gone. */
static void test_end_while_waiting(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    sim_journal_gate(&disk, VFS_SIM_FDATASYNC);
    harness_say(fd, "incr f:1.a 1\r\n");
    sim_journal_await(&disk);
    net_stop(harness.net);
    pthread_join(harness.thread, NULL);
    keeper_end(harness.server->keeper);
    net_destroy(harness.net);
    harness_expect_closed(fd);
    close(fd);
    net_gone(&harness);
    struct spaces *spaces = harness.server->spaces;

    server_destroy(harness.server);
    spaces_drop(spaces, NULL);
    free(harness.settings.version_shown);
}

static int no_teardown(void **state)
{
    (void)state;
    return 0;
}

/* ---- faults ---- */

/* What is not written is not said; then reads go on. */
static void test_failed_write(void **state)
{
    int fd = harness_connect(&harness);
    int again = harness_connect(&harness);

    (void)state;
    harness_ask(again, "incr f:1.a 1\r\n", "1\r\n");
    sim_journal_break(&disk);
    harness_say(fd, "incr f:1.a 1\r\n");
    harness_expect_closed(fd);
    for (int i = 0; i < 3; i++) {
        harness_ask(again, "incr f:1.a 1\r\ntouch f:9.a 0\r\nincr f:1.a 1 noreply\r\n",
                    "SERVER_ERROR journal failed\r\nNOT_FOUND\r\n");
    }
    harness_ask(again, "flush_all\r\nget f:1.a\r\n",
                "SERVER_ERROR journal busy\r\nVALUE f:1.a 0 1\r\n2\r\nEND\r\n");
    assert_int_equal(harness_stat(&harness, "journal_failed"), 1);
    assert_int_equal(harness_stat(&harness, "refused_noreply"), 3);
    close(fd);
    close(again);
}

/* always: whose answers wait when the journal fails is closed; so is who comes later. */
static void test_failed_sync(void **state)
{
    int fds[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        fds[i] = harness_connect(&harness);
    }
    sim_journal_gate(&disk, VFS_SIM_FDATASYNC);
    harness_say(fds[0], "incr f:1.a 1\r\n");
    sim_journal_await(&disk);
    harness_say(fds[1], "incr f:1.a 1\r\nquit\r\n");
    harness_ask(fds[2], "mn\r\n", "MN\r\n");
    sim_journal_break(&disk);
    sim_journal_ungate(&disk);
    harness_expect_closed(fds[0]);
    harness_expect_closed(fds[1]);
    harness_ask(fds[2], "incr f:1.a 1\r\nget f:1.a\r\n",
                "SERVER_ERROR journal failed\r\nVALUE f:1.a 0 1\r\n2\r\nEND\r\n");
    for (int i = 0; i < 3; i++) {
        close(fds[i]);
    }
}

/* So many increments of f:1.a at once, each answered. */
static void say_many(int fd, int count)
{
    static const char line[] = "incr f:1.a 1\r\n";
    size_t length = strlen(line);
    char *lines = memory_zalloc(length * (size_t)count + 1);

    for (int i = 0; i < count; i++) {
        memcpy(lines + length * (size_t)i, line, length);
    }
    harness_send(fd, lines, length * (size_t)count);
    free(lines);
}

/* A client that is answered in lines. */
struct client {
    int fd;
    FILE *in;
    char line[128];
    unsigned long long number; /* the last one it was told: each is one higher */
};

static void client_open(struct client *client)
{
    *client = (struct client){.fd = harness_connect(&harness)};
    client->in = fdopen(dup(client->fd), "r");
    assert_non_null(client->in);
}

static void client_close(struct client *client)
{
    fclose(client->in);
    close(client->fd);
}

/* The next answer to an increment. False: it is this refusal. */
static bool client_number(struct client *client, const char *refusal)
{
    assert_non_null(fgets(client->line, sizeof(client->line), client->in));
    if (strcmp(client->line, refusal) == 0) {
        return false;
    }
    assert_true(strtoull(client->line, NULL, 10) == ++client->number);
    return true;
}

static void client_expect_value(const struct client *client)
{
    char text[24];
    char answer[128];

    snprintf(text, sizeof(text), "%llu", client->number);
    snprintf(answer, sizeof(answer), "VALUE f:1.a 0 %zu\r\n%s\r\nEND\r\n", strlen(text), text);
    harness_ask(client->fd, "get f:1.a\r\n", answer);
}

/* Somebody who has most of the buffer. */
static void hog_begin(struct journal_writer *hog)
{
    journal_writer_init(hog, disk.journal);
    assert_true(journal_reserve(hog, HOG_BYTES));
}

static const char busy[] = "SERVER_ERROR journal busy\r\n";

/* Nothing becomes durable, so the buffer fills: who writes waits, who reads does not. */
static void test_full_buffer_waits(void **state)
{
    struct journal_writer hog;
    struct client client;
    int other = harness_connect(&harness);

    (void)state;
    hog_begin(&hog);
    client_open(&client);
    sim_journal_gate(&disk, VFS_SIM_FDATASYNC);
    say_many(client.fd, MANY);
    while (harness_stat(&harness, "suspensions") == 0) {
    }
    harness_ask(other, "get f:2.a\r\n", "END\r\n");
    sim_journal_ungate(&disk);
    for (int i = 0; i < MANY; i++) { /* not one is refused, unless this machine lost a second */
        (void)client_number(&client, busy);
    }
    assert_true(client.number > 0);
    client_expect_value(&client);
    assert_int_equal(harness_stat(&harness, "journal_records"), client.number);
    journal_writer_fini(&hog);
    client_close(&client);
    close(other);
}

/* If it lasts it is refused; nothing before or after it is lost. */
static void test_full_buffer_refuses(void **state)
{
    struct journal_writer hog;
    struct client client;

    (void)state;
    hog_begin(&hog);
    client_open(&client);
    sim_journal_gate(&disk, VFS_SIM_FDATASYNC);
    say_many(client.fd, MANY);
    int left = MANY - 1;

    for (; client_number(&client, busy); left--) {
    }
    assert_true(left > 0 && client.number > 0);
    sim_journal_ungate(&disk);
    for (; left > 0; left--) {
        (void)client_number(&client, busy);
    }
    client_expect_value(&client);
    journal_writer_fini(&hog);
    client_close(&client);
}

/* Without syncs the buffer is free as soon as it is written. */
static void test_never_goes_on(void **state)
{
    struct journal_writer hog;
    struct client client;

    (void)state;
    hog_begin(&hog);
    client_open(&client);
    sim_journal_gate(&disk, VFS_SIM_FDATASYNC);
    say_many(client.fd, MANY);
    for (int i = 0; i < MANY; i++) {
        assert_true(client_number(&client, "none"));
    }
    client_expect_value(&client);
    journal_writer_fini(&hog);
    client_close(&client);
}

/* Somebody who has all of the buffer. */
static void hog_all(struct journal_writer *hog)
{
    journal_writer_init(hog, disk.journal);
    for (size_t bytes = SIM_JOURNAL_BUFFER_BYTES; bytes >= 8; bytes -= 8) {
        (void)journal_reserve(hog, hog->credit + bytes);
    }
}

/* Who waits for room is noted once, not once each second for as long as a sync hangs. */
static void test_waiters_are_bounded(void **state)
{
    enum { WAITERS = 20, REFUSALS = 3 };
    struct journal_writer hog;
    struct client clients[WAITERS];
    size_t noted = 0;

    (void)state;
    for (int i = 0; i < WAITERS; i++) {
        client_open(&clients[i]);
    }
    hog_all(&hog);
    for (int n = 0; n < REFUSALS; n++) {
        for (int i = 0; i < WAITERS; i++) {
            harness_say(clients[i].fd, "incr f:1.a 1\r\n");
        }
        for (int i = 0; i < WAITERS; i++) {
            assert_false(client_number(&clients[i], busy));
        }
    }
    for (unsigned i = 0; i < harness.server->threads; i++) {
        struct server_waker *waker = &harness.server->wakers[i];

        pthread_mutex_lock(&waker->lock);
        noted += waker->serials_count;
        pthread_mutex_unlock(&waker->lock);
    }
    assert_in_range(noted, 0, 2 * WAITERS); /* of the last tick; it may have come between */
    journal_writer_fini(&hog);
    for (int i = 0; i < WAITERS; i++) {
        client_close(&clients[i]);
    }
}

/* Who waits for room that somebody else has waits, until it is given back: nothing goes round and
 * round meanwhile. */
static void test_waits_for_others(void **state)
{
    struct journal_writer hog;
    struct client client;
    int other = harness_connect(&harness);

    (void)state;
    client_open(&client);
    hog_all(&hog);
    harness_say(client.fd, "incr f:1.a 1\r\n");
    while (harness_stat(&harness, "suspensions") == 0) {
    }
    for (int i = 0; i < 100; i++) {
        harness_ask(other, "get f:2.a\r\n", "END\r\n");
    }
    assert_in_range(harness_stat(&harness, "suspensions"), 1, 3);
    journal_give_back(&hog, 0);
    (void)client_number(&client, busy); /* refused only if this machine lost a second */
    journal_writer_fini(&hog);
    client_close(&client);
    close(other);
}

/* The most that could be had in one piece. */
static size_t room_left(void)
{
    struct journal_writer writer;
    size_t bytes = SIM_JOURNAL_BUFFER_BYTES;

    journal_writer_init(&writer, disk.journal);
    while (!journal_reserve(&writer, bytes)) {
        bytes -= 8;
    }
    journal_writer_fini(&writer);
    return bytes;
}

/* What a worker took and did not use is not kept while it has nothing to do: so many would have all
 * of a small buffer, and nobody else a chance. */
static void test_idle_workers_hold_nothing(void **state)
{
    int fds[4 * WORKERS];
    size_t room = room_left();

    (void)state;
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        fds[i] = harness_connect(&harness);
        harness_ask(fds[i], "add f:1.a 0 0 1\r\n7\r\n", i == 0 ? "STORED\r\n" : "NOT_STORED\r\n");
    }
    assert_true(journal_sync_now(disk.journal));
    while (room_left() <
           room) { /* the last one may be about to give it back; the test has a limit */
        give_way();
    }
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        close(fds[i]);
    }
}

static const char no_space[] = "SERVER_ERROR out of disk space\r\n";

/* All but what a large record does not fit in. */
static void fill_disk(void)
{
    static const uint64_t payload[JOURNAL_PAYLOAD_MAX / 8];
    struct journal_writer writer;
    struct journal_stats stats;

    journal_writer_init(&writer, disk.journal);
    do {
        if (journal_reserve(&writer, JOURNAL_RECORD_MAX)) {
            journal_put(&writer, JOURNAL_TYPES_RESERVED, 0, 0, payload, sizeof(payload));
            assert_true(journal_commit(&writer));
        } else {
            assert_true(journal_sync_now(disk.journal));
        }
        journal_stats(disk.journal, &stats);
    } while (!stats.full || journal_reserve(&writer, JOURNAL_RECORD_MAX));
    journal_writer_fini(&writer);
}

/* Writers have the room a moment before the journal says that it is not full. */
static void await_not_full(void)
{
    while (harness_stat(&harness, "journal_full") != 0) {
        give_way();
    }
}

/* A full disk: writes are refused at once, reads go on, and so do writes when there is room. */
static void test_full_disk(void **state)
{
    struct client client;

    (void)state;
    client_open(&client);
    vfs_sim_set_clock(disk.sim, 1000000);
    vfs_sim_set_capacity(disk.sim, vfs_sim_used(disk.sim));
    harness_say(client.fd, "incr f:1.a 1\r\n");
    assert_true(client_number(&client, no_space));
    fill_disk();
    do {
        harness_say(client.fd, "incr f:1.a 1\r\n");
    } while (client_number(&client, no_space));
    harness_ask(client.fd, "incr f:2.a 1\r\nget f:2.a\r\n",
                "SERVER_ERROR out of disk space\r\nEND\r\n");
    client_expect_value(&client);
    /* Refused, unless the log of events had its room before the buffer was full. */
    harness_say(client.fd, "flush_all\r\n");
    assert_non_null(fgets(client.line, sizeof(client.line), client.in));
    if (strcmp(client.line, busy) != 0) {
        assert_string_equal(client.line, "OK\r\n");
        client.number = 0;
    }
    assert_int_equal(harness_stat(&harness, "journal_full"), 1);
    vfs_sim_set_capacity(disk.sim, UINT64_MAX);
    do {
        vfs_sim_advance(disk.sim, 2000000);
        harness_say(client.fd, "incr f:1.a 1\r\n");
    } while (!client_number(&client, no_space));
    client_expect_value(&client);
    await_not_full();
    client_close(&client);
}

/* ---- flush_all ---- */

/* The buffer is full, and nobody has had it written: it is waited for. */
static void test_flush_all_awaits_room(void **state)
{
    static const struct change one_slot = {.type = CHANGE_SLOTS, .id = 9, .named = 1, .set = 1};
    struct journal_sink filler;
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "incr f:1.a 1\r\n", "1\r\n");
    journal_sink_init(&filler, disk.journal);
    while (filler.sink.functions->reserve(&filler.sink)) {
        filler.sink.functions->put(&filler.sink, &one_slot);
    }
    journal_sink_fini(&filler);
    harness_ask(fd, "flush_all\r\nget f:1.a\r\n", "OK\r\nEND\r\n");
    close(fd);
}

static void test_flush_all(void **state)
{
    int fd = harness_connect(&harness);

    (void)state;
    harness_ask(fd, "incr f:1.a 1\r\nflush_all\r\nget f:1.a\r\n", "1\r\nOK\r\nEND\r\n");
    assert_true(all_written());
    close(fd);
}

int main(void)
{
#define TEST(name, how) cmocka_unit_test_setup_teardown(name, setup_##how, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_writes, never),
        TEST(test_writes, everysec),
        TEST(test_writes, always),
        TEST(test_reads, always),
        TEST(test_held_until_written, everysec),
        TEST(test_held_beyond_the_lease, everysec),
        TEST(test_write_hangs, never),
        TEST(test_write_hangs, everysec),
        TEST(test_write_hangs, always),
        TEST(test_hanging_write_refuses, never),
        TEST(test_hanging_write_refuses, always),
        TEST(test_not_stored_is_kept, everysec),
        TEST(test_not_stored_is_kept, always),
        TEST(test_held_until_durable, always),
        TEST(test_not_stored_until_durable, always),
        TEST(test_many_always, always),
        cmocka_unit_test_setup_teardown(test_end_while_waiting, setup_always, no_teardown),
        TEST(test_failed_write, never),
        TEST(test_failed_write, everysec),
        TEST(test_failed_sync, always),
        TEST(test_full_buffer_waits, everysec),
        TEST(test_full_buffer_refuses, everysec),
        TEST(test_never_goes_on, never),
        TEST(test_waiters_are_bounded, everysec),
        TEST(test_waits_for_others, never),
        TEST(test_waits_for_others, everysec),
        TEST(test_idle_workers_hold_nothing, workers),
        TEST(test_full_disk, never),
        TEST(test_full_disk, everysec),
        TEST(test_flush_all, everysec),
        TEST(test_flush_all, always),
        TEST(test_flush_all_awaits_room, everysec),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
