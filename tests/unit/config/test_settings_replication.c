/* Whom a node follows, and as which user: the keys replication.follow and what goes with it. */
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

#include "config/settings_draft.h"
#include "settings_run.h"

#define NODE "data: /x\nreplication: {name: two, "

static void test_addresses(void **unused)
{
    static const struct {
        const char *given, *spelled;
    } rows[] = {
        {"feed-1", "feed-1:11211"},
        {"10.0.0.1:11300", "10.0.0.1:11300"},
        {"[::1]:7", "[::1]:7"},
        {"notls:10.0.0.1", "notls:10.0.0.1:11211"},
        {"/run/one.sock", "/run/one.sock"},
    };

    (void)unused;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct run run;
        char yaml[256];

        snprintf(yaml, sizeof(yaml), NODE "follow: '%s'}\n" FEED, rows[i].given);
        assert_string_equal(good(&run, yaml, "")->replication.follow, rows[i].spelled);
        assert_null(run.settings->replication.login);
        assert_int_equal(run.settings->replication.stale_after_s, 0);
        finish(&run);
    }
}

/* An agent says whom it follows, and who is waited for. */
static void test_agent(void **unused)
{
    struct run run;

    (void)unused;
    assert_true(settings_follows_agent(good(&run, NODE "follow: agent, ack: replica}\n" FEED, "")));
    assert_null(run.settings->replication.ack_by);
    finish(&run);
    assert_false(settings_follows_agent(good(&run, NODE "follow: 'agent:1'}\n" FEED, "")));
    finish(&run);
    start(&run, NODE "follow: agent, ack-by: one}\n" FEED, "");
    assert_int_equal(run.action, SETTINGS_EXIT_ERROR);
    assert_non_null(strstr(run.err,
                           "error: replication.ack-by does not go with follow: agent, which "
                           "says who is waited for: leave it out\n"));
    finish(&run);
    start(&run, "replication: {follow: agent}\n" FEED, "");
    assert_non_null(strstr(run.err, "error: replication.follow needs replication.name"));
    finish(&run);
}

/* -p is of this node's own addresses. */
static void test_port_flag(void **unused)
{
    struct run run;

    (void)unused;
    assert_string_equal(
        good(&run, NODE "follow: one, stale-after: 2min}\n" FEED, "-p 77")->replication.follow,
        "one:11211");
    assert_int_equal(run.settings->replication.stale_after_s, 120);
    finish(&run);
}

static void write_users(const char *text, mode_t mode)
{
    write_file("user", text, strlen(text));
    assert_int_equal(chmod("user", mode), 0);
}

static void test_login(void **unused)
{
    static const char yaml[] = NODE "follow: one, credentials: user}\n" FEED;
    struct run run;

    (void)unused;
    write_users("two:a b:c\n", 0640);
    assert_string_equal(good(&run, yaml, "")->replication.login, "two a b:c");
    finish(&run);
    write_users("two:secret\n", 0644);
    start(&run, yaml, "");
    assert_int_equal(run.action, SETTINGS_EXIT_ERROR);
    assert_non_null(strstr(run.err, "error: replication.credentials user: every user of this "
                                    "machine can read or change the password (mode 0644); do: "
                                    "chmod o-rwx user\n"));
    finish(&run);
    write_users("two:secret\none:secret\n", 0600);
    start(&run, yaml, "");
    assert_non_null(
        strstr(run.err, "error: replication.credentials user has 2 users: one is needed\n"));
    finish(&run);
    write_users("node two:secret\n", 0600);
    start(&run, yaml, "");
    assert_non_null(strstr(
        run.err, "error: replication.credentials user has a user with a blank in its name\n"));
    finish(&run);
    assert_int_equal(unlink("user"), 0);
}

static void put_name(void *context, const char *name, const char *text)
{
    char *names = context;

    (void)text;
    strcat(strcat(names, name), " ");
}

static void test_restart(void **unused)
{
    struct run now, next;
    char names[256] = "", changed[256] = "";

    (void)unused;
    good(&now, NODE "follow: one, stale-after: 1s}\n" FEED, "");
    good(&next, NODE "follow: other, stale-after: 2s}\n" FEED, "");
    assert_int_equal(settings_need_restart(now.settings, next.settings, put_name, names), 1);
    assert_string_equal(names, "replication.follow ");
    assert_int_equal(settings_changes(now.settings, next.settings, put_name, changed), 1);
    assert_string_equal(changed, "replication.stale-after ");
    finish(&now);
    finish(&next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses), cmocka_unit_test(test_agent),
        cmocka_unit_test(test_port_flag), cmocka_unit_test(test_login),
        cmocka_unit_test(test_restart),
    };

    return cmocka_run_group_tests(tests, settings_run_enter, settings_run_leave);
}
