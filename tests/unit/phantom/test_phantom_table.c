/*
 * test_phantom_table.c: a table by its own interface, with hashes of the test's choice: pairs that
 * share what others never will.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "phantom/phantom_private.h"
#include "phantom/table_private.h"
#include "tests/support/phantoms.h"

#define HASH   0x123456789abcdef0ull
#define SECOND 0x1111111111111100ull /* its last byte is a part of an exception's key */
#define OTHER  0x2222222222222200ull

struct fixture {
    struct engine *engine;
    struct row *row;
    struct phantom_table *table;
};

static struct fixture begin(void)
{
    struct phantom_config config = phantoms_config(true);
    struct engine *engine = phantoms_create(&config);
    struct row *row = &((struct phantom *)engine)->row;
    return (struct fixture){engine, row, phantom_table_of(row->tables[0])};
}

static struct phantom_member member_of(uint64_t id, uint64_t second)
{
    return (struct phantom_member){.id = id, .hash = HASH, .second = second};
}

/* Its bits are set, and the frontier has reached its id. */
static void put_in_place(struct fixture *f, uint64_t id)
{
    phantom_table_set_bits(f->table, HASH);
    atomic_store(&f->table->row.frontier, id);
    atomic_fetch_add(&f->table->row.count, 1);
}

/* Two pairs of one hash: an exception stands for the one it was made for, and for no other. */
static void test_exceptions_of_one_key(void **unused)
{
    (void)unused;
    struct fixture f = begin();
    enum change_place place;
    const struct phantom_member one = member_of(5, SECOND);
    const struct phantom_member other = member_of(5, OTHER);
    put_in_place(&f, 5);
    assert_true(phantom_table_remove(f.table, &one, NULL, &place));
    assert_int_equal(place, CHANGE_INSIDE);
    assert_true(phantom_exception_stands(f.table, HASH, SECOND));
    assert_false(phantom_exception_stands(f.table, HASH, OTHER));
    assert_false(phantom_table_remove(f.table, &other, NULL, &place)); /* the key is taken */
    assert_true(phantom_exception_stands(f.table, HASH, SECOND));
    assert_int_equal(phantom_table_add(f.row, f.table, &one, &place), ROW_INSIDE);
    assert_int_equal(place, CHANGE_THERE);
    assert_false(phantom_exception_stands(f.table, HASH, SECOND));
    phantoms_destroy(f.engine);
}

/* One that is apart may pass for being in place as well: a delete takes it out of both. */
static void test_removed_from_both(void **unused)
{
    (void)unused;
    struct fixture f = begin();
    enum change_place place;
    const struct phantom_member member = member_of(5, SECOND);
    assert_int_equal(phantom_table_add(f.row, f.table, &member, &place), ROW_APART);
    assert_int_equal(place, CHANGE_APART);
    put_in_place(&f, 5);
    assert_int_equal(f.row->apart->count, 1);
    assert_true(phantom_table_remove(f.table, &member, NULL, &place));
    assert_int_equal(place, CHANGE_BOTH);
    assert_int_equal(f.row->apart->count, 0);
    assert_false(phantom_apart_holds(f.table, &member));
    assert_true(phantom_exception_stands(f.table, HASH, SECOND));
    phantoms_destroy(f.engine);
}

/* A change from before the table's image was begun says nothing of the exceptions in it. */
static void test_replayed_by_its_lsn(void **unused)
{
    enum { START = 100 };
    (void)unused;
    struct fixture f = begin();
    enum change_place place;
    char error[ENGINE_ERROR_MAX] = "";
    const struct phantom_member member = member_of(5, SECOND);
    put_in_place(&f, 5);
    f.table->row.start_lsn = START;
    assert_true(phantom_table_remove(f.table, &member, NULL, &place));
    struct engine_replay replay = {
        .lsn = START - 1,
        .change = {
            .type = CHANGE_MEMBER_ADD, .place = CHANGE_THERE, .id = 5, .member = {HASH, SECOND}}};
    assert_true(phantom_table_replay(f.row, f.table, &replay, error));
    assert_true(phantom_exception_stands(f.table, HASH, SECOND));
    replay.lsn = START;
    assert_true(phantom_table_replay(f.row, f.table, &replay, error));
    assert_false(phantom_exception_stands(f.table, HASH, SECOND));
    phantoms_destroy(f.engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exceptions_of_one_key),
        cmocka_unit_test(test_removed_from_both),
        cmocka_unit_test(test_replayed_by_its_lsn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
