/* The phantom engine: every verb, deletes, capacity, the sink. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "phantom/phantom.h"
#include "row/row_data.h"
#include "tests/support/phantoms.h"
#include "tests/support/random.h"
#include "tests/support/table_figures.h"

#define SPACE          3
#define BATCH          100
#define PAIRS          100000u
#define RANDOM_STEPS   200000u
#define RANDOM_MEMBERS 500u

static struct engine *open_space(bool deletes)
{
    struct phantom_config config = phantoms_config(deletes);
    config.space = SPACE;
    return phantoms_create(&config);
}

static enum engine_error refused(struct engine *engine, enum engine_verb verb, uint64_t id,
                                 const char *text, bool expires)
{
    struct phantoms_call call;
    phantoms_call_init(&call, verb, id, "u", text);
    call.op.expires = expires;
    enum engine_status status = phantoms_run(engine, &call, change_sink_null());
    assert_int_equal(status == ENGINE_ERROR, call.op.error != ENGINE_E_NONE);
    return call.op.error;
}

static void test_verbs(void **unused)
{
    (void)unused;
    struct engine *engine = open_space(true);
    assert_int_equal(phantoms_do(engine, ENGINE_READ, 1, "u9"), ENGINE_ABSENT);
    assert_int_equal(phantoms_do(engine, ENGINE_TOUCH, 1, "u9"), ENGINE_ABSENT);
    assert_int_equal(phantoms_do(engine, ENGINE_REPLACE, 1, "u9"), ENGINE_ABSENT);
    assert_int_equal(phantoms_do(engine, ENGINE_CAS, 1, "u9"), ENGINE_ABSENT);
    assert_int_equal(phantoms_do(engine, ENGINE_DELETE, 1, "u9"), ENGINE_ABSENT);
    assert_int_equal(phantoms_do(engine, ENGINE_ADD, 1, "u9"), ENGINE_DONE);
    assert_int_equal(phantoms_do(engine, ENGINE_ADD, 1, "u9"), ENGINE_EXISTS);
    assert_int_equal(phantoms_do(engine, ENGINE_SET, 1, "u9"), ENGINE_DONE);
    assert_int_equal(phantoms_do(engine, ENGINE_REPLACE, 1, "u9"), ENGINE_DONE);
    assert_int_equal(phantoms_do(engine, ENGINE_CAS, 1, "u9"), ENGINE_DONE);
    assert_int_equal(phantoms_do(engine, ENGINE_TOUCH, 1, "u9"), ENGINE_DONE);
    struct phantoms_call call;
    phantoms_call_init(&call, ENGINE_READ, 1, "u9", "");
    call.op.want_cas = true;
    assert_int_equal(phantoms_run(engine, &call, NULL), ENGINE_DONE);
    assert_int_equal(call.op.value_length, 1);
    assert_int_equal(call.value[0], '1');
    assert_int_equal(call.op.cas_now, 1);
    assert_false(phantoms_hold(engine, 2, "u9")); /* of this id alone, and this member */
    assert_false(phantoms_hold(engine, 1, "u"));
    assert_int_equal(phantoms_do(engine, ENGINE_SET, 2, "u9"), ENGINE_DONE);
    assert_true(phantoms_hold(engine, 2, "u9"));
    phantoms_destroy(engine);
}

static void test_delete_and_add_again(void **unused)
{
    (void)unused;
    struct engine *engine = open_space(true);
    for (unsigned i = 0; i < 5; i++) {
        if (i == 3) {
            phantoms_settle(engine, 1); /* from apart to in place */
        }
        assert_int_equal(phantoms_do(engine, ENGINE_ADD, 1, "u9"), ENGINE_DONE);
        assert_int_equal(phantoms_do(engine, ENGINE_ADD, 1, "u9"), ENGINE_EXISTS);
        assert_true(phantoms_hold(engine, 1, "u9"));
        assert_int_equal(phantoms_do(engine, ENGINE_DELETE, 1, "u9"), ENGINE_DONE);
        assert_int_equal(phantoms_do(engine, ENGINE_DELETE, 1, "u9"), ENGINE_ABSENT);
        assert_int_equal(phantoms_do(engine, ENGINE_REPLACE, 1, "u9"), ENGINE_ABSENT);
        assert_false(phantoms_hold(engine, 1, "u9"));
        phantom_check(engine);
    }
    assert_int_equal(phantoms_do(engine, ENGINE_SET, 1, "u9"), ENGINE_DONE);
    assert_true(phantoms_hold(engine, 1, "u9"));
    phantoms_destroy(engine);
}

static void test_refusals(void **unused)
{
    (void)unused;
    static const char *const wrong[] = {"", "0", "2", "11", "1\n", " 1", "1 1", "yes"};
    struct engine *engine = open_space(false);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(refused(engine, ENGINE_SET, 1, wrong[i], false), ENGINE_E_NOT_MEMBER);
        assert_int_equal(refused(engine, ENGINE_ADD, 1, wrong[i], false), ENGINE_E_NOT_MEMBER);
        assert_int_equal(refused(engine, ENGINE_CAS, 1, wrong[i], true), ENGINE_E_NOT_MEMBER);
    }
    assert_false(phantoms_hold(engine, 1, "u"));
    assert_int_equal(refused(engine, ENGINE_SET, 1, "1  ", false), ENGINE_E_NONE);
    assert_true(phantoms_hold(engine, 1, "u"));
    assert_int_equal(refused(engine, ENGINE_DELETE, 1, "", false), ENGINE_E_DELETES_OFF);
    assert_int_equal(refused(engine, ENGINE_DELETE, 2, "", false), ENGINE_E_DELETES_OFF);
    assert_true(phantoms_hold(engine, 1, "u"));
    assert_null(engine->slots); /* a key names a member, never a slot */
    phantoms_destroy(engine);
}

/* Writes whose exptime lies behind: nothing is added, what is there goes. */
static void test_expires(void **unused)
{
    static const enum engine_verb verbs[] = {ENGINE_SET, ENGINE_ADD, ENGINE_REPLACE, ENGINE_CAS,
                                             ENGINE_DELETE};
    static const enum engine_status absent[] = {ENGINE_DONE, ENGINE_DONE, ENGINE_ABSENT,
                                                ENGINE_ABSENT, ENGINE_ABSENT};

    (void)unused;
    for (int deletes = 0; deletes < 2; deletes++) {
        struct engine *engine = open_space(deletes);
        for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
            struct phantoms_call call;
            phantoms_call_init(&call, verbs[i], 1, "u", "1");
            call.op.expires = true;
            assert_int_equal(phantoms_run(engine, &call, change_sink_null()), absent[i]);
            assert_false(phantoms_hold(engine, 1, "u"));
            phantoms_do(engine, ENGINE_SET, 1, "u");
            enum engine_status status = phantoms_run(engine, &call, change_sink_null());
            bool stays = verbs[i] == ENGINE_ADD || !deletes;
            enum engine_status there = verbs[i] == ENGINE_ADD ? ENGINE_EXISTS
                                       : deletes              ? ENGINE_DONE
                                                              : ENGINE_ERROR;
            assert_int_equal(status, there);
            assert_true(phantoms_hold(engine, 1, "u") == stays);
            row_flush(engine->row);
        }
        phantoms_destroy(engine);
    }
}

static void test_sink(void **unused)
{
    (void)unused;
    struct engine *engine = open_space(true);
    struct phantoms_sink sink;
    phantoms_sink_init(&sink);
    struct phantoms_call call;
    phantoms_call_init(&call, ENGINE_ADD, 7, "u9", "1");
    sink.full = true;
    assert_int_equal(phantoms_run(engine, &call, &sink.sink), ENGINE_ERROR);
    assert_int_equal(call.op.error, ENGINE_E_JOURNAL_BUSY);
    assert_false(phantoms_hold(engine, 7, "u9"));
    sink.full = false;
    assert_int_equal(phantoms_run(engine, &call, &sink.sink), ENGINE_DONE);
    assert_int_equal(sink.last.type, CHANGE_MEMBER_ADD);
    assert_int_equal(sink.last.space, SPACE);
    assert_int_equal(sink.last.id, 7);
    uint64_t first = sink.last.member[0], second = sink.last.member[1];
    assert_true(first != second && first == call.op.scratch[0]);
    assert_int_equal(phantoms_run(engine, &call, &sink.sink), ENGINE_EXISTS);
    call.op.verb = ENGINE_SET;
    assert_int_equal(phantoms_run(engine, &call, &sink.sink), ENGINE_DONE);
    call.op.verb = ENGINE_REPLACE;
    assert_int_equal(phantoms_run(engine, &call, &sink.sink), ENGINE_DONE);
    assert_int_equal(sink.put, 1); /* what changes nothing logs nothing */
    call.op.verb = ENGINE_DELETE;
    sink.full = true;
    assert_int_equal(phantoms_run(engine, &call, &sink.sink), ENGINE_ERROR);
    assert_true(phantoms_hold(engine, 7, "u9"));
    sink.full = false;
    assert_int_equal(phantoms_run(engine, &call, &sink.sink), ENGINE_DONE);
    assert_int_equal(sink.last.type, CHANGE_MEMBER_DELETE);
    assert_true(sink.last.member[0] == first && sink.last.member[1] == second);
    assert_int_equal(sink.put, 2);
    assert_int_equal(sink.reserved, sink.put + sink.cancelled);
    phantoms_destroy(engine);
}

/* Adds members until one is refused; returns how many were new. */
static uint64_t fill(struct engine *engine, enum engine_error *error)
{
    char member[32];
    uint64_t added = 0;
    for (uint64_t i = 0;; i++) {
        struct phantoms_call call;
        snprintf(member, sizeof(member), "u%llu", (unsigned long long)i);
        phantoms_call_init(&call, ENGINE_ADD, i % 100, member, "1");
        enum engine_status status = phantoms_run(engine, &call, change_sink_null());
        if (status == ENGINE_ERROR) {
            *error = call.op.error;
            return added;
        }
        added += status == ENGINE_DONE;
    }
}

static void test_capacity(void **unused)
{
    (void)unused;
    struct phantom_config config = phantoms_config(true);
    struct phantom_size size;
    enum engine_error error;
    phantom_config_size(&config, &size);
    printf("%llu members in %u KiB: %.3f bytes a pair at 0.1 %%\n",
           (unsigned long long)size.members, ROW_REGION_BYTES_MIN >> 10, size.bits_per_member / 8);
    assert_true(size.bits_per_member / 8 <= 2.0);
    struct engine *engine = phantoms_create(&config);
    assert_int_equal(fill(engine, &error), size.members);
    assert_int_equal(error, ENGINE_E_NO_TABLE_FREE);
    phantom_check(engine);
    assert_true(phantoms_hold(engine, 0, "u0") && phantoms_hold(engine, 99, "u99"));
    assert_int_equal(phantoms_do(engine, ENGINE_SET, 0, "u0"), ENGINE_DONE);
    /* What is deleted may come back: it has its bits already. */
    assert_int_equal(phantoms_do(engine, ENGINE_DELETE, 0, "u0"), ENGINE_DONE);
    assert_int_equal(phantoms_do(engine, ENGINE_ADD, 0, "u0"), ENGINE_DONE);
    row_flush(engine->row);
    assert_false(phantoms_hold(engine, 0, "u0"));
    assert_int_equal(phantoms_do(engine, ENGINE_ADD, 0, "u0"), ENGINE_DONE);
    phantoms_destroy(engine);
    config.row.any_ids = true;
    config.max_id = 1000;
    engine = phantoms_create(&config);
    assert_int_equal(refused(engine, ENGINE_SET, 1001, "1", false), ENGINE_E_ID_TOO_LARGE);
    assert_int_equal(phantoms_do(engine, ENGINE_READ, 1001, "u"), ENGINE_ABSENT);
    assert_int_equal(refused(engine, ENGINE_SET, 1000, "1", false), ENGINE_E_NONE);
    (void)fill(engine, &error);
    assert_int_equal(error, ENGINE_E_OUT_OF_MEMORY);
    phantoms_destroy(engine);
}

/* The same member, too long for a short hash, of half of all ids: the others have it not. */
static void test_long_member(void **unused)
{
    (void)unused;
    static const char member[] = "one whose name is longer than that of any other who reads posts";
    struct phantom_config config = phantoms_config(true);
    struct engine *engine = phantoms_create(&config);
    unsigned wrong = 0;
    assert_true(sizeof(member) - 1 > HASH_SHORT_MAX);
    for (uint64_t id = 0; id < 1000; id += 2) {
        assert_int_equal(phantoms_do(engine, ENGINE_SET, id, member), ENGINE_DONE);
    }
    for (uint64_t id = 0; id < 1000; id += 2) {
        assert_true(phantoms_hold(engine, id, member));
        wrong += phantoms_hold(engine, id + 1, member);
    }
    assert_true(wrong <= 5); /* of 500, in a filter that is nearly empty */
    phantoms_destroy(engine);
}

/* Deletes until no exception finds room: nothing changes, and re-adding makes room. */
static void test_exceptions_full(void **unused)
{
    (void)unused;
    struct phantom_config config = phantoms_config(true);
    config.exceptions_bytes = PHANTOM_EXCEPTIONS_BYTES_MIN;
    struct engine *engine = phantoms_create(&config);
    phantoms_settle(engine, 1); /* what is apart needs no exception to go */
    char member[32];
    enum engine_status status = ENGINE_DONE;
    struct phantoms_call call;
    uint64_t deleted = 0;
    for (; status == ENGINE_DONE && deleted < PAIRS; deleted++) {
        snprintf(member, sizeof(member), "u%llu", (unsigned long long)deleted);
        phantoms_do(engine, ENGINE_SET, 1, member);
        phantoms_call_init(&call, ENGINE_DELETE, 1, member, "");
        status = phantoms_run(engine, &call, change_sink_null());
    }
    deleted--;
    assert_int_equal(status, ENGINE_ERROR);
    assert_int_equal(call.op.error, ENGINE_E_OUT_OF_MEMORY);
    assert_true(deleted > 50 && phantoms_hold(engine, 1, member));
    phantom_check(engine);
    for (uint64_t i = 0; i < deleted; i++) {
        char other[32];
        snprintf(other, sizeof(other), "u%llu", (unsigned long long)i);
        assert_false(phantoms_hold(engine, 1, other));
        assert_int_equal(phantoms_do(engine, ENGINE_ADD, 1, other), ENGINE_DONE);
    }
    assert_int_equal(phantoms_do(engine, ENGINE_DELETE, 1, member), ENGINE_DONE);
    phantoms_destroy(engine);
}

/* Random operations against an array: wrong only as a filter may be, and never while it is small.
 */
static void test_random(void **unused)
{
    (void)unused;
    static bool model[RANDOM_MEMBERS];
    struct test_random random = {test_seed()};
    struct phantom_config config = phantoms_config(true);
    config.row.table_bytes = 1 << 20; /* so empty that nothing is answered wrongly */
    struct engine *engine = phantoms_create(&config);
    memset(model, 0, sizeof(model));
    for (uint64_t i = 0, n = test_scaled(RANDOM_STEPS); i < n; i++) {
        uint64_t which = test_random_below(&random, RANDOM_MEMBERS);
        char member[32];
        snprintf(member, sizeof(member), "%llu", (unsigned long long)which / 3);
        uint64_t id = which % 3 + 1; /* three ids of the same members */
        switch (test_random_below(&random, 4)) {
        case 0:
            assert_int_equal(phantoms_do(engine, ENGINE_ADD, id, member),
                             model[which] ? ENGINE_EXISTS : ENGINE_DONE);
            model[which] = true;
            break;
        case 1:
            assert_int_equal(phantoms_do(engine, ENGINE_DELETE, id, member),
                             model[which] ? ENGINE_DONE : ENGINE_ABSENT);
            model[which] = false;
            break;
        case 2:
            assert_int_equal(phantoms_do(engine, ENGINE_SET, id, member), ENGINE_DONE);
            model[which] = true;
            break;
        default:
            assert_true(phantoms_hold(engine, id, member) == model[which]);
        }
        if (i % 10000 == 0) {
            phantom_check(engine);
        }
    }
    phantoms_destroy(engine);
}

static void test_batches(void **unused)
{
    (void)unused;
    static struct phantoms_call calls[BATCH];
    static char members[BATCH][16];
    struct engine_op *ops[BATCH];
    struct engine *engine = open_space(false);
    for (uint64_t i = 0; i < BATCH; i++) {
        snprintf(members[i], sizeof(members[i]), "u%u", (unsigned)(i / 2));
        if (i % 4 == 0) {
            phantoms_do(engine, ENGINE_ADD, 5, members[i]);
        }
        phantoms_call_init(&calls[i], i % 3 ? ENGINE_READ : ENGINE_TOUCH, 5, members[i], "");
        ops[i] = &calls[i].op;
    }
    engine->functions->prepare(engine, ops, BATCH);
    engine->functions->read(engine, ops, BATCH);
    for (uint64_t i = 0; i < BATCH; i++) {
        assert_int_equal(ops[i]->status, i / 2 % 2 == 0 ? ENGINE_DONE : ENGINE_ABSENT);
    }
    phantoms_destroy(engine);
}

static void test_reconfigure(void **unused)
{
    (void)unused;
    char error[PHANTOM_ERROR_MAX];
    struct phantom_config config = phantoms_config(false);
    struct engine *engine = phantoms_create(&config);
    phantoms_settle(engine, 1);
    phantoms_do(engine, ENGINE_SET, 1, "u");
    config.deletes = true;
    config.role_cache = true;
    config.value_flags = 5;
    assert_true(phantom_reconfigure(engine, &config, error));
    assert_true(engine->role_cache && engine->flags == 5);
    assert_int_equal(phantoms_do(engine, ENGINE_DELETE, 1, "u"), ENGINE_DONE);
    config.deletes = false;
    assert_true(phantom_reconfigure(engine, &config, error));
    assert_false(phantoms_hold(engine, 1, "u")); /* stays deleted */
    assert_int_equal(refused(engine, ENGINE_DELETE, 1, "", false), ENGINE_E_DELETES_OFF);
    assert_int_equal(phantoms_do(engine, ENGINE_ADD, 1, "u"), ENGINE_DONE);
    assert_true(phantoms_hold(engine, 1, "u"));
    assert_true(phantom_reconfigure(engine, &config, error)); /* none stands: the dict goes */
    assert_true(phantoms_hold(engine, 1, "u"));
    phantoms_destroy(engine);
}

static void test_config(void **unused)
{
    (void)unused;
    char error[PHANTOM_ERROR_MAX];
    struct phantom_config config = phantoms_config(true);
    assert_true(phantom_config_valid(&config, error));
    config.row.table_bytes = 100000;
    assert_false(phantom_config_valid(&config, error));
    config = phantoms_config(true);
    config.false_positives = 0;
    assert_false(phantom_config_valid(&config, error));
    config = phantoms_config(true);
    config.row.any_ids = true;
    assert_false(phantom_config_valid(&config, error));
    config = phantoms_config(true);
    config.exceptions_bytes = 1;
    assert_false(phantom_config_valid(&config, error));
    config = phantoms_config(true);
    config.row.recycle = true; /* one table, and it would be the spare */
    assert_false(phantom_config_valid(&config, error));
    config.row.tables = 2;
    assert_true(phantom_config_valid(&config, error));
    config.row.late_room = 0.95;
    assert_false(phantom_config_valid(&config, error));
    config.row.late_room = 0.9;
    assert_true(phantom_config_valid(&config, error));
    struct phantom_size size, more;
    phantom_config_size(&config, &size);
    assert_true(size.tables == 1 && size.spare == 1);
    config.row.tables = 5;
    phantom_config_size(&config, &more);
    assert_true(more.tables == 4 && more.spare == 1 && more.members == 4 * size.members);
    assert_in_range(2 * more.bytes, 5 * size.bytes, 5 * size.bytes + size.bytes / 8); /* apart */
}

static void see(void *context, const char *name, const char *text)
{
    assert_int_equal(strspn(name, "0123456789:abcdefghijklmnopqrstuvwxyz_"), strlen(name));
    assert_true(text[0] != '\0');
    (*(unsigned *)context)++;
}

static void test_stats(void **unused)
{
    (void)unused;
    struct engine *engine = open_space(true);
    struct engine_figures figures = {0};
    enum engine_error error;
    unsigned space = 0, tables = 0;
    phantoms_do(engine, ENGINE_SET, 1, "a");
    phantoms_do(engine, ENGINE_SET, 2, "a");
    phantoms_do(engine, ENGINE_SET, 2, "b");
    phantoms_do(engine, ENGINE_DELETE, 2, "b");
    engine->functions->stats_space(engine, see, &space);
    stats_of_tables(engine, see, &tables);
    assert_true(space > 5 && tables > 10);
    assert_int_equal(phantoms_members(engine), 2);
    assert_int_equal(phantoms_table_number(engine, 0, "members"), 2);
    assert_int_equal(phantoms_table_number(engine, 0, "apart"), 2);
    assert_int_equal(phantoms_tables(engine), 1);
    engine->functions->figures(engine, &figures);
    assert_int_equal(figures.memory[ENGINE_MEMORY_FILTERS].items, 2);
    assert_true(figures.memory[ENGINE_MEMORY_FILTERS].held_bytes > ROW_REGION_BYTES_MIN);
    (void)fill(engine, &error);
    struct phantoms_figure wrong = phantoms_table_figure(engine, 0, "false_positives");
    assert_int_equal(strncmp(wrong.text, "0.00", 4), 0);
    assert_true(strcmp(wrong.text, "0.00050000") > 0);
    _Atomic bool stop = false;
    row_populate(engine->row, &stop);
    phantoms_destroy(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verbs),       cmocka_unit_test(test_delete_and_add_again),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_expires),
        cmocka_unit_test(test_sink),        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_long_member), cmocka_unit_test(test_exceptions_full),
        cmocka_unit_test(test_random),      cmocka_unit_test(test_batches),
        cmocka_unit_test(test_reconfigure), cmocka_unit_test(test_config),
        cmocka_unit_test(test_stats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
