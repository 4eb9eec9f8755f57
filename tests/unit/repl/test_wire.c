/* test_wire.c: the lines of replication: each there and back, and what is refused. */
#include "repl/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define ID "0123456789abcdef00000000000000ff"

static struct repl_line line;
static char error[REPL_TEXT_MAX + 1];

static bool parse(enum repl_side side, const char *text)
{
    char exact[REPL_LINE_MAX + 16]; /* no byte after the text, for sanitizers */
    size_t length = strlen(text);

    assert_true(length <= sizeof(exact));
    memcpy(exact + sizeof(exact) - length, text, length);
    error[0] = '\0';
    return repl_parse(side, exact + sizeof(exact) - length, length, &line, error);
}

/* Read, and composed again: the same. */
static void there_and_back(enum repl_side side, const char *text, enum repl_kind kind)
{
    char again[REPL_LINE_MAX];

    if (!parse(side, text)) {
        fail_msg("%s: %s", text, error);
    }
    assert_int_equal(line.kind, kind);
    size_t length = repl_compose(&line, again);
    assert_int_equal(length, strlen(text) + 2);
    assert_memory_equal(again, text, length - 2);
    assert_memory_equal(again + length - 2, "\r\n", 2);
}

static void refused(enum repl_side side, const char *text, const char *why)
{
    if (parse(side, text)) {
        fail_msg("taken: %s", text);
    }
    if (strstr(error, why) == NULL) {
        fail_msg("%s: `%s` does not say `%s`", text, error, why);
    }
}

static void test_each_line(void **unused)
{
    (void)unused;
    there_and_back(REPL_OF_FOLLOWER, "follow 1 feed feed-2 " ID " 7 18446744073709551608",
                   REPL_FOLLOW);
    assert_string_equal(line.group, "feed");
    assert_string_equal(line.name, "feed-2");
    assert_true(line.stream[0] == 0x0123456789abcdef && line.stream[1] == 0xff);
    assert_true(line.epoch == 7 && line.lsn == UINT64_MAX - 7);
    there_and_back(REPL_OF_FOLLOWER, "follow 1 g n - 0 0", REPL_FOLLOW);
    assert_true(line.stream[0] == 0 && line.stream[1] == 0);
    there_and_back(REPL_OF_FOLLOWER, "copy 1 g 0.a_b-c", REPL_COPY_REQUEST);
    there_and_back(REPL_OF_FOLLOWER, "file Feed_x-1-0-2.table 4096", REPL_FILE_REQUEST);
    assert_string_equal(line.file, "Feed_x-1-0-2.table");
    there_and_back(REPL_OF_FOLLOWER, "A 24 8 16", REPL_ACK);
    assert_true(line.written == 24 && line.durable == 8 && line.applied == 16);
    there_and_back(REPL_OF_LEADER, "STREAM " ID " 2 4096", REPL_STREAM);
    there_and_back(REPL_OF_LEADER, "REWIND 2 4096", REPL_REWIND);
    there_and_back(REPL_OF_LEADER, "COPY the journal begins at 800", REPL_COPY);
    assert_string_equal(line.text, "the journal begins at 800");
    there_and_back(REPL_OF_LEADER, "BUSY 5", REPL_BUSY);
    there_and_back(REPL_OF_LEADER, "SERVER_ERROR no", REPL_ERROR);
    there_and_back(REPL_OF_LEADER, "D 800 1048576", REPL_DATA);
    there_and_back(REPL_OF_LEADER, "T 32 24 2 1700000000000000", REPL_TIME);
    assert_true(line.written == 32 && line.durable == 24 && line.epoch == 2);
    assert_true(line.unix_us == 1700000000000000);
    there_and_back(REPL_OF_LEADER, "V 8 16 00000000000000a1", REPL_SUM);
    assert_true(line.from == 8 && line.lsn == 16 && line.sum == 0xa1);
    there_and_back(REPL_OF_LEADER, "MANIFEST 67108864", REPL_MANIFEST);
    there_and_back(REPL_OF_LEADER, "FILE a.table 0 18446744073709551615", REPL_FILE);
    assert_true(line.bytes == UINT64_MAX && line.offset == 0);
}

/* The longest of each limit, and one more. */
static void test_limits(void **unused)
{
    (void)unused;
    char name[REPL_NAME_MAX + 2];
    char file[MANIFEST_FILE_NAME_MAX + 2];
    char text[REPL_LINE_MAX + 16];

    memset(name, 'n', sizeof(name));
    memset(file, 'f', sizeof(file));
    snprintf(text, sizeof(text), "follow 1 %.*s %.*s " ID " 18446744073709551615 0",
             (int)REPL_NAME_MAX, name, (int)REPL_NAME_MAX, name);
    there_and_back(REPL_OF_FOLLOWER, text, REPL_FOLLOW);
    snprintf(text, sizeof(text), "copy 1 g %.*s", (int)sizeof(name), name);
    refused(REPL_OF_FOLLOWER, text, "a name is 1 to 64");
    snprintf(text, sizeof(text), "copy 1 %.*s n", (int)sizeof(name), name);
    refused(REPL_OF_FOLLOWER, text, "a group is 1 to 64");
    snprintf(text, sizeof(text), "file %.*s 0", MANIFEST_FILE_NAME_MAX, file);
    there_and_back(REPL_OF_FOLLOWER, text, REPL_FILE_REQUEST);
    snprintf(text, sizeof(text), "file %.*s 0", MANIFEST_FILE_NAME_MAX + 1, file);
    refused(REPL_OF_FOLLOWER, text, "no name of a table file");
    memset(text, 'x', sizeof(text));
    text[REPL_LINE_MAX - 1] = '\0';
    refused(REPL_OF_FOLLOWER, text, "longer than 320");
    refused(REPL_OF_LEADER, "D 0 1048584", "bytes is 1048584, must be 8 to 1048576");
    refused(REPL_OF_LEADER, "D 0 0", "must be 8");
    refused(REPL_OF_LEADER, "MANIFEST 67108865", "must be 1 to 67108864");
    refused(REPL_OF_LEADER, "BUSY 3601", "seconds is 3601");
    refused(REPL_OF_FOLLOWER, "A 18446744073709551616 0 0", "written must be a number");
}

static void test_refusals(void **unused)
{
    (void)unused;
    refused(REPL_OF_FOLLOWER, "follow 2 whatever comes then", "version 2 was asked for");
    refused(REPL_OF_FOLLOWER, "copy x g n", "version must be a number");
    refused(REPL_OF_FOLLOWER, "follow 1 G n - 0 0", "a group is");
    refused(REPL_OF_FOLLOWER, "follow 1 g -n - 0 0", "a name is");
    refused(REPL_OF_FOLLOWER, "follow 1 g n 0123 0 0", "32 hex digits, or - for none");
    refused(REPL_OF_FOLLOWER, "follow 1 g n 0123456789ABCDEF00000000000000ff 0 0", "32 hex");
    refused(REPL_OF_FOLLOWER, "follow 1 g n 00000000000000000000000000000000 0 0", "32 hex");
    refused(REPL_OF_LEADER, "STREAM - 0 0", "32 hex digits");
    refused(REPL_OF_FOLLOWER, "follow 1 g n - 0 8", "must be 0");
    refused(REPL_OF_FOLLOWER, "follow 1 g n - 1 0", "must be 0");
    refused(REPL_OF_FOLLOWER, "follow 1 g n " ID " 1 4", "multiple of 8");
    refused(REPL_OF_FOLLOWER, "follow 1 g n - 0", "a word is missing");
    refused(REPL_OF_FOLLOWER, "follow 1 g n - 0 0 0", "too many words");
    refused(REPL_OF_FOLLOWER, "follow 1 g n - 0 0 ", "too many words");
    refused(REPL_OF_FOLLOWER, "follow 1 g  n - 0 0", "two spaces");
    refused(REPL_OF_FOLLOWER, "", "none of a follower");
    refused(REPL_OF_FOLLOWER, "D 0 8", "none of a follower");
    refused(REPL_OF_LEADER, "A 0 0 0", "none of a leader");
    refused(REPL_OF_FOLLOWER, "file .x 0", "no name of a table file");
    refused(REPL_OF_FOLLOWER, "file ../x 0", "no name of a table file");
    refused(REPL_OF_FOLLOWER, "A 8 16 0", "above written");
    refused(REPL_OF_FOLLOWER, "A 8 0 16", "above written");
    refused(REPL_OF_FOLLOWER, "A -1 0 0", "must be a number");
    refused(REPL_OF_LEADER, "REWIND 1 4", "multiple of 8");
    refused(REPL_OF_LEADER, "D 4 8", "multiples of 8");
    refused(REPL_OF_LEADER, "D 8 12", "multiples of 8");
    refused(REPL_OF_LEADER, "V 16 8 00000000000000a1", "above lsn");
    refused(REPL_OF_LEADER, "V 8 16 a1", "16 hex digits");
}

/* What a text may not hold, or no line can, does not break the line. */
static void test_texts(void **unused)
{
    (void)unused;
    char text[REPL_LINE_MAX];
    struct repl_line said = {.kind = REPL_ERROR, .text = "a\r\nb\tc\x80"};

    size_t length = repl_compose(&said, text);
    assert_int_equal(length, strlen("SERVER_ERROR a??b?c?\r\n"));
    assert_memory_equal(text, "SERVER_ERROR a??b?c?\r\n", length);
    memset(said.text, 'y', REPL_TEXT_MAX);
    said.text[REPL_TEXT_MAX] = '\0';
    length = repl_compose(&said, text);
    assert_true(repl_parse(REPL_OF_LEADER, text, length - 2, &line, error));
    assert_string_equal(line.text, said.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_line),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
