/* test_settings_mistakes.c: every kind of mistake in a file, with its exact words, place and caret.
 */
#include "config/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/config/settings_run.h"

/* ---- mistakes in a file ---- */

/* Files of one line, put in front of FEED, with what is said. */
static const struct {
    const char *line;
    unsigned column;
    const char *words;
} top_mistakes[] = {
    {"thraeds: 3", 1, "unknown key 'thraeds'; did you mean 'threads'?"},
    {"colour: red", 1, "unknown key 'colour'"},
    {"jornal: 3", 1, "unknown key 'jornal'; did you mean 'journal'?"},
    {"clod: 3", 1, "unknown key 'clod'; did you mean 'cold'?"},
    {"threads: 65", 10, "threads must be auto or 1 to 64, not '65'"},
    {"threads:   many", 12, "threads must be a number, not 'many'"},
    {"threads: [1]", 10, "threads must be auto or 1 to 64, not a list"},
    {"threads: {a: 1}", 10, "threads must be auto or 1 to 64, not a mapping"},
    {"threads: ~", 10, "threads has no value: it must be auto or 1 to 64"},
    {"threads:", 9, "threads has no value: it must be auto or 1 to 64"},
    {"memory: 1XiB", 9, "memory must be a size such as 64KiB, 16MiB or 4GiB, not '1XiB'"},
    {"memory: 1000", 9, "memory must be 1MiB to 64TiB, not '1000'"},
    {"flush-all: maybe", 12, "flush-all must be yes or no (or true, false), not 'maybe'"},
    {"\"flush-all\": \"on\"", 14, "flush-all must be yes or no (or true, false), not 'on'"},
    {"request-timeout: 1500ms", 18, "request-timeout must be whole seconds, not '1500ms'"},
    {"log-level: loud", 12,
     "log-level must be error, warning, info, debug, commands or states, not 'loud'"},
    {"unix-mode: 0900", 12, "unix-mode must be an octal number such as 0700, not '0900'"},
    {"version-shown: 0.9.1", 16,
     "version-shown must be three numbers such as 1.6.45, the first not 0"},
    {"version-shown: 1.6.45-x", 16,
     "version-shown must be three numbers such as 1.6.45, the first not 0"},
    {"version-shown: 1.6..5", 16,
     "version-shown must be three numbers such as 1.6.45, the first not 0"},
    {"cold: {threads: 65}", 17, "cold.threads must be 1 to 64, not '65'"},
    {"tls: {certificat: x}", 7, "unknown key 'tls.certificat'; did you mean 'tls.certificate'?"},
    {"tls: {key: x}", 12,
     "tls.key is given, and TLS is not enabled: say tls.enabled: yes (-Z) or no"},
    {"auth-file: /nowhere/x", 12, "auth-file /nowhere/x: No such file or directory"},
    {"journal: always", 10, "journal must be a mapping of its keys, not a single value"},
    {"journal:", 9, "journal has no value: it must be a mapping of its keys"},
    {"journal: {sync: often}", 17, "journal.sync must be never, everysec or always, not 'often'"},
    {"journal: {sync: [never]}", 17, "journal.sync must be never, everysec or always, not a list"},
    {"journal: {snc: always}", 11, "unknown key 'journal.snc'; did you mean 'journal.sync'?"},
    {"journal: {sync: never, sync: never}", 24, "key sync given twice: first in line 2"},
    {"journal.sync: always", 1, "journal.sync is written so in a file: journal: {sync: always}"},
    {"cold.threads: [1]", 1, "cold.threads is written so in a file: cold: {threads: ...}"},
    {"journal.snc: always", 1, "unknown key 'journal.snc'"},
    {"journal: {segment: 512K}", 20, "journal.segment must be 1MiB to 16GiB, not '512K'"},
    {"journal: {segment: 1025K}", 20, "journal.segment must be a multiple of 4KiB"},
    {"journal: {buffer: 3M}", 19, "journal.buffer must be a power of two, not '3M'"},
    {"journal: {segment: 1M, buffer: 512M}", 32,
     "journal.buffer is too large for segments this small: a larger journal.segment, or a smaller "
     "buffer"},
    {"checkpoint: {every: 99ms}", 21,
     "checkpoint.every must be 0 or 100 to 2592000000 milliseconds, not '99ms'"},
    {"replication: {name: One}\ndata: /x", 21,
     "replication.name must be a-z 0-9 _ - and ., with a letter or digit in front"},
    {"replication: {group: -x}", 22,
     "replication.group must be a-z 0-9 _ - and ., with a letter or digit in front"},
    {"replication: {name: one}", 21,
     "replication.name needs a directory for the journal: give the key data"},
    {"replication: {name: one, ack: replica}\ndata: /x", 31,
     "replication.ack: replica needs replication.name, and in ack-by the name of the follower to "
     "wait for"},
    {"replication: {follow: 10.0.0.1}\ndata: /x", 23,
     "replication.follow needs replication.name, which the node that is followed knows this one "
     "by, "
     "and the key data"},
    {"replication: {name: one, follow: 'a b'}\ndata: /x", 34,
     "replication.follow must be host:port, [v6]:port or /path.sock, not 'a b'"},
    {"replication: {name: one, follow: 10.0.0.1:0}\ndata: /x", 34,
     "replication.follow: nobody listens on port 0"},
    {"replication: {name: one, credentials: nosuch}\ndata: /x", 39,
     "replication.credentials nosuch: No such file or directory"},
    {"replication: {stale-after: 721h}", 28,
     "replication.stale-after must be 0 to 2592000 seconds, not '721h'"},
    {"replication: {copies: 17}", 23, "replication.copies must be 0 to 16, not '17'"},
    {"checkpoint: {journal: 1K}", 23, "checkpoint.journal must be 1MiB to 64TiB, not '1K'"},
    {"? [a]\n: 3", 3, "a key must be text, not a list"},
    {"listen: {}", 9,
     "listen must be a list of addresses such as [127.0.0.1:11211], not a mapping"},
    {"listen: []", 9, "listen is empty: it must be a list of addresses such as [127.0.0.1:11211]"},
    {"listen: [127.0.0.1:1, [x]]", 23, "an address must be text, not a list"},
    {"listen: [\"a b\"]", 10, "an address must be host:port, [v6]:port or /path.sock, not 'a b'"},
    {"listen: ['[::1']", 10, "an address must be host:port, [v6]:port or /path.sock, not '[::1'"},
    {"listen: ['[::g]:1']", 10,
     "an address must be host:port, [v6]:port or /path.sock, not '[::g]:1'"},
    {"listen: [':1']", 10, "an address must be host:port, [v6]:port or /path.sock, not ':1'"},
    {"listen: [127.0.0.1:65536]", 10, "port must be 0 to 65535, not '65536'"},
    {"listen: [127.0.0.1, '::1', 127.0.0.1:11211]", 28,
     "listen address 127.0.0.1:11211 given twice"},
    {"\xc3\xbc: 3", 1, "unknown key '\xc3\xbc'"},
    {"threads: @", 10,
     "found character that cannot start any token while scanning for the next "
     "token"},
};

static void test_top_mistakes(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < LENGTH(top_mistakes); i++) {
        const char *line = top_mistakes[i].line;
        char *yaml, *words;
        assert_true(asprintf(&yaml, "# first\n%s\n" FEED, line) >= 0);
        assert_true(asprintf(&words, "t.yaml:2:%u: error: %s\n    %.*s\n    %*s^\n",
                             top_mistakes[i].column, top_mistakes[i].words,
                             (int)strcspn(line, "\n"), line, (int)top_mistakes[i].column - 1,
                             "") >= 0);
        refused(yaml, "", words);
        free(yaml);
        free(words);
    }
}

static void test_tabs(void **unused)
{
    (void)unused;
    refused("threads: 2\nspaces:\n\tfeed: {kind: counter}\n", "",
            "t.yaml:3:1: error: a tab: YAML is indented by spaces\n    \tfeed: {kind: counter}\n"
            "    ^\n");
}

/* Its keys are looked at all the same, so that one run tells of all. */
static void test_name_and_body(void **unused)
{
    (void)unused;
    refused("spaces:\n  Feed: {kind: conter, tabls: 5}\n", "",
            "t.yaml:2:3: error: space name 'Feed' must be 1 to 32 of the letters a-z 0-9 _ -\n"
            "      Feed: {kind: conter, tabls: 5}\n      ^\n"
            "t.yaml:2:16: error: kind must be counter, phantom or plain, not 'conter'\n"
            "      Feed: {kind: conter, tabls: 5}\n                   ^\n"
            "t.yaml:2:24: error: unknown key 'tabls'; did you mean 'tables'?\n"
            "      Feed: {kind: conter, tabls: 5}\n                           ^\n");
}

/* Bodies of a space called s, with what is said. */
static const struct {
    const char *body;
    unsigned column; /* in "  s: {body}", which is line 2 */
    const char *words;
} space_mistakes[] = {
    {"", 3, "space s lacks the key kind"},
    {"slots: {a: 9}", 3, "space s lacks the key kind"},
    {"kind: counter", 3, "space s lacks the key slots"},
    {"kind: countr", 13, "kind must be counter, phantom or plain, not 'countr'"},
    {"kind: plain, slots: {a: 9}", 27, "slots is not a key of kind plain"},
    {"kind: plain, item-max: 2M", 30, "item-max must be 1KiB to 1MiB, not '2M'"},
    {"kind: phantom, slots: {a: 9}", 29, "slots is not a key of kind phantom"},
    {"kind: phantom, key: 's:{id}'", 34, "key: no {member}: write it like liked:{id}:{member}"},
    {"kind: phantom, false-positives: 0.6", 39, "false-positives must be 1e-06 to 0.5, not '0.6'"},
    {"kind: counter, slots: {}", 29, "slots is empty: it must name 1 to 16"},
    {"kind: counter, slots: [a]", 29,
     "slots must be a mapping of names to bits such as {like: 20}, not a list"},
    {"kind: counter, slots: {a: 1}", 33, "bits of slot a must be 2 to 64, not '1'"},
    {"kind: counter, slots: {a: 65}", 33, "bits of slot a must be 2 to 64, not '65'"},
    {"kind: counter, slots: {a: [2]}", 33, "'a' must be a number of bits, not a list"},
    {"kind: counter, slots: {A: 2}", 30,
     "slot name 'A' must be 1 to 32 of the letters a-z 0-9 _ -"},
    {"kind: counter, slots: {a: 2, a: 3}", 36, "key a given twice: first in line 2"},
    {"kind: counter, slots: {a: 64, b: 64, c: 64, d: 64, e: 64, f: 64, g: 64, h: 64, i: 2}", 29,
     "slots have 514 bits together: at most 512"},
    {"kind: counter, slots: {a: 2, b: 2, c: 2, d: 2, e: 2, f: 2, g: 2, h: 2, i: 2, j: 2, k: 2, "
     "l: 2, m: 2, n: 2, o: 2, p: 2, q: 2}",
     126, "too many slots: at most 16"},
    {"kind: counter, slots: {a: 2}, forget: b", 45,
     "forget must be a list of names such as [like], not a single value"},
    {"kind: counter, slots: {a: 2}, forget: [b, [c]]", 49,
     "what to forget must be text, not a list"},
    {"kind: counter, slots: {a: 2}, forget: [B]", 46,
     "slot name 'B' must be 1 to 32 of the letters a-z 0-9 _ -"},
    {"kind: counter, slots: {a: 2}, forget: [b, a]", 45,
     "forget names the slot a, which slots names too: take it out of one of them"},
    {"kind: plain, forget: [b]", 28, "forget is not a key of kind plain"},
    {"kind: counter, slots: {a: 2}, tabel-size: 1M", 37,
     "unknown key 'tabel-size'; did you mean 'table-size'?"},
    {"kind: counter, slots: {a: 2}, table-size: 3MiB", 49,
     "table-size must be a power of two, not '3MiB'"},
    {"kind: counter, slots: {a: 2}, table-size: 32K", 49,
     "table-size must be 64KiB to 1TiB, a power of two, not '32K'"},
    {"kind: counter, slots: {a: 2}, deletes: no", 46, "deletes is not a key of kind counter"},
    {"kind: counter, slots: {a: 2}, item-max: 1M", 47, "item-max is not a key of kind counter"},
    {"kind: counter, slots: {a: 2}, role: cache, empty-fields: keep", 64,
     "empty-fields holds only with role: store"},
    {"kind: counter, slots: {a: 2}, max-id: 9", 45, "max-id holds only with ids: any"},
    {"kind: counter, slots: {a: 2}, ids: any, id-spacing: 9", 59,
     "id-spacing holds only with ids: growing"},
    {"kind: counter, slots: {a: 2}, ids: any, tables: 9", 55,
     "tables holds only with ids: growing"},
    {"kind: phantom, ids: any, oldest: dump", 40,
     "oldest: with ids: any it is refuse, or dump for kind: counter"},
    {"kind: counter, slots: {a: 2}, ids: any, oldest: recycle", 55,
     "oldest: with ids: any it is refuse, or dump for kind: counter"},
    {"kind: counter, slots: {a: 2}, ids: any, oldest: dump", 55,
     "oldest: dump needs a directory for the tables: give the key data"},
    {"kind: phantom, ids: any, late-room: 0", 43, "late-room holds only with ids: growing"},
    {"kind: counter, slots: {a: 2}, oldest: dump", 45,
     "oldest: dump needs a directory for the tables: give the key data"},
    {"kind: counter, slots: {a: 2}, ids: any, dumps-max: 2", 58,
     "dumps-max holds only with ids: growing"},
    {"kind: counter, slots: {a: 2}, dumps-max: 31745", 48,
     "dumps-max must be 0 to 31744, not '31745'"},
    {"kind: counter, slots: {a: 2}, tables: 0", 45, "tables must be 1 to 1024, not '0'"},
    {"kind: counter, slots: {a: 2}, late-room: 2", 48,
     "late-room must be auto or 0 to 0.9, not '2'"},
    {"kind: counter, slots: {a: 2}, value-flags: 4294967296", 50,
     "value-flags must be 0 to 4294967295, not '4294967296'"},
};

static void test_space_mistakes(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < LENGTH(space_mistakes); i++) {
        const char *body = space_mistakes[i].body;
        char *yaml, *words;
        assert_true(asprintf(&yaml, "spaces:\n  s: {%s}\n", body) >= 0);
        assert_true(asprintf(&words, "t.yaml:2:%u: error: %s\n      s: {%s}\n    %*s^\n",
                             space_mistakes[i].column, space_mistakes[i].words, body,
                             (int)space_mistakes[i].column - 1, "") >= 0);
        refused(yaml, "", words);
        free(yaml);
        free(words);
    }
}

/* The place of a bad pattern is the letter within it; what pattern_valid() says is its own affair.
 */
static void test_bad_key(void **unused)
{
    struct run run;

    (void)unused;
    start(&run, "spaces:\n  s: {kind: counter, slots: {a: 2}, key: \"feed:{di}\"}\n", "");
    assert_int_equal(strncmp(run.err, "t.yaml:2:48: error: key: ", 25), 0);
    assert_non_null(strstr(run.err, "\n                                                   ^\n"));
    finish(&run);
    start(&run, "spaces:\n  s: {kind: counter, slots: {a: 2}, key: \"{id}:{member}\"}\n", "");
    assert_int_equal(run.action, SETTINGS_EXIT_ERROR);
    finish(&run);
}

static void test_clash(void **unused)
{
    static const char yaml[] = "spaces:\n"
                               "  feed: {kind: counter, slots: {a: 2}}\n"
                               "  other: {kind: counter, slots: {a: 2}, key: 'x{id}'}\n"
                               "  posts: {kind: counter, slots: {a: 2}, key: 'feed:{id}'}\n"
                               "  again: {kind: counter, slots: {a: 2}, key: 'x{id}'}\n";
    struct run run;
    char *second;

    (void)unused;
    start(&run, yaml, "");
    assert_int_equal(
        strncmp(run.err, "t.yaml:4:46: error: spaces feed and posts could own one key: ", 61), 0);
    assert_non_null(strstr(run.err, "\"feed:"));
    second = strstr(run.err, "t.yaml:5:46: error: spaces other and again could own one key: ");
    assert_non_null(second);
    assert_non_null(strstr(second, "\n      again: {kind: counter, slots: {a: 2}, key: 'x{id}'}\n"
                                   "                                                 ^\n"));
    finish(&run);
}

static void test_all_at_once(void **unused)
{
    (void)unused;
    refused("memory: lots\n"
            "memory: 1GiB\n"
            "spaces:\n"
            "\n"
            "  Feed:\n"
            "  feed:\n"
            "    kind: counter\n"
            "    slots: {like: 1}\n"
            "thraeds: 3\n",
            "-p x -c 0 --set spaces.feed.table-size=3M",
            "t.yaml:1:9: error: memory must be a size such as 64KiB, 16MiB or 4GiB, not 'lots'\n"
            "    memory: lots\n"
            "            ^\n"
            "t.yaml:2:1: error: key memory given twice: first in line 1\n"
            "    memory: 1GiB\n"
            "    ^\n"
            "t.yaml:5:3: error: space name 'Feed' must be 1 to 32 of the letters a-z 0-9 _ -\n"
            "      Feed:\n"
            "      ^\n"
            "t.yaml:8:19: error: bits of slot like must be 2 to 64, not '1'\n"
            "        slots: {like: 1}\n"
            "                      ^\n"
            "t.yaml:9:1: error: unknown key 'thraeds'; did you mean 'threads'?\n"
            "    thraeds: 3\n"
            "    ^\n"
            "rollcalld: --set spaces.feed.table-size=3M: table-size must be a power of two, not "
            "'3M'\n"
            "rollcalld: -p: port must be a number, not 'x'\n"
            "rollcalld: -c: max-connections must be 1 to 1000000, not '0'\n");
}

static void test_whole_file(void **unused)
{
    static const char nul[] = "threads: 1\na\0b: 3\n";
    char *large = malloc(2 * MIB);

    (void)unused;
    refused("", "",
            "t.yaml:1:1: error: no space: the key spaces must name at least one\n    \n    ^\n");
    refused("threads: 1\n", "",
            "t.yaml:1:1: error: no space: the key spaces must name at least one\n"
            "    threads: 1\n    ^\n");
    refused("- a\n", "",
            "t.yaml:1:1: error: the file must be a mapping of keys to values, not a "
            "list\n    - a\n    ^\n");
    refused("spaces: 3\n", "",
            "t.yaml:1:9: error: spaces must be a mapping of names to spaces, not "
            "a single value\n    spaces: 3\n            ^\n");
    refused("spaces: {s: 3}\n", "",
            "t.yaml:1:13: error: 's' must be a mapping of the space's keys, "
            "not a single value\n    spaces: {s: 3}\n                ^\n");
    refused(FEED "---\nx: 1\n", "",
            "t.yaml:4:1: error: a second document: there must be one\n    x: 1\n    ^\n");
    refused(NULL, "--config none.yaml",
            "rollcalld: cannot read none.yaml: No such file or directory\n");
    write_file("nul.yaml", nul, sizeof(nul) - 1);
    refused(NULL, "--config nul.yaml",
            "nul.yaml:2:2: error: control characters are not allowed\n"
            "    a\n     ^\n");
    memset(large, '#', 2 * MIB);
    write_file("large.yaml", large, 2 * MIB);
    refused(NULL, "--config large.yaml",
            "rollcalld: large.yaml: larger than 1MiB: is this a configuration?\n");
    free(large);
}

/* A tab before the mistake is a tab above the caret; a letter of two bytes is one column. */
static void test_caret(void **unused)
{
    (void)unused;
    refused("{\"user\": \"\xc3\xbc\xc3\xbc\",\t\"threads\": 0, \"spaces\": {s: {kind: counter, "
            "slots: {a: 2}}}}\n",
            "",
            "t.yaml:1:27: error: threads must be auto or 1 to 64, not '0'\n"
            "    {\"user\": \"\xc3\xbc\xc3\xbc\",\t\"threads\": 0, \"spaces\": {s: {kind: counter, "
            "slots: {a: 2}}}}\n"
            "                  \t           ^\n");
}

/* Of a very long line the part around the caret is shown. */
static void test_long_line(void **unused)
{
    char blanks[512], yaml[2048], words[2048];

    (void)unused;
    memset(blanks, ' ', sizeof(blanks));
    blanks[300] = '\0';
    snprintf(yaml, sizeof(yaml), "threads:%s0%s# end\n" FEED, blanks, blanks);
    snprintf(words, sizeof(words),
             "t.yaml:1:309: error: threads must be auto or 1 to 64, not '0'\n"
             "    %.80s0%.79s\n    %.80s^\n",
             blanks, blanks, blanks);
    refused(yaml, "", words);
}

static void test_limits(void **unused)
{
    char yaml[8192] = "spaces:\n", *end = yaml + strlen(yaml);
    struct run run;

    (void)unused;
    for (unsigned i = 0; i < SETTINGS_SPACES_MAX; i++) {
        end += sprintf(end, "  s%u: {kind: counter, slots: {a: 2}, table-size: 64K}\n", i);
    }
    assert_int_equal(good(&run, yaml, "")->space_count, SETTINGS_SPACES_MAX);
    finish(&run);
    sprintf(end, "  one: {kind: counter}\n  two: {kind: counter}\n");
    refused(yaml, "",
            "t.yaml:66:3: error: too many spaces: at most 64\n"
            "      one: {kind: counter}\n      ^\n");
    good(&run, "spaces: {abcdefghijklmnopqrstuvwxyz01234-: {kind: counter, slots: {_: 2}}}", "");
    assert_string_equal(run.settings->spaces[0].key, "abcdefghijklmnopqrstuvwxyz01234-:{id}");
    finish(&run);
    refused("spaces: {abcdefghijklmnopqrstuvwxyz01234-5: {}}", "",
            "t.yaml:1:10: error: space name 'abcdefghijklmnopqrstuvwxyz01234-5' must be 1 to 32 of "
            "the letters a-z 0-9 _ -\n"
            "    spaces: {abcdefghijklmnopqrstuvwxyz01234-5: {}}\n             ^\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_top_mistakes),  cmocka_unit_test(test_tabs),
        cmocka_unit_test(test_name_and_body), cmocka_unit_test(test_space_mistakes),
        cmocka_unit_test(test_bad_key),       cmocka_unit_test(test_clash),
        cmocka_unit_test(test_all_at_once),   cmocka_unit_test(test_whole_file),
        cmocka_unit_test(test_caret),         cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, settings_run_enter, settings_run_leave);
}
