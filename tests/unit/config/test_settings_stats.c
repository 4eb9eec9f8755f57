/* test_settings_stats.c: a configuration as statistics, and compared with the next: what a reload
 * changes, and what needs a restart. */
#include "config/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/unit/config/settings_run.h"

struct stats {
    char text[32768];
    size_t length;
};

static void add_stat(void *context, const char *name, const char *text)
{
    struct stats *stats = context;

    stats->length += (size_t)snprintf(stats->text + stats->length,
                                      sizeof(stats->text) - stats->length, "%s=%s\n", name, text);
}

static void test_stats(void **unused)
{
    static const char *const wanted[] = {
        "maxbytes=1073741824\n",
        "maxconns=1024\n",
        "tcpport=7\n",
        "udpport=0\n",
        "inter=127.0.0.1\n",
        "verbosity=1\n",
        "oldest=0\n",
        "evictions=off\n",
        "domain_socket=NULL\n",
        "umask=700\n",
        "num_threads=2\n",
        "cas_enabled=yes\n",
        "client_flags_size=4\n",
        "reqs_per_event=256\n",
        "tcp_backlog=1024\n",
        "flush_enabled=no\n",
        "dump_enabled=yes\n",
        "lru_crawler=no\n",
        "hot_max_factor=0.00\n",
        "idle_timeout=0\n",
        "item_size_max=4096\n",
        "listen=[notls:127.0.0.1:7]\n",
        "ssl_enabled=no\n",
        "ssl_chain_cert=/c\n",
        "ssl_key=/k\n",
        "ssl_verify_mode=3\n",
        "ssl_keyformat=2\n",
        "ssl_ciphers=NULL\n",
        "ssl_ca_cert=NULL\n",
        "ssl_min_version=tlsv1.3\n",
        "memory=1GiB\n",
        "user=NULL\n",
        "data=NULL\n",
        "journal_sync=everysec\n",
        "journal_segment=256MiB\n",
        "checkpoint_every=600000\n",
        "checkpoint_journal=1GiB\n",
        "space_a_b_table_size=16MiB\n",
        "space_a_b_slots={like:20}\n",
    };
    struct stats stats = {.length = 0};
    struct run run;

    (void)unused;
    good(&run, "spaces: {a-b: {kind: counter, slots: {like: 20}}}",
         "-t 2 -m 1024 -l notls:127.0.0.1:7 -v --set tls.enabled=no "
         "-o ssl_chain_cert=/c,ssl_key=/k,ssl_verify_mode=2,ssl_keyformat=2,ssl_min_version=3");
    settings_each(run.settings, add_stat, &stats);
    for (size_t i = 0; i < LENGTH(wanted); i++) {
        const char *at = strstr(stats.text, wanted[i]);
        if (at == NULL || (at != stats.text && at[-1] != '\n')) {
            fail_msg("no line %s in\n%s", wanted[i], stats.text);
        }
    }
    for (char *line = stats.text, *end; *line != '\0'; line = end + 1) {
        size_t name =
            strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        end = strchr(line, '\n');
        assert_int_equal(line[name], '=');
        line[name] = '\0';
        /* Each name once: a tool keeps them in a map. */
        for (char *other = end + 1; *other != '\0'; other = strchr(other, '\n') + 1) {
            assert_true(strncmp(other, line, name) != 0 || other[name] != '=');
        }
    }
    finish(&run);
}

static void test_need_restart(void **unused)
{
    struct stats stats = {.length = 0};
    struct run now, next;

    (void)unused;
    good(&now,
         "threads: 2\ndata: /x\njournal: {sync: never}\nspaces:\n  a: {kind: counter, slots: {x: "
         "2}}\n"
         "  u: {kind: counter, slots: {x: 2}, ids: any}\n"
         "  gone: {kind: counter, slots: {x: 2}}\n",
         "");
    good(&next,
         "threads: 3\nmax-connections: 9\ndata: /y\njournal: {sync: always}\n"
         "checkpoint: {every: 1s, journal: 1M}\nspaces:\n  new: {kind: counter, slots: {x: 2}}\n"
         "  a: {kind: counter, slots: {x: 3, y: 2}, table-size: 1M, role: cache, key: 'q{id}',\n"
         "      tables: 2}\n"
         "  u: {kind: counter, slots: {x: 3}, ids: any, table-size: 1M, role: cache}\n",
         "");
    assert_int_equal(settings_need_restart(now.settings, next.settings, add_stat, &stats), 4);
    assert_string_equal(stats.text, "threads=old=2 new=3\n"
                                    "data=old=/x new=/y\n"
                                    "journal.sync=old=never new=always\n"
                                    "spaces.u.table-size=old=16MiB new=1MiB\n");
    stats.length = 0;
    assert_int_equal(settings_changes(now.settings, next.settings, add_stat, &stats), 3);
    assert_string_equal(stats.text, "max-connections=old=1024 new=9\n"
                                    "checkpoint.every=old=600000 new=1000\n"
                                    "checkpoint.journal=old=1GiB new=1MiB\n");
    stats.length = 0;
    assert_int_equal(settings_need_restart(now.settings, now.settings, add_stat, &stats), 0);
    assert_int_equal(settings_changes(now.settings, now.settings, add_stat, &stats), 0);
    finish(&now);
    finish(&next);
}

/* Spaces as they run, and what a file says next. */
static const char running[] =
    "spaces:\n  g: {kind: counter, slots: {x: 2}, role: cache}\n"
    "  p: {kind: phantom}\n  u: {kind: counter, slots: {x: 2}, ids: any}\n"
    "  w: {kind: counter, slots: {x: 2}, tables: 9}\n";
static const char wanted[] =
    "spaces:\n  g: {kind: counter, slots: {x: 2, y: 3}, role: store, table-size: 1M, tables: 3,\n"
    "      late-room: 0.5, extend-memory: 8K, aux-memory: 16K, value-flags: 5, id-spacing: 7}\n"
    "  p: {kind: phantom, false-positives: 0.01, deletes: yes, exceptions-memory: 8K}\n"
    "  u: {kind: counter, slots: {x: 3}, ids: any, max-id: 5, table-size: 1M, aux-memory: 8K}\n"
    "  w: {kind: counter, slots: {x: 2}, ids: any}\n";

static void test_space_changes(void **unused)
{
    static const char *const told[] = {
        "slots=old={x:2} new={x:2,y:3} since=new_table\nrole=old=cache new=store\n"
        "table-size=old=16MiB new=1MiB since=next_table\n"
        "tables=old=5 new=3 since=next_table\n"
        "oldest=old=recycle new=refuse since=next_table\n"
        "late-room=old=auto new=0.5 since=next_table\n"
        "extend-memory=old=auto new=8KiB since=next_table\n"
        "aux-memory=old=auto new=16KiB since=next_table\n"
        "value-flags=old=0 new=5\n",
        ("false-positives=old=0.001 new=0.01 since=next_table\ndeletes=old=no new=yes\n"
         "exceptions-memory=old=auto new=8KiB since=next_table\n"),
        "slots=old={x:2} new={x:3}\n",
        "",
    };
    struct run now, next;

    (void)unused;
    good(&now, running, "");
    good(&next, wanted, "");
    for (size_t i = 0; i < LENGTH(told); i++) {
        const struct space_settings *from = &now.settings->spaces[i];
        const struct space_settings *to = &next.settings->spaces[i];
        struct space_settings taken;
        struct stats stats = {.length = 0};
        size_t count = settings_space_changes(from, to, add_stat, &stats);

        assert_string_equal(stats.text, told[i]);
        assert_int_equal(count, settings_space_changes(from, to, NULL, NULL));
        settings_space_next(from, to, &taken); /* all that was told, and nothing else */
        assert_int_equal(settings_space_changes(from, &taken, NULL, NULL), count);
        assert_int_equal(settings_space_changes(&taken, to, NULL, NULL), 0);
        assert_true(taken.ids == from->ids && taken.max_id == from->max_id);
        assert_true(taken.id_spacing == from->id_spacing);
    }
    finish(&now);
    finish(&next);
}

/* Where ids are to become any, the tables stay as they are until the restart. */
static void test_space_keeps_tables(void **unused)
{
    struct space_settings taken;
    struct run now, next;

    (void)unused;
    good(&now, running, "");
    good(&next, wanted, "");
    settings_space_next(&now.settings->spaces[3], &next.settings->spaces[3], &taken);
    assert_int_equal(taken.row.tables, 9);
    settings_space_next(&now.settings->spaces[2], &next.settings->spaces[2], &taken);
    assert_true(taken.row.table_bytes == 16 * MIB && taken.aux_bytes == 0 &&
                taken.slots[0].bits == 3);
    finish(&now);
    finish(&next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stats),
        cmocka_unit_test(test_need_restart),
        cmocka_unit_test(test_space_changes),
        cmocka_unit_test(test_space_keeps_tables),
    };

    return cmocka_run_group_tests(tests, settings_run_enter, settings_run_leave);
}
