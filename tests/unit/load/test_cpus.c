/* Lists of processors: what is taken, what is refused and said, which thread gets which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/load/cpus.h"

/* A machine with the processors 0 to 5 and 9. */
static cpu_set_t machine(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (size_t cpu = 0; cpu < 6; cpu++) {
        CPU_SET(cpu, &set);
    }
    CPU_SET(9, &set);
    return set;
}

static void assert_list(const char *list, const uint16_t *wanted, size_t count)
{
    char error[LOAD_CPUS_ERROR_MAX] = "";
    struct load_cpus cpus;
    cpu_set_t set = machine();

    assert_true(load_cpus_parse(list, &set, &cpus, error));
    assert_int_equal(cpus.count, count);
    assert_memory_equal(cpus.cpus, wanted, count * sizeof(*wanted));
}

static void assert_refused(const char *list, const char *said)
{
    char error[LOAD_CPUS_ERROR_MAX] = "";
    struct load_cpus cpus;
    cpu_set_t set = machine();

    assert_false(load_cpus_parse(list, &set, &cpus, error));
    assert_non_null(strstr(error, said));
}

static void test_lists(void **state)
{
    (void)state;
    assert_list("1", (const uint16_t[]){1}, 1);
    assert_list("0,1", (const uint16_t[]){0, 1}, 2);
    assert_list("2-5", (const uint16_t[]){2, 3, 4, 5}, 4);
    assert_list("9,0-2,4", (const uint16_t[]){9, 0, 1, 2, 4}, 5);
    assert_list("3-3,3", (const uint16_t[]){3, 3}, 2);
}

static void test_not_a_list(void **state)
{
    static const char *const bad[] = {"",   "a",   ",",   "1,",  ",1",    "1,,2",
                                      "-",  "1-",  "-1",  "3-2", "1-2-3", "1 ",
                                      " 1", "0x1", "1;2", "+1",  "1.0",   "18446744073709551616"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_refused(bad[i], "is no list of processors, as in 1, 0,1 or 2-5");
    }
}

/* What would be right is said. */
static void test_not_there(void **state)
{
    (void)state;
    assert_refused("6",
                   "\"6\": there is no processor 6 that this process may use; there are 0-5,9");
    assert_refused("0,4-7", "no processor 6 ");
    assert_refused("8-9", "no processor 8 ");
    assert_refused("1024", "no processor 1024 ");
    assert_refused("0-18446744073709551615", "no processor 6 ");
    assert_refused("18446744073709551615", "no processor 18446744073709551615 ");
}

static void test_as_many_as_there_is_room_for(void **state)
{
    char list[2 * LOAD_CPUS_MAX + 3] = "";
    (void)state;
    for (size_t i = 0; i < LOAD_CPUS_MAX; i++) {
        memcpy(list + 2 * i, "1,", 3);
    }
    list[2 * LOAD_CPUS_MAX - 1] = '\0';

    char error[LOAD_CPUS_ERROR_MAX];
    struct load_cpus cpus;
    cpu_set_t set = machine();
    assert_true(load_cpus_parse(list, &set, &cpus, error));
    assert_int_equal(cpus.count, LOAD_CPUS_MAX);
    memcpy(list + 2 * LOAD_CPUS_MAX - 1, ",1", 3);
    assert_refused(list, "more than 1024 processors");
}

/* A set in pieces is longer than a message: it is cut. */
static void test_long_message(void **state)
{
    char error[LOAD_CPUS_ERROR_MAX];
    struct load_cpus cpus;
    cpu_set_t set;

    (void)state;
    CPU_ZERO(&set);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu += 2) {
        CPU_SET(cpu, &set);
    }
    assert_false(load_cpus_parse("1", &set, &cpus, error));
    assert_non_null(strstr(error, "there are 0,2,4,6,"));
    assert_in_range(strlen(error), 300, LOAD_CPUS_ERROR_MAX - 1);
}

static cpu_set_t own_set(void)
{
    cpu_set_t set;
    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof(set), &set), 0);
    return set;
}

/* Threads take turns at the list, here of the first and the last processor there is. */
static void test_pin(void **state)
{
    cpu_set_t before = own_set();
    struct load_cpus cpus = {.count = 2};

    (void)state;
    for (size_t cpu = CPU_SETSIZE; cpu-- > 0;) {
        if (CPU_ISSET(cpu, &before)) {
            cpus.cpus[0] = (uint16_t)cpu;
        }
    }
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &before)) {
            cpus.cpus[1] = (uint16_t)cpu;
        }
    }
    for (uint64_t thread = 0; thread < 5; thread++) {
        assert_int_equal(load_cpus_pin(&cpus, thread), 0);
        cpu_set_t now = own_set();
        assert_int_equal(CPU_COUNT(&now), 1);
        assert_true(CPU_ISSET(cpus.cpus[thread % 2], &now));
    }
    assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof(before), &before), 0);
}

static void test_pin_to_nothing(void **state)
{
    cpu_set_t before = own_set();
    struct load_cpus none = {.count = 0};

    (void)state;
    assert_int_equal(load_cpus_pin(NULL, 0), 0);
    assert_int_equal(load_cpus_pin(&none, 1), 0);
    cpu_set_t after = own_set();
    assert_true(CPU_EQUAL(&before, &after));
}

/* The processors of this process: all of them are taken, no others are. */
static void test_here(void **state)
{
    char error[LOAD_CPUS_ERROR_MAX], list[16];
    struct load_cpus cpus;
    cpu_set_t set = own_set();

    (void)state;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        snprintf(list, sizeof(list), "%zu", cpu);
        assert_int_equal(load_cpus_parse_here(list, &cpus, error), CPU_ISSET(cpu, &set) != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),          cmocka_unit_test(test_not_a_list),
        cmocka_unit_test(test_not_there),      cmocka_unit_test(test_as_many_as_there_is_room_for),
        cmocka_unit_test(test_long_message),   cmocka_unit_test(test_pin),
        cmocka_unit_test(test_pin_to_nothing), cmocka_unit_test(test_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
