/* test_pattern_similar.c: keys a letter away from those of a space, and keys that are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "key/pattern.h"

static struct pattern_set *set;

static int make(void **state)
{
    static const char *const texts[] = {
        "feed:{id}", "liked:{id}:{member}", "count_{id}", "ab:{id}", "x.y:{id}", "uvw:{id}"};
    char error[PATTERN_ERROR_MAX];
    uint32_t first, second;
    (void)state;
    set = pattern_set_create(texts, sizeof(texts) / sizeof(texts[0]), error, &first, &second);
    return set == NULL;
}

static int drop(void **state)
{
    (void)state;
    pattern_set_destroy(set);
    return 0;
}

static void test_similar(void **state)
{
    static const struct {
        const char *key;
        int space; /* -1: of none */
    } rows[] = {
        {"fed:1", 0},
        {"feeds:1", 0},
        {"feet:1.like", 0},
        {"reed:1", 0},
        {"efed:1", 0},
        {"feedx.like", 0},
        {"feed.1", 0},
        {"{fed:1}.like", 0},
        {"xfeed:", 0},
        {"like:1:u9", 1},
        {"likes:1:u9", 1},
        {"liekd:1:u9", 1},
        {"Liked:1:u9", 1},
        {"cont_12.like", 2},
        {"coun_7.x", 2},
        {"uvx:1", 5},
        /* too far, too short, or no such text */
        {"food:1", -1},
        {"fe:1", -1},
        {"feedxx:1", -1},
        {"fed", -1},
        {"feet", -1},
        {"deef:1", -1},
        {"ac:1", -1},
        {"x.z:1", -1},
        {":", -1},
        {"{:1", -1},
        {"session:4711", -1},
        {"cont_12", -1},
        {".", -1},
        {"{", -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t space = 99;
        bool similar = pattern_similar(set, rows[i].key, strlen(rows[i].key), &space);
        if (similar != (rows[i].space >= 0) || (similar && (int)space != rows[i].space)) {
            fail_msg("%s: %d, space %u", rows[i].key, similar, space);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_similar)};
    return cmocka_run_group_tests(tests, make, drop);
}
