/*
 * test_huge.c: what a text as of smaps says of parts of memory, and what the system says of ours.
 */
#include "base/huge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/memory.h"

#define MIB (1u << 20)

static void look_at(const char *text)
{
    FILE *smaps = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    assert_non_null(smaps);
    huge_look(smaps);
    fclose(smaps);
}

static void expect(uint64_t start, uint64_t bytes, uint64_t resident, uint64_t in_huge)
{
    struct huge_bytes seen = huge_of((const void *)(uintptr_t)start, bytes);
    assert_true(seen.resident == resident);
    assert_true(seen.huge == in_huge);
}

static const char three[] = "10000000-10800000 rw-p 00000000 00:00 0 \n"
                            "Size:               8192 kB\n"
                            "Rss:                8192 kB\n"
                            "AnonHugePages:      6144 kB\n"
                            "THPeligible:           1\n"
                            "VmFlags: rd wr mr mw me ac hg sd \n"
                            "10800000-10900000 r-xp 00000000 08:01 1234 /usr/lib/some thing.so\n"
                            "Rss:                1024 kB\n"
                            "AnonHugePages:         0 kB\n"
                            "VmFlags: rd ex mr mw me sd \n"
                            "7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \n"
                            "Rss:                2048 kB\n"
                            "AnonHugePages:      2048 kB\n"
                            "VmFlags: rd wr mr mw me ac hg \n";

static void test_parts(void **unused)
{
    (void)unused;
    expect(0x10000000, 8 * MIB, 0, 0); /* nobody has looked */
    look_at(three);
    assert_true(huge_sums().resident == 10 * MIB);
    assert_true(huge_sums().huge == 8 * MIB);
    expect(0x10000000, 8 * MIB, 8 * MIB, 6 * MIB);
    expect(0x10200000, 2 * MIB, 2 * MIB, 6 * MIB / 4); /* its share of a joined mapping */
    expect(0x0ff00000, 2 * MIB, MIB, 6 * MIB / 8);
    expect(0x10800000, MIB, 0, 0); /* never asked for */
    expect(0x7f0000000000, 4 * MIB, 2 * MIB, 2 * MIB);
    expect(0x7f0000400000, MIB, 0, 0);
    look_at("");
    assert_true(huge_sums().resident == 0);
    expect(0x10000000, 8 * MIB, 0, 0);
}

static void test_few(void **unused)
{
    (void)unused;
    assert_false(huge_are_few((struct huge_bytes){HUGE_FEW_LEAST - 1, 0}));
    assert_true(huge_are_few((struct huge_bytes){HUGE_FEW_LEAST, 0}));
    assert_true(huge_are_few((struct huge_bytes){HUGE_FEW_LEAST, HUGE_FEW_LEAST / 2 - 1}));
    assert_false(huge_are_few((struct huge_bytes){HUGE_FEW_LEAST, HUGE_FEW_LEAST / 2}));
}

/* A region of ours is found in what this system says; how it is held is the system's affair. */
static void test_own(void **unused)
{
    (void)unused;
    uint64_t bytes = 8 * MEMORY_HUGE_BYTES;
    char *region = memory_region_create(bytes);
    assert_non_null(region);
    memset(region, 1, bytes / 2);
    FILE *smaps = fopen("/proc/self/smaps", "re");
    if (smaps == NULL) {
        memory_region_destroy(region, bytes);
        skip();
    }
    huge_look(smaps);
    fclose(smaps);
    struct huge_bytes seen = huge_of(region, bytes);
    memory_region_destroy(region, bytes);
    if (seen.resident == 0) {
        skip(); /* a kernel without huge pages takes no advice */
    }
    assert_true(seen.resident >= bytes / 2 && seen.resident <= bytes);
    assert_true(seen.huge <= seen.resident);
}

/* It may be started and ended at once, and once more. */
static void test_thread(void **unused)
{
    (void)unused;
    huge_end();
    for (int i = 0; i < 2; i++) {
        assert_true(huge_start());
        huge_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
