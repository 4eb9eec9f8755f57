/*
 * test_counter_parts.c: a space of any ids grows in parts: every id keeps what it holds, memory an
 * id stays within bounds at every size, and without memory new ids are refused until there is some.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "counter/counter_private.h"
#include "row/row.h"
#include "row/row_data.h"
#include "row/row_policy.h"
#include "tests/support/counters.h"
#include "tests/support/random.h"
#include "tests/support/recorder.h"

#define REC       ENGINE_SLOT_RECORD
#define MAX_ID    ((1ull << 40) - 1)
#define KIB       1024u
#define MIB       (1024u * KIB)
#define SMALL     (64u * KIB)  /* parts of the tests that want many */
#define LARGE     (1ull << 50) /* a value that lies beside */
#define LARGE_ONE 50u
#define BLUR      (8u * KIB) /* of what pools are estimated at */

struct space {
    struct counter_config config;
    struct engine_growth growth;
    struct engine *engine;
};

/* No two indices have one id: the factor is odd. */
static uint64_t id_of(uint64_t index)
{
    return (index * 0x9e3779b97f4a7c15u) & MAX_ID;
}

static void space_open(struct space *s, const char *slots, uint64_t part_bytes, uint64_t most)
{
    memset(s, 0, sizeof(*s));
    counters_config(&s->config, slots);
    s->config.row.any_ids = true;
    s->config.max_id = MAX_ID;
    s->config.row.part_bytes = part_bytes;
    atomic_store(&s->growth.most, most);
    s->engine = counters_create(&s->config);
    s->engine->growth = &s->growth;
}

static void space_close(struct space *s)
{
    s->engine->functions->destroy(s->engine);
    assert_true(atomic_load(&s->growth.used) == 0);
}

static const struct row *row_of(const struct space *s)
{
    return &counter_of_const(s->engine)->row;
}

/* What an id holds follows from its index. */
static const char *text_of(uint64_t index, char text[ENGINE_VALUE_MAX + 1])
{
    uint64_t second = index % LARGE_ONE == 0 ? LARGE + index : index % 1000;
    snprintf(text, ENGINE_VALUE_MAX + 1, "%" PRIu64 ",%" PRIu64, index % 100000, second);
    return text;
}

static enum engine_status put(struct space *s, uint64_t index)
{
    struct counters_call call;
    char text[ENGINE_VALUE_MAX + 1];
    return counters_do(s->engine, &call, ENGINE_SET, REC, id_of(index), text_of(index, text));
}

static void expect(struct space *s, uint64_t index)
{
    struct counters_call call;
    char text[ENGINE_VALUE_MAX + 1];
    counters_do(s->engine, &call, ENGINE_READ, REC, id_of(index), NULL);
    assert_int_equal(call.op.status, ENGINE_DONE);
    assert_string_equal(call.value, text_of(index, text));
}

/* ---- tests ---- */

static void test_grows(void **unused)
{
    static const char *const shapes[] = {"a:20 b:20", "a:2 b:3", "a:64 b:64"};
    static struct space s;
    (void)unused;
    for (size_t shape = 0; shape < sizeof(shapes) / sizeof(*shapes); shape++) {
        uint64_t ids = test_scaled(shape == 0 ? 400000 : 100000);
        space_open(&s, shapes[shape], SMALL, 1ull << 30);
        for (uint64_t i = 0; i < ids; i++) {
            assert_int_equal(put(&s, i), ENGINE_DONE);
            if (i % (ids / 16) == 0) {
                counter_check(s.engine);
                expect(&s, i / 2);
            }
        }
        counter_check(s.engine);
        for (uint64_t i = 0; i < ids; i++) {
            expect(&s, i);
        }
        assert_true(row_of(&s)->count > 4 || test_scaled(100) < 100); /* few do not need so many */
        space_close(&s);
    }
}

static void test_deleted_ids_stay_deleted(void **unused)
{
    static struct space s;
    struct counters_call call;
    uint64_t ids = test_scaled(200000);
    (void)unused;
    space_open(&s, "a:20 b:20", SMALL, 1ull << 30);
    for (uint64_t i = 0; i < ids; i++) {
        put(&s, i);
        if (i % 3 == 0) {
            counters_do(s.engine, &call, ENGINE_DELETE, REC, id_of(i / 2), NULL);
        }
    }
    counter_check(s.engine);
    for (uint64_t i = 0; i < ids; i++) {
        bool deleted = i <= (ids - 1) / 2 && (2 * i % 3 == 0 || (2 * i + 1) % 3 == 0);
        deleted = deleted && 2 * i + (2 * i % 3 == 0 ? 0 : 1) < ids;
        counters_do(s.engine, &call, ENGINE_READ, REC, id_of(i), NULL);
        assert_int_equal(call.op.status, deleted ? ENGINE_ABSENT : ENGINE_DONE);
    }
    space_close(&s);
}

/* However little is left of it, the space takes no more than it may. */
static void test_never_more_than_it_may(void **unused)
{
    static struct space s;
    (void)unused;
    for (uint64_t most = MIB; most < MIB + SMALL; most += 12u * KIB) {
        space_open(&s, "a:20 b:20", SMALL, most);
        for (uint64_t i = 0; put(&s, i) == ENGINE_DONE; i++) {
            assert_in_range(atomic_load(&s.growth.used), 0, most + BLUR);
        }
        assert_in_range(atomic_load(&s.growth.used), most - 2ull * SMALL, most + BLUR);
        space_close(&s);
    }
}

static void test_refused_without_memory_and_again_with_some(void **unused)
{
    static struct space s;
    uint64_t stored = 0;
    (void)unused;
    space_open(&s, "a:20 b:20", SMALL, MIB);
    while (put(&s, stored) == ENGINE_DONE) {
        stored++;
    }
    struct counters_call call;
    char text[ENGINE_VALUE_MAX + 1];
    counters_do(s.engine, &call, ENGINE_SET, REC, id_of(stored), text_of(stored, text));
    assert_int_equal(call.op.status, ENGINE_ERROR);
    assert_int_equal(call.op.error, ENGINE_E_OUT_OF_MEMORY);
    assert_true(atomic_load(&s.growth.used) <= MIB + MIB / ROW_PART_POOLS);
    assert_true(stored > MIB / 20);
    counter_check(s.engine);
    for (uint64_t i = 0; i < stored; i++) {
        expect(&s, i);
    }
    assert_int_equal(counters_do(s.engine, &call, ENGINE_INCR, 0, id_of(5), "1"), ENGINE_DONE);
    atomic_store(&s.growth.most, 4 * MIB); /* a reload, say; it is tried again after a while */
    struct row *row = &counter_of(s.engine)->row;
    atomic_store(&row->again_us, 1);
    for (uint64_t i = stored; i < 2 * stored; i++) {
        assert_int_equal(put(&s, i), ENGINE_DONE);
    }
    counter_check(s.engine);
    space_close(&s);
}

/* A log whose room comes late: who waits for the row meanwhile gives up. */
struct late_log {
    struct recorder recorder; /* first */
    struct row *row;
};

static void give_up(struct change_log *log)
{
    row_waited(((struct late_log *)log)->row);
}

/* Who waited too long has others refused for a moment: the part grows all the same. */
static void test_grows_where_a_wait_has_ended(void **unused)
{
    static struct space s;
    static struct late_log late;
    struct counters_call call;
    struct engine_op *op = &call.op;
    uint64_t index = 0;
    (void)unused;
    space_open(&s, "a:20 b:20", SMALL, 1ull << 30);
    recorder_init(&late.recorder);
    late.row = s.engine->row;
    late.recorder.log.await = give_up;
    row_set_log(s.engine->row, &late.recorder.log);
    do {
        counters_call_init(&call, ENGINE_SET, REC, id_of(index++), "1,2");
        s.engine->functions->prepare(s.engine, &op, 1);
        s.engine->functions->change(s.engine, op, change_sink_null());
    } while (op->status == ENGINE_DONE);
    assert_int_equal(op->status, ENGINE_PENDING);
    size_t parts = row_of(&s)->count;
    row_maintain(s.engine->row, NULL);
    assert_int_equal(row_of(&s)->count, parts + 1);
    assert_int_equal(counters_run(s.engine, &call, change_sink_null()), ENGINE_DONE);
    space_close(&s);
    recorder_fini(&late.recorder);
}

/* From a thousand ids to some millions: bytes an id, regions and pools. */
static void test_bytes_an_id(void **unused)
{
    static struct space s;
    uint64_t ids = test_scaled(4000000);
    uint64_t from = 1000000;
    double sum = 0;
    double most = 0;
    unsigned times = 0;
    (void)unused;
    space_open(&s, "a:20 b:20 c:20 d:20", 0, 1ull << 32);
    for (uint64_t i = 0; i < ids; i++) {
        struct counters_call call;
        counters_do(s.engine, &call, ENGINE_INCR, 1, id_of(i), "1");
        assert_int_equal(call.op.status, ENGINE_DONE);
        if (row_asked(row_of(&s))) {
            row_maintain(s.engine->row, NULL);
        }
        if (i >= from && i % 20000 == 0) {
            struct engine_figures figures = {0};
            s.engine->functions->figures(s.engine, &figures);
            double bytes = (double)(figures.memory[ENGINE_MEMORY_TABLES].held_bytes +
                                    figures.memory[ENGINE_MEMORY_EXTEND].held_bytes +
                                    figures.memory[ENGINE_MEMORY_AUX].held_bytes) /
                           (double)(i + 1);
            most = bytes > most ? bytes : most;
            sum += bytes;
            times++;
        }
    }
    if (times > 0) {
        printf("%" PRIu64 " ids in %zu parts: %.1f bytes an id on average, at most %.1f\n", ids,
               row_of(&s)->count, sum / times, most);
        assert_true(sum / times <= 17.5 && most <= 22);
    }
    space_close(&s);
}

/* Bytes of addresses this process has. */
static uint64_t addresses(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long long pages = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%llu", &pages), 1);
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* flush_all where the system has no memory for a first part: what the others give back is enough.
 */
static void test_cleared_without_memory(void **unused)
{
    static struct space s;
    struct rlimit before;
    (void)unused;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* the sanitizer takes memory of its own */
#endif
    space_open(&s, "a:20 b:20", MIB, 1ull << 30);
    for (uint64_t i = 0; row_of(&s)->count < 3; i++) {
        assert_int_equal(put(&s, i), ENGINE_DONE);
    }
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    struct rlimit tight = {addresses() + SMALL / 2, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
    row_flush(s.engine->row);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(row_of(&s)->count, 1);
    assert_int_equal(put(&s, 7), ENGINE_DONE);
    expect(&s, 7);
    counter_check(s.engine);
    space_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_deleted_ids_stay_deleted),
        cmocka_unit_test(test_never_more_than_it_may),
        cmocka_unit_test(test_refused_without_memory_and_again_with_some),
        cmocka_unit_test(test_grows_where_a_wait_has_ended),
        cmocka_unit_test(test_cleared_without_memory),
        cmocka_unit_test(test_bytes_an_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
