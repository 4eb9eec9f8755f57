/* test_settings.c: values, flags and their precedence, memory, what is printed, reload. */
#include "config/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "row/row.h"
#include "tests/unit/config/settings_run.h"

/* ---- values ---- */

static void test_values(void **unused)
{
    struct settings *settings;
    const struct space_settings *space;
    struct run run;

    (void)unused;
    settings =
        good(&run,
             "listen: [127.0.0.1, '[::1]:7', /tmp/x.sock]\nthreads: 3\nmemory: 512M\n"
             "idle-timeout: 1min\nflush-all: true\nuser: 'a \"b\" \\'\nspaces:\n"
             "  u-1: {kind: counter, key: 'n_{id}', slots: {b: 2, a: 64}, ids: any, max-id: 77,\n"
             "        role: cache, table-size: 64k, value-flags: 9}\n"
             "  g: {kind: counter, slots: {a: 9}, role: cache, tables: 3, late-room: 5%}\n",
             "");
    space = &settings->spaces[0];
    assert_int_equal(settings->listen_count, 3);
    assert_string_equal(settings->listen[0], "127.0.0.1:11211");
    assert_string_equal(settings->listen[1], "[::1]:7");
    assert_string_equal(settings->listen[2], "/tmp/x.sock");
    assert_int_equal(settings->threads, 3);
    assert_true(settings->memory_bytes == 512 * MIB);
    assert_int_equal(settings->idle_timeout_s, 60);
    assert_true(settings->flush_all);
    assert_string_equal(settings->user, "a \"b\" \\");
    assert_string_equal(space->name, "u-1");
    assert_int_equal(space->slot_count, 2);
    assert_string_equal(space->slots[0].name, "b");
    assert_int_equal(space->slots[1].bits, 64);
    assert_true(space->ids == SPACE_IDS_ANY && space->max_id == 77);
    assert_true(space->role == SPACE_CACHE && space->oldest == SPACE_OLDEST_REFUSE);
    assert_int_equal(space->row.table_bytes, 65536);
    assert_int_equal(space->value_flags, 9);
    assert_true(space[1].oldest == SPACE_OLDEST_RECYCLE && space[1].row.late_room == 0.05);
    assert_int_equal(space[1].row.tables, 3);
    finish(&run);
}

static void test_built_in(void **unused)
{
    const struct space_settings *feed, *liked, *other;
    struct settings *settings;
    struct run run;

    (void)unused;
    settings = good(&run, NULL, "");
    assert_int_equal(settings->space_count, 3);
    feed = &settings->spaces[0];
    liked = &settings->spaces[1];
    other = &settings->spaces[2];
    assert_string_equal(liked->name, "liked");
    assert_true(liked->kind == SPACE_PHANTOM && liked->deletes);
    assert_string_equal(liked->key, "liked:{id}:{member}");
    assert_int_equal(other->kind, SPACE_PLAIN);
    assert_true(other->memory_bytes == 64 * MIB);
    assert_string_equal(feed->key, "feed:{id}");
    assert_int_equal(feed->slot_count, 4);
    assert_true(feed->row.table_bytes == 16 * MIB && feed->oldest == SPACE_OLDEST_REFUSE);
    assert_true(feed->row.late_room < 0 && feed->row.tables == 5 && feed->id_spacing == 0);
    assert_true(settings->memory_bytes == 4096 * MIB);
    assert_true(settings->threads >= 1 && settings->log_level == LOG_LEVEL_INFO);
    assert_string_equal(settings->listen[0], "127.0.0.1:11211");
    assert_string_equal(settings->version_shown, "1.6.45");
    assert_null(settings->user);
    assert_null(settings->data);
    finish(&run);
}

/* ---- flags ---- */

static void test_precedence(void **unused)
{
    struct settings *settings;
    struct run run;

    (void)unused;
    settings = good(&run, "threads: 2\nmax-connections: 7\nbacklog: 9\n" FEED,
                    "-c 8 --set threads=3 --set max-connections=5 --set spaces.feed.slots.like=9 "
                    "--set spaces.feed.slots.new=3 --set spaces.feed.key=x:{id} "
                    "--set spaces.b={kind:~counter,~slots:~{b:~4}} --set listen=127.0.0.1:0");
    assert_int_equal(settings->max_connections, 8);
    assert_int_equal(settings->threads, 3);
    assert_int_equal(settings->backlog, 9);
    assert_int_equal(settings->spaces[0].slot_count, 2);
    assert_int_equal(settings->spaces[0].slots[0].bits, 9);
    assert_string_equal(settings->spaces[0].slots[1].name, "new");
    assert_string_equal(settings->spaces[0].key, "x:{id}");
    assert_string_equal(settings->spaces[1].name, "b");
    assert_string_equal(settings->listen[0], "127.0.0.1:0");
    finish(&run);
}

static void test_memcached_flags(void **unused)
{
    struct settings *settings;
    struct run run;

    (void)unused;
    settings =
        good(&run, NULL,
             "-d -m 64 -U 0 -c 99 -t 2 -R 20 -b 5 -a 0770 -u nobody -P /tmp/p -vv -A -F -k -r ");
    assert_true(settings->daemonize && settings->shutdown_command && settings->lock_memory);
    assert_true(settings->core_files && !settings->flush_all);
    assert_true(settings->memory_bytes == 64 * MIB);
    assert_true(settings->spaces[0].row.table_bytes == 2 * MIB);
    assert_int_equal(settings->max_connections, 99);
    assert_int_equal(settings->requests_per_turn, 20);
    assert_int_equal(settings->backlog, 5);
    assert_int_equal(settings->unix_mode, 0770);
    assert_int_equal(settings->log_level, LOG_LEVEL_COMMANDS);
    assert_string_equal(settings->user, "nobody");
    assert_string_equal(settings->pidfile, "/tmp/p");
    finish(&run);
    settings = good(&run, "flush-all: yes\n" FEED,
                    "--daemon --memory-limit=150 --disable-flush-all --verbose=vv --conn-limit 3");
    assert_true(settings->daemonize && !settings->flush_all && settings->max_connections == 3);
    assert_int_equal(settings->log_level, LOG_LEVEL_STATES);
    assert_true(settings->list_keys);
    assert_true(settings->spaces[0].row.table_bytes ==
                16 * MIB); /* of the file: -m does not size it */
    finish(&run);
    settings = good(&run, NULL, "-m 1g -M -W -X -B ascii --set spaces.feed.role=cache");
    assert_true(settings->memory_bytes == 1024 * MIB);
    assert_true(settings->spaces[0].row.table_bytes == 32 * MIB);
    assert_true(settings->spaces[0].oldest == SPACE_OLDEST_REFUSE);
    finish(&run);
    settings = good(&run, /* -M says nothing where no table follows another */
                    "spaces:\n  a: {kind: counter, slots: {x: 9}, ids: any}\n"
                    "  b: {kind: phantom, role: cache, oldest: recycle}\n",
                    "-M");
    assert_true(settings->spaces[1].oldest == SPACE_OLDEST_REFUSE);
    finish(&run);
    settings = good(&run, NULL, "-m 64 --set spaces.feed.table-size=4M");
    assert_true(settings->spaces[0].row.table_bytes == 4 * MIB);
    finish(&run);
}

static void test_addresses(void **unused)
{
    static const struct {
        const char *yaml, *flags, *first, *second;
    } cases[] = {
        {NULL, "-p 7", "127.0.0.1:7", NULL},
        {NULL, "-p 0 -l 127.0.0.1,[::1]:9", "127.0.0.1:0", "[::1]:9"},
        {NULL, "-l ::1 -l localhost:5 -p 8", "[::1]:8", "localhost:5"},
        {NULL, "-l 127.0.0.1:0,127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"},
        {NULL, "-s /tmp/a.sock -p 7 -l 127.0.0.1", "/tmp/a.sock", NULL},
        {"listen: ['[::1]:1', 127.0.0.2]\n" FEED, "", "[::1]:1", "127.0.0.2:11211"},
        {"listen: ['[::1]:1', 127.0.0.2]\n" FEED, "-p 5", "[::1]:5", "127.0.0.2:5"},
        {"listen: 127.0.0.3:1, 127.0.0.4:1\n" FEED, "", "127.0.0.3:1", "127.0.0.4:1"},
        {"listen: [127.0.0.3:1]\n" FEED, "-l 127.0.0.4:1", "127.0.0.4:1", NULL},
        {"listen: ['notls:127.0.0.3', 'notls:[::1]:7']\n" FEED, "", "notls:127.0.0.3:11211",
         "notls:[::1]:7"},
    };

    (void)unused;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct run run;
        struct settings *settings = good(&run, cases[i].yaml, cases[i].flags);
        assert_int_equal(settings->listen_count, cases[i].second ? 2 : 1);
        assert_string_equal(settings->listen[0], cases[i].first);
        if (cases[i].second != NULL) {
            assert_string_equal(settings->listen[1], cases[i].second);
        }
        finish(&run);
    }
    refused(
        "listen: [127.0.0.1:1, 127.0.0.1:2]\n" FEED, "-p 9",
        "t.yaml:1:23: error: listen address 127.0.0.1:9 given twice (-p replaces all ports: use "
        "-l)\n    listen: [127.0.0.1:1, 127.0.0.1:2]\n                          ^\n");
}

static void test_relative_socket(void **unused)
{
    char here[4096], wanted[8192];
    struct run run;

    (void)unused;
    assert_non_null(getcwd(here, sizeof(here)));
    snprintf(wanted, sizeof(wanted), "%s/a.sock", here);
    assert_string_equal(good(&run, NULL, "-s a.sock")->listen[0], wanted);
    finish(&run);
}

static void test_warnings(void **unused)
{
    static const char ignored[] =
        "rollcalld: warning: ignored, without meaning here: -f, -n, -L, -D, "
        "-I, -C, -e, -o hashpower, -o modern\n";
    struct run run;

    (void)unused;
    start(&run, NULL,
          "-f 1.25 -n 48 -L -D : -I 1m -C -e /x -o hashpower=3,modern,idle_timeout=9 -l 127.0.0.1");
    assert_string_equal(run.err, ignored);
    assert_int_equal(run.settings->idle_timeout_s, 9);
    finish(&run);
}

static void test_open_addresses(void **unused)
{
    struct run run;

    (void)unused;
    start(&run, "listen: [127.0.0.1, 0.0.0.0, 10.0.0.1]\n" FEED, "");
    assert_string_equal(
        run.err, "t.yaml:1:21: error: 0.0.0.0 is reached from other machines, and whoever reaches "
                 "it can change everything: give an auth-file (-Y), TLS with tls.verify: require, "
                 "or say --allow-open\n"
                 "    listen: [127.0.0.1, 0.0.0.0, 10.0.0.1]\n                        ^\n");
    assert_int_equal(run.action, SETTINGS_EXIT_ERROR);
    finish(&run);
    good(&run, "listen: [0.0.0.0]\nallow-open: yes\n" FEED, "");
    finish(&run);
    good(&run, "listen: [0.0.0.0]\n" FEED, "--allow-open");
    finish(&run);
}

static void test_bad_flags(void **unused)
{
    static const struct {
        const char *flags, *words;
    } cases[] = {
        {"-q", "-q: unknown flag; see --help"},
        {"--portt 3", "--portt: unknown flag; did you mean --port?\n"
                      "rollcalld: '3': not a flag; see --help"},
        {"--nonsense", "--nonsense: unknown or ambiguous flag; see --help"},
        {"-p", "-p needs PORT"},
        {"--daemon=x", "-d takes no argument"},
        {"-p 65536", "-p: port must be 0 to 65535, not '65536'"},
        {"-U 11211", "-U: there is no UDP here: it takes 0 only"},
        {"-t 0", "-t: threads must be auto or 1 to 64, not '0'"},
        {"-m lots", "-m: memory must be a size such as 64KiB, 16MiB or 4GiB, not 'lots'"},
        {"-B x", "-B: must be auto, ascii or binary"},
        {"-Y /nowhere/f", "-Y: auth-file /nowhere/f: No such file or directory"},
        {"-Z", "-Z: TLS needs tls.certificate (-o ssl_chain_cert=FILE)\n"
               "rollcalld: -Z: TLS needs tls.key (-o ssl_key=FILE)"},
        {"-o ssl_key=x", "-o: tls.key is given, and TLS is not enabled: say tls.enabled: yes (-Z) "
                         "or no"},
        {"-o ssl_key", "-o: ssl_key needs a value"},
        {"--set tls.enabled=no -o ssl_verify_mode=4",
         "-o: tls.verify must be none, request, require or once, not '4'"},
        {"--set tls.enabled=no -o ssl_min_version=1",
         "-o: tls.min-version must be 1.2 or 1.3, not '1.1'"},
        {"-Z -o ssl_chain_cert=x,ssl_key=y,ssl_verify_mode=1",
         "-o: tls.verify needs tls.ca (-o ssl_ca_cert=FILE): who signs clients' certificates"},
        {"-l notls:10.0.0.1:1 --set tls.enabled=no -o ssl_verify_mode=2",
         "-l: 10.0.0.1 is reached from other machines, and whoever reaches it can change "
         "everything: give an auth-file (-Y), TLS with tls.verify: require, or say --allow-open"},
        {"-l notls:127.0.0.1:1,127.0.0.1:1", "-l: listen address 127.0.0.1:1 given twice"},
        {"-l notls:/tmp/x", "-l: an address must be host:port, [v6]:port or /path.sock, not "
                            "'notls:/tmp/x'"},
        {"--set x", "--set x: must be KEY=VALUE, such as memory=1GiB"},
        {"--set thread=1", "--set thread=1: unknown key 'thread'; did you mean 'threads'?"},
        {"--set data=", "--set data=: data has no value: it must be text of 1 to 400 bytes"},
        {"--set cold=1", "--set cold=1: cold must be a mapping of its keys, not a single value"},
        {"--set journal.snc=always",
         "--set journal.snc=always: unknown key 'journal.snc'; did you mean 'journal.sync'?"},
        {"--set journal.sync=often",
         "--set journal.sync=often: journal.sync must be never, everysec or always, not 'often'"},
        {"--set journal.sync.x=1",
         "--set journal.sync.x=1: no such key: only spaces have keys below them"},
        {"--set journal.segment=1025K",
         "--set journal.segment=1025K: journal.segment must be a multiple of 4KiB"},
        {"--set journal=always",
         "--set journal=always: journal must be a mapping of its keys, not a single value"},
        {"--set a.b=1", "--set a.b=1: no such key: only spaces have keys below them"},
        {"--set spaces.feed.ids.x=1",
         "--set spaces.feed.ids.x=1: no such key: only slots have keys below them"},
        {"--set spaces.feed.slots=", "--set spaces.feed.slots=: has no value"},
        {"--set spaces.feed.slots.x=1",
         "--set spaces.feed.slots.x=1: bits of slot x must be 2 to 64, not '1'"},
    };

    (void)unused;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char *words;
        assert_true(asprintf(&words, "rollcalld: %s\n", cases[i].words) >= 0);
        refused(NULL, cases[i].flags, words);
        free(words);
    }
}

/* ---- memory ---- */

static void test_data(void **unused)
{
    char here[4096], wanted[8192];
    struct settings *settings;
    struct run run;

    (void)unused;
    settings = good(&run, FEED, "");
    assert_null(settings->data);
    assert_int_equal(settings->journal.sync, JOURNAL_SYNC_EVERYSEC);
    assert_true(settings->journal.segment_bytes == 256 * MIB);
    assert_true(settings->journal.buffer_bytes == 64 * MIB);
    assert_true(settings->checkpoint.every_ms == 600000);
    assert_true(settings->checkpoint.journal_bytes == 1024 * MIB);
    finish(&run);
    settings = good(&run,
                    "data: /var/x\njournal: {sync: always, segment: 1M, buffer: 256K}\n"
                    "checkpoint:\n  every: 100ms\n" FEED,
                    "--set checkpoint.journal=1M --set journal={sync:~never}");
    assert_string_equal(settings->data, "/var/x");
    assert_int_equal(settings->journal.sync, JOURNAL_SYNC_NEVER);
    assert_true(settings->journal.segment_bytes == MIB);
    assert_true(settings->journal.buffer_bytes == MIB / 4);
    assert_true(settings->checkpoint.every_ms == 100);
    assert_true(settings->checkpoint.journal_bytes == MIB);
    finish(&run);
    settings = good(&run, FEED, "--set data=here --set checkpoint.every=0");
    assert_non_null(getcwd(here, sizeof(here)));
    snprintf(wanted, sizeof(wanted), "%s/here", here);
    assert_string_equal(settings->data, wanted);
    assert_true(settings->checkpoint.every_ms == 0);
    finish(&run);
}

/* Default of oldest: with data its tables leave memory, where ids grow. */
static void test_oldest_with_data(void **unused)
{
    static const char spaces[] = "data: /x\nspaces:\n"
                                 "  a: {kind: phantom}\n"
                                 "  b: {kind: phantom, role: cache, dumps-max: 7}\n"
                                 "  c: {kind: phantom, ids: any, table-size: 64K}\n"
                                 "  d: {kind: phantom, oldest: recycle}\n"
                                 "  e: {kind: counter, slots: {a: 2}, ids: any}\n"
                                 "  f: {kind: counter, slots: {a: 2}, ids: any, oldest: dump}\n";
    struct counter_config users;
    struct phantom_config config;
    struct run run;

    (void)unused;
    good(&run, spaces, "");
    const struct space_settings *space = run.settings->spaces;

    assert_true(space[0].oldest == SPACE_OLDEST_DUMP && space[1].oldest == SPACE_OLDEST_DUMP);
    assert_true(space[2].oldest == SPACE_OLDEST_REFUSE && space[3].oldest == SPACE_OLDEST_RECYCLE);
    assert_true(space[4].oldest == SPACE_OLDEST_REFUSE && space[5].oldest == SPACE_OLDEST_DUMP);
    settings_counter_config(&space[5], 5, &users);
    assert_true(users.row.dump && users.row.any_ids);
    settings_counter_config(&space[4], 4, &users);
    assert_true(!users.row.dump && users.row.any_ids);
    settings_phantom_config(&space[1], 1, &config);
    assert_true(config.row.dump && !config.row.recycle && config.row.dumps_max == 7);
    settings_phantom_config(&space[3], 3, &config);
    assert_true(!config.row.dump && config.row.recycle);
    finish(&run);
}

static void test_long_data(void **unused)
{
    char flags[SETTINGS_DATA_PATH_MAX + 16] = "--set data=";
    struct run run;

    (void)unused;
    memset(flags + strlen(flags), 'x', SETTINGS_DATA_PATH_MAX);
    start(&run, FEED, flags);
    assert_int_equal(run.action, SETTINGS_EXIT_ERROR);
    assert_non_null(strstr(run.err, ": data: the path has more than 400 bytes\n"));
    finish(&run);
}

/* The journal's buffer counts, if there is a journal, and cold reads, if a space dumps. */
static void test_memory_of_data(void **unused)
{
    struct run without, with;

    (void)unused;
    good(&without, FEED, "-t 2");
    good(&with, FEED, "-M -t 2 --set data=/x --set journal.buffer=8M");
    assert_true(settings_memory_sum(with.settings, NULL) ==
                settings_memory_sum(without.settings, NULL) + 8 * MIB);
    finish(&with);
    good(&with, FEED, "-t 2 --set data=/x --set journal.buffer=8M --set cold.overlay=5M");
    assert_true(settings_dumps(with.settings) && !settings_dumps(without.settings));
    assert_true(settings_cold_bytes(with.settings) > (64 + 4096 * 4096ull / MIB + 5) * MIB);
    assert_true(settings_memory_sum(with.settings, NULL) ==
                settings_memory_sum(without.settings, NULL) + 8 * MIB +
                    settings_cold_bytes(with.settings));
    finish(&with);
    finish(&without);
    start(&with, FEED, "-t 2 -m 120 --set data=/x");
    assert_int_equal(with.action, SETTINGS_EXIT_ERROR);
    assert_non_null(strstr(with.err, "    buffer of the journal "));
    finish(&with);
}

static void test_memory(void **unused)
{
    char *text = NULL;
    size_t length;
    struct run run;
    FILE *out;
    uint64_t sum;

    (void)unused;
    good(&run, FEED, "-t 2 -m 1024");
    out = open_memstream(&text, &length);
    sum = settings_memory_sum(run.settings, out);
    fclose(out);
    assert_true(settings_buffer_bytes(run.settings) == 64 * MIB);
    assert_true(sum > 64 * MIB + 5 * 16 * MIB && sum < 158 * MIB);
    assert_true(sum == settings_memory_sum(run.settings, NULL));
    assert_non_null(strstr(text, "space feed: 5 x 16MiB and pools"));
    assert_non_null(strstr(text, "buffers of connections"));
    assert_non_null(strstr(text, "2 workers"));
    free(text);
    finish(&run);

    /* 16 followers of 1.3125 MiB each, and what follows takes two of those */
    good(&run, "data: /d\nreplication: {name: a}\n" FEED, "-t 2 -m 1024");
    uint64_t named = settings_memory_sum(run.settings, NULL);

    finish(&run);
    good(&run, "data: /d\n" FEED, "-t 2 -m 1024");
    assert_true(named - settings_memory_sum(run.settings, NULL) == 21 * MIB);
    finish(&run);
    good(&run, "data: /d\nreplication: {name: a, follow: \"127.0.0.1:1\"}\n" FEED, "-t 2 -m 1024");
    assert_true(settings_memory_sum(run.settings, NULL) - named == 21 * MIB / 8);
    finish(&run);

    /* half of what it needs */
    start(&run, "memory: 52MiB\nthreads: 2\n" FEED, "");
    assert_int_equal(run.action, SETTINGS_EXIT_ERROR);
    assert_int_equal(strncmp(run.err,
                             "t.yaml:1:9: error: memory of 52MiB is too little: this configuration "
                             "holds up to ",
                             78),
                     0);
    assert_non_null(strstr(run.err, "    memory: 52MiB\n            ^\n    space feed: 5 x 16MiB"));
    assert_non_null(strstr(run.err, "    together "));
    finish(&run);
    start(&run, FEED, "-m 20");
    assert_int_equal(strncmp(run.err, "rollcalld: -m: memory of 20MiB is too little", 44), 0);
    finish(&run);
}

static void test_counter_config(void **unused)
{
    struct counter_config config;
    struct run run;

    (void)unused;
    good(&run,
         "spaces: {s: {kind: counter, slots: {a: 2, b: 9}, id-spacing: 5, role: cache,\n"
         " table-size: 1M, extend-memory: 64K, aux-memory: 8K, value-flags: 3}}",
         "");
    settings_counter_config(&run.settings->spaces[0], 7, &config);
    assert_int_equal(config.space, 7);
    assert_int_equal(config.slot_count, 2);
    assert_string_equal(config.slots[1].name, "b");
    assert_int_equal(config.slots[1].bits, 9);
    assert_true(!config.row.any_ids && config.id_spacing == 5 && config.role_cache);
    assert_true(config.row.table_bytes == MIB && config.extend_bytes == 65536);
    assert_true(config.aux_bytes == 8192 && config.value_flags == 3);
    assert_true(config.row.tables == 5 && config.row.recycle &&
                config.row.late_room == ROW_LATE_AUTO);
    finish(&run);
    good(&run,
         "spaces: {s: {kind: counter, slots: {a: 2}, tables: 4, late-room: 0.25},\n"
         " u: {kind: counter, slots: {a: 2}, ids: any, role: cache}}",
         "");
    settings_counter_config(&run.settings->spaces[0], 0, &config);
    assert_true(config.row.tables == 4 && !config.row.recycle && config.row.late_room == 0.25);
    settings_counter_config(&run.settings->spaces[1], 1, &config);
    assert_true(config.row.tables == 1 && !config.row.recycle && config.row.late_room == 0);
    finish(&run);
}

static void test_phantom_config(void **unused)
{
    struct phantom_config config;
    struct run run;

    (void)unused;
    good(&run, "spaces: {s: {kind: phantom, tables: 4, oldest: recycle, late-room: 10%}}", "");
    settings_phantom_config(&run.settings->spaces[0], 3, &config);
    assert_int_equal(config.space, 3);
    assert_true(config.row.tables == 4 && config.row.recycle && config.row.late_room == 0.1);
    finish(&run);
    good(&run, "spaces: {s: {kind: phantom, ids: any}}", "");
    settings_phantom_config(&run.settings->spaces[0], 3, &config);
    assert_true(config.row.any_ids && config.row.tables == 1 && !config.row.recycle &&
                config.row.late_room == 0);
    finish(&run);
}

/* ---- printing ---- */

static void test_exits(void **unused)
{
    static const struct {
        const char *flags, *begins;
    } cases[] = {
        {"-V", "rollcalld "},
        {"--version -q", "rollcalld "},
        {"-h", "Usage: rollcalld "},
        {"-i", "rollcalld "},
        {"--help", "Usage: "},
        {"--check-config", "the built-in configuration is good\n"},
        {"--print-config", "listen: [\"127.0.0.1:11211\"]\n"},
    };

    (void)unused;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct run run;
        start(&run, NULL, cases[i].flags);
        assert_int_equal(run.action, SETTINGS_EXIT_OK);
        assert_string_equal(run.err, "");
        assert_int_equal(strncmp(run.out, cases[i].begins, strlen(cases[i].begins)), 0);
        finish(&run);
    }
    refused("threads: 0\n" FEED, "--check-config",
            "t.yaml:1:10: error: threads must be auto or 1 to 64, not '0'\n"
            "    threads: 0\n             ^\n");
}

/* What --help must name, and what it must not: what does not exist yet. */
static void test_help(void **unused)
{
    static const char *const named[] = {
        "--config",        "--set",     "-p, --port=", "table-size",   "-vv",
        "max-connections", "late-room", "data  ",      "journal.sync", "checkpoint.every",
        "cold.queue",      "dumps-max", "dump, ",      "auth-file",    "item-max"};
    static const char *const hidden[] = {"--print-sample", "--print-man"};
    struct run run;

    (void)unused;
    start(&run, NULL, "--help");
    for (size_t i = 0; i < LENGTH(named); i++) {
        assert_non_null(strstr(run.out, named[i]));
    }
    for (size_t i = 0; i < LENGTH(hidden); i++) {
        assert_null(strstr(run.out, hidden[i]));
    }
    finish(&run);
}

/* What --print-config prints loads to the same settings, whatever they are. */
static void test_round_trip(void **unused)
{
    static const char odd[] =
        "listen: ['[::1]:7', \"/tmp/a b.sock\", 127.0.0.1:0]\n"
        "threads: 3\nmemory: 2000000001\nuser: \"a\\\"b\\\\c: #d\"\n"
        "idle-timeout: 1h\nunix-mode: 0\nlog-level: debug\n"
        "data: '/a b'\ncheckpoint: {every: 1500ms, journal: 2M}\n"
        "journal: {sync: never, segment: 1028K}\n"
        "spaces:\n"
        "  'no': {kind: counter, slots: {'yes': 2, '1': 64}, forget: ['no', b], ids: any,\n"
        "         max-id: 9223372036854775807}\n"
        "  '12': {kind: counter, slots: {a: 3}, key: '{id}', id-spacing: 7,\n"
        "         role: cache, oldest: refuse, table-size: 64K, tables: 7,\n"
        "         late-room: 0.123456789}\n"
        "  liked: {kind: phantom, deletes: yes, false-positives: 0.0123,\n"
        "          ids: any, max-id: 77, exceptions-memory: 1M}\n";
    static const char *const yamls[] = {NULL, FEED, odd};

    (void)unused;
    for (size_t i = 0; i < LENGTH(yamls); i++) {
        struct run first, again;
        start(&first, yamls[i], "--print-config");
        assert_string_equal(first.err, "");
        assert_int_equal(first.action, SETTINGS_EXIT_OK);
        start(&again, first.out, "--print-config");
        assert_string_equal(again.err, "");
        assert_string_equal(again.out, first.out);
        finish(&again);
        good(&again, first.out, "");
        if (yamls[i] == odd) {
            assert_string_equal(again.settings->user, "a\"b\\c: #d");
            assert_string_equal(again.settings->data, "/a b");
            assert_true(again.settings->checkpoint.every_ms == 1500);
        }
        finish(&again);
        finish(&first);
    }
}

/* conf/rollcall.yaml is what --print-sample prints; a difference is cured by printing it again. */
static void test_sample(void **unused)
{
    static char shipped[64 << 10];
    const char *source = getenv("ROLLCALL_SOURCE");
    char path[4096];
    struct run run;
    FILE *file;

    (void)unused;
    if (source == NULL) {
        skip();
    }
    snprintf(path, sizeof(path), "%s/conf/rollcall.yaml", source);
    file = fopen(path, "r");
    assert_non_null(file);
    shipped[fread(shipped, 1, sizeof(shipped) - 1, file)] = '\0';
    fclose(file);
    start(&run, NULL, "--print-sample");
    assert_int_equal(run.action, SETTINGS_EXIT_OK);
    assert_string_equal(run.out, shipped);
    finish(&run);
}

/* ---- reload ---- */

/* A file of passwords that others may read is no mistake, and said. */
static void test_exposed_users(void **unused)
{
    struct run run;

    (void)unused;
    write_file("users", "joe:secret\n", 11);
    assert_int_equal(chmod("users", 0640), 0);
    good(&run, FEED, "-Y users");
    finish(&run);
    assert_int_equal(chmod("users", 0644), 0);
    start(&run, FEED, "-Y users");
    assert_int_equal(run.action, SETTINGS_RUN);
    assert_string_equal(run.err,
                        "rollcalld: warning: -Y: auth-file users: every user of this machine can "
                        "read or change the passwords (mode 0644); do: chmod o-rwx users\n");
    finish(&run);
    start(&run, "auth-file: users\n" FEED, "");
    assert_non_null(strstr(run.err, "t.yaml:1:12: warning: auth-file users: every user"));
    finish(&run);
    assert_int_equal(unlink("users"), 0);
}

static void test_reload(void **unused)
{
    char *argv[] = {"rollcalld", "--config", "r.yaml", "-c", "5", "-f", "1", NULL};
    struct settings *settings;
    char *text = NULL;
    size_t length;
    FILE *err = open_memstream(&text, &length);

    (void)unused;
    write_file("r.yaml", FEED, strlen(FEED));
    settings = settings_reload(7, argv, err);
    assert_non_null(settings);
    assert_int_equal(settings->max_connections, 5);
    fflush(err);
    assert_string_equal(text, "rollcalld: warning: ignored, without meaning here: -f\n");
    settings_destroy(settings);
    rewind(err);
    write_file("r.yaml", "threads: 0\n" FEED, strlen("threads: 0\n" FEED));
    assert_null(settings_reload(7, argv, err));
    fclose(err);
    assert_string_equal(text, "r.yaml:1:10: error: threads must be auto or 1 to 64, not '0'\n"
                              "    threads: 0\n             ^\n"
                              "rollcalld: warning: ignored, without meaning here: -f\n");
    free(text);
    settings_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exposed_users),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_built_in),
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_memcached_flags),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_relative_socket),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_open_addresses),
        cmocka_unit_test(test_bad_flags),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_counter_config),
        cmocka_unit_test(test_exits),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_reload),
        cmocka_unit_test(test_phantom_config),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_memory_of_data),
        cmocka_unit_test(test_oldest_with_data),
        cmocka_unit_test(test_long_data),
    };

    return cmocka_run_group_tests(tests, settings_run_enter, settings_run_leave);
}
