/*
 * The workload mix against a small server of the test's own: a right one is found right, whatever
 * the batches; each way of being wrong is found. The product's kit judges the form only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/num.h"
#include "tests/load/kit.h"
#include "tests/unit/tools/bench_line.h"
#include "tools/rollcall/bench_random.h"
#include "tools/rollcall/bench_workload.h"

#define IDS        20000u
#define SLOTS      4u
#define LANES      3u
#define BATCH_MAX  8u
#define REQUESTS   30000u
#define FAULT_FROM 10000u /* requests answered rightly at first */
#define TEXT_MAX   8192u
#define WORDS_MAX  64u
#define OPTIONS    "--workload mix --connections 3 --window 800 --first 5 "

enum fault {
    RIGHT,
    LOSES_INCR,   /* answers it, and forgets it */
    LOSES_FIELD,  /* of several slots changed at once, the last */
    LOSES_RECORD, /* as if its table had been recycled */
    KEEPS_RECORD, /* that was deleted */
    DENIES,       /* a member that was added */
    KEEPS_MEMBER, /* that was deleted */
    INVENTS,      /* members that were never added */
    REFUSES,      /* new ids */
    TOO_OLD,      /* ids in the window */
    SPOILS,       /* records: their last byte */
    FAULTS
};

struct record {
    unsigned set, members;
    unsigned long long values[SLOTS];
};

struct server {
    enum fault fault;
    bool armed;
    struct record records[IDS];
};

static const char *const slot_names[SLOTS] = {"repost", "comment", "like", "read"};

static bool fails(const struct server *server, enum fault fault)
{
    return server->armed && server->fault == fault;
}

/* A key's record, and its slot or member: -1 if it names none. */
static struct record *find(struct server *server, const char *key, int *slot, int *member)
{
    unsigned long long id = strtoull(strchr(key, ':') + 1, NULL, 10);
    const char *dot = strchr(key, '.'), *colon = strrchr(key, ':');

    *slot = *member = -1;
    for (int i = 0; dot != NULL && i < (int)SLOTS; i++) {
        if (strcmp(dot + 1, slot_names[i]) == 0) {
            *slot = i;
        }
    }
    if (strncmp(key, "liked:", 6) == 0) {
        *member = atoi(colon + 2);
    }
    assert_in_range(id, 5, IDS - 1);
    return &server->records[id];
}

static void print_record(const struct record *record, char *out)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        if (i > 0) {
            *out++ = ',';
        }
        if (record->set >> i & 1) {
            out += num_print(out, record->values[i]);
        }
    }
    *out = '\0';
}

static void answer_get(struct server *server, char *keys, char *out)
{
    for (char *key = strtok(keys, " "); key != NULL; key = strtok(NULL, " ")) {
        int slot, member;
        struct record *record = find(server, key, &slot, &member);
        char value[128] = "1";
        bool there = member >= 0 ? record->members >> member & 1
                                 : record->set != 0 && !fails(server, LOSES_RECORD);
        if (member >= 0 && fails(server, DENIES)) {
            there = false;
        }
        if (member >= 0 && fails(server, INVENTS)) {
            there = true;
        }
        if (slot >= 0) {
            there = there && (record->set >> slot & 1);
            value[num_print(value, record->values[slot])] = '\0';
        } else if (member < 0) {
            print_record(record, value);
            if (fails(server, SPOILS)) {
                strcpy(value + strlen(value) - 1, "x");
            }
        }
        if (there) {
            out += sprintf(out, "VALUE %s 0 %zu\r\n%s\r\n", key, strlen(value), value);
        }
    }
    strcpy(out, "END\r\n");
}

static void add_to(struct record *record, int slot, unsigned long long delta)
{
    record->values[slot] = (record->set >> slot & 1 ? record->values[slot] : 0) + delta;
    record->set |= 1u << slot;
}

static void answer_incr(struct server *server, const char *key, const char *deltas, char *out)
{
    int slot, member;
    struct record *record = find(server, key, &slot, &member), before = *record;

    if (fails(server, TOO_OLD)) {
        strcat(out, "CLIENT_ERROR id below the oldest table\r\n");
        return;
    }
    if (slot >= 0) {
        add_to(record, slot, strtoull(deltas, NULL, 10));
        sprintf(out + strlen(out), "%llu\r\n", record->values[slot]);
    } else {
        int last = -1;
        for (int i = 0; i < (int)SLOTS; i++, deltas = strchr(deltas, ',') + 1) {
            if (*deltas >= '0' && *deltas <= '9') {
                add_to(record, last = i, strtoull(deltas, NULL, 10));
            }
            if (strchr(deltas, ',') == NULL) {
                break;
            }
        }
        print_record(record, out + strlen(out));
        strcat(out, "\r\n");
        if (fails(server, LOSES_FIELD) && last >= 0) {
            record->values[last]--;
        }
    }
    if (fails(server, LOSES_INCR)) {
        *record = before;
    }
}

static void answer_set(struct server *server, const char *key, const char *data, char *out)
{
    int slot, member;
    struct record *record = find(server, key, &slot, &member);

    if (fails(server, REFUSES)) {
        strcat(out, "SERVER_ERROR no table free\r\n");
        return;
    }
    assert_int_equal(sscanf(data, "%llu,%llu,%llu,%llu", &record->values[0], &record->values[1],
                            &record->values[2], &record->values[3]),
                     SLOTS);
    record->set = (1u << SLOTS) - 1;
    strcat(out, "STORED\r\n");
}

static void answer_add(struct server *server, const char *key, char *out)
{
    int slot, member;
    struct record *record = find(server, key, &slot, &member);
    unsigned bit = 1u << member;

    strcat(out, record->members & bit ? "NOT_STORED\r\n" : "STORED\r\n");
    record->members |= bit;
}

static void answer_delete(struct server *server, const char *key, char *out)
{
    int slot, member;
    struct record *record = find(server, key, &slot, &member);
    unsigned bit = member >= 0 ? 1u << member : 0;
    bool there = member >= 0 ? (record->members & bit) != 0 : record->set != 0;

    strcat(out, there ? "DELETED\r\n" : "NOT_FOUND\r\n");
    if (member >= 0 && !fails(server, KEEPS_MEMBER)) {
        record->members &= ~bit;
    }
    if (member < 0 && !fails(server, KEEPS_RECORD)) {
        record->set = 0;
    }
}

/* One request in, its reply appended. */
static void answer(struct server *server, char *request, char *out)
{
    char *data = strstr(request, "\r\n") + 2;
    data[-2] = '\0';
    char *keys = strchr(request, ' ') + 1;

    if (strncmp(request, "get ", 4) == 0) {
        answer_get(server, keys, out);
        return;
    }
    char *key = strtok(keys, " "), *rest = strtok(NULL, "\r");
    if (strncmp(request, "incr ", 5) == 0) {
        answer_incr(server, key, rest, out);
    } else if (strncmp(request, "set ", 4) == 0) {
        answer_set(server, key, data, out);
    } else if (strncmp(request, "add ", 4) == 0) {
        answer_add(server, key, out);
    } else if (strncmp(request, "delete ", 7) == 0) {
        answer_delete(server, key, out);
    } else {
        fail_msg("what is %s", request);
    }
}

/* One connection: a batch that was answered and not judged yet. */
struct lane {
    uint64_t words[BATCH_MAX][WORDS_MAX];
    size_t batch;
    char replies[TEXT_MAX * BATCH_MAX];
};

static void send_batch(struct server *server, struct bench_workload *workload, uint64_t lane,
                       struct lane *to)
{
    static char request[TEXT_MAX];

    to->replies[0] = '\0';
    assert_true(bench_workload_bytes_max(workload) < sizeof(request));
    assert_true(bench_workload_words(workload) <= WORDS_MAX);
    for (size_t i = 0; i < to->batch; i++) {
        size_t length = bench_workload_compose(workload, lane, request, to->words[i]);
        request[length] = '\0';
        answer(server, request, to->replies + strlen(to->replies));
    }
}

static void judge_batch(struct bench_workload *workload, struct lane *from,
                        struct bench_tally *tally)
{
    const char *at = from->replies, *end = at + strlen(at);

    for (size_t i = 0; i < from->batch; i++) {
        struct bench_reply reply = {0};
        while (!reply.done) {
            size_t taken = bench_workload_judge(workload, from->words[i], at, (size_t)(end - at),
                                                &reply, tally);
            assert_true(taken > 0 && !reply.broken);
            at += taken;
        }
    }
    assert_true(at == end);
}

/* Batches of random lengths, whose replies are judged in another order than they were sent. */
static void run_with(const struct bench_kit *kit, const char *line, enum fault fault,
                     struct bench_tally *tally)
{
    static struct lane lanes[LANES];
    struct server *server = calloc(1, sizeof(*server));
    struct load_options options;
    uint64_t random = bench_random_state(5);

    assert_non_null(server);
    assert_true(bench_line_parse_with(kit, line, &options.common));
    struct bench_workload *workload = bench_workload_create(&options.common, false);
    memset(tally, 0, sizeof(*tally));
    memset(lanes, 0, sizeof(lanes));
    server->fault = fault;
    while (tally->requests < REQUESTS) {
        uint64_t lane = bench_scale(bench_random_next(&random), LANES);
        judge_batch(workload, &lanes[lane], tally);
        server->armed = tally->requests >= FAULT_FROM;
        lanes[lane].batch = 1 + bench_scale(bench_random_next(&random), BATCH_MAX);
        send_batch(server, workload, lane, &lanes[lane]);
    }
    bench_workload_destroy(workload);
    free(server);
}

static void run(const char *line, enum fault fault, struct bench_tally *tally)
{
    run_with(&load_kit, line, fault, tally);
}

static void test_right_server(void **state)
{
    (void)state;
    struct bench_tally tally;
    uint64_t operations = 0;

    run(OPTIONS, RIGHT, &tally);
    assert_string_equal(tally.first_mismatch, "");
    assert_int_equal(tally.mismatches, 0);
    assert_int_equal(tally.errors + tally.expected, 0);
    assert_int_equal(tally.wrong, 0);
    assert_true(tally.checked > REQUESTS / 4 && tally.foreign > 0);
    for (size_t i = 0; i < BENCH_KINDS; i++) {
        assert_true(tally.kinds[i].requests > 0);
        assert_int_equal(tally.kinds[i].hits + tally.kinds[i].misses, tally.kinds[i].operations);
        operations += tally.kinds[i].operations;
    }
    assert_int_equal(tally.operations, operations);
    assert_int_equal(tally.kinds[BENCH_KIND_PAGE].operations,
                     20 * tally.kinds[BENCH_KIND_PAGE].requests);
    run(OPTIONS "--late 60 --mix create=20,delete=10,unlike=10 --old 50", RIGHT, &tally);
    assert_int_equal(tally.mismatches, 0);
    run(OPTIONS "--verify form", RIGHT, &tally);
    assert_int_equal(tally.mismatches + tally.checked, 0);
    run(OPTIONS "--verify off", RIGHT, &tally);
    assert_int_equal(tally.mismatches + tally.checked, 0);
}

static void test_wrong_servers(void **state)
{
    (void)state;
    struct bench_options options;
    struct bench_tally tally;

    for (enum fault fault = LOSES_INCR; fault <= KEEPS_MEMBER; fault++) {
        run(OPTIONS, fault, &tally);
        if (tally.mismatches == 0) {
            fail_msg("fault %d is not found", fault);
        }
        assert_true(tally.first_mismatch[0] != '\0');
    }
    run(OPTIONS, INVENTS, &tally);
    assert_true(bench_line_parse(OPTIONS, &options));
    assert_false(bench_workload_wrong_few(&options, &tally));
}

/* Without a watch a right server is right, too, and what is no number is found. */
static void test_form(void **state)
{
    (void)state;
    struct bench_tally tally;

    run_with(&bench_kit_product, OPTIONS, RIGHT, &tally);
    assert_int_equal(tally.mismatches + tally.errors + tally.checked, 0);
    for (size_t i = 0; i < BENCH_KINDS; i++) {
        assert_true(tally.kinds[i].requests > 0);
        assert_int_equal(tally.kinds[i].hits + tally.kinds[i].misses, tally.kinds[i].operations);
    }
    run_with(&bench_kit_product, OPTIONS, LOSES_INCR, &tally);
    assert_int_equal(tally.mismatches, 0);
    run_with(&bench_kit_product, OPTIONS, SPOILS, &tally);
    assert_true(tally.mismatches > 0);
}

static void test_errors(void **state)
{
    (void)state;
    struct bench_tally tally;

    run(OPTIONS, REFUSES, &tally);
    assert_int_equal(tally.mismatches, 0); /* what was refused is not missed */
    assert_true(tally.errors > 0);
    assert_int_equal(tally.errors, tally.kinds[BENCH_KIND_CREATE].errors);
    assert_string_equal(tally.error_lines[0].text, "SERVER_ERROR no table free");
    assert_int_equal(tally.error_lines[0].count, tally.errors);
    run(OPTIONS "--allow SERVER_ERROR", REFUSES, &tally);
    assert_int_equal(tally.errors, 0);
    assert_true(tally.expected > 0);
}

/* Only an id older than the window may be below the oldest table. */
static void test_too_old(void **state)
{
    (void)state;
    struct bench_tally tally;

    run(OPTIONS "--old 0", TOO_OLD, &tally);
    assert_true(tally.errors > 0);
    run(OPTIONS "--old 100 --verify form --mix create=40", TOO_OLD, &tally);
    assert_true(tally.expected > tally.errors && tally.errors > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_server), cmocka_unit_test(test_wrong_servers),
        cmocka_unit_test(test_form),         cmocka_unit_test(test_errors),
        cmocka_unit_test(test_too_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
