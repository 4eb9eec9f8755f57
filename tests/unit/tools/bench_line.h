/* bench_line.h: the options of `rollcall bench` from a command line in one text. */
#ifndef ROLLCALL_TESTS_UNIT_TOOLS_BENCH_LINE_H
#define ROLLCALL_TESTS_UNIT_TOOLS_BENCH_LINE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools/rollcall/bench_options.h"

#define BENCH_LINE_WORDS_MAX 32
#define BENCH_LINE_BYTES_MAX 512

/*
 * Splits a line at spaces into `arguments`, the verb first; returns how many. They point into
 * memory that the next call overwrites.
 */
static inline int bench_line_split(const char *line, char *arguments[BENCH_LINE_WORDS_MAX])
{
    static char verb[] = "bench";
    static char words[BENCH_LINE_BYTES_MAX];
    int count = 1;

    arguments[0] = verb;

    snprintf(words, sizeof(words), "%s", line);
    for (char *word = strtok(words, " "); word != NULL && count + 1 < BENCH_LINE_WORDS_MAX;
         word = strtok(NULL, " ")) {
        arguments[count++] = word;
    }
    return count;
}

/* The options point into memory that the next call overwrites. */
static inline bool bench_line_parse_with(const struct bench_kit *kit, const char *line,
                                         struct bench_options *options)
{
    char *arguments[BENCH_LINE_WORDS_MAX];
    int count = bench_line_split(line, arguments);

    return bench_options_parse(kit, count, arguments, options);
}

static inline bool bench_line_parse(const char *line, struct bench_options *options)
{
    return bench_line_parse_with(&bench_kit_product, line, options);
}

#endif
