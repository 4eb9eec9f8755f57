/*
 * fuzz_connection.c: a whole connection without a socket: bytes through dispatch and real engines.
 * The same bytes in pieces, with other numbers of requests a turn, must give the same answers as
 * all at once; figures of stats are left out, as they count turns and time. A '~' in front: the
 * daemon has users.
 */
#include <endian.h>
#include <sched.h>
#include <stdio.h>

#include "base/log.h"
#include "config/auth.h"
#include "protocol/binary.h"
#include "request/dispatch.h"
#include "request/flush.h"
#include "request/server.h"
#include "row/row.h"
#include "tests/fuzz/frozen_clock.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/net_stand_in.h"
#include "tests/fuzz/settings_text.h"

#define ANSWERS_MAX  (256u << 20)
#define TURNS_MAX    10000 /* that consume nothing and say nothing, one after another */
#define STAT         "STAT "
#define OPCODE_STAT  0x10
#define REQUESTS_MAX 64
#define YIELDS_MAX   20000000 /* some ten seconds */

static const char yaml[] =
    "memory: 256MiB\n"
    "threads: 1\n"
    "flush-all: yes\n"
    "spaces:\n"
    "  feed: {kind: counter, slots: {repost: 20, comment: 20, like: 20, read: 20},"
    " table-size: 64KiB, tables: 3, oldest: recycle}\n"
    "  user: {kind: counter, slots: {a: 4, b: 64}, ids: any, max-id: 1000, role: cache,"
    " table-size: 64KiB}\n"
    "  liked: {kind: phantom, key: \"liked:{id}:{member}\", table-size: 64KiB, tables: 3,"
    " deletes: yes}\n"
    "  other: {kind: plain, memory: 1MiB, item-max: 64KiB}\n";

static const char users[] = "user:secret\n";

static struct settings *load(bool with_users)
{
    struct settings_text text;
    struct settings *settings;
    char error[AUTH_ERROR_MAX];
    char *out;
    char *err;

    settings_text_open(&text);
    CHECK(settings_text_load(&text, yaml, strlen(yaml), NULL, &out, &err, &settings) ==
          SETTINGS_RUN);
    free(out);
    free(err);
    if (with_users) {
        settings->auth = auth_parse_text(users, strlen(users), error);
        CHECK(settings->auth != NULL);
    }
    return settings;
}

/* ---- a server and its one connection ---- */

struct run {
    struct settings settings;
    struct spaces *spaces;
    struct server *server;
    struct net_service service;
    void *state;
    struct net_worker worker;
    struct net_conn conn;
    struct buf answers;
};

static void run_open(struct run *run, const struct settings *settings)
{
    char error[SPACES_ERROR_MAX];

    frozen_clock_reset();
    memset(run, 0, sizeof(*run));
    run->settings = *settings;
    run->spaces = spaces_create(&run->settings, NULL, 1, space_engine_create, error);
    CHECK(run->spaces != NULL);
    run->server = server_create(&run->settings, run->spaces);
    server_service(run->server, &run->service);
    run->state = run->service.worker_open(run->service.context, &run->worker);
    CHECK(run->service.state_bytes <= sizeof(run->conn.state));
    net_stand_in_open(&run->worker, &run->conn);
    buf_init(&run->answers, ANSWERS_MAX, NULL);
}

static void run_close(struct run *run)
{
    run->service.turns_begin(run->state);
    run->service.closed(run->state, &run->conn);
    run->service.turns_end(run->state);
    run->worker.conn = NULL;
    run->service.worker_close(run->state);
    server_destroy(run->server);
    spaces_drop(run->spaces, NULL);
    buf_fini(&run->answers);
}

/* What the keeper's thread does. */
static void maintain(struct run *run)
{
    flush_run(run->server->flush);
    for (size_t i = 0; i < run->spaces->count; i++) {
        struct space *space = run->spaces->at[i];

        while (atomic_exchange(&space->job.asked, false)) {
            row_maintain(space->engine->row, run->server->barrier);
        }
    }
}

/* A list waits for the thread that collects it; all else is woken by now. */
static void await_woken(const struct run *run)
{
    for (unsigned i = 0; !run->conn.woken && i < YIELDS_MAX; i++) {
        sched_yield(); /* the clock is frozen */
    }
    CHECK(run->conn.woken);
}

/* One turn with exactly these bytes. Returns how it goes on. */
static enum net_next turn(struct run *run, const char *bytes, size_t length, size_t *consumed)
{
    char *copy = fuzz_copy(bytes, length);
    struct buf out;
    struct net_turn turn = {.in = copy, .in_length = length, .out = &out};

    buf_init(&out, NET_OUTPUT_MAX, NULL);
    run->conn.woken = false;
    run->service.turns_begin(run->state);
    enum net_next next = run->service.turn(run->state, &run->conn, &turn);

    run->service.turns_end(run->state);
    CHECK(turn.consumed <= length && out.length <= NET_OUTPUT_MAX && !turn.hold);
    CHECK(out.length == 0 || buf_append(&run->answers, out.data, out.length));
    *consumed = turn.consumed;
    buf_fini(&out);
    free(copy);
    maintain(run);
    if (next == NET_SUSPENDED) {
        await_woken(run);
    }
    return next;
}

/* All turns that bytes[*at..have) are good for. False: the connection is closed. */
static bool turns(struct run *run, const char *bytes, size_t have, size_t *at)
{
    enum net_next next = NET_AGAIN;
    unsigned idle = 0;

    while (*at < have && (next == NET_AGAIN || next == NET_SUSPENDED)) {
        size_t before = run->answers.length;
        size_t consumed;

        next = turn(run, bytes + *at, have - *at, &consumed);
        *at += consumed;
        idle = consumed > 0 || run->answers.length > before ? 0 : idle + 1;
        CHECK(idle < TURNS_MAX);
    }
    return next != NET_CLOSE;
}

static void run_bytes(struct run *run, const char *bytes, size_t length, struct test_random *random)
{
    size_t piece_max = random == NULL ? length : (size_t)1 << test_random_below(random, 12);
    size_t at = 0;
    bool open = true;

    for (size_t have = 0; open && have < length;) {
        size_t piece = random == NULL ? length : 1 + test_random_below(random, piece_max);

        have = length - have < piece ? length : have + piece;
        open = turns(run, bytes, have, &at);
    }
}

/* ---- answers without figures ---- */

/* The end of the STAT lines that begin at `from`, or of one other line. */
static size_t line_end(const struct buf *answers, size_t from)
{
    const char *newline = memchr(answers->data + from, '\n', answers->length - from);

    return newline != NULL ? (size_t)(newline - answers->data) + 1 : answers->length;
}

static void drop_text_stats(struct buf *answers)
{
    size_t to = 0;

    for (size_t from = 0; from < answers->length;) {
        size_t end = line_end(answers, from);

        if (end - from < strlen(STAT) || memcmp(answers->data + from, STAT, strlen(STAT)) != 0) {
            memmove(answers->data + to, answers->data + from, end - from);
            to += end - from;
        }
        from = end;
    }
    answers->length = to;
}

/* Every byte belongs to a whole packet. */
static void drop_binary_stats(struct buf *answers)
{
    size_t to = 0;

    for (size_t from = 0; from < answers->length;) {
        const unsigned char *packet = (const unsigned char *)answers->data + from;
        uint32_t body;

        CHECK(answers->length - from >= BINARY_HEADER_BYTES && packet[0] == 0x81);
        memcpy(&body, packet + 8, sizeof(body));
        size_t bytes = BINARY_HEADER_BYTES + (size_t)be32toh(body);

        CHECK(bytes <= answers->length - from);
        bool drop = packet[1] == OPCODE_STAT;

        memmove(answers->data + to, packet, bytes);
        to += drop ? 0 : bytes;
        from += bytes;
    }
    answers->length = to;
}

static void drop_stats(struct run *run, const char *bytes)
{
    if (run->answers.length == 0) {
        return;
    }
    if ((unsigned char)bytes[0] == BINARY_MAGIC) {
        drop_binary_stats(&run->answers);
    } else {
        drop_text_stats(&run->answers);
    }
}

static void compare(const struct run *whole, const struct run *pieces)
{
    CHECK(whole->answers.length == pieces->answers.length);
    CHECK(whole->answers.length == 0 ||
          memcmp(whole->answers.data, pieces->answers.data, whole->answers.length) == 0);
}

static void run_both(const struct settings *settings, const char *bytes, size_t length)
{
    struct test_random random = fuzz_random(bytes, length);
    static struct run whole;
    static struct run pieces;

    run_open(&whole, settings);
    run_bytes(&whole, bytes, length, NULL);
    drop_stats(&whole, bytes);
    run_open(&pieces, settings);
    pieces.settings.requests_per_turn = 1 + (unsigned)test_random_below(&random, REQUESTS_MAX);
    run_bytes(&pieces, bytes, length, &random);
    drop_stats(&pieces, bytes);
    compare(&whole, &pieces);
    log_setup(SERVER_NAME, LOG_LEVEL_ERROR); /* verbosity may have raised it */
    run_close(&whole);
    run_close(&pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct settings *open;
    static struct settings *guarded;

    if (open == NULL) {
        open = load(false);
        guarded = load(true);
        log_setup(SERVER_NAME, LOG_LEVEL_ERROR);
    }
    bool users_wanted = size > 0 && data[0] == '~';

    if (size > users_wanted) {
        run_both(users_wanted ? guarded : open, (const char *)data + users_wanted,
                 size - users_wanted);
    }
    return 0;
}
