/* A line as a row: the short way that nearly all lines take says what the long one says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random.h"
#include "tools/rollcall/load_private.h"

#define LINES    200000
#define LINE_MAX 256

static const struct load_space space = {.slot_count = 3, .slots = {"like", "read", "share"}};

static void make_columns(struct load_columns *columns, const char *names)
{
    char why[LOAD_WHY_MAX];

    assert_true(load_columns_read(columns, &space, names, strlen(names), ',', why));
}

static bool parse_text(const struct load_columns *columns, enum load_format format,
                       const char *text, struct load_row *row, char why[LOAD_WHY_MAX])
{
    static char line[LINE_MAX];

    snprintf(line, sizeof(line), "%s", text);
    return load_parse(format, columns, line, strlen(line), row, why);
}

/* A number, nothing, or what is none. */
static void put_field(struct test_random *random, char *field)
{
    static const char *const odd[] = {"",
                                      "-1",
                                      "x",
                                      "1 ",
                                      "18446744073709551615",
                                      "007",
                                      "1.5",
                                      "+3",
                                      " 2",
                                      "18446744073709551616",
                                      "0",
                                      "1e3",
                                      "\t7",
                                      "\xd9\xa3",
                                      "9223372036854775808",
                                      "99999999999999999999999"};

    if (test_random_below(random, 8) == 0) {
        strcpy(field, odd[test_random_below(random, sizeof(odd) / sizeof(odd[0]))]);
    } else {
        sprintf(field, "%llu",
                (unsigned long long)(test_random_next(random) >> test_random_below(random, 64)));
    }
}

/* The same fields as they are, and in quotes, which the short way does not take. */
static void put_line(struct test_random *random, size_t fields, char *plain, char *quoted)
{
    *plain = *quoted = '\0';
    for (size_t i = 0; i < fields; i++) {
        char field[64];

        put_field(random, field);
        sprintf(plain + strlen(plain), "%s%s", i > 0 ? "," : "", field);
        sprintf(quoted + strlen(quoted), "%s\"%s\"", i > 0 ? "," : "", field);
    }
}

static void expect_same(const struct load_row *a, const struct load_row *b, const char *line)
{
    bool same = a->id == b->id && a->set == b->set;

    for (size_t i = 0; i < space.slot_count; i++) {
        same = same && (!(a->set >> i & 1) || a->values[i] == b->values[i]);
    }
    if (!same) {
        fail_msg("%s is another row", line);
    }
}

static void test_short_way(void **state)
{
    static const char *const names[] = {"id,like,read,share", "share,id", "read,-,id,like",
                                        "id,read"};
    struct test_random random;

    (void)state;
    random.state = test_seed();
    for (uint64_t n = 0; n < test_scaled(LINES); n++) {
        struct load_columns columns;
        struct load_row rows[2];
        char plain[LINE_MAX], quoted[LINE_MAX], whys[2][LOAD_WHY_MAX] = {"", ""};

        make_columns(&columns, names[n % 4]);
        put_line(&random,
                 columns.count - (test_random_below(&random, 16) == 0) +
                     (test_random_below(&random, 16) == 0),
                 plain, quoted);
        bool parsed = parse_text(&columns, LOAD_CSV, plain, &rows[0], whys[0]);

        if (parsed != parse_text(&columns, LOAD_CSV, quoted, &rows[1], whys[1]) ||
            strcmp(whys[0], whys[1]) != 0) {
            fail_msg("%s: \"%s\", and in quotes \"%s\"", plain, whys[0], whys[1]);
        }
        if (parsed) {
            expect_same(&rows[0], &rows[1], plain);
        }
    }
}

/* The text of a line is the record only where its columns are that. */
static void expect_record(const char *names, enum load_format format, const char *line,
                          const char *record)
{
    struct load_columns columns;
    struct load_row row;
    char why[LOAD_WHY_MAX], text[LOAD_RECORD_MAX];

    make_columns(&columns, names);
    assert_true(parse_text(&columns, format, line, &row, why));
    size_t length = load_space_print(&space, &row, text);

    assert_int_equal(length, strlen(record));
    assert_memory_equal(text, record, length);
}

static void test_record(void **state)
{
    (void)state;
    expect_record("id,like,read,share", LOAD_CSV, "7,1,,03", "1,,03");
    expect_record("id,like,read,share", LOAD_CSV, "7,\"1\",,3", "1,,3");
    expect_record("id,like,read,share", LOAD_TSV, "7\t1\t\t3", "1,,3");
    expect_record("id,like,share,read", LOAD_CSV, "7,1,,3", "1,3,");
    expect_record("like,read,share,id", LOAD_CSV, "1,,3,7", "1,,3");
    expect_record("id,-,like,read,share", LOAD_CSV, "7,x,1,,3", "1,,3");
    expect_record("id,like,read,share", LOAD_CSV, "7,18446744073709551615,,3",
                  "18446744073709551615,,3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_way),
        cmocka_unit_test(test_record),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
