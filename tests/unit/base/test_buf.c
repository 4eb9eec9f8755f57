/* test_buf.c: growth, the hard limit, the shared budget. */
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <string.h>

static void test_empty_holds_nothing(void **unused)
{
    (void)unused;
    struct budget budget = {.bytes_max = 1000};
    struct budget_part part = {&budget, 0};
    struct buf buf;
    budget_divide(&budget, 1);
    buf_init(&buf, 100, &part);
    assert_null(buf.data);
    assert_int_equal(atomic_load(&budget.used_bytes), 0);
    assert_true(buf_append(&buf, "", 0));
    assert_null(buf.data);
    buf_fini(&buf);
    buf_fini(&buf);
}

static void test_limit(void **unused)
{
    (void)unused;
    struct buf buf;
    buf_init(&buf, 1000, NULL);
    char bytes[1001];
    memset(bytes, 'x', sizeof(bytes));
    assert_null(buf_room(&buf, 1001));
    assert_false(buf_append(&buf, bytes, 1001));
    assert_null(buf_room(&buf, SIZE_MAX));
    assert_true(buf_append(&buf, bytes, 600));
    assert_true(buf_append(&buf, bytes, 400));
    assert_int_equal(buf.length, 1000);
    assert_true(buf.capacity <= 1000);
    assert_false(buf_append(&buf, bytes, 1));
    assert_null(buf_room(&buf, SIZE_MAX - 500));
    buf_fini(&buf);
    assert_true(buf_append(&buf, "again", 5));
    buf_fini(&buf);
}

static void test_doubles(void **unused)
{
    (void)unused;
    struct buf buf;
    buf_init(&buf, 1u << 20, NULL);
    int moves = 0;
    size_t capacity = 0;
    for (uint32_t i = 0; i < 1u << 20; i++) {
        char *room = buf_room(&buf, 1);
        assert_non_null(room);
        *room = (char)(i % 251);
        buf_commit(&buf, 1);
        moves += buf.capacity != capacity;
        capacity = buf.capacity;
    }
    assert_true(moves <= 20);
    for (uint32_t i = 0; i < 1u << 20; i++) {
        assert_int_equal(buf.data[i], (char)(i % 251));
    }
    buf_fini(&buf);
}

static void test_budget(void **unused)
{
    (void)unused;
    struct budget budget = {.bytes_max = 3000};
    struct budget_part part = {&budget, 0};
    struct buf first;
    struct buf second;
    budget_divide(&budget, 1);
    buf_init(&first, 10000, &part);
    buf_init(&second, 10000, &part);
    assert_non_null(buf_room(&first, 2000));
    assert_int_equal(atomic_load(&budget.used_bytes), first.capacity);
    assert_null(buf_room(&second, 1001));
    assert_int_equal(second.capacity, 0);
    assert_non_null(buf_room(&second, 900));
    assert_int_equal(atomic_load(&budget.used_bytes), first.capacity + second.capacity);
    buf_commit(&second, 900);
    assert_non_null(buf_room(&second, 50)); /* too tight to double, enough for this */
    assert_true(atomic_load(&budget.used_bytes) <= budget.bytes_max);
    buf_fini(&first);
    assert_non_null(buf_room(&second, 1500));
    buf_fini(&second);
    assert_int_equal(atomic_load(&budget.used_bytes), 0);
}

/* Half is kept for the parts, a quarter for each of two; the other half has who comes first. */
static void test_each_part_has_its_share(void **unused)
{
    (void)unused;
    struct budget budget = {.bytes_max = 4096};
    struct budget_part parts[2] = {{&budget, 0}, {&budget, 0}};
    struct buf first;
    struct buf second;
    budget_divide(&budget, 2);
    buf_init(&first, 10000, &parts[0]);
    buf_init(&second, 10000, &parts[1]);
    assert_null(buf_room(&first, 3073));
    assert_non_null(buf_room(&first, 3072));
    assert_null(buf_room(&second, 1025));
    assert_non_null(buf_room(&second, 1024));
    assert_int_equal(atomic_load(&budget.used_bytes), 4096);
    buf_fini(&first);
    assert_null(buf_room(&second, 3073));
    assert_non_null(buf_room(&second, 3072));
    buf_fini(&second);
    assert_int_equal(atomic_load(&budget.used_bytes), 0);
    assert_int_equal(atomic_load(&budget.beyond_bytes), 0);
}

static void test_consume_and_truncate(void **unused)
{
    (void)unused;
    struct buf buf;
    buf_init(&buf, 100, NULL);
    buf_consume(&buf, 0);
    assert_true(buf_append(&buf, "0123456789", 10));
    buf_consume(&buf, 3);
    assert_int_equal(buf.length, 7);
    assert_memory_equal(buf.data, "3456789", 7);
    buf_truncate(&buf, 2);
    assert_true(buf_append(&buf, "x", 1));
    assert_int_equal(buf.length, 3);
    assert_memory_equal(buf.data, "34x", 3);
    buf_consume(&buf, 3);
    assert_int_equal(buf.length, 0);
    buf_fini(&buf);
}

static void test_print(void **unused)
{
    (void)unused;
    struct buf buf;
    buf_init(&buf, 8, NULL);
    assert_true(buf_print(&buf, "%d-%s", 12, "a"));
    assert_true(buf_print(&buf, "%s", ""));
    assert_int_equal(buf.length, 4);
    assert_memory_equal(buf.data, "12-a", 4);
    assert_false(buf_print(&buf, "%d", 12345)); /* five and a NUL are two more than there is room */
    assert_int_equal(buf.length, 4);
    assert_true(buf_print(&buf, "%d", 123));
    assert_memory_equal(buf.data, "12-a123", 7);
    buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_holds_nothing),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_each_part_has_its_share),
        cmocka_unit_test(test_consume_and_truncate),
        cmocka_unit_test(test_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
