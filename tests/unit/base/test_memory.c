/* test_memory.c: regions are zeroed, aligned and given back whole. */
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_region(size_t bytes)
{
    unsigned char *region = memory_region_create(bytes);
    assert_non_null(region);
    size_t unit = bytes >= MEMORY_HUGE_BYTES ? MEMORY_HUGE_BYTES : (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal((uintptr_t)region % unit, 0);
    for (size_t i = 0; i < bytes; i += 997) {
        assert_int_equal(region[i], 0);
        region[i] = 1;
    }
    region[bytes - 1] = 1;
    memory_region_destroy(region, bytes);
}

static void test_regions(void **unused)
{
    (void)unused;
    static const size_t sizes[] = {
        1,
        4096,
        4097,
        MEMORY_HUGE_BYTES - 1,
        MEMORY_HUGE_BYTES,
        MEMORY_HUGE_BYTES + 1,
        5 * (size_t)MEMORY_HUGE_BYTES + 12345,
    };
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            check_region(sizes[i]);
        }
    }
    memory_region_destroy(NULL, 4096);
}

static void test_refused(void **unused)
{
    (void)unused;
    static const size_t absurd[] = {SIZE_MAX, SIZE_MAX - MEMORY_HUGE_BYTES, SIZE_MAX / 2};
    for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
        errno = 0;
        assert_null(memory_region_create(absurd[i]));
        assert_int_equal(errno, ENOMEM);
    }
}

static void test_populate(void **unused)
{
    (void)unused;
    size_t bytes = 32u << 20;
    char *region = memory_region_create(bytes);
    assert_non_null(region);
    region[12345] = 'x';
    uint64_t before = memory_resident_bytes();
    assert_true(before > 0);
    if (memory_populate(region + 100, bytes - 100)) { /* else: an old kernel */
        assert_true(memory_resident_bytes() > before + bytes / 2);
    }
    assert_int_equal(region[12345], 'x');
    assert_int_equal(region[bytes - 1], 0);
    memory_region_destroy(region, bytes);
    assert_false(memory_populate((void *)(uintptr_t)4096, 4096)); /* nothing is mapped there */
}

static void test_small(void **unused)
{
    (void)unused;
    char *zeroed = memory_zalloc(100);
    char zeros[100] = {0};
    assert_memory_equal(zeroed, zeros, sizeof(zeros));
    free(zeroed);
    free(memory_zalloc(0));
    char *copy = memory_strdup("text");
    assert_string_equal(copy, "text");
    free(copy);
    copy = memory_strndup("text", 2);
    assert_string_equal(copy, "te");
    free(copy);
    memory_purge();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_populate),
        cmocka_unit_test(test_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
