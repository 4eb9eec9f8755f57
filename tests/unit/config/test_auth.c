/* The users of an auth-file: what a file may hold, and who is let in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/auth.h"

static bool lets_in(const struct auth *auth, const char *user, const char *password)
{
    return auth_check(auth, user, strlen(user), password, strlen(password));
}

static void test_users(void **state)
{
    static const char text[] = "joe:secret\r\n\nann:a:b\nempty:\nlast:line";
    char error[AUTH_ERROR_MAX];
    struct auth *auth = auth_parse_text(text, strlen(text), error);

    (void)state;
    assert_non_null(auth);
    assert_true(lets_in(auth, "joe", "secret"));
    assert_true(lets_in(auth, "ann", "a:b"));
    assert_true(lets_in(auth, "empty", ""));
    assert_true(lets_in(auth, "last", "line"));
    assert_false(lets_in(auth, "joe", "secre"));
    assert_false(lets_in(auth, "joe", "secrets"));
    assert_false(lets_in(auth, "joe", "Secret"));
    assert_false(lets_in(auth, "joe", ""));
    assert_false(lets_in(auth, "jo", "e:secret"));
    assert_false(lets_in(auth, "ann:a", "b")); /* the colon is not the user's to move */
    assert_false(lets_in(auth, "", "joe:secret"));
    assert_false(auth_check(auth, "joe\0x", 5, "secret", 6));
    /* An entry has zeros after it: only its length says that these are not the password's. */
    assert_false(auth_check(auth, "joe", 3, "secret\0", 7));
    assert_false(auth_check(auth, "joe", 3, "secret\0\0\0\0\0\0\0\0", 14));
    assert_false(auth_check(auth, "empty", 5, "\0", 1));
    auth_destroy(auth);
}

static void test_lengths(void **state)
{
    char text[AUTH_LINE_MAX + 2], error[AUTH_ERROR_MAX];
    struct auth *auth;

    (void)state;
    memset(text, 'x', sizeof(text));
    text[1] = ':';
    auth = auth_parse_text(text, AUTH_LINE_MAX, error);
    assert_non_null(auth);
    assert_true(auth_check(auth, "x", 1, text + 2, AUTH_LINE_MAX - 2));
    assert_false(auth_check(auth, "x", 1, text + 2, AUTH_LINE_MAX - 1));
    assert_false(auth_check(auth, text + 2, AUTH_LINE_MAX, text + 2, AUTH_LINE_MAX));
    auth_destroy(auth);
    assert_null(auth_parse_text(text, AUTH_LINE_MAX + 1, error));
    assert_string_equal(error, "line 1: longer than 256 bytes");
}

static void test_mistakes(void **state)
{
    static const struct {
        const char *text;
        size_t length;
        const char *error;
    } rows[] = {
        {"", 0, "no user: a line is name:password"},
        {"\n\r\n", 3, "no user: a line is name:password"},
        {"a:b\nc\n", 6, "line 2: not name:password"},
        {"\n:c\n", 4, "line 2: not name:password"},
        {"a:b\0c", 5, "line 1: has a zero byte"},
    };
    char error[AUTH_ERROR_MAX];
    char many[(AUTH_USERS_MAX + 1) * 4];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_null(auth_parse_text(rows[i].text, rows[i].length, error));
        assert_string_equal(error, rows[i].error);
    }
    for (size_t i = 0; i < sizeof(many); i += 4) {
        memcpy(many + i, "a:b\n", 4);
    }
    assert_null(auth_parse_text(many, sizeof(many), error));
    assert_string_equal(error, "line 65: more than 64 users");
    struct auth *auth = auth_parse_text(many, sizeof(many) - 4, error);

    assert_non_null(auth);
    auth_destroy(auth);
}

static void test_file(void **state)
{
    char path[] = "/tmp/rollcall-auth-XXXXXX";
    char error[AUTH_ERROR_MAX], wanted[AUTH_ERROR_MAX];
    int fd = mkstemp(path);
    unsigned mode = 1;
    struct auth *auth;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "joe:x\nann\n", 10), 10);
    assert_null(auth_load(path, &mode, error));
    snprintf(wanted, sizeof(wanted), "%s: line 2: not name:password", path);
    assert_string_equal(error, wanted);
    assert_int_equal(ftruncate(fd, 6), 0);
    auth = auth_load(path, &mode, error);
    assert_non_null(auth);
    assert_true(lets_in(auth, "joe", "x"));
    auth_destroy(auth);
    assert_int_equal(mode, 0);
    assert_int_equal(ftruncate(fd, AUTH_FILE_MAX + 1), 0);
    assert_null(auth_load(path, &mode, error));
    assert_non_null(strstr(error, "larger than"));
    close(fd);
    unlink(path);
    assert_null(auth_load(path, &mode, error));
    assert_non_null(strstr(error, "No such file"));
}

/* Only what others may do counts: owner and group are whom the administrator chose. */
static void test_exposed(void **state)
{
    static const struct {
        mode_t mode;
        unsigned exposed;
    } rows[] = {{0600, 0},    {0640, 0},    {0660, 0},     {0711, 0},
                {0644, 0644}, {0602, 0602}, {04604, 04604}};
    char path[] = "/tmp/rollcall-auth-XXXXXX";
    char error[AUTH_ERROR_MAX];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "joe:x\n", 6), 6);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned mode = 1;

        assert_int_equal(fchmod(fd, rows[i].mode), 0);
        struct auth *auth = auth_load(path, &mode, error);

        assert_non_null(auth);
        assert_int_equal(mode, rows[i].exposed);
        auth_destroy(auth);
    }
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_users),    cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_mistakes), cmocka_unit_test(test_file),
        cmocka_unit_test(test_exposed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
