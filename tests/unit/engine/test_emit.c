/* test_emit.c: figures as text are what printf makes of them. */
#include "engine/emit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

struct told {
    char name[ENGINE_STAT_TEXT_MAX], text[ENGINE_STAT_TEXT_MAX];
};

static void keep(void *context, const char *name, const char *text)
{
    struct told *told = context;
    snprintf(told->name, sizeof(told->name), "%s", name);
    snprintf(told->text, sizeof(told->text), "%s", text);
}

static void test_numbers(void **unused)
{
    static const uint64_t numbers[] = {0, 7, 999, 1000, 12345678901234567, UINT64_MAX};
    struct told told;
    const struct emitter to = {keep, &told};
    (void)unused;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        char wanted[32];
        snprintf(wanted, sizeof(wanted), "%llu", (unsigned long long)numbers[i]);
        emit_u64(&to, "it", numbers[i]);
        assert_string_equal(told.text, wanted);
        assert_string_equal(told.name, "it");
    }
    emit_real(&to, "it", 2, 1.005e3);
    assert_string_equal(told.text, "1005.00");
}

static void test_shares(void **unused)
{
    struct told told;
    const struct emitter to = {keep, &told};
    (void)unused;
    for (uint64_t part = 0; part < 4000; part += 7) {
        char wanted[32];
        snprintf(wanted, sizeof(wanted), "%.4f", part < 1013 ? (double)part / 1013 : 1.0);
        emit_share(&to, "share", part, 1013);
        assert_string_equal(told.text, wanted);
    }
    emit_share(&to, "share", 5, 0);
    assert_string_equal(told.text, "0.0000");
    emit_share(&to, "share", UINT64_MAX, 1);
    assert_string_equal(told.text, "1.0000");
    emit_share(&to, "share", 99999, 100000);
    assert_string_equal(told.text, "1.0000");
}

static void test_numbered(void **unused)
{
    struct told told;
    const struct emitter to = {keep, &told};
    struct emit_numbered numbered;
    (void)unused;
    struct emitter own = emit_numbered(&numbered, &to, 12345);
    emit_u64(&own, "records", 6);
    assert_string_equal(told.name, "12345:records");
    assert_string_equal(told.text, "6");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_numbered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
