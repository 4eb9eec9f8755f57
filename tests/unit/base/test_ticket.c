/* Tickets: whom they wake, and which are one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/ticket.h"

static void note(void *target, uint64_t serial)
{
    *(uint64_t *)target = serial;
}

static void ignore(void *target, uint64_t serial)
{
    (void)target;
    (void)serial;
}

static void test_wakes(void **state)
{
    (void)state;
    uint64_t woken = 0;
    const struct ticket ticket = {note, &woken, 7};

    ticket_wake(&ticket);
    assert_int_equal(woken, 7);
}

static void test_same(void **state)
{
    (void)state;
    uint64_t target, other;
    const struct ticket ticket = {note, &target, 7}, copy = ticket;
    const struct ticket others[] = {{note, &target, 8}, {note, &other, 7}, {ignore, &target, 7}};

    assert_true(ticket_same(&ticket, &copy));
    assert_true(ticket_hash(&ticket) == ticket_hash(&copy));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_false(ticket_same(&ticket, &others[i]));
    }
    assert_true(ticket_hash(&ticket) != ticket_hash(&others[0]));
    assert_true(ticket_hash(&ticket) != ticket_hash(&others[1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wakes),
        cmocka_unit_test(test_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
