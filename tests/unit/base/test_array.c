/* A growing array: what was appended stays, and it moves seldom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/array.h"

#define ITEMS 10000u

struct item {
    uint64_t number, other;
    char letter; /* sizes that are no power of two are padded by the compiler, not by the array */
};

static void test_appends(void **state)
{
    (void)state;
    struct item *items = NULL;
    size_t count = 0, room = 0, grown = 0;

    while (count < ITEMS) {
        size_t before = room;
        items = array_room(items, count, &room, sizeof(*items));
        assert_true(room > count);
        grown += room != before;
        items[count] = (struct item){.number = count, .other = ~(uint64_t)count, .letter = 'a'};
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        assert_true(items[i].number == i && items[i].other == ~(uint64_t)i);
    }
    assert_in_range(grown, 1, 16); /* it doubles */
    assert_true(room <= 2 * ITEMS);
    free(items);
}

/* With room left nothing moves, and the room stays. */
static void test_room_is_used(void **state)
{
    (void)state;
    size_t room = 0;
    char *items = array_room(NULL, 0, &room, 1);
    size_t first = room;

    for (size_t count = 0; count < first; count++) {
        assert_ptr_equal(array_room(items, count, &room, 1), items);
        assert_int_equal(room, first);
    }
    items = array_room(items, first, &room, 1);
    assert_int_equal(room, 2 * first);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appends),
        cmocka_unit_test(test_room_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
